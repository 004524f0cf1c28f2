"""A Label Studio on loopback over SQLite, and somebody who annotates as its page does."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

TOKEN = "0123456789abcdef0123456789abcdef01234567"  # noqa: S105 -- of this test's own server
_START_SECONDS = 300


@dataclass(frozen=True)
class LabelStudio:
    """One that answers, and a client of it with the right to everything."""

    url: str
    http: httpx2.Client

    def project_of(self, session: str) -> int:
        """The project that the bridge has made of a session; waits for it."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = self.http.get("/api/projects", params={"title": session}).json()["results"]
            if found:
                return int(found[0]["id"])
            time.sleep(0.1)
        raise TimeoutError(session)

    def tasks(self, project: int) -> list[dict[str, Any]]:
        """All tasks with all that is known of them."""
        query: dict[str, str | int] = {"project": project, "fields": "all", "page_size": 1000}
        found: list[dict[str, Any]] = self.http.get("/api/tasks", params=query).json()["tasks"]
        return found


@contextmanager
def label_studio() -> Iterator[LabelStudio]:
    """A server without telemetry; ended on leaving."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="celeus-label-studio-") as name:
        folder = Path(name)
        own = {
            "LABEL_STUDIO_BASE_DATA_DIR": name,
            "LABEL_STUDIO_USERNAME": "ann@example.org",
            "LABEL_STUDIO_PASSWORD": "known to this test",
            "LABEL_STUDIO_USER_TOKEN": TOKEN,
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
        }
        program = Path(sys.executable).parent / "label-studio"
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                [
                    *(str(program), "start", "--no-browser", "--log-level", "WARNING"),
                    *("--internal-host", "127.0.0.1", "--port", str(port), "--data-dir", name),
                ],
                env=os.environ | own,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        headers = {"Authorization": f"Token {TOKEN}"}
        url = f"http://127.0.0.1:{port}"
        try:
            with httpx2.Client(base_url=url, headers=headers, timeout=60) as http:
                _await_ready(http, process, folder / "log")
                yield LabelStudio(url, http)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _await_ready(http: httpx2.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        with suppress(httpx2.HTTPError):
            if http.get("/api/projects").is_success:
                return
        time.sleep(0.2)


Say = Callable[[dict[str, Any]], str | float | None]
"""What is said of the data of a task: an option, a number, or None to skip it."""


@dataclass
class Person:
    """Somebody at the labelling page, which asks for the next task and submits an annotation."""

    at: LabelStudio
    project: int
    say: Say
    said: dict[str, str | float | None] = field(default_factory=dict)
    """What was said, by the mark of the task."""
    shown: list[dict[str, Any]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    looks: int = 0

    def annotate(self, go_on: Callable[[], bool]) -> None:
        """One task after the other, while that is wanted."""
        began = time.perf_counter()
        while go_on():
            answer = self.at.http.get(f"/api/projects/{self.project}/next")
            self.looks += 1
            if not answer.is_success:
                time.sleep(0.05)
                continue
            self.waits.append(time.perf_counter() - began)
            task = answer.json()
            self.shown.append(task)
            said = self.say(task["data"])
            body = {"result": region(said), "was_cancelled": said is None}
            path = f"/api/tasks/{task['id']}/annotations/"
            if self.at.http.post(path, json=body).is_success:
                self.said[task["data"]["celeus"]] = said
            began = time.perf_counter()


def region(said: str | float | None) -> list[dict[str, Any]]:
    """The result of an annotation that says this."""
    if said is None:
        return []
    if isinstance(said, str):
        return [
            {
                "from_name": "verdict",
                "to_name": "item",
                "type": "choices",
                "value": {"choices": [said]},
            }
        ]
    return [{"from_name": "number", "to_name": "item", "type": "number", "value": {"number": said}}]

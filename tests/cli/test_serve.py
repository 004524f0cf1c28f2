"""`celeus admin migrate` and `celeus serve` as an operator runs them: a wheel, ended by SIGTERM."""

import os
import re
import signal
import site
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import httpx
import pytest

from celeus.store.embedded import server as embedded
from tests.keys import bearer
from tests.servers import data_folder, put_cluster, running_services, started_service
from tests.wheels import built

START_SECONDS = 120


@dataclass(frozen=True)
class Installed:
    """A virtual environment that holds the wheel and nothing of the checkout."""

    folder: Path

    def command(self, *arguments: str) -> list[str]:
        return [str(self.folder / "bin" / "celeus"), *arguments]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, built and installed without a network; its dependencies are this run's."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = built(folder)
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "--python", str(venv / "bin" / "python"), *install], check=True)
    # Only paths: the .pth files in there, an editable install's too, are not read from here.
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return Installed(venv)


@dataclass(frozen=True)
class Serving:
    """A running `celeus serve`."""

    url: str
    log: Path
    process: subprocess.Popen[str]

    @property
    def key(self) -> dict[str, str]:
        """The header with the key it shows on its first start."""
        return bearer(re.findall(r"^celeus key: (ce_\S+)$", self.log.read_text(), re.MULTILINE)[0])


def environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("CELEUS_") and name not in {"PYTHONPATH", "VIRTUAL_ENV"}
    }


@contextmanager
def serving(command: list[str], folder: Path) -> Iterator[Serving]:
    """The server, once it is ready; killed at the end if it still runs."""
    log = folder / "server.log"
    with log.open("w") as written:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(), stdout=written, stderr=written, text=True
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            address = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
            if address is not None and listens(address[0]) and is_ready(address[0]):
                yield Serving(address[0], log, process)
                return
            time.sleep(0.1)
        pytest.fail(f"not ready: {log.read_text()}")
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)


def listens(url: str) -> bool:
    """Whether anybody is there to be asked: a client for it takes longer to make."""
    place = urlsplit(url)
    with suppress(OSError), socket.create_connection((place.hostname, place.port), 5):
        return True
    return False


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def judge_everything(server: Serving) -> dict[str, object]:
    """A small pool from upload to exhaustion, through HTTP."""
    with httpx.Client(base_url=f"{server.url}/v1", headers=server.key, timeout=30) as client:
        items = [{"id": str(number), "surrogate": 0.5} for number in range(6)]
        body = {"name": "six", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
        pool = client.post("/pools", json=body)
        assert pool.status_code == 201, pool.text
        session = client.post("/sessions", json={"pool_id": pool.json()["id"]})
        assert session.status_code == 201, session.text
        path = f"/sessions/{session.json()['id']}"
        for _ in range(6):
            (draw,) = client.post(f"{path}/next", json={"worker": "w", "count": 1}).json()["draws"]
            told = {"round": draw["round"], "loss": draw["item"]["index"] % 2, "worker": "w"}
            answer = client.post(f"{path}/observe", json=told)
            assert answer.status_code == 200, answer.text
        status: dict[str, object] = client.get(path).json()
        return status


@pytest.mark.nightly
def test_an_installed_wheel_migrates_serves_and_ends_on_sigterm(installed: Installed) -> None:
    with data_folder() as folder:
        where = [
            str(installed.folder / "bin" / "python"),
            "-c",
            "import celeus; print(celeus.__file__)",
        ]
        found = subprocess.run(
            where, cwd=folder, env=environment(), check=True, capture_output=True, text=True
        )
        assert found.stdout.startswith(str(installed.folder)), "the wheel runs, not the checkout"
        data = folder / "data"
        migrated = subprocess.run(
            installed.command("admin", "migrate", "--data-dir", str(data)),
            cwd=folder,
            env=environment(),
            check=True,
            capture_output=True,
            text=True,
        )
        assert "the database has schema" in migrated.stdout
        assert embedded.pid(data) is None
        command = installed.command("serve", "--show-key", "--data-dir", str(data), "--port", "0")
        with serving(command, folder) as server:
            assert embedded.pid(data) is not None
            status = judge_everything(server)
            assert (status["lower"], status["upper"]) == (0.5, 0.5)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(60) == 128 + signal.SIGTERM
            assert embedded.pid(data) is None


def test_several_workers_share_sessions_and_metrics_and_end_together() -> None:
    with data_folder() as folder:
        data = put_cluster(folder / "data")
        for name in ("multiprocessing", "celeus", "uvicorn", "socket"):
            trap = f"open({str(folder / 'sprung')!r}, 'w')\n"
            (folder / f"{name}.py").write_text(trap, encoding="utf-8")
        # The socket of the process that workers are forked from had to lie in it
        temporary = folder / ("x" * 100)
        temporary.mkdir()
        program = Path(sys.executable).with_name("celeus")
        command = ["/usr/bin/env", f"TMPDIR={temporary}", str(program), "serve", "--port", "0"]
        command += ["--data-dir", str(data), "--workers", "2", "--show-key"]
        with serving(command, folder) as server:
            judge_everything(server)
            metrics = httpx.get(f"{server.url}/metrics", headers=server.key, timeout=5).text
            pattern = r'requests_total{method="POST",route="([^"]*)"[^}]*} (\S+)'
            counted = re.findall(pattern, metrics)
            observed = [float(count) for route, count in counted if "observe" in route]
            assert sum(observed) == 6.0, "of all workers, whichever answers"
            address = f"{server.url}/v1/certificates/key"
            signing = {httpx.get(address, headers=server.key, timeout=5).text for _ in range(6)}
            assert len(signing) == 1, "all workers sign with the key that the first start made"
            assert stat.S_IMODE((data / "signing.pem").stat().st_mode) == 0o600
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(60) == 0
            assert embedded.pid(data) is None
            assert not is_ready(server.url)
        assert not (folder / "sprung").exists(), "modules of the working folder are not run"


@pytest.mark.nightly
def test_on_a_named_database_a_named_data_folder_keeps_the_key(
    database_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "volume" / "data"
    keys = set()
    for _ in range(2):
        named = {"CELEUS_DATA_DIR": str(folder)}
        with running_services(1, database_url, environment=named) as (service,):
            answer = httpx.get(f"{service.url}/v1/certificates/key", headers=bearer(), timeout=5)
            assert answer.status_code == 200, answer.text
            keys.add(answer.text)
    assert len(keys) == 1, "the first start makes it, the next one finds it"
    assert stat.S_IMODE((folder / "signing.pem").stat().st_mode) == 0o600


@pytest.mark.nightly
def test_what_a_killed_service_leaves_among_temporary_files_is_cleared_by_the_next(
    database_url: str,
) -> None:
    # Not pytest's folder: a socket's path has to be short
    with TemporaryDirectory(prefix="celeus-left-") as name:
        folder = Path(name)
        environment = {"CELEUS_WORKERS": "2", "TMPDIR": name}
        started_service(database_url, None, environment).kill()
        left = set(folder.iterdir())
        assert left
        service = started_service(database_url, None, environment)
        assert left.isdisjoint(folder.iterdir())
        service.process.terminate()
        service.process.wait(60)
        assert list(folder.iterdir()) == []

"""The real server as a child process, with a database of its own that ends with it."""

import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import httpx2

from celeus.errors import Unavailable
from celeus.subprocesses import ChildProcess, environment

_START_SECONDS = 90
_STOP_SECONDS = 60
_LOG_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its address, and the folder that holds its database and its log."""

    url: str
    folder: Path
    process: ChildProcess

    @property
    def key(self) -> str:
        """Key that the server shows on its first start."""
        match = re.search(r"^celeus key: (ce_\S+)$", _log(self.folder).read_text(), re.MULTILINE)
        if match is None:
            raise Unavailable("the server showed no key")
        return match[1]

    def await_ready(self) -> None:
        """Wait until the server answers; otherwise raise a refusal with the end of its log."""
        deadline = time.monotonic() + _START_SECONDS
        # One client for all tries: to make one takes as long as the pause between two of them
        with httpx2.Client(timeout=5) as client:
            while self.process.poll() is None and time.monotonic() < deadline:
                with suppress(httpx2.TransportError):
                    if client.get(f"{self.url}/readyz").is_success:
                        return
                time.sleep(0.1)
        lines = _log(self.folder).read_text(errors="replace").splitlines()
        raise Unavailable("the server did not start:\n" + "\n".join(lines[-_LOG_TAIL_LINES:]))


@contextmanager
def running_server(*, keep: bool) -> Iterator[Server]:
    """`celeus serve` with an embedded PostgreSQL in a new folder, on a free port of loopback.

    On leaving, however that happens, the server is ended and its folder removed, unless `keep`.
    """
    with _leaving_on_signals():
        folder = Path(tempfile.mkdtemp(prefix="celeus-demo-"))
        try:
            # As root, the database runs under a user of its own, who has to pass here
            folder.chmod(0o711)
            process = _serve(folder, port := _free_port())
            try:
                yield Server(f"http://127.0.0.1:{port}", folder, process)
            finally:
                with _undisturbed():
                    _end(process)
        finally:
            if not keep:
                with _undisturbed():
                    shutil.rmtree(folder)


def _serve(folder: Path, port: int) -> ChildProcess:
    # -P, and no settings: whatever the current folder holds and the caller's environment names
    command = [
        *(sys.executable, "-P", "-m", "celeus.cli"),
        *("serve", "--show-key", "--data-dir", str(folder), "--port", str(port)),
    ]
    # It holds the key: readable only by the user who started the demo
    with os.fdopen(os.open(_log(folder), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as log:
        return ChildProcess(command, stdout=log, stderr=log, env=environment(), cwd="/")


def _log(folder: Path) -> Path:
    return folder / "server.log"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _end(process: ChildProcess) -> None:
    process.end((signal.SIGTERM, _STOP_SECONDS), (signal.SIGKILL, None))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore a second Ctrl-C while cleaning up after the first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _leaving_on_signals() -> Iterator[None]:
    """Turn the signals that end a process into an ordinary exit, so that cleaning up happens."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)

"""A Celeus served from the environment of the other tests, for tests that have not its packages."""

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / ".venv" / "bin" / "celeus"
_START_SECONDS = 120
_READY = "Application startup complete"


@dataclass(frozen=True)
class Service:
    """One that answers."""

    url: str
    key: str
    """Allows everything."""

    @property
    def environment(self) -> dict[str, str]:
        """What programs read its address and key from."""
        return {"CELEUS_URL": self.url, "CELEUS_KEY": self.key}


@contextmanager
def running(**settings: str) -> Iterator[Service]:
    """A service on a free port of loopback with a private database; ended on leaving."""
    with tempfile.TemporaryDirectory(prefix="celeus-ecosystem-") as name:
        folder = Path(name)
        # The database's own user has to pass
        folder.chmod(0o711)
        log = folder / "server.log"
        command = [str(PROGRAM), "serve", "--show-key", "--port", "0"]
        own = {key: it for key, it in os.environ.items() if not key.startswith("CELEUS_")}
        own |= {f"CELEUS_{name.upper()}": value for name, value in settings.items()}
        with log.open("w") as written:
            process = subprocess.Popen(
                [*command, "--data-dir", str(folder / "data")],
                env=own,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
            )
        try:
            yield _ready(log, process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _ready(log: Path, process: subprocess.Popen[bytes]) -> Service:
    deadline = time.monotonic() + _START_SECONDS
    while _READY not in (said := log.read_text()):
        assert process.poll() is None, f"celeus serve ended: {said}"
        assert time.monotonic() < deadline, f"celeus serve does not answer: {said}"
        time.sleep(0.1)
    url = re.search(r"http://127\.0\.0\.1:\d+", said)
    key = re.search(r"^celeus key: (ce_\S+)$", said, re.MULTILINE)
    assert url is not None, said
    assert key is not None, said
    return Service(url[0], key[1])

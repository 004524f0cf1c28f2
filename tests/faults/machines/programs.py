"""Programs of Debian that stand between clients and servers; installed where apt is at hand."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docker.images import called


def require(*programs: str) -> None:
    """Have HAProxy or PgBouncer, by apt where they are missing; skip where there is no apt."""
    missing = [program for program in programs if shutil.which(program) is None]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip(f"NOT SHOWN IN THIS RUN: nobody can install {', '.join(missing)} by apt here")
    called("apt-get", "update", "-qq")
    # Debian would start it, as a service of the machine
    quietly = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"]
    called(*quietly, "apt-get", "install", "-qq", "-y", "--no-install-recommends", *missing)


@contextmanager
def running(command: list[str], port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program from when it listens on a port of loopback until the block ends."""
    with (
        log.open("ab") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as process,
    ):
        try:
            deadline = time.monotonic() + 30
            while not _listens(port):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


@contextmanager
def haproxy(configuration: str, port: int, folder: Path) -> Iterator[None]:
    """HAProxy with a configuration that has it listen on a port."""
    file = folder / "haproxy.cfg"
    file.write_text(configuration)
    with running(["haproxy", "-db", "-f", str(file)], port, folder / "haproxy.log"):
        yield


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0

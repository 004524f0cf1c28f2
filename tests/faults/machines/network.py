"""Machines of a test: network namespaces on a bridge, which can lose their power or their cable."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from celeus.store.embedded.account import account
from celeus.subprocesses import SYSTEM, ChildProcess
from tests.servers import free_port
from tests.workers import number


@dataclass(frozen=True)
class Machine:
    """Where a PostgreSQL runs: a namespace with an address of its own, or else this machine."""

    address: str
    port: int
    namespace: str | None = None

    def launch(self, command: list[str], folder: Path, log: Path) -> ChildProcess:
        """Start a command here as the database's user; it ends with this process."""
        owner = account()
        if self.namespace is None:
            return owner.launch(command, folder, log, signal.SIGINT)
        user = ["setpriv", f"--reuid={owner.uid}", f"--regid={owner.gid}", "--clear-groups"]
        into = ["ip", "netns", "exec", self.namespace, *user]
        with log.open("ab") as output:
            terms: dict[str, Any] = {"cwd": folder, "stdout": output, "stderr": output}
            return ChildProcess([*into, *command], signal.SIGINT, env=SYSTEM, **terms)

    def run(self, command: list[str], folder: Path, log: Path) -> None:
        """Run a command here to its end."""
        process = self.launch(command, folder, log)
        status = process.wait(60)
        process.release()
        assert status == 0, log.read_text(errors="replace")[-2000:]

    def power_off(self) -> None:
        """End every process at once, as a power cut does."""
        for pid in _ip("netns", "pids", str(self.namespace)).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def cut(self) -> None:
        """Pull the cable: what is sent is lost, and nobody is told."""
        _ip("link", "set", str(self.namespace), "down")

    def join(self) -> None:
        """Put the cable back."""
        _ip("link", "set", str(self.namespace), "up")


def here(count: int) -> list[Machine]:
    """So many that are all this machine, each with a port of its own."""
    return [Machine("127.0.0.1", free_port()) for _ in range(count)]


@contextmanager
def machines(count: int) -> Iterator[list[Machine]]:
    """So many machines on a network that this one is on, too; where none can be made: skipped."""
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("setpriv") is None:
        pytest.skip("NOT SHOWN IN THIS RUN: a machine that is lost. Only root can make networks")
    net, name = f"10.213.{number()[0]}", f"celeus{number()[0]}"
    try:
        _ip("link", "add", name, "type", "bridge")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"NOT SHOWN IN THIS RUN: a machine that is lost. No network: {error.stderr}")
    made: list[Machine] = []
    try:
        _ip("addr", "add", f"{net}.1/24", "dev", name)
        _ip("link", "set", name, "up")
        for place in range(count):
            machine = Machine(f"{net}.{place + 2}", 5432, f"{name}-{place}")
            _plug(machine, name)
            made.append(machine)
        yield made
    finally:
        for machine in made:
            machine.power_off()
            _ip("netns", "del", str(machine.namespace))
        _ip("link", "del", name)


def _plug(machine: Machine, bridge: str) -> None:
    name = str(machine.namespace)
    _ip("netns", "add", name)
    _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("link", "set", name, "master", bridge, "up")
    _ip("-n", name, "addr", "add", f"{machine.address}/24", "dev", "eth0")
    for device in ("lo", "eth0"):
        _ip("-n", name, "link", "set", device, "up")


def _ip(*words: str) -> str:
    done = subprocess.run(
        ["/usr/bin/env", "ip", *words], capture_output=True, text=True, check=True
    )
    return done.stdout

"""A small disk of its own, filled and emptied at will."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers import data_folder

BLOCK = b"\0" * (1 << 16)


@dataclass(frozen=True)
class Disk:
    """A folder that is a file system of its own."""

    folder: Path

    def fill(self) -> None:
        """Take all the room there is."""
        with (self.folder / "ballast").open("ab", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(BLOCK)
            except OSError:
                return

    def free(self) -> None:
        """Give the room back."""
        (self.folder / "ballast").unlink(missing_ok=True)


@contextmanager
def small_disk(mebibytes: int) -> Iterator[Disk]:
    """A tmpfs; where none may be mounted the test says what it leaves unproven."""
    with data_folder() as parent:
        folder = parent / "disk"
        folder.mkdir()
        options = f"size={mebibytes}m,mode=0711"
        mount = ["mount", "-t", "tmpfs", "-o", options, "celeus-test", str(folder)]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(
                f"NOT SHOWN IN THIS RUN: what a full disk does. No small disk can be mounted here "
                f"({done.stderr.strip()}); root may, as user {os.geteuid()} is not"
            )
        try:
            yield Disk(folder)
        finally:
            unmount = ["umount", "--lazy", str(folder)]
            subprocess.run(unmount, check=True)

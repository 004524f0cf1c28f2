"""Folders for the files of a running process, cleared away by the next one where it was killed."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "celeus-run-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder among the system's temporary files that only its user may enter.

    It is removed on leaving. Those of this user whose processes were killed are removed first.
    """
    _clear()
    folder, lock = _held()
    maker = os.getpid()
    try:
        yield folder
    finally:
        # Not by a fork of this process
        if os.getpid() == maker:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _clear() -> None:
    """Remove the folders that no process holds."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(lock)


def _held() -> tuple[Path, int]:
    """A folder and its lock, which the kernel opens when this process ends, however it does."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            # Another start took it for one that was left behind
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder, lock
        os.close(lock)

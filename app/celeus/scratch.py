"""Folders for the files of a running process, cleared away by the next one where it was killed."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "celeus-run-"
SOCKET_PATH_BYTES = 104
"""What the path of a socket has to be shorter than: the least of all systems, its zero included."""
_SHORT = Path("/tmp")  # noqa: S108 -- where nobody else may enter what is made in it
_BELOW = len(f"/{_PREFIX}12345678/sockets/.s.PGSQL.5432")
"""Bytes of the longest path of a socket below the place of a folder."""


@contextmanager
def scratch_folder(*, sockets: bool = False) -> Iterator[Path]:
    """A new folder among the system's temporary files that only its user may enter.

    It is removed on leaving. Those of this user whose processes were killed are removed first.
    One for ``sockets`` is in /tmp where the name of the system's own place is too long for them.
    """
    place = Path(tempfile.gettempdir())
    if sockets and len(os.fsencode(place)) + _BELOW >= SOCKET_PATH_BYTES:
        place = _SHORT
    _clear(place)
    folder, lock = _held(place)
    maker = os.getpid()
    try:
        yield folder
    finally:
        # Not by a fork of this process
        if os.getpid() == maker:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _clear(place: Path) -> None:
    """Remove the folders that no process holds."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(lock)


def _held(place: Path) -> tuple[Path, int]:
    """A folder and its lock, which the kernel opens when this process ends, however it does."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            # Another start took it for one that was left behind
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder, lock
        os.close(lock)

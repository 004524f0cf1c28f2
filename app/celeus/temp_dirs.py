"""Temporary folders of a process; if it was killed, the next process removes them."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "celeus-run-"
SOCKET_PATH_BYTES = 104
"""Bytes a socket's path must stay below: the least limit of all systems, with the final zero."""
_SHORT = Path("/tmp")  # noqa: S108 -- folders made in it are closed to other users
_BELOW = len(f"/{_PREFIX}12345678/sockets/.s.PGSQL.5432")
"""Bytes that a folder and its longest socket add to the path of the temporary directory."""


@contextmanager
def scratch_folder(*, sockets: bool = False) -> Iterator[Path]:
    """Make a temporary folder that only its user may enter; remove it on leaving.

    Folders of this user whose processes were killed are removed first. A folder for ``sockets``
    is made in /tmp if the path of the system's temporary directory is too long for them.
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
    """Return a folder and its lock, which the kernel releases whenever this process ends."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            # Another process took it for an abandoned folder and removed it
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder, lock
        os.close(lock)

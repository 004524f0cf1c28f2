"""Names of judges that give none: the same again after a restart, and never two judges at once."""

import fcntl
import os
import uuid
import weakref
from contextlib import suppress
from pathlib import Path

MOST_NAMES = 1024
"""Names that a folder keeps; further judges get one that is made up."""


class WorkerName:
    """A name that nobody else judges under as long as this object is there.

    It lies in a file, which is locked: when a program ends, however it does, the next one that
    takes a name gets that one, and with it the draws that were held under it.
    """

    def __init__(self) -> None:
        self.text = _made_up()
        # Where there is no such folder, as for users without a home, the name is a new one
        with suppress(OSError, RuntimeError):
            lock = _free_file()
            if lock is not None:
                weakref.finalize(self, os.close, lock)
                self.text = _name_in(lock)


def _free_file() -> int | None:
    """The first file of the folder that nobody has locked, locked and open."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache) / "celeus" / "workers"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, MOST_NAMES + 1):
        lock = os.open(folder / str(number), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return lock
    return None


def _name_in(lock: int) -> str:
    """The name in a locked file; a new file gets one."""
    name = os.pread(lock, 64, 0).decode("ascii", "replace").strip()
    if not name.isascii() or not name.startswith("py-"):
        name = _made_up()
        os.ftruncate(lock, 0)
        os.pwrite(lock, name.encode(), 0)
    return name


def _made_up() -> str:
    return f"py-{uuid.uuid4().hex[:12]}"

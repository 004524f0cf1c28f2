"""Names of judges that give none: the same again after a restart, and never two judges at once."""

import fcntl
import os
import re
import socket
import stat
import uuid
import weakref
from contextlib import ExitStack, suppress
from hashlib import sha256
from pathlib import Path

MOST_NAMES = 1024
"""Secrets that a folder keeps; further judges get one that is made up."""
_SECRET = re.compile(rb"[0-9a-f]{32}")


class WorkerName:
    """A name that nobody else judges a session under as long as this object is there.

    It comes from a secret in a file, which is locked: when a program ends, however it does, the
    next one that takes a name gets that one, and with it the draws that were held under it. On
    other hosts and in other sessions the same secret gives names that look unrelated.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._take()

    @property
    def text(self) -> str:
        """The name; in a forked process a new one."""
        if os.getpid() != self._pid:
            # The parent's file, which stays locked by the parent
            self._release()
            self._take()
        return self._text

    def _take(self) -> None:
        self._pid = os.getpid()
        secret, held = uuid.uuid4().hex, ExitStack()
        # Where there is no such folder, as for users without a home, the name is a new one
        with suppress(OSError, RuntimeError):
            secret = _free_secret(held) or secret
        self._release = weakref.finalize(self, held.close)
        named = f"{secret}\n{socket.gethostname()}\n{self._session}"
        self._text = f"py-{sha256(named.encode()).hexdigest()[:12]}"


def _free_secret(held: ExitStack) -> str | None:
    """The first secret of the folder whose file nobody has locked; ``held`` unlocks it."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache) / "celeus" / "workers"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, MOST_NAMES + 1):
        try:
            file = os.open(folder / str(number), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError:
            continue
        with ExitStack() as opened:
            opened.callback(os.close, file)
            secret = _secret_in(file)
            if secret is not None:
                held.push(opened.pop_all())
                return secret
    return None


def _secret_in(file: int) -> str | None:
    """Return the secret in a locked file of this user, made if empty; None if in use."""
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    if not os.pread(file, 1, 0):
        os.pwrite(file, uuid.uuid4().hex.encode(), 0)
    content = os.pread(file, 64, 0)
    return content.decode() if _SECRET.fullmatch(content) else None

"""The system account of the private PostgreSQL, and which folders it may pass.

PostgreSQL refuses to run as root. As root it therefore runs under a system user of its own,
made on the first start; otherwise it runs as whoever started the service.
"""

import fcntl
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celeus.errors import DataFolderUnusable
from celeus.subprocesses import SYSTEM, ChildProcess

SYSTEM_USER = "celeus-postgres"
_ACCOUNTS = "/etc"

_FIRST_IMPASSABLE = 'for place in "$@"; do test -x "$place" || { echo "$place"; exit 1; }; done'


@dataclass(frozen=True)
class Account:
    """A user of this machine; `switch` says whether to become it before PostgreSQL runs."""

    name: str
    uid: int
    gid: int
    switch: bool

    def launch(
        self,
        command: list[str],
        folder: Path,
        log: Path,
        signal_number: signal.Signals,
        **terms: Any,  # noqa: ANN401 -- those of `ChildProcess`
    ) -> ChildProcess:
        """Start a command under this account, in `folder`; its output goes to the end of `log`.

        It ends with this process. It inherits no PG* variables, which would change its settings.
        """
        with log.open("ab") as output:
            terms |= {"stdout": output, "stderr": output}
            return ChildProcess(command, signal_number, **terms, **self._terms(folder))

    def run(self, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a command to its end under this account."""
        return subprocess.run(  # noqa: S603 -- fixed arguments
            command,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            **self._terms(folder),
        )

    def _terms(self, folder: Path) -> dict[str, Any]:
        """Return the folder, variables and user of a command."""
        switched = {"user": self.uid, "group": self.gid, "extra_groups": []}
        return {
            "cwd": folder,
            "env": SYSTEM,
            **(switched if self.switch else {}),
        }

    def owns(self, folder: Path) -> bool:
        """Return True if the folder belongs to this account."""
        return folder.stat().st_uid == self.uid

    def give(self, folder: Path) -> None:
        """Hand over a folder just made."""
        if self.switch:
            os.chown(folder, self.uid, self.gid)

    def require_passage(self, places: Iterable[Path]) -> None:
        """Refuse, naming the first folder or program that this account may not pass or run."""
        steps: list[str] = []
        for place in places:
            steps += [str(step) for step in (*reversed(place.parents), place)]
        result = self.run(["/bin/sh", "-c", _FIRST_IMPASSABLE, "sh", *steps], Path("/"))
        if result.returncode:
            raise DataFolderUnusable(
                f"PostgreSQL runs as user {self.name}, who cannot enter {result.stdout.strip()}; "
                "choose another data folder (CELEUS_DATA_DIR, such as /var/lib/celeus), or let "
                "others enter (chmod o+x)",
                field="data_dir",
                rule="a path that the user of the database can enter",
                value=result.stdout.strip(),
            )


def account() -> Account:
    """The account for PostgreSQL; as root it is made when it does not exist."""
    uid = os.geteuid()
    if uid != 0:
        return Account(name=_name(uid), uid=uid, gid=os.getegid(), switch=False)
    entry = _find() or _make_alone()
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, switch=True)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError as error:
        raise DataFolderUnusable(
            f"user id {uid} has no name on this machine, and PostgreSQL needs one; "
            "run under a named user, or set CELEUS_DATABASE_URL",
            field="data_dir",
            value=uid,
        ) from error


def _find() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        return None


def _make_alone() -> pwd.struct_passwd:
    """Make the system user, one process of this machine at a time.

    Two `useradd` at once may both succeed, and the second then gives the user another number.
    """
    folder = os.open(_ACCOUNTS, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        return _find() or _make()
    finally:
        os.close(folder)


def _make() -> pwd.struct_passwd:
    """Make the system user; somebody else may be changing the users at this moment."""
    command = [
        "useradd",
        "--system",
        "--user-group",
        "--no-create-home",
        "--home-dir=/nonexistent",
        "--shell=/usr/sbin/nologin",
        SYSTEM_USER,
    ]
    reason = ""
    for _attempt in range(5):
        try:
            result = subprocess.run(  # noqa: S603 -- fixed arguments
                command, capture_output=True, text=True, check=False, env=SYSTEM, cwd="/"
            )
            reason = result.stderr.strip()
        except OSError as error:
            reason = str(error)
        entry = _find()
        if entry is not None:
            return entry
        time.sleep(0.2)
    raise DataFolderUnusable(
        f"PostgreSQL does not run as root, and user {SYSTEM_USER} cannot be created for it: "
        f"{reason}; create it, run under another user, or set CELEUS_DATABASE_URL",
        field="data_dir",
    )

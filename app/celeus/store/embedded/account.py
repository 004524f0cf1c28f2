"""Under whose name the private PostgreSQL runs, and where that name may go.

PostgreSQL refuses to run as root. As root it therefore runs under a system user of its own,
made on the first start; otherwise it runs as whoever started the service.
"""

import os
import pwd
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from app.errors import DataFolderUnusable

SYSTEM_USER = "celeus-postgres"

_FIRST_IMPASSABLE = 'for place in "$@"; do test -x "$place" || { echo "$place"; exit 1; }; done'


@dataclass(frozen=True)
class Account:
    """A user of this machine; `switch` says whether to become it before PostgreSQL runs."""

    name: str
    uid: int
    gid: int
    switch: bool

    def popen(self, command: list[str], folder: Path, log: int) -> subprocess.Popen[bytes]:
        """Start a command under this account, in `folder`, with its output to `log`.

        It gets its own session: a Ctrl-C on the terminal is for the service, which still has
        connections to close. It inherits no PG* variables, which would change its settings.
        """
        return subprocess.Popen(  # noqa: S603 -- the program is the wheel's, by its full path
            command,
            cwd=folder,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            user=self.uid if self.switch else None,
            group=self.gid if self.switch else None,
            extra_groups=[] if self.switch else None,
        )

    def run(self, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a command to its end under this account."""
        return subprocess.run(  # noqa: S603 -- the program is the wheel's, by its full path
            command,
            cwd=folder,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            user=self.uid if self.switch else None,
            group=self.gid if self.switch else None,
            extra_groups=[] if self.switch else None,
        )

    def owns(self, folder: Path) -> bool:
        """Whether the folder belongs to this account."""
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
        found = self.run(["/bin/sh", "-c", _FIRST_IMPASSABLE, "sh", *steps], Path("/"))
        if found.returncode:
            raise DataFolderUnusable(
                f"the user {self.name}, under whose name PostgreSQL runs, may not pass "
                f"{found.stdout.strip()}; choose a data folder elsewhere (CELEUS_DATA_DIR, "
                "for example /var/lib/celeus), or let others pass there (chmod o+x)",
                field="data_dir",
                rule="every folder on the way can be passed by the database's user",
                value=found.stdout.strip(),
            )


def account() -> Account:
    """The account for PostgreSQL; as root it is made when it does not exist."""
    uid = os.geteuid()
    if uid != 0:
        return Account(name=_name(uid), uid=uid, gid=os.getegid(), switch=False)
    entry = _find() or _make()
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, switch=True)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError as error:
        raise DataFolderUnusable(
            f"the user id {uid} has no name on this machine, and PostgreSQL asks for one; "
            "run under a named user, or set CELEUS_DATABASE_URL",
            field="data_dir",
            value=uid,
        ) from error


def _find() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        return None


def _make() -> pwd.struct_passwd:
    """Make the system user; another process may be making it at this moment."""
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
            made = subprocess.run(  # noqa: S603 -- fixed arguments
                command, capture_output=True, text=True, check=False
            )
            reason = made.stderr.strip()
        except OSError as error:
            reason = str(error)
        entry = _find()
        if entry is not None:
            return entry
        time.sleep(0.2)
    raise DataFolderUnusable(
        f"PostgreSQL does not run as root, and its user {SYSTEM_USER} could not be made: "
        f"{reason}; make it, run under another user, or set CELEUS_DATABASE_URL",
        field="data_dir",
    )

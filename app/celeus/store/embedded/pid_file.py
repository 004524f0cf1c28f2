"""Detect a running PostgreSQL server by the `postmaster.pid` of its data folder."""

import os
import subprocess
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from celeus.errors import DataFolderBusy, DataFolderUnusable

DATABASE = "celeus"

_START_SECONDS = 120.0
_ANSWER_SECONDS = 30.0
_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Postmaster:
    """The contents of `postmaster.pid`."""

    pid: int
    socket_folder: Path
    ready: bool

    @classmethod
    def read(cls, cluster: Path) -> "Postmaster | None":
        """Read the `postmaster.pid` of this cluster; its server may be long gone."""
        try:
            lines = (cluster / "postmaster.pid").read_text().splitlines()
            return cls(
                pid=int(lines[0]),
                socket_folder=Path(lines[4]),
                ready=lines[7].strip() == "ready",
            )
        except (FileNotFoundError, IndexError, ValueError):
            # Absent, or still being written
            return None

    def url(self, database: str = DATABASE) -> str:
        """The address any PostgreSQL tool takes."""
        return f"postgresql://postgres@/{database}?host={quote(str(self.socket_folder), safe='/')}"


def left_over(cluster: Path) -> Postmaster | None:
    """The server of this cluster that a service which was killed left running, or none.

    Refuses with `DataFolderBusy`, naming the process, when it is not known to be PostgreSQL.
    """
    deadline = time.monotonic() + _ANSWER_SECONDS
    while (postmaster := Postmaster.read(cluster)) is not None and alive(postmaster.pid):
        folder = _working_folder(postmaster.pid)
        if folder is not None and folder != cluster.resolve():
            # The machine or container restarted and another program got the number
            (cluster / "postmaster.pid").unlink(missing_ok=True)
            return None
        if folder is not None or (postmaster.ready and _answers(postmaster, cluster)):
            return postmaster
        if time.monotonic() > deadline:
            raise DataFolderBusy(
                f"process {postmaster.pid} holds {cluster} and does not answer; end it, or remove "
                "postmaster.pid there if that process is not PostgreSQL",
                field="data_dir",
                value=str(cluster),
                pid=str(postmaster.pid),
            )
        time.sleep(_LOOK_SECONDS)
    return None


def answering(cluster: Path) -> Postmaster | None:
    """The server of this cluster, if one answers at this moment."""
    postmaster = Postmaster.read(cluster)
    if postmaster is None or not (
        postmaster.ready and alive(postmaster.pid) and _answers(postmaster, cluster)
    ):
        return None
    return postmaster


def alive(process: int) -> bool:
    """Return True if a process with this id runs and may belong to this user."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # Another user's: not a server this user has started
        return False
    with suppress(OSError, IndexError):
        # Where this can be read: one that has ended and that nobody has asked for its status
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return state.rpartition(")")[2].split()[0] not in {"Z", "X"}
    return True


def _working_folder(process: int) -> Path | None:
    """Return a process's working folder (a server's is its cluster), None if unreadable."""
    try:
        return Path(f"/proc/{process}/cwd").readlink()
    except OSError:
        return None


def _answers(server: Postmaster, cluster: Path) -> bool:
    try:
        with closing(psycopg.connect(server.url("postgres"), connect_timeout=2)) as db:
            row = db.execute("SHOW data_directory").fetchone()
    except psycopg.OperationalError:
        return False
    return row is not None and Path(row[0]).resolve() == cluster.resolve()


def await_ready(cluster: Path, child: subprocess.Popen[bytes], log: Path, start: int) -> Postmaster:
    """Wait until the server takes connections.

    Refuses when it gives up, with its own words: what it wrote to ``log`` behind byte ``start``.
    """
    deadline = time.monotonic() + _START_SECONDS
    while child.poll() is None and time.monotonic() < deadline:
        postmaster = Postmaster.read(cluster)
        if postmaster is not None and postmaster.pid == child.pid and postmaster.ready:
            return postmaster
        time.sleep(_LOOK_SECONDS)
    words = log.read_bytes()[start:][-1000:].decode(errors="replace").strip()
    raise DataFolderUnusable(
        f"PostgreSQL did not start in {cluster}: {words}", field="data_dir", value=str(cluster)
    )

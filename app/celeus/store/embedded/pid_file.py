"""Detect a running PostgreSQL server by the `postmaster.pid` of its data folder."""

import logging
import os
import subprocess
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from celeus.errors import DataFolderBusy, DataFolderUnusable

DATABASE = "celeus"

_START_SECONDS = 120.0
_ANSWER_SECONDS = 30.0
_LOOK_SECONDS = 0.02

_logger = logging.getLogger(__name__)


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
    """The server that a killed process left running, once it answers; or none."""
    postmaster = Postmaster.read(cluster)
    if postmaster is None or not alive(postmaster.pid):
        return None
    if _elsewhere(postmaster.pid, cluster):
        # The machine or container restarted and another program got the number
        (cluster / "postmaster.pid").unlink(missing_ok=True)
        return None
    deadline = time.monotonic() + _ANSWER_SECONDS
    while time.monotonic() < deadline:
        postmaster = Postmaster.read(cluster)
        if postmaster is None or not alive(postmaster.pid):
            return None
        if postmaster.ready and _answers(postmaster, cluster):
            _logger.info(
                "adopting the PostgreSQL left over in %s (process %d)", cluster, postmaster.pid
            )
            return postmaster
        time.sleep(_LOOK_SECONDS)
    raise DataFolderBusy(
        f"process {postmaster.pid} holds {cluster} and does not answer; end it, or remove "
        "postmaster.pid there if that process is not PostgreSQL",
        field="data_dir",
        value=str(cluster),
        pid=str(postmaster.pid),
    )


def answering(cluster: Path) -> Postmaster | None:
    """The server of this cluster, if one answers at this moment."""
    postmaster = Postmaster.read(cluster)
    if postmaster is None or not (
        postmaster.ready and alive(postmaster.pid) and _answers(postmaster, cluster)
    ):
        return None
    return postmaster


def alive(process: int) -> bool:
    """Whether a process of this number runs that may be ours."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # Another user's: not a server this user has started
        return False
    return True


def _elsewhere(process: int, cluster: Path) -> bool:
    """Whether this process certainly is no server of the cluster: a server works inside it."""
    try:
        return Path(f"/proc/{process}/cwd").readlink() != cluster.resolve()
    except OSError:
        # No such file system here, or not allowed to look
        return False


def _answers(server: Postmaster, cluster: Path) -> bool:
    try:
        with closing(psycopg.connect(server.url("postgres"), connect_timeout=2)) as db:
            row = db.execute("SHOW data_directory").fetchone()
    except psycopg.OperationalError:
        return False
    return row is not None and Path(row[0]).resolve() == cluster.resolve()


def await_ready(cluster: Path, child: subprocess.Popen[bytes]) -> Postmaster:
    """Wait until the server takes connections; refuse with its own words when it gives up."""
    deadline = time.monotonic() + _START_SECONDS
    while child.poll() is None and time.monotonic() < deadline:
        postmaster = Postmaster.read(cluster)
        if postmaster is not None and postmaster.pid == child.pid and postmaster.ready:
            return postmaster
        time.sleep(_LOOK_SECONDS)
    words = (cluster.parent / "postgres.log").read_text(errors="replace")[-1000:]
    raise DataFolderUnusable(
        f"PostgreSQL did not start in {cluster}: {words}", field="data_dir", value=str(cluster)
    )

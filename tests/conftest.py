"""Real servers for every test: one PostgreSQL and one Redis a run, emptied after each test.

A run in several worker processes has one of each in every one of them.
"""

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from hypothesis import settings

from celeus.store.cache import Cache
from celeus.store.database import Database
from celeus.store.tables import metadata
from tests import kinds, workers
from tests.browser.site import NO_BROWSER
from tests.cli.calling import Run, celeus
from tests.keys import add_key
from tests.nightly import NIGHTLY
from tests.seeds import sitecustomize
from tests.servers import Service, running_postgres, running_redis, running_services

# Properties are tried on the same examples everywhere, however slow the machine is
settings.register_profile("celeus", deadline=None, derandomize=True)
settings.load_profile("celeus")

# Sessions of this process have the seed that the import of it gave; those of others find it here
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, (str(Path(sitecustomize.__file__).parent), os.environ.get("PYTHONPATH")))
)

# No test meets an authority of the machine, and to read all of them takes a client 30 ms
if not NIGHTLY:
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = str(Path(sitecustomize.__file__).parent)

_TABLES = [table.name for table in reversed(metadata.sorted_tables) if table.name != "projects"]
# The lock waits for whatever a killed server has still under way. Nearly every test leaves a few
# rows, and to delete those takes a tenth of what TRUNCATE does.
EMPTY = ";".join(
    [
        f"LOCK TABLE {', '.join(_TABLES)} IN ACCESS EXCLUSIVE MODE",
        *(f"DELETE FROM {name}" for name in _TABLES),
        "DELETE FROM projects WHERE name <> 'default'",
        "UPDATE projects SET asked = 0 WHERE asked > 0",
    ]
).encode()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is fast enough for `make check`, and at night what does more and takes longer."""
    for item in items:
        if NIGHTLY:
            kinds.mark_for_the_night(item)
        if kinds.is_fast(item):
            item.add_marker("fast")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """The tests stay: nothing looks for garbage while they are collected, nor later among them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells what it has counted, and is heard below."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["counts"] = workers.told_counts()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ANN401 -- xdist has no types
    """Hear what a worker has counted; one that crashed told nothing."""
    del error
    workers.add_counts(getattr(node, "workeroutput", {}).get("counts", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What all workers together have counted, measured, and could not run."""
    for title, lines in workers.counted().items():
        terminalreporter.write_sep("-", title)
        for line in lines:
            terminalreporter.write_line(line)
    skipped = terminalreporter.getreports("skipped")
    unseen = sum(NO_BROWSER in str(report.longrepr) for report in skipped)
    if unseen:
        terminalreporter.write_line(f"tests in the browser skipped, for want of one: {unseen}")
    for report in terminalreporter.getreports("passed"):
        for name, told in report.user_properties:
            if name == "measured":
                terminalreporter.write_line(str(told))


@pytest.fixture(scope="session", autouse=True)
def signals_as_at_a_terminal() -> None:
    """Whoever starts the tests in the background has them ignore signals that tests send.

    What is ignored stays so in every process started from here; what has a handler does not.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL whose database has the schema of the migrations; shared by the whole run."""
    with running_postgres() as url:
        yield url


@pytest.fixture(scope="session")
def lone_postgres_url() -> Iterator[str]:
    """Another one, for webhooks: a service that tests share would deliver their messages."""
    with running_postgres() as url:
        yield url


LEFT = b"""
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE state = 'idle in transaction' AND state_change < now() - interval '0.9 seconds'
"""


def empty(db: psycopg.Connection) -> None:
    """Delete the rows of all tables.

    What a stopped server left under way may hold one table and want another: PostgreSQL refuses one
    of the two, and after the other has ended there is nobody left to wait for. A service of this
    process, whose loop stands still between tests, may have a transaction open: it is ended.
    """
    for _ in range(60):
        try:
            db.execute(EMPTY)
        except psycopg.errors.DeadlockDetected:
            continue
        except psycopg.errors.LockNotAvailable:
            db.execute(LEFT)
            continue
        return
    db.execute(EMPTY)


def _emptying(url: str) -> psycopg.Connection:
    return psycopg.connect(url, autocommit=True, options="-c lock_timeout=1s")


@pytest.fixture(scope="session")
def emptying(postgres_url: str) -> Iterator[psycopg.Connection]:
    """The connection that empties the tables."""
    with _emptying(postgres_url) as db:
        yield db


@pytest.fixture
def lone_database_url(lone_postgres_url: str) -> Iterator[str]:
    """A database as `database_url`, which nobody else has open."""
    with _emptying(lone_postgres_url) as db:
        add_key(db)
        yield lone_postgres_url
        empty(db)


@pytest.fixture
def database_url(postgres_url: str, emptying: psycopg.Connection) -> Iterator[str]:
    """A migrated database with nothing in it but the default project and the key of the tests."""
    add_key(emptying)
    yield postgres_url
    empty(emptying)


Execute = Callable[..., psycopg.Cursor[Any]]
"""Runs a statement, which is committed at once."""


@pytest.fixture
def execute(database_url: str) -> Iterator[Execute]:
    """Look at the database, or change it behind the service."""
    with psycopg.connect(database_url, autocommit=True) as db:
        yield db.execute


@pytest.fixture
def alter(emptying: psycopg.Connection) -> Callable[[str], Awaitable[object]]:
    """Have a statement run in a thread: whoever holds the lock it needs may be in this loop."""
    return lambda statement: asyncio.to_thread(emptying.execute, statement.encode())


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A pool of four connections to it."""
    database = Database.connect(database_url, pool_size=4)
    yield database
    await database.close()


@pytest.fixture(scope="session")
def running(postgres_url: str) -> Iterator[Service]:
    """A service that all tests share who do not harm it."""
    with running_services(1, postgres_url) as services:
        yield services[0]


@pytest.fixture
def service(running: Service, database_url: str) -> Service:
    """The same with nothing in its database."""
    assert database_url
    return running


@pytest.fixture(scope="session")
def shared_redis_url() -> Iterator[str]:
    """One Redis for the whole run."""
    with running_redis() as server:
        yield server.url


@pytest.fixture
def redis_url(shared_redis_url: str) -> Iterator[str]:
    """A Redis with nothing in it."""
    yield shared_redis_url
    with redis.Redis.from_url(shared_redis_url) as client:
        client.flushall()


@pytest.fixture
async def cache(redis_url: str) -> AsyncIterator[Cache]:
    """A cache in it."""
    cache = Cache.connect(redis_url)
    yield cache
    await cache.close()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in this process: `run("dev", "simulate", path, "--json")` and the like."""
    for name in ("CELEUS_DATABASE_URL", "CELEUS_PORT", "CELEUS_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    return partial(celeus, monkeypatch, capsys)

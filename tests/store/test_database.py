"""Transactions cost what they must, and fail by name."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Coroutine, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import exc, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.errors import Busy, DatabaseUnavailable, InvalidValue
from celeus.store.database import Database, async_url, plain_url, raw_connection
from celeus.store.tables import projects
from tests.servers import free_port


@pytest.fixture
async def impatient(database_url: str) -> AsyncIterator[Database]:
    """Two connections, and a tenth of a second for locks and for connections."""
    database = Database.connect(
        database_url, pool_size=2, lock_timeout_ms=100, statement_timeout_ms=400
    )
    yield database
    await database.close()


@pytest.mark.parametrize(
    "url",
    ["postgres://u@h:1/d", "postgresql://u@h:1/d", "postgresql+psycopg://u@h:1/d"],
)
def test_every_usual_spelling_of_the_address_is_taken(url: str) -> None:
    assert async_url(url).render_as_string() == "postgresql+psycopg://u@h:1/d"


@pytest.mark.parametrize("url", ["sqlite:///x", "not an address", "mysql://h/d"])
def test_another_database_is_refused(url: str) -> None:
    with pytest.raises(InvalidValue):
        Database.connect(url)


async def run(database: Database, *statements: str) -> None:
    """Run statements in a transaction of their own."""
    async with database.transaction() as db:
        for statement in statements:
            await db.execute(text(statement))


async def _names(database: Database) -> set[uuid.UUID]:
    async with database.transaction() as db:
        return set((await db.scalars(select(projects.c.project_id))).all())


async def test_a_statement_that_fails_does_not_tell_what_it_was_given(database: Database) -> None:
    with pytest.raises(exc.DBAPIError) as failed:
        async with database.transaction() as db:
            await db.execute(text("SELECT 1 / 0, CAST(:seed AS text)"), {"seed": "5eed"})
    assert "division by zero" in str(failed.value)
    assert "5eed" not in str(failed.value)


async def test_a_transaction_rolls_back_when_its_block_raises(database: Database) -> None:
    project = uuid.uuid4()

    async def fail_inside() -> None:
        async with database.transaction() as db:
            await db.execute(insert(projects).values(project_id=project, name="lost"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_inside()
    assert project not in await _names(database)


async def test_one_statement_costs_begin_statement_commit(
    database_url: str, tmp_path: Path
) -> None:
    database = Database.connect(database_url, pool_size=1)
    trace = tmp_path / "trace"
    with trace.open("w") as file:
        async with database.transaction() as db:
            driver = (await db.get_raw_connection()).driver_connection
            assert isinstance(driver, psycopg.AsyncConnection)
            await db.execute(text("SELECT 1"))
        driver.pgconn.trace(file.fileno())
        async with database.transaction() as db:
            await db.execute(text("SELECT 1"))
        driver.pgconn.untrace()
    await database.close()
    asked = [line.split("\t") for line in trace.read_text().splitlines() if "\tF\t" in line]
    assert [words[-1].strip() for words in asked] == ['"BEGIN"', '"SELECT 1"', '"COMMIT"']


async def test_the_connection_says_who_it_is_and_gives_up_in_time(impatient: Database) -> None:
    names = ["application_name", "lock_timeout", "statement_timeout", "TimeZone"]
    async with impatient.transaction() as db:
        settings = [await db.scalar(text(f"SHOW {name}")) for name in names]
    assert settings == ["celeus", "100ms", "400ms", "UTC"]


async def test_what_the_address_asks_for_wins(database_url: str) -> None:
    database = Database.connect(database_url + "&options=-c%20lock_timeout%3D7s")
    try:
        async with database.transaction() as db:
            assert await db.scalar(text("SHOW lock_timeout")) == "7s"
            assert await db.scalar(text("SHOW statement_timeout")) == "1min"
    finally:
        await database.close()


async def test_a_migration_under_prepared_statements_costs_a_repetition(
    postgres_url: str,
) -> None:
    async def looked() -> int:
        async with database.transaction() as db:
            return len((await db.execute(text("SELECT * FROM migrated"))).keys())

    database = Database.connect(postgres_url, pool_size=1)
    try:
        with psycopg.connect(postgres_url, autocommit=True) as db:
            db.execute("CREATE TABLE migrated (one int)")
            assert [await looked() for _ in range(10)] == [1] * 10
            db.execute("ALTER TABLE migrated ADD COLUMN two int")
            with pytest.raises(DatabaseUnavailable):
                await looked()
            assert await looked() == 2
            db.execute("DROP TABLE migrated")
    finally:
        await database.close()


async def test_a_connection_to_a_server_that_only_reads_is_given_up(database: Database) -> None:
    async def backend(*, read_only: bool) -> int:
        async with database.transaction() as db:
            found: int = (await db.execute(text("SELECT pg_backend_pid()"))).scalar_one()
            if read_only:
                await db.execute(text("SET TRANSACTION READ ONLY"))
                await db.execute(text("UPDATE projects SET name = 'changed'"))
        return found

    before = await backend(read_only=False)
    with pytest.raises(DatabaseUnavailable):
        await backend(read_only=True)
    assert await backend(read_only=False) != before


async def test_a_pooler_finds_nothing_left_on_a_connection(database_url: str) -> None:
    """Settings end with their transaction, no statement stays prepared, and none is in the way."""
    database = Database.connect(database_url, pool_size=1, lock_timeout_ms=300, pooler=True)
    names = ["lock_timeout", "statement_timeout", "TimeZone"]
    kind = text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        for _ in range(10):
            async with database.transaction() as db:
                await db.execute(kind)
                settings = [await db.scalar(text(f"SHOW {name}")) for name in names]
            assert settings == ["300ms", "1min", "UTC"]
        async with database.transaction() as db:
            raw = (await db.get_raw_connection()).driver_connection
            assert isinstance(raw, psycopg.AsyncConnection)
        await raw.set_autocommit(True)
        cursor = await raw.execute("SELECT current_setting('lock_timeout')")
        assert await cursor.fetchone() == ("0",)
        assert await (await raw.execute("TABLE pg_prepared_statements")).fetchall() == []
    finally:
        await database.close()


async def test_a_lock_that_is_not_given_in_time_is_refused_as_busy(impatient: Database) -> None:
    lock = "SELECT pg_advisory_xact_lock(1)"
    async with impatient.transaction() as db:
        await db.execute(text(lock))
        with pytest.raises(Busy):
            await run(impatient, lock)


async def test_one_connection_too_many_is_refused_as_unavailable(impatient: Database) -> None:
    async with impatient.transaction(), impatient.transaction():
        assert not await impatient.reachable()


async def test_a_statement_that_takes_too_long_is_refused_as_unavailable(
    impatient: Database,
) -> None:
    with pytest.raises(DatabaseUnavailable):
        await run(impatient, "SELECT pg_sleep(5)")
    assert await impatient.reachable()


async def test_a_wrong_statement_stays_an_error_of_ours(database: Database) -> None:
    with pytest.raises(exc.ProgrammingError):
        await run(database, "SELECT nonsense")


async def test_a_broken_constraint_passes_to_the_operation(database: Database) -> None:
    with pytest.raises(exc.IntegrityError):
        await run(
            database,
            "INSERT INTO pools (pool_id, name, loss_kind, loss_lower, loss_upper)"
            " VALUES (gen_random_uuid(), 'p', 'bounded', 1, 1)",
        )


async def test_idle_connections_the_server_closed_are_replaced_unseen(database: Database) -> None:
    await asyncio.gather(*[run(database, "SELECT pg_sleep(0.05)") for _ in range(4)])
    await run(
        database,
        "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
        " WHERE application_name = 'celeus' AND pid <> pg_backend_pid()",
    )
    assert await _names(database)


async def test_a_connection_lost_inside_a_transaction_is_refused_as_unavailable(
    database: Database,
) -> None:
    with pytest.raises(DatabaseUnavailable):
        await run(database, "SELECT pg_terminate_backend(pg_backend_pid())", "SELECT 1")
    assert await database.reachable()


async def test_whatever_the_driver_says_of_a_lost_connection_it_is_unavailable(
    database: Database,
) -> None:
    """Not all of its errors say that the connection is lost: some have neither state nor kind."""

    async def asks_on() -> None:
        async with database.transaction() as db:
            raw = raw_connection(db)
            cursor = raw.cursor()
            raw.pgconn.finish()
            await cursor.fetchone()

    with pytest.raises(DatabaseUnavailable):
        await asks_on()
    assert await database.reachable()


async def _ask(db: AsyncConnection, what: str, *, raw: bool) -> None:
    """By SQLAlchemy, or past it."""
    await (raw_connection(db).execute(what.encode()) if raw else db.execute(text(what)))


@pytest.mark.parametrize("raw", [False, True])
async def test_a_refusal_stands_though_the_connection_was_lost_meanwhile(
    impatient: Database, *, raw: bool
) -> None:
    async def refused() -> None:
        async with impatient.transaction() as db:
            await _ask(db, "SELECT 1", raw=raw)
            await asyncio.to_thread(_terminate, impatient, raw_connection(db).info.backend_pid)
            raise LookupError

    with pytest.raises(LookupError):
        await refused()
    assert await impatient.reachable()


def _terminate(database: Database, backend: int) -> None:
    with psycopg.connect(
        database._engine.url.set(drivername="postgresql").render_as_string()
    ) as db:
        # Until it has ended: its last word is on its way before
        assert db.execute("SELECT pg_terminate_backend(%s, 30000)", [backend]).fetchone() == (True,)


@pytest.mark.parametrize("raw", [False, True])
async def test_what_was_broken_off_within_a_transaction_is_nobody_elses_connection(
    impatient: Database, *, raw: bool
) -> None:
    async def breaks_off() -> None:
        async with impatient.transaction() as db, asyncio.timeout(0.05):
            await _ask(db, "SELECT pg_sleep(5)", raw=raw)

    for _ in range(3):
        with pytest.raises(TimeoutError):
            await breaks_off()
        assert await impatient.reachable()


async def test_a_connection_at_work_when_all_are_closed_is_closed_after_it(
    impatient: Database,
) -> None:
    async with impatient.transaction() as db:
        driver = raw_connection(db)
        await impatient.close()
        assert await db.scalar(text("SELECT 1")) == 1
    assert driver.closed
    async with impatient.transaction(), impatient.transaction():
        assert not await impatient.reachable()


class _Cancelled:
    """A coroutine whose task is cancelled where it waits for the ``at``-th time."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], steps: int) -> None:
        self._coroutine, self._left = coroutine, steps

    @property
    def done(self) -> bool:
        """Whether it ended before it was cancelled."""
        return self._left >= 0

    def __await__(self) -> Generator[Any, Any, None]:
        error: BaseException | None = None
        task = asyncio.current_task()
        assert task is not None
        while True:
            try:
                step = self._coroutine.throw(error) if error else self._coroutine.send(None)
            except StopIteration:
                return
            if self._left == 0:
                task.cancel()
            self._left -= 1
            error = None
            try:
                yield step
            except BaseException as thrown:  # noqa: BLE001 - passed on
                error = thrown


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("before", ["none", "open", "terminated"])
async def test_wherever_a_transaction_is_cancelled_no_connection_is_lost_to_others(
    impatient: Database, before: str, *, raw: bool
) -> None:
    async def work() -> None:
        async with impatient.transaction() as db:
            await _ask(db, "SELECT 1", raw=raw)
            await _ask(db, "SELECT pg_sleep(0.001)", raw=raw)

    async def wait_for(task: _Cancelled) -> None:
        await task

    for steps in range(40):
        await impatient.close()
        if before != "none":
            async with impatient.transaction() as db, impatient.transaction():
                backend = raw_connection(db).info.backend_pid
            if before == "terminated":
                await asyncio.to_thread(_terminate, impatient, backend)
        task = _Cancelled(work(), steps)
        with suppress(asyncio.CancelledError):
            await asyncio.create_task(wait_for(task))
        async with impatient.transaction(), impatient.transaction():
            pass
        if task.done:
            break
    assert task.done
    assert steps > 2


async def test_a_database_that_is_gone_is_unavailable_and_comes_back() -> None:
    nowhere = Database.connect(f"postgresql://celeus@127.0.0.1:{free_port()}/celeus")
    with pytest.raises(DatabaseUnavailable):
        await _names(nowhere)
    assert not await nowhere.reachable()
    assert not await nowhere.at_head()
    await nowhere.close()


async def test_a_connection_is_not_used_again_after_a_cancelled_transaction(
    database_url: str,
) -> None:
    async def sends_two_at_once() -> None:
        async with database.transaction() as db:
            raw = (await db.get_raw_connection()).driver_connection
            assert isinstance(raw, psycopg.AsyncConnection)
            async with raw.pipeline():
                await raw.execute("SELECT pg_sleep(0.2)")
                await raw.execute("SELECT 2")

    async def backend() -> int:
        async with database.transaction() as db:
            found: int = (await db.execute(text("SELECT pg_backend_pid()"))).scalar_one()
            return found

    database = Database.connect(database_url, pool_size=1)
    try:
        before = await backend()
        assert await backend() == before
        task = asyncio.create_task(sends_two_at_once())
        await asyncio.sleep(0.05)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert await backend() != before
    finally:
        await database.close()


def test_options_of_an_address_reach_the_tools_of_postgresql_as_they_are() -> None:
    options = "-c synchronous_commit=on -c application_name=a+b"
    url = plain_url(f"postgresql://me@/celeus?options={quote(options)}")
    assert conninfo_to_dict(url)["options"] == options

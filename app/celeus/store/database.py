"""PostgreSQL: one engine, and transactions that refuse by name.

A transaction of one statement costs three round trips: BEGIN, the statement, COMMIT. Nothing
else is sent on the way, so a connection taken from the pool is not asked whether it is alive;
one that the server has closed shows it on its socket, and is replaced before it is handed out.
"""

import asyncio
import math
import os
import select
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Self, cast

import psycopg
from psycopg.rows import namedtuple_row
from sqlalchemy import ClauseElement, event, exc, make_url, text
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from celeus.errors import Busy, DatabaseUnavailable, InvalidValue
from celeus.store import revisions
from celeus.timings import timed

_CONTENDED = {
    "55P03",  # lock_not_available: lock_timeout ran out
    "40P01",  # deadlock_detected
    "40001",  # serialization_failure
}
_UNAVAILABLE_CLASSES = (
    "08",  # connection exceptions
    "53",  # insufficient resources: connections, disk, memory
    "57",  # operator intervention: shutdown, crash, statement_timeout
    "58",  # system errors outside PostgreSQL
)
_GRACE_SECONDS = 5.0
_LOST_MACHINE = {
    # A machine that is gone acknowledges nothing, and no one says so: ask it after 5 s of silence,
    # and give it up when it has not acknowledged for 10 s what it was sent
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_LOST_TRANSACTIONS = {
    "25P03",  # idle_in_transaction_session_timeout: this process slept
    "25P04",  # transaction_timeout: as above
}


def async_url(url: str) -> URL:
    """The address with the driver this service uses.

    `postgres://` and `postgresql://` are accepted as any PostgreSQL tool accepts them.
    """
    plain = "postgresql" + url.removeprefix("postgres") if url.startswith("postgres://") else url
    try:
        address = make_url(plain)
    except (exc.ArgumentError, ValueError) as error:
        raise InvalidValue(
            "database_url is not an address",
            field="database_url",
            rule="an address of the form postgresql://…",
        ) from error
    if address.get_backend_name() != "postgresql":
        raise InvalidValue(
            f"database_url names {address.drivername}; only PostgreSQL is supported",
            field="database_url",
            rule="an address of the form postgresql://…",
            value=address.drivername,
        )
    return address.set(drivername="postgresql+psycopg")


def plain_url(url: str) -> str:
    """The address as PostgreSQL's own tools take it, password included."""
    plain = async_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    address, mark, options = plain.partition("?")
    # PostgreSQL's own tools read a plus sign as one
    return address + mark + options.replace("+", "%20")


class Database:
    """A pool of connections to one PostgreSQL; made by `connect`, ended by `close`."""

    def __init__(self, engine: AsyncEngine, *, pooler: bool) -> None:
        """Wrap an engine; callers use `connect`."""
        self._engine = engine
        self._pooler = pooler
        self._idle: list[AsyncConnection] = []
        self._waiting = 0
        self._head: str | None = None

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        pool_size: int = 16,
        lock_timeout_ms: int = 5_000,
        statement_timeout_ms: int = 60_000,
        pooler: bool = False,
    ) -> Self:
        """Prepare up to `pool_size` connections; the first is opened when it is first needed.

        Behind a ``pooler`` each transaction may have another connection of the server: what holds
        for a transaction is then said in every one, and no statement is prepared beyond it.
        """
        address = async_url(url)
        limits = _limits(lock_timeout_ms, statement_timeout_ms)
        # The server gives up first, unless it is lost in a way that no one tells
        patience_seconds = statement_timeout_ms / 1000 + _GRACE_SECONDS
        engine = create_async_engine(
            address,
            pool_size=pool_size,
            max_overflow=0,
            # A request that finds no connection within the lock timeout would not get a lock either
            pool_timeout=lock_timeout_ms / 1000,
            pool_use_lifo=True,
            # Every transaction has ended before its connection comes back, or the connection has
            pool_reset_on_return=None,
            # Else each new engine asks the server for the type ids of an extension unused here
            use_native_hstore=False,
            # Seeds, losses and payloads do not belong in the log of a statement that failed
            hide_parameters=True,
            connect_args=_connect_args(address, lock_timeout_ms)
            | ({"prepare_threshold": None} if pooler else _options(address, limits))
            | {"async_creator_fn": partial(_ImpatientConnection.open_connection, patience_seconds)},
        )
        event.listen(engine.sync_engine, "checkout", _refuse_closed_connection)
        if pooler:
            event.listen(engine.sync_engine, "begin", partial(_set_for_transaction, limits))
        return cls(engine, pooler=pooler)

    async def close(self) -> None:
        """Close every connection: one at work when its transaction has ended."""
        idle, self._idle = self._idle, []
        await _drop_all(idle)
        await self._engine.dispose()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed when the block ends, rolled back when it raises.

        Refuses with `DatabaseUnavailable` when there is no connection or it is lost (whether a
        commit under way arrived is then unknown), and with `Busy` when a lock was not given. A
        connection whose transaction was cancelled is closed.
        """
        with _refusals():
            idle = self._idle
            db = await self._connection()
            try:
                if self._pooler:
                    await db.begin()
                yield db
                await _end(db, commit=True)
            except BaseException as error:
                await self._give_up(db, error, idle)
                raise
            await self._put_back(db, idle)

    async def _connection(self) -> AsyncConnection:
        """The connection used last, or one that waits in the engine's pool, or a new one."""
        while self._idle:
            db = self._idle.pop()
            if _is_open(raw_connection(db)):
                return db
            await _drop(db)
        self._waiting += 1
        try:
            return await self._engine.connect()
        except exc.InvalidRequestError as error:
            # A new one, too, was closed before it was used
            raise DatabaseUnavailable("the database does not answer; try again") from error
        finally:
            self._waiting -= 1

    async def _put_back(self, db: AsyncConnection, idle: list[AsyncConnection]) -> None:
        """Keep a connection at hand, which spares the next one what the engine's pool costs.

        Whoever waits for one waits at that pool. ``idle`` were those at hand when it was taken:
        others are since everything was closed.
        """
        if idle is not self._idle:
            await _drop(db)
        elif self._waiting:
            await db.close()
        else:
            idle.append(db)

    async def _give_up(
        self, db: AsyncConnection, error: BaseException, idle: list[AsyncConnection]
    ) -> None:
        """Roll back what has failed; the connection goes with it where answers may be under way."""
        if not _breaks(error) and await _rolled_back(db):
            await self._put_back(db, idle)
            return
        lost = db.invalidated or raw_connection(db).closed
        await _drop(db)
        if lost:
            # Most likely they all are
            await _drop_all(self._idle)
        if isinstance(error, psycopg.Error):
            _refuse(error, error, lost=lost)

    async def reachable(self) -> bool:
        """Return True if PostgreSQL answers now."""
        try:
            async with self.transaction() as db:
                await db.execute(text("SELECT 1"))
        except (DatabaseUnavailable, Busy):
            return False
        return True

    async def behind(self) -> bool:
        """Return True if PostgreSQL answers with a schema other than this code's."""
        return not await self.at_head() and await self.reachable()

    async def writable(self) -> bool:
        """Return True if the database takes changes: it is no standby, nor set to read only."""
        async with self.transaction() as db:
            read_only = await db.scalar(text("SELECT current_setting('transaction_read_only')"))
        return bool(read_only == "off")

    async def at_head(self) -> bool:
        """Return True if the schema is the one this code was written for; False if unreachable."""
        if self._head is None:
            self._head = revisions.head()
        try:
            async with self.transaction() as db:
                present = await db.scalar(text("SELECT to_regclass('alembic_version')"))
                if present is None:
                    return False
                current = await db.scalar(text("SELECT version_num FROM alembic_version"))
        except (DatabaseUnavailable, Busy):
            return False
        return bool(current == self._head)


def raw_connection(db: AsyncConnection) -> psycopg.AsyncConnection[Any]:
    """The driver's own connection, for COPY and binary results; same transaction."""
    if db.sync_connection is None:
        message = "a connection that was never opened"
        raise ValueError(message)
    return cast("psycopg.AsyncConnection[Any]", db.sync_connection.connection.driver_connection)


async def planned_rows(db: AsyncConnection, statement: ClauseElement) -> list[Any]:
    """Rows of a statement that PostgreSQL plans for the values it has now.

    One that is prepared gets a single plan for all values after some uses: what suits a project of
    100 000 sessions would read them all to list the three of another.
    """
    compiled = statement.compile(dialect=db.dialect)
    cursor = raw_connection(db).cursor(row_factory=namedtuple_row)
    await cursor.execute(str(compiled), compiled.params, prepare=False)
    return await cursor.fetchall()


class _TimedCursor(psycopg.AsyncCursor[Any]):
    """A cursor whose statements are timed."""

    async def execute(self, query: Any, *args: Any, **more: Any) -> Self:  # noqa: ANN401 - the driver's own
        """Execute as the driver does."""
        with timed("statement", query if isinstance(query, str) else None):
            return await super().execute(query, *args, **more)


class _ImpatientConnection(psycopg.AsyncConnection[Any]):
    """A connection that counts as lost when the server says nothing for too long.

    A server that is stopped, or a network that swallows what it is given, notifies nobody: without
    a limit of our own a request would wait for ever.

    A COMMIT that waits for a standby is over at once when it is cancelled: committed, and perhaps
    nowhere else. So nothing is ever cancelled from here, and where somebody else does it the
    connection is lost with the answer to the COMMIT.
    """

    patience_seconds = math.inf
    _unreplicated = False

    @classmethod
    async def open_connection(cls, patience_seconds: float, *address: Any, **more: Any) -> Self:  # noqa: ANN401 - the driver's own
        """Connect as the driver does."""
        connection = await cls.connect(*address, cursor_factory=_TimedCursor, **more)
        connection.patience_seconds = patience_seconds
        connection.add_notice_handler(connection.heed)
        return connection

    async def commit(self) -> None:
        """Commit as the driver does."""
        with timed("commit"):
            await super().commit()

    async def wait(self, *args: Any, **more: Any) -> Any:  # noqa: ANN401 - the driver's own
        """Every wait for the server passes here."""
        if math.isinf(self.patience_seconds):
            return await super().wait(*args, **more)
        loop = asyncio.get_running_loop()
        hanging_up = loop.call_later(self.patience_seconds, self._hang_up)
        try:
            answer = await super().wait(*args, **more)
        finally:
            hanging_up.cancel()
        if self._unreplicated:
            self.pgconn.finish()
            message = "the wait for the standby was cancelled"
            raise psycopg.OperationalError(message)
        return answer

    async def _try_cancel(self, **_terms: float) -> None:
        """Hang up where the driver, cancelled itself, would have the server cancel."""
        self.pgconn.finish()
        # To the driver, there is nothing left to wait for
        raise psycopg.errors.QueryCanceled

    def heed(self, notice: psycopg.errors.Diagnostic) -> None:
        """The server's warning that it committed without its standby: no error, to the driver."""
        if notice.source_function == "SyncRepWaitForLSN":
            self._unreplicated = True

    def _hang_up(self) -> None:
        """End the conversation under the driver, which then reports the connection as lost."""
        if not self.closed:
            with socket.socket(fileno=os.dup(self.pgconn.socket)) as end:
                end.shutdown(socket.SHUT_RDWR)


def _limits(lock_timeout_ms: int, statement_timeout_ms: int) -> dict[str, str]:
    """Return the server settings of every transaction."""
    return {
        "lock_timeout": str(lock_timeout_ms),
        "statement_timeout": str(statement_timeout_ms),
        # A worker that hangs inside a transaction must not keep its session's row locked
        "idle_in_transaction_session_timeout": str(statement_timeout_ms),
        "TimeZone": "UTC",
    }


def _options(address: URL, limits: Mapping[str, str]) -> dict[str, object]:
    """The limits as each connection is opened with them, so that no statement is spent on them."""
    extra = address.query.get("options", "")
    options = [f"-c {name}={value}" for name, value in limits.items()]
    # What the address itself says comes last and wins
    return {"options": " ".join([*options, extra if isinstance(extra, str) else " ".join(extra)])}


def _set_for_transaction(limits: Mapping[str, str], connection: Connection) -> None:
    """The limits until the transaction ends, for a server connection that others use after it."""
    # No query: what a transaction is like may still be said after it
    connection.exec_driver_sql(
        "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in limits.items())
    )


def _connect_args(address: URL, lock_timeout_ms: int) -> dict[str, object]:
    """Return the arguments that open a connection, less those the address itself sets."""
    defaults = {
        "application_name": "celeus",
        "connect_timeout": max(2, round(lock_timeout_ms / 1000)),
        **_LOST_MACHINE,
    }
    return {name: value for name, value in defaults.items() if name not in address.query}


def _refuse_closed_connection(
    connection: DBAPIConnection, _record: ConnectionPoolEntry, _proxy: PoolProxiedConnection
) -> None:
    """Have the pool replace a connection that the server closed while it lay idle.

    An idle connection has nothing to read, unless the server said goodbye: looking at the socket
    is a system call, where asking the server would be a round trip.
    """
    driver = connection.driver_connection
    if isinstance(driver, psycopg.AsyncConnection) and not _is_open(driver):
        raise exc.DisconnectionError


def _is_open(driver: psycopg.AsyncConnection[Any]) -> bool:
    """Return True if an idle connection is open and the server has sent nothing on it."""
    if driver.closed:
        return False
    poll = select.poll()
    poll.register(driver.fileno(), select.POLLIN)
    return not poll.poll(0)


async def _end(db: AsyncConnection, *, commit: bool) -> None:
    """End the transaction, by SQLAlchemy where it knows of one: its way there costs more."""
    if db.in_transaction():
        await (db.commit() if commit else db.rollback())
    else:
        raw = raw_connection(db)
        await (raw.commit() if commit else raw.rollback())


async def _drop(db: AsyncConnection) -> None:
    """Close a connection, whatever is under way on it."""
    await db.invalidate()
    await db.close()


async def _drop_all(idle: list[AsyncConnection]) -> None:
    while idle:
        await _drop(idle.pop())


async def _rolled_back(db: AsyncConnection) -> bool:
    """Roll back a transaction; return True if its connection can be used again."""
    if db.invalidated:
        return False
    try:
        await _end(db, commit=False)
    except (exc.DBAPIError, psycopg.Error):
        return False
    except BaseException:
        await _drop(db)
        raise
    return True


def _breaks(error: BaseException) -> bool:
    """Return True if an error in a transaction makes its connection unusable.

    Left in the middle of a pipeline, or by an error that went past SQLAlchemy, answers may still be
    on their way, and none may reach the next transaction.
    """
    if isinstance(error, exc.DBAPIError):
        cause = error.orig
        outlived = isinstance(cause, psycopg.Error) and _outlived(cause)
        return error.connection_invalidated or outlived
    return isinstance(error, asyncio.CancelledError | psycopg.Error)


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn lost connections, locks and resources into refusals; other errors pass unchanged."""
    try:
        yield
    except exc.TimeoutError as error:
        raise DatabaseUnavailable("no database connection became free in time") from error
    except exc.DBAPIError as error:
        cause = error.orig if isinstance(error.orig, psycopg.Error) else None
        _refuse(error, cause, lost=error.connection_invalidated)
        raise


def _outlived(cause: psycopg.Error) -> bool:
    """Return True if the database changed since the connection was opened: open a new one."""
    # A standby answers; or a migration changed the columns of a prepared statement
    return cause.sqlstate == "25006" or cause.diag.source_function == "RevalidateCachedQuery"


def _refuse(error: Exception, cause: psycopg.Error | None, *, lost: bool) -> None:
    """Raise the refusal that `cause` amounts to, or return when it is an error of ours."""
    state = cause.sqlstate if cause is not None else None
    if state in _CONTENDED:
        raise Busy("another request holds the lock this one needs; try again") from error
    unreachable = state is None and isinstance(cause, psycopg.OperationalError)
    if (
        lost
        or unreachable
        or (cause is not None and _outlived(cause))
        or state in _LOST_TRANSACTIONS
        or (state is not None and state.startswith(_UNAVAILABLE_CLASSES))
    ):
        raise DatabaseUnavailable("the database does not answer; try again") from error

"""What goes between a context and PostgreSQL, as the driver's library traces it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import psycopg
from fastapi import FastAPI
from psycopg.pq import Trace
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from celeus.operations.runtime.context import Context
from celeus.store.database import Database


class Wire:
    """The messages between this process and PostgreSQL, as the driver's library traces them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._traced: list[psycopg.AsyncConnection] = []
        self._read = 0

    def listen(self, connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        """Write down what goes over a connection from now on."""
        driver = connection.driver_connection
        assert isinstance(driver, psycopg.AsyncConnection)
        self._trace(driver)
        self._traced.append(driver)

    def round_trips(self) -> int:
        """How often something was sent and then an answer awaited, since the last time asked."""
        directions = [line[0] for line in self._lines() if line[:1] in {"F", "B"}]
        return sum(pair == ("F", "B") for pair in pairwise(directions))

    def statements(self) -> int:
        """How many statements were executed since the last time asked.

        After a rollback the driver forgets what PostgreSQL prepared, if anything was.
        """
        sent = ("\tExecute\t", "\tQuery\t")
        return sum(
            any(kind in line for kind in sent) and "DEALLOCATE" not in line
            for line in self._lines()
        )

    def commits(self) -> int:
        """How many transactions were committed since the last time asked."""
        ended = ("CommandComplete", '"COMMIT"')
        return sum(all(part in line for part in ended) for line in self._lines())

    def _lines(self) -> list[str]:
        """What went to and fro since the last time asked."""
        for driver in self._traced:
            # Its lines are on disk when the library lets go of the file
            driver.pgconn.untrace()
            self._trace(driver)
        with self._path.open() as traced:
            traced.seek(self._read)
            lines = traced.read().splitlines()
            self._read = traced.tell()
        return lines

    def _trace(self, driver: psycopg.AsyncConnection) -> None:
        driver.pgconn.trace(self._file)
        driver.pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)

    def close(self) -> None:
        """Stop writing, before the file's number may become another's."""
        for driver in self._traced:
            driver.pgconn.untrace()
        os.close(self._file)


@asynccontextmanager
async def quiet(app: FastAPI) -> AsyncIterator[Context]:
    """The context of an application that looks for nothing by the clock, whatever is asked."""
    async with app.router.lifespan_context(app):
        context: Context = app.state.context
        await context.deliveries.close()
        await context.leftovers.close()
        yield context


@asynccontextmanager
async def listening(database: Database, path: Path) -> AsyncIterator[Wire]:
    """Write down what every connection of the database is sent in the block, and answers."""
    wire = Wire(path)
    engine = database._engine.sync_engine
    event.listen(engine, "connect", wire.listen)
    # What is open by now is not listened to
    await database.close()
    try:
        yield wire
    finally:
        event.remove(engine, "connect", wire.listen)
        wire.close()

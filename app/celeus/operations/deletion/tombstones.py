"""Delete what deleted sessions leave behind, a part at a time, behind the answers.

Nobody can see it any more: every reader asks for the session's row first, and that is gone. A
tombstone remembers that there is something left, so that a start of the service goes on where a
killed one stopped; several processes take different tombstones.
"""

import asyncio
import logging

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from celeus.errors import Refusal
from celeus.store.database import Database

ROWS_AT_ONCE = 2_000
"""Rows deleted from each table in one transaction, which takes some hundredths of a second."""
PAUSE_SECONDS = 0.02
RETRY_SECONDS = 5.0
PATIENCE_SECONDS = 1.0
TABLES = {"events": "sequence", "trajectory": "round", "comments": "round"}
"""The tables without a foreign key to the session, each with what comes after it in its key."""

_logger = logging.getLogger(__name__)


class LeftoverDeletion:
    """Deletes, in this process, what is left of deleted sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._task: asyncio.Task[None] | None = None
        self._asked = False
        self._closing = False

    def ask(self) -> None:
        """Have everything that is left deleted; never waits."""
        self._asked = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="celeus-leftovers")

    async def close(self) -> None:
        """Stop after the part under way: the next start goes on."""
        self._closing = True
        if self._task is not None:
            # Cancelled in the middle, a transaction costs its connection
            await asyncio.wait([self._task], timeout=PATIENCE_SECONDS)
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        failing = False
        while self._asked and not self._closing:
            self._asked = False
            try:
                left = True
                while left and not self._closing:
                    left = await delete_part(self._database)
                    await asyncio.sleep(PAUSE_SECONDS)
                failing = False
            except (Refusal, SQLAlchemyError, OSError) as error:
                # The database is away, or of another version: said once, and tried again
                if not failing:
                    _logger.warning("deleted sessions wait: %s", type(error).__name__)
                failing = self._asked = True
                await asyncio.sleep(RETRY_SECONDS)


async def delete_part(database: Database, rows: int = ROWS_AT_ONCE) -> bool:
    """Delete some of what is left of one deleted session; whether there was any.

    What another process is deleting is left to it.
    """
    async with database.transaction() as db:
        session_id = (await db.execute(_TAKE)).scalar_one_or_none()
        if session_id is None:
            return False
        params = {"session_id": session_id, "most": rows}
        found = [(await db.execute(statement, params)).rowcount for statement in _DELETE]
        if not any(found):
            await db.execute(_DONE, {"session_id": session_id})
    return True


_TAKE = text(
    """
    SELECT session_id FROM tombstones WHERE remains
    ORDER BY deleted_at LIMIT 1 FOR UPDATE SKIP LOCKED
    """
)
_DELETE = [
    text(
        f"""
        DELETE FROM {table} WHERE session_id = :session_id AND {key} <= (
            SELECT max({key}) FROM (
                SELECT {key} FROM {table} WHERE session_id = :session_id
                ORDER BY {key} LIMIT :most
            ) AS part)
        """  # noqa: S608 -- our words
    )
    for table, key in TABLES.items()
]
_DONE = text("UPDATE tombstones SET remains = false WHERE session_id = :session_id")

"""Requests that take effect once, however often they are sent.

The caller names its request by a key. The first statement of the request's transaction claims the
key, the last one keeps what was answered: both are there with what the request made, or neither
is. A second request under the key waits on the first one's row and then gets its answer. What was
refused keeps nothing, so that it may be repeated.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.errors import Busy, IdempotencyKeyReused
from app.operations.rooms import Rooms

KEPT_HOURS = 24
SWEPT = 20
"""Outdated answers that every claim clears away: more than it adds."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Once(Generic[T]):
    """A request's key, what it asks (as a digest), and how its result is answered."""

    key: str
    fingerprint: bytes
    status: int
    told: Callable[[T], bytes]


class Replay(Exception):
    """The request was answered before, with this status and body."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


@asynccontextmanager
async def transaction_of(rooms: Rooms, once: Once[T] | None) -> AsyncIterator[AsyncConnection]:
    """One transaction that begins by claiming the request's key, where it has one.

    Raises Replay when the request has been answered, and refuses another request's key. While the
    same request is under way this waits, and refuses as `Busy` past the lock timeout.
    """
    async with rooms.transaction() as db:
        if once is not None:
            await _claim(db, rooms, once)
        yield db


async def keep(db: AsyncConnection, rooms: Rooms, once: Once[T] | None, result: T) -> T:
    """Keep the answer to the request in the transaction that claimed its key; gives it back."""
    if once is not None:
        await db.execute(
            _KEEP,
            {
                "project_id": rooms.project_id,
                "key": once.key,
                "status": once.status,
                "answer": once.told(result),
                "hours": KEPT_HOURS,
                "swept": SWEPT,
            },
        )
    return result


async def peek(rooms: Rooms, once: Once[T] | None) -> None:
    """Raise Replay when the request has been answered: before work that would be for nothing."""
    if once is not None:
        async with rooms.transaction() as db:
            found = await _kept(db, rooms, once)
        if found is not None:
            _replay(found, once)


async def _claim(db: AsyncConnection, rooms: Rooms, once: Once[T]) -> None:
    asked = {
        "project_id": rooms.project_id,
        "key": once.key,
        "fingerprint": once.fingerprint,
        "hours": KEPT_HOURS,
    }
    if (await db.execute(_CLAIM, asked)).scalar_one_or_none():
        return
    found = await _kept(db, rooms, once)
    if found is None:
        # It came of age between the two statements.
        raise Busy("the answer under this idempotency key has just expired; try again")
    _replay(found, once)


async def _kept(db: AsyncConnection, rooms: Rooms, once: Once[T]) -> RowMapping | None:
    asked = {"project_id": rooms.project_id, "key": once.key, "hours": KEPT_HOURS}
    return (await db.execute(_KEPT, asked)).mappings().one_or_none()


def _replay(found: RowMapping, once: Once[T]) -> None:
    if bytes(found["fingerprint"]) != once.fingerprint:
        raise IdempotencyKeyReused(
            "The idempotency key came with another request before.",
            field="Idempotency-Key",
            rule=f"one key, one request, for {KEPT_HOURS} hours",
            value=once.key,
        )
    raise Replay(found["status"], bytes(found["answer"]))


_CLAIM = text(
    """
    INSERT INTO idempotency AS kept (project_id, key, fingerprint)
    VALUES (:project_id, :key, :fingerprint)
    ON CONFLICT (project_id, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, status = NULL, answer = NULL, created_at = now()
        WHERE kept.created_at <= now() - make_interval(hours => :hours)
    RETURNING true
    """
)
_KEPT = text(
    """
    SELECT fingerprint, status, answer FROM idempotency
    WHERE project_id = :project_id AND key = :key AND status IS NOT NULL
      AND created_at > now() - make_interval(hours => :hours)
    """
)
_KEEP = text(
    """
    WITH outdated AS (
        SELECT project_id, key FROM idempotency
        WHERE created_at <= now() - make_interval(hours => :hours)
        ORDER BY created_at LIMIT :swept FOR UPDATE SKIP LOCKED
    ), swept AS (
        DELETE FROM idempotency USING outdated
        WHERE idempotency.project_id = outdated.project_id AND idempotency.key = outdated.key
    )
    UPDATE idempotency SET status = :status, answer = :answer
    WHERE project_id = :project_id AND key = :key
    """
)

"""Idempotency keys: a request takes effect once, however often it is sent.

The caller names its request by a key. The first statement of the request's transaction claims the
key, the last one keeps what was answered: both are there with what the request made, or neither
is. A second request under the key waits for the first one, in another process on its row, and then
gets its answer. What was refused keeps nothing, so that it may be repeated.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Generic, TypeVar
from uuid import UUID

from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.errors import Busy, IdempotencyKeyReused, PoolNotFound, SessionNotFound
from celeus.operations.runtime.context import Context

KEPT_HOURS = 24
SWEPT = 20
"""Expired answers that each claim deletes: more than it adds."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IdempotentRequest(Generic[T]):
    """A request's idempotency key, its fingerprint, and how to render its result."""

    key: str
    fingerprint: bytes
    status: int
    render: Callable[[T], bytes]


class Replay(Exception):
    """The request was answered before, with this status and body."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


@asynccontextmanager
async def transaction_of(
    context: Context, once: IdempotentRequest[T] | None
) -> AsyncIterator[AsyncConnection]:
    """Open a transaction that first claims the request's idempotency key, if it has one.

    Raises Replay when the request has been answered, and refuses another request's key. While the
    same request is under way this waits, and refuses as `Busy` past the lock timeout.
    """
    async with AsyncExitStack() as stack:
        if once is not None:
            key = f"{context.project_id}/{once.key}"
            await stack.enter_async_context(context.gates.idempotency_keys.of(key))
        db = await stack.enter_async_context(context.transaction())
        await claim(db, context, once)
        yield db


async def keep(
    db: AsyncConnection, context: Context, once: IdempotentRequest[T] | None, result: T
) -> T:
    """Store the answer in the transaction that claimed the key; returns ``result``."""
    if once is not None:
        await db.execute(
            _KEEP,
            {
                "project_id": context.project_id,
                "key": once.key,
                "status": once.status,
                "answer": once.render(result),
                "hours": KEPT_HOURS,
                "swept": SWEPT,
            },
        )
    return result


async def peek(context: Context, once: IdempotentRequest[T] | None) -> None:
    """Raise Replay if the request has been answered, before doing work in vain."""
    if once is not None:
        async with context.transaction() as db:
            row = await _find(db, context, once)
        if row is not None:
            _replay(row, once)


async def claim(db: AsyncConnection, context: Context, once: IdempotentRequest[T] | None) -> None:
    """Claim the request's idempotency key, if it has one, in the transaction ``db``.

    Raises Replay when the request has been answered, and refuses another request's key.
    """
    if once is None:
        return
    params = {
        "project_id": context.project_id,
        "key": once.key,
        "fingerprint": once.fingerprint,
        "hours": KEPT_HOURS,
    }
    if (await db.execute(_CLAIM, params)).scalar_one_or_none():
        return
    row = await _find(db, context, once)
    # Where the first commit is not on the standby yet, this one, of the row's lock, waits for it
    await db.commit()
    if row is None:
        # It came of age between the two statements.
        raise Busy("the answer under this idempotency key has just expired; try again")
    _replay(row, once)


async def forget(db: AsyncConnection, context: Context, wire: str) -> None:
    """Forget the answers about a session or pool that is deleted: from now on they refuse it.

    Only its id is left of them, so that a repetition does not make another.
    """
    params = {"project_id": context.project_id, "wire": wire, "status": HTTPStatus.NOT_FOUND}
    await db.execute(_FORGET, params | {"told": f'"id":"{wire}"'})


async def _find(
    db: AsyncConnection, context: Context, once: IdempotentRequest[T]
) -> RowMapping | None:
    params = {"project_id": context.project_id, "key": once.key, "hours": KEPT_HOURS}
    return (await db.execute(_FIND, params)).mappings().one_or_none()


def _replay(row: RowMapping, once: IdempotentRequest[T]) -> None:
    if bytes(row["fingerprint"]) != once.fingerprint:
        raise IdempotencyKeyReused(
            "The idempotency key was used for another request.",
            field="Idempotency-Key",
            rule=f"one key, one request, for {KEPT_HOURS} hours",
            value=once.key,
        )
    if row["status"] == HTTPStatus.NOT_FOUND:
        kind, _, number = bytes(row["answer"]).decode().partition("_")
        raise (SessionNotFound if kind == "ses" else PoolNotFound).of(UUID(number))
    raise Replay(row["status"], bytes(row["answer"]))


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
_FIND = text(
    """
    SELECT fingerprint, status, answer FROM idempotency
    WHERE project_id = :project_id AND key = :key AND status IS NOT NULL
      AND created_at > now() - make_interval(hours => :hours)
    FOR KEY SHARE
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
# Whoever changes a row gives it another answer; whoever repeats one is not in the way
_FORGET = text(
    """
    WITH about AS (
        SELECT project_id, key FROM idempotency
        WHERE project_id = :project_id AND position(convert_to(:told, 'UTF8') IN answer) > 0
        FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE idempotency SET status = :status, answer = convert_to(:wire, 'UTF8') FROM about
    WHERE idempotency.project_id = about.project_id AND idempotency.key = about.key
    """
)

"""A request under a key takes effect once: races, refusals, and the end of a day."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.core.pools.losses import LossScale
from celeus.errors import BadRows, Busy, IdempotencyKeyReused, PoolNotFound
from celeus.operations.pools import pools
from celeus.operations.pools.pools import NewPool
from celeus.operations.pools.record import PoolRecord
from celeus.operations.runtime import idempotency
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.runtime.idempotency import IdempotentRequest, Replay
from celeus.operations.sessions import sessions
from celeus.operations.sessions.sessions import Opening
from celeus.settings import Settings
from celeus.store.database import Database
from tests.operations.opened import sealed

ZERO_ONE = LossScale("zero_one", 0.0, 1.0)
EMPTY = NewPool("p", ZERO_ONE)


def once(key: str = "k", fingerprint: bytes = b"f") -> IdempotentRequest[PoolRecord]:
    return IdempotentRequest(key, fingerprint, 201, lambda record: record.pool_id.bytes)


async def created(context: Context, request: IdempotentRequest[PoolRecord]) -> tuple[bytes, bool]:
    """The answer, and whether it was given before."""
    try:
        return (await pools.create_pool(context, EMPTY, request)).pool_id.bytes, False
    except Replay as replay:
        return replay.body, True


async def count(database: Database, table: str = "pools") -> int:
    async with database.transaction() as db:
        found: int = (await db.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one()
        return found


@pytest.fixture
async def hasty(database_url: str) -> AsyncIterator[Context]:
    """A context that waits a fifth of a second for a lock."""
    settings = Settings(database_url=database_url, database_pool_size=8, lock_timeout_ms=200)
    async with open_context(settings) as opened:
        yield opened


async def test_the_same_request_five_times_at_once_has_one_effect(
    context: Context, database: Database
) -> None:
    answers = await asyncio.gather(*(created(context, once()) for _ in range(5)))
    assert len({body for body, _ in answers}) == 1
    assert sorted(replayed for _, replayed in answers) == [False] + [True] * 4
    assert await count(database) == 1


async def test_two_requests_at_once_under_one_key_are_one_effect_and_one_refusal(
    context: Context, database: Database
) -> None:
    answers = await asyncio.gather(
        created(context, once()), created(context, once(fingerprint=b"g")), return_exceptions=True
    )
    assert sum(isinstance(answer, IdempotencyKeyReused) for answer in answers) == 1
    assert await count(database) == 1


async def test_what_was_refused_may_be_repeated(context: Context, database: Database) -> None:
    bad = NewPool("p", ZERO_ONE, ([1], [{"id": ""}]))
    with pytest.raises(BadRows):
        await pools.create_pool(context, bad, once())
    assert await count(database, "idempotency") == 0
    _, replayed = await created(context, once())
    assert not replayed


async def test_a_second_request_past_the_lock_timeout_is_busy(
    hasty: Context, database: Database
) -> None:
    async with idempotency.transaction_of(hasty, once()):
        with pytest.raises(Busy):
            await created(hasty, once())
        # Looking never waits: the first one has no answer yet.
        async with asyncio.timeout(0.1):
            await idempotency.peek(hasty, once())
    assert await count(database) == 0


async def test_repeated_requests_wait_without_a_connection(context: Context) -> None:
    """Forty of them took every connection, and others were told that there is no database."""
    with suppress(ZeroDivisionError):
        async with idempotency.transaction_of(context, once()):
            repeated = [asyncio.create_task(created(context, once())) for _ in range(40)]
            async with asyncio.timeout(context.settings.lock_timeout_ms / 1000):
                for _ in range(20):
                    async with context.transaction() as db:
                        await db.execute(text("SELECT 1"))
            raise ZeroDivisionError
    assert len({body for body, _ in await asyncio.gather(*repeated)}) == 1


async def test_a_second_request_waits_for_a_first_that_fails_and_then_runs(
    context: Context, database: Database
) -> None:
    began = asyncio.Event()

    async def fails() -> None:
        async with idempotency.transaction_of(context, once()):
            began.set()
            await asyncio.sleep(0.3)
            raise ZeroDivisionError

    first = asyncio.create_task(fails())
    await began.wait()
    assert await created(context, once()) != (b"", True)
    with pytest.raises(ZeroDivisionError):
        await first
    assert await count(database) == 1


@pytest.fixture
async def neighbours(context: Context, database: Database) -> AsyncIterator[Context]:
    """The same context, bound to another project."""
    project_id = uuid4()
    async with database.transaction() as db:
        await db.execute(
            text("INSERT INTO projects (project_id, name) VALUES (:id, 'neighbours')"),
            {"id": project_id},
        )
    yield replace(context, project_id=project_id)
    async with database.transaction() as db:
        for table in ("idempotency", "pools"):
            await db.execute(
                text(f"DELETE FROM {table} WHERE project_id = :id"), {"id": project_id}
            )
        await db.execute(text("DELETE FROM projects WHERE project_id = :id"), {"id": project_id})


async def test_the_key_of_another_project_is_another_key(
    context: Context, neighbours: Context
) -> None:
    first, _ = await created(context, once())
    second, replayed = await created(neighbours, once(fingerprint=b"g"))
    assert not replayed
    assert first != second
    assert await created(context, once()) == (first, True)


async def aged(database: Database, hours: float) -> None:
    async with database.transaction() as db:
        await db.execute(
            text("UPDATE idempotency SET created_at = now() - make_interval(secs => :seconds)"),
            {"seconds": hours * 3600},
        )


async def test_a_day_later_the_key_is_free_again(context: Context, database: Database) -> None:
    first, _ = await created(context, once())
    await aged(database, 23.99)
    assert await created(context, once()) == (first, True)
    await aged(database, 24)
    await idempotency.peek(context, once())
    second, replayed = await created(context, once(fingerprint=b"g"))
    assert not replayed
    assert await created(context, once(fingerprint=b"g")) == (second, True)
    assert await count(database) == 2


async def test_a_day_later_five_at_once_still_have_one_effect(
    context: Context, database: Database
) -> None:
    await created(context, once())
    await aged(database, 25)
    answers = await asyncio.gather(*(created(context, once()) for _ in range(5)))
    assert sorted(replayed for _, replayed in answers) == [False] + [True] * 4
    assert await count(database) == 2


async def test_outdated_answers_are_cleared_away_a_few_at_a_time(
    context: Context, database: Database
) -> None:
    for number in range(idempotency.SWEPT + 5):
        await created(context, once(f"old-{number}"))
    await aged(database, 25)
    await created(context, once("new"))
    assert await count(database, "idempotency") == 6
    await asyncio.gather(*(created(context, once(f"newer-{number}")) for number in range(4)))
    assert await count(database, "idempotency") == 5


async def test_a_session_under_a_key_is_opened_once(context: Context, database: Database) -> None:
    pool = await sealed(context, 50)
    request: IdempotentRequest[dict[str, Any]] = IdempotentRequest(
        "s", b"f", 201, lambda found: found["id"].encode()
    )
    opening = Opening(pool, SessionRequest(Claim(precision=0.1)))

    async def opened() -> bytes:
        try:
            return str((await sessions.open_session(context, opening, request))["id"]).encode()
        except Replay as replay:
            return replay.body

    found = await asyncio.gather(*(opened() for _ in range(5)))
    found += [await opened()]
    assert len(set(found)) == 1
    assert await count(database, "sessions") == 1
    # What did not come to be holds no place among the warm states.
    assert len(context.states) == 1


async def test_an_answer_that_is_being_repeated_is_forgotten_all_the_same(context: Context) -> None:
    wire = "pool_" + 32 * "0"
    body = f'{{"id":"{wire}"}}'.encode()
    request: IdempotentRequest[PoolRecord] = IdempotentRequest("k", b"f", 201, lambda _: body)
    await created(context, request)
    async with context.transaction() as repetition:
        assert await idempotency._find(repetition, context, request) is not None
        async with context.transaction() as db:
            await idempotency.forget(db, context, wire)
    with pytest.raises(PoolNotFound):
        await created(context, request)

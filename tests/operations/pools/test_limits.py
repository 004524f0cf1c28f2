"""How much a pool, a worker and an import may have."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import psycopg
import pytest

from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.core.pools.losses import LossScale
from celeus.core.pools.rows import growth
from celeus.core.session.outcome import Judgement
from celeus.errors import BadRows, DatabaseUnavailable, PoolTooLarge
from celeus.operations.pools import imports, pools
from celeus.operations.pools.imports import ImportOptions, Rows
from celeus.operations.pools.pools import NewPool
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.sessions import rounds, sessions
from celeus.operations.sessions.sessions import Opening
from celeus.settings import Settings

ZERO_ONE = LossScale("zero_one", 0.0, 1.0)
ALL_OR_NOTHING = ImportOptions()
SKIP = ImportOptions(skip_bad_rows=True)
_LAST_SPOKEN = (
    "SELECT state_change FROM pg_stat_activity WHERE datname = current_database()"
    " AND state = 'idle in transaction'"
)


@pytest.fixture
async def tight(database_url: str) -> AsyncIterator[Context]:
    """A context for small pools, with little patience and two connections."""
    settings = Settings(
        database_url=database_url,
        database_pool_size=2,
        lock_timeout_ms=200,
        max_items=100,
        max_draws_per_worker=3,
        max_draws_out=5,
    )
    async with open_context(settings) as opened:
        yield opened


def scored(begin: int, end: int) -> Rows:
    lines = list(range(begin + 1, end + 1))
    return lines, [{"id": f"i{number}", "surrogate": 0.5} for number in range(begin, end)]


def bad(count: int) -> Rows:
    return list(range(1, count + 1)), [{"id": ""}] * count


async def test_a_pool_takes_as_many_items_as_it_may_and_no_more(tight: Context) -> None:
    made = await pools.create_pool(tight, NewPool("p", ZERO_ONE, scored(0, 40)))
    await pools.add_items(tight, made.pool_id, iter([scored(40, 100)]), ALL_OR_NOTHING)
    with pytest.raises(PoolTooLarge):
        await pools.add_items(tight, made.pool_id, iter([scored(100, 101)]), ALL_OR_NOTHING)
    assert (await pools.get_pool(tight, made.pool_id)).items == 100


async def test_items_that_come_along_count_too(tight: Context) -> None:
    with pytest.raises(PoolTooLarge):
        await pools.create_pool(tight, NewPool("p", ZERO_ONE, scored(0, 101)))


@pytest.mark.parametrize("options", [ALL_OR_NOTHING, SKIP])
async def test_an_upload_is_read_no_further_than_a_pool_may_grow(
    tight: Context, options: ImportOptions
) -> None:
    made = await pools.create_pool(tight, NewPool("p", ZERO_ONE))
    read = 0

    def endless() -> Iterator[Rows]:
        nonlocal read
        while True:
            read += 1
            yield bad(30)

    with pytest.raises(PoolTooLarge):
        await pools.add_items(tight, made.pool_id, endless(), options)
    assert read == 4


async def test_a_pool_has_no_more_numbers_than_a_worker_can_hold(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "MOST_BYTES", 8 * 100)
    made = await pools.create_pool(context, NewPool("p", ZERO_ONE, scored(0, 60)))
    with pytest.raises(PoolTooLarge) as caught:
        await pools.add_items(context, made.pool_id, iter([scored(60, 120)]), ALL_OR_NOTHING)
    assert caught.value.value == 8 * 120


async def test_bad_rows_without_end_are_read_to_a_bound(context: Context) -> None:
    made = await pools.create_pool(context, NewPool("p", ZERO_ONE))

    def endless() -> Iterator[Rows]:
        while True:
            yield bad(60)

    with pytest.raises(BadRows, match="At least 120") as caught:
        await pools.add_items(context, made.pool_id, endless(), ALL_OR_NOTHING)
    assert caught.value.more["total_errors"] == 120


@pytest.mark.parametrize("dry_run", [False, True])
async def test_rows_to_skip_are_read_while_most_are_good(
    context: Context, monkeypatch: pytest.MonkeyPatch, *, dry_run: bool
) -> None:
    made = await pools.create_pool(context, NewPool("p", ZERO_ONE))
    options = ImportOptions(skip_bad_rows=True, dry_run=dry_run)
    some = await pools.add_items(context, made.pool_id, iter([bad(100)]), options)
    assert some.skipped == 100

    def endless(good: int) -> Iterator[Rows]:
        yield scored(0, good)
        while True:
            yield bad(60)

    with pytest.raises(BadRows, match="At least 120") as caught:
        await pools.add_items(context, made.pool_id, endless(10), options)
    assert caught.value.more["total_errors"] == 120
    with pytest.raises(BadRows, match="At least 240"):
        await pools.add_items(context, made.pool_id, endless(200), options)
    monkeypatch.setattr(imports, "MOST_SKIPPED", 100)
    with pytest.raises(BadRows, match="At least 120"):
        await pools.add_items(context, made.pool_id, endless(200), options)
    assert (await pools.get_pool(context, made.pool_id)).items == 0


async def test_bad_rows_leave_no_transaction_idle(context: Context, database_url: str) -> None:
    """PostgreSQL ends a transaction in which nothing is said for too long."""
    made = await pools.create_pool(context, NewPool("p", ZERO_ONE))
    spoken = []

    def watched() -> Iterator[Rows]:
        with psycopg.connect(database_url, autocommit=True) as watch:
            for _ in range(4):
                spoken.append(watch.execute(_LAST_SPOKEN).fetchone())
                yield bad(25)

    await pools.add_items(context, made.pool_id, watched(), SKIP)
    assert None not in spoken
    assert len(set(spoken)) == 4


async def test_a_worker_holds_as_many_draws_as_it_may(tight: Context) -> None:
    pool = await pools.create_pool(tight, NewPool("p", ZERO_ONE, scored(0, 50), sealed=True))
    document = await sessions.open_session(
        tight, Opening(pool.pool_id, SessionRequest(Claim(precision=0.1)))
    )
    session = next(iter(tight.states._slots))
    assert document["id"].endswith(session.hex)
    for _ in range(2):
        offer = await rounds.next_draws(tight, session, "ada", 200)
        assert [draw["round"] for draw in offer.draws] == [1, 2, 3]
    judged = [Judgement(1, loss=0.0)]
    answer = await rounds.observe(tight, session, judged, "ada", 200)
    assert [draw["round"] for draw in answer.offer.draws] == [2, 3, 4]
    offer = await rounds.next_draws(tight, session, "bob", 200)
    assert [draw["round"] for draw in offer.draws] == [5, 6], "what may be out in all"


async def test_imports_leave_connections_to_the_others(tight: Context) -> None:
    """Of two connections one import holds one; a second import is told to try again."""
    made = [await pools.create_pool(tight, NewPool("p", ZERO_ONE)) for _ in range(2)]
    began, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[Rows]:
        began.set()
        go_on.wait(10)
        yield scored(0, 10)

    first = asyncio.create_task(pools.add_items(tight, made[0].pool_id, slow(), ALL_OR_NOTHING))
    await asyncio.to_thread(began.wait, 10)
    other = replace(tight, key_id="another")
    second = pools.add_items(other, made[1].pool_id, iter([scored(0, 10)]), ALL_OR_NOTHING)
    with pytest.raises(DatabaseUnavailable):
        await second
    assert (await pools.get_pool(tight, made[1].pool_id)).items == 0
    go_on.set()
    assert (await first).added == 10
    again = pools.add_items(tight, made[1].pool_id, iter([scored(0, 10)]), ALL_OR_NOTHING)
    assert (await again).added == 10

"""The state cache: bounded by number and by size, least recently used out first."""

import asyncio
import random
import tracemalloc
from types import MappingProxyType
from uuid import UUID, uuid4

import numpy as np
import pytest

from celeus.core.ledger import Change, Observation
from celeus.core.plans.best_plan import make_best
from celeus.core.plans.plan import Claim, PoolFacts, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import scores
from celeus.core.pools.systems import Lineup
from celeus.core.session.mean import Mean
from celeus.core.session.session import begin_mean, begin_session
from celeus.operations.runtime.memory_limits import nbytes
from celeus.operations.runtime.state_cache import (
    EVENTS_BETWEEN_COUNTS,
    CachedSession,
    StateCache,
)

PROJECT = UUID(int=1)


def pool_of(items: int) -> Pool:
    columns = {"surrogate.0": np.linspace(0.0, 1.0, items)}
    return Pool(items, LossScale("zero_one", 0.0, 1.0), MappingProxyType(columns), (), b"")


def session_of(items: int) -> CachedSession:
    pool = pool_of(items)
    facts = PoolFacts("00", items, 0.0, 1.0, whole_losses=True)
    plan = make_plan(Claim(precision=0.1), facts, policy_named("uniform"), "00", None)
    return CachedSession(plan, pool, begin_mean(plan, scores(pool, None), bytes(32)), bytes(32))


async def keep(cache: StateCache, session_id: UUID, session: CachedSession) -> None:
    async with cache.hold(session_id) as slot:
        slot.session = session


async def test_states_are_bounded_by_their_bytes() -> None:
    size = session_of(100).nbytes
    cache = StateCache(sessions=100, pools=1, state_bytes=10 * size)
    sessions = [uuid4() for _ in range(20)]
    for session_id in sessions:
        await keep(cache, session_id, session_of(100))
    assert len(cache) == 10
    async with cache.hold(sessions[10]) as slot:
        assert slot.session is not None, "the oldest of the ten kept"
    await keep(cache, sessions[0], session_of(100_000))
    assert len(cache) == 1, "one that is larger than the bound pushes out all others, and stays"
    async with cache.hold(sessions[0]) as slot:
        assert slot.session is not None


async def test_the_rounds_of_a_state_count() -> None:
    cache = StateCache(sessions=100, pools=1, state_bytes=2 * session_of(2_000).nbytes + 20_000)
    sessions = [uuid4() for _ in range(2)]
    for session_id in sessions:
        await keep(cache, session_id, session_of(2_000))
    assert len(cache) == 2
    async with cache.hold(sessions[1]) as slot:
        assert slot.session is not None
        for round_ in range(1, 1_001):
            state = slot.session.state
            state = state.apply(state.propose())
            slot.session.state = state.apply(Observation(round_, 0.0))
    assert len(cache) == 1
    assert slot.session is not None
    assert slot.session.nbytes - session_of(2_000).nbytes < 200_000


async def test_a_session_is_counted_again_when_it_has_grown_by_an_eighth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: list[int] = []

    def counted(session: CachedSession) -> int:
        counts.append(session.state.sequence)
        return 1

    monkeypatch.setattr(CachedSession, "nbytes", property(counted))
    cache, session_id = StateCache(sessions=9, pools=1), uuid4()
    await keep(cache, session_id, session_of(1_000))
    for round_ in range(1, 201):
        async with cache.hold(session_id) as slot:
            assert slot.session is not None
            state = slot.session.state
            state = state.apply(state.propose())
            slot.session.state = state.apply(Observation(round_, 0.0))
        async with cache.hold(session_id):
            """Who only reads has nothing counted."""
    assert len(counts) < 40
    assert counts[-1] > 400 * 8 // 9


async def test_a_change_of_precision_counts_at_once() -> None:
    """A finer lattice is a hundred times larger: 256 of them took 13 GB uncounted."""
    session = session_of(2_000)
    before = session.nbytes
    rounds = iter(range(1, 4))
    for change in (Change(0.0005, 2_000), Change(None, 2_000)):
        session.state = session.state.apply(change)
        session.state = session.state.apply(session.state.propose())
        session.state = session.state.apply(Observation(next(rounds), 0.0))
    assert before < 1_000_000
    assert nbytes(session.state) > 10_000_000
    assert session.nbytes > nbytes(session.state) / 2


async def test_rounds_that_wait_behind_an_open_draw_count() -> None:
    """They are objects until they are folded: ten times as large as their arrays."""
    state = session_of(2_000).state
    state.apply(state.propose())
    before = nbytes(state)
    tracemalloc.start()
    try:
        for round_ in range(2, 302):
            state.apply(state.propose()).observe(round_, 0.0)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert nbytes(state) - before > taken / 2


async def test_of_many_checkpoints_one_is_counted_at_a_time() -> None:
    """With 250 draws ahead and 12 of them, counting all held the loop for 0.3 s."""
    session = session_of(6_000)
    for round_ in range(1, 5_001):
        session.state = session.state.apply(session.state.propose())
        session.state = session.state.apply(Observation(round_, 0.0))
        question = session.state.question
        assert isinstance(question, Mean)
        session.checkpoints.note(question.engine, question.fold)
    assert len(session.checkpoints.copies) == 5
    whole = nbytes((session.state, session.checkpoints))
    for count in range(1, 6):
        session._counted_at = -EVENTS_BETWEEN_COUNTS
        assert session.nbytes >= 0.9 * whole, "those not counted yet are not forgotten"
        assert len(session._copies) == count
    assert session.nbytes <= 1.1 * whole
    session.checkpoints.forget(session.state.rounds, 3_000)
    session._counted_at = -EVENTS_BETWEEN_COUNTS
    assert session.nbytes == pytest.approx(nbytes((session.state, session.checkpoints)), rel=0.1)
    assert len(session._copies) == 2


@pytest.mark.parametrize("seed", range(3))
async def test_the_running_total_is_that_of_counting_anew(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - only an order
    states = [session_of(items) for items in (10, 60, 120)]
    cache = StateCache(sessions=5, pools=1, state_bytes=sum(state.nbytes for state in states))
    sessions = [uuid4() for _ in range(8)]

    async def used() -> None:
        async with cache.hold(rng.choice(sessions)) as slot:
            await asyncio.sleep(0)
            slot.session = rng.choice([*states, None, slot.session])

    for _ in range(100):
        await asyncio.gather(*(used() for _ in range(4)))
        held = [slot for slot in cache._slots.values() if slot.session is not None]
        assert cache._state_bytes == sum(slot.session.nbytes for slot in held if slot.session)
        assert cache._state_bytes <= sum(state.nbytes for state in states)
        assert len(cache._slots) <= 5


async def test_pools_are_bounded_by_their_bytes_and_the_last_one_stays() -> None:
    cache = StateCache(sessions=1, pools=10, pool_bytes=8 * 250)
    names = [uuid4() for _ in range(4)]
    for name in names[:3]:
        cache.keep_pool(PROJECT, name, pool_of(100))
    assert [cache.pool(PROJECT, name) is not None for name in names[:3]] == [False, True, True]
    cache.keep_pool(PROJECT, names[1], pool_of(100))
    assert cache.pool(PROJECT, names[2]) is not None, "kept again, a pool counts once"
    cache.keep_pool(PROJECT, names[3], pool_of(1000))
    assert [cache.pool(PROJECT, name) is not None for name in names] == [False, False, False, True]
    cache.keep_pool(PROJECT, names[0], pool_of(10))
    assert cache._pool_bytes == 80


async def test_a_session_that_seeks_the_best_counts_its_copies_of_the_answers() -> None:
    """Systems are read one by one: a session holds the pool's answers in another order."""
    items, systems = 20_000, 10
    codes = np.random.default_rng(1).integers(0, 4, (items, systems)).astype("<i4")
    lineup = Lineup.of(
        [f"system {number}" for number in range(systems)], ("zero_one", None, None), "exact"
    )
    columns = MappingProxyType({"predictions": codes})
    pool = Pool(items, lineup.loss, columns, (), b"", (), lineup)
    plan = make_best(pool, Claim(), "0" * 64)
    state = begin_session(plan, pool, b"seed")
    session = CachedSession(plan, pool, state, b"seed")
    assert session.nbytes > codes.nbytes
    assert session.nbytes < 4 * codes.nbytes
    # A pool that may have to be cut anew takes a thread
    assert state.bets_per_round > 100_000

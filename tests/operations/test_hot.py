"""What is kept warm: bounded by number and by size, least recently used out first."""

import asyncio
import random
from types import MappingProxyType
from uuid import UUID, uuid4

import numpy as np
import pytest

from app.core.losses import LossScale
from app.core.plan import Claim, PoolFacts, make_plan
from app.core.policies import policy_named
from app.core.pool import Pool
from app.core.session import begin
from app.core.surrogates import scores
from app.operations.hot import HotStates, Warm

PROJECT = UUID(int=1)


def pool_of(items: int) -> Pool:
    columns = {"surrogate.0": np.linspace(0.0, 1.0, items)}
    return Pool(items, LossScale("zero_one", 0.0, 1.0), MappingProxyType(columns), (), b"")


def warm_of(items: int) -> Warm:
    pool = pool_of(items)
    facts = PoolFacts("00", items, 0.0, 1.0, whole_losses=True)
    plan = make_plan(Claim(), facts, policy_named("uniform"), "00", None)
    return Warm(plan, pool, begin(plan, scores(pool, None), bytes(32)))


async def kept(hot: HotStates, session: UUID, warm: Warm) -> None:
    async with hot.hold(session) as slot:
        slot.warm = warm


async def test_states_are_bounded_by_the_items_of_their_pools() -> None:
    hot = HotStates(sessions=100, pools=1, items=1000)
    sessions = [uuid4() for _ in range(20)]
    for session in sessions:
        await kept(hot, session, warm_of(100))
    assert len(hot) == 10
    async with hot.hold(sessions[10]) as slot:
        assert slot.warm is not None, "the oldest of the ten kept"
    await kept(hot, sessions[0], warm_of(950))
    assert len(hot) == 1


async def test_states_are_bounded_by_their_number() -> None:
    hot = HotStates(sessions=3, pools=1)
    for _ in range(10):
        await kept(hot, uuid4(), warm_of(10))
    assert len(hot) == 3


@pytest.mark.parametrize("seed", range(3))
async def test_the_running_total_is_that_of_counting_anew(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - only an order
    hot = HotStates(sessions=5, pools=1, items=300)
    states = [warm_of(items) for items in (10, 60, 120)]
    sessions = [uuid4() for _ in range(8)]

    async def used() -> None:
        async with hot.hold(rng.choice(sessions)) as slot:
            await asyncio.sleep(0)
            slot.warm = rng.choice([*states, None, slot.warm])

    for _ in range(100):
        await asyncio.gather(*(used() for _ in range(4)))
        held = [slot for slot in hot._slots.values() if slot.warm is not None]
        assert hot._counted == sum(slot.warm.pool.items for slot in held if slot.warm)
        assert hot._counted <= 300
        assert len(hot._slots) <= 5


async def test_pools_are_bounded_by_their_bytes_and_the_last_one_stays() -> None:
    hot = HotStates(sessions=1, pools=10, pool_bytes=8 * 250)
    names = [uuid4() for _ in range(4)]
    for name in names[:3]:
        hot.keep_pool(PROJECT, name, pool_of(100))
    assert [hot.pool(PROJECT, name) is not None for name in names[:3]] == [False, True, True]
    hot.keep_pool(PROJECT, names[1], pool_of(100))
    assert hot.pool(PROJECT, names[2]) is not None, "kept again, a pool counts once"
    hot.keep_pool(PROJECT, names[3], pool_of(1000))
    assert [hot.pool(PROJECT, name) is not None for name in names] == [False, False, False, True]
    hot.keep_pool(PROJECT, names[0], pool_of(10))
    assert hot._pool_bytes == 80

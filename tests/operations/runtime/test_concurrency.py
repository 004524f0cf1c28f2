"""What bounds or pauses work of a process."""

import asyncio
import gc
from collections import Counter

from celeus.operations.runtime.concurrency import Turns, paused_collections


def test_collections_go_on_when_the_last_of_those_who_paused_them_has_left() -> None:
    assert gc.isenabled()
    with paused_collections:
        with paused_collections:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


async def test_a_flow_of_callers_leaves_others_their_turns() -> None:
    turns, order = Turns(2), list[str]()

    async def go_on(flow: str) -> None:
        await turns.mine(flow)
        order.append(flow)

    many = [asyncio.create_task(go_on("many")) for _ in range(1_000)]
    await asyncio.sleep(0)
    left = asyncio.create_task(go_on("left"))
    await asyncio.sleep(0)
    left.cancel()
    many.append(asyncio.create_task(go_on("one")))
    await asyncio.gather(*many)
    assert order.index("one") < 20
    assert len(order) == 1_001, "whoever left has taken nobody's turn"


async def test_few_go_on_in_a_turn_of_the_loop() -> None:
    turns, turn, gone = Turns(2), 0, Counter[int]()

    async def go_on(flow: int) -> None:
        await turns.mine(flow)
        gone[turn] += 1

    callers = [asyncio.create_task(go_on(flow % 7)) for flow in range(100)]
    while not all(caller.done() for caller in callers):
        turn += 1
        await asyncio.sleep(0)
    assert gone.total() == 100
    assert max(gone.values()) <= 4, "two that waited, and two that came while nobody did"

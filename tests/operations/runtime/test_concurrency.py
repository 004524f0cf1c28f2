"""What bounds or pauses work of a process."""

import asyncio
import gc
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from celeus.core.pause import PAUSE, pause
from celeus.operations.runtime.concurrency import (
    RoundRobin,
    ShortSleeps,
    in_thread,
    paused_collections,
)
from celeus.operations.runtime.groups import Groups, Request


def test_collections_go_on_when_the_last_of_those_who_paused_them_has_left() -> None:
    assert gc.isenabled()
    with paused_collections:
        with paused_collections:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def going_on(gone: list[int]) -> Callable[[], bool]:
    """What counts that it went on."""

    def go_on() -> bool:
        gone.append(1)
        return True

    return go_on


async def test_a_flow_of_callers_leaves_others_their_turns() -> None:
    turns, order = RoundRobin(2), list[str]()

    def named(flow: str, *, goes: bool = True) -> Callable[[], bool]:
        def go_on() -> bool:
            order.append(flow)
            return goes

        return go_on

    for _ in range(1_000):
        turns.ask("many", named("many"))
    turns.ask("left", named("left", goes=False))
    turns.ask("one", named("one"))
    while len(order) < 1_002:  # noqa: ASYNC110 -- counts turns of the loop
        await asyncio.sleep(0)
    assert order.index("one") < 20
    assert order.index("one") == order.index("left") + 1, "who does nothing takes nobody's turn"


async def test_few_go_on_in_a_turn_of_the_loop() -> None:
    turns, gone = RoundRobin(2), list[int]()
    for flow in range(100):
        turns.ask(flow % 7, going_on(gone))
    counts = []
    while len(gone) < 100:
        before = len(gone)
        await asyncio.sleep(0)
        counts.append(len(gone) - before)
    assert max(counts) <= 2


async def test_a_turn_of_the_loop_is_spent_when_its_time_is() -> None:
    turns, gone = RoundRobin(seconds=0.005), list[float]()

    def work() -> bool:
        time.sleep(0.01)
        gone.append(0.0)
        return True

    for _ in range(10):
        turns.ask("one", work)
    counts = []
    while len(gone) < 10:
        before = len(gone)
        await asyncio.sleep(0)
        counts.append(len(gone) - before)
    assert max(counts) == 1


async def test_what_fails_ends_nobody_elses_turns() -> None:
    turns, gone, failures = RoundRobin(1), list[int](), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, problem: failures.append(problem))
    turns.ask("first", going_on(gone))
    turns.ask("fails", lambda: bool(1 // 0))
    turns.ask("last", going_on(gone))
    while len(gone) < 2:  # noqa: ASYNC110 -- counts turns of the loop
        await asyncio.sleep(0)
    assert len(failures) == 1


async def test_what_is_asked_meanwhile_waits_and_starts_anew() -> None:
    """Else a caller that asks again and again has the loop for itself, and its words go along."""
    turns, seen, word = RoundRobin(), list[str](), ContextVar("word", default="none")

    def again() -> bool:
        seen.append(word.get())
        if len(seen) < 3:
            turns.ask("again", again)
        return True

    word.set("the caller's")
    turns.ask("again", again)
    assert seen == ["none"]
    while len(seen) < 3:  # noqa: ASYNC110 -- counts turns of the loop
        await asyncio.sleep(0)
    assert seen == ["none"] * 3


_asker: ContextVar[str] = ContextVar("asker", default="nobody")


async def test_what_is_done_for_several_is_said_in_the_name_of_none() -> None:
    """A line of the log has the request that its task belongs to."""
    groups, names = Groups(patience_seconds=30.0, most=9), []

    async def run(group: list[Request[Any]]) -> list[Request[Any]]:
        names.append(_asker.get())
        for request in group:
            request.give(request.asked)
        return []

    async def ask(name: str) -> Any:  # noqa: ANN401 - as the groups have it
        _asker.set(name)
        return await groups.answer("here", name, run)

    assert [*await asyncio.gather(ask("ada"), ask("bo"))] == ["ada", "bo"]
    assert set(names) == {"nobody"}


def _paused(seconds: float) -> tuple[type[object], float]:
    """What a pause is, and the share of ``seconds`` that the thread was off the processor."""
    began, worked = time.perf_counter(), time.thread_time()
    while time.perf_counter() - began < seconds:
        pause()
    return type(PAUSE.get()), time.thread_time() - worked


async def test_work_in_a_thread_naps_between_its_rounds() -> None:
    kind, worked = await in_thread(_paused, 0.05)
    assert kind is ShortSleeps
    # Half a millisecond in every 2.5 at least is slept away
    assert worked < 0.045
    assert not isinstance(PAUSE.get(), ShortSleeps), "the caller's own pauses stay as they were"


async def test_an_error_in_the_thread_is_the_callers() -> None:
    with pytest.raises(ValueError, match="odd"):
        await in_thread(_odd)


def _odd() -> None:
    message = "odd"
    raise ValueError(message)

"""Work in a thread: its result, its error, and naps that others need."""

import time

import pytest

from celeus.core.pause import PAUSE, pause
from celeus.operations.runtime.concurrency import Naps, in_thread


def _paused(seconds: float) -> tuple[type[object], float]:
    """What a pause is, and the share of ``seconds`` that the thread was off the processor."""
    began, worked = time.perf_counter(), time.thread_time()
    while time.perf_counter() - began < seconds:
        pause()
    return type(PAUSE.get()), time.thread_time() - worked


async def test_work_in_a_thread_naps_between_its_rounds() -> None:
    kind, worked = await in_thread(_paused, 0.05)
    assert kind is Naps
    # Half a millisecond in every 2.5 at least is slept away
    assert worked < 0.045
    assert not isinstance(PAUSE.get(), Naps), "the caller's own pauses stay as they were"


async def test_an_error_in_the_thread_is_the_callers() -> None:
    with pytest.raises(ValueError, match="odd"):
        await in_thread(_odd)


def _odd() -> None:
    message = "odd"
    raise ValueError(message)

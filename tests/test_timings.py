"""What is noted of a request's time: its own, and what it has in common with others."""

import asyncio
import time

import pytest

from celeus.timings import MOST_SPANS, Timings, current, of_all, timed


def test_a_part_within_another_counts_for_the_outer_one() -> None:
    timings = Timings()
    timings.begin()
    with timed("lock"):
        time.sleep(0.01)
        with timed("statement", "SELECT 1"):
            time.sleep(0.01)
    with timed("statement"):
        pass
    assert timings.seconds["lock"] >= 0.02
    assert timings.seconds["statement"] < 0.01
    assert [span.part for span in timings.spans] == ["statement", "lock", "statement"]
    inner, outer, _ = timings.spans
    assert outer.began <= inner.began <= inner.ended <= outer.ended
    assert inner.statement == "SELECT 1"


def test_a_part_that_fails_has_taken_its_time() -> None:
    timings = Timings()
    timings.begin()
    with pytest.raises(KeyError), timed("fold"):
        raise KeyError
    assert set(timings.seconds) == {"fold"}
    assert timings.inside == 0


def test_of_many_parts_the_first_are_spans_and_all_are_time() -> None:
    timings = Timings()
    timings.begin()
    for _ in range(MOST_SPANS + 100):
        timings.note("statement", time.perf_counter() - 1)
    assert len(timings.spans) == MOST_SPANS
    assert timings.seconds["statement"] >= MOST_SPANS + 100


async def test_what_serves_several_is_noted_for_each_and_for_nobody_else() -> None:
    one, two, before = Timings(), Timings(), Timings()
    before.begin()
    one.note("lock", time.perf_counter())
    with of_all([one, None, two]), timed("fold"):
        await asyncio.sleep(0)
    assert one.seconds["fold"] == two.seconds["fold"] > 0
    assert [span.part for span in one.spans] == ["lock", "fold"]
    assert [span.part for span in two.spans] == ["fold"]
    assert current() is before
    assert before.seconds == {}
    with of_all([one]), timed("fold"):
        pass
    assert len(one.spans) == 3
    with of_all([None]), timed("fold"):
        pass
    assert before.spans == []

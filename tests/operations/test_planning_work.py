"""How a plan's simulation shares out its rounds; no clock has a say in it."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from celeus.core.insights.curve import widths
from celeus.core.interval import Interval
from celeus.core.plans.plan import Claim, PoolFacts, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.operations.insights import planning_worker
from celeus.operations.insights.planning_worker import Job, simulated

ITEMS = 2000
PRECISION = 0.1


def lines() -> list[dict[str, Any]]:
    """What is simulated of two policies."""
    guesses = np.random.default_rng(2).beta(0.5, 2.0, ITEMS)
    facts = PoolFacts("f" * 64, ITEMS, 0.0, 1.0, whole_losses=True)
    steps = widths(PRECISION, Interval(0.0, 1.0))
    ladders = [
        [
            make_plan(Claim("pool", 0.05, width), facts, policy_named(name), "0" * 64)
            for width in steps
        ]
        for name in ("sharp", "uniform")
    ]
    job = Job(
        ladders=ladders,
        asked=[steps.index(PRECISION)] * 2,
        scores=Scores(guesses, np.sqrt(guesses * (1.0 - guesses)), None),
        whole=True,
        guessed=True,
        risk=None,
        runs=200,
        seed=0,
    )
    _, *found = simulated(job)
    return found


@pytest.fixture(scope="module")
def found() -> Iterator[list[dict[str, Any]]]:
    """Of a quarter of the rounds that a plan may take."""
    with pytest.MonkeyPatch.context() as quicker:
        quicker.setattr(planning_worker, "WORK", planning_worker.WORK // 4)
        yield lines()


def running(clock: Callable[[], float], speed: float) -> Callable[[], float]:
    """The clock, so many times as fast from now on."""
    began = clock()
    return lambda: began + speed * (clock() - began)


def test_a_fast_machine_and_a_slow_one_make_the_same_plan(
    found: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine a hundred times slower all clocks run a hundred times faster."""
    with monkeypatch.context() as slower:
        for name in ("monotonic", "perf_counter", "process_time", "time"):
            slower.setattr(time, name, running(getattr(time, name), 100.0))
        assert lines() == found


def test_every_part_has_had_some_of_the_rounds(found: list[dict[str, Any]]) -> None:
    sessions = Counter((line["plan"], line.get("scenario")) for line in found if "outcome" in line)
    assert set(sessions) == {
        *((0, None), (0, "right"), (0, "useless")),
        *((1, None), (1, "useless")),
    }
    assert sessions[0, None] > sessions[1, None]
    assert max(sessions.values()) < 200

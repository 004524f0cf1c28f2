"""How a plan's simulation shares out its time: by work where there is enough, else by the clock."""

import time
from collections import Counter
from typing import Any

import numpy as np

from celeus.core.insights.curve import widths
from celeus.core.interval import Interval
from celeus.core.plans.plan import Claim, PoolFacts, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.operations.insights.planning_worker import Job, simulated

ITEMS = 2000
PRECISION = 0.1


def lines(seconds: float, work: float) -> list[dict[str, Any]]:
    """What is simulated of two policies in so many seconds, or so much work of a processor."""
    guesses = np.random.default_rng(2).beta(0.5, 2.0, ITEMS)
    facts = PoolFacts("f" * 64, ITEMS, 0.0, 1.0, whole_losses=True)
    steps = widths(PRECISION, Interval(0.0, 1.0))
    ladders = [
        [make_plan(Claim("pool", 0.05, one), facts, policy_named(name), "0" * 64) for one in steps]
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
        deadline=time.monotonic() + seconds,
        work=work,
    )
    _, *found = simulated(job)
    return found


def test_it_is_over_with_its_work_and_every_part_has_had_some() -> None:
    began = time.process_time()
    found = lines(120.0, 2.0)
    assert time.process_time() - began < 6.0
    sessions = Counter((one["plan"], one.get("scenario")) for one in found if "outcome" in one)
    assert set(sessions) == {
        *((0, None), (0, "right"), (0, "useless")),
        *((1, None), (1, "useless")),
    }
    assert sessions[0, None] > sessions[1, None]


def test_where_there_is_no_time_left_nothing_is_simulated() -> None:
    assert lines(-1.0, 2.0) == []

"""Runs of a system by chance on fixed items: the mean over all runs is covered, by one run each."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.plans.plan import Claim, PoolFacts, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import commitment
from celeus.core.session.session import begin_mean, judge_rounds
from celeus.simulation.sessions import seed_of
from tests.claims.counted import note
from tests.claims.sessions import ALPHA, credible
from tests.nightly import NIGHTLY

Floats = NDArray[np.float64]

ITEMS = 60
SESSIONS = 1000 if NIGHTLY else 24


def agents(chance: np.random.Generator) -> Floats:
    """Chances of failing of tasks that nearly always or nearly never succeed."""
    return chance.beta(0.5, 0.5, ITEMS)


def alike(chance: np.random.Generator) -> Floats:
    """Chances that are the same for all tasks."""
    del chance
    return np.full(ITEMS, 0.5)


WORLDS: dict[str, Callable[[np.random.Generator], Floats]] = {"agents": agents, "alike": alike}


def lost(world: str, number: int, target: str) -> bool:
    """Whether a session that is watched to its last run ever lost the mean of the chances."""
    chance = np.random.default_rng([number, 53])
    rates = WORLDS[world](chance)
    seed, mean = seed_of(number, 53), float(rates.mean())
    facts = PoolFacts("runs", ITEMS, 0.0, 1.0, whole_losses=True)
    claim = Claim(target=target, alpha=ALPHA, precision=0.3)  # type: ignore[arg-type]
    plan = make_plan(claim, facts, policy_named("sharp"), commitment(seed))
    guess = np.clip(rates + chance.normal(0.0, 0.1, ITEMS), 0.0, 1.0)
    session = begin_mean(plan, Scores(guess, np.zeros(ITEMS)), seed)

    def run(item: int) -> float:
        return float(chance.random() < rates[item])

    for _ in judge_rounds(session, run, past_stop=True):
        interval = session.question.interval
        if not interval.lower - 1e-9 <= mean <= interval.upper + 1e-9:
            return True
    return False


@pytest.mark.parametrize("world", WORLDS)
def test_the_mean_over_all_runs_is_covered(world: str) -> None:
    missed = sum(lost(world, number, "runs") for number in range(SESSIONS))
    note("runs", f"one of each item, {world}", ITEMS, SESSIONS, f"lost {missed}")
    assert credible(missed, SESSIONS)


def test_the_claim_about_the_answers_that_came_says_nothing_of_it() -> None:
    """Watched to the end it holds how these runs happened to come out."""
    assert sum(lost("alike", number, "pool") for number in range(24)) > 12

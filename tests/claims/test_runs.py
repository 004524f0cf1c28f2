"""Runs of a system by chance on fixed items: the mean over all runs is covered."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.ledger import Amendment
from celeus.core.plans.plan import Claim, PoolFacts, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import commitment
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session, begin_mean, judge_rounds
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
    """Return True if a session, watched to its last run, ever lost the mean of the chances."""
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


def same_answers(chance: np.random.Generator) -> Floats:
    """Tasks that always fail or never."""
    return (chance.random(ITEMS) < 0.3).astype(np.float64)


def rare(chance: np.random.Generator) -> Floats:
    """Many tasks that fail now and then."""
    return chance.beta(0.05, 2.0, 200)


def flaky(chance: np.random.Generator) -> Floats:
    """Tests of which most always pass, some never, and some by chance."""
    kind = chance.random(300)
    return np.where(kind < 0.8, 0.0, np.where(kind < 0.92, 1.0, 0.5))


REPEATED: dict[str, Callable[[np.random.Generator], Floats]] = {
    "agents": agents,
    "same answers": same_answers,
    "rare": rare,
    "alike": lambda _: np.full(20, 0.5),
}
RUNS = 1000 if NIGHTLY else 150
SLOW = 6
"""Draws after which a failure is known, where failures are slow."""


def repeated(rates: Floats, number: int, precision: float, policy: str = "sharp") -> Session[Mean]:
    """A session before its first draw, whose rounds may run any item again."""
    seed = seed_of(number, 59)
    facts = PoolFacts("runs", rates.size, 0.0, 1.0, whole_losses=True)
    claim = Claim("runs", ALPHA, precision, budget=10_000, repeats=True)
    plan = make_plan(claim, facts, policy_named(policy), commitment(seed))
    guess = np.full(rates.size, 0.5)
    return begin_mean(plan, Scores(guess, np.zeros(rates.size)), seed)


def loses(
    session: Session[Mean],
    rates: Floats,
    chance: np.random.Generator,
    slow: int,
    skipped: float = 0.0,
) -> bool:
    """Return True if the session loses the mean in RUNS; a failure comes ``slow`` late.

    A share ``skipped`` of the failures is judged by nobody.
    """
    mean, late = float(rates.mean()), dict[int, int]()
    for round_ in range(1, RUNS + 1):
        session.apply(session.propose())
        if chance.random() < rates[session.item(round_)]:
            late[round_] = round_ + slow
        else:
            session.observe(round_, 0.0)
        for ready in [failed for failed, due in late.items() if due <= round_]:
            hidden = skipped and chance.random() < skipped
            session.observe(ready, None if hidden else 1.0)
            del late[ready]
        interval = session.question.interval
        if not interval.lower - 1e-9 <= mean <= interval.upper + 1e-9:
            return True
    return False


@pytest.mark.parametrize("slow", [0, SLOW])
@pytest.mark.parametrize("world", REPEATED)
def test_the_mean_over_all_runs_is_covered_where_items_are_run_again(world: str, slow: int) -> None:
    missed, sessions = 0, 1000 if NIGHTLY else 8
    for number in range(sessions):
        chance = np.random.default_rng([number, 59, slow])
        rates = REPEATED[world](chance)
        missed += loses(repeated(rates, number, 0.1), rates, chance, slow)
    failures = f", failures {slow} draws late" if slow else ""
    note("runs", f"repeated, {world}{failures}", rates.size, sessions, f"lost {missed} times")
    assert credible(missed, sessions)


@pytest.mark.parametrize("world", ["agents", "alike"])
def test_the_mean_over_all_runs_is_covered_where_late_failures_are_skipped(world: str) -> None:
    missed, sessions = 0, 1000 if NIGHTLY else 8
    for number in range(sessions):
        chance = np.random.default_rng([number, 71])
        rates = REPEATED[world](chance)
        missed += loses(repeated(rates, number, 0.1), rates, chance, SLOW, skipped=0.1)
    pools = f"repeated, {world}, a tenth of the failures skipped"
    note("runs", pools, rates.size, sessions, f"lost {missed} times")
    assert credible(missed, sessions)


SLIPS, AFTER, WATCHED = 0.1, 10, 120
"""Share of runs misjudged at first, draws until one is corrected, and draws watched."""


def loses_corrected(world: str, number: int) -> bool:
    """Return True if a session loses the mean at a time when all its slips are corrected."""
    chance = np.random.default_rng([number, 67])
    rates = REPEATED[world](chance)
    session = repeated(rates, number, 0.1)
    mean, slips = float(rates.mean()), dict[int, float]()
    for round_ in range(1, WATCHED + AFTER + 1):
        session.apply(session.propose())
        loss = float(chance.random() < rates[session.item(round_)])
        if round_ <= WATCHED and chance.random() < SLIPS:
            slips[round_] = loss
        session.observe(round_, 1.0 - loss if round_ in slips else loss)
        if round_ - AFTER in slips:
            session.apply(Amendment(round_ - AFTER, slips.pop(round_ - AFTER)))
        interval = session.question.interval
        if not slips and not interval.lower - 1e-9 <= mean <= interval.upper + 1e-9:
            return True
    return False


@pytest.mark.parametrize("world", REPEATED)
def test_the_mean_over_all_runs_is_covered_where_slips_are_corrected(world: str) -> None:
    sessions = 1000 if NIGHTLY else 8
    missed = sum(loses_corrected(world, number) for number in range(sessions))
    items = REPEATED[world](np.random.default_rng(0)).size
    note("runs", f"repeated, {world}, slips corrected", items, sessions, f"lost {missed} times")
    assert credible(missed, sessions)


@pytest.mark.nightly
@pytest.mark.parametrize(("world", "precision", "runs"), [(agents, 0.1, 343), (flaky, 0.05, 578)])
def test_memory_of_an_items_own_runs_saves_runs(
    world: Callable[[np.random.Generator], Floats], precision: float, runs: int
) -> None:
    """A fixed sample of fresh items takes 383 and 833, repeats without a memory 468 and 1021."""
    taken = [stopped_after(world, number, precision) for number in range(48)]
    assert np.median(taken) <= 1.1 * runs


def stopped_after(
    world: Callable[[np.random.Generator], Floats], number: int, precision: float
) -> int:
    """The runs that a session takes."""
    chance = np.random.default_rng([number, 61])
    rates = world(chance)
    session = repeated(rates, number, precision)
    for _ in judge_rounds(session, lambda item: float(chance.random() < rates[item])):
        pass
    return session.folded

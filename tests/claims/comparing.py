"""Seeded sessions on the difference of two systems, watched until all is judged."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Verdict
from celeus.core.pools.comparison import surrogate_columns
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import commitment
from celeus.core.sessions.state import begin, rounds
from celeus.study.engine.simulation import Truth, ever_missed, seed_of
from tests.claims.sessions import ALPHA

Floats = NDArray[np.float64]
Chance = np.random.Generator
SLACK = 1e-12


def _pair(a: Floats, b: Floats, guess_a: Floats, guess_b: Floats, same: Floats | None) -> Truth:
    columns = surrogate_columns(guess_a, guess_b, Interval(0.0, 1.0), exclusive=same is not None)
    scores = Scores(columns["surrogate.0"], np.zeros(a.size), change=columns["change"])
    if same is not None:
        ends = [np.where(same > 0.0, 0.0, end) for end in (-1.0, 1.0)]
        scores = replace(scores, lower=ends[0], upper=ends[1])
    return Truth(a - b, scores, -1.0, 1.0, difference=True, reason="same answer")


def _guessed(chance: Chance, items: int, *, sign: float = 1.0, agree: float = 0.6) -> Truth:
    """Zero-one losses; guesses that know something, or the contrary of it."""
    guess = [np.clip(0.4 + 0.3 * chance.standard_normal(items), 0.02, 0.98) for _ in range(2)]
    rates = [one if sign > 0.0 else 1.0 - one for one in guess]
    losses = [(chance.random(items) < rate).astype(np.float64) for rate in rates]
    same = (chance.random(items) < agree).astype(np.float64)
    losses[1] = np.where(same > 0.0, losses[0], losses[1])
    return _pair(losses[0], losses[1], guess[0], guess[1], same)


def _rare(chance: Chance, items: int) -> Truth:
    differs = chance.random(items) < 0.05
    better = chance.random(items) < 0.7
    a, b = (differs & better).astype(np.float64), (differs & ~better).astype(np.float64)
    return _pair(a, b, np.full(items, 0.1), np.full(items, 0.1), None)


def _one_sided(chance: Chance, items: int) -> Truth:
    a = (chance.random(items) < 0.3).astype(np.float64)
    guess = np.clip(0.3 * a + 0.5 * chance.random(items), 0.0, 1.0)
    same = ((a == 0.0) & (chance.random(items) < 0.5)).astype(np.float64)
    return _pair(a, np.zeros(items), guess, np.full(items, 0.2), same)


def _bounded(chance: Chance, items: int) -> Truth:
    """Of some items only one system can be wrong."""
    truth = _guessed(chance, items)
    lower, upper = truth.scores.lower, truth.scores.upper
    assert lower is not None
    assert upper is not None
    told = chance.random(items) < 0.5
    lower = np.where(told & (truth.loss > 0.0), 0.0, lower)
    upper = np.where(told & (truth.loss < 0.0), 0.0, upper)
    return replace(truth, scores=replace(truth.scores, lower=lower, upper=upper))


WORLDS: dict[str, Callable[[Chance, int], Truth]] = {
    "informative": _guessed,
    "anti-correlated": lambda chance, items: _guessed(chance, items, sign=-1.0),
    "rare": _rare,
    "one-sided": _one_sided,
    "all differ": lambda chance, items: _guessed(chance, items, agree=0.0),
    "bounds": _bounded,
}


@dataclass(frozen=True, slots=True)
class Lost:
    """Of some sessions, how many ever lost the mean and how many gave a wrong first verdict."""

    sessions: int
    missed: int
    wrong: int

    def __add__(self, other: "Lost") -> "Lost":
        return Lost(
            self.sessions + other.sessions, self.missed + other.missed, self.wrong + other.wrong
        )


def lost(world: str, items: int, first: int, sessions: int) -> Lost:
    """Sessions ``first`` and on, with a precision, each on a pool of its own."""
    missed = 0
    for number in range(first, first + sessions):
        truth = WORLDS[world](np.random.default_rng([number, items, 14]), items)
        missed += _judged(truth, Claim(alpha=ALPHA, precision=0.1), seed_of(number, 14))[0]
    return Lost(sessions, missed, 0)


def border(beside: tuple[int, int], items: int, first: int, sessions: int) -> Lost:
    """Verdicts where the mean is ``beside`` items from 0, and the margin that many."""
    mean, margin = beside
    missed = wrong = 0
    for number in range(first, first + sessions):
        chance = np.random.default_rng([number, items, mean % 97, 15])
        place, pairs = chance.permutation(items), items // 10
        difference = np.zeros(items)
        difference[place[: pairs + max(mean, 0)]] = 1.0
        difference[place[items - pairs - max(-mean, 0) :]] = -1.0
        guess = np.clip(0.3 * difference + 0.3 * chance.standard_normal(items), -1.0, 1.0)
        same = (difference == 0.0) & (chance.random(items) < 0.7)
        ends = [np.where(same, 0.0, end) for end in (-1.0, 1.0)]
        scores = Scores(guess, np.zeros(items), lower=ends[0], upper=ends[1])
        truth = Truth(difference, scores, -1.0, 1.0, difference=True)
        claim = Claim(alpha=ALPHA, decide=margin / items)
        one, other = _judged(truth, claim, seed_of(number, 15))
        missed += one
        wrong += other
    return Lost(sessions, missed, wrong)


def _judged(truth: Truth, claim: Claim, seed: bytes) -> tuple[bool, bool]:
    """The mean was ever lost; the first verdict was wrong. All items are judged."""
    plan = make_plan(claim, truth.facts, policy_named("sharp"), commitment(seed))
    state = begin(plan, truth.scores, seed)
    for _ in rounds(plan, state, truth.loss_of, past_stop=True):
        pass
    mean = float(truth.loss.mean())
    verdict = state.verdict or Verdict(0.0)
    return ever_missed(state, mean), verdict.contradicted(Interval(mean, mean), SLACK)

"""Seeded sessions on fresh pools, and how many of them ever lost the true risk."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binomtest

from celeus.core.ledger import Change
from celeus.core.plans.claim import LOOSE_SHARE
from celeus.core.plans.pair_plan import narrowest
from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import commitment
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session, begin_mean
from celeus.simulation.sessions import Truth, ever_missed, oracle_scores, seed_of

Floats = NDArray[np.float64]

ALPHA = 0.05
REJECTED_AT = 1e-3
CHANGES = 2
MEAN = 0.3


def credible(missed: int, sessions: int, alpha: float = ALPHA) -> bool:
    """Whether an exact binomial test allows that at most ``alpha`` of the sessions miss."""
    return bool(binomtest(missed, sessions, alpha, alternative="greater").pvalue >= REJECTED_AT)


@dataclass(frozen=True, slots=True)
class World:
    """How a fresh pool of ``items`` is drawn from a population whose risk is known exactly."""

    name: str
    risk: float
    pool: Callable[[np.random.Generator, int], Truth]
    bound: str
    precision: float


def _scored(loss: Floats, surrogate: Floats, proxy: Floats | None = None) -> Truth:
    weight = np.sqrt(surrogate * (1.0 - surrogate))
    if proxy is not None:
        weight = np.abs(proxy - surrogate)
    return Truth(loss, Scores(surrogate, weight, proxy))


def _chances(chance: np.random.Generator, items: int) -> Floats:
    return chance.beta(2.0 * MEAN, 2.0 * (1.0 - MEAN), items)


def _informative(chance: np.random.Generator, items: int) -> Truth:
    """Calibrated surrogate, scores from a pseudo-label that is right four times in five."""
    p = _chances(chance, items)
    loss = (chance.random(items) < p).astype(np.float64)
    proxy = np.where(chance.random(items) < 0.8, loss, 1.0 - loss)
    return _scored(loss, p, proxy)


def _constant(chance: np.random.Generator, items: int) -> Truth:
    """Nothing known beforehand: more than half of the pool is drawn before the stop."""
    loss = (chance.random(items) < 0.5).astype(np.float64)
    return _scored(loss, np.full(items, 0.5))


def _rare(chance: np.random.Generator, items: int) -> Truth:
    """Two losses in a hundred."""
    p = 0.02 * chance.exponential(size=items)
    loss = (chance.random(items) < 0.02).astype(np.float64)
    return _scored(loss, np.minimum(p, 1.0))


def _opposed(chance: np.random.Generator, items: int) -> Truth:
    """The surrogate is high where the loss is low."""
    p = _chances(chance, items)
    loss = (chance.random(items) < p).astype(np.float64)
    return _scored(loss, 1.0 - p)


def _graded(chance: np.random.Generator, items: int) -> Truth:
    """Losses anywhere on the scale from -1 to 2."""
    p = np.clip(_chances(chance, items), 1e-3, 1.0 - 1e-3)
    unit = chance.beta(4.0 * p, 4.0 * (1.0 - p))
    weight = 3.0 * np.sqrt(p * (1.0 - p))
    return Truth(3.0 * unit - 1.0, Scores(3.0 * p - 1.0, weight, None), -1.0, 2.0)


def _near_perfect(chance: np.random.Generator, items: int) -> Truth:
    """The surrogate is wrong for one item in fifty."""
    p = _chances(chance, items)
    loss = (chance.random(items) < p).astype(np.float64)
    guess = np.where(chance.random(items) < 0.98, loss, 1.0 - loss)
    return _scored(loss, np.clip(guess, 0.02, 0.98))


def _judges(chance: np.random.Generator, items: int) -> Truth:
    """Four judges: two good ones, one who says nothing, one who is mostly wrong."""
    loss = (chance.random(items) < MEAN).astype(np.float64)
    right = chance.random((items, 4)) < (0.95, 0.85, 0.5, 0.3)
    columns = np.where(right, loss[:, None], 1.0 - loss[:, None])
    truth = _scored(loss, columns.mean(axis=1))
    return replace(truth, scores=replace(truth.scores, columns=columns))


def _graded_risk() -> float:
    """Population risk of the graded world, the clipping of p included."""
    law = beta(2.0 * MEAN, 2.0 * (1.0 - MEAN))
    inner = law.expect(lambda p: p, lb=1e-3, ub=1.0 - 1e-3)
    mean = inner + 1e-3 * law.cdf(1e-3) + (1.0 - 1e-3) * law.sf(1.0 - 1e-3)
    return float(3.0 * mean - 1.0)


WORLDS = {
    world.name: world
    for world in (
        World("informative surrogate", MEAN, _informative, "clopper_pearson", 0.3),
        World("more than half drawn", 0.5, _constant, "hoeffding", 0.15),
        World("rare losses", 0.02, _rare, "kl", 0.1),
        World("anti-correlated surrogate", MEAN, _opposed, "clopper_pearson", 0.3),
        World("graded losses", _graded_risk(), _graded, "kl", 0.9),
    )
}
FURTHER_WORLDS = {
    world.name: world
    for world in (
        World("near-perfect surrogate", MEAN, _near_perfect, "clopper_pearson", 0.2),
        World("three quarters drawn", 0.5, _constant, "hoeffding", 0.1),
        World("four judges weighed", MEAN, _judges, "clopper_pearson", 0.2),
    )
}

HARDEST = ("informative surrogate", "more than half drawn")
"""Where most of alpha is used up."""


@dataclass(frozen=True, slots=True)
class Case:
    """Sessions of one policy for one target in one world; ``engine_alpha`` breaks them."""

    policy: str
    target: str
    world: str
    items: int
    engine_alpha: float = ALPHA
    changing: bool = False

    @property
    def pools(self) -> World:
        """Where the pools come from."""
        return (WORLDS | FURTHER_WORLDS)[self.world]

    def claim(self) -> Claim:
        """What every session of this case is asked to certify."""
        world = self.pools
        if self.target == "population" and policy_named(self.policy).has_goal:
            return self._paired(world)
        if self.target == "pool":
            return Claim("pool", self.engine_alpha, world.precision)
        # A width no pool of this size can miss by much: the stop comes before exhaustion.
        wide = Claim("population", self.engine_alpha, population_bound=world.bound)
        truth = world.pool(np.random.default_rng(0), self.items)
        plan = make_plan(wide, truth.facts, policy_named("celeus"), "")
        widest = plan.bound.at_centre(plan.items, plan.scale)
        reach = widest + world.precision
        return Claim(
            "population",
            self.engine_alpha,
            min(reach, 0.9 * plan.scale.width),
            population_bound=world.bound,
        )

    def _paired(self, world: World) -> Claim:
        """Pairs, for a width that most pools reach before exhaustion."""
        facts = world.pool(np.random.default_rng(0), self.items).facts
        width = facts.upper - facts.lower
        level = (1.0 - LOOSE_SHARE) * self.engine_alpha
        goal = world.precision / width
        precision = narrowest(self.items, level, goal, 0.5, exact=facts.whole_losses)
        return Claim("population", self.engine_alpha, min(1.3 * precision, 0.9) * width)


@dataclass(frozen=True, slots=True)
class Tally:
    """What happened in some sessions of a case; ``drawn`` are shares of the pool at the stop.

    A changing case counts the last of its stops.
    """

    sessions: int
    missed_by_stop: int
    missed_ever: int
    drawn: tuple[float, ...]


def tally(case: Case, sessions: int) -> Tally:
    """Sessions of a case, each on a pool of its own."""
    world, claim = case.pools, case.claim()
    by_stop = ever = 0
    drawn = []
    for number in range(sessions):
        truth = world.pool(np.random.default_rng([number, case.items]), case.items)
        risk = float(truth.loss.mean()) if case.target == "pool" else world.risk
        state, at_stop, lost_by_stop = _run(case, truth, claim, seed_of(number, 0), risk)
        by_stop += lost_by_stop
        ever += ever_missed(state, risk)
        drawn.append(at_stop / case.items)
    return Tally(sessions, by_stop, ever, tuple(drawn))


def _run(
    case: Case, truth: Truth, claim: Claim, seed: bytes, risk: float
) -> tuple[Session[Mean], int, bool]:
    """Run past the stop to exhaustion; the labels at the stop, and a miss up to there."""
    policy = policy_named(case.policy)
    known = oracle_scores(truth) if policy.name == "oracle" else truth.scores
    plan = make_plan(claim, truth.facts, policy, commitment(seed))
    state = begin_mean(plan, known, seed)
    at_stop, lost, changes = 0, False, CHANGES if case.changing else 0
    while state.can_draw:
        draw = state.propose()
        state = state.apply(draw)
        state = state.observe(draw.round, float(truth.loss[draw.item]))
        if not at_stop and state.stop_reason is not None:
            if changes and state.stopping.precision is not None:
                changes -= 1
                # Chosen by looking: further where the interval lies low.
                share = (
                    0.6
                    if state.question.interval.lower + state.question.interval.upper < 2.0 * risk
                    else 0.85
                )
                state = state.apply(Change(share * state.stopping.precision, plan.budget))
                continue
            at_stop, lost = state.folded, ever_missed(state, risk)
    return state, at_stop, lost

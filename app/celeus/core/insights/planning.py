"""Planning: how many labels a session would need, by simulation with assumed losses.

Notation, on the unit scale: x_i surrogate of item i, m_i its assumed mean loss. A simulated
session draws items as a real one does; the loss of item i is then

    zero_one   1 with probability m_i, else 0
    others     Beta(2 m_i, 2 (1 - m_i)): mean m_i, a third of the greatest variance it could have

    right      m_i = x_i                       the surrogate means what it says
    useless    m_i = x_j of an item j at random      the same losses, and the surrogate knows none

With weights j is any item by weight, and the pool's mean is the weighted one.

Of a difference of two systems the loss is 1/2, none, but for a chance e_i where surrogates say one;
p_i = (m_i - (1 - e_i) / 2) / e_i is then its mean where there is a difference, and the loss is
drawn around p_i. A known loss is what it is in either scenario, and no other item's.

With an assumed risk the odds of all p_i (x_i where there are no e_i) are multiplied by one factor,
so that the pool's mean is that risk. Where no surrogate tells items apart, all m_i are the same:
those of the assumed risk, without one the middle of the scale, where most labels are needed.
Nothing that is certified rests on any of this.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.insights.forecast import Extrapolation, RoundProgress
from celeus.core.interval import Interval
from celeus.core.plans.pair_plan import narrowest
from celeus.core.plans.plan import FINEST_PRECISION, Plan
from celeus.core.plans.stopping import StopReason
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import Numbers
from celeus.core.session.session import begin_mean, judge_rounds
from celeus.core.special import beta_quantile, normal_quantile
from celeus.errors import require
from celeus.units import LEAST_DISTANCE

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Scenario = Literal["right", "useless"]

CONCENTRATION = 2.0
MIDDLE = 0.5
POWER = 0.9
"""The power of the fixed-sample test a decision is compared with."""
ROUNDS_BETWEEN_LOOKS = 100
OPENING_WORK = 25.0
"""The cost of beginning and ending a session, in rounds, beside its items."""
ITEMS_BY_WORK = 300.0
"""Items that a session begins with in about the time of one of its rounds."""
TILT_BISECTIONS = 60
LARGEST_TILT = 60.0
MOST_TILTED = 5000
"""Items that stand for all when the factor of the odds is sought."""
REACHED = frozenset({StopReason.TARGET_REACHED, StopReason.DECIDED})


@dataclass(frozen=True, slots=True, eq=False)
class Assumption:
    """Assumed losses of a pool, before any is known.

    ``mean`` (shape [N], on the unit scale) is what each item's loss is drawn around; ``whole``
    says that losses are at the ends of the scale, or where there is a ``change``, a chance of each
    item, in its middle but for that. Where not ``informed`` all means are the same and the two
    scenarios are one. ``known`` are the items whose mean is their loss. ``item_weight`` is how much
    every item counts, with a mean of 1; None where all count the same.
    """

    mean: Floats
    whole: bool
    informed: bool
    change: Floats | None = None
    known: Mask | None = None
    item_weight: Floats | None = None

    def risk(self, scale: Interval) -> float:
        """Mean loss of the pool under this assumption, by weight, on the loss scale."""
        return scale.lower + scale.width * _mean(self.mean, self.item_weight)

    def variance(self, scale: Interval) -> float:
        """Variance of the pool's losses under this assumption, on the loss scale.

        With weights that of what an even draw tells of their weighted mean, w (l - R).
        """
        change = np.ones(self.mean.size) if self.change is None else self.change
        share = _share(self.mean, change)
        spread = share * (1.0 - share) * (1.0 if self.whole else 1.0 / (1.0 + CONCENTRATION))
        square = MIDDLE**2 * (1.0 - change) + change * (share**2 + spread)
        if self.known is not None:
            square = np.where(self.known, self.mean**2, square)
        risk = _mean(self.mean, self.item_weight)
        squares = np.ones(1) if self.item_weight is None else self.item_weight**2
        found = float((squares * (square - 2.0 * risk * self.mean + risk**2)).mean())
        # Of hardly any variance rounding leaves a little less than none
        return scale.width**2 * max(found, 0.0)


def check_risk(risk: float | None, scale: Interval) -> None:
    """Refuse a mean loss to be assumed that is not inside the scale."""
    rule = f"inside the scale, above {scale.lower:g} and below {scale.upper:g}"
    require("risk", rule, risk, holds=risk is None or scale.lower < risk < scale.upper)


def assumption_of(
    scores: Scores, scale: Interval, *, whole: bool, has_surrogate: bool, risk: float | None
) -> Assumption:
    """Return losses as the surrogate predicts them, moved to the mean ``risk`` where given.

    ``has_surrogate`` is false for a pool whose surrogate only stands in for none.
    """
    unit = np.clip((scores.surrogate - scale.lower) / scale.width, 0.0, 1.0)
    bounds, change = scores.bounds, scores.change
    known = None if bounds is None else bounds.known
    free = np.ones(unit.size, dtype=bool) if known is None else ~known
    stated = unit[free] if change is None else np.stack((unit[free], change[free]), axis=1)
    informed = has_surrogate and bool(free.any()) and bool(np.ptp(stated, axis=0).any())
    if not has_surrogate:
        unit, change = np.full(unit.size, MIDDLE), None
    if bounds is not None:
        unit = np.where(free, unit, (bounds.lower - scale.lower) / scale.width)
    if risk is not None:
        chance = np.where(free, 1.0 if change is None else change, 0.0)
        unit = _tilted(unit, chance, (risk - scale.lower) / scale.width, scores.item_weight)
    return Assumption(unit, whole, informed, change, known, scores.item_weight)


def _mean(values: Floats, weight: Floats | None) -> float:
    return float(values.mean() if weight is None else np.average(values, weights=weight))


def _share(mean: Floats, change: Floats) -> Floats:
    """Mean of every item's loss where there is a difference; the middle where there is none."""
    part = np.divide(mean - MIDDLE, change, out=np.zeros(mean.size), where=change > 0.0)
    return np.asarray(np.clip(MIDDLE + part, 0.0, 1.0))


def _tilted(mean: Floats, change: Floats, risk: float, weight: Floats | None) -> Floats:
    """The means with all odds multiplied by one factor, so that they average ``risk`` by weight.

    ``change`` is the chance of a difference, 0 for known losses: those, and items the surrogate is
    certain of, stay. Where they are too many the average is as near as can be.
    """
    share = _share(mean, change)
    ordered = np.argsort(mean)[:: max(1, mean.size // MOST_TILTED)]
    ordered_weight = None if weight is None else weight[ordered]

    def moved(items: slice | NDArray[np.int64], midpoint: float) -> Floats:
        return mean[items] + change[items] * (_with_odds(share[items], midpoint) - share[items])

    low, high = -LARGEST_TILT, LARGEST_TILT
    for _ in range(TILT_BISECTIONS):
        midpoint = (low + high) / 2.0
        if _mean(moved(ordered, midpoint), ordered_weight) < risk:
            low = midpoint
        else:
            high = midpoint
    return np.clip(moved(slice(None), (low + high) / 2.0), 0.0, 1.0)


def _with_odds(unit: Floats, log_factor: float) -> Floats:
    raised = unit * np.exp(log_factor)
    return np.asarray(raised / (1.0 - unit + raised))


class Losses:
    """Losses of the items of one simulated session, drawn when the items are."""

    __slots__ = ("_assumed", "_drawable", "_numbers", "_scale", "_scenario", "_shares")

    def __init__(
        self, assumption: Assumption, scale: Interval, scenario: Scenario, seed: bytes
    ) -> None:
        self._assumed = assumption
        self._scale = scale
        self._scenario = scenario
        self._numbers = Numbers(seed, "losses")
        known = assumption.known
        self._drawable = np.arange(assumption.mean.size) if known is None else np.nonzero(~known)[0]
        weight = assumption.item_weight
        self._shares = None if weight is None else np.cumsum(weight[self._drawable])

    def of_item(self, item: int) -> float:
        """A loss the item might have, on the loss scale."""
        assumed = self._assumed
        known = assumed.known is not None and bool(assumed.known[item])
        if self._scenario == "useless" and not known:
            item = self._other()
        mean = float(assumed.mean[item])
        unit = mean if known else self._unit(mean, item)
        return min(self._scale.lower + self._scale.width * unit, self._scale.upper)

    def _other(self) -> int:
        """Any item that may be drawn, by weight: the mean loss is then the assumed one."""
        number, others, shares = self._numbers.next(), self._drawable, self._shares
        place = int(number * others.size)
        if shares is not None:
            place = int(np.searchsorted(shares, number * shares[-1], side="right"))
        return int(others[min(place, others.size - 1)])

    def _unit(self, mean: float, item: int) -> float:
        if self._assumed.change is not None:
            change = float(self._assumed.change[item])
            if self._numbers.next() >= change:
                return MIDDLE
            mean = min(max(MIDDLE + (mean - MIDDLE) / change, 0.0), 1.0)
        number = self._numbers.next()
        if self._assumed.whole:
            return float(number < mean)
        if not 0.0 < mean < 1.0:
            return mean
        shape = CONCENTRATION * mean, CONCENTRATION * (1.0 - mean)
        loss = beta_quantile(*shape, number)
        return min(max(loss, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """The end of a simulated session; ``reached`` unless budget or pool ended it.

    ``finer`` tells what finer widths would take; None where that is not known.
    """

    labels: int
    reached: bool
    width: float
    finer: Extrapolation | None = None

    @classmethod
    def of(cls, values: Sequence[Any]) -> Self:
        """The outcome that was sent as `astuple`."""
        labels, reached, width, finer = values
        if finer is not None:
            goal, course, lag = finer
            finer = Extrapolation(goal, RoundProgress(*course), lag)
        return cls(labels, reached, width, finer)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A session to simulate: its plan, what it knows of the items, and what is assumed of them."""

    plan: Plan
    scores: Scores
    assumption: Assumption
    scenario: Scenario

    def work(self, labels: int) -> float:
        """The cost of a session until so many labels, in rounds of one."""
        return OPENING_WORK + self.plan.items / ITEMS_BY_WORK + labels

    def run(self, number: int, seed: int) -> Iterator[int | SimulationOutcome]:
        """Simulate session ``number``: its labels so far now and then, at last its outcome.

        Equal numbers and seeds give equal sessions; a caller may stop listening at any time.
        """
        run_seed = f"planning {seed} run {number}".encode()
        losses = Losses(self.assumption, self.plan.scale, self.scenario, run_seed)
        state = begin_mean(self.plan, self.scores, run_seed)
        state.question.ratings = None

        def loss(item: int) -> float:
            limits = state.question.fold.remainder.limits(item)
            return min(max(losses.of_item(item), limits.lower), limits.upper)

        for _ in judge_rounds(state, loss):
            if state.folded % ROUNDS_BETWEEN_LOOKS == 0:
                yield state.folded
        reached, finer = state.stop_reason in REACHED, Extrapolation.of(state)
        yield SimulationOutcome(state.folded, reached, state.question.interval.width, finer)


@dataclass(frozen=True, slots=True)
class Spread:
    """Median of simulated numbers, and their 10 and 90 %."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "Spread":
        """That of at least one number."""
        low, median, high = np.quantile(numbers, (0.1, 0.5, 0.9), method="nearest")
        return cls(float(median), float(low), float(high))


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of the simulated sessions of a case.

    ``labels`` are those asked for until the stop, also of sessions that ended with their budget or
    pool; ``reached`` is the share that did not. ``more_than`` labels had been asked for in a
    session that did not end; it is given only when none did.
    """

    runs: int
    reached: float | None
    labels: Spread | None
    width: Spread | None
    more_than: int | None

    @classmethod
    def of_ended(
        cls, labels: Sequence[int], reached: Sequence[bool], widths: Sequence[float] = ()
    ) -> Self:
        """Return that of at least one session, all of which ended."""
        width = Spread.of(widths) if widths else None
        return cls(len(labels), sum(reached) / len(reached), Spread.of(labels), width, None)


def summary(outcomes: Sequence[SimulationOutcome], labels_so_far: int) -> Summary:
    """Sum up the sessions that ended; ``labels_so_far`` is the longest way one came."""
    if not outcomes:
        return Summary(0, None, None, None, labels_so_far)
    return Summary.of_ended(
        [outcome.labels for outcome in outcomes],
        [outcome.reached for outcome in outcomes],
        [outcome.width for outcome in outcomes],
    )


@dataclass(frozen=True, slots=True)
class Floor:
    """Widths that stay when the whole pool is judged, on the loss scale.

    ``assumed`` is that of a pool with the assumed risk, ``middle`` that of one with a risk
    half-way, where it is widest.
    """

    assumed: float
    middle: float


def floor_of(plan: Plan, risk: float) -> Floor:
    """Return the width no number of labels gets below: 0 unless the target is the population."""
    bound, scale = plan.bound, plan.scale
    if not bound.paired:
        assumed_width = bound.widen(Interval(risk, risk), plan.items, scale).width
        return Floor(assumed_width, bound.at_centre(plan.items, scale))
    unit = (risk - scale.lower) / scale.width
    # The side towards the middle is the one that stays wide.
    nearer = min(unit, 1.0 - unit)
    widths = (
        narrowest(plan.items, plan.alpha1, FINEST_PRECISION, end, exact=bound.exact) * scale.width
        for end in (nearer, MIDDLE)
    )
    return Floor(*widths)


def uniform_draws(variance: float, items: float, errors: float) -> int:
    """Draws without replacement from ``items`` until 1 / ``errors`` is one standard error."""
    needed = variance * errors**2
    return math.ceil(needed / (1.0 + needed / items))


class FixedSample(NamedTuple):
    """Labels of a fixed sample that is judged whole before anybody looks.

    ``informed`` is one that knows variance and mean beforehand; ``safe`` has the width asked for
    whatever they are, None of two systems, which are ``paired``, and where items have weights.
    """

    informed: int
    safe: int | None
    paired: bool


def fixed_sample(plan: Plan, assumption: Assumption) -> FixedSample | None:
    """Return the labels of a fixed sample for the same width, or, of two systems, a test of POWER.

    None where the plan asks for nothing that such a sample would answer.
    """
    items = plan.items if plan.target == "pool" else math.inf
    counts, safe = [], None
    variance, risk = assumption.variance(plan.scale), abs(assumption.risk(plan.scale))
    if plan.precision is not None:
        errors = normal_quantile(1.0 - plan.alpha / 2.0) / (plan.precision / 2.0)
        most = (plan.scale.width / 2.0) ** 2
        if not plan.difference and assumption.item_weight is None:
            safe = uniform_draws(most, items, errors)
        # Guesses that are all at one end of the scale tell nothing of how losses vary
        counts.append(uniform_draws(variance or most, items, errors))
    if plan.difference and plan.decide is not None:
        distance = max(risk, plan.decide - risk)
        errors = (normal_quantile(1.0 - plan.alpha) + normal_quantile(POWER)) / max(
            distance, LEAST_DISTANCE
        )
        counts.append(uniform_draws(variance, items, errors))
    return FixedSample(min(counts), safe, plan.difference) if counts else None

"""Labels by precision: sessions simulated over what the truth may be, at several widths each.

Notation: x_i surrogate of item i on the unit scale, x their mean, m_i its assumed mean loss. No
surrogate is as good as it says, and its mean is not that of the losses. So run k supposes

    m_i = r + t (x_i - x),    r / (1 - r) = e^shift x / (1 - x)

    t       from LEAST_WORTH u to u, u being the largest t <= 1 with corr(m, l) <= MOST_CORRELATED
    shift   from -LARGEST_SHIFT to LARGEST_SHIFT

evenly, by a sequence of points (t, shift) of which a few cover the square already. No m_i is nearer
to 0 than LEFT_OPEN r, or to 1 than LEFT_OPEN (1 - r): hard guesses, 0 or 1, are not certain. Real
surrogates are within these limits, most of them: docs/planning.md#how-near-it-comes. The shift is 0
where the mean loss is given, of a difference, and where no surrogate tells items apart. Of a
difference the chances that there is one are drawn towards their mean as well.

A session bets for the width it is to stop at, and passes coarser ones late. So every run is
simulated anew at each of several widths, coarse ones first, every next one half as wide. Where one
was not, its labels follow from the information that its rounds brought at the width before
(`forecast.Extrapolation`), since coarse sessions pay for padding and learning that fine ones
hardly feel. Of a published policy, which has no goal, they follow from the labels n' there, with N
items and the width f that is left when all are judged:

    1/n - 1/N = (w^2 - f^2) / (w'^2 - f^2) (1/n' - 1/N)

Both times what that was off by, on the average, in runs that were simulated at both; BELIEF further
runs are taken to be off by nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from celeus.core.insights.planning import (
    MIDDLE,
    Assumption,
    Case,
    Floats,
    SimulationOutcome,
    Spread,
)
from celeus.core.interval import Interval
from celeus.core.plans.plan import Plan
from celeus.core.pools.surrogates import Scores
from celeus.core.special import expit, logit

LEAST_WORTH = 0.25
MOST_CORRELATED = 0.85
LARGEST_SHIFT = 1.5
LEFT_OPEN = 0.1
HARD_SHARE = 0.1
"""Guesses of exactly 0 or 1 that are worth a word, as a share of all."""
STEPS = (0.7548776662466927, 0.5698402909980532)
"""Steps of a sequence that fills a square evenly: 1/g and 1/g^2 with g^3 = g + 1."""
COARSEST = 0.5
FINEST = 0.01
"""Shares of the scale between which widths lie, but for the next finer one than is asked for."""
HALVED = 2.0
BELIEF = 4.0
"""Sessions that a width drawn out counts for, beside those simulated there too."""
LARGEST_SHARE = 0.1
SCALE_SHARE = 0.05
LABELS_BY_VARIANCE = 18.0
"""Labels times width^2 over variance, of sessions without a surrogate, about."""
UNIT = Interval(0.0, 1.0)
ROUND_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Point:
    """The labels of a session that stops at ``precision``; None: at its answers.

    ``runs`` were simulated there; those that were not are ``extrapolated`` from coarser ones, all
    of them where that is true. ``reached`` is the share that did not end with budget or pool.
    """

    precision: float | None
    labels: Spread
    reached: float
    runs: int
    extrapolated: bool


class Tempering(NamedTuple):
    """The mean losses sessions suppose for guesses of exactly 0 or 1, a ``share`` of all.

    ``zeros`` is the least and the largest mean loss of items guessed 0, ``ones`` how far below 1
    that of items guessed 1 is; None where there are none.
    """

    share: float
    zeros: tuple[float, float] | None
    ones: tuple[float, float] | None


@dataclass(frozen=True, slots=True, eq=False)
class PoolHypothesis:
    """A possible truth about a pool: an assumption, and how far surrogates may be off."""

    assumption: Assumption
    largest: float
    shift: float

    @classmethod
    def of(cls, assumption: Assumption, *, risk_given: bool) -> "PoolHypothesis":
        """Return the hypothesis of an assumption; ``risk_given``: its mean loss was given."""
        spread = math.sqrt(assumption.variance(UNIT))
        deviation = float(np.std(assumption.mean))
        largest = min(1.0, MOST_CORRELATED * spread / deviation) if deviation > 0.0 else 1.0
        shifts = assumption.informed and assumption.change is None and not risk_given
        return cls(assumption, largest, LARGEST_SHIFT if shifts else 0.0)

    def case(self, plan: Plan, scores: Scores, run: int) -> Case:
        """The session of a ``run`` under a plan."""
        across, up = ((MIDDLE + step * (run + 1)) % 1.0 for step in STEPS)
        worth = self.largest * (LEAST_WORTH + (1.0 - LEAST_WORTH) * across)
        shift = self.shift * (2.0 * up - 1.0)
        assumed = self.assumption
        if assumed.informed:
            change = assumed.change
            if change is not None:
                change = self._drawn_in(change, worth, 0.0)
            mean = self._drawn_in(assumed.mean, worth, shift)
            assumed = replace(assumed, mean=mean, change=change)
        return Case(plan, scores, assumed, "right")

    def tempered(self, plan: Plan, scores: Scores, runs: int) -> "Tempering | None":
        """Return how certain guesses are tempered; None where these are few, or all are known."""
        assumed = self.assumption
        free = np.ones(assumed.mean.size, dtype=bool) if assumed.known is None else ~assumed.known
        ends = [free & (assumed.mean == end) for end in (0.0, 1.0)]
        share = sum(int(end.sum()) for end in ends) / max(int(free.sum()), 1)
        if share < HARD_SHARE or not assumed.informed or assumed.change is not None:
            return None
        firsts = [int(end.argmax()) if end.any() else None for end in ends]
        means = [self.case(plan, scores, run).assumption.mean for run in range(runs)]
        first, last = (None if item is None else [mean[item] for mean in means] for item in firsts)
        return Tempering(
            share,
            None if first is None else (float(min(first)), float(max(first))),
            None if last is None else (float(1.0 - max(last)), float(1.0 - min(last))),
        )

    def _drawn_in(self, values: Floats, worth: float, shift: float) -> Floats:
        """The values of items that are not known, drawn towards their mean, which is shifted."""
        known, weight = self.assumption.known, self.assumption.item_weight
        free = np.ones(values.size, dtype=bool) if known is None else ~known
        free_weight = None if weight is None else weight[free]
        centre = float(np.average(values[free], weights=free_weight))
        shifted = float(expit(logit(centre) + shift))
        least, most = LEFT_OPEN * shifted, 1.0 - LEFT_OPEN * (1.0 - shifted)
        drawn_in = np.clip(shifted + worth * (values - centre), least, most)
        return np.where(free, drawn_in, values)


def widths(precision: float, scale: Interval) -> list[float]:
    """The precision, and others by halves, from the coarsest to the finest."""
    coarser, finer = precision, precision / HALVED
    found = [precision, finer]
    while (coarser := coarser * HALVED) <= COARSEST * scale.width:
        found.insert(0, coarser)
    while (finer := finer / HALVED) >= FINEST * scale.width:
        found.append(finer)
    return [float(f"{width:.{ROUND_DIGITS}g}") for width in found]


def points(
    plans: Sequence[Plan],
    floor: float,
    outcomes: Mapping[tuple[int, int], SimulationOutcome],
) -> list[Point]:
    """The curve of ``outcomes`` by place in ``plans`` and run; empty where none is of the first.

    ``plans`` go from coarse to fine; ``floor`` is the width left when all items are judged.
    """
    found: list[Point] = []
    now = {run: outcome for (place, run), outcome in outcomes.items() if place == 0}
    for number, plan in enumerate(plans if now else ()):
        simulated = {
            run: outcome
            for (place, run), outcome in outcomes.items()
            if place == number and run in now
        }
        if number:
            longer = {
                run: _finer(outcome, plans[number - 1], plan, floor) for run, outcome in now.items()
            }
            pairs = [(outcome.labels, longer[run].labels) for run, outcome in simulated.items()]
            off = _mean_ratio([taken / drawn for taken, drawn in pairs if taken and drawn])
            now = {
                run: _not_below(now[run], simulated.get(run) or _times(outcome, off, plan))
                for run, outcome in longer.items()
            }
        found.append(
            Point(
                precision=plan.precision,
                labels=Spread.of([outcome.labels for outcome in now.values()]),
                reached=sum(outcome.reached for outcome in now.values()) / len(now),
                runs=len(simulated),
                extrapolated=not simulated,
            )
        )
    return found


def _finer(outcome: SimulationOutcome, before: Plan, plan: Plan, floor: float) -> SimulationOutcome:
    """Return where a session that stopped under the plan ``before`` would under a finer one."""
    old, new = before.precision, plan.precision
    if old is None or new is None or not outcome.reached or outcome.width > old:
        # Ended by its answers, its budget or its pool: it still is.
        return outcome
    if outcome.labels == 0:
        if outcome.width <= new:
            return outcome
        # Narrower from the beginning: the first label is counted from there
        outcome, old = replace(outcome, labels=1), outcome.width
    part = max(new**2 - floor**2, 0.0) / (old**2 - floor**2) if old > floor else 0.0
    finer = None if outcome.finer is None or part == 0.0 else outcome.finer.narrowed(part)
    if finer is not None:
        labels = finer.labels
    else:
        left = 1.0 / outcome.labels - 1.0 / plan.drawable if outcome.labels < plan.drawable else 0.0
        labels = 1.0 / (1.0 / plan.drawable + part * left)
    reached = part > 0.0 and labels <= plan.budget
    return SimulationOutcome(math.ceil(min(labels, plan.budget)), reached, new, finer)


def _mean_ratio(ratios: list[float]) -> float:
    """The mean on a logarithmic scale, beside a belief in 1 that counts for some."""
    return math.exp(sum(map(math.log, ratios)) / (len(ratios) + BELIEF))


def _times(outcome: SimulationOutcome, factor: float, plan: Plan) -> SimulationOutcome:
    if not outcome.reached:
        return outcome
    finer = None if outcome.finer is None else outcome.finer.times(factor)
    labels = math.ceil(outcome.labels * factor if finer is None else finer.labels)
    return replace(
        outcome, labels=min(labels, plan.budget), reached=labels <= plan.budget, finer=finer
    )


def _not_below(before: SimulationOutcome, outcome: SimulationOutcome) -> SimulationOutcome:
    return replace(outcome, labels=max(before.labels, outcome.labels))


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A precision to begin with, and why, in a sentence."""

    precision: float
    reason: str


def suggested(assumption: Assumption, scale: Interval, items: int) -> Suggestion:
    """A precision that says something of this pool without judging most of it.

    Of losses of 0 and 1 at most half of the rate expected, or of what is left to 1; of others a
    twentieth of the scale; coarser where that would take more than half of the ``items``.
    """
    # Where nothing is known, as of surrogates that are all the same, anything may be true
    known = assumption.informed
    risk = assumption.risk(scale) if known else (scale.lower + scale.upper) / 2.0
    if assumption.whole and assumption.change is None and scale.width == 1.0:
        most = scale.width * min(risk, 1.0 - risk) / 2.0
        width = _step_down(min(max(most, FINEST * scale.width), LARGEST_SHARE * scale.width))
        reason = (
            f"the mean loss is expected to be about {risk:.2g}"
            if known
            else "nothing is known of the mean loss"
        )
    else:
        width = _step_down(SCALE_SHARE * scale.width)
        reason = f"that is about a twentieth of the scale from {scale.lower:g} to {scale.upper:g}"
    variance = assumption.variance(scale) if known else scale.width**2 / 4.0
    while _half_spent(variance, width, items) and width < COARSEST * scale.width / HALVED:
        width = _step_down(width * (HALVED + 1.0))
        reason = "a finer one would take most of the items"
    return Suggestion(width, reason)


def _half_spent(variance: float, width: float, items: int) -> bool:
    return LABELS_BY_VARIANCE * variance / width**2 > items


def _step_down(width: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is no larger."""
    unit = 10.0 ** math.floor(math.log10(width) + 1e-9)
    step = max(digit for digit in (1.0, 2.0, 5.0) if digit * unit <= width * (1.0 + 1e-9))
    return float(f"{step * unit:.{ROUND_DIGITS}g}")

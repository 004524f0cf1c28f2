"""Forecast of the labels left: how many rounds bring the information that is still missing.

A policy with a goal bets towards an amount of information I*, and
a round brings 1/s2. With n items left and the proposal's shape kept, the predicted variance falls
as A x^2 + B x with the share x of them that is still left (A the variance, B its padding), so

    k rounds bring    n/B (log(1/(A + B)) - log(y/(A y + B)))        y = 1 - k/n

and k follows from what is missing in closed form. Where a width is wanted, the stop comes near I*;
where answers are, near what a z-test needs for the distance of the estimate from the threshold. A
published policy has no goal: the labels it takes from an endless pool go by the variance of its
signals and by their range. How far sessions depart from this was measured once, by simulation:
the constants below are fitted to that (docs/method.md#22-forecasts).

A forecast is a convenience: nothing that is certified rests on it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from celeus.core.eprocess.base import Outlook
from celeus.core.eprocess.moments import LEAST_RATIO, PRIOR_ROUNDS
from celeus.core.eprocess.pool_target import LatticeSequence, half_width
from celeus.core.eprocess.population_target import PairSequence
from celeus.core.plans.plan import Plan
from celeus.core.sessions.state import State

TAIL = 1.28
"""Normal quantile of 90 %: the ends of the range of a forecast."""
PRIOR = 10.0
"""Rounds that the prediction of the variance counts for, beside what the signals scattered."""
SPREAD = 2.6
SPREAD_AFTER = 3.0
"""Variance of the logarithm of the variance to come: SPREAD / (SPREAD_AFTER + rounds)."""
LEAST_MISSING = 0.04
"""Share of the goal that may still be missing when all of it is there."""
LOOKED_BACK = 1000
"""Rounds whose signals tell the variance of a published policy."""

LEAST_LEFT = 0.05
"""Share of the pool that has to be left to tell what more rounds would bring."""

MOST_TIMES = 60
FEWEST_TIMES = 30
TOGETHER = 10
"""Of the pace: the latest labels it is measured over, the fewest, and how many in a row."""


class Multiples(NamedTuple):
    """At what multiple of its goal a session stops: 10 %, median and 90 % of sessions."""

    low: float
    median: float
    high: float


POOL = Multiples(0.86, 0.99, 1.17)
POPULATION = Multiples(0.9, 1.06, 1.4)
ANSWER = Multiples(0.9, 1.6, 2.6)
PUBLISHED = Multiples(0.75, 1.0, 1.35)


class Needs(NamedTuple):
    """Labels a published policy takes from an endless pool: L (a x^b + c R/D).

    x is the variance of a signal over D^2, R its range and L = log(2/alpha) / log(40).
    """

    a: float
    b: float
    c: float


WITH_SCORES = Needs(1.39, 1.385, 3.33)
WITHOUT_SCORES = Needs(1.2, 1.6, 2.78)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Labels left after ``round``: the median, and between which 80 % of sessions lie.

    Counted are judgements, from ``round`` on.
    """

    round: int
    labels_left: int
    low: int
    high: int


class Range(NamedTuple):
    """Labels left: 10 %, median, 90 %."""

    low: float
    median: float
    high: float

    def sooner(self, other: "Range") -> "Range":
        """The labels until the first of two."""
        return Range(*map(min, self, other))

    def later(self, other: "Range") -> "Range":
        """The labels until the second of two."""
        return Range(*map(max, self, other))


class Course(NamedTuple):
    """What a round brings from here on: items left, and A and B of the predicted variance."""

    left: float
    variance: float
    padding: float

    def rounds(self, missing: float, factor: float = 1.0) -> float:
        """Rounds until ``missing`` information is there, at ``factor`` times the variance."""
        if missing <= 0.0:
            return 0.0
        variance, padding = factor * self.variance, max(factor * self.padding, 1e-12)
        spent = missing * padding / self.left
        rest = padding * math.exp(-spent) / (padding - variance * math.expm1(-spent))
        return self.left * (1.0 - rest)


class Way(NamedTuple):
    """What the rounds of a session that stopped at a width tell of finer ones.

    ``goal`` is its I*, ``course`` that of its rounds with the whole pool left, and ``lag`` by how
    much more it took than they should, as a factor of the information: half of that, on a
    logarithmic scale, since luck and learning weigh less the longer a session lasts.
    """

    goal: float
    course: Course
    lag: float

    @classmethod
    def of(cls, plan: Plan, state: State) -> "Way | None":
        """That of a session; None of a published policy, and where hardly anything is left."""
        judged = state.folded - state.rounds.unjudgeable(state.folded)
        at = _Here(plan, state, judged) if judged else None
        course = None if at is None else at.course
        share = 0.0 if course is None else course.left / plan.drawable
        if at is None or at.outlook is None or course is None or share < LEAST_LEFT:
            return None
        whole = Course(float(plan.drawable), course.variance / share**2, course.padding / share)
        lag = math.sqrt(state.folded / max(whole.rounds(at.outlook.accrued), 1.0))
        return cls(at.outlook.goal, whole, lag)

    def narrowed(self, part: float) -> "Way":
        """The same at the root of ``part`` of its width."""
        left, variance, padding = self.course
        return Way(self.goal / part, Course(left, variance, padding * math.sqrt(part)), self.lag)

    def times(self, factor: float) -> "Way":
        """The same with so much more information to be had."""
        return self._replace(lag=self.lag * factor)

    @property
    def labels(self) -> float:
        """Labels until a session stops."""
        return self.course.rounds(self.lag * self.goal)


def forecast(plan: Plan, state: State) -> Forecast | None:
    """Labels left until a session stops by its precision or by its answers.

    None before the first loss, once it has stopped, and where nothing but budget and pool ends it.
    """
    rule, folded = state.stopping, state.folded
    judged = folded - state.rounds.unjudgeable(folded)
    if not rule.can_stop_early or state.stop_reason is not None or not judged:
        return None
    at = _Here(plan, state, judged)
    expected = [at.to_width(rule.precision)] if rule.precision is not None else []
    if rule.stop_when_decided and plan.asks:
        expected.append(at.to_answers())
    first = expected[0]
    for other in expected[1:]:
        first = first.sooner(other)
    most = min(rule.budget, state.drawable) - folded
    low, median, high = (min(max(math.ceil(one), 1), most) for one in first)
    return Forecast(folded, median, low, high)


def pace(times: Sequence[float]) -> float | None:
    """Seconds that a label takes, of all judges together, by the times of the latest ones.

    The median over every ten in a row: a break is part of few of them. None where there are fewer
    than ``FEWEST_TIMES``, or most came at once, as those of a program do.
    """
    if len(times) < FEWEST_TIMES:
        return None
    each = np.sort(np.asarray(times, dtype=np.float64))
    taken = float(np.median(each[TOGETHER:] - each[:-TOGETHER])) / TOGETHER
    return taken if taken > 0.0 else None


class _Here:
    """A session as it stands, on the unit scale."""

    def __init__(self, plan: Plan, state: State, judged: int) -> None:
        self._plan = plan
        self._state = state
        self._judged = judged
        self._left = max(state.fold.remainder.weight.value, 1e-9)
        self._point = state.points[-1]
        scale = plan.scale
        self._estimate = (state.estimate - scale.lower) / scale.width
        lower, upper = self._point.plus.signal_range
        self._below = max(self._estimate - (lower - scale.lower) / scale.width, 0.0)
        self._above = max((upper - scale.lower) / scale.width - self._estimate, 0.0)

    @property
    def course(self) -> Course | None:
        """What rounds bring towards the goal; None where there is none."""
        outlook = self.outlook
        return None if outlook is None else self._course(outlook, outlook.half)

    @property
    def outlook(self) -> Outlook | None:
        """How far its sequence is from its goal; None where it has none."""
        sequence = self._state.fold.confidence_sequence
        if isinstance(sequence, LatticeSequence | PairSequence):
            return sequence.outlook
        return None

    def to_width(self, precision: float) -> Range:
        """Labels until the interval is as narrow as asked for."""
        outlook = self.outlook
        if outlook is None:
            half = half_width(self._plan, precision)
            return self._published(half or 1.0)
        population = self._plan.target == "population"
        half = precision / self._plan.scale.width / 2.0
        if not population:
            half = half_width(self._plan, precision) or half
        # The outlook is for the precision of the last bets, which may have been changed since
        goal = outlook.goal * (outlook.half / half) ** 2
        course = self._course(outlook, half)
        deviation = math.sqrt(SPREAD / (SPREAD_AFTER + self._judged))
        multiples = POPULATION if population else POOL
        low, median, high = (one * goal - outlook.accrued for one in multiples)
        high = max(high, LEAST_MISSING * max(goal, outlook.accrued))
        return Range(
            course.rounds(low, math.exp(-TAIL * deviation)),
            course.rounds(median),
            course.rounds(high, math.exp(TAIL * deviation)),
        )

    def to_answers(self) -> Range:
        """Labels until all that is asked has its answer."""
        state = self._state
        ends = [
            self._to_end(one.question.threshold)
            for one in state.decisions
            if one.answer == "undecided"
        ]
        if state.verdict is not None and state.verdict.answer == "undecided":
            ends.append(self._to_verdict(state.verdict.margin))
        last = Range(0.0, 0.0, 0.0)
        for one in ends:
            last = last.later(one)
        return last

    def _to_verdict(self, margin: float) -> Range:
        """Until 0 is left on one side, or the interval lies within the margin."""
        within = self._to_end(margin).later(self._to_end(-margin))
        better = self._to_end(0.0)
        estimate = self._state.estimate
        return better.sooner(within) if margin > abs(estimate) else better

    def _to_end(self, threshold: float) -> Range:
        """Until the interval has left ``threshold`` on one side."""
        scale = self._plan.scale
        away = abs(self._estimate - (threshold - scale.lower) / scale.width)
        outlook = self.outlook
        if outlook is None:
            return self._published(max(away, 1e-6))
        course = self._course(outlook, away)
        deviation = 1.0 / math.sqrt(outlook.information + 4.0)
        distances = (
            away + 0.75 * TAIL * deviation,
            math.sqrt(away * away + 0.3 * deviation * deviation),
            away - 0.75 * TAIL * deviation,
        )
        quantile = float(ndtri(1.0 - self._plan.alpha1 / 2.0))
        labels = []
        for distance, multiple in zip(distances, ANSWER, strict=True):
            if distance <= 0.0:
                labels.append(self._left)
                continue
            missing = multiple * (quantile / distance) ** 2 - outlook.information
            labels.append(course.rounds(max(missing, LEAST_MISSING * outlook.information)))
        return Range(*labels)

    def _course(self, outlook: Outlook, half: float) -> Course:
        rounds = self._state.folded
        scattered = max(outlook.ratio * (PRIOR_ROUNDS + rounds) - PRIOR_ROUNDS, 0.0)
        ratio = max((PRIOR + scattered) / (PRIOR + rounds), LEAST_RATIO)
        variance = ratio * (self._point.variance or 0.0)
        return Course(self._left, variance, half / 3.0 * max(self._below, self._above))

    def _published(self, half: float) -> Range:
        """What remains of the labels that the policy takes from a pool of this size."""
        plan, points = self._plan, self._state.points
        stop = len(points)
        first = max(stop - LOOKED_BACK, 0)
        residual = points.residuals(first) / plan.scale.width
        left = plan.drawable - np.arange(first, stop)
        residual *= plan.items / left
        count = residual.size
        # One signal tells no variance: a fair coin's counts for two rounds
        variance = (float(np.square(residual).sum()) + 0.5) / (count + 2.0)
        spread = (self._below + self._above) * plan.items / left[-1]
        needs = WITH_SCORES if plan.policy.uses_scores else WITHOUT_SCORES
        level = math.log(2.0 / plan.alpha1) / math.log(40.0)
        endless = level * (needs.a * (variance / half**2) ** needs.b + needs.c * spread / half)
        deviation = math.sqrt(SPREAD / (SPREAD_AFTER + self._judged))
        labels = []
        for multiple, sign in zip(PUBLISHED, (-TAIL, 0.0, TAIL), strict=True):
            wanted = multiple * math.exp(sign * deviation) * endless
            labels.append(max(plan.drawable * wanted / (plan.drawable + wanted) - stop, 1.0))
        return Range(*labels)

"""Forecast of the labels left: how many rounds bring the information that is still missing.

A policy with a goal bets towards an amount of information I*, and
a round brings 1/s2. With n items left and the proposal's shape kept, the predicted variance falls
as A x^2 + B x with the share x of them that is still left (A the variance, B its padding), so

    k rounds bring    n/B (log(1/(A + B)) - log(y/(A y + B)))        y = 1 - k/n

and k follows from what is missing in closed form. Where a width is wanted, the stop comes near I*;
where answers are, near what a z-test needs for the distance of the estimate from the threshold. How
far sessions depart from this was measured once, by simulation: the constants below are fitted to
that (docs/evidence/method.md#22-forecasts). A published policy has no goal, and no forecast.

A forecast is a convenience: nothing that is certified rests on it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from celeus.core.betting.base import Outlook
from celeus.core.betting.moments import LEAST_RATIO, PRIOR_ROUNDS
from celeus.core.betting.pool_target import half_width
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session
from celeus.core.special import normal_quantile

SHARES = (0.1, 0.5, 0.9)
TAILS = (-1.28, 0.0, 1.28)
"""Shares of sessions that need fewer labels, and the normal quantiles of these."""
PRIOR = 10.0
"""Rounds that the prediction of the variance counts for, beside what the signals scattered."""
SPREAD = 0.89
SPREAD_AFTER = 0.28
SPREAD_SKEW = 0.045
SPREAD_SKEW_UNIFORM = 0.26
SPREAD_LEARNT = 0.48
MOST_SKEW = 2.0
"""Variance of the logarithm of the variance to come; see ``_spread``."""
SKEWED = 0.026
"""By how much the goal grows with the logarithm of one and the skew."""
ONE_SIDED = 0.37
"""Power of the distance by which the goal is divided where the end on one side is fixed."""

ENDLESS = 1e9
"""Items left where items are run again, and rounds do not use them up."""
LEAST_LEFT = 0.05
"""Share of the pool that has to be left to tell what more rounds would bring."""

MOST_TIMES = 60
FEWEST_TIMES = 30
TOGETHER = 10
"""For the pace: the latest labels it is measured over, the fewest, and how many in a row."""


class StopDistribution(NamedTuple):
    """At what multiple of its goal a session stops: log-logistic, of this median and shape."""

    median: float
    shape: float

    def at(self, share: float, reached: float) -> float:
        """Return where ``share`` of the sessions stop that have not stopped at ``reached``."""
        beyond = min(reached / self.median, 20.0) ** self.shape
        odds = (1.0 + beyond) / (1.0 - share) - 1.0
        return float(self.median * odds ** (1.0 / self.shape))


POOL = StopDistribution(1.02, 32.0)
POPULATION = StopDistribution(1.09, 38.0)
REACH = (1.11, 1.55, 1.79)
DRIFT = (0.5, 0.37, -0.89)
DRIFT_PRIOR = 0.3
"""For an answer: at how many quantiles from the threshold it comes, the luck until then, and how
much is known of the distance before any label; the first two for 10 %, 50 % and 90 %."""
CROSSINGS = (-7.0, 9.0)
HALVINGS = 11
"""Between which logarithms of the information that is there an answer is looked for, how often."""


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


class RoundProgress(NamedTuple):
    """The progress a round brings from here on: items left, A and B of the predicted variance."""

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


class Extrapolation(NamedTuple):
    """The forecast for finer widths from the rounds of a session that stopped at one.

    ``goal`` is its I*, ``course`` that of its rounds with the whole pool left, and ``lag`` by how
    much more it took than they should, as a factor of the information: half of that, on a
    logarithmic scale, since luck and learning weigh less the longer a session lasts.
    """

    goal: float
    course: RoundProgress
    lag: float

    @classmethod
    def of(cls, session: Session[Mean]) -> "Extrapolation | None":
        """That of a session; None of a published policy, and where hardly anything is left."""
        plan, folded = session.question.plan, session.folded
        judged = folded - session.rounds.unjudgeable(folded)
        outlook = session.question.fold.outlook
        if not judged or outlook is None:
            return None
        state = _UnitState(session, judged, outlook)
        course = state.course(outlook.half)
        share = course.left / plan.drawable
        if share < LEAST_LEFT:
            return None
        whole = RoundProgress(
            float(plan.drawable), course.variance / share**2, course.padding / share
        )
        lag = math.sqrt(folded / max(whole.rounds(outlook.accrued), 1.0))
        return cls(outlook.goal, whole, lag)

    def narrowed(self, part: float) -> "Extrapolation":
        """The same at the root of ``part`` of its width."""
        left, variance, padding = self.course
        return Extrapolation(
            self.goal / part, RoundProgress(left, variance, padding * math.sqrt(part)), self.lag
        )

    def times(self, factor: float) -> "Extrapolation":
        """The same with so much more information to be had."""
        return self._replace(lag=self.lag * factor)

    @property
    def labels(self) -> float:
        """Labels until a session stops."""
        return self.course.rounds(self.lag * self.goal)


def forecast(session: Session[Mean]) -> Forecast | None:
    """Labels left until a session stops by its precision or by its answers.

    None before the first loss, once it has stopped, where nothing but budget and pool ends it, and
    of a published policy.
    """
    rule, folded, plan = session.stopping, session.folded, session.question.plan
    judged = folded - session.rounds.unjudgeable(folded)
    if not rule.can_stop_early or session.stop_reason is not None or not judged:
        return None
    outlook = session.question.fold.outlook
    if outlook is None:
        return None
    state = _UnitState(session, judged, outlook)
    expected = [state.to_width(rule.precision)] if rule.precision is not None else []
    if rule.stop_when_decided and plan.asks:
        expected.append(state.to_answers())
    first = expected[0]
    for other in expected[1:]:
        first = first.sooner(other)
    most = min(rule.budget, session.most_draws) - folded
    # The lines of little and of much luck may cross where one loss is known and little is missing
    low, median, high = sorted(min(max(math.ceil(labels), 1), most) for labels in first)
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


class _UnitState:
    """A session as it stands, on the unit scale."""

    def __init__(self, session: Session[Mean], judged: int, outlook: Outlook) -> None:
        question = session.question
        self._outlook = outlook
        plan = self._plan = question.plan
        self._session, self._question = session, question
        self._judged = judged
        left = ENDLESS if plan.repeats else question.fold.remainder.weight.value
        self._left = max(left, 1e-9)
        self._point = question.points[-1]
        scale = plan.scale
        self._estimate = (question.estimate - scale.lower) / scale.width
        lower, upper = self._point.plus.signal_range
        self._below = max(self._estimate - (lower - scale.lower) / scale.width, 0.0)
        self._above = max((upper - scale.lower) / scale.width - self._estimate, 0.0)

    def to_width(self, precision: float) -> Range:
        """Labels until the interval is as narrow as asked for."""
        outlook = self._outlook
        population = self._plan.bound.kind != "none"
        half = self._plan.half_of(precision)
        if not population:
            half = half_width(self._plan, precision) or half
        # The outlook is for the precision of the last bets, which may have been changed since
        goal = outlook.goal * (outlook.half / half) ** 2 / self._one_sided(half) ** ONE_SIDED
        course = self.course(half)
        skew = (self._above - self._below) ** 2 / max(course.variance, 1e-12)
        goal *= 1.0 + SKEWED * math.log1p(skew)
        deviation = self._spread(skew, outlook.ratio)
        stops = POPULATION if population else POOL
        return Range(
            *(
                course.rounds(
                    stops.at(share, outlook.accrued / goal) * goal - outlook.accrued,
                    math.exp(tail * deviation),
                )
                for share, tail in zip(SHARES, TAILS, strict=True)
            )
        )

    def _one_sided(self, half: float) -> float:
        """Return how far the end still open will be from the estimate, in halves, at most 2."""
        scale, interval = self._plan.scale, self._question.interval
        lower = (interval.lower - scale.lower) / scale.width - (self._estimate - half)
        upper = (self._estimate + half) - (interval.upper - scale.lower) / scale.width
        return min(1.0 + max(lower, upper, 0.0) / half, 2.0)

    def _spread(self, skew: float, ratio: float) -> float:
        """Deviation of the logarithm of the variance to come.

        It is larger where signals are skewed, and where they scatter by another ``ratio`` than was
        predicted from scores.
        """
        judged, skew = self._judged, min(skew, MOST_SKEW * self._judged) / (self._judged + 1.0)
        if self._plan.policy.uses_scores:
            added = SPREAD_SKEW * skew + SPREAD_LEARNT * math.log(ratio) ** 2
        else:
            added = SPREAD_SKEW_UNIFORM * skew
        return math.sqrt(SPREAD / (SPREAD_AFTER + judged) + added)

    def to_answers(self) -> Range:
        """Labels until all that is asked has its answer."""
        question = self._question
        ends = [
            self._to_end(decision.question.threshold)
            for decision in question.decisions
            if decision.answer == "undecided"
        ]
        if question.verdict is not None and question.verdict.answer == "undecided":
            ends.append(self._to_verdict(question.verdict.margin))
        last = Range(0.0, 0.0, 0.0)
        for end in ends:
            last = last.later(end)
        return last

    def _to_verdict(self, margin: float) -> Range:
        """Until 0 is left on one side, or the interval lies within the margin."""
        within = self._to_end(margin).later(self._to_end(-margin))
        better = self._to_end(0.0)
        estimate = self._question.estimate
        return better.sooner(within) if margin > abs(estimate) else better

    def _to_end(self, threshold: float) -> Range:
        """Until the interval has left ``threshold`` on one side."""
        scale = self._plan.scale
        away = abs(self._estimate - (threshold - scale.lower) / scale.width)
        course, seen = self.course(away), self._outlook.information
        quantile = normal_quantile(1.0 - self._plan.alpha1 / 2.0)
        return Range(
            *(
                course.rounds(_crossing(away, seen, quantile * reach, luck) - seen)
                for reach, luck in zip(REACH, DRIFT, strict=True)
            )
        )

    def course(self, half: float) -> RoundProgress:
        """Return the progress that rounds bring towards an interval of twice this width."""
        rounds = self._session.folded
        scattered = max(self._outlook.ratio * (PRIOR_ROUNDS + rounds) - PRIOR_ROUNDS, 0.0)
        ratio = max((PRIOR + scattered) / (PRIOR + rounds), LEAST_RATIO)
        variance = ratio * (self._point.variance or 0.0)
        return RoundProgress(self._left, variance, half / 3.0 * max(self._below, self._above))


def _crossing(away: float, seen: float, reach: float, luck: float) -> float:
    """The information at which an estimate ``away`` from a threshold is so many errors from it.

    ``luck`` is how many deviations the sum of signals to come lies above what is expected of it.
    """
    known = seen + DRIFT_PRIOR
    low, high = CROSSINGS
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        more = known * math.exp(middle)
        later = seen + more
        if away * later + luck * math.sqrt(more * (1.0 + more / known)) < reach * math.sqrt(later):
            low = middle
        else:
            high = middle
    return seen + known * math.exp(high)

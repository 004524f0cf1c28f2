"""A claim about a ratio of two sums, such as a judge's true-positive rate.

Notation: h is 1 where a person calls an item positive, m its surrogate; A and B are what the item
adds to the two sums, as functions of h and of its verdict; N items, rem_k of cell k not drawn, q_k
the probability of a single one. For every r the mean of D(r) = A - r B is 0 at the true ratio, and
B >= 0, so its sign says on which side of r the ratio lies. One draw gives one signal for every r:

    S(r)  P(r) + (D(r) - m_k(r)) / (N q_k),   P = (sum of D(r) judged + sum of rem_k m_k(r)) / N
    A^, B^ means of the signals of A and B so far, weighted by their precision; B^ at least P_B / 4
    s2_r  ratio sum of rem_k v_k (slope of D(r) in h)^2 / (N^2 q_k)
    I*    (z / (B^ (D - h / 2)))^2: a shift of the ratio by D moves the signal by B^ D

Stakes of both sides, for every r of a lattice, are bet on S(r) > 0 and on S(r) < 0. The lower end
of the interval is the lattice point below the first one that still stands on the first side, the
upper end mirrored (docs/evidence/method.md#23-ratios). A round that nobody can judge counts at its
worst for each side and each r. All but stakes and P is fixed at the draw: m, v and information by
the rounds judged then, A^, B^ and the scatter of the signals by those folded then, and the range by
all rounds drawn, open ones at their worst.
"""

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.bets import (
    LARGEST_BET,
    LARGEST_BET_PAST_GOAL,
    LARGEST_LOSS,
    OVERSHOOT,
    SOFTNESS,
    half_widths,
)
from celeus.core.interval import Interval
from celeus.core.ledger import Draw
from celeus.core.mills import inverse_mills
from celeus.core.plans.judge_check import (
    JudgeCheck,
    limits,
    outcomes,
    positive_loss,
    verdicts,
)
from celeus.core.plans.plan import CELLS_PER_PRECISION, Plan
from celeus.core.plans.stopping import Decisions, rounding, undecided
from celeus.core.plans.table_plan import TableClaim
from celeus.core.pools.strata import NOWHERE
from celeus.core.pools.table_pool import Mask, Table
from celeus.core.sampling.proposals import LEAST_MOMENT
from celeus.core.session.table.table_cells import Cells, TableAtDraw
from celeus.core.session.table.table_claims import ClaimState
from celeus.core.special import normal_quantile

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

PRIOR_ROUNDS = 30.0
LEAST_RATIO = 0.3
LEAST_VARIANCE = 1e-9
LEAST_DENOMINATOR = 1e-4
STRICT = 32.0 * np.finfo(np.float64).eps
"""The distance of a candidate beyond a threshold that decides it strictly."""
TINY = 1e-12
STEPS = 400
"""Lattice steps of a claim that asks for no width."""
MOST_STEPS = 20_000


class Verdicts(NamedTuple):
    """The verdicts of judge and people: ``verdict`` by item, and ``of_cell`` by cell, 0 or 1.

    ``known`` is h of the items whose loss is known, NaN of the others; ``positive`` the loss that
    says h = 1.
    """

    verdict: Indices
    of_cell: Indices
    known: Floats
    positive: float

    @classmethod
    def of(cls, check: JudgeCheck, table: Table, cells: Cells) -> Self:
        """Those of a table before its first label."""
        verdict = verdicts(check, table).astype(np.intp)
        code = cells.strata.code
        drawable = code != NOWHERE
        of_cell = np.zeros(cells.count, dtype=np.intp)
        of_cell[code[drawable]] = verdict[drawable]
        positive = positive_loss(table.metrics[0])
        known = table.known[:, 0]
        return cls(verdict, of_cell, known if positive else 1.0 - known, positive)

    def counts(self, mask: Mask) -> Floats:
        """Known items of a part by verdict and h; shape [2, 2]."""
        known = mask & ~np.isnan(self.known)
        counts = np.zeros((2, 2))
        np.add.at(counts, (self.verdict[known], self.known[known].astype(np.intp)), 1.0)
        return counts


class SideBet(NamedTuple):
    """The basis of one side's bets, fixed at the draw; by candidate, and by goal where stated.

    ``reaches`` are the moves of the signal that the goals ask for, ``goals`` the information that
    they take (shape [goals, 1]), ``past`` that of the rounds judged before ([goals, candidates]).
    ``variance`` is the predicted one of the signal, ``skew`` its mean less its ``least`` value, as
    this side sees it.
    """

    reaches: Floats
    goals: Floats
    past: Floats
    variance: Floats
    skew: Floats
    least: Floats

    @property
    def padded(self) -> Floats:
        """The variance padded for skew, by goal."""
        return np.asarray(self.variance + self.reaches / 3.0 * np.maximum(self.skew, 0.0))

    def at(self, log_stake: Floats) -> Floats:
        """The bets at these log stakes."""
        goals, past, padded = self.goals, self.past, self.padded
        missing = np.maximum(OVERSHOOT * goals - past, SOFTNESS * np.maximum(goals, past))
        most = np.where(past <= OVERSHOOT * goals, LARGEST_BET, LARGEST_BET_PAST_GOAL)
        largest = np.minimum(
            most * self.reaches / padded, LARGEST_LOSS / np.maximum(-self.least, TINY)
        )
        return np.minimum(inverse_mills(log_stake) / (padded * np.sqrt(missing)), largest)


class RatioRound(NamedTuple):
    """A drawn round that is not folded, on the candidates that stood at its draw, from ``first``.

    ``verdict`` is that of its item, ``per_draw`` 1 / (N q). ``expected`` is what its item was
    expected to add to both sums, ``rest`` all items not drawn before it. ``reach`` holds the least
    and the largest (D(r) - m(r)) / (N q) of any item. ``centre``, ``ratio`` and ``variance`` are
    those of the signals, as they were expected. ``called`` is what people call the item, h, once it
    is judged; None, too, where nobody could tell.
    """

    verdict: int
    per_draw: float
    first: int
    expected: Floats
    rest: Floats
    reach: tuple[Floats, Floats]
    bets: tuple[SideBet, SideBet]
    centre: Floats
    ratio: float
    variance: float
    called: int | None = None


class RatioSide:
    """The stakes of one side on every candidate, by goal: shapes [goals, candidates]."""

    __slots__ = ("information", "stake", "standing")

    def __init__(self, candidates: int, level: float, goals: int) -> None:
        self.stake = np.full((goals, candidates), math.log(level / 2.0 / goals))
        self.information = np.zeros((goals, candidates))
        self.standing = np.ones(candidates, dtype=np.bool_)

    def update(self, part: slice, bet: SideBet, signal: Floats, least: Floats) -> None:
        """Bet on the signals of the candidates in ``part``, and drop those that are rejected.

        A signal that is above 0 whatever the loss rejects its candidate for certain.
        """
        standing, stake = self.standing[part], self.stake[:, part]
        standing &= least <= TINY
        np.copyto(stake, stake + np.log1p(bet.at(stake) * signal), where=standing)
        standing &= (stake[0] < 0.0) if len(stake) == 1 else np.exp(stake).sum(axis=0) < 1.0

    def judge(self, part: slice, bet: SideBet) -> None:
        """Count the information of a round on the candidates in ``part``."""
        # Draws that are out share what was known then
        self.information = self.information.copy()
        self.information[:, part] += 1.0 / bet.padded


class RatioClaim(ClaimState):
    """A claim about a ratio after some rounds.

    ``counts`` are the items judged and folded, by verdict and h; ``unknown`` those whose h is not
    known then, by verdict.
    """

    __slots__ = (
        "_code",
        "_decisions",
        "_emptied",
        "_grid",
        "_halves",
        "_interval",
        "_known",
        "_left",
        "_open",
        "_outcome",
        "_positive",
        "_scatter",
        "_seen",
        "_sides",
        "_signals",
        "_slope",
        "_step",
        "_unjudged",
        "_unseen",
        "_verdict",
        "_weights",
        "_z",
        "counts",
        "unknown",
    )

    def __init__(  # noqa: PLR0913, PLR0917 -- a claim, and what it shares with the others
        self,
        claim: TableClaim,
        plan: Plan,
        metric: int,
        where: Indices,
        cells: Cells,
        known: TableAtDraw,
        called: Verdicts,
        mask: Mask,
    ) -> None:
        super().__init__(claim, plan, metric, where)
        self._positive, self.counts = called.positive, called.counts(mask)
        verdict: Indices = called.of_cell[where]
        self._emptied, self._interval = False, plan.scale
        self._decisions: Decisions = undecided(plan.questions)
        self._code, self._known, self._verdict = cells.strata.code, known, verdict
        left = known.left[where]
        self._left = int(left.sum())
        self.unknown: Floats = np.zeros(2)
        np.add.at(self.unknown, verdict, left)
        self._unjudged = np.zeros(2)
        # The judged items, folded or not, and the others drawn
        self._seen, self._unseen = self.counts.copy(), np.zeros(2)
        by_verdict = (self.counts.sum(axis=1) + self.unknown) / plan.items
        self._outcome = outcomes(claim.metric, (float(by_verdict[0]), float(by_verdict[1])))
        self._slope = (self._outcome[:, 1] - self._outcome[:, 0])[verdict]
        self._grid, self._step = _candidates(plan)
        half = None if plan.precision is None else plan.precision / 2.0
        self._halves = np.array(half_widths(half))[:, None]
        self._z = normal_quantile(1.0 - plan.alpha / 2.0)
        shape = self._grid.size, plan.alpha, self._halves.size
        self._sides = RatioSide(*shape), RatioSide(*shape)
        self._open: OrderedDict[int, RatioRound] = OrderedDict()
        self._signals, self._weights, self._scatter = np.zeros(2), 0.0, 0.0
        self._conclude()

    @property
    def interval(self) -> Interval:
        """Interval for the claim's ratio, on the scale of its loss."""
        return self._interval

    @property
    def decisions(self) -> Decisions:
        """The answers to its questions, each with the claim's own round."""
        return self._decisions

    @property
    def emptied(self) -> bool:
        """No candidate is left; the last interval stays."""
        return self._emptied

    @property
    def left(self) -> int:
        """Items of the claim that are not folded."""
        return self._left - len(self.rounds)

    @property
    def bets(self) -> int:
        """Bets that folding the claim's next round may place."""
        part = self._live
        return 2 * int(self._halves.size) * int(part.stop - part.start)

    @property
    def estimate(self) -> float:
        """Point estimate: the ratio that the signals say, within the interval."""
        if self.undefined:
            return (self.interval.lower + self.interval.upper) / 2.0
        ratio = self._expect(self._known.left[self.cells])[1]
        return min(max(ratio, self.interval.lower), self.interval.upper)

    @property
    def undefined(self) -> bool:
        """True if nothing was judged that the measure is a share of."""
        return not float(np.einsum("jh,jh->", self.counts, self._outcome[:, :, 1])) > 0.0

    def expected_counts(self, known: TableAtDraw) -> Floats:
        """All items by verdict and h, those that are not judged as they are expected: no claim."""
        left, mean = known.left[self.cells], self._mean(known)
        counts = self.counts.copy()
        for verdict, unknown in enumerate(self.unknown.tolist()):
            here = self._verdict == verdict
            of_left = float(left[here].sum())
            judged = float(self.counts[verdict].sum())
            share = float(left[here] @ mean[here]) / of_left if of_left else 0.5
            if not of_left and judged:
                share = float(self.counts[verdict, 1]) / judged
            counts[verdict] += unknown * np.array([1.0 - share, share])
        return counts

    def variances(self, known: TableAtDraw) -> Floats:
        """Predicted variance of the ratio by one draw of every cell, but for its probability."""
        centre, ratio = self._expect(known.left[self.cells])
        slope = self._slope @ np.array([1.0, -ratio])
        moment = known.fits.moment[0, self.cells]
        return np.asarray(np.maximum(moment, LEAST_MOMENT) * np.square(slope / centre[1]))

    def _mean(self, known: TableAtDraw) -> Floats:
        """The surrogates of h in the cells of the claim."""
        mean = known.fits.mean[0, self.cells]
        return np.asarray(mean if self._positive else 1.0 - mean)

    def _expected(self, known: TableAtDraw) -> Floats:
        """Return what an item of every cell is expected to add to both sums; shape [cells, 2]."""
        base = self._outcome[self._verdict, 0]
        return np.asarray(base + self._mean(known)[:, None] * self._slope)

    def _plug_in(self, counts: Floats, others: Floats, rest: Floats) -> Floats:
        """P of both sums; of ``others``, drawn but not in ``counts``, the mean outcome counts."""
        judged = np.einsum("jh,jhs->s", counts, self._outcome)
        drawn = judged + others @ self._outcome.mean(axis=1)
        return np.asarray((drawn + rest) / self.plan.items)

    def _expect(self, left: Floats) -> tuple[Floats, float]:
        """Means of A and B by the signals, or before the first by surrogates, and their ratio."""
        plug_in = self._plug_in(self._seen, self._unseen, left @ self._expected(self._known))
        centre = self._signals / self._weights if self._weights else plug_in
        least = max(0.25 * float(plug_in[1]), LEAST_DENOMINATOR)
        centre = np.array([centre[0], max(float(centre[1]), least)])
        ratio = float(centre[0] / centre[1])
        return centre, min(max(ratio, self.plan.lower), self.plan.upper)

    @property
    def _live(self) -> slice:
        """The candidates that may still move an end of the interval."""
        above, below = (np.flatnonzero(side.standing) for side in self._sides)
        if not above.size or not below.size:
            return slice(0, 0)
        return slice(int(above[0]), max(int(below[-1]) + 1, int(above[0])))

    def draw(self, draw: Draw, known: TableAtDraw) -> None:
        """Fix the bets on a draw that falls into the claim."""
        self._known = known
        left, items = known.left[self.cells], self.plan.items
        q = draw.q_by_stratum[self.cells]
        q = np.asarray(q / float(left @ q))
        expected, part = self._expected(known), self._live
        rest = left @ expected
        reach = self._reach(part, left, q, expected)
        moment = np.maximum(known.fits.moment[0, self.cells], LEAST_MOMENT)
        spread = left * moment / (items * items * q)
        joint = np.einsum("k,ks,kt->st", spread, self._slope, self._slope)
        centre, ratio = self._expect(left)
        at_ratio = np.array([1.0, -ratio])
        cell = int(np.searchsorted(self.cells, self._code[draw.item]))
        drawn = RatioRound(
            verdict=int(self._verdict[cell]),
            per_draw=float(1.0 / (items * q[cell])),
            first=part.start,
            expected=expected[cell],
            rest=rest,
            reach=reach,
            bets=self._bets(part, self._ends(part, rest, reach), centre, joint),
            centre=centre,
            ratio=ratio,
            variance=max(float(at_ratio @ joint @ at_ratio), LEAST_VARIANCE),
        )
        self._open[draw.round] = drawn
        self._unseen[drawn.verdict] += 1.0

    def _of_r(self, part: slice) -> Floats:
        """The factors of A and B in D(r), for the candidates in ``part``; shape [2, candidates]."""
        r = self._grid[part]
        return np.stack((np.ones(r.size), -r))

    def _reach(
        self, part: slice, left: Floats, q: Floats, expected: Floats
    ) -> tuple[Floats, Floats]:
        """The least and the largest (D(r) - m(r)) / (N q) of any item left."""
        of_r, drawable = self._of_r(part), left > 0.0
        outcome, verdict = self._outcome @ of_r, self._verdict[drawable]
        mean, per_draw = expected[drawable] @ of_r, 1.0 / (self.plan.items * q[drawable, None])
        return (
            ((outcome.min(axis=1)[verdict] - mean) * per_draw).min(axis=0),
            ((outcome.max(axis=1)[verdict] - mean) * per_draw).max(axis=0),
        )

    def _ends(self, part: slice, rest: Floats, reach: tuple[Floats, Floats]) -> list[Floats]:
        """The least and the largest signal of a draw, whatever becomes of the rounds still out."""
        of_r = self._of_r(part)
        outcome = self._outcome @ of_r
        judged = np.einsum("jh,jhr->r", self._seen, outcome) + rest @ of_r
        worst = outcome.min(axis=1), outcome.max(axis=1)
        return [
            (judged + self._unseen @ most) / self.plan.items + extreme
            for most, extreme in zip(worst, reach, strict=True)
        ]

    def _bets(
        self, part: slice, ends: list[Floats], centre: Floats, joint: Floats
    ) -> tuple[SideBet, SideBet]:
        """The bets of both sides on a draw whose signals of A and B scatter as ``joint`` says."""
        of_r = self._of_r(part)
        predicted = np.maximum(np.einsum("sr,st,tr->r", of_r, joint, of_r), LEAST_VARIANCE)
        judged = len(self.rounds) - float(self._unjudged.sum())
        scatter = (PRIOR_ROUNDS + self._scatter) / (PRIOR_ROUNDS + judged)
        variance = max(LEAST_RATIO, scatter) * predicted
        reaches = centre[1] * self._halves
        nearest = np.maximum(self._halves - self._step / 2.0, self._halves / 2.0)
        goals = np.square(self._z / (centre[1] * nearest))
        middle = centre @ of_r
        above, below = (
            SideBet(reaches, goals, side.information[:, part], variance, skew, least)
            for side, skew, least in zip(
                self._sides, (middle - ends[0], ends[1] - middle), (ends[0], -ends[1]), strict=True
            )
        )
        return above, below

    def judge(self, round_: int, loss: float | None) -> None:
        """Learn from a judgement for later draws; ``loss`` is None when nobody could tell it."""
        drawn = self._open[round_]
        part = slice(drawn.first, drawn.first + drawn.reach[0].size)
        for side, bet in zip(self._sides, drawn.bets, strict=True):
            side.judge(part, bet)
        if loss is not None:
            called = int(loss == self._positive)
            self._open[round_] = drawn._replace(called=called)
            self._unseen[drawn.verdict] -= 1.0
            self._seen[drawn.verdict, called] += 1.0

    def fold_next(self, round_: int) -> None:
        """Fold ``round_``, the oldest drawn; one without a judgement at its worst."""
        drawn = self._open.pop(round_)
        part = slice(drawn.first, drawn.first + drawn.reach[0].size)
        of_r = self._of_r(part)
        outcome = self._outcome @ of_r
        base = np.einsum("jh,jhr->r", self.counts, outcome) + drawn.rest @ of_r
        expected = drawn.expected @ of_r
        called = drawn.called
        for side, sign, worst, reach, bet in zip(
            self._sides,
            (1.0, -1.0),
            (outcome.min(axis=1), outcome.max(axis=1)),
            drawn.reach,
            drawn.bets,
            strict=True,
        ):
            plug_in = (base + self._unjudged @ worst) / self.plan.items
            seen = worst[drawn.verdict] if called is None else outcome[drawn.verdict, called]
            signal = plug_in + (seen - expected) * drawn.per_draw
            side.update(part, bet, sign * signal, sign * (plug_in + reach))
        if called is None:
            self._unjudged[drawn.verdict] += 1.0
        else:
            self._learn(drawn, called)
        self.rounds.append(round_)
        self._conclude()

    def _learn(self, drawn: RatioRound, called: int) -> None:
        """Take in the signals of both sums of a judged round."""
        seen = self._outcome[drawn.verdict, called]
        plug_in = self._plug_in(self.counts, self._unjudged, drawn.rest)
        signals = plug_in + (seen - drawn.expected) * drawn.per_draw
        off = (signals - drawn.centre) @ np.array([1.0, -drawn.ratio])
        self._scatter += float(off * off) / drawn.variance
        self._signals = self._signals + signals / drawn.variance
        self._weights += 1.0 / drawn.variance
        self.counts[drawn.verdict, called] += 1.0
        self.unknown[drawn.verdict] -= 1.0

    def _conclude(self) -> None:
        """Narrow the interval by the candidates that stand and by what the unknown can still do."""
        logical = limits(self._outcome, self.counts, self.unknown, self.plan.scale)
        above, below = (np.flatnonzero(side.standing) for side in self._sides)
        slack = rounding(self.plan.scale)
        lower, upper = self.interval.lower, self.interval.upper
        if above.size and below.size:
            lower = max(lower, self._grid[max(int(above[0]) - 1, 0)], logical.lower)
            upper = min(
                upper, self._grid[min(int(below[-1]) + 1, self._grid.size - 1)], logical.upper
            )
        if not above.size or not below.size or lower > upper + slack:
            self._emptied = True
        else:
            lower = min(lower, upper)
            self._interval = Interval(float(lower), float(upper))
            self._sides[0].standing[: np.searchsorted(self._grid, lower - slack)] = False
            self._sides[1].standing[np.searchsorted(self._grid, upper + slack, "right") :] = False
        self._decisions = tuple(
            decision.after(len(self.rounds), self.interval, slack) for decision in self.decisions
        )


def _candidates(plan: Plan) -> tuple[Floats, float]:
    """The lattice of a claim, and its step: even, with candidates at the thresholds.

    One a little beyond each answers no, which takes more than the threshold itself.
    """
    width, steps = plan.upper - plan.lower, STEPS
    if plan.precision is not None:
        steps = min(round(width / plan.precision * CELLS_PER_PRECISION), MOST_STEPS)
    grid = np.linspace(plan.lower, plan.upper, steps + 1)
    asked = np.array([question.threshold for question in plan.questions])
    beyond = [STRICT if question.side == "at_most" else -STRICT for question in plan.questions]
    grid = np.concatenate((grid, asked, asked + width * np.array(beyond)))
    return np.unique(grid[(grid >= plan.lower) & (grid <= plan.upper)]), width / steps


def needs(claims: Sequence[RatioClaim], known: TableAtDraw) -> Floats:
    """Return what draws are shared by: in every cell the variances of claims with a target unmet.

    Each is weighted by what it costs alone; the largest is 1.
    """
    wanting = [claim for claim in claims if claim.claim.wants and not claim.met] or claims
    mixed = np.zeros(known.left.size)
    for claim in wanting:
        variance = claim.variances(known)
        cost = float(known.left[claim.cells] @ np.sqrt(variance)) ** 2
        mixed[claim.cells] += cost * variance
    return np.asarray(np.maximum(mixed / max(float(mixed.max()), TINY), TINY))

"""E-processes of the published policies: wealth on cells of candidates, and their interval.

Candidates are cells [v_k, v_k + h] that tile [L, U], the last one cut at U. Wealth+ of a cell runs
at its upper edge and wealth- at its lower edge, each with the fraction of that edge: for every v
in the cell 1 + lam (x - m(v)) is at least the factor used, so the cell's wealth is a
supermartingale whatever true value it holds, and rejecting a cell rejects all of it (Ville's
inequality; CELEUS, Eqs. 2-3 give the wealth of a point). A cell is out once

    theta wealth+ + (1 - theta) wealth- >= 1 / alpha1.

The two sides may see two completions of the pool: the ``plus`` side a risk that is at most the true
one, the ``minus`` side one that is at least the true one
(docs/evidence/method.md#8-rounds-that-nobody-can-judge).

The point estimate is LURE (Farquhar et al. 2021; CELEUS, Eq. 4 and Thms. 1-2).
Notation: N items, t rounds folded, residual d_m = l_m - s_m of round m, drawn with probability q_m.

    R_t = mean of all s + (1 / t) sum over m <= t of u_m d_m
    u_m = 1 + (N - t) k_m,   k_m = (1 / ((N - m + 1) q_m) - 1) / (N - m),   k_N = 0

Unbiased at a fixed t for a fixed surrogate. It summarises; the interval is the claim.
"""

import math
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.base import BettingRound, CompletionSignal, PoolRiskSequence, WealthLost
from celeus.core.betting.published_bets import (
    Bet,
    Bettor,
    CommonVariance,
    Fractions,
    OwnVariance,
    fraction_above,
    fraction_below,
)
from celeus.core.betting.signals import Range
from celeus.core.interval import Interval
from celeus.core.plans.plan import Plan, cell_width


@dataclass(slots=True)
class Lure:
    """Running sums of the estimate; O(1) per round.

    ``items`` is the number of items that may be drawn, ``share`` their share of the pool.
    ``mean_surrogate`` is the mean over the whole pool, with the known losses of the other items.
    """

    items: int
    mean_surrogate: float
    share: float = 1.0
    rounds: int = 0
    residual_sum: float = 0.0
    correction_sum: float = 0.0

    def record(self, residual: float, q: float) -> None:
        """Record the next round."""
        self.rounds += 1
        self.residual_sum += residual
        after = self.items - self.rounds
        if after > 0:
            self.correction_sum += residual * (1.0 / ((after + 1) * q) - 1.0) / after

    @property
    def value(self) -> float:
        """The estimate; before the first round the mean surrogate."""
        if self.rounds == 0:
            return self.mean_surrogate
        after = self.items - self.rounds
        residual = (self.residual_sum + after * self.correction_sum) / self.rounds
        return self.mean_surrogate + self.share * residual


Floats = NDArray[np.float64]


class SideBet(NamedTuple):
    """One completion's bet on the coming round, and the signal it bets on.

    ``past`` and ``bet`` were fixed at the draw; ``known`` is the same with the range that all
    earlier rounds leave, outside which no risk lies.
    """

    past: Fractions
    bet: Bet
    known: Bet
    value: float

    @property
    def scaled(self) -> float:
        """Number that is bet on, in [0, 1]."""
        return (self.value - self.bet.offset) / self.bet.scale


class Edges(NamedTuple):
    """Centres of cell edges, and the uncapped fractions at them."""

    centre: Floats
    fraction: Floats | float


class Wealth:
    """Log wealth of the cells not rejected. Cells are only ever dropped or split."""

    __slots__ = (
        "_above",
        "_below",
        "_c",
        "_edges",
        "_hull",
        "_level",
        "_lower",
        "_theta",
        "_upper",
    )

    def __init__(
        self, span: Interval, cell: float, alpha1: float, *, theta: float, c: float
    ) -> None:
        count = max(1, math.ceil(span.width / cell - 1e-9))
        edges: Floats = span.lower + cell * np.arange(count + 1, dtype=np.float64)
        edges[-1] = span.upper
        # Cells without a gap share their edges; None once one between others is out.
        self._edges: Floats | None = edges
        self._hull: Interval | None = None
        self._lower: Floats = edges[:-1]
        self._upper: Floats = edges[1:]
        self._above: Floats = np.zeros(count)
        self._below: Floats = np.zeros(count)
        self._level = alpha1
        self._theta = theta
        self._c = c

    @property
    def hull(self) -> Interval | None:
        """Smallest interval with all cells not rejected, or None when none is left."""
        if not self._lower.size:
            return None
        if self._hull is None:
            self._hull = Interval(float(self._lower[0]), float(self._upper[-1]))
        return self._hull

    @property
    def cells(self) -> int:
        """Number of cells not rejected."""
        return int(self._lower.size)

    def bet(self, round_: int, plus: SideBet, minus: SideBet) -> None:
        """Bet on round ``round_`` with every cell and drop those that are rejected."""
        if not self._lower.size:
            return
        # Cells are in ascending order, and so are their centres.
        lowest, highest = self._upper[:1], self._lower[-1:]
        if not (plus.known.centre(lowest)[0] > 0.0 and minus.known.centre(highest)[0] < 1.0):
            possible = plus.known.centre(self._upper) > 0.0
            self._keep(possible & (minus.known.centre(self._lower) < 1.0))
            if not self._lower.size:
                return
        up, low = self._fractions(round_, plus, minus)
        above = fraction_above(up.fraction, up.centre, self._c)
        above *= plus.scaled - up.centre
        above += 1.0
        below = fraction_below(low.fraction, low.centre, self._c)
        below *= low.centre - minus.scaled
        below += 1.0
        if not (above.min() > 0.0 and below.min() > 0.0):
            message = f"wealth factor not positive in round {round_}"
            raise WealthLost(message)
        self._above += np.log(above, out=above)
        self._below += np.log(below, out=below)
        self._drop_rejected()

    def _fractions(self, round_: int, plus: SideBet, minus: SideBet) -> tuple[Edges, Edges]:
        """Return centres and fractions at the upper edges and at the lower ones."""
        if plus is not minus or self._edges is None:
            return self._at(self._upper, round_, plus), self._at(self._lower, round_, minus)
        both = self._at(self._edges, round_, plus)
        centre, fraction = both.centre, both.fraction
        if isinstance(fraction, float):
            return Edges(centre[1:], fraction), Edges(centre[:-1], fraction)
        return Edges(centre[1:], fraction[1:]), Edges(centre[:-1], fraction[:-1])

    def _at(self, edge: Floats, round_: int, side: SideBet) -> Edges:
        fraction = side.past.fraction(edge, self._level, round_)
        return Edges(side.bet.centre(edge), fraction)

    def split(self, cell: float) -> None:
        """Split every cell into equal parts of at most ``cell``; the parts inherit its wealth."""
        if not self._lower.size:
            return
        widest = float((self._upper - self._lower).max())
        parts = math.ceil(widest / cell - 1e-9)
        if parts <= 1:
            return
        step = (self._upper - self._lower) / parts
        offsets = np.arange(parts)
        lower = (self._lower[:, None] + step[:, None] * offsets).ravel()
        upper = (self._lower[:, None] + step[:, None] * (offsets + 1)).ravel()
        upper[parts - 1 :: parts] = self._upper
        self._lower, self._upper = lower, upper
        self._edges = None
        if np.array_equal(lower[1:], upper[:-1]):
            self._edges = np.append(lower, upper[-1:])
        self._above = np.repeat(self._above, parts)
        self._below = np.repeat(self._below, parts)

    def _drop_rejected(self) -> None:
        mixed = math.log(self._theta) + self._above
        np.logaddexp(mixed, math.log1p(-self._theta) + self._below, out=mixed)
        least = -math.log(self._level)
        if not mixed.max() < least:
            self._keep(mixed < least)

    def _keep(self, standing: NDArray[np.bool_]) -> None:
        self._hull = None
        index = np.flatnonzero(standing)
        if self._edges is not None and index.size and index[-1] - index[0] == index.size - 1:
            start, stop = int(index[0]), int(index[-1]) + 1
            self._edges = self._edges[start : stop + 1]
            self._lower, self._upper = self._edges[:-1], self._edges[1:]
            self._above, self._below = self._above[start:stop], self._below[start:stop]
            return
        self._edges = None
        self._lower, self._upper = self._lower[index], self._upper[index]
        self._above, self._below = self._above[index], self._below[index]


@dataclass(slots=True)
class Completion:
    """Bettor and estimate of one completion of the pool."""

    bettor: Bettor
    lure: Lure


class CellSequence(PoolRiskSequence):
    """The confidence sequence of the published policies: wealth on cells of candidates."""

    __slots__ = ("_cell", "_minus", "_plus", "wealth")

    def __init__(self, plan: Plan, mean_surrogate: float) -> None:
        super().__init__(plan)
        policy = plan.policy
        by_candidate = policy.fraction == "own"
        self._plus = Completion(
            OwnVariance(plan.lower) if by_candidate else CommonVariance(),
            Lure(plan.drawable, mean_surrogate, plan.drawable / plan.items),
        )
        # One object serves both completions until their signals differ.
        self._minus = self._plus
        self.wealth = Wealth(plan.scale, plan.cell, plan.alpha1, theta=policy.theta, c=policy.c)
        self._cell = plan.cell

    @property
    def estimate(self) -> float:
        """Midpoint of the LURE estimates of the two completions."""
        return (self._plus.lure.value + self._minus.lure.value) / 2.0

    def predict(self, reach: tuple[Range, Range], variance: float) -> tuple[Fractions, Fractions]:
        """Return the fractions of either completion, from the folded rounds."""
        del reach, variance
        return self._plus.bettor.past, self._minus.bettor.past

    def bets_per_round(self, precision: float | None) -> int:
        """Return the bets of a round drawn at ``precision``: two per cell.

        The items of an exact range are added, since computing it takes one step per item.
        """
        finer = max(1.0, self._cell / cell_width(precision, self._plan.scale))
        items = self._plan.items if self._plan.policy.range == "exact" else 0
        return math.ceil(2.0 * finer * self.wealth.cells) + items

    def update(self, betting_round: BettingRound) -> None:
        """Bet on the round, then record its signals."""
        inputs = betting_round.inputs
        self._refine(inputs.precision)
        if self._minus is self._plus and betting_round.minus is not betting_round.plus:
            self._minus = deepcopy(self._plus)
        (above, below), (past, other) = inputs.reach, inputs.predicted
        plus = minus = self._side(past, betting_round.plus, above)
        if self._minus is not self._plus or below != above:
            minus = self._side(other, betting_round.minus, below)
        self.wealth.bet(betting_round.draw.round, plus, minus)
        self._record(self._plus, plus, betting_round.plus, betting_round.draw.q)
        if self._minus is not self._plus:
            self._record(self._minus, minus, betting_round.minus, betting_round.draw.q)

    def narrow(self, limits: Interval, *, last: bool) -> None:
        """Intersect with the cells not rejected and with the logical limits."""
        del last
        self.cut(self.wealth.hull, limits)

    def _refine(self, precision: float | None) -> None:
        """Split the cells when the round was drawn under a finer precision than theirs."""
        if precision == self._plan.precision:
            return
        cell = cell_width(precision, self._plan.scale)
        if cell < self._cell:
            self.wealth.split(cell)
            self._cell = cell

    @staticmethod
    def _record(side: Completion, side_bet: SideBet, signal: CompletionSignal, q: float) -> None:
        side.bettor.record(side_bet.value, side_bet.known)
        side.lure.record(signal.loss - signal.surrogate, q)

    def _side(self, past: Fractions, signal: CompletionSignal, reach: Range) -> SideBet:
        """Return the bet on the signal, or in the authors' form of ``evalue`` on the raw loss."""
        if not self._plan.policy.recentred:
            bet = Bet(self._plan.lower, self._plan.scale.width)
            return SideBet(past, bet, bet, signal.loss)
        known = Bet(signal.signal_range.lower, signal.signal_range.width)
        return SideBet(past, Bet(reach.lower, reach.width), known, signal.signal)

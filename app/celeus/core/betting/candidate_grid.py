"""A confidence sequence on a lattice of candidates, and its starting stakes for questions.

Each side of the lattice tests "the risk is at most v" at every candidate v in its own frame, with
the bets of ``betting.bets``; a candidate is out once its stakes sum to 1, and the end of the
interval is the candidate before the first one left
(docs/evidence/method.md#3-stakes-and-villes-inequality).
Questions move candidates to their thresholds and share the level out anew
(docs/evidence/method.md#6-target-pool).

Notation, in the plus frame: c a threshold, alpha the level of the lattice, p(v) alpha and
m(v) alpha the starting stakes of the candidate v on the plus side ("the risk is at most v") and on
the minus side ("the risk is at least v").

A lattice without questions has p = m = 1/2. With thresholds c_1 < ... < c_k, each of them a
candidate, a question is decided when the plus side has rejected all candidates up to c, or the
minus side all from c on. So

    p(v)   9/10 up to c_1, 1/10 above c_k, 1/2 between        m(v)   1 - p(v) off the thresholds
    p(c_1) 9/10, m(c_k) 9/10, all others at thresholds 1/2

Why that keeps alpha. Let R lie between the neighbours v < w of all candidates. It is lost from
below only when w is rejected, from above only when v is: together p(w) + m(v), and p falls, m grows
and this is at most 1 for all neighbours. On a candidate c = R nothing is lost by rejecting c itself
on either side, since the interval then ends at c: it is lost by the next candidate above c on the
plus side and the next one below c on the minus side. So p(c) + m(c) may be 9/5.

Answers yes are those of closed half-lines, and rejecting c itself gives them. The answer no to
"at most c" says "above c", and is what a candidate a rounding above c is for, c+; mirrored, c- for
"at least c". A threshold of one question needs c on one side and c+ or c- on the other, and both
may have 9/10 at c_1 = c_k: p(c+) + m(next below c) = 9/10 + 1/10. A threshold asked from both sides
needs all four, and at R = c both strict ones are wrong: p(c+) = m(c-) = 1/2. The two others keep
9/10, so that one of the two yeses comes as fast as if it had been asked alone.

Where no answer no is asked for (``strict`` false: a verdict on a difference) only closed half-lines
count, and no split is needed at all as long as no ``at least`` lies above an ``at most``: with a
the largest of the former and b >= a the smallest of the latter,

    p(v)   9/10 up to a, 1/10 above b, 1/2 between             m(v)   1/10 below a, 9/10 from b on

A verdict has a = b = 0, with thresholds at -margin and margin beside it. With several questions
that may be answered no this would leave 1/10 to most of the noes; they keep the first rule.
"""

import math
import sys
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.base import Accrued, Halves, WealthLost
from celeus.core.betting.bets import BetScale, Goal, bet, cap, goals_for, half_widths, padded
from celeus.core.betting.moments import Prediction, SideSignal

Floats = NDArray[np.float64]
Sides = dict[float, set[bool]]
"""Sides asked about each threshold: True for at most, False for at least."""

ONE_SIDED_SHARE = 0.9
"""Share of alpha given to the side that alone can decide a question."""
FINEST_GOAL = 0.5
"""Half-width of the finest goal, in 1 / sqrt(N); the pool ends before finer ones are reached."""
WHOLE = 1e-9
"""Distance in steps below which two places are the same."""


class CandidateGrid(NamedTuple):
    """Candidates of a side, ascending, in steps of the lattice, and their shares of the level."""

    grid: Floats
    share: Floats


class Threshold(NamedTuple):
    """The threshold of a question on the unit scale: at most ``at``, or at least."""

    at: float
    at_most: bool


def even_candidates(steps: int) -> CandidateGrid:
    """Return candidates at every step, each with half of the level."""
    return CandidateGrid(np.arange(steps + 1, dtype=np.float64), np.full(steps + 1, 0.5))


@dataclass(frozen=True, slots=True)
class ThresholdDesign:
    """Candidates, starting stakes and goals for questions about a pool of ``items``.

    ``slack`` is the tolerance of comparisons for rounding, ``drawable`` the number of items without
    a known loss (default: all). If not ``strict``, the answer no is never given.
    """

    thresholds: tuple[Threshold, ...]
    items: int
    slack: float
    drawable: int | None = None
    strict: bool = True

    @property
    def halves(self) -> Halves:
        """Half-widths without a precision that the pool can reach before it ends."""
        widths = half_widths(None)
        drawable = self.items if self.drawable is None else self.drawable
        least = FINEST_GOAL * math.sqrt(drawable) / self.items
        return tuple(width for width in widths if width >= least) or widths[:1]

    def goals(self, step: float, level: float) -> list[Goal]:
        """Return the goals of ``halves``."""
        # A level at which the normal quantile stays positive, whatever alpha.
        strong = min(2.0 * ONE_SIDED_SHARE * level, 0.5 + level / 2.0)
        halves = self.halves
        goals = goals_for(None, step, strong)[: len(halves)]
        return [replace(goal, share=1.0 / len(halves)) for goal in goals]

    def candidates(self, steps: int) -> tuple[CandidateGrid, CandidateGrid]:
        """Return the candidates of the plus and of the minus side, each in its frame."""
        kinds: Sides = {}
        for threshold in self.thresholds:
            kinds.setdefault(threshold.at, set()).add(threshold.at_most)
        first, last = min(kinds), max(kinds)
        if not self.strict:
            first = max((place for place, sides in kinds.items() if False in sides), default=first)
            last = min((place for place, sides in kinds.items() if True in sides), default=last)
        grid = np.arange(steps + 1, dtype=np.float64)
        for place in kinds:
            grid = grid[np.abs(grid - place * steps) > WHOLE]
        plus = np.where(
            grid < first * steps,
            ONE_SIDED_SHARE,
            np.where(grid > last * steps, 1.0 - ONE_SIDED_SHARE, 0.5),
        )
        above = self._with_thresholds(CandidateGrid(grid, plus), kinds, (first, last), steps)
        mirrored = {
            1.0 - threshold: {not kind for kind in sides} for threshold, sides in kinds.items()
        }
        below = self._with_thresholds(
            CandidateGrid(steps - grid[::-1], 1.0 - plus[::-1]),
            mirrored,
            (1.0 - last, 1.0 - first),
            steps,
        )
        return above, below

    def _with_thresholds(
        self, candidates: CandidateGrid, kinds: Sides, ends: tuple[float, float], steps: int
    ) -> CandidateGrid:
        """Return a side's candidates with the thresholds; a strict one lies a rounding higher."""
        first, last = ends
        added: list[tuple[float, float]] = []
        for threshold, sides in kinds.items():
            share = (
                ONE_SIDED_SHARE
                if threshold <= first
                else 1.0 - ONE_SIDED_SHARE
                if threshold > last
                else 0.5
            )
            above = threshold + 2.0 * self.slack
            if not self.strict or sides == {False}:
                added.append((threshold, share))
            elif sides == {True}:
                added.append((above, share))
            else:
                added += [(threshold, share), (above, 0.5)]
        thresholds, shares = np.array(added).T
        grid = np.concatenate([candidates.grid, thresholds * steps])
        order = np.argsort(grid, kind="stable")
        return CandidateGrid(grid[order], np.concatenate([candidates.share, shares])[order])


class LatticeSide:
    """One side of the lattice: its candidates not rejected, and their log stakes ([goals, n]).

    ``_grid`` holds all candidates, in steps; ``_standing`` are the indices of those not rejected.
    """

    __slots__ = ("_goals", "_grid", "_stake", "_standing", "_steps", "_value")

    def __init__(
        self, steps: int, level: float, goals: list[Goal], candidates: CandidateGrid | None = None
    ) -> None:
        initial = candidates or even_candidates(steps)
        self._steps = steps
        self._grid = initial.grid
        self._standing = np.arange(initial.grid.size)
        self._value: Floats = initial.grid / steps
        start = math.log(level / 2.0) + np.log(2.0 * initial.share)
        self._stake: Floats = start + _log_shares(goals)
        self._goals = goals

    @property
    def lower_bound(self) -> float | None:
        """Lower confidence bound in this side's frame; None when no candidate is left."""
        if not self._standing.size:
            return None
        return float(self._grid[max(int(self._standing[0]) - 1, 0)]) / self._steps

    @property
    def candidates(self) -> int:
        """Number of candidates not rejected."""
        return self._standing.size

    @property
    def goal(self) -> Goal:
        """The first goal."""
        return self._goals[0]

    @property
    def _played(self) -> Floats:
        """Log stakes that determine the size of the bets."""
        return self._stake

    def update(
        self, prediction: Prediction, accrued: tuple[float, ...], signal: SideSignal
    ) -> None:
        """Bet on a signal and drop the candidates that it rejects; ``accrued`` is I by goal."""
        if self._standing.size and self._value[0] < signal.floor:
            self._slice(int(np.searchsorted(self._value, signal.floor)), self._standing.size)
        if not self._standing.size:
            return
        bet_scales = [
            goal.bet_scale(padded(prediction, goal.half), past)
            for goal, past in zip(self._goals, accrued, strict=True)
        ]
        bet_scale = BetScale(*np.array(bet_scales).T[:, :, None])
        gain = bet(
            self._played, bet_scale, cap(self._value, prediction.lower, bet_scale.largest_bet)
        )
        gain *= signal.value - self._value
        if gain.min() <= -1.0:
            message = f"{signal!r} below its range {prediction.lower!r} took a whole stake"
            raise WealthLost(message)
        self._stake += np.log1p(gain, out=gain)
        self._drop_rejected()

    def restrict(self, lower: float, upper: float) -> None:
        """Drop the candidates outside [lower, upper], except the nearest one beyond each end."""
        if not self._standing.size:
            return
        first, last = np.searchsorted(self._grid, (lower * self._steps, upper * self._steps))
        if self._standing[0] < first or self._standing[-1] > last:
            start, stop = np.searchsorted(self._standing, (first, last + 1))
            self._slice(int(start), int(stop))

    def refine(self, steps: int, candidates: CandidateGrid | None = None) -> None:
        """Refine the lattice; a new candidate inherits the stake of the next old one above it."""
        grid = (candidates or even_candidates(steps)).grid
        # Rounding alone: a strict candidate lies 32 last digits above its threshold.
        slack = 8.0 * sys.float_info.epsilon * self._steps
        above = np.searchsorted(self._grid, grid * self._steps / steps - slack)
        place = np.searchsorted(self._standing, above)
        inherits = place < self._standing.size
        inherits[inherits] = self._standing[place[inherits]] == above[inherits]
        self._grid = grid
        self._standing = np.flatnonzero(inherits)
        self._take(place[inherits])
        self._value = grid[self._standing] / steps
        self._steps = steps

    def retarget(self, goals: list[Goal]) -> None:
        """Set new goals for later bets; their stakes are divided again, with the same sum."""
        if len(self._goals) != len(goals):
            self._stake = np.logaddexp.reduce(self._stake, axis=0) + _log_shares(goals)
        self._goals = goals

    def _drop_rejected(self) -> None:
        if len(self._goals) == 1:
            standing = self._stake[0] < 0.0
        else:
            standing = np.exp(self._stake).sum(axis=0) < 1.0
        if not standing.all():
            self._standing = self._standing[standing]
            self._value = self._value[standing]
            self._stake = self._stake[:, standing]

    def _slice(self, start: int, stop: int) -> None:
        self._standing = self._standing[start:stop]
        self._value = self._value[start:stop]
        self._take(slice(start, stop))

    def _take(self, which: NDArray[np.intp] | slice) -> None:
        """Keep the stakes of the candidates at these places; a place may occur twice."""
        self._stake = self._stake[:, which]


def _log_shares(goals: list[Goal]) -> Floats:
    """Return the logarithms of the goals' shares of a stake, shape [goals, 1]."""
    return np.log([[goal.share] for goal in goals])


class Lattice:
    """A confidence sequence for the pool risk at ``level``, in the plus frame.

    Its information goal is that of ``half_factor`` times the half-width. ``design`` places
    candidates and stakes at the thresholds of questions.
    """

    __slots__ = ("_design", "_half_factor", "_level", "_steps", "sides")

    side: ClassVar[type[LatticeSide]] = LatticeSide

    def __init__(
        self,
        steps: int,
        level: float,
        half: float | None,
        half_factor: float = 1.0,
        *,
        design: ThresholdDesign | None = None,
    ) -> None:
        self._steps = steps
        self._level = level
        self._half_factor = half_factor
        self._design = design
        self.sides = [
            self.side(steps, level, self._goals(half), candidates)
            for candidates in self._candidates()
        ]

    @property
    def hull(self) -> tuple[float, float] | None:
        """Interval for the risk, or None when no candidate is left between the two sides."""
        lower, mirrored = (side.lower_bound for side in self.sides)
        if lower is None or mirrored is None or lower > 1.0 - mirrored:
            return None
        return lower, 1.0 - mirrored

    @property
    def goal(self) -> Goal:
        """The first goal of both sides."""
        return self.sides[0].goal

    def halves(self, half: float | None) -> Halves:
        """Return the half-widths of the goals for a half-width of ``half``."""
        if half is None and self._design is not None:
            return self._design.halves
        return half_widths(half)

    def bets_per_round(self, steps: int, *, goals: int) -> int:
        """Return the bets of a round on a lattice of ``steps``, one per candidate and goal."""
        finer = max(1, -(-steps // self._steps))
        return goals * finer * sum(side.candidates for side in self.sides)

    def update(
        self,
        predicted: tuple[Prediction, Prediction],
        accrued: Accrued,
        signals: tuple[SideSignal, SideSignal],
    ) -> None:
        """Bet on a round, each side in its own frame."""
        for side, prediction, sums, signal in zip(
            self.sides, predicted, accrued, signals, strict=True
        ):
            side.update(prediction, sums, signal)

    def restrict(self, lower: float, upper: float) -> None:
        """Drop the candidates outside [lower, upper], except the nearest one beyond each end."""
        self.sides[0].restrict(lower, upper)
        self.sides[1].restrict(1.0 - upper, 1.0 - lower)

    def retarget(self, half: float | None, steps: int) -> None:
        """Set the half-width for later bets, on a finer lattice when ``steps`` is larger."""
        finer = steps > self._steps
        self._steps = max(steps, self._steps)
        for side, candidates in zip(self.sides, self._candidates(), strict=True):
            if finer:
                side.refine(self._steps, candidates)
            side.retarget(self._goals(half))

    def _candidates(self) -> tuple[CandidateGrid, CandidateGrid]:
        if self._design is None:
            both = even_candidates(self._steps)
            return both, both
        return self._design.candidates(self._steps)

    def _goals(self, half: float | None) -> list[Goal]:
        if half is None and self._design is not None:
            return self._design.goals(1.0 / self._steps, self._level)
        return goals_for(half, 1.0 / self._steps, self._level, self._half_factor)

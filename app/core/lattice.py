"""The pool risk between two ladders of candidates (METHOD 10, target pool).

Candidates are v_i = i / M on a side's unit scale. The process of v_i tests "the risk is at most
v_i": with lam >= 0 its stake is a supermartingale for every such risk, so rejecting v_i rejects
all of them, and the true risk lies above the last candidate of the initial run of rejected ones.
The minus side does the same in its mirrored frame. A candidate is out for ever once its stakes,
one for each goal, add up to 1, and when it lies below the range of a signal.
"""

import math

import numpy as np
from numpy.typing import NDArray

from app.core.asked import WHOLE, Asked, Rungs, even
from app.core.eprocess import WealthLost
from app.core.goals import Goal, Pace, bet, cap, goals, padded
from app.core.sight import View

Floats = NDArray[np.float64]


class Ladder:
    """The candidates of one side still standing, with their log stakes (shape [goals, n]).

    ``_grid`` holds all candidates, in steps, and ``_rung`` the places in it of those that stand.
    """

    __slots__ = ("_goals", "_grid", "_rung", "_stake", "_steps", "_value")

    def __init__(
        self, steps: int, level: float, aims: list[Goal], rungs: Rungs | None = None
    ) -> None:
        placed = rungs or even(steps)
        self._steps = steps
        self._grid = placed.grid
        self._rung = np.arange(placed.grid.size)
        self._value: Floats = placed.grid / steps
        start = math.log(level / (2.0 * len(aims))) + np.log(2.0 * placed.share)
        self._stake: Floats = np.tile(start, (len(aims), 1))
        self._goals = aims

    @property
    def floor(self) -> float | None:
        """The risk is at least this; None when no candidate is left."""
        if not self._rung.size:
            return None
        return float(self._grid[max(int(self._rung[0]) - 1, 0)]) / self._steps

    def play(self, view: View, signal: float) -> None:
        """Bet on a signal and drop the candidates that are out."""
        if self._rung.size and self._value[0] < view.lower:
            self._slice(int(np.searchsorted(self._value, view.lower)), self._rung.size)
        if not self._rung.size:
            return
        variances = [padded(view, goal.half) for goal in self._goals]
        paces = [goal.pace(one) for goal, one in zip(self._goals, variances, strict=True)]
        pace = Pace(*np.array(paces).T[:, :, None])
        gain = bet(self._stake, pace, cap(self._value, view.lower, pace.fastest))
        gain *= signal - self._value
        if gain.min() <= -1.0:
            message = f"a signal {signal!r} below its range {view.lower!r} took a whole stake"
            raise WealthLost(message)
        self._stake += np.log1p(gain, out=gain)
        for goal, variance in zip(self._goals, variances, strict=True):
            goal.spent += 1.0 / variance
        self._drop_rejected()

    def keep(self, lower: float, upper: float) -> None:
        """Forget the candidates that no risk in [lower, upper] needs: one beyond it stays."""
        if not self._rung.size:
            return
        first, last = np.searchsorted(self._grid, (lower * self._steps, upper * self._steps))
        if self._rung[0] < first or self._rung[-1] > last:
            start, stop = np.searchsorted(self._rung, (first, last + 1))
            self._slice(int(start), int(stop))

    def split(self, steps: int, rungs: Rungs | None = None) -> None:
        """Go over to a finer ladder; a new candidate inherits from the next old one above."""
        grid = (rungs or even(steps)).grid
        above = np.searchsorted(self._grid, grid * self._steps / steps - WHOLE)
        at = np.searchsorted(self._rung, above)
        known = at < self._rung.size
        known[known] = self._rung[at[known]] == above[known]
        self._grid = grid
        self._rung = np.flatnonzero(known)
        self._stake = self._stake[:, at[known]]
        self._value = grid[self._rung] / steps
        self._steps = steps

    def aim(self, aims: list[Goal]) -> None:
        """New goals for later bets: the stakes are shared out anew, their sum stays.

        The information of the goal nearest in width goes on counting.
        """
        old = self._goals
        for goal in aims:
            nearest = min(old, key=lambda one: abs(math.log(one.half / goal.half)))
            goal.spent = nearest.spent
        if len(old) != len(aims):
            total = np.logaddexp.reduce(self._stake, axis=0) - math.log(len(aims))
            self._stake = np.tile(total, (len(aims), 1))
        self._goals = aims

    def _drop_rejected(self) -> None:
        if len(self._goals) == 1:
            standing = self._stake[0] < 0.0
        else:
            standing = np.exp(self._stake).sum(axis=0) < 1.0
        if not standing.all():
            self._rung = self._rung[standing]
            self._value = self._value[standing]
            self._stake = self._stake[:, standing]

    def _slice(self, start: int, stop: int) -> None:
        self._rung = self._rung[start:stop]
        self._value = self._value[start:stop]
        self._stake = self._stake[:, start:stop]


class Lattice:
    """A confidence sequence for the pool risk at ``level``, in the plus frame.

    ``reach`` times the half-width is what its information goal is taken from. ``asked`` places
    candidates and stakes where questions lie.
    """

    __slots__ = ("_asked", "_level", "_reach", "_steps", "sides")

    def __init__(
        self,
        steps: int,
        level: float,
        half: float | None,
        reach: float = 1.0,
        *,
        asked: Asked | None = None,
    ) -> None:
        self._steps = steps
        self._level = level
        self._reach = reach
        self._asked = asked
        self.sides = [Ladder(steps, level, self._goals(half), rungs) for rungs in self._rungs()]

    @property
    def hull(self) -> tuple[float, float] | None:
        """Where the risk lies, or None when the two sides leave nothing."""
        lower, mirrored = (side.floor for side in self.sides)
        if lower is None or mirrored is None or lower > 1.0 - mirrored:
            return None
        return lower, 1.0 - mirrored

    def play(self, views: tuple[View, View], signals: tuple[float, float]) -> None:
        """Bet on a round, each side in its own frame."""
        for side, view, signal in zip(self.sides, views, signals, strict=True):
            side.play(view, signal)

    def keep(self, lower: float, upper: float) -> None:
        """The risk is known to lie in [lower, upper]."""
        self.sides[0].keep(lower, upper)
        self.sides[1].keep(1.0 - upper, 1.0 - lower)

    def aim(self, half: float | None, steps: int) -> None:
        """A new half-width for later bets, on a finer lattice when ``steps`` asks for one."""
        finer = steps > self._steps
        self._steps = max(steps, self._steps)
        for side, rungs in zip(self.sides, self._rungs(), strict=True):
            if finer:
                side.split(self._steps, rungs)
            side.aim(self._goals(half))

    def _rungs(self) -> tuple[Rungs, Rungs]:
        if self._asked is None:
            both = even(self._steps)
            return both, both
        return self._asked.rungs(self._steps)

    def _goals(self, half: float | None) -> list[Goal]:
        if half is None and self._asked is not None:
            return self._asked.goals(1.0 / self._steps, self._level)
        return goals(half, 1.0 / self._steps, self._level, self._reach)

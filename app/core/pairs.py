"""Pairs (v, r) of pool risk and population risk: the bets for target population (METHOD 10).

A row is a population risk r_i = i / M of a side's frame, tested as "the population risk is at most
r_i". It is out when every pair (v, r_i) is out whose v lies in a loose interval C for the pool
risk. A pair starts with what the pool is worth as evidence (``pairplan``) and bets against
R_N = v. Cells [v, v + 1/M] carry the log stakes of both edges with one bet: for a fixed bet the
log stake is concave in v, so its least value over the cell is at an edge. A cell is out

    once both edges have a log stake of at least 0 at the same time, or
    when the whole cell lies below the range of a signal,

never when only its lower edge lies below it: the pool risk may still be in the rest.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.eprocess import WealthLost
from app.core.goals import bet, cap, paces, padded
from app.core.pairplan import PairPlan
from app.core.sight import View

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

COMPRESS_EVERY = 8
ROUNDING = 1e-6
BLOCK = 8192
"""Cells that bet together: their arrays stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Board:
    """A round as cells see it: pace and largest bet by row, largest bet by cell.

    ``away`` is the signal less every lattice point, shape [steps + 1].
    """

    pace: Floats
    largest: Floats
    most: Floats
    away: Floats

    def play(self, row: Indices, cell: Indices, below: Floats, above: Floats) -> float:
        """Bet with some cells and change their stakes; returns the worst gain of all."""
        stake = below + above
        stake *= 0.5
        lam = bet(stake, self.pace.take(row), self.largest.take(row), self.most.take(cell))
        low = self.away.take(cell)
        low *= lam
        below += np.log1p(low)
        high = self.away[1:].take(cell)
        high *= lam
        worst = float(high.min())
        above += np.log1p(high) if worst > -1.0 else -np.inf
        out = (below >= 0.0) & (above >= 0.0)
        below[out] = np.inf
        above[out] = np.inf
        return worst


class PairSide:
    """The rows and pair cells of one side.

    ``first`` is the first row that is not out. Cells lie in flat arrays ordered by row; a cell
    that is out has infinite stakes until the arrays are compressed.
    """

    __slots__ = (
        "_above",
        "_below",
        "_cell",
        "_edge",
        "_kappa",
        "_least",
        "_opened",
        "_plan",
        "_played",
        "_row",
        "_sigma",
        "_spent",
        "_start",
        "first",
    )

    def __init__(self, plan: PairPlan, half: float) -> None:
        self._plan = plan
        self._edge = plan.risks()
        self._sigma = plan.sigma(self._edge, half)
        self._kappa = plan.kappa(self._sigma, self._edge)
        self._start = plan.start(self._kappa, self._edge)
        # No pool risk below this cell may be left when the row goes out; the row carries one cell
        # more, so that rounding of the two cannot part them.
        reach = np.floor((self._edge - 2.0 * self._sigma) * plan.steps)
        self._least: Indices = np.maximum(reach, 0.0).astype(np.intp)
        self._opened = False
        self._played = 0
        self._spent = 0.0
        self.first = 0
        self._row: Indices = np.empty(0, dtype=np.intp)
        self._cell: Indices = np.empty(0, dtype=np.intp)
        self._below: Floats = np.empty(0)
        self._above: Floats = np.empty(0)

    @property
    def floor(self) -> float | None:
        """The population risk is at least this; None when no row is left."""
        if self.first > self._plan.steps:
            return None
        return max(self.first - 1, 0) / self._plan.steps

    @property
    def cells(self) -> int:
        """Number of cells carried."""
        return int(self._row.size)

    def goals(self, half: float) -> Floats:
        """I* of every row for bets at half-width ``half``."""
        return np.asarray(1.0 / self._plan.sigma(self._edge, half) ** 2)

    def open(self, lower: float, upper: float, most: float) -> None:
        """Set up the cells that meet C = [lower, upper], for rows up to the risk ``most``."""
        steps = self._plan.steps
        last = min(int(np.ceil(most * steps)), steps)
        row = np.arange(self.first, last + 1)
        # From here on the start alone is a stake of 1.
        beyond = np.ceil(-self._start[row] / self._kappa[row] * steps)
        begin = np.maximum(np.maximum(self._least[row] - 1, 0), _first_cell(lower, steps))
        end = np.minimum(beyond, min(_last_cell(upper, steps), steps - 1) + 1).astype(np.int64)
        count = np.maximum(end - begin, 0)
        self._row = np.repeat(row, count).astype(np.intp)
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        self._cell = (np.repeat(begin, count) + within).astype(np.intp)
        start, kappa = self._start[self._row], self._kappa[self._row]
        self._below = start + kappa * self._edge[self._cell]
        self._above = start + kappa * self._edge[self._cell + 1]
        self._opened = True
        self._drop(self._below >= 0.0)

    def play(self, view: View, signal: float, half: float, goals: Floats) -> None:
        """Bet on a signal with every cell; ``goals`` are those of ``half``."""
        variance = padded(view, half)
        if self._row.size:
            self._bet(view, signal, paces(goals, self._spent, half, variance))
        self._spent += 1.0 / variance

    def settle(self, lower: float, upper: float, most: float) -> None:
        """Find the first row not out, given C = [lower, upper]; drop cells nobody needs."""
        out = self._start + self._kappa * lower >= 0.0
        self.first = max(self.first, _initial_run(out))
        if not self._opened:
            return
        steps = self._plan.steps
        unneeded = self._cell < _first_cell(lower, steps)
        unneeded |= self._cell > _last_cell(upper, steps)
        unneeded |= (self._row < self.first) | (self._row > np.ceil(most * steps))
        unneeded &= self._below < np.inf
        if unneeded.any():
            self._drop(unneeded)
        # A pool risk below the cells of a row keeps it.
        covered = self._least <= lower * steps + ROUNDING
        with_cells = np.flatnonzero(self._below < np.inf)[:1]
        standing = int(self._row[with_cells[0]]) if with_cells.size else steps + 1
        self.first = max(self.first, min(standing, _initial_run(covered)))

    def _bet(self, view: View, signal: float, paces_: tuple[Floats, Floats]) -> None:
        upper = self._edge[1:]
        if upper[self._cell.min()] < view.lower:
            self._drop(upper[self._cell] < view.lower)
        board = Board(*paces_, cap(upper, view.lower), signal - self._edge)
        least = 0.0
        for start in range(0, self._row.size, BLOCK):
            part = slice(start, start + BLOCK)
            stakes = self._below[part], self._above[part]
            least = min(least, board.play(self._row[part], self._cell[part], *stakes))
        if least <= -1.0:
            message = f"a signal {signal!r} below its range {view.lower!r} took a whole stake"
            raise WealthLost(message)
        self._played += 1
        if self._played % COMPRESS_EVERY == 0:
            self._drop(np.zeros(self._row.size, dtype=np.bool_))

    def _drop(self, out: NDArray[np.bool_]) -> None:
        """Leave these cells, and those with infinite stakes, for good."""
        kept = ~out & (self._below < np.inf)
        self._row, self._cell = self._row[kept], self._cell[kept]
        self._below, self._above = self._below[kept], self._above[kept]


def _initial_run(out: NDArray[np.bool_]) -> int:
    """Length of the initial run of true values."""
    return int(out.size if out.all() else np.argmin(out))


def _first_cell(lower: float, steps: int) -> int:
    """First cell that meets a risk of at least ``lower``."""
    return int(np.ceil(lower * steps)) - 1


def _last_cell(upper: float, steps: int) -> int:
    """Last cell that meets a risk of at most ``upper``."""
    return int(np.floor(upper * steps))

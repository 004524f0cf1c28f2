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
from typing import NamedTuple

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
WINDOW = 64
BLOCK = 8192
"""Cells that bet together: their arrays stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Board:
    """A round as cells see it: pace and largest bet by row, and largest bet by cell.

    Rows count from the first one with cells. ``away`` is the signal less every lattice point, shape
    [steps + 1], and ``step`` their distance.
    """

    pace: Floats
    largest: Floats
    most: Floats
    away: Floats
    step: float

    def play(self, row: Indices, cell: Indices, below: Floats, above: Floats) -> float:
        """Bet with some cells and change their stakes; returns the worst gain of all."""
        stake = below + above
        stake *= 0.5
        largest = self.largest if self.largest.size == 1 else self.largest.take(row)
        lam = bet(stake, self.pace.take(row), largest, self.most.take(cell))
        low = self.away.take(cell)
        low *= lam
        lam *= self.step
        high = low - lam
        worst = float(high.min())
        below += np.log1p(low, out=low)
        above += np.log1p(high, out=high) if worst > -1.0 else -np.inf
        out = (below >= 0.0) & (above >= 0.0)
        below[out] = np.inf
        above[out] = np.inf
        return worst


class PairCells:
    """Cells in flat arrays ordered by row; one that is out has infinite stakes until it leaves."""

    __slots__ = ("_edge", "_played", "_spent", "above", "below", "cell", "row")

    def __init__(
        self, row: Indices, cell: Indices, stakes: tuple[Floats, Floats], edge: Floats
    ) -> None:
        self.row, self.cell = row, cell
        self.below, self.above = stakes
        self._edge = edge
        self._played = 0
        self._spent = 0.0

    @property
    def lowest_row(self) -> int | None:
        """The lowest row with a cell that stands."""
        standing = np.flatnonzero(self.below < np.inf)[:1]
        return int(self.row[standing[0]]) if standing.size else None

    def play(self, view: View, signal: float, half: float, goals: Floats) -> None:
        """Bet on a signal with every cell; ``goals`` are those of the half-width ``half``."""
        variance = padded(view, half)
        if self.row.size:
            first = int(self.row[0])
            needed = goals[first : int(self.row[-1]) + 1]
            self._bet(view, signal, paces(needed, self._spent, half, variance), first)
        self._spent += 1.0 / variance

    def drop(self, out: NDArray[np.bool_]) -> None:
        """Leave these cells, and those with infinite stakes, for good."""
        kept = ~out & (self.below < np.inf)
        self.row, self.cell = self.row[kept], self.cell[kept]
        self.below, self.above = self.below[kept], self.above[kept]

    def join(self, higher: "PairCells") -> None:
        """Take in cells of higher rows that have played the same rounds."""
        self.row = np.concatenate([self.row, higher.row])
        self.cell = np.concatenate([self.cell, higher.cell])
        self.below = np.concatenate([self.below, higher.below])
        self.above = np.concatenate([self.above, higher.above])

    def _bet(self, view: View, signal: float, paces_: tuple[Floats, Floats], first: int) -> None:
        upper = self._edge[1:]
        if upper[self.cell.min()] < view.lower:
            self.drop(upper[self.cell] < view.lower)
        away = signal - self._edge
        board = Board(*paces_, cap(upper, view.lower), away, float(self._edge[1]))
        least = 0.0
        for start in range(0, self.row.size, BLOCK):
            part = slice(start, start + BLOCK)
            stakes = self.below[part], self.above[part]
            least = min(least, board.play(self.row[part] - first, self.cell[part], *stakes))
        if least <= -1.0:
            message = f"a signal {signal!r} below its range {view.lower!r} took a whole stake"
            raise WealthLost(message)
        self._played += 1
        if self._played % COMPRESS_EVERY == 0:
            self.drop(np.zeros(self.row.size, dtype=np.bool_))


class Record(NamedTuple):
    """What a side needs of a round to play it later."""

    view: View
    signal: float
    half: float


class PairSide:
    """The rows of one side; ``first`` is the first row that is not out.

    Only rows up to a window above ``first`` have cells: the rows above cannot move the end of the
    interval yet. When the window is out the next one is set up and plays all rounds so far, so
    that every row is as if it had bet from round 1.
    """

    __slots__ = (
        "_edge",
        "_goals",
        "_kappa",
        "_least",
        "_next",
        "_plan",
        "_records",
        "_start",
        "cells",
        "first",
    )

    def __init__(self, plan: PairPlan, half: float) -> None:
        self._plan = plan
        self._edge = plan.risks()
        sigma = plan.sigma(self._edge, half)
        self._kappa = plan.kappa(sigma, self._edge)
        self._start = plan.start(self._kappa, self._edge)
        # No pool risk below this cell may be left when the row goes out; the row carries one cell
        # more, so that rounding of the two cannot part them.
        reach = np.floor((self._edge - 2.0 * sigma) * plan.steps)
        self._least: Indices = np.maximum(reach, 0.0).astype(np.intp)
        self._goals = {half: np.asarray(1.0 / sigma**2)}
        self._records: list[Record] = []
        self._next = 0
        self.first = 0
        self.cells: PairCells | None = None

    @property
    def floor(self) -> float | None:
        """The population risk is at least this; None when no row is left."""
        if self.first > self._plan.steps:
            return None
        return max(self.first - 1, 0) / self._plan.steps

    def play(self, view: View, signal: float, half: float) -> None:
        """Bet on a signal with the cells there are, and keep it for the others."""
        self._records.append(Record(view, signal, half))
        if self.cells is not None:
            self.cells.play(view, signal, half, self._goals_of(half))

    def settle(self, lower: float, upper: float, most: float, *, betting: bool) -> None:
        """Find the first row not out, given C = [lower, upper] and the largest risk ``most``.

        Unless ``betting``, the starting stakes alone decide.
        """
        out = self._start + self._kappa * lower >= 0.0
        self.first = max(self.first, _initial_run(out))
        if not betting:
            return
        steps = self._plan.steps
        last = min(int(np.ceil(most * steps)), steps)
        self._drop_unneeded(lower, upper, last)
        # A pool risk below the cells of a row keeps it.
        covered = _initial_run(self._least <= lower * steps + ROUNDING)
        standing = None if self.cells is None else self.cells.lowest_row
        self._next = max(self._next, self.first)
        while standing is None and self._next <= min(last, covered - 1):
            self._extend(lower, upper, min(self._next + WINDOW, last + 1))
            standing = None if self.cells is None else self.cells.lowest_row
        if standing is None:
            standing = self._next if self._next <= last else steps + 1
        self.first = max(self.first, min(standing, covered))

    def _goals_of(self, half: float) -> Floats:
        """I* of every row for bets at half-width ``half``."""
        if half not in self._goals:
            self._goals[half] = np.asarray(1.0 / self._plan.sigma(self._edge, half) ** 2)
        return self._goals[half]

    def _drop_unneeded(self, lower: float, upper: float, last: int) -> None:
        """Leave the cells outside C, of rows that are out and of rows above ``last``."""
        cells, steps = self.cells, self._plan.steps
        if cells is None:
            return
        unneeded = (cells.cell < _first_cell(lower, steps)) | (cells.row < self.first)
        unneeded |= (cells.cell > _last_cell(upper, steps)) | (cells.row > last)
        unneeded &= cells.below < np.inf
        if unneeded.any():
            cells.drop(unneeded)

    def _extend(self, lower: float, upper: float, stop: int) -> None:
        """Set up the rows before ``stop`` and let them play all rounds so far."""
        cells = self._set_up(lower, upper, np.arange(self._next, stop))
        for view, signal, half in self._records:
            cells.play(view, signal, half, self._goals_of(half))
        if self.cells is None:
            self.cells = cells
        else:
            self.cells.join(cells)
        self._next = stop

    def _set_up(self, lower: float, upper: float, row: Indices) -> PairCells:
        """Cells of these rows that meet C, with their starting stakes."""
        steps = self._plan.steps
        # From here on the start alone is a stake of 1.
        beyond = np.ceil(-self._start[row] / self._kappa[row] * steps)
        begin = np.maximum(np.maximum(self._least[row] - 1, 0), _first_cell(lower, steps))
        end = np.minimum(beyond, min(_last_cell(upper, steps), steps - 1) + 1).astype(np.intp)
        count = np.maximum(end - begin, 0)
        rows = np.repeat(row, count)
        within = np.arange(rows.size) - np.repeat(np.cumsum(count) - count, count)
        cell = np.repeat(begin, count) + within
        start, kappa = self._start[rows], self._kappa[rows]
        stakes = start + kappa * self._edge[cell], start + kappa * self._edge[cell + 1]
        cells = PairCells(rows, cell, stakes, self._edge)
        cells.drop(stakes[0] >= 0.0)
        return cells


def _initial_run(out: NDArray[np.bool_]) -> int:
    """Length of the initial run of true values."""
    return int(out.size if out.all() else np.argmin(out))


def _first_cell(lower: float, steps: int) -> int:
    """First cell that meets a risk of at least ``lower``."""
    return int(np.ceil(lower * steps)) - 1


def _last_cell(upper: float, steps: int) -> int:
    """Last cell that meets a risk of at most ``upper``."""
    return int(np.floor(upper * steps))

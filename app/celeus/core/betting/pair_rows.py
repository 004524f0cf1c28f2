"""Pairs (v, r) of pool risk and population risk: the bets for target population.

See docs/evidence/method.md#7-target-population-pairs.

A row is a population risk r_i = i / M of a side's frame, tested as "the population risk is at most
r_i". It is out when every pair (v, r_i) is out whose v lies in a loose interval C for the pool
risk. A pair starts with what the pool says of the population (``plans.pair_plan``) and bets against
R_N = v. Cells [v, v + 1/M] carry the log stakes of both edges with one bet: for a fixed bet the
log stake is concave in v, so its least value over the cell is at an edge. A cell is out

    once both edges have a log stake of at least 0 at the same time
        (where some round has no loss: once that of the upper edge is at least kappa / M), or
    when the whole cell lies below the range of a signal,

never when only its lower edge lies below it: the pool risk may still be in the rest.
"""

import math

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.bets import SOFTNESS, RowGoals, padded
from celeus.core.betting.moments import Prediction, SideSignal
from celeus.core.betting.pair_cells import PairCells, PairRound
from celeus.core.growing_array import Table
from celeus.core.pause import pause
from celeus.core.plans.pair_plan import PairPlan

Indices = NDArray[np.intp]

ROUNDING = 1e-6
WINDOW = 64


class PairSide:
    """The rows of one side; ``first`` is the first row that is not out.

    Only rows up to a window above ``first`` have cells: the rows above cannot move the end of the
    interval yet. When the window is out the next one is set up and bets on all rounds so far, so
    that every row is as if it had bet from round 1.
    """

    __slots__ = (
        "_by_bound",
        "_covered",
        "_edge",
        "_goals",
        "_kappa",
        "_least",
        "_lower",
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
        sigma, self._kappa, self._start = plan.lattice_starts(half)
        # No pool risk below this cell may be left when the row goes out; the row carries one cell
        # more, so that rounding of the two cannot part them.
        reach = np.floor((self._edge - 2.0 * sigma) * plan.steps)
        self._least: Indices = np.maximum(reach, 0.0).astype(np.intp)
        self._goals = {half: RowGoals.of(1.0 / sigma**2)}
        self._records = Table(len(PairRound._fields))
        self._next = 0
        self._lower = math.nan
        self._covered = 0
        self._by_bound = False
        self.first = 0
        self.cells: PairCells | None = None

    @property
    def lower_bound(self) -> float | None:
        """Lower confidence bound in this side's frame; None when no row is left."""
        if self.first > self._plan.steps:
            return None
        return max(self.first - 1, 0) / self._plan.steps

    def count_unjudged(self) -> None:
        """From now on cells are out by their upper edges, also those set up later."""
        self._by_bound = True
        if self.cells is not None:
            self.cells.by_bound = True

    def goal_at(self, risk: float, half: float) -> float:
        """Return I* of a population risk, for bets at half-width ``half``."""
        return float(np.interp(risk, self._edge, self._goals_of(half).soft)) / SOFTNESS

    @property
    def rounds(self) -> int:
        """Rounds kept for replay by rows that have no cells yet."""
        return len(self._records)

    @property
    def nearly_out(self) -> bool:
        """True if few rows with cells are left; the next rows will bet on all past rounds."""
        if self._next >= self._covered:
            return False
        standing = None if self.cells is None else self.cells.lowest_row
        return standing is None or standing >= self._next - WINDOW // 4

    def update(
        self, prediction: Prediction, accrued: float, signal: SideSignal, half: float
    ) -> None:
        """Bet on a signal with the present cells, and keep it for rows set up later."""
        variance = padded(prediction, half)
        round_ = PairRound(prediction.lower, signal.floor, variance, accrued, signal.value, half)
        self._records.append(round_)
        if self.cells is not None:
            self.cells.update(round_, self._goals_of(half))

    def advance(self, lower: float, upper: float, most: float, *, betting: bool) -> None:
        """Advance to the first row not out, for C = [lower, upper] and the largest risk ``most``.

        If not ``betting``, only the starting stakes count.
        """
        if lower != self._lower:
            self._reject_by_start(lower)
        if not betting:
            return
        steps = self._plan.steps
        last = min(math.ceil(most * steps), steps)
        self._drop_unneeded(lower, upper, last)
        standing = None if self.cells is None else self.cells.lowest_row
        self._next = max(self._next, self.first)
        while standing is None and self._next <= min(last, self._covered - 1):
            self._extend(lower, upper, min(self._next + WINDOW, last + 1))
            standing = None if self.cells is None else self.cells.lowest_row
        if standing is None:
            standing = self._next if self._next <= last else steps + 1
        self.first = max(self.first, min(standing, self._covered))

    def _reject_by_start(self, lower: float) -> None:
        """Skip rows rejected by their starting stakes; count rows with cells from ``lower`` on."""
        self._lower = lower
        out = self._start + self._kappa * lower >= 0.0
        self.first = max(self.first, _initial_run(out))
        # A pool risk below the cells of a row keeps it.
        self._covered = _initial_run(self._least <= lower * self._plan.steps + ROUNDING)

    def _goals_of(self, half: float) -> RowGoals:
        """Return I* of every row for bets at half-width ``half``."""
        if half not in self._goals:
            self._goals[half] = RowGoals.of(1.0 / self._plan.sigma(self._edge, half) ** 2)
        return self._goals[half]

    def _drop_unneeded(self, lower: float, upper: float, last: int) -> None:
        """Drop the cells outside C, of rows that are out and of rows above ``last``."""
        cells, steps = self.cells, self._plan.steps
        if cells is None:
            return
        least, largest = _first_cell(lower, steps), _last_cell(upper, steps)
        if cells.lie_within((least, largest), (self.first, last)):
            return
        unneeded = (cells.cell < least) | (cells.row < self.first)
        unneeded |= (cells.cell > largest) | (cells.row > last)
        unneeded &= cells.below < np.inf
        if unneeded.any():
            cells.drop(unneeded)

    def _extend(self, lower: float, upper: float, stop: int) -> None:
        """Set up the rows before ``stop`` and let them bet on all rounds so far."""
        cells = self._cells_of(lower, upper, np.arange(self._next, stop))
        for number in range(len(self._records)):
            pause()
            round_ = PairRound(*self._records[number])
            cells.update(round_, self._goals_of(round_.half))
        if self.cells is None:
            self.cells = cells
        else:
            self.cells.join(cells)
        self._next = stop

    def _cells_of(self, lower: float, upper: float, row: Indices) -> PairCells:
        """Return the cells of these rows that meet C, with their starting stakes."""
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
        cells = PairCells(rows, cell, stakes, self._edge, self._kappa)
        cells.by_bound = self._by_bound
        cells.drop(stakes[0] >= 0.0)
        return cells


def _initial_run(out: NDArray[np.bool_]) -> int:
    """Return the length of the initial run of true values."""
    return int(out.size if out.all() else np.argmin(out))


def _first_cell(lower: float, steps: int) -> int:
    """Return the first cell that meets a risk of at least ``lower``."""
    return math.ceil(lower * steps) - 1


def _last_cell(upper: float, steps: int) -> int:
    """Return the last cell that meets a risk of at most ``upper``."""
    return math.floor(upper * steps)

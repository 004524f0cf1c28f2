"""Cells of pairs in flat arrays, and the round that all of them bet on (see ``pairs``).

A cell is [v, v + step] in a row, and carries the log stakes of both edges, each below 0 until the
cell is out. Cells are many and rounds too: what a round needs of a cell is kept beside it, and
what cannot bind a bet is not computed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.eprocess import WealthLost
from app.core.goals import Pace, RowGoals, bet, cap, padded
from app.core.sight import View

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

COMPRESS_EVERY = 8
BLOCK = 8192
"""Cells that bet together: their arrays stay in the processor's cache."""


class Places(NamedTuple):
    """Of every cell: its row and itself, counted from the first ones there are, and its v."""

    row: Indices
    cell: Indices
    edge: Floats

    def part(self, of: slice) -> "Places":
        """Some of them."""
        return Places(self.row[of], self.cell[of], self.edge[of])


class Board(NamedTuple):
    """A round as cells see it; rows and cells count from the first ones there are.

    ``most`` is the largest bet by cell, None where the pace's own largest binds every cell before.
    """

    signal: float
    pace: Pace
    most: Floats | None
    step: float

    def play(self, places: Places, below: Floats, above: Floats) -> tuple[float, bool]:
        """Bet with cells and change their stakes: the worst gain of all, and whether one is out."""
        stake = below + above
        stake *= 0.5
        pace = self.pace.take(places.row)
        lam = bet(stake, pace, None if self.most is None else self.most.take(places.cell))
        low = self.signal - places.edge
        low *= lam
        lam *= self.step
        high = low - lam
        worst = float(high.min())
        below += np.log1p(low, out=low)
        above += np.log1p(high, out=high) if worst > -1.0 else -np.inf
        least = np.minimum(below, above, out=low)
        if least.max() < 0.0:
            return worst, False
        out = least >= 0.0
        below[out] = np.inf
        above[out] = np.inf
        return worst, True


class PairCells:
    """Cells in flat arrays ordered by row; one that is out has infinite stakes until it leaves."""

    __slots__ = (
        "_edge",
        "_first",
        "_last",
        "_out",
        "_places",
        "_played",
        "_spent",
        "above",
        "below",
        "cell",
        "row",
    )

    def __init__(
        self, row: Indices, cell: Indices, stakes: tuple[Floats, Floats], edge: Floats
    ) -> None:
        self._edge = edge
        self._played = 0
        self._spent = 0.0
        self._set(row, cell, *stakes)

    @property
    def lowest_row(self) -> int | None:
        """The lowest row with a cell that stands."""
        if not self.row.size:
            return None
        if not self._out:
            return int(self.row[0])
        standing = self.below < np.inf
        lowest = int(standing.argmax())
        return int(self.row[lowest]) if standing[lowest] else None

    def lie_within(self, cells: tuple[int, int], rows: tuple[int, int]) -> bool:
        """No cell lies outside these cells or these rows, first and last one."""
        if not self.row.size:
            return True
        if self._first < cells[0] or self._last > cells[1]:
            return False
        return bool(self.row[0] >= rows[0] and self.row[-1] <= rows[1])

    def play(self, view: View, signal: float, half: float, goals: RowGoals) -> None:
        """Bet on a signal with every cell; ``goals`` are those of the half-width ``half``."""
        if self.row.size and self._edge[self._first + 1] < view.lower:
            self.drop(self._edge[self.cell + 1] < view.lower)
        variance = padded(view, half)
        if self.row.size:
            needed = goals.part(int(self.row[0]), int(self.row[-1]) + 1)
            self._bet(view, signal, needed.pace(self._spent, half, variance))
        self._spent += 1.0 / variance

    def drop(self, out: NDArray[np.bool_]) -> None:
        """Leave these cells, and those with infinite stakes, for good."""
        kept = ~out
        kept &= self.below < np.inf
        self._set(self.row[kept], self.cell[kept], self.below[kept], self.above[kept])

    def join(self, higher: "PairCells") -> None:
        """Take in cells of higher rows that have played the same rounds."""
        self._set(
            np.concatenate([self.row, higher.row]),
            np.concatenate([self.cell, higher.cell]),
            np.concatenate([self.below, higher.below]),
            np.concatenate([self.above, higher.above]),
        )

    def _set(self, row: Indices, cell: Indices, below: Floats, above: Floats) -> None:
        self.row, self.cell, self.below, self.above = row, cell, below, above
        self._out = bool((below == np.inf).any())
        if row.size:
            self._first, self._last = int(cell.min()), int(cell.max())
            self._places = Places(row - row[0], cell - self._first, self._edge.take(cell))

    def _bet(self, view: View, signal: float, pace: Pace) -> None:
        upper = self._edge[self._first + 1 : self._last + 2]
        most = cap(upper, view.lower, pace.fastest)
        board = Board(signal, pace, most, float(self._edge[1]))
        least = 0.0
        for start in range(0, self.row.size, BLOCK):
            part = slice(start, start + BLOCK)
            stakes = self.below[part], self.above[part]
            worst, out = board.play(self._places.part(part), *stakes)
            least = min(least, worst)
            self._out |= out
        if least <= -1.0:
            message = f"a signal {signal!r} below its range {view.lower!r} took a whole stake"
            raise WealthLost(message)
        self._played += 1
        if self._out and self._played % COMPRESS_EVERY == 0:
            self.drop(np.zeros(self.row.size, dtype=np.bool_))

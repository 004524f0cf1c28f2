"""Cells of pairs in flat arrays, and the bets of all cells on a round (see ``pair_rows``).

A cell is [v, v + step] in a row, and carries the log stakes of both edges, each below 0 until the
cell is out. Both bet what one log stake would,

    the log stake of the upper edge, less max(0, kappa step - log(1 / 0.9))

so lower losses lower it as they lower the log stake of a single candidate. The lower edge starts
kappa step below the upper one and only gains on it: where that stake is above log(1 / 0.9), and
might be lower with a higher loss, both edges are out. The log stake of the lower edge may be higher
with a lower loss: once a round has none, the upper edge alone decides
(docs/evidence/method.md#8-rounds-that-nobody-can-judge). There are many cells and many rounds, so
the values a round needs are kept beside each cell, and caps that cannot limit a bet are not
computed.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.base import WealthLost
from celeus.core.betting.bets import BetScale, RowGoals, bet, cap
from celeus.core.mills import STAKE_FACTOR

LOG_FACTOR = math.log(STAKE_FACTOR)

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

COMPRESS_EVERY = 8
BLOCK = 8192
"""Number of cells in one batch of bets, whose arrays fit in the processor's cache."""


class PairRound(NamedTuple):
    """A round as pairs bet on it, now or when they are set up, in a side's frame.

    ``lower`` is that of its prediction, ``floor`` that of its signal, ``variance`` is the padded
    one for bets at half-width ``half``, ``accrued`` the information of the rounds judged at its
    draw.
    """

    lower: float
    floor: float
    variance: float
    accrued: float
    signal: float
    half: float


class CellIndex(NamedTuple):
    """Row, cell and v of every cell; rows and cells count from the first ones present."""

    row: Indices
    cell: Indices
    edge: Floats

    def part(self, of: slice) -> "CellIndex":
        """Return the part of the index in slice ``of``."""
        return CellIndex(self.row[of], self.cell[of], self.edge[of])


class CellRound(NamedTuple):
    """The bets of cells on one round; rows and cells count from the first ones present.

    ``shift`` is kappa step by row. ``caps`` is the largest bet by cell, None if
    ``bet_scale.largest`` is smaller for every cell. ``by_bound``: a cell is out by its upper edge
    less ``shift`` alone, which is at most the log stake of either edge.
    """

    signal: float
    bet_scale: BetScale
    shift: Floats
    caps: Floats | None
    step: float
    by_bound: bool

    def update(self, index: CellIndex, below: Floats, above: Floats) -> tuple[float, bool]:
        """Update the stakes of cells; return the least gain, and whether any cell is out."""
        shift = self.shift.take(index.row)
        stake = above - np.maximum(shift + LOG_FACTOR, 0.0)
        bet_scale = self.bet_scale.take(index.row)
        lam = bet(stake, bet_scale, None if self.caps is None else self.caps.take(index.cell))
        low = self.signal - index.edge
        low *= lam
        lam *= self.step
        high = low - lam
        worst = float(high.min())
        below += np.log1p(low, out=low)
        above += np.log1p(high, out=high) if worst > -1.0 else -np.inf
        least = above - shift if self.by_bound else np.minimum(below, above, out=low)
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
        "_index",
        "_kappa",
        "_last",
        "_out",
        "_updates",
        "above",
        "below",
        "by_bound",
        "cell",
        "row",
    )

    def __init__(
        self,
        row: Indices,
        cell: Indices,
        stakes: tuple[Floats, Floats],
        edge: Floats,
        kappa: Floats,
    ) -> None:
        """Make the cells; ``edge`` are all edges, ``kappa`` is that of all rows."""
        self._edge = edge
        self._kappa = kappa
        self._updates = 0
        self.by_bound = False
        self._set(row, cell, *stakes)

    @property
    def lowest_row(self) -> int | None:
        """Lowest row with a cell that is not out; None if there is none."""
        if not self.row.size:
            return None
        if not self._out:
            return int(self.row[0])
        standing = self.below < np.inf
        lowest = int(standing.argmax())
        return int(self.row[lowest]) if standing[lowest] else None

    def lie_within(self, cells: tuple[int, int], rows: tuple[int, int]) -> bool:
        """Return whether all cells lie in these ranges of cells and rows, ends included."""
        if not self.row.size:
            return True
        if self._first < cells[0] or self._last > cells[1]:
            return False
        return bool(self.row[0] >= rows[0] and self.row[-1] <= rows[1])

    def update(self, round_: PairRound, goals: RowGoals) -> None:
        """Bet on a round with every cell; ``goals`` are those of its half-width."""
        if self.row.size and self._edge[self._first + 1] < round_.floor:
            self.drop(self._edge[self.cell + 1] < round_.floor)
        if self.row.size:
            row_goals = goals.part(int(self.row[0]), int(self.row[-1]) + 1)
            bet_scale = row_goals.bet_scale(round_.accrued, round_.half, round_.variance)
            self._bet(round_, bet_scale)

    def drop(self, out: NDArray[np.bool_]) -> None:
        """Drop these cells, and those with infinite stakes."""
        keep = ~out
        keep &= self.below < np.inf
        self._set(self.row[keep], self.cell[keep], self.below[keep], self.above[keep])

    def join(self, higher: "PairCells") -> None:
        """Append cells of higher rows that have bet on the same rounds."""
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
            self._index = CellIndex(row - row[0], cell - self._first, self._edge.take(cell))

    def _bet(self, round_: PairRound, bet_scale: BetScale) -> None:
        upper = self._edge[self._first + 1 : self._last + 2]
        caps = cap(upper, round_.lower, bet_scale.largest_bet)
        step = float(self._edge[1])
        shift = self._kappa[self.row[0] : self.row[-1] + 1] * step
        cell_round = CellRound(round_.signal, bet_scale, shift, caps, step, self.by_bound)
        least = 0.0
        for start in range(0, self.row.size, BLOCK):
            part = slice(start, start + BLOCK)
            stakes = self.below[part], self.above[part]
            worst, out = cell_round.update(self._index.part(part), *stakes)
            least = min(least, worst)
            self._out |= out
        if least <= -1.0:
            message = (
                f"a signal {round_.signal!r} below its range {round_.lower!r} took a whole stake"
            )
            raise WealthLost(message)
        self._updates += 1
        if self._out and self._updates % COMPRESS_EVERY == 0:
            self.drop(np.zeros(self.row.size, dtype=np.bool_))

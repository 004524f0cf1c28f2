"""Cells: the parts of a table within which every item is drawn with the same probability.

A cell is an atom (the items with the same values in all columns), a stratum of it, and a pattern of
the losses that are known. So every claim speaks of whole cells: those of its group in which the
loss of its metric is not known.

The calibration of a vector of losses is shared by all groups.
Notation, for a metric on the unit scale, cell = stratum k of an atom g, l a loss, m its surrogate:

    M_k, V_k   as in ``sampling.calibration`` from the labels of all atoms, with l - o_g for l
    o_g        sum of (l - M_k) / (10 + labels)                           over the labels of atom g
    m          (16 clip(M_k + o_g) + sum of l in the cell) / (16 + its labels)
    v          (40 V_k + sum of (l - m)^2 in the cell) / (40 + its labels)

With one atom m = M_k, cut by the precision of the metric, and v = V_k. Only losses that were judged
are in the sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.pools.strata import (
    MOST_BINS,
    MOST_PROXIES,
    NOWHERE,
    UNKNOWN,
    Strata,
    strata_of,
)
from celeus.core.pools.table_pool import Table
from celeus.core.sampling.calibration import (
    LEAST_SURROGATE,
    LINE_LABELS,
    SPREAD_LABELS,
    Calibration,
    Narrowing,
)
from celeus.errors import InvalidValue

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

UNIT = Interval(0.0, 1.0)
STRATA_IN_GROUPS = 8
MOST_CELLS = 10_000
LARGEST_LEDGER = 1 << 29
"""Bytes: the largest certificate that a service verifies, unless it is set to take others."""
CELL_BYTES = 16
"""Those of a draw's probability in a certificate, for each cell: eight in hexadecimal."""
BINS_OF_SEVERAL = 10
"""Bins of the mean of several metrics' surrogates: 40 strata leave room for their spread."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of a table, by atom and within it by stratum.

    ``strata`` say the cell of every item and the sizes of the cells; ``atom`` and ``stratum`` are
    those of every cell, ``start`` the first cell of every atom. ``open`` (shape [C, cells]) says
    where the loss of a metric is not known, ``base`` (shape [C, strata]) is its mean surrogate.
    """

    strata: Strata
    atom: Indices
    stratum: Indices
    start: Indices
    open: Mask
    base: Floats

    @classmethod
    def of(cls, table: Table) -> Self:
        """The cells of a table. O(N log N)."""
        atoms = table.atoms
        drawable = table.drawable
        scores = table.scores
        most = MOST_BINS if len(table.metrics) == 1 else BINS_OF_SEVERAL
        if table.columns:
            proxies = 1 if scores.proxy is None else np.unique(scores.proxy).size
            most = STRATA_IN_GROUPS // (proxies if proxies <= MOST_PROXIES else 1)
            scores = replace(scores, columns=None)
        ends = np.zeros(table.items), drawable.astype(np.float64)
        scores = replace(scores, group=None, lower=ends[0], upper=ends[1])
        stratum = strata_of(scores, UNIT, most_bins=most).code.astype(np.intp)
        known = ~np.isnan(table.known)
        pattern = np.unique(known, axis=0, return_inverse=True)[1].ravel()
        keys = np.stack((atoms, stratum, pattern), axis=1)[drawable]
        cells, first, code, size = np.unique(
            keys, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        if size.size > MOST_CELLS:
            raise InvalidValue(
                "The items differ in too many ways in which losses are known.",
                field="known",
                rule=f"at most {MOST_CELLS} parts by group, stratum and losses known",
                value=int(size.size),
            )
        numbers = np.full(table.items, NOWHERE, dtype=np.int16)
        numbers[drawable] = code.ravel()
        open_ = ~known[np.flatnonzero(drawable)[first]].T
        atom = np.unique(cells[:, 0], return_inverse=True)[1].ravel()
        base = _base(table, stratum)
        ends = np.zeros(size.size), np.ones(size.size)
        strata = Strata(numbers, size.astype(np.int64), np.full(size.size, UNKNOWN), *ends)
        start = np.flatnonzero(np.diff(atom, prepend=-1))
        return cls(strata, atom, cells[:, 1], start, open_, base)

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.strata.count

    def check_budget(self, budget: int) -> None:
        """Refuse a budget that could fill a ledger whose certificate nobody verifies, by name."""
        most = LARGEST_LEDGER // (CELL_BYTES * self.count)
        if budget > most:
            raise InvalidValue(
                f"Every draw keeps the probabilities of {self.count} parts of the pool, by group,"
                " stratum and losses known.",
                field="budget",
                rule=f"at most {most}, or fewer groups",
                value=budget,
            )

    def of_items(self, mask: Mask) -> Mask:
        """The cells of some items; a cell has either all of its items among them, or none."""
        found = np.zeros(self.count, dtype=np.bool_)
        code = self.strata.code[mask]
        found[code[code != NOWHERE]] = True
        return found


def _base(table: Table, stratum: Indices) -> Floats:
    """Mean surrogate of every metric in every stratum, over the items whose loss is not known."""
    count = int(stratum.max()) + 1
    base = np.full((len(table.metrics), count), UNKNOWN)
    for metric, surrogate in enumerate(table.surrogate.T):
        open_ = np.isnan(table.known[:, metric])
        sums = np.bincount(stratum[open_], weights=surrogate[open_], minlength=count)
        size = np.bincount(stratum[open_], minlength=count)
        np.divide(sums, size, out=base[metric], where=size > 0)
    return base


OFFSET_LABELS = 10.0
"""The offset of an atom is shrunk to 0 as by that many labels."""
MOST_WEIGHT = 10.0
"""Largest weight of a label in the line, where there are groups."""


class Fits(NamedTuple):
    """Surrogate and residual second moment of every metric in every cell; shapes [C, cells]."""

    mean: Floats
    moment: Floats


class TableAtDraw(NamedTuple):
    """The state of the table at a draw: the items not drawn of every cell, and the fits."""

    left: Floats
    fits: Fits


class TableCalibration:
    """The fits of every metric in every cell to the labels judged; ``fits`` is never changed.

    ``halves`` are half the precision of every metric over all items, on the unit scale. They cut
    its surrogates where there are no groups.
    """

    __slots__ = ("_cells", "_labels", "_losses", "_offset", "_pooled", "_squares", "fits")

    def __init__(self, cells: Cells, halves: Sequence[float | None]) -> None:
        self._cells = cells
        count, items = cells.base.shape[1], cells.strata.code.size
        self._pooled = []
        for base, open_, half in zip(cells.base, cells.open, halves, strict=True):
            left = np.bincount(cells.stratum, cells.strata.size * open_, count).astype(np.float64)
            narrowing = None if self._grouped else Narrowing.of(left, half, items)
            ends = np.zeros(count), np.ones(count)
            self._pooled.append(Calibration(base, *ends, narrowing=narrowing))
        self._labels, self._losses, self._squares = np.zeros((3, *cells.open.shape))
        self._offset = np.zeros((len(self._pooled), cells.start.size))
        self.fits = self._fitted()

    def record(self, cell: int, losses: Floats, used: Fits, weight: float) -> None:
        """Record a round of weight 1 / (n q) with these losses, NaN where there is none.

        ``used`` are the fits its signals used.
        """
        atom, stratum = self._cells.atom[cell], int(self._cells.stratum[cell])
        if self._grouped:
            weight = min(weight, MOST_WEIGHT)
        for metric in np.flatnonzero(~np.isnan(losses)).tolist():
            loss, surrogate = float(losses[metric]), float(used.mean[metric, cell])
            offset = float(self._offset[metric, atom])
            self._pooled[metric].record(stratum, loss, surrogate, weight, offset)
            self._labels[metric, cell] += 1.0
            self._losses[metric, cell] += loss
            self._squares[metric, cell] += (loss - surrogate) ** 2
        self.fits = self._fitted()

    @property
    def _grouped(self) -> bool:
        return self._cells.start.size > 1

    def _fitted(self) -> Fits:
        cells, labels = self._cells, self._labels
        fits = [calibration.fit for calibration in self._pooled]
        mean = np.array([fit.mean for fit in fits])[:, cells.stratum]
        moment = np.array([fit.moment for fit in fits])[:, cells.stratum]
        if not self._grouped:
            return Fits(mean, moment)
        above = np.add.reduceat(self._losses - labels * mean, cells.start, axis=1)
        of_atom = np.add.reduceat(labels, cells.start, axis=1)
        self._offset = above / (OFFSET_LABELS + of_atom)
        line = np.clip(mean + self._offset[:, cells.atom], LEAST_SURROGATE, 1.0 - LEAST_SURROGATE)
        return Fits(
            (LINE_LABELS * line + self._losses) / (LINE_LABELS + labels),
            (SPREAD_LABELS * moment + self._squares) / (SPREAD_LABELS + labels),
        )

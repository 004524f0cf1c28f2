"""Calibration of a vector of losses, shared by all groups.

Notation, for a metric on the unit scale, cell = stratum k of an atom g, l a loss, m its surrogate:

    M_k, V_k   as in ``sampling.calibration`` from the labels of all atoms, with l - o_g for l
    o_g        sum of (l - M_k) / (10 + labels)                           over the labels of atom g
    m          (16 clip(M_k + o_g) + sum of l in the cell) / (16 + its labels)
    v          (40 V_k + sum of (l - m)^2 in the cell) / (40 + its labels)

With one atom m = M_k and v = V_k. Only losses that were judged are in the sums.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.sampling.calibration import (
    LEAST_SURROGATE,
    LINE_LABELS,
    SPREAD_LABELS,
    Calibration,
)
from celeus.core.session.table.table_cells import Cells

Floats = NDArray[np.float64]

OFFSET_LABELS = 10.0
"""The offset of an atom is shrunk to 0 as by that many labels."""
MOST_WEIGHT = 10.0
"""Largest weight of a label in the line, where there are groups."""


class Fits(NamedTuple):
    """Surrogate and residual second moment of every metric in every cell; shapes [C, cells]."""

    mean: Floats
    moment: Floats


class Known(NamedTuple):
    """The state of the table at a draw: the items not drawn of every cell, and the fits."""

    left: Floats
    fits: Fits


class TableCalibration:
    """The fits of every metric in every cell to the folded labels; ``fits`` is never changed."""

    __slots__ = ("_cells", "_labels", "_losses", "_offset", "_pooled", "_squares", "fits")

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        ends = np.zeros(cells.base.shape[1]), np.ones(cells.base.shape[1])
        self._pooled = [Calibration(base, *ends) for base in cells.base]
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

"""Substrata: strata cut further by what surrogate columns say beside their mean.

See docs/evidence/method.md#4-what-may-be-relearnt-strata-calibration-proposal.

A column's deviation is the column less the mean of all columns of the item. Every cut halves all
substrata at their mean of one deviation, the one that varies most within them. So columns of 0 and
1 end as their patterns. It looks at no loss.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.pools.strata import NOWHERE, Counts, Floats, Strata, without_gaps

MOST_SUBSTRATA = 512
LEAST_VARIANCE = 1e-9
"""Variance on the unit scale below which deviations within substrata count as equal."""


@dataclass(frozen=True, slots=True, eq=False)
class Substrata:
    """The substrata as ``strata`` of their own; per substratum the ``stratum`` it is a part of.

    ``deviation`` (shape [C, M]) is the mean deviation of every column in every substratum, less
    that of its stratum, on the unit scale.
    """

    strata: Strata
    stratum: Counts
    deviation: Floats


def substrata_of(strata: Strata, columns: NDArray[np.float64], scale: Interval) -> Substrata:
    """Return the substrata of surrogate columns (shape [N, M]), in O(N M) a cut."""
    drawn = strata.code != NOWHERE
    unit = np.clip((columns[drawn] - scale.lower) / scale.width, 0.0, 1.0)
    deviation = (unit - unit.mean(axis=1, keepdims=True)).T
    squares = np.square(deviation).sum(axis=1)
    stratum_code = strata.code[drawn].astype(np.int64)
    code = stratum_code
    while True:
        mean, size = _means(code, deviation)
        within = squares - mean**2 @ size
        widest = int(within.argmax())
        finer = without_gaps(2 * code + (deviation[widest] > mean[widest, code]))
        if within[widest] <= LEAST_VARIANCE * code.size or finer.max() >= MOST_SUBSTRATA:
            break
        code = finer
    stratum = np.empty(size.size, dtype=np.int64)
    stratum[code] = stratum_code
    numbers = np.full(strata.code.size, NOWHERE, dtype=np.int16)
    numbers[drawn] = code
    of_stratum, _ = _means(stratum_code, deviation)
    parts = Strata(
        numbers,
        size,
        strata.base[stratum],
        strata.lower[stratum],
        strata.upper[stratum],
        strata.item_weight,
    )
    return Substrata(parts, stratum, (mean - of_stratum[:, stratum]).T)


def _means(code: Counts, deviation: Floats) -> tuple[Floats, Counts]:
    """Return the mean of every column in every substratum, shape [M, C], and the sizes."""
    size = np.bincount(code)
    return np.stack([np.bincount(code, weights=row) for row in deviation]) / size, size

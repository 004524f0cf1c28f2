"""Strata: items grouped before the first draw, by values known without a label.

See docs/evidence/method.md#4-what-may-be-relearnt-strata-calibration-proposal.

Items are split by the distinct values of the target-loss proxy where there are at most 8 of them,
and within each part by the surrogate: by its distinct values when they are few (votes), else into
bins of equal counts; items with the same surrogate are never separated. Of several surrogate
columns the bins are those of their mean and, within each, of their spread. Without any surrogate
the strata are the groups, or one. Of a difference of two systems there are fewer bins, cut by the
chance that the two losses are not the same. Items of other stated bounds are in other strata. There
are at most 40.

Any grouping is valid, since it looks at no loss; a good one puts items with like residuals
together.

Substrata are strata cut further by what surrogate columns say beside their mean. A column's
deviation is the column less the mean of all columns of the item. Every cut halves all substrata at
their mean of one deviation, the one that varies most within them. So columns of 0 and 1 end as
their patterns.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.pools.loss_bounds import Bounds
from celeus.core.pools.surrogates import Scores

Floats = NDArray[np.float64]
Codes = NDArray[np.int16]
Counts = NDArray[np.int64]

MOST_STRATA = 40
MOST_PROXIES = 8
MOST_BINS = 20
SPREAD_BINS = 3
DIFFERENCE_BINS = 5
"""Bins of the surrogate of a difference: few labels are drawn where most answers agree."""
CHANGE_BINS = 2
ITEMS_PER_BIN = 25
NOWHERE = -1
UNKNOWN = 0.5
"""Surrogate on the unit scale used if it is the same for all items, and so uninformative."""


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """Stratum of every item (``code``, shape [N]); per stratum its size and mean surrogate.

    ``base`` is on the unit scale, 0 for the smallest loss and 1 for the largest; ``lower`` and
    ``upper`` are bounds of the losses of a stratum, on the loss scale. No stratum is empty. Items
    that are never drawn, since their losses are known, have the code NOWHERE.

    ``item_weight`` is the weight of every item, with a mean over the pool of 1; if it is not None,
    ``base`` is a weighted mean.
    """

    code: Codes
    size: Counts
    base: Floats
    lower: Floats
    upper: Floats
    item_weight: Floats | None = None

    @property
    def count(self) -> int:
        """Number of strata, K."""
        return int(self.size.size)

    def weight_of(self, item: int) -> float:
        """Return the weight of an item, 1 if all count the same."""
        return 1.0 if self.item_weight is None else float(self.item_weight[item])


def strata_of(
    scores: Scores,
    scale: Interval,
    *,
    by_scores: bool = True,
    audit: bool = False,
    most_bins: int = MOST_BINS,
) -> Strata:
    """Return the strata of a session, in O(N log N).

    A policy without scores (``by_scores`` false) has one stratum, split only by stated bounds.
    ``audit`` ignores the bounds: known losses become the surrogate of a stratum of their own.
    ``most_bins`` limits the bins of the surrogate.
    """
    bounds, items = scores.bounds, scores.surrogate.size
    most = most_bins if by_scores else 0
    if bounds is None:
        return _numbered(*_grouped(scores, scale, most), scale, scores.item_weight)
    drawn = ~bounds.known
    code, unit = np.full(items, NOWHERE, dtype=np.int64), np.zeros(items)
    if drawn.any():
        believed = scores if not audit else replace(scores, lower=None, upper=None)
        code[drawn], unit[drawn] = _grouped(believed.of(drawn), scale, most)
    if audit:
        code[~drawn] = code.max() + 1
        unit[~drawn] = ((bounds.lower - scale.lower) / scale.width)[~drawn]
    return _numbered(code, unit, scale, scores.item_weight, None if audit else bounds)


def _grouped(scores: Scores, scale: Interval, most_bins: int) -> tuple[Counts, Floats]:
    """Return the codes of the items' strata, with gaps, and surrogates on the unit scale.

    With 0 bins the scores are not used.
    """
    unit = np.clip((scores.surrogate - scale.lower) / scale.width, 0.0, 1.0)
    parts = _bounded(scores.bounds, unit.size)
    if not most_bins or not np.ptp(unit):
        unit = np.full(unit.size, UNKNOWN)
        if not most_bins:
            return parts, unit
        if scores.proxy is None and scores.columns is None:
            most = MOST_STRATA // (int(parts.max()) + 1)
            return parts * MOST_STRATA + _groups(scores.group, unit.size, most), unit
    values = _parts(scores.proxy, unit.size)
    both = parts * MOST_PROXIES + values
    parts = without_gaps(both)
    share = MOST_STRATA // (int(parts.max()) + 1)
    if not share:
        parts, share = _bounded(scores.bounds, unit.size), MOST_STRATA // MOST_PROXIES
    code = np.zeros(unit.size, dtype=np.int64)
    for part in range(int(parts.max()) + 1):
        mask = parts == part
        code[mask] = part * MOST_STRATA + _bins(unit[mask], min(most_bins, share))
    if scores.change is not None:
        code = _by_spread(code, scores.change, CHANGE_BINS)
    elif scores.columns is not None and scores.columns.shape[1] > 1:
        code = _by_spread(code, scores.columns.std(axis=1) / scale.width, SPREAD_BINS)
    return code, unit


def _bounded(bounds: Bounds | None, items: int) -> Counts:
    """Return parts by stated bounds: the distinct bounds if they are few, else their middles."""
    if bounds is None:
        return np.zeros(items, dtype=np.int64)
    (lower, at_lower), (upper, at_upper) = _distinct(bounds.lower), _distinct(bounds.upper)
    if max(lower.size, upper.size) <= MOST_PROXIES:
        part = without_gaps(at_lower * upper.size + at_upper)
        if part.max() < MOST_PROXIES:
            return part
    return _bins((bounds.lower + bounds.upper) / 2.0, MOST_PROXIES)


def _parts(proxy: Floats | None, items: int) -> Counts:
    """Return parts by the value of the proxy if it has few values, else one part."""
    if proxy is not None:
        values, part = _distinct(proxy)
        if values.size <= MOST_PROXIES:
            return part
    return np.zeros(items, dtype=np.int64)


def _bins(value: Floats, most: int) -> Counts:
    """Return codes of at most ``most`` values, else of bins of equal counts that split no tie."""
    distinct, code = _distinct(value, most)
    if distinct.size > most:
        bins = max(1, min(most, value.size // ITEMS_PER_BIN))
        ordered = np.sort(value)
        edges = np.unique(ordered[np.arange(1, bins) * value.size // bins])
        code = np.searchsorted(edges, value, side="right")
    return np.asarray(code, dtype=np.int64)


def _distinct(value: Floats, most: int = MOST_PROXIES) -> tuple[Floats, Counts]:
    """Return the distinct values and the place of each item's; zeros if more than ``most``.

    It takes a quarter of the time of ``np.unique``, which sorts places and not values.
    """
    ordered = np.sort(value)
    distinct = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    if distinct.size > most:
        return distinct, np.zeros(value.size, dtype=np.int64)
    return distinct, np.searchsorted(distinct, value).astype(np.int64)


def without_gaps(code: Counts) -> Counts:
    """Return the codes renumbered in their order, without gaps."""
    present = np.bincount(code) > 0
    return np.asarray((np.cumsum(present) - 1)[code], dtype=np.int64)


def _by_spread(code: Counts, spread: Floats, most: int) -> Counts:
    """Return each bin of the mean split by the spread of the columns, within 40 strata."""
    code = without_gaps(code)
    present = int(code.max()) + 1
    parts = min(most, MOST_STRATA // present)
    if parts < 2:
        return code
    finer = np.empty(code.size, dtype=np.int64)
    for part in range(present):
        mask = code == part
        finer[mask] = part * parts + _bins(spread[mask], parts)
    return finer


def _groups(group: NDArray[np.int32] | None, items: int, most: int) -> Counts:
    """Return codes of the largest groups, with one code for the items of all others."""
    if group is None:
        return np.zeros(items, dtype=np.int64)
    code = without_gaps(group.astype(np.int64))
    size = np.bincount(code)
    rank = np.empty(size.size, dtype=np.int64)
    rank[np.argsort(-size, kind="stable")] = np.arange(size.size)
    return np.asarray(np.minimum(rank[code], most - 1), dtype=np.int64)


def _numbered(
    code: Counts,
    unit: Floats,
    scale: Interval,
    item_weight: Floats | None,
    bounds: Bounds | None = None,
) -> Strata:
    drawn = code != NOWHERE
    dense = without_gaps(code[drawn])
    size = np.bincount(dense)
    numbers = np.full(code.size, NOWHERE, dtype=np.int16)
    numbers[drawn] = dense
    lower, upper = np.full(size.size, scale.lower), np.full(size.size, scale.upper)
    if bounds is not None:
        lower, upper = upper, lower
        np.minimum.at(lower, dense, bounds.lower[drawn])
        np.maximum.at(upper, dense, bounds.upper[drawn])
    weight = None if item_weight is None else item_weight[drawn]
    sums = np.bincount(dense, weights=unit[drawn] if weight is None else unit[drawn] * weight)
    base = sums / np.bincount(dense, weights=weight)
    return Strata(numbers, size.astype(np.int64), base, lower, upper, item_weight)


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

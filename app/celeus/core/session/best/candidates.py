"""Candidates: what is known of k systems on a pool without a label.

Two systems that gave the same answer to an item have the same loss, for certain. An item to which
all have the same answer does not tell which is best, and is never drawn.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.pool import Pool
from celeus.core.pools.systems import check_count
from celeus.errors import InvalidValue, LossOutsideScale

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Codes = NDArray[np.integer]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of systems, ``first`` before ``second``, and their places among all pairs of k.

    ``row`` (shape [k, k]) is where the pair of two systems is among these, -1 if it is not.
    """

    first: Indices
    second: Indices
    place: Indices
    row: Indices

    @classmethod
    def among(cls, systems: Indices, count: int) -> Self:
        """The pairs of some of ``count`` systems, given in ascending order."""
        i, j = np.triu_indices(systems.size, 1)
        first, second = systems[i], systems[j]
        place = first * (2 * count - first - 3) // 2 + second - 1
        row = np.full((count, count), -1)
        row[first, second] = row[second, first] = np.arange(place.size)
        return cls(first, second, place, row)

    def half(self, losses: Floats) -> Floats:
        """Half differences of losses whose last axis is the k systems."""
        return np.asarray((losses[..., self.first] - losses[..., self.second]) / 2.0)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Answers of k systems to N items as codes, and surrogates of their losses, both [N, k].

    Either may be missing: then any two losses may differ, and nothing is expected of them.
    Surrogates are on the unit scale. Both are read by systems: best in Fortran's order, and codes
    by no more than whether two are equal: best ``narrow``.
    """

    items: int
    count: int
    answer: Codes | None = None
    surrogate: Floats | None = None

    def __post_init__(self) -> None:
        check_count(self.count)

    @property
    def shared(self) -> bool:
        """False where no two systems gave the same answer, as by texts that decide nothing."""
        return self.answer is not None and bool((self.answer != np.arange(self.count)).any())

    def differ(self, items: Indices, pairs: Pairs) -> Mask:
        """Return whether the two answers of each pair to the items differ; shape [items, pairs]."""
        if self.answer is None:
            return np.ones((items.size, pairs.first.size), dtype=np.bool_)
        answer = self.answer[items]
        return np.asarray(answer[:, pairs.first] != answer[:, pairs.second])

    def check(self, item: int, losses: Floats) -> None:
        """Refuse losses that k systems with these answers cannot have."""
        if losses.shape != (self.count,):
            raise InvalidValue(
                "A judgement gives the losses of all systems.",
                field="losses",
                rule=f"{self.count} losses, one a system",
                value=losses.shape,
            )
        if not ((losses >= 0.0) & (losses <= 1.0)).all():
            raise LossOutsideScale(
                "A loss is not on the scale of its pool.",
                field="losses",
                rule="numbers from 0 to 1 on the unit scale",
                value=losses.tolist(),
            )
        if self.answer is not None:
            _, first, code = np.unique(self.answer[item], return_index=True, return_inverse=True)
            if (losses != losses[first[code]]).any():
                raise InvalidValue(
                    "Systems that gave the same answer have the same loss.",
                    field="losses",
                    rule="one loss for each answer",
                    value=losses.tolist(),
                )

    def open(self, standing: Indices) -> Mask:
        """The items to which these systems did not all give the same answer, shape [N]."""
        if self.answer is None:
            return np.ones(self.items, dtype=np.bool_)
        open_ = np.zeros(self.items, dtype=np.bool_)
        for system in standing[1:]:
            open_ |= self.answer[:, system] != self.answer[:, standing[0]]
        return open_

    def differing(self, pairs: Pairs, code: NDArray[np.int16], strata: int) -> Floats:
        """Items of each stratum whose two answers differ, for every pair; shape [pairs, strata].

        Items with a negative code are in no stratum.
        """
        inside = np.flatnonzero(code >= 0)
        inside = inside[np.argsort(code[inside], kind="stable")]
        ends = np.searchsorted(code[inside], np.arange(strata + 1))
        if self.answer is None:
            return np.tile(np.diff(ends).astype(np.float64), (pairs.first.size, 1))
        answer = np.ascontiguousarray(self.answer.T[:, inside])
        counts = np.empty((pairs.first.size, strata))
        parts = [slice(*part) for part in pairwise(ends.tolist())]
        for row, (system, other) in enumerate(zip(pairs.first, pairs.second, strict=True)):
            differ = answer[system] != answer[other]
            counts[row] = [np.count_nonzero(differ[part]) for part in parts]
        return counts


def narrow(codes: Codes) -> Codes:
    """The same codes in as few bytes as hold them, in Fortran's order: they are read much."""
    least, most = codes.min(initial=0), codes.max(initial=0)
    kinds = (np.iinfo(kind) for kind in (np.uint8, np.int8, np.uint16, np.int16))
    fits = (kind.dtype for kind in kinds if kind.min <= least and most <= kind.max)
    return codes.astype(next(fits, codes.dtype), order="F")


def candidates_of(pool: Pool) -> Candidates:
    """The systems of a pool that names several."""
    lineup, codes = pool.lineup, pool.codes
    if lineup is None:
        message = "a pool of several systems"
        raise ValueError(message)
    surrogate = pool.columns.get("surrogates")
    if surrogate is not None:
        surrogate = np.asfortranarray((surrogate - pool.scale.lower) / pool.scale.width)
    answer = None if codes is None else narrow(codes)
    return Candidates(pool.items, len(lineup.names), answer, surrogate)

"""The pool: a finite, frozen population of items, as numbers, and the digest that names it.

A pool of N items is a set of columns of length N, in the order of upload:

    surrogate.0, surrogate.1, ...   float64   surrogate scores in [L, U]
    proxy                           float64   target-loss proxy in [L, U]
    dispersion_f, hard, soft        float64   from probabilities, 0-1 loss
    entropy_f, entropy_g, mode_loss float64   from probabilities, cross-entropy
    target_probs                    float32   [N, classes], for losses from labels
    prediction                      int32     the target's predicted class
    change                          float64   chance that two systems differ in loss
    group                           int32     code of the group's name, in order of appearance
    loss_lower, loss_upper          float64   bounds of the item's loss; the same where it is known
    known                           int32     0, or the number of the reason of loss or bounds
    weight                          float64   how much the item counts, above 0
    prediction_a, prediction_b      int32     classes that two systems predict
    same                            int32     1 where two systems gave the same answer
    round                           int32     round of the session it is based on, or 0
    label                           int32     true class known from that session, or -1
    predictions                     int32     [N, k], classes that several systems predict
    answers                         int32     [N, k], the first of them with the same text
    surrogates                      float64   [N, k], surrogates of the losses of several systems
    surrogate_NAME                  float64   surrogate of the metric NAME, on its scale
    known_NAME                      float64   its loss where that is known, NaN elsewhere
    group_COLUMN                    int32     code of the value in the group column COLUMN

The digest is SHA-256 over a header: canonical JSON (RFC 8785) of the number of items, the scale,
the group names, the reasons if there are any, the systems where there are several, the session it
is based on if there is one, the score if it has a name, the metrics and the group columns with
their values where there are any, name, type and SHA-256 of every column (little-endian bytes), and
the items digest. That one is a chain over ids and payloads, h_0 = 32
zero bytes and h_i = SHA-256(h_{i-1} + record_i), where record_i is canonical JSON of [id, payload];
the payload of a pool of systems holds what all of them answered.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.canonical import canonical_json, digest_of
from celeus.core.plain import Count, Digest, Plain
from celeus.core.pools.loss_bounds import Basis, Bounds, KnownLosses
from celeus.core.pools.losses import LossScale, cross_entropy_loss, zero_one_loss
from celeus.core.pools.metrics import Metric
from celeus.core.pools.score import Score, default_score
from celeus.core.pools.systems import SIDES, AnySystems, Lineup, Systems
from celeus.core.pools.weights import Weights, relative
from celeus.errors import InvalidValue

CHAIN_START = bytes(32)
DTYPES: Mapping[str, str] = {
    "target_probs": "<f4",
    "prediction": "<i4",
    "group": "<i4",
    "known": "<i4",
    "prediction_a": "<i4",
    "prediction_b": "<i4",
    "same": "<i4",
    "round": "<i4",
    "label": "<i4",
    "predictions": "<i4",
    "answers": "<i4",
}
"""Types of the columns other than little-endian float64."""
MATRICES = frozenset({"target_probs", "predictions", "answers", "surrogates"})
"""Columns that have a row of numbers for every item."""
STATED = frozenset({"known", "loss_lower", "loss_upper"})
"""Columns of a pool that states bounds of single losses."""


@dataclass(frozen=True, slots=True)
class ColumnDigest(Plain):
    """Name and type of a column, and the digest of its little-endian bytes."""

    name: str
    dtype: str
    sha256: Digest

    @classmethod
    def of(cls, name: str, column: NDArray[Any]) -> Self:
        """Return the digest of a column."""
        digest = hashlib.sha256(np.ascontiguousarray(column).data).hexdigest()
        return cls(name, column.dtype.str, digest)


@dataclass(frozen=True, kw_only=True)
class PoolStatements(Plain):
    """The statements about a pool that its header holds where there are any."""

    systems: AnySystems | None = None
    based_on: Basis | None = None
    score: Score | None = None
    metrics: tuple[Metric, ...] = ()
    group_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    optional: ClassVar[tuple[str, ...]] = (
        "systems",
        "based_on",
        "score",
        "metrics",
        "group_columns",
    )


@dataclass(frozen=True, kw_only=True)
class PoolHeader(PoolStatements):
    """The members over which a pool's digest is taken."""

    items: Count
    loss: LossScale
    groups: tuple[str, ...]
    columns: tuple[ColumnDigest, ...]
    items_digest: Digest
    reasons: tuple[str, ...] = ()

    optional: ClassVar = ("reasons", *PoolStatements.optional)


@dataclass(frozen=True, eq=False)
class Pool:
    """Columns, scale and names of a pool; the arrays are read-only.

    ``reasons`` are those of known losses and bounds, in the order of their numbers; ``named`` the
    systems, where there are two or several, ``based_on`` the session that judged an earlier
    version, ``score`` what its makers call the mean of its losses. A pool of ``metrics`` has the
    scale of the first of them; ``group_columns`` are its group columns, their values by code.

    Not slotted: the digest is computed once, when first asked for.
    """

    items: int
    scale: LossScale
    columns: Mapping[str, NDArray[Any]]
    groups: tuple[str, ...]
    items_digest: bytes
    reasons: tuple[str, ...] = ()
    named: AnySystems | None = None
    based_on: Basis | None = None
    score: Score | None = None
    metrics: tuple[Metric, ...] = ()
    group_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def measured(self) -> Score:
        """Score of the mean of its losses: the declared one, else the default of the scale."""
        return self.score or default_score(self.scale, self.named)

    @property
    def systems(self) -> Systems | None:
        """The two systems compared, if the losses are differences."""
        return self.named if isinstance(self.named, Systems) else None

    @property
    def lineup(self) -> Lineup | None:
        """Systems among which the best is sought, if there are several."""
        return self.named if isinstance(self.named, Lineup) else None

    @property
    def codes(self) -> NDArray[np.int32] | None:
        """Codes of the answers of several systems, shape [N, k]; equal answers have equal codes.

        None where no two answers count as equal.
        """
        texts_decide = self.lineup is not None and self.lineup.normalisation is not None
        texts = self.columns.get("answers") if texts_decide else None
        return self.columns.get("predictions", texts)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the header in hexadecimal; equal digests mean equal pools."""
        return digest_of(self.header())

    @property
    def statements(self) -> PoolStatements:
        """Statements beside items and columns."""
        return PoolStatements(
            systems=self.named,
            based_on=self.based_on,
            score=self.score,
            metrics=self.metrics,
            group_columns=self.group_columns,
        )

    def header(self) -> dict[str, object]:
        """Return the header, over which the digest is taken."""
        return PoolHeader(
            items=self.items,
            loss=self.scale,
            groups=self.groups,
            columns=tuple(ColumnDigest.of(*column) for column in sorted(self.columns.items())),
            items_digest=self.items_digest.hex(),
            reasons=self.reasons,
            **vars(self.statements),
        ).to_dict()

    @cached_property
    def surrogates(self) -> tuple[NDArray[np.float64], ...]:
        """Uploaded surrogate columns in their order; empty when there are none."""
        names = (name for name in self.columns if name.startswith("surrogate."))
        ordered = sorted(names, key=lambda name: int(name.removeprefix("surrogate.")))
        return tuple(self.columns[name] for name in ordered)

    @property
    def bounds(self) -> Bounds | None:
        """Bounds of the single losses; None if no item has any."""
        if "loss_lower" not in self.columns:
            return None
        return Bounds(self.columns["loss_lower"], self.columns["loss_upper"])

    @cached_property
    def known(self) -> KnownLosses | None:
        """Facts about the bounds that a plan states; None without bounds."""
        if self.bounds is None:
            return None
        known, number = self.bounds.known, self.columns["known"]
        counts = (self._by_reason(number[known]), self._by_reason(number[~known]))
        return KnownLosses.of(self.bounds, self.scale.interval, *counts, self.item_weight)

    def _by_reason(self, number: NDArray[Any]) -> dict[str, int]:
        """Return the number of items by reason, from the numbers of their reasons."""
        count = np.bincount(number, minlength=len(self.reasons) + 1)[1:].tolist()
        return {reason: items for reason, items in zip(self.reasons, count, strict=True) if items}

    @cached_property
    def weights(self) -> Weights | None:
        """Facts about the weights that a plan states; None if all items count the same."""
        return Weights.of(self.columns["weight"]) if "weight" in self.columns else None

    @property
    def item_weight(self) -> NDArray[np.float64] | None:
        """Weight of every item, with a mean of 1; None if all count the same."""
        return relative(self.columns["weight"]) if "weight" in self.columns else None

    @property
    def classes(self) -> int | None:
        """Number of classes; None if no probabilities were uploaded."""
        probabilities = self.columns.get("target_probs")
        return None if probabilities is None else int(probabilities.shape[1])

    @property
    def paired_classes(self) -> bool:
        """True if both systems predict classes, so that a label gives the difference."""
        return "prediction_a" in self.columns

    def loss_of_label(self, item: int, label: int) -> float:
        """Return the loss of the item if ``label`` is its true class.

        Raises InvalidValue if the pool's columns do not give it.
        """
        if self.paired_classes:
            guesses = (int(self.columns[f"prediction_{side}"][item]) for side in SIDES)
            of_a, of_b = (zero_one_loss(label, guess, None) for guess in guesses)
            return of_a - of_b
        probabilities = self.columns.get("target_probs")
        if self.scale.kind == "cross_entropy" and probabilities is not None:
            return cross_entropy_loss(label, probabilities[item], self.scale.upper)
        if self.scale.kind == "zero_one" and "prediction" in self.columns:
            return zero_one_loss(label, int(self.columns["prediction"][item]), self.classes)
        if self.scale.kind == "zero_one" and probabilities is not None:
            return zero_one_loss(label, int(probabilities[item].argmax()), self.classes)
        raise InvalidValue(
            "The items of this pool carry nothing a loss could be computed from.",
            field="label",
            rule="left out, with `loss` in its place",
            value=label,
        )


def dtype_of(column: str) -> np.dtype[Any]:
    """Return the little-endian type in which the column is kept and hashed."""
    return np.dtype(DTYPES.get(column, "<i4" if column.startswith("group_") else "<f8"))


def chain(digest: bytes, records: Iterable[bytes]) -> bytes:
    """Return the items digest after these records; ``digest`` is the one before them."""
    for record in records:
        digest = hashlib.sha256(digest + record).digest()
    return digest


def archive_arrays(pool: Pool) -> dict[str, NDArray[Any]]:
    """Return the arrays of a pool's `columns.npz`: its columns, and what it states as texts."""
    arrays = {
        "groups": np.array(pool.groups, dtype=np.str_),
        "items_digest": np.array(pool.items_digest.hex()),
        "digest": np.array(pool.digest),
    }
    if pool.reasons:
        arrays["reasons"] = np.array(pool.reasons, dtype=np.str_)
    for name, value in pool.statements.to_dict().items():
        arrays[name] = np.array(canonical_json(value).decode())
    return arrays | dict(pool.columns)

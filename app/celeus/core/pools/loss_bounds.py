"""Bounds of single losses, and losses that are known before the first draw.

See docs/evidence/method.md#14-known-losses. An item may come with bounds of its own within the
scale; if both are the same its loss is known. Stated bounds are an assumption, not a surrogate: no
later judgement would show that they were wrong. The losses of a new version may be known from the
session that judged an earlier one (docs/evidence/method.md#14-known-losses).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.plain import SESSION, Count, Digest, Plain, text
from celeus.errors import BoundContradicted, InvalidValue

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
LabelsSeen = Literal["yes", "no", "unknown"]
TRUE_LABEL, UNCHANGED = "true label", "unchanged answer"
KNOWN_BEFORE = f"known before, {UNCHANGED}"


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Bounds of the loss of every item, shape [N], on the loss scale."""

    lower: Floats
    upper: Floats

    @property
    def known(self) -> Mask:
        """Mask of the items whose loss is known."""
        return np.asarray(self.lower == self.upper)

    def of_scale(self, scale: Interval) -> Mask:
        """Return the mask of the items without bounds of their own."""
        return np.asarray((self.lower == scale.lower) & (self.upper == scale.upper))

    def of(self, item: int) -> Interval:
        """Return the bounds of an item's loss."""
        return Interval(float(self.lower[item]), float(self.upper[item]))

    def check(self, item: int, loss: float) -> None:
        """Raise BoundContradicted if the loss is outside the bounds stated for the item."""
        stated = self.of(item)
        if not stated.lower <= loss <= stated.upper:
            raise BoundContradicted(
                "The loss is not within the bounds that the pool states of this item. If the"
                " judgement is right, what the pool states is false, and the session can claim"
                " nothing: leave the item, and have the session closed and another one opened with"
                " `audit`, or on a pool without the bound. Its status says so from now on.",
                field="loss",
                rule=f"a number from {stated.lower:g} to {stated.upper:g}",
                value=loss,
            ).of(item, stated.lower, stated.upper)


@dataclass(frozen=True, slots=True)
class KnownLosses(Plain):
    """Facts about its pool's bounds that a plan states: known losses, their sum, the reasons.

    ``reasons`` counts known items by reason; ``bounded`` is the number of further items with bounds
    of their own, and ``bounds`` counts those by reason, if given. In the sum a loss counts by its
    item's weight over the mean weight.
    """

    items: int
    total: float
    reasons: Mapping[str, Count]
    bounded: int = 0
    bounds: Mapping[str, Count] = field(default_factory=dict)

    optional: ClassVar = ("bounds",)

    @classmethod
    def of(
        cls,
        bounds: Bounds,
        scale: Interval,
        reasons: Mapping[str, int],
        bounded: Mapping[str, int] | None = None,
        item_weight: Floats | None = None,
    ) -> Self:
        """Return the facts of ``bounds``; reasons count known and other items."""
        known = bounds.known
        losses = bounds.lower if item_weight is None else bounds.lower * item_weight
        whole = bounds.of_scale(scale)
        return cls(
            int(known.sum()),
            math.fsum(losses[known].tolist()),
            reasons,
            int((~known & ~whole).sum()),
            bounded or {},
        )


def is_carried(reason: str) -> bool:
    """Return whether the reason names a session; only the service gives such reasons."""
    return reason.startswith(
        tuple(f"{kind} (ses_" for kind in (TRUE_LABEL, UNCHANGED, KNOWN_BEFORE))
    )


def foreign(reasons: Iterable[str], basis: "Basis | None") -> str | None:
    """Return the first reason that names another session than that of the basis, or None."""
    of_basis = frozenset() if basis is None else basis.reasons
    return next(
        (reason for reason in reasons if is_carried(reason) and reason not in of_basis), None
    )


@dataclass(frozen=True, slots=True)
class Basis(Plain):
    """The judged session that a pool of a new version is based on; part of the pool's digest.

    ``session`` is the id on the wire, ``pool`` the digest of its pool, ``ledger`` the head of its
    ledger and ``certificate`` the digest of its final certificate, None where there is none.
    ``labels_seen``: the makers of the new version saw labels of the pool. ``answer`` names the
    member of the payload that holds a version's answer. ``system`` is which of two compared ones
    the earlier version is, a or b; None where the session was on one alone.
    """

    session: Annotated[str, partial(text, form=SESSION)]
    pool: Digest
    ledger: Digest
    certificate: Digest | None
    labels_seen: LabelsSeen
    answer: str | None = None
    system: str | None = None

    def __post_init__(self) -> None:
        if self.labels_seen not in get_args(LabelsSeen):
            raise InvalidValue(
                "Whether labels were seen is not said.",
                field="based_on.labels_seen",
                rule="one of " + ", ".join(get_args(LabelsSeen)),
                value=self.labels_seen,
            )

    @property
    def true_label(self) -> str:
        """Reason for losses that follow from a label of the session."""
        return f"{TRUE_LABEL} ({self.session})"

    @property
    def unchanged(self) -> str:
        """Reason for losses judged in the session, if the answer is the same."""
        return f"{UNCHANGED} ({self.session})"

    @property
    def known_before(self) -> str:
        """Reason for losses known in the session's own pool, if the answer is the same."""
        return f"{KNOWN_BEFORE} ({self.session})"

    @property
    def reasons(self) -> frozenset[str]:
        """Reasons that only the service gives."""
        return frozenset({self.true_label, self.unchanged, self.known_before})

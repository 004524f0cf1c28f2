"""The scale a loss lives on, and the loss that follows from a true label.

Notation: l loss, [L, U] scale, y true label, p_f the target's probabilities, y_f its prediction.

    zero_one        l = 1[y_f != y], exactly 0 or 1: the exact binomial bound rests on whole counts
    cross_entropy   l = -log p_f(y), clipped at a U that was fixed before any label was seen
    bounded         any l in a finite [L, U]
    difference      loss of system A less loss of system B, in [-U, U]; below 0 A is better
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.plain import Plain
from celeus.errors import InvalidValue, LossOutsideScale

LossKind = Literal["zero_one", "cross_entropy", "bounded", "difference"]
KINDS: tuple[LossKind, ...] = ("zero_one", "cross_entropy", "bounded", "difference")

LARGEST_LIMIT = 1e15
"""Largest end of a scale; JSON readers and databases change whole floats beyond it."""
SMALLEST_WIDTH = 1e-15
"""Least width of a scale; bets divide by its square, which would come near the least float."""
IMPLIED_BY: Mapping[str, frozenset[str]] = {
    "cross_entropy": frozenset({"target_probs"}),
    "zero_one": frozenset({"target_probs", "prediction", "predictions"}),
    "difference": frozenset({"prediction_a"}),
}
"""Pool columns of which one is needed to compute a loss of this kind from a label."""
FINEST_SCALE = 1e-9
"""Least width over the end nearer to 0: a float has 16 digits, a cell is 5e-6 of the width."""


@dataclass(frozen=True, slots=True)
class LossScale(Plain):
    """Kind of loss and the interval it lies in, fixed before the first label."""

    kind: LossKind
    lower: float
    upper: float

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidValue(
                "The kind of loss is unknown.",
                field="loss.kind",
                rule="one of " + ", ".join(KINDS),
                value=self.kind,
            )
        if self.kind == "zero_one" and (self.lower, self.upper) != (0.0, 1.0):
            raise InvalidValue(
                "A zero_one loss has the scale 0 to 1.",
                field="loss.upper" if self.lower == 0.0 else "loss.lower",
                rule="0 and 1, or left out",
                value=(self.lower, self.upper),
            )
        if self.kind == "cross_entropy" and self.lower != 0.0:
            raise InvalidValue(
                "A cross-entropy loss starts at 0.",
                field="loss.lower",
                rule="0, or left out",
                value=self.lower,
            )
        if self.kind == "difference" and self.lower != -self.upper:
            raise InvalidValue(
                "The scale of a difference is as far below 0 as above it.",
                field="loss.lower",
                rule="loss.upper with the other sign, or left out",
                value=(self.lower, self.upper),
            )
        # NaN and infinite ends fail the comparisons too.
        nearer, farther = sorted((abs(self.lower), abs(self.upper)))
        least_width = max(SMALLEST_WIDTH, nearer * FINEST_SCALE)
        if not (farther <= LARGEST_LIMIT and self.upper - self.lower >= least_width):
            raise InvalidValue(
                "The scale of the loss is empty, or its numbers cannot be told apart.",
                field="loss.upper",
                rule=f"above loss.lower by at least {SMALLEST_WIDTH:g} and a billionth of the"
                f" limit nearer to 0, and both limits at most {LARGEST_LIMIT:g} from 0",
                value=(self.lower, self.upper),
            )

    @classmethod
    def of(cls, kind: LossKind, lower: float | None = None, upper: float | None = None) -> Self:
        """Return the scale with defaults for missing ends.

        Raises InvalidValue if an end has no default. The upper end of a cross-entropy has none:
        taken from the losses it would depend on labels, and void the certificate.
        """
        if kind == "difference":
            upper = 1.0 if upper is None else upper
            lower = -upper if lower is None else lower
        if upper is None and kind != "zero_one":
            raise InvalidValue(
                f"A {kind} loss needs an upper limit fixed beforehand.",
                field="loss.upper",
                rule="a finite number, given before any label is seen",
                value=None,
            )
        if lower is None and kind == "bounded":
            raise InvalidValue(
                "A bounded loss needs a lower limit.",
                field="loss.lower",
                rule="a finite number below loss.upper",
                value=None,
            )
        return cls(kind, 0.0 if lower is None else lower, 1.0 if upper is None else upper)

    @property
    def interval(self) -> Interval:
        """Interval of possible losses, [L, U]."""
        return Interval(self.lower, self.upper)

    @property
    def width(self) -> float:
        """Width of the scale, U - L."""
        return self.upper - self.lower

    def implied_by(self, columns: Iterable[str]) -> bool:
        """Return whether a label, the true class, gives the loss in a pool with these columns."""
        return not IMPLIED_BY.get(self.kind, frozenset()).isdisjoint(columns)

    def check(self, loss: float, field: str = "loss") -> float:
        """Return the loss; raises LossOutsideScale for ``field`` if it is not on the scale."""
        if self.kind == "zero_one":
            allowed, rule = loss in {0.0, 1.0}, "exactly 0 or 1"
        else:
            allowed = self.lower <= loss <= self.upper
            rule = f"a number from {self.lower:g} to {self.upper:g}"
        if not allowed:
            raise LossOutsideScale(
                "The loss is not on the scale of its pool.", field=field, rule=rule, value=loss
            )
        return loss


def zero_one_loss(label: int, prediction: int, classes: int | None) -> float:
    """Return 1[y_f != y]; raises InvalidValue for a label that is not one of ``classes``."""
    _check_label(label, classes)
    return float(prediction != label)


def cross_entropy_loss(label: int, target_probs: NDArray[np.float32], upper: float) -> float:
    """Return -log p_f(y), clipped into [0, U]."""
    _check_label(label, len(target_probs))
    probability = float(target_probs[label])
    if probability <= 0.0:
        return upper
    return min(max(-math.log(probability), 0.0), upper)


def _check_label(label: int, classes: int | None) -> None:
    if label < 0 or (classes is not None and label >= classes):
        last = "" if classes is None else f" to {classes - 1}"
        raise InvalidValue(
            "The label names no class of this pool.",
            field="label",
            rule=f"a whole number from 0{last}",
            value=label,
        )

"""Measures of an automatic judge, as ratios.

Notation: j is 1 for an item that the judge calls positive, known of every item; h is 1 for one that
a person calls positive, known once it is labelled; p is the mean of j. Every measure is a ratio,
the sum of A over the sum of B (docs/evidence/method.md#23-ratios).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

Shares = tuple[float, float]
"""1 - p and p."""


class Measure(NamedTuple):
    """A measure between ``lower`` and 1; ``outcome`` gives A and B of h, j and the shares."""

    title: str
    lower: float
    outcome: Callable[[float, float, Shares], tuple[float, float]]


def _kappa(h: float, j: float, shares: Shares) -> tuple[float, float]:
    # 1 - e, without the difference of two numbers near 1
    unequal = shares[0] * h + shares[1] * (1.0 - h)
    return unequal - (h != j), unequal


MEASURES: Mapping[str, Measure] = {
    "tpr": Measure("true-positive rate", 0.0, lambda h, j, _: (h * j, h)),
    "tnr": Measure("true-negative rate", 0.0, lambda h, j, _: ((1.0 - h) * (1.0 - j), 1.0 - h)),
    "ppv": Measure("precision", 0.0, lambda h, j, _: (h * j, j)),
    "npv": Measure(
        "negative predictive value", 0.0, lambda h, j, _: ((1.0 - h) * (1.0 - j), 1.0 - j)
    ),
    "agreement": Measure("agreement", 0.0, lambda h, j, _: (float(h == j), 1.0)),
    "f1": Measure("F1", 0.0, lambda h, j, _: (2.0 * h * j, h + j)),
    "jaccard": Measure("Jaccard index", 0.0, lambda h, j, _: (h * j, max(h, j))),
    "kappa": Measure("Cohen's kappa", -1.0, _kappa),
}
"""True-positive and true-negative rate (recall and specificity), positive and negative predictive
value (precision is the first), share of equal verdicts, F1, Jaccard index and Cohen's kappa."""

"""Checks of an automatic judge against people, by the measures of ``judge_measures``."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.plain import Plain
from celeus.core.plans.judge_measures import MEASURES, Shares
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.score import Score
from celeus.core.pools.table_pool import Table
from celeus.errors import InvalidValue, require

Floats = NDArray[np.float64]
SURE = 0.85
"""Surrogate of an item that the judge calls wrong, where items have no surrogates."""
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class JudgeCheck(Plain):
    """A check of an automatic judge: the group column of its verdicts, and the measures asked for.

    ``positive`` is the verdict that means the same as a score of 1.
    """

    column: str
    positive: str
    measures: tuple[str, ...]

    def __post_init__(self) -> None:
        rule = "one or more of " + ", ".join(MEASURES) + ", each once"
        different = len(set(self.measures)) == len(self.measures) > 0
        holds = different and set(self.measures) <= MEASURES.keys()
        require("check.measures", rule, ", ".join(self.measures), holds=holds)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The measures as metrics whose higher scores are better."""
        return tuple(map(_metric, self.measures))


def _metric(name: str) -> Metric:
    title, lower, _ = MEASURES[name]
    score = Score(title, "higher", "number" if lower else "share")
    return Metric(name, LossScale("bounded", lower, 1.0), score)


def outcomes(measure: str, shares: Shares) -> Floats:
    """Return what an item adds to both sums of a measure's loss, by j and h; shape [2, 2, 2].

    The loss is 1 minus the measure; of kappa, minus kappa.
    """
    ends = MEASURES[measure].lower + 1.0
    outcome = MEASURES[measure].outcome
    table = [[outcome(h, j, shares) for h in (0.0, 1.0)] for j in (0.0, 1.0)]
    return np.array([[(ends * b - a, b) for a, b in row] for row in table])


def limits(outcome: Floats, counts: Floats, unknown: Floats, scale: Interval) -> Interval:
    """Return the bounds of a ratio; its scale where its denominator may be 0.

    ``counts`` are the items by j and h (shape [2, 2]), ``unknown`` those of unknown h by j. A ratio
    of sums is largest and smallest where all unknown h of a verdict are equal.
    """
    sums = np.einsum("jh,jhs->s", counts, outcome)
    ratios = []
    for first in (0, 1):
        for second in (0, 1):
            worst = sums + unknown[0] * outcome[0, first] + unknown[1] * outcome[1, second]
            if worst[1] <= 0.0:
                return scale
            ratios.append(float(worst[0] / worst[1]))
    return Interval(max(min(ratios), scale.lower), min(max(ratios), scale.upper))


def loss_of(check: JudgeCheck | None, metric: int) -> int:
    """The place among a judgement's losses of the one that a claim about a metric is about.

    ``metric`` is its place among those claimed; all measures of a check are about the one loss.
    """
    return metric if check is None else 0


def positive_loss(metric: Metric) -> float:
    """The loss by which people call an item positive: that of a score of 1."""
    return 0.0 if metric.measured.better == "higher" else 1.0


def verdicts(check: JudgeCheck, table: Table) -> NDArray[np.bool_]:
    """Mask of the items that the judge calls positive.

    Raises InvalidValue where people say more than right or wrong, or the judge has a third verdict.
    """
    if [metric.scale.kind for metric in table.metrics] != ["zero_one"]:
        raise InvalidValue(
            "A judge is checked against people who call every item positive or not.",
            field="pool_id",
            rule="a pool with one loss, of kind zero_one",
            value=", ".join(metric.name for metric in table.metrics),
        )
    column = next(column for column in table.columns if column.name == check.column)
    if check.positive not in column.values or len(column.values) > 2:
        raise InvalidValue(
            f"The verdicts in {check.column} are {', '.join(column.values[:MOST_NAMED])}.",
            field="check.positive",
            rule="one of two verdicts, the one that calls an item positive",
            value=check.positive,
        )
    return np.asarray(column.code == column.values.index(check.positive))


def informed(check: JudgeCheck, table: Table) -> Table:
    """The table with the judge's verdicts as surrogates, where it has no others."""
    flagged = verdicts(check, table)
    if np.ptp(table.surrogate):
        return table
    return table.with_surrogate(
        np.where(flagged == positive_loss(table.metrics[0]), SURE, 1.0 - SURE)
    )

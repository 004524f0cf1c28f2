"""Surrogate diagnostics: calibration of the scores against the losses.

A surrogate decides how fast an interval narrows, never whether it is valid; nothing certified rests
on this module. Only folded rounds count: labels that wait for an earlier one came early, and early
labels are easy ones. Losses have LURE weights, times the items' own.

Notation: N items, t rounds folded; round m drew its item with probability q among n = N - m + 1.

    u = 1 + (N - t) / (N - m) (1 / (n q) - 1)        weight of a round, u = 1 when m = N

Items are drawn with unequal probabilities, so plain means of what was drawn would speak of what is
drawn often. The mean of u f over rounds is unbiased for the pool's mean of any f fixed beforehand,
and exact once the pool is exhausted (Farquhar et al. 2021; ``betting.published``).
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from celeus.core.plans.plan import Plan
from celeus.core.pools.strata import NOWHERE, Strata
from celeus.core.pools.surrogates import Scores
from celeus.core.sampling.calibration import LEAST_SURROGATE, LINE_LABELS, Line
from celeus.core.session.engine import strata_for

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRounds:
    """The folded rounds that have a loss, in order: arrays of one length.

    ``loss`` is on the unit scale, 0 for the smallest loss and 1 for the largest. ``folded`` is the
    last folded round, judged or not. ``drawn`` are the items of all folded rounds, also of those
    that nobody could judge.
    """

    items: int
    folded: int
    round: Counts
    item: Counts
    q: Floats
    loss: Floats
    drawn: Counts

    @property
    def left(self) -> Counts:
        """Items left before every round: n."""
        return self.items - self.round + 1

    @property
    def weight(self) -> Floats:
        """Weight of every round: u, never negative."""
        after = np.maximum(self.items - self.round, 1)
        share = (self.items - self.folded) / after
        u = 1.0 + share * (1.0 / (self.left * self.q) - 1.0)
        return np.asarray(np.where(self.round < self.items, u, 1.0))


def refit(strata: Strata, judged: JudgedRounds) -> Floats:
    """Return u_k of ``calibration`` for every stratum after the last round, at once.

    On the unit scale, before ``Narrowing`` cuts it; O(t).
    """
    stratum = strata.code[judged.item].astype(np.int64)
    x, loss, weight = strata.base[stratum], judged.loss, 1.0 / (judged.left * judged.q)
    if strata.item_weight is not None:
        taken = np.append(0.0, np.cumsum(strata.item_weight[judged.drawn]))
        left = float(strata.item_weight[strata.code != NOWHERE].sum()) - taken[judged.round - 1]
        weight = strata.item_weight[judged.item] / (left * judged.q)
    line = Line()
    line.weight += float(weight.sum())
    line.x += float(weight @ x)
    line.xx += float(weight @ (x * x))
    line.y += float(weight @ loss)
    line.xy += float(weight @ (x * loss))
    labels, losses = (
        np.bincount(stratum, weights=numbers, minlength=strata.count)
        for numbers in (np.ones(loss.size), loss)
    )
    guess = np.clip(line.at(strata.base), LEAST_SURROGATE, 1.0 - LEAST_SURROGATE)
    return np.asarray((LINE_LABELS * guess + losses) / (LINE_LABELS + labels))


MOST_BINS = 10
LIMIT = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the pool, what its surrogates say and what its losses are; on the loss scale.

    ``used`` is the mean surrogate as the labels correct it by stratum, before it is cut; several
    columns are weighed beyond. ``loss`` is estimated from ``labels`` and None without any; ``low``
    and ``high`` are rough 95 % limits of it for looking at, not a claim.
    """

    items: int
    labels: int
    least: float
    largest: float
    surrogate: float
    used: float
    loss: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class SurrogateDiagnostics:
    """The calibration curve by bins of the surrogate and by strata.

    ``surrogate`` and ``loss`` are means over the pool, the second one estimated. ``correlation``
    is that of the two over the pool, None while either is constant. ``strata`` is empty where the
    policy has none.
    """

    labels: int
    surrogate: float
    loss: float | None
    correlation: float | None
    curve: tuple[Part, ...]
    strata: tuple[Part, ...]


def diagnose(plan: Plan, scores: Scores, judged: JudgedRounds) -> SurrogateDiagnostics:
    """The diagnostics, of the items that may be drawn. O(N log N)."""
    bounds = scores.bounds
    if bounds is not None and plan.drawable < plan.items:
        drawn = ~bounds.known
        place = np.cumsum(drawn) - 1
        judged = replace(judged, item=place[judged.item], drawn=place[judged.drawn])
        scores = scores.of(drawn)
    unit = np.clip((scores.surrogate - plan.lower) / plan.scale.width, 0.0, 1.0)
    item_weight = np.ones(unit.size) if scores.item_weight is None else scores.item_weight
    current = unit if plan.policy.uses_scores else np.zeros(unit.size)
    strata: Counts | None = None
    if plan.policy.has_goal:
        groups = strata_for(plan, scores)
        current = refit(groups, judged)[groups.code]
        strata = groups.code.astype(np.int64)
    scored = np.stack((unit, current))
    weight, labels = judged.weight * item_weight[judged.item], judged.loss.size
    return SurrogateDiagnostics(
        labels=labels,
        surrogate=_value(plan, float(np.average(unit, weights=item_weight))),
        loss=_value(plan, float(np.average(judged.loss, weights=weight))) if labels else None,
        correlation=_correlation(unit[judged.item], judged.loss, weight),
        curve=_parts(plan, judged, scored, item_weight, _bins(unit)),
        strata=() if strata is None else _parts(plan, judged, scored, item_weight, strata),
    )


def _bins(surrogate: Floats) -> Counts:
    """Distinct values when few, else bins of equal counts; ties are never split."""
    distinct, code = np.unique(surrogate, return_inverse=True)
    if distinct.size > MOST_BINS:
        ordered = np.sort(surrogate)
        edges = np.unique(ordered[np.arange(1, MOST_BINS) * surrogate.size // MOST_BINS])
        _, code = np.unique(np.searchsorted(edges, surrogate, side="right"), return_inverse=True)
    return np.asarray(code, dtype=np.int64)


def _parts(
    plan: Plan, judged: JudgedRounds, scored: Floats, item_weight: Floats, code: Counts
) -> tuple[Part, ...]:
    """Every part of the pool; ``scored`` holds surrogates as they came and as they are used.

    ``own`` is how much every item counts.
    """
    count = int(code.max()) + 1
    items = np.bincount(code, minlength=count)
    size = np.bincount(code, weights=item_weight, minlength=count)
    surrogate, used = (
        np.bincount(code, weights=column * item_weight, minlength=count) / size for column in scored
    )
    least, largest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, code, scored[0])
    np.maximum.at(largest, code, scored[0])
    part_of_round, weight = code[judged.item], judged.weight * item_weight[judged.item]
    parts = []
    for part in range(count):
        mask = part_of_round == part
        estimates = _mean_loss(judged.loss[mask], weight[mask], int(items[part]))
        loss, low, high = (None if number is None else _value(plan, number) for number in estimates)
        parts.append(
            Part(
                items=int(items[part]),
                labels=int(mask.sum()),
                least=_value(plan, float(least[part])),
                largest=_value(plan, float(largest[part])),
                surrogate=_value(plan, float(surrogate[part])),
                used=_value(plan, float(used[part])),
                loss=loss,
                low=low,
                high=high,
            )
        )
    return tuple(parts)


def _mean_loss(
    loss: Floats, weight: Floats, items: int
) -> tuple[float | None, float | None, float | None]:
    """Mean loss of a part with Wilson's limits, which suit any losses in [0, 1]."""
    total = float(weight.sum())
    if total <= 0.0:
        return None, None, None
    p = float(weight @ loss) / total
    if loss.size == items:
        return p, p, p
    number = total * total / float(weight @ weight) / (1.0 - loss.size / items)
    widened = LIMIT * LIMIT / number
    centre = p + widened / 2.0
    reach = LIMIT * math.sqrt(max(p * (1.0 - p), 0.0) / number + widened / (4.0 * number))
    low, high = (centre - reach) / (1.0 + widened), (centre + reach) / (1.0 + widened)
    return p, max(low, 0.0), min(high, 1.0)


def _correlation(surrogate: Floats, loss: Floats, weight: Floats) -> float | None:
    if loss.size < 2 or not np.ptp(loss) or not np.ptp(surrogate):
        return None
    x = surrogate - np.average(surrogate, weights=weight)
    y = loss - np.average(loss, weights=weight)
    scale = math.sqrt(float(weight @ (x * x)) * float(weight @ (y * y)))
    return float(weight @ (x * y)) / scale if scale else None


def _value(plan: Plan, unit: float) -> float:
    return plan.lower + plan.scale.width * unit

"""Judgements of a session as they stand, from the events of its ledger."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.plans.best_plan import BestPlan
from celeus.core.plans.plan import Plan
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.pool import Pool
from celeus.core.pools.systems import PLACES, TIES
from celeus.core.session.question import AnyPlan


@dataclass(frozen=True, slots=True)
class LabelContext:
    """The facts the judgements of a session have in common.

    ``names`` are those of the losses where a judgement has several; rounds up to ``folded`` are in
    the interval.
    """

    pool: Pool
    folded: int
    names: tuple[str, ...]
    systems: bool
    panel: bool

    @classmethod
    def of(cls, plan: AnyPlan, pool: Pool, folded: int) -> Self:
        """Return what is common to the judgements of a session with this plan."""
        names: tuple[str, ...] = ()
        if isinstance(plan, BestPlan):
            names = tuple(plan.systems)
        elif isinstance(plan, TablePlan):
            names = tuple(metric.name for metric in plan.metrics)
        panel = isinstance(plan, Plan) and bool(plan.panel)
        return cls(pool, folded, names, pool.systems is not None, panel)

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The values of every group column, by code."""
        groups = {"group": self.pool.groups} if self.pool.groups else {}
        return groups | dict(self.pool.group_columns)

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """The weight of every item as it was uploaded; None where all count the same."""
        weights: NDArray[np.float64] | None = self.pool.columns.get("weight")
        return weights

    def codes(self, column: str) -> NDArray[Any]:
        """The code that every item has in a group column."""
        is_sole = column == "group" and "group" not in self.pool.group_columns
        codes: NDArray[Any] = self.pool.columns["group" if is_sole else f"group_{column}"]
        return codes


def label_row(labels: LabelContext, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a judgement as it stands, from its first event and its last correction."""
    first, last = row["detail"] or {}, row["last_detail"]
    detail = first if last is None else last
    weights = labels.weights
    rater = first.get("rater")
    kind = "rating" if row["is_rating"] else "label"
    return {
        "sequence": row["sequence"],
        "round": row["round"],
        "kind": "outcome" if labels.panel and kind == "label" else kind,
        "item": row["id"],
        "index": row["item"],
        **said_of(labels, row["loss"], row["losses"], detail, row["left_system"]),
        "left": row["left_system"],
        "person": row["person"] or rater or first.get("worker"),
        "worker": first.get("worker"),
        "rater": rater,
        "turn": first.get("turn", 1) if rater is not None else None,
        "drawn_at": row["drawn_at"],
        "judged_at": row["at"],
        "in_interval": row["round"] <= labels.folded,
        "corrections": row["corrections"] or 0,
        "corrected_at": row["last_at"],
        "corrected_by": None if last is None else last.get("author"),
        "correction_reason": None if last is None else last.get("reason"),
        "comment": row["comment"],
        "probability": row["q"],
        "weight": None if weights is None else float(weights[row["item"]]),
        "groups": groups_of(labels, row["item"]),
    }


def said_of(
    labels: LabelContext,
    loss: float | None,
    losses: Sequence[float | None] | None,
    detail: Mapping[str, Any],
    left: str | None,
) -> dict[str, Any]:
    """Return what was judged: the loss that counts, and what the judge said if that is different.

    Of several systems or metrics ``losses`` are by name; of two those that were given. ``left`` of
    two systems stood on the left, and is told in place of that.
    """
    by_place = dict(zip(PLACES, ("a", "b") if left == "a" else ("b", "a"), strict=True))
    named: dict[str, float | None] | None = None
    if losses is not None:
        named = dict(zip(labels.names, losses, strict=False))
        loss = losses[0] if len(losses) == 1 else loss
    elif labels.systems:
        given = {
            name: detail[f"loss_{name}"] for name in ("a", "b", *PLACES) if f"loss_{name}" in detail
        }
        named = {by_place.get(name, name): value for name, value in given.items()} or None
    preference = detail.get("preference")
    return {
        "loss": loss,
        "losses": named,
        "label": detail.get("label"),
        "preference": None if preference is None else by_place.get(preference, preference),
        "grade": None if preference in {None, *TIES} else detail.get("grade", 1),
        "unjudgeable": detail.get("unjudgeable"),
    }


def groups_of(labels: LabelContext, item: int) -> dict[str, str] | None:
    """Return the group of an item in every column; None where there are none."""
    groups = labels.groups
    return dict(_values(labels, groups, item)) if groups else None


def _values(
    labels: LabelContext, groups: Mapping[str, Sequence[str]], item: int
) -> Iterator[tuple[str, str]]:
    for column, values in groups.items():
        yield column, values[int(labels.codes(column)[item])]

"""Checks of a certificate of claims about a table against its pool and its ledger.

Nothing of it can be computed without the pool's columns: how an item was drawn, and in which groups
it counts, follows from what they say of it.
"""

from dataclasses import fields
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from celeus.core.certificate.read_ledger import Transcript
from celeus.core.certificate.replay import check_bounds_columns, check_carried
from celeus.core.interval import Interval
from celeus.core.plain import (
    DIGEST,
    Mismatch,
    Object,
    equal,
    flag,
    listed,
    members,
    number,
    same,
    text,
    whole,
)
from celeus.core.plans.plan import METHOD_VERSION
from celeus.core.plans.stopping import Question, Side
from celeus.core.plans.table_plan import MOST_CLAIMS, TableClaim, TablePlan
from celeus.core.pools.comparison import loss_said
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import STATED, Pool
from celeus.core.session.recorded import SLACK
from celeus.errors import Refusal

PLAN = frozenset({one.name for one in fields(TablePlan)} | {"table"})
OPTIONAL = frozenset({"reserve", "fixed"})
CLAIM = tuple(one.name for one in fields(TableClaim))


def table_plan_of(values: Object, metrics: tuple[Metric, ...], items: int) -> TablePlan:
    """The plan in ``values``; Mismatch where no session on such a pool has it."""
    plan = members(values, "plan", PLAN - OPTIONAL, OPTIONAL)
    equal("plan.table", plan["table"], found=True)
    equal("plan.method_version", plan["method_version"], METHOD_VERSION)
    equal("plan.items", plan["items"], items)
    claims = listed(plan["claims"], "plan.claims")
    whole(float(len(claims)), "the number of plan.claims", 1, MOST_CLAIMS)
    try:
        made = TablePlan(
            pool_digest=text(plan["pool_digest"], "plan.pool_digest", DIGEST),
            items=items,
            drawable=whole(plan["drawable"], "plan.drawable", 1, items),
            metrics=metrics,
            claims=tuple(claim_of(one, f"plan.claims[{at}]") for at, one in enumerate(claims)),
            alpha=number(plan["alpha"], "plan.alpha"),
            # Whatever else these two are, the plan refuses them by name.
            account=text(plan["account"], "plan.account"),  # type: ignore[arg-type]
            small_groups=text(plan["small_groups"], "plan.small_groups"),  # type: ignore[arg-type]
            budget=whole(plan["budget"], "plan.budget"),
            commitment=text(plan["commitment"], "plan.commitment", DIGEST),
            beta=number(plan["beta"], "plan.beta"),
            reserve=number(plan.get("reserve", 0.0), "plan.reserve"),
            fixed=flag(plan.get("fixed", False), "plan.fixed"),
        )
        names = {metric.name for metric in metrics}
        for at, claim in enumerate(made.claims):
            if claim.metric not in names:
                rule = f"one of {', '.join(sorted(names))}"
                raise Mismatch(f"plan.claims[{at}].metric", claim.metric, rule)
            made.of(claim)
    except Refusal as refusal:
        raise Mismatch(f"plan.{refusal.field}", refusal.value, refusal.rule) from refusal
    same("plan", plan, made.to_dict())
    return made


def claim_of(value: object, where: str) -> TableClaim:
    """A claim as a plan, or the event that adds one, writes it down."""
    values = members(value, where, CLAIM)
    return TableClaim(
        metric=text(values["metric"], f"{where}.metric"),
        items=whole(values["items"], f"{where}.items", 1),
        level=number(values["level"], f"{where}.level", 0.0, 1.0),
        column=_perhaps(values["column"], f"{where}.column"),
        value=_perhaps(values["value"], f"{where}.value"),
        precision=None
        if values["precision"] is None
        else number(values["precision"], f"{where}.precision"),
        questions=tuple(
            _question(one, f"{where}.questions[{at}]")
            for at, one in enumerate(listed(values["questions"], f"{where}.questions"))
        ),
        whole=flag(values["whole"], f"{where}.whole"),
        known=whole(values["known"], f"{where}.known", 0),
        total=number(values["total"], f"{where}.total"),
    )


def _perhaps(value: object, where: str) -> str | None:
    return None if value is None else text(value, where)


def _question(value: object, where: str) -> Question:
    values = members(value, where, ("side", "threshold"))
    side = next((choice for choice in get_args(Side) if choice == values["side"]), None)
    if side is None:
        raise Mismatch(f"{where}.side", values["side"], "one of " + ", ".join(get_args(Side)))
    return Question(side, number(values["threshold"], f"{where}.threshold"))


def check_table_labels(pool: Pool, plan: TablePlan, transcript: Transcript) -> None:
    """Refuse a loss that does not follow from the label its judge gave."""
    for at, said in transcript.words.items():
        joint = transcript.losses.get(at)
        where = f"ledger[{at}].losses"
        if joint is None or len(plan.metrics) > 1:
            raise Mismatch(f"ledger[{at}].detail", sorted(said), "nothing beside several losses")
        item = transcript.draws[joint.round - 1].item
        try:
            expected = loss_said(pool, item, said, None)
        except Refusal as refusal:
            raise Mismatch(where, refusal.value, refusal.rule) from refusal
        if joint.losses[0] is None or abs(joint.losses[0] - expected) > SLACK * max(
            1.0, abs(expected)
        ):
            raise Mismatch(where, joint.losses[0], expected)


def check_table_pool(pool: Pool) -> None:
    """The pool has the columns of its metrics and groups, with numbers that these may hold."""
    for name, values in pool.group_columns.items():
        column = f"group_{name}"
        if column not in pool.columns:
            raise Mismatch(f"pool.columns.{column}", None, "the value of every item")
        _check_codes(column, pool.columns[column], len(values))
    if "group" in pool.columns:
        _check_codes("group", pool.columns["group"], len(pool.groups))
    stated = STATED & pool.columns.keys()
    if pool.metrics and stated:
        raise Mismatch("pool.columns", ", ".join(sorted(stated)), "none of a single loss")
    check_bounds_columns(pool, Interval(pool.scale.lower, pool.scale.upper))
    check_carried(pool)
    for metric in pool.metrics:
        for kind in ("surrogate", "known"):
            column = f"{kind}_{metric.name}"
            given = pool.columns.get(column, np.empty(0))
            off = (given < metric.scale.lower) | (given > metric.scale.upper)
            if kind == "surrogate":
                off |= np.isnan(given)
            elif metric.scale.kind == "zero_one":
                off |= ~np.isnan(given) & (given != 0.0) & (given != 1.0)
            if off.any():
                item, rule = int(np.flatnonzero(off)[0]), "numbers on the scale of the metric"
                raise Mismatch(f"pool.columns.{column}", f"item {item}", rule)


def _check_codes(column: str, code: NDArray[Any], values: int) -> None:
    off = np.flatnonzero((code < 0) | (code >= values))
    if off.size:
        rule = f"one of {values} values"
        raise Mismatch(f"pool.columns.{column}", f"item {int(off[0])}", rule)

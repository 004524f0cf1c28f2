"""Checks of a certificate of claims about a table against its pool and its ledger.

Nothing of it can be computed without the pool's columns: how an item was drawn, and in which groups
it counts, follows from what they say of it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.certificate.read_ledger import Transcript
from celeus.core.certificate.replay import check_bounds_columns, check_carried
from celeus.core.plain import Mismatch, Object, equal, same
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.comparison import loss_said
from celeus.core.pools.pool import STATED, Pool, PoolHeader
from celeus.core.pools.table_pool import sole_metric
from celeus.core.session.recorded import SLACK
from celeus.errors import Refusal


def table_plan_of(values: Object, header: PoolHeader) -> TablePlan:
    """The plan in ``values``; Mismatch where no session on such a pool has it."""
    metrics = header.metrics or (sole_metric(header.loss, header.score),)
    due = [metric.to_dict() for metric in metrics]
    same("plan.metrics", values.get("metrics", due), due)
    plan = TablePlan.from_dict(values, "plan")
    equal("plan.items", plan.items, header.items)
    names = {metric.name for metric in metrics}
    for at, claim in enumerate(plan.claims):
        if claim.metric not in names:
            rule = f"one of {', '.join(sorted(names))}"
            raise Mismatch(f"plan.claims[{at}].metric", claim.metric, rule)
        plan.of(claim)
    return plan


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
    check_bounds_columns(pool, pool.scale.interval)
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

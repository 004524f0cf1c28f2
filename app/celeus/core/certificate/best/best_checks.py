"""Checks of a certificate of the best of several systems against its pool and its ledger.

Nothing of it can be computed without the pool's columns: whom a judgement tells apart follows from
what the systems answered.
"""

from collections.abc import Sequence

import numpy as np

from celeus.core.certificate.read_ledger import Transcript
from celeus.core.plain import Mismatch, Object, equal, same
from celeus.core.plans.best_plan import BestPlan
from celeus.core.pools.comparison import losses_said
from celeus.core.pools.pool import Pool, PoolHeader
from celeus.core.pools.rows.lineups import all_same
from celeus.core.pools.systems import Lineup
from celeus.core.session.best.candidates import candidates_of
from celeus.errors import Refusal

COLUMNS = frozenset({"predictions", "answers", "surrogates", "known", "group"})


def best_plan_of(values: Object, lineup: Lineup, header: PoolHeader) -> BestPlan:
    """The plan in ``values``; Mismatch where no session on such a pool has it."""
    plan, scale = BestPlan.from_dict(values, "plan"), header.loss
    equal("plan.items", plan.items, header.items)
    same("plan.systems", list(plan.systems), list(lineup.names))
    for name, end in (("lower", scale.lower), ("upper", scale.upper)):
        equal(f"plan.{name}", getattr(plan, name), end)
    return plan


def check_answers(
    plan: BestPlan, pool: Pool, lineup: Lineup, texts: Sequence[list[int] | None] | None
) -> None:
    """Known are the items to which all gave the same answer, by their classes or ``texts``.

    ``texts`` are codes of the items' texts, None of an item without any; None where the items are
    not at hand.
    """
    columns, codes = pool.columns, pool.codes
    _check_columns(pool, lineup)
    expected = np.zeros(pool.items, dtype=np.bool_) if codes is None else all_same(codes)
    equal("plan.known", plan.known, int(expected.sum()))
    apart = np.flatnonzero(columns.get("known", np.zeros(pool.items)) != expected)
    if apart.size:
        rule = "known where all gave the same answer, and nowhere else"
        raise Mismatch("pool.columns.known", f"item {int(apart[0])}", rule)
    reason = lineup.reason(classes="predictions" in columns)
    same("pool.reasons", list(pool.reasons), [reason] if expected.any() else [])
    if texts is None:
        return
    if "answers" not in columns:
        if any(one is not None for one in texts):
            raise Mismatch("pool.columns", ", ".join(sorted(columns)), "the items' answers")
        return
    for at, (claimed, found) in enumerate(zip(columns["answers"], texts, strict=True)):
        if found is None or claimed.tolist() != found:
            raise Mismatch("pool.columns.answers", f"item {at}", "the texts that are the same")


def _check_columns(pool: Pool, lineup: Lineup) -> None:
    """The pool has the columns of several systems and no others, each with a number of each."""
    columns, shape = pool.columns, (pool.items, len(lineup.names))
    strange = sorted(columns.keys() - COLUMNS)
    if strange or {"predictions", "answers"} <= columns.keys():
        raise Mismatch("pool.columns", ", ".join(sorted(columns)), ", ".join(sorted(COLUMNS)))
    for name in ("predictions", "answers", "surrogates"):
        if name in columns and columns[name].shape != shape:
            raise Mismatch(f"pool.columns.{name}", str(columns[name].shape), str(shape))
    surrogates = columns.get("surrogates")
    if (
        surrogates is not None
        and ((surrogates < pool.scale.lower) | (surrogates > pool.scale.upper)).any()
    ):
        raise Mismatch("pool.columns.surrogates", "one beside it", "numbers on the scale")
    if "predictions" in columns and pool.scale.kind != "zero_one":
        raise Mismatch("pool.columns", "predictions", "none where the loss is not zero_one")


def check_best_labels(pool: Pool, lineup: Lineup, transcript: Transcript) -> None:
    """The losses are those that answers so given can have, and that follow from a label."""
    candidates = candidates_of(pool)
    for at, losses in transcript.losses.items():
        item = transcript.draws[losses.round - 1].item
        said = transcript.words.get(at)
        where = f"ledger[{at}].losses"
        try:
            if said is not None:
                expected = losses_said(pool, lineup, item, said, None)
                same(where, list(losses.losses), list(expected))
            unit = (np.array(losses.losses) - pool.scale.lower) / pool.scale.width
            candidates.check(item, unit)
        except Refusal as refusal:
            raise Mismatch(where, str(losses.losses), refusal.rule) from refusal

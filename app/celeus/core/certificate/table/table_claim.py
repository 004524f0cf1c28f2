"""The claims of a session about a table, and what its account of alpha promises of them.

Every claim has an interval at its own level. What holds of all of them, and of those somebody picks
after looking, follows from the account alone (docs/evidence/method.md#19-the-account-of-alpha): it
is said in words, and under ``selected`` in the intervals to show where several are picked.
"""

from typing import Any

from celeus.core.interval import Interval
from celeus.core.session.assumptions import assumptions_of
from celeus.core.session.session import Session
from celeus.core.session.table.table_claims import ClaimState
from celeus.core.session.table.table_question import Table


def table_claim(session: Session[Table]) -> dict[str, Any]:
    """The claims after the events of ``session``."""
    question, plan = session.question, session.question.plan
    claim: dict[str, Any] = {
        "target": "pool",
        "alpha": plan.alpha,
        "account": plan.account,
        "promises": question.promises._asdict(),
        "budget": session.stopping.budget,
        "changes": session.changes,
        "claims": _claims(session),
        "labels": session.folded,
        "rounds": session.counts,
        "stop_reason": session.stop_reason,
        "assumptions": assumptions_of(session),
    }
    if plan.reserve:
        claim["reserve"] = question.reserve
    return claim


def _claims(session: Session[Table]) -> list[dict[str, Any]]:
    """Every claim in the order of the plan's, behind them those added later."""
    question = session.question
    selected = question.plan.account == "selected"
    picked = question.pickings(session.rounds) if selected else []
    documents = []
    for at, one in enumerate(question.claims):
        document: dict[str, Any] = {
            "metric": one.claim.metric,
            "column": one.claim.column,
            "value": one.claim.value,
            "items": one.claim.items,
            "whole": one.claim.whole,
            "level": one.claim.level,
            "precision": one.claim.precision,
            "lower": one.interval.lower,
            "upper": one.interval.upper,
            "estimate": one.estimate,
            "labels": one.fold.rounds,
            "emptied": one.fold.emptied,
            "met": question.met_at.get(at),
            "answers": [decision.to_dict() for decision in question.decisions(at)],
            "score": score_values(one, question, one.interval, one.estimate),
        }
        if (after := question.after(at)) is not None:
            document["added"] = after
        if picked:
            document["picked"] = [
                {"claims": count, "level": level, "lower": its.lower, "upper": its.upper}
                for count, level, its in picked[at]
            ]
        documents.append(document)
    return documents


def score_values(
    claim: ClaimState, question: Table, interval: Interval, estimate: float
) -> dict[str, Any]:
    """The estimate and interval of a claim on its metric's score."""
    metric = question.plan.metrics[claim.metric]
    return metric.measured.values(interval, estimate, claim.plan.scale)

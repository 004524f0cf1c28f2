"""The claims of a session about a table, and what its account of alpha promises of them.

Every claim has an interval at its own level. What holds of all of them, and of those somebody picks
after looking, follows from the account alone (docs/evidence/method.md#19-the-account-of-alpha): it
is said in words, and under ``selected`` in the intervals to show where several are picked.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from celeus.core.interval import Interval
from celeus.core.plans.table_plan import TableClaim, TablePlan
from celeus.core.session.session import Session
from celeus.core.session.table.table_claims import ClaimState
from celeus.core.session.table.table_question import Table

ASSUMPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "known_losses": "What is stated of losses that nobody judges is true.",
        "unforeseen_draws": (
            "The budget was changed while the session ran: whoever changed it could not foresee its"
            " draws."
        ),
        "later_claims": (
            "Claims were added while the session ran: whoever added them could not foresee its"
            " draws."
        ),
    }
)
"""What the claims may rest on beside the draws."""


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
        "assumptions": table_assumptions(
            plan,
            changed=session.changes > 0,
            added=zip(question.added, question.added_after, strict=True),
        ),
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


def table_assumptions(
    plan: TablePlan, *, changed: bool, added: Iterable[tuple[TableClaim, int]]
) -> list[dict[str, str]]:
    """The assumptions of the claims, as ``{code, text}``; empty when on nothing but the draws.

    ``added`` are the claims added later, each with the labels that there were.
    """
    known = [claim for claim in plan.claims[: len(plan.metrics)] if claim.known]
    later = "; ".join(
        f"{one.name} (at level {one.level:g}, after {at} label{'' if at == 1 else 's'})"
        for one, at in added
    )
    codes = {"known_losses": known, "unforeseen_draws": changed, "later_claims": later}
    counts = ", ".join(f"{claim.metric} ({claim.known})" for claim in known)
    own = {
        "known_losses": f" Losses of {counts} of {plan.items} items were known before the first"
        " draw.",
        "later_claims": f" They are {later}.",
    }
    return [
        {"code": code, "text": ASSUMPTIONS[code] + own.get(code, "")}
        for code, rests in codes.items()
        if rests
    ]

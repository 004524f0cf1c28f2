"""The claim of a session that seeks the best of several systems: none beats the best of those in.

A given best system is among those that are in with probability 1 - alpha, at all rounds at once.
Of several best ones another may be out. Nothing else is claimed: no interval, and nothing of the
order of the others.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from celeus.core.plans.best_plan import BestPlan
from celeus.core.session.best.best_question import Best
from celeus.core.session.session import Session

ASSUMPTIONS: Mapping[str, str] = MappingProxyType(
    {"same_answers": "Systems that gave the same answer to an item have the same loss there."}
)
"""What the claim may rest on beside the draws."""


def best_claim(session: Session[Best]) -> dict[str, Any]:
    """The claim after the events of ``session``."""
    question, plan = session.question, session.question.plan
    return {
        "target": "pool",
        "alpha": plan.alpha,
        "budget": session.stopping.budget,
        "fixed": plan.fixed,
        "changes": session.changes,
        "best": {
            "winner": question.winner,
            "standing": question.names_standing,
            "systems": [
                {"name": one.name, "out": one.state == "out", "round": one.round}
                for one in question.systems
            ],
        },
        "labels": session.folded,
        "rounds": session.counts,
        "stop_reason": session.stop_reason,
        "assumptions": best_assumptions(plan, answered=question.candidates.answer is not None),
    }


def best_assumptions(plan: BestPlan, *, answered: bool) -> list[dict[str, str]]:
    """The assumptions, as ``{code, text}``; ``answered``: the pool holds the answers."""
    if not answered:
        return []
    text = ASSUMPTIONS["same_answers"]
    if plan.known:
        text += (
            f" To {plan.known} of {plan.items} items all gave the same: these were known before"
            " the first draw."
        )
    return [{"code": "same_answers", "text": text}]

"""The claim of a session that seeks the best of several systems: none beats the best of those in.

A given best system is among those that are in with probability 1 - alpha, at all rounds at once.
Of several best ones another may be out. Nothing else is claimed: no interval, and nothing of the
order of the others.
"""

from typing import Any

from celeus.core.session.assumptions import assumptions_of
from celeus.core.session.best.best_question import Best
from celeus.core.session.session import Session


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
        "assumptions": assumptions_of(session),
    }

"""The claim of a session that seeks the best of several systems: which may be best, and how sure.

A given best system is among those that are in with probability 1 - alpha, at all rounds at once.
Nothing else is claimed: no interval, and nothing of the order of the others.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from celeus.core.plans.best import BestPlan
from celeus.core.session.best.state import BestState

ASSUMPTIONS: Mapping[str, str] = MappingProxyType(
    {"same_answers": "Systems that gave the same answer to an item have the same loss there."}
)
"""What the claim may rest on beside the draws."""


def best_claim(state: BestState) -> dict[str, Any]:
    """What is claimed after the events of ``state``."""
    plan = state.plan
    return {
        "target": "pool",
        "alpha": plan.alpha,
        "budget": state.stopping.budget,
        "fixed": plan.fixed,
        "changes": state.changes,
        "best": {
            "winner": state.winner,
            "standing": state.standing,
            "systems": [
                {"name": one.name, "out": one.state == "out", "round": one.round}
                for one in state.systems
            ],
        },
        "labels": state.folded,
        "rounds": state.counts,
        "stop_reason": state.stop_reason,
        "assumptions": best_assumptions(plan, answered=state.session.contenders.answer is not None),
    }


def best_assumptions(plan: BestPlan, *, answered: bool) -> list[dict[str, str]]:
    """What the claim rests on, as ``{code, text}``; ``answered``: the pool holds the answers."""
    if not answered:
        return []
    text = ASSUMPTIONS["same_answers"]
    if plan.known:
        text += (
            f" To {plan.known} of {plan.items} items all gave the same: these were known before"
            " the first draw."
        )
    return [{"code": "same_answers", "text": text}]

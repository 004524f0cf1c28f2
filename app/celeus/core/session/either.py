"""Sessions of any kind: of one risk, of the best of k systems, and of a table of many claims.

What all can be asked is asked here; a state of another kind than the first answers for itself.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from celeus.core.ledger import Draw, Event
from celeus.core.pause import pause
from celeus.core.plans.best import BestPlan
from celeus.core.plans.plan import Plan, plan_from
from celeus.core.plans.table import TablePlan
from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import scores
from celeus.core.session import correction, state
from celeus.core.session.best.state import BestState
from celeus.core.session.correction import Checkpoints
from celeus.core.session.mean import State
from celeus.core.session.table.state import TableState

AnyPlan = Plan | BestPlan | TablePlan
AnyState = State | BestState | TableState


def any_plan_from(values: Mapping[str, Any]) -> AnyPlan:
    """The plan whose ``to_dict`` gave ``values``."""
    if "table" in values:
        return TablePlan.from_dict(values)
    return BestPlan.from_dict(dict(values)) if "best" in values else plan_from(dict(values))


def begin(plan: AnyPlan, pool: Pool, seed: bytes) -> AnyState:
    """The state of a session before its first draw."""
    if isinstance(plan, BestPlan):
        return BestState.of(plan, pool, seed)
    if isinstance(plan, TablePlan):
        return TableState.of(plan, pool, seed)
    return state.begin(plan, scores(pool, plan.strategy), seed)


def can_draw(plan: AnyPlan, now: AnyState) -> bool:
    """Pool and budget leave something to draw."""
    return state.can_draw(risk_plan(plan), now) if isinstance(now, State) else now.can_draw


def propose(plan: AnyPlan, now: AnyState) -> Draw:
    """The next draw. Changes nothing; asking again gives the same."""
    pause()
    return state.propose(risk_plan(plan), now) if isinstance(now, State) else now.propose()


def arrangement(now: AnyState, round_: int, item: int) -> dict[str, str]:
    """How the answers of a round stand before its judge, as the ledger says it of its draw.

    Of two systems who is on the ``left``, of several the ``order``; empty where neither is shown.
    """
    if not isinstance(now, State):
        return now.arrangement(round_, item)
    return {} if now.sides is None else {"left": now.sides.left(round_)}


def apply(plan: AnyPlan, now: AnyState, event: Event) -> AnyState:
    """The state after the next event of the ledger, which is no correction."""
    pause()
    if isinstance(now, State):
        return state.apply(risk_plan(plan), now, event)
    now.apply(event)
    return now


def catch_up(
    plan: AnyPlan, now: AnyState, events: Sequence[Event], checkpoints: Checkpoints
) -> AnyState:
    """The state after events that others wrote; the same as replaying them."""
    if isinstance(now, State):
        return correction.catch_up(risk_plan(plan), now, events, checkpoints)
    for event in events:
        now.apply(event)
    return now


def rounds_to_fold(now: AnyState, judged: Collection[int]) -> int:
    """Rounds to fold once the rounds ``judged`` are judged."""
    if isinstance(now, State):
        return state.rounds_to_fold(now, judged)
    return now.rounds_to_fold(judged)


def replays_soon(now: AnyState, judged: Collection[int]) -> bool:
    """Whether judging these rounds is likely to have all rounds so far bet on again."""
    return isinstance(now, State) and state.replays_soon(now, judged)


def bets_per_round(now: AnyState) -> int:
    """Bets that folding the next round may place: about 50 ns each."""
    return state.bets_per_round(now) if isinstance(now, State) else now.bets_per_round


def risk_plan(plan: AnyPlan) -> Plan:
    """The plan, which is that of a session that measures a risk."""
    if not isinstance(plan, Plan):
        message = "the plan of a session that measures a risk"
        raise TypeError(message)
    return plan


def risk_state(now: AnyState) -> State:
    """The state, which is that of a session that measures a risk."""
    if not isinstance(now, State):
        message = "the state of a session that measures a risk"
        raise TypeError(message)
    return now

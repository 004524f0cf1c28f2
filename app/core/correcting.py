"""A correction folds a session anew; most of that can be done before the correction is certain.

The fold depends on the draws and their losses in order, and on nothing else of the state. What is
folded beside the state may therefore take its fold's place later, if the losses are the same then;
rounds that were judged meanwhile are folded on top.
"""

from dataclasses import dataclass

from app.core.folding import Fold, Outcome, fold_round
from app.core.ledger import Amendment
from app.core.plan import Plan
from app.core.session import Round, State, enter, fold_ready


@dataclass(frozen=True, slots=True)
class Refold:
    """A fold, and the losses that went into it, round by round."""

    fold: Fold
    losses: list[object]


def refold(plan: Plan, state: State, event: Amendment) -> Refold:
    """The rounds folded so far, folded as the correction will have them. Changes nothing."""
    rounds = state.rounds[: state.folded]
    losses = [event.loss if at == event.round else one.loss for at, one in enumerate(rounds, 1)]
    fold = state.opening.fold()
    for one, loss in zip(rounds, losses, strict=True):
        if not (loss is None or isinstance(loss, float)):
            message = "a folded round has a loss, or None where nobody could tell"
            raise TypeError(message)
        outcome = Outcome(one.draw, loss, one.rule.precision, one.rule.budget)
        fold = fold_round(plan, fold, outcome)
    return Refold(fold, list(losses))


def corrected(plan: Plan, state: State, event: Amendment, ready: Refold | None) -> State:
    """The state after a correction; folds anew only what ``ready`` does not hold."""
    state = enter(state, event)
    if state.stale and ready is not None and _same(state.rounds, ready.losses):
        state.fold = ready.fold
        state.stale = False
    return fold_ready(plan, state)


def _same(rounds: list[Round], losses: list[object]) -> bool:
    return [one.loss for one in rounds[: len(losses)]] == losses

"""Correction: the fold of a session anew, most of it while the session goes on.

The fold depends on the draws and their losses in order, and on nothing else of the state. What is
folded beside the state may therefore take its fold's place later, if draws and losses are the same
then; rounds that were judged meanwhile are folded on top.
"""

from celeus.core.ledger import Amendment
from celeus.core.plans.plan import Plan
from celeus.core.sessions.engine import Engine
from celeus.core.sessions.fold import fold_round
from celeus.core.sessions.rounds import Rounds
from celeus.core.sessions.state import State, enter, fold_ready


class Refold:
    """A fold beside a state, as it will be after the correction ``event``."""

    __slots__ = ("_engine", "_event", "_parts", "fold")

    def __init__(self, engine: Engine, event: Amendment) -> None:
        self._engine = engine
        self._event = event
        self._parts: list[Rounds] = []
        self.fold = engine.fold()

    @property
    def folded(self) -> int:
        """Rounds folded so far."""
        return self.fold.rounds

    def follow(self, plan: Plan, part: Rounds) -> None:
        """Fold the next rounds, all judged: a copy of the state's. Touches no state."""
        for place in range(len(part)):
            outcome = part.outcome(place)
            if outcome.draw.round == self._event.round:
                outcome = outcome._replace(loss=self._event.loss)
            self.fold = fold_round(plan, self.fold, outcome)
        self._parts.append(part)

    def fits(self, state: State) -> bool:
        """The rounds folded here are those of ``state``; called before its correction is applied.

        The fold reads the proposal of its opening, which knows the draws of that state alone.
        """
        return state.engine is self._engine and all(map(state.rounds.hold, self._parts))


def corrected(plan: Plan, state: State, event: Amendment, ready: Refold | None) -> State:
    """The state after a correction; folds anew only what ``ready`` does not hold."""
    fitting = ready if ready is not None and ready.fits(state) else None
    state = enter(state, event)
    if state.stale and fitting is not None:
        state.fold = fitting.fold
        state.stale = False
    return fold_ready(plan, state)

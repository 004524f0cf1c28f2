"""Correction: the fold of a session anew, most of it while the session goes on.

The fold depends on the draws and their losses in order, and on nothing else of the state. What is
folded beside the state, after a correction or with judgements to come, may therefore take its
fold's place later, if nothing was corrected meanwhile; rounds that were judged since are folded on
top. For the same reason a correction leaves the rounds before it as they were: it begins at the
last copy of the fold that does not hold it.
"""

import copy
from collections.abc import Mapping, Sequence

from celeus.core.ledger import Amendment, Event
from celeus.core.plans.plan import Plan
from celeus.core.session.engine import Engine
from celeus.core.session.fold import Fold, RoundOutcome, fold_round
from celeus.core.session.mean import State, enter, fold_ready
from celeus.core.session.points import Points
from celeus.core.session.rounds import Rounds

ROUNDS_BETWEEN_COPIES = 1_000
MOST_COPIES = 32


class Checkpoints:
    """Copies of a fold at some of its rounds, at least ROUNDS_BETWEEN_COPIES apart.

    Of more than MOST_COPIES every second one is dropped, but for the last. A copy holds no points:
    they are those of the fold it was taken of, as long as no earlier round is corrected.
    """

    __slots__ = ("_start", "copies")

    def __init__(self, start: int = 0) -> None:
        """For a fold that has ``start`` rounds already."""
        self._start = start
        self.copies: list[tuple[int, Fold]] = []

    @property
    def rounds(self) -> list[int]:
        """How many rounds each of the copies holds."""
        return [rounds for rounds, _ in self.copies]

    def note(self, engine: Engine, fold: Fold) -> None:
        """Copy a fold that has gone on for long enough since the last copy."""
        last = self.copies[-1][0] if self.copies else self._start
        if fold.rounds >= last + ROUNDS_BETWEEN_COPIES:
            self._keep([(fold.rounds, _copied(engine, fold, Points()))])

    def join(self, later: "Checkpoints") -> None:
        """Take over the copies of a fold that went on from one of these."""
        self._keep(later.copies)

    def forget(self, round_: int) -> None:
        """Drop the copies that hold this round, which is corrected."""
        self.copies = [one for one in self.copies if one[0] < round_]

    def before(self, state: State, round_: int) -> Fold:
        """A fold of the first rounds of ``state``, as many as a copy holds without this one."""
        for rounds, fold in reversed(self.copies):
            if rounds < round_:
                return _copied(state.engine, fold, state.points[:rounds])
        return state.engine.fold()

    def _keep(self, copies: list[tuple[int, Fold]]) -> None:
        self.copies += copies
        while len(self.copies) > MOST_COPIES:
            del self.copies[:-1:2]


def _copied(engine: Engine, fold: Fold, points: Points) -> Fold:
    """A copy of the fold with other points; what never changes belongs to the engine."""
    shared = (getattr(engine, name) for name in getattr(engine, "__slots__", ()))
    memo: dict[int, object] = {id(part): part for part in shared}
    return copy.deepcopy(fold, memo | {id(fold.points): points})


class Refold:
    """A fold beside a state, as it will be after the correction ``event``.

    Making one copies what comes before the correction: a thread's work, like folding.
    """

    __slots__ = ("_corrections", "_engine", "_event", "checkpoints", "fold")

    def __init__(self, state: State, event: Amendment, checkpoints: Checkpoints) -> None:
        self._engine = state.engine
        self._corrections = state.corrections
        self._event = event
        self.fold = checkpoints.before(state, event.round)
        self.checkpoints = Checkpoints(self.fold.rounds)

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
            self.checkpoints.note(self._engine, self.fold)

    def fits(self, state: State) -> bool:
        """The rounds folded here are those of ``state``; called before its correction is applied.

        Only a correction changes a round that was folded. The engine tells one state of a session
        from another that was rebuilt.
        """
        return state.engine is self._engine and state.corrections == self._corrections


class Ahead:
    """A fold beside a state, as it will be with the losses of rounds still out.

    Making one copies the fold: a thread's work, like folding.
    """

    __slots__ = ("_corrections", "_engine", "_outcomes", "_start", "fold")

    def __init__(self, state: State, losses: Mapping[int, float | None]) -> None:
        self._engine = state.engine
        self._corrections = state.corrections
        self._start = state.folded
        self._outcomes = _coming(state, losses)
        self.fold = _copied(state.engine, state.fold, state.points[:])

    def follow(self, plan: Plan) -> None:
        """Fold the rounds that are ready with these losses. Touches no state."""
        for outcome in self._outcomes:
            self.fold = fold_round(plan, self.fold, outcome)

    def fits(self, state: State, losses: Mapping[int, float | None]) -> bool:
        """The rounds folded here are the next ones of ``state``, and these are their losses."""
        if (state.engine, state.corrections, state.folded) != (
            self._engine,
            self._corrections,
            self._start,
        ):
            return False
        known = [one.loss for one in self._outcomes]
        return known == [one.loss for one in _coming(state, losses)[: len(known)]]

    def enter(self, plan: Plan, state: State, event: Event) -> State:
        """The state after a judgement, folded once all that were folded here are entered."""
        state = enter(state, event)
        if state.rounds.ready < self.fold.rounds:
            return state
        state.fold = self.fold
        return fold_ready(plan, state)


def _coming(state: State, losses: Mapping[int, float | None]) -> list[RoundOutcome]:
    """The rounds after the folded ones, up to the first without a loss."""
    found: list[RoundOutcome] = []
    for place in range(state.folded, len(state.rounds)):
        outcome = state.rounds.outcome(place)
        if not state.rounds.is_judged(place):
            if place + 1 not in losses:
                break
            outcome = outcome._replace(loss=losses[place + 1])
        found.append(outcome)
    return found


def correct(
    plan: Plan, state: State, event: Amendment, ready: Refold | None, checkpoints: Checkpoints
) -> State:
    """The state after a correction; folds anew only what neither ``ready`` nor a copy holds."""
    fitting = ready if ready is not None and ready.fits(state) else None
    state = enter(state, event)
    if state.stale:
        checkpoints.forget(event.round)
        state.fold = checkpoints.before(state, event.round) if fitting is None else fitting.fold
        state.stale = False
        if fitting is not None:
            checkpoints.join(fitting.checkpoints)
    return _folded(plan, state, checkpoints)


def catch_up(plan: Plan, state: State, events: Sequence[Event], checkpoints: Checkpoints) -> State:
    """The state after events that others wrote; the same as replaying them."""
    for event in events:
        state = enter(state, event)
    first = min((event.round for event in events if isinstance(event, Amendment)), default=None)
    if first is not None and state.stale:
        checkpoints.forget(first)
        state.fold = checkpoints.before(state, first)
        state.stale = False
    return _folded(plan, state, checkpoints)


def _folded(plan: Plan, state: State, checkpoints: Checkpoints) -> State:
    """Every round that is ready is folded, with copies on the way."""
    before = -1
    while state.folded != before:
        before = state.folded
        state = fold_ready(plan, state, ROUNDS_BETWEEN_COPIES)
        checkpoints.note(state.engine, state.fold)
    return state

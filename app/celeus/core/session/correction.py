"""Correction: the fold of a session anew, most of it while the session goes on.

The fold depends on the draws and their losses in order, and on nothing else of the state. What is
folded beside the state, after a correction or with judgements to come, may therefore take its
fold's place later, if nothing was corrected meanwhile; rounds that were judged since are folded on
top. For the same reason a correction leaves the rounds before it as they were: it begins at the
last copy of the fold that does not hold it.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from celeus.core.ledger import Amendment, Event
from celeus.core.session.engine import Engine, copied_fold
from celeus.core.session.fold import Fold, RoundOutcome, fold_round
from celeus.core.session.mean import Mean
from celeus.core.session.points import Points
from celeus.core.session.rounds import Rounds
from celeus.core.session.session import AnySession, Session

S = TypeVar("S", bound=AnySession)
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
            self._keep([(fold.rounds, copied_fold(engine, fold, Points()))])

    def join(self, later: "Checkpoints") -> None:
        """Take over the copies of a fold that went on from one of these."""
        self._keep(later.copies)

    def forget(self, round_: int) -> None:
        """Drop the copies that hold this round, which is corrected."""
        self.copies = [one for one in self.copies if one[0] < round_]

    def before(self, session: Session[Mean], round_: int) -> Fold:
        """A fold of the first rounds of ``session``, as many as a copy holds without this one."""
        engine = session.question.engine
        for rounds, fold in reversed(self.copies):
            if rounds < round_:
                return copied_fold(engine, fold, session.question.points[:rounds])
        return engine.fold()

    def _keep(self, copies: list[tuple[int, Fold]]) -> None:
        self.copies += copies
        while len(self.copies) > MOST_COPIES:
            del self.copies[:-1:2]


class Refold:
    """A fold beside a session, as it will be after the correction ``event``.

    Making one copies what comes before the correction: a thread's work, like folding.
    """

    __slots__ = ("_corrections", "_engine", "_event", "_plan", "checkpoints", "fold")

    def __init__(self, session: Session[Mean], event: Amendment, checkpoints: Checkpoints) -> None:
        self._engine = session.question.engine
        self._corrections = session.corrections
        self._event = event
        self._plan = session.question.plan
        self.fold = checkpoints.before(session, event.round)
        self.checkpoints = Checkpoints(self.fold.rounds)

    @property
    def folded(self) -> int:
        """Rounds folded so far."""
        return self.fold.rounds

    def follow(self, part: Rounds) -> None:
        """Fold the next rounds, all judged: a copy of the session's. Does not touch the session."""
        for place in range(len(part)):
            outcome = part.outcome(place)
            if outcome.draw.round == self._event.round:
                outcome = outcome._replace(loss=self._event.loss)
            self.fold = fold_round(self._plan, self.fold, outcome)
            self.checkpoints.note(self._engine, self.fold)

    def fits(self, session: Session[Mean]) -> bool:
        """The rounds folded here are those of ``session``; called before its correction is applied.

        Only a correction changes a round that was folded. The engine tells a session from
        itself rebuilt.
        """
        engine = session.question.engine
        return engine is self._engine and session.corrections == self._corrections


class Ahead:
    """A fold beside a session, as it will be with the losses of rounds still out.

    Making one copies the fold: a thread's work, like folding.
    """

    __slots__ = ("_corrections", "_engine", "_outcomes", "_plan", "_start", "fold")

    def __init__(self, session: Session[Mean], losses: Mapping[int, float | None]) -> None:
        question = session.question
        self._engine = question.engine
        self._corrections = session.corrections
        self._plan = question.plan
        self._start = session.folded
        self._outcomes = _coming(session, losses)
        self.fold = copied_fold(question.engine, question.fold, question.points[:])

    def follow(self) -> None:
        """Fold the rounds that are ready with these losses. Does not touch the session."""
        for outcome in self._outcomes:
            self.fold = fold_round(self._plan, self.fold, outcome)

    def fits(self, session: Session[Mean], losses: Mapping[int, float | None]) -> bool:
        """The rounds folded here are the next ones of ``session``, and these are their losses."""
        now = session.question.engine, session.corrections, session.folded
        if now != (self._engine, self._corrections, self._start):
            return False
        known = [outcome.loss for outcome in self._outcomes]
        coming = _coming(session, losses)[: len(known)]
        return known == [outcome.loss for outcome in coming]

    def enter(self, session: Session[Mean], event: Event) -> None:
        """Enter a judgement; once all that were folded here are entered, take this fold over.

        Not if they arrived in another order than here.
        """
        session.enter(event)
        if session.rounds.ready >= self.fold.rounds:
            if all(
                session.rounds.timing(one.draw.round - 1) == one.timing for one in self._outcomes
            ):
                session.question.fold = self.fold
            session.fold()


def _coming(session: Session[Mean], losses: Mapping[int, float | None]) -> list[RoundOutcome]:
    """The rounds after the folded ones, up to the first without a loss.

    Judgements still to come are taken to arrive in the order of ``losses``.
    """
    found: list[RoundOutcome] = []
    coming = (round_ for round_ in losses if not session.rounds.is_judged(round_ - 1))
    arrival = {round_: place for place, round_ in enumerate(coming, session.observed + 1)}
    for place in range(session.folded, session.drawn):
        outcome = session.rounds.outcome(place)
        if not session.rounds.is_judged(place):
            if place + 1 not in losses:
                break
            timing = outcome.timing._replace(arrival=arrival[place + 1])
            outcome = outcome._replace(loss=losses[place + 1], timing=timing)
        found.append(outcome)
    return found


def correct(
    session: Session[Mean], event: Amendment, ready: Refold | None, checkpoints: Checkpoints
) -> Session[Mean]:
    """Correct a judgement; folds anew only what neither ``ready`` nor a copy holds."""
    fitting = ready if ready is not None and ready.fits(session) else None
    session.enter(event)
    if session.stale:
        _return_to(session, event.round, None if fitting is None else fitting.fold, checkpoints)
        if fitting is not None:
            checkpoints.join(fitting.checkpoints)
    return _fold(session, checkpoints)


def advance(
    session: AnySession,
    event: Event,
    checkpoints: Checkpoints,
    ready: "Refold | Ahead | None" = None,
) -> None:
    """Enter the next event and fold what is ready; ``ready`` holds a fold made before."""
    mean = mean_session(session)
    if mean is None:
        session.apply(event)
        return
    if isinstance(event, Amendment):
        correct(mean, event, ready if isinstance(ready, Refold) else None, checkpoints)
        return
    if isinstance(ready, Ahead):
        ready.enter(mean, event)
    else:
        mean.apply(event)
    checkpoints.note(mean.question.engine, mean.question.fold)


def catch_up(session: S, events: Sequence[Event], checkpoints: Checkpoints) -> S:
    """Enter events that others wrote and fold them; the same as replaying them."""
    for event in events:
        session.enter(event)
    mean = mean_session(session)
    if mean is None:
        session.fold()
        return session
    first = min((event.round for event in events if isinstance(event, Amendment)), default=None)
    if first is not None and mean.stale:
        _return_to(mean, first, None, checkpoints)
    _fold(mean, checkpoints)
    return session


def mean_session(session: AnySession) -> Session[Mean] | None:
    """The session itself where it measures one mean, whose judgements can be corrected."""
    return session if isinstance(session.question, Mean) else None


def _return_to(
    session: Session[Mean], round_: int, fold: Fold | None, checkpoints: Checkpoints
) -> None:
    """Go back to a fold without ``round_``: the one given, or the last copy."""
    checkpoints.forget(round_)
    session.question.fold = checkpoints.before(session, round_) if fold is None else fold
    session.stale = False


def _fold(session: Session[Mean], checkpoints: Checkpoints) -> Session[Mean]:
    """Fold every round that is ready, with copies on the way."""
    before = -1
    while session.folded != before:
        before = session.folded
        session.fold(ROUNDS_BETWEEN_COPIES)
        checkpoints.note(session.question.engine, session.question.fold)
    return session

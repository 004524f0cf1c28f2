"""Correction: the fold of a session anew, most of it while the session goes on.

The fold depends on the draws and judgements in the order of the ledger, with the losses as they are
now, and on nothing else of the state. What is folded beside the state after a correction may
therefore take its fold's place later, if nothing was corrected meanwhile; what came since is taken
in on top. For the same reason a correction leaves what was known before the judgement that it
corrects as it was: it begins at the last copy of the fold that does not hold it.

How a drawn round is folded depends on what was fixed at its draw and on the losses of the rounds up
to it. So rounds may be folded beside the state with judgements to come, whatever is drawn or judged
meanwhile.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TypeVar

from celeus.core.ledger import Amendment, Event
from celeus.core.session.engine import Engine, copied_fold
from celeus.core.session.fold import Fold, OpenRound
from celeus.core.session.mean import Mean
from celeus.core.session.points import Points
from celeus.core.session.rounds import Rounds
from celeus.core.session.session import AnySession, Session

S = TypeVar("S", bound=AnySession)
ROUNDS_BETWEEN_COPIES = 1_000
MOST_COPIES = 32
ITEMS_IN_COPIES, LEAST_COPIES = 1_000_000, 4
"""Items, in all copies, of a fold that keeps the past of each; and copies kept however many."""


class Checkpoints:
    """Copies of a fold at some of its rounds, at least ROUNDS_BETWEEN_COPIES apart.

    Of more than MOST_COPIES every second one is dropped, but for the last; with repeats, where each
    copy holds the past of every item, of fewer in a large pool. A copy holds no points: they are
    those of the fold it was taken of, as long as no earlier round is corrected.
    """

    __slots__ = ("_most", "_start", "copies")

    def __init__(self, start: int = 0) -> None:
        """For a fold that has ``start`` rounds already."""
        self._start = start
        self._most = MOST_COPIES
        self.copies: list[tuple[int, Fold]] = []

    @property
    def rounds(self) -> list[int]:
        """The number of rounds in each of the copies."""
        return [rounds for rounds, _ in self.copies]

    def note(self, engine: Engine, fold: Fold) -> None:
        """Copy a fold that has gone on for long enough since the last copy."""
        last = self.copies[-1][0] if self.copies else self._start
        if fold.rounds >= last + ROUNDS_BETWEEN_COPIES:
            if engine.plan.repeats:
                fitting = max(ITEMS_IN_COPIES // engine.plan.items, LEAST_COPIES)
                self._most = min(fitting, MOST_COPIES)
            self._keep([(fold.rounds, copied_fold(engine, fold, Points()))])

    def join(self, later: "Checkpoints") -> None:
        """Take over the copies of a fold that went on from one of these."""
        self._keep(later.copies)

    def forget(self, rounds: Rounds, round_: int) -> None:
        """Drop the copies that hold the judgement of this round, which is corrected."""
        entry = rounds.entry_of(round_)
        self.copies = [copy for copy in self.copies if copy[1].knowledge.entries <= entry]

    def rounds_before(self, rounds: Rounds, round_: int) -> int:
        """Rounds folded in the last copy without the judgement of this one."""
        entry = rounds.entry_of(round_)
        return max((n for n, fold in self.copies if fold.knowledge.entries <= entry), default=0)

    def before(self, session: Session[Mean], round_: int) -> Fold:
        """A fold of ``session`` from the last copy without the judgement of this round."""
        engine, entry = session.question.engine, session.rounds.entry_of(round_)
        for rounds, fold in reversed(self.copies):
            if fold.knowledge.entries <= entry:
                return copied_fold(engine, fold, session.question.points[:rounds])
        return engine.fold()

    def _keep(self, copies: list[tuple[int, Fold]]) -> None:
        self.copies += copies
        while len(self.copies) > self._most:
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

    def coming(self, session: Session[Mean], most: int) -> Rounds:
        """A copy of the next draws and judgements of ``session``, at most ``most``, to follow."""
        entries = self.fold.knowledge.entries
        return session.rounds.excerpt(self.folded + 1, slice(entries, entries + most))

    def follow(self, part: Rounds) -> None:
        """Take in the ``coming`` draws and judgements. Does not touch the session."""
        place = self._event.round - part.first
        if 0 <= place < len(part):
            part.correct(place, self._event.loss)
        self.fold.follow(self._plan, part, start=self.fold.knowledge.entries)
        self.checkpoints.note(self._engine, self.fold)

    def fits(self, session: Session[Mean]) -> bool:
        """Return whether ``session`` has folded the same; called before its correction is applied.

        Only a correction changes what was folded. A session that was rebuilt has another engine.
        """
        engine = session.question.engine
        return engine is self._engine and session.corrections == self._corrections


class FoldAhead:
    """A fold beside a session, as it will be with the losses of rounds still out.

    Making one copies the fold: a thread's work, like folding.
    """

    __slots__ = ("_coming", "_corrections", "_engine", "_plan", "_start", "fold")

    def __init__(self, session: Session[Mean], losses: Mapping[int, float | None]) -> None:
        question = session.question
        self._engine = question.engine
        self._corrections = session.corrections
        self._plan = question.plan
        self._start = session.folded
        self._coming = _coming(session, losses)
        # What is known at draws goes on with the session; bets on drawn rounds do not use it
        known = question.fold.knowledge
        self.fold = copied_fold(question.engine, question.fold, question.points[:], known)

    def follow(self) -> None:
        """Fold the rounds that are ready with these losses. Does not touch the session."""
        for coming, loss in self._coming:
            self.fold.fold_round(self._plan, coming, loss)

    def fits(self, session: Session[Mean], losses: Mapping[int, float | None]) -> bool:
        """The rounds folded here are the next ones of ``session``, and these are their losses."""
        now = session.question.engine, session.corrections, session.folded
        if now != (self._engine, self._corrections, self._start):
            return False
        known = [loss for _, loss in self._coming]
        return known == [loss for _, loss in _coming(session, losses)][: len(known)]

    def enter(self, session: Session[Mean], event: Event) -> None:
        """Enter a judgement; once all that were folded here are entered, take this fold over."""
        session.enter(event)
        if session.rounds.ready >= self.fold.rounds:
            session.question.fold = self.fold
            session.fold()


def _coming(
    session: Session[Mean], losses: Mapping[int, float | None]
) -> list[tuple[OpenRound, float | None]]:
    """The rounds after the folded ones with their losses, up to the first without one."""
    known = session.question.fold.knowledge
    losses = {**losses, **known.losses}
    return [
        (coming, losses[round_])
        for round_, coming in takewhile(lambda entry: entry[0] in losses, known.open.items())
    ]


def correct(
    session: Session[Mean], event: Amendment, ready: Refold | None, checkpoints: Checkpoints
) -> Session[Mean]:
    """Correct a judgement; folds anew only what neither ``ready`` nor a copy holds."""
    fitting = ready if ready is not None and ready.fits(session) else None
    session.enter(event)
    if session.stale:
        _return_to(session, event.round, None if fitting is None else fitting.fold, checkpoints)
        if fitting is not None:
            # They were folded before the correction had its place in the ledger
            for fold in (fitting.fold, *(copy for _, copy in fitting.checkpoints.copies)):
                known = fold.knowledge
                known.corrected = min(known.corrected, session.sequence)
            checkpoints.join(fitting.checkpoints)
    return _fold(session, checkpoints)


def advance(
    session: AnySession,
    event: Event,
    checkpoints: Checkpoints,
    ready: "Refold | FoldAhead | None" = None,
) -> None:
    """Enter the next event and fold what is ready; ``ready`` holds a fold made before."""
    mean = mean_session(session)
    if mean is None:
        session.apply(event)
        return
    if isinstance(event, Amendment):
        correct(mean, event, ready if isinstance(ready, Refold) else None, checkpoints)
        return
    if isinstance(ready, FoldAhead):
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
    corrected = [event.round for event in events if isinstance(event, Amendment)]
    if mean.stale and corrected:
        # Copies hold judgements in the order in which they were said, not in that of the rounds
        _return_to(mean, min(corrected, key=mean.rounds.entry_of), None, checkpoints)
    _fold(mean, checkpoints)
    return session


def mean_session(session: AnySession) -> Session[Mean] | None:
    """The session itself where it measures one mean, whose judgements can be corrected."""
    return session if isinstance(session.question, Mean) else None


def _return_to(
    session: Session[Mean], round_: int, fold: Fold | None, checkpoints: Checkpoints
) -> None:
    """Go back to a fold without ``round_``: the one given, or the last copy."""
    checkpoints.forget(session.rounds, round_)
    session.question.fold = checkpoints.before(session, round_) if fold is None else fold
    session.restarted()


def _fold(session: Session[Mean], checkpoints: Checkpoints) -> Session[Mean]:
    """Fold every round that is ready, with copies on the way."""
    before = -1
    while session.folded != before:
        before = session.folded
        session.fold(ROUNDS_BETWEEN_COPIES)
        checkpoints.note(session.question.engine, session.question.fold)
    return session

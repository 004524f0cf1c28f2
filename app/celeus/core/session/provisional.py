"""The interval that counts open draws at their worst, on both sides.

Judgements behind an open draw wait: the session's own interval has none of them. Here they are
folded, and an open draw counts the smallest loss on the plus side and the largest on the minus
side. A candidate that is out so is out once these draws are judged, whatever is said of them: the
interval covers the true value at every look with all others, and the session's own is never wider
later, unless no candidate is left (docs/evidence/method.md#8-rounds-that-nobody-can-judge).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from celeus.core.interval import Interval
from celeus.core.plans.plan import Plan
from celeus.core.session.engine import copied_fold
from celeus.core.session.fold import Fold, OpenRound
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session

MOST_ROUNDS = 256
"""Rounds that are folded at most; where leases are kept to, fewer wait behind an open draw."""


class Provisional(NamedTuple):
    """The interval of the first ``rounds`` rounds, of which ``open`` are not judged.

    ``waiting`` judgements are in it and not in the session's own.
    """

    interval: Interval
    rounds: int
    open: int
    waiting: int


@dataclass(frozen=True, slots=True)
class WaitingRounds:
    """The rounds up to the last judged one that are not folded, and a copy of the fold.

    Each comes with its loss, None while it is open. The session may go on meanwhile.
    """

    plan: Plan
    fold: Fold
    rounds: Sequence[tuple[OpenRound, float | None]]
    open: int

    @classmethod
    def of(cls, session: Session[Mean]) -> Self | None:
        """Return the session's; None where no judgement waits, or more than MOST_ROUNDS would.

        Copies the fold: a thread's work.
        """
        question = session.question
        known = question.fold.knowledge
        last = max(known.losses, default=0)
        rounds = [(coming, known.losses.get(number)) for number, coming in known.open.items()]
        rounds = [entry for entry in rounds if entry[0].draw.round <= last]
        if not rounds or len(rounds) > MOST_ROUNDS:
            return None
        # What is known at draws goes on with the session; bets on drawn rounds do not use it
        fold = copied_fold(question.engine, question.fold, question.points[:], known)
        return cls(question.plan, fold, rounds, len(rounds) - len(known.losses))

    def provisional(self) -> Provisional:
        """Fold the rounds, once, and return the interval: a thread's work."""
        for coming, loss in self.rounds:
            self.fold.fold_round(self.plan, coming, loss)
        waiting = len(self.rounds) - self.open
        return Provisional(self.fold.interval, self.fold.last, self.open, waiting)


def provisional(session: Session[Mean]) -> Provisional | None:
    """Return the interval with open draws at their worst; None where `WaitingRounds` has none."""
    waiting = WaitingRounds.of(session)
    return None if waiting is None else waiting.provisional()

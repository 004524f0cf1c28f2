"""The answer that counts open draws at their worst, for every claim.

Judgements behind an open draw wait: the session's own answer has none of them. Here they are
folded, and an open draw counts at its worst: for an interval the smallest loss on the plus side and
the largest on the minus side, for a system the losses that speak most for it. A candidate or a
system that is out so is out once these draws are judged, whatever is said of them: the answer holds
at every look together with all others, and the session's own never says less later, but where the
truth is lost, as in alpha of the sessions it may be: no candidate is left, or the best system is
out (docs/evidence/method.md#8-rounds-that-nobody-can-judge).
"""

from dataclasses import dataclass
from typing import Self

from celeus.core.session.best.best_question import Best
from celeus.core.session.mean import Mean
from celeus.core.session.session import AnySession
from celeus.core.session.table.table_question import Table

MOST_ROUNDS = 256
"""Rounds that are folded at most; where leases are kept to, fewer wait behind an open draw."""


@dataclass(frozen=True, slots=True)
class WaitingRounds:
    """A copy of the question, whose rounds are not all folded. The session may go on meanwhile.

    ``open`` of them are not judged, and ``waiting`` are; ``judged`` counts all of the session.
    """

    question: Mean | Best | Table
    open: int
    waiting: int
    judged: int

    @classmethod
    def of(cls, session: AnySession) -> Self | None:
        """Return the session's; None where no judgement waits, or more than MOST_ROUNDS would.

        Copies the fold: a thread's work.
        """
        if not session.waiting or session.drawn - session.folded > MOST_ROUNDS:
            return None
        counts = session.pending, session.waiting, session.observed
        return cls(session.question.copied(), *counts)

    def settled(self) -> Mean | Best | Table:
        """Fold the rounds, once, and return the question: a thread's work."""
        self.question.settle()
        return self.question

"""The interval that counts open draws at their worst, on both sides.

Judgements behind an open draw wait: the session's own interval has none of them. Here they are
folded, and an open draw counts the smallest loss on the plus side and the largest on the minus
side. A candidate that is out so is out once these draws are judged, whatever is said of them: the
interval covers the true value at every look with all others, and the session's own is never wider
later, unless no candidate is left (docs/evidence/method.md#8-rounds-that-nobody-can-judge).
"""

from typing import NamedTuple

from celeus.core.interval import Interval
from celeus.core.session.engine import copied_fold
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session

MOST_ROUNDS = 256
"""Rounds that are folded at most; where leases are kept to, fewer wait behind an open draw."""


class Provisional(NamedTuple):
    """The interval of the first ``rounds`` rounds, of which ``open`` are not judged."""

    interval: Interval
    rounds: int
    open: int


def provisional(session: Session[Mean]) -> Provisional | None:
    """Return the interval with open draws at their worst; None where no judgement waits for one.

    Also None where more than MOST_ROUNDS would have to be folded. It costs what folding these
    costs, and the copy of the fold: a thread's work.
    """
    question = session.question
    known = question.fold.knowledge
    last = max(known.losses, default=0)
    waiting = [round_ for round_ in known.open if round_ <= last]
    if not waiting or len(waiting) > MOST_ROUNDS:
        return None
    fold = copied_fold(question.engine, question.fold, question.points[:], known)
    fold.settle(question.plan, last)
    return Provisional(fold.interval, last, len(waiting) - len(known.losses))

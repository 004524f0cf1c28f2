"""The ledger of a session that seeks the best of k systems, and its replay.

    session = begin(plan, contenders, seed)
    event_of(session.propose(), sequence)       the draw that is due after ``sequence`` events
    enter(plan, session, event)
    session = replay(plan, contenders, events, seed)

With the seed every draw is proposed again; without it the item is the recorded one, and its
probabilities are computed again.
"""

from collections.abc import Iterable

import numpy as np

from celeus.core.ledger import Draw, JointObservation
from celeus.core.plans.best import BestPlan
from celeus.core.session.best.best_question import BestDraw, BestSession
from celeus.core.session.best.candidates import Contenders
from celeus.core.session.recorded import LedgerDiffers, compare_draws, same

__all__ = [
    "Event",
    "LedgerDiffers",
    "begin",
    "can_draw",
    "check_draw",
    "enter",
    "event_of",
    "replay",
]


Event = Draw | JointObservation


def begin(plan: BestPlan, contenders: Contenders, seed: bytes) -> BestSession:
    """The session of a plan before its first draw, when the pool is as the plan says."""
    session = BestSession(contenders, plan.alpha, seed, beta=plan.beta)
    same("plan.items", plan.items, contenders.items)
    same("plan.systems", len(plan.systems), contenders.count)
    same("plan.known", plan.known, session.known)
    return session


def can_draw(plan: BestPlan, session: BestSession) -> bool:
    """The budget leaves something to draw, and what is left may tell systems from each other."""
    return session.can_draw and len(session.drawn) < plan.budget


def event_of(draw: BestDraw, sequence: int) -> Draw:
    """A draw as the ledger keeps it, made after ``sequence`` events."""
    return Draw(draw.round, draw.item, draw.q, sequence, draw.strata_q)


def enter(plan: BestPlan, session: BestSession, event: Event) -> None:
    """Apply the next event of the ledger."""
    if isinstance(event, JointObservation):
        losses = np.array(event.losses, dtype=np.float64)
        session.judge(event.round, (losses - plan.lower) / plan.scale.width)
        return
    if event.strata_q is None:
        raise LedgerDiffers("strata_q", None, "the probability of an item of each stratum")
    session.take(BestDraw(event.round, event.item, event.q, event.strata_q, session.cut))


def replay(
    plan: BestPlan, contenders: Contenders, events: Iterable[Event], seed: bytes | None
) -> BestSession:
    """The session after a ledger; every draw is the one that was due, or one that could be."""
    session = begin(plan, contenders, seed or b"")
    for at, event in enumerate(events):
        if isinstance(event, Draw):
            if not can_draw(plan, session):
                raise LedgerDiffers(f"ledger[{at}]", "a draw", "none: nothing is left to draw")
            check_draw(session, event, at, seeded=seed is not None)
        enter(plan, session, event)
    return session


def check_draw(session: BestSession, event: Draw, sequence: int, *, seeded: bool) -> None:
    """Refuse a draw after ``sequence`` events that is not the one due, or not one that could be.

    Whether anything may be drawn is the caller's to know.
    """
    where, item = f"ledger[{sequence}]", event.item
    drawn_in = session.cut.proposal.drawn_in
    if not 0 <= item < drawn_in.size or drawn_in[item]:
        raise LedgerDiffers(f"{where}.item", item, "an item left")
    due = session.propose() if seeded else session.chance(item)
    compare_draws(where, event, event_of(due, sequence))

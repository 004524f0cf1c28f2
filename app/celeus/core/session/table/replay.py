"""The ledger of a session of many claims, and its replay.

    session = begin(plan, table, seed)
    session.propose(sequence)                   the draw that is due after ``sequence`` events
    enter(plan, session, event)
    session = replay(plan, table, events, seed)

With the seed every draw is proposed again; without it the item is the recorded one, and its
probabilities are computed again.
"""

from collections.abc import Iterable

from celeus.core.ledger import Addition, Draw, JointObservation
from celeus.core.plans.table import TableClaim, TablePlan, TableWish, claims_of, table_for
from celeus.core.pools.table import Table
from celeus.core.session.recorded import LedgerDiffers, compare_draws, same
from celeus.core.session.table.table_question import TableSession

Event = Draw | JointObservation | Addition


def begin(plan: TablePlan, table: Table, seed: bytes) -> TableSession:
    """The session of a plan before its first draw, when the table is as the plan says."""
    same("plan.items", plan.items, table.items)
    same("plan.metrics", plan.metrics, table.metrics)
    same("plan.drawable", plan.drawable, int(table.drawable.sum()))
    due = claims_of(TableWish(), table_for(plan.small_groups, table))
    same("plan.claims", [fact(one) for one in plan.claims], [fact(one) for one in due])
    return TableSession(plan, table, seed)


def fact(claim: TableClaim) -> tuple[object, ...]:
    """What a table alone says of a claim."""
    part = claim.metric, claim.column, claim.value, claim.whole
    return (*part, claim.items, claim.known, claim.total)


def enter(session: TableSession, event: Event) -> None:
    """Apply the next event of the ledger."""
    if isinstance(event, JointObservation):
        session.judge(event.round, event.losses)
        return
    if isinstance(event, Addition):
        session.add(TableClaim.asked(event))
        return
    if event.strata_q is None:
        raise LedgerDiffers("strata_q", None, "the probability of an item of each cell")
    session.take(event)


def replay(
    plan: TablePlan, table: Table, events: Iterable[Event], seed: bytes | None
) -> TableSession:
    """The session after a ledger; every draw is the one that was due, or one that could be."""
    session = begin(plan, table, seed or b"")
    for at, event in enumerate(events):
        if isinstance(event, Draw):
            check_draw(session, event, at, seeded=seed is not None)
        enter(session, event)
    return session


def check_draw(session: TableSession, event: Draw, sequence: int, *, seeded: bool) -> None:
    """Refuse a draw after ``sequence`` events that is not the one due, or not one that could be."""
    where, drawn_in = f"ledger[{sequence}]", session.proposal.drawn_in
    if not session.can_draw:
        raise LedgerDiffers(where, "a draw", "none: nothing is left to draw")
    if not 0 <= event.item < drawn_in.size or drawn_in[event.item]:
        raise LedgerDiffers(f"{where}.item", event.item, "an item left")
    due = session.propose(sequence) if seeded else session.chance(event.item, sequence)
    compare_draws(where, event, due)

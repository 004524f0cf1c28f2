"""Give draws back that their holders will not judge now, for others to take."""

from collections.abc import Collection
from uuid import UUID

from celeus.operations.runtime.context import Context
from celeus.operations.sessions.append import finish
from celeus.operations.sessions.journal import locked


async def release(
    context: Context,
    session_id: UUID,
    worker: str | None,
    rounds: Collection[int] | None,
    *,
    passed: bool = False,
) -> list[int]:
    """End leases early; the rounds whose leases ended, in order.

    Of what ``worker`` of the caller's key holds, or, without a worker, of whoever holds it; only of
    ``rounds`` where these are given. Its holder may still judge it until somebody else has.
    A rater's turn in a panel is nobody else's, so of these there is nothing to release. What is
    ``passed`` on comes back to its holder after a lease's time without a judgement, or as soon as
    there is nothing else for them.
    """
    async with locked(context, session_id) as (journal, db):
        chosen = None if rounds is None else {journal.round_of(it) for it in rounds}
        released = []
        for round_, lease in sorted(journal.leases.items()):
            holders = lease.holders(journal.now)
            if worker is not None:
                holders = [holder for holder in holders if holder == (journal.key, worker)]
            if holders and (chosen is None or round_ in chosen):
                journal.release(round_, holders, passed=passed)
                released.append(round_)
        await finish(db, journal)
        return [journal.shown(it) for it in released]

"""Judgements that contradict what a pool states of its losses: refused, and kept for all to see.

Bounds of single losses are an assumption. A judgement outside them says that it is false, and
the session cannot draw on it; whoever runs the session has to know, and whom to ask.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from sqlalchemy import text

from celeus.errors import BoundContradicted
from celeus.operations.access.keys import key_name
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.status import announce
from celeus.operations.sessions.event_rows import moment
from celeus.operations.sessions.journal import locked

MOST_KEPT = 20
"""The first ones of a session; one is enough to make its claim worthless."""


@asynccontextmanager
async def keeping_contradictions(context: Context, session_id: UUID) -> AsyncIterator[None]:
    """Keep with the session, in a transaction of its own, a contradiction that the block raises."""
    try:
        yield
    except BoundContradicted as refusal:
        await _keep(context, session_id, refusal)
        if context.blind:
            # The loss of a label, and where others say that it lies, would sway a judge
            raise refusal.untold from refusal
        raise


async def _keep(context: Context, session_id: UUID, refusal: BoundContradicted) -> None:
    async with locked(context, session_id) as (journal, db):
        contradiction: dict[str, Any] = {"loss": refusal.value}
        if refusal.metric is not None:
            contradiction["metric"] = refusal.metric
        contradiction |= {"lower": refusal.lower, "upper": refusal.upper}
        item = {"pool_id": journal.pool_id, "index": refusal.item}
        contradiction["item"] = (await db.execute(_ITEM, item)).scalar_one()
        kept = journal.contradictions
        again = any(contradiction.items() <= other.items() for other in kept)
        if again or len(kept) >= MOST_KEPT or journal.lifecycle == "closed":
            return
        name = await key_name(db, context.key_id)
        contradiction |= {"key": context.key_id, "author": name, "at": moment(journal.now)}
        journal.contradictions = [*kept, contradiction]
        document = journal.status()
        values = {"kept": json.dumps(journal.contradictions), "status": json.dumps(document)}
        await db.execute(_KEEP, values | {"session_id": session_id})
    await announce(context.cache, context.project_id, session_id, document)


_ITEM = text("SELECT id FROM items WHERE pool_id = :pool_id AND index = :index")
_KEEP = text(
    """
    UPDATE sessions SET contradictions = CAST(:kept AS jsonb), status = CAST(:status AS jsonb)
    WHERE session_id = :session_id
    """
)

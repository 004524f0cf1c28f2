"""The status of a session with its provisional answer, computed when somebody reads it."""

from typing import Any
from uuid import UUID

import orjson

from celeus.core.insights.status import may_have_provisional, provisional_member
from celeus.core.session.provisional import WaitingRounds
from celeus.errors import Busy, Unavailable
from celeus.operations.runtime.concurrency import in_thread
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.status import version_of
from celeus.operations.sessions.journal import unlocked


async def with_provisional(
    context: Context, session_id: UUID, body: bytes, version: str
) -> tuple[bytes, str]:
    """The status document of `get_session`, with ``provisional`` where it has one, and its version.

    Then it is the document as of now. Where the session or the database is busy for too long it is
    the one given, under another version.
    """
    document: dict[str, Any] = orjson.loads(body)
    if not may_have_provisional(document):
        return body, version
    try:
        async with context.gates.provisional_of_sessions.of(session_id.hex):
            document = await _completed(context, session_id, document)
    except (Busy, Unavailable):
        return body, f"{version}.without"
    return orjson.dumps(document), version_of(document)


async def _completed(
    context: Context, session_id: UUID, document: dict[str, Any]
) -> dict[str, Any]:
    """The document with its member, or a newer one; holds the session only to copy its fold."""
    member = context.provisional.known(session_id, document["ledger_head"])
    if member is None:
        async with unlocked(context, session_id) as (session, row):
            document, state, pool = row["status"], session.state, session.pool
            waiting = None
            if may_have_provisional(document):
                waiting = await in_thread(WaitingRounds.of, state)
        member = await in_thread(provisional_member, waiting, pool)
        context.provisional.keep(session_id, document["ledger_head"], member)
    return document | member

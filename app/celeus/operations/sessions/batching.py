"""Requests that wait for the same session are taken together: one lock, one statement, one commit.

Each is answered as if it were alone. One that is refused has appended nothing, and is refused
alone; where that is not so, or anything else fails, what all of them did is rolled back, and each
is tried by itself.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any, TypeVar, cast
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.pools.item import Item
from celeus.errors import Refusal
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.groups import Request
from celeus.operations.runtime.status import announce
from celeus.operations.sessions.append import finish
from celeus.operations.sessions.journal import Journal, locked

T = TypeVar("T")

TURN_SECONDS = 0.005
"""Longest time, in seconds, a batch runs before it yields to the event loop."""

Answering = Callable[[dict[str, Any], dict[int, Item]], T]
"""Makes an answer of the session's status after all of the group, and of the items wanted."""
Work = Callable[[Journal, AsyncConnection], Awaitable[Answering[T]]]
"""The work of one request, called with the locked journal."""
_Asked = tuple[Context, Work[Any]]


class AfterOthers(Exception):
    """The request has to see in the database what others of its group have yet to write."""


class _PartialChange(Exception):
    """A request was refused after it had appended something."""


async def together(context: Context, session_id: UUID, work: Work[T]) -> T:
    """The answer to a request, once what it did is committed and announced.

    Refuses as the work does, and as `Busy` where its turn does not come in time.
    """
    place = context.project_id, session_id
    run = partial(_run, session_id)
    return cast("T", await context.groups.answer(place, (context, work), run))


async def _run(session_id: UUID, group: list[Request[_Asked]]) -> list[Request[_Asked]]:
    try:
        return await _at_once(session_id, group)
    except Exception as error:  # noqa: BLE001 - told to whoever asked
        if len(group) == 1 or isinstance(error, Refusal):
            # Alone, or refused by the session or the database as such
            cause = error.__cause__ if isinstance(error, _PartialChange) else error
            for request in group:
                request.refuse(cause or error)
            return []
    for request in group:
        await _run(session_id, [request])
    return []


async def _at_once(session_id: UUID, group: list[Request[_Asked]]) -> list[Request[_Asked]]:
    context, later = group[0].asked[0], []
    made: list[tuple[Request[_Asked], Any]] = []
    refused: list[tuple[Request[_Asked], Refusal]] = []
    async with locked(context, session_id) as (journal, db):
        began = perf_counter()
        for request in group:
            if perf_counter() - began >= TURN_SECONDS:
                await asyncio.sleep(0)
                began = perf_counter()
            caller, work = request.asked
            journal.take_over(caller)
            before = len(journal.entries), len(journal.new_leases)
            try:
                made.append((request, await work(journal, db)))
            except (Refusal, AfterOthers) as refusal:
                if (len(journal.entries), len(journal.new_leases)) != before:
                    raise _PartialChange from refusal
                if isinstance(refusal, AfterOthers):
                    later.append(request)
                else:
                    refused.append((request, refusal))
        document, items = await finish(db, journal)
        answers = [(request, answering(document, items)) for request, answering in made]
    if journal.entries:
        await announce(context.cache, context.project_id, session_id, document)
    for request, why in refused:
        request.refuse(why)
    for request, answer in answers:
        request.give(answer)
    return later

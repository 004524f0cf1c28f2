"""Server-sent events: a session followed live."""

import math
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent

from celeus.api.access.parameters import Reads, SessionId
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.errors import SessionNotFound
from celeus.operations.sessions import sessions, stream

ALIVE_SECONDS = 3.0

router = APIRouter(prefix="/v1/sessions", tags=["history"], route_class=JsonRoute)


async def _place(context: Reads, session_id: SessionId) -> AsyncIterator[None]:
    """A stream cannot refuse once it has begun; its place is kept until it has ended."""
    async with context.gates.streams.of(context.key_id or ""):
        await sessions.get_session(context, session_id)
        yield


@router.get(
    "/{session_id}/stream",
    operation_id="stream_session",
    summary="Follow a session live (server-sent events)",
    response_class=EventSourceResponse,
    dependencies=[Depends(_place)],
    responses=responses(SessionNotFound),
)
async def stream_session(
    context: Reads,
    session_id: SessionId,
    last_event_id: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID",
            pattern=r"^\d{1,10}(-\d{1,10})?$",
            description="Id of the last event that came: those behind it follow.",
        ),
    ] = None,
    *,
    alive: Annotated[
        bool,
        Query(description="Send an event `alive`, too, whenever nothing was new for 3 seconds."),
    ] = False,
) -> AsyncIterator[ServerSentEvent]:
    """An event `session` whenever something happened.

    Its data is `{session, points, reset}`: the session as GET shows it, but for `provisional`, and
    the trajectory since the event before; `reset` says that an amendment replaced all earlier
    points. The id resumes: send it as `Last-Event-ID`. An event `alive`, whose data is `{}`, says
    that the session was looked at and stands as told. The stream ends when the session is closed,
    or the key works no longer.
    """
    quiet_seconds = ALIVE_SECONDS if alive else math.inf
    position = _position(last_event_id)
    async for news in stream.follow(context, session_id, position, quiet_seconds):
        sequence, revision = news.position
        event = "session" if news.data else "alive"
        yield ServerSentEvent(event=event, id=f"{sequence}-{revision}", raw_data=news.data or "{}")


def _position(last_event_id: str | None) -> tuple[int, int | None]:
    if last_event_id is None:
        return 0, None
    sequence, _, revision = last_event_id.partition("-")
    return int(sequence), int(revision) if revision else None

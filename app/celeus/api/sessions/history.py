"""A session's past on the wire: trajectory, ledger, and the stream that follows it live."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field

from app.api.dependencies import Reads, SessionId
from app.api.problems import responses
from app.api.sessionschema import Time
from app.errors import SessionNotFound
from app.operations import history, sessions, streams
from app.operations.ledger import KIND_NAMES, moment

router = APIRouter(prefix="/v1/sessions", tags=["history"])


class TrajectoryPoint(BaseModel):
    """The answer after a folded round."""

    round: int
    sequence: int
    estimate: float
    lower: float
    upper: float


class Trajectory(BaseModel):
    """The interval round by round; ``next`` goes into ``after`` for the following page.

    ``revision`` counts amendments: another one than before means that earlier pages are outdated.
    """

    alpha: float
    target: Literal["pool", "population"]
    policy: str
    method_version: str
    revision: int
    data: list[TrajectoryPoint]
    next: int | None


class LedgerEntry(BaseModel):
    """One event. ``at`` is the database's time; ``detail`` holds worker, label, author, reason."""

    sequence: int
    kind: Literal["draw", "observation", "unjudgeable", "amendment", "change"]
    round: int | None
    item: int | None
    q: float | None
    strata_q: str | None = Field(
        description="Of one item in every stratum: little-endian float64 in hexadecimal."
    )
    seen: int | None
    loss: float | None
    detail: dict[str, Any] | None
    at: Time


class LedgerPage(BaseModel):
    """Events in order; ``next`` goes into ``after`` for the following page."""

    data: list[LedgerEntry]
    next: int | None


@router.get(
    "/{session_id}/trajectory",
    operation_id="get_trajectory",
    summary="The interval round by round",
    response_model=Trajectory,
    responses=responses(SessionNotFound),
)
async def get_trajectory(
    rooms: Reads,
    session_id: SessionId,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
    points: Annotated[
        int | None, Query(ge=1, le=10_000, description="Thin evenly to about this many.")
    ] = None,
) -> dict[str, Any]:
    """Rounds after ``after``; thinning keeps the last one."""
    session, found = await history.trajectory(rooms, session_id, after, limit, points)
    named = ("alpha", "target", "policy", "method_version", "revision")
    return {name: session[name] for name in named} | {
        "data": found,
        "next": found[-1]["round"] if len(found) == limit else None,
    }


@router.get(
    "/{session_id}/ledger",
    operation_id="get_ledger",
    summary="Draws, observations and changes in order",
    response_model=LedgerPage,
    responses=responses(SessionNotFound),
)
async def get_ledger(
    rooms: Reads,
    session_id: SessionId,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
) -> dict[str, Any]:
    """Append-only: a page once read never changes."""
    found = await history.ledger(rooms, session_id, after, limit)
    return {
        "data": [_entry(row) for row in found],
        "next": found[-1]["sequence"] if len(found) == limit else None,
    }


async def _place(rooms: Reads, session_id: SessionId) -> AsyncIterator[None]:
    """A stream cannot refuse once it has begun; its place is kept until it has ended."""
    with streams.place(rooms):
        await sessions.get_session(rooms, session_id)
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
    rooms: Reads,
    session_id: SessionId,
    last_event_id: Annotated[str | None, Header(pattern=r"^\d{1,10}(-\d{1,10})?$")] = None,
) -> AsyncIterator[ServerSentEvent]:
    """An event `session` whenever something happened.

    Its data is `{session, points, reset}`: the session as GET shows it and the trajectory since
    the event before; `reset` says that an amendment replaced all earlier points. The id resumes:
    send it as `Last-Event-ID`. The stream ends when the session is closed, or the key works no
    longer.
    """
    async for news in streams.follow(rooms, session_id, _position(last_event_id)):
        yield ServerSentEvent(
            event="session",
            id=f"{news.session['sequence']}-{news.session['revision']}",
            data={
                "session": news.session,
                "points": news.points,
                "reset": news.reset,
            },
        )


def _position(last_event_id: str | None) -> tuple[int, int | None]:
    if last_event_id is None:
        return 0, None
    sequence, _, revision = last_event_id.partition("-")
    return int(sequence), int(revision) if revision else None


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"kind": KIND_NAMES[row["kind"]], "at": moment(row["at"])}

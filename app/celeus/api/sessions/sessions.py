"""Sessions on the wire: open, list, read, change."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request, Response

from app.api.bodies import JsonRoute
from app.api.dependencies import (
    AfterSession,
    Manages,
    Reads,
    SessionId,
    cursor_of,
    form_of,
    pool_id_of,
)
from app.api.once import AttemptOf
from app.api.problems import responses
from app.api.sessionschema import (
    Session,
    SessionChange,
    SessionOpening,
    SessionPage,
    SessionState,
)
from app.api.tags import still_holds, weak
from app.errors import (
    Busy,
    IdempotencyKeyReused,
    InvalidValue,
    PoolNotFound,
    PoolNotSealed,
    SessionClosed,
    SessionNotFound,
    UnreachablePrecision,
)
from app.operations import sessions

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=JsonRoute)


@router.post(
    "",
    operation_id="open_session",
    summary="Open a session on a sealed pool",
    status_code=201,
    response_model=Session,
    responses=responses(
        InvalidValue,
        UnreachablePrecision,
        IdempotencyKeyReused,
        PoolNotFound,
        PoolNotSealed,
        Busy,
    ),
)
async def open_session(rooms: Manages, body: SessionOpening, attempt: AttemptOf) -> Response:
    """Freeze the plan and publish the commitment to the secret seed."""
    opening = sessions.Opening(
        pool_id=pool_id_of(body.pool_id),
        claim=body.claim(),
        policy=body.policy,
        strategy=body.strategy,
        lease_seconds=body.lease_seconds,
        parameters=body.parameters.model_dump(exclude_none=True),
        name=body.name,
    )
    return await attempt.answer(
        201, orjson.dumps, lambda once: sessions.open_session(rooms, opening, once)
    )


@router.get(
    "",
    operation_id="list_sessions",
    summary="List sessions, newest first",
    response_model=SessionPage,
    responses=responses(InvalidValue, PoolNotFound),
)
async def list_sessions(
    rooms: Reads,
    pool_id: Annotated[str | None, Query(json_schema_extra=form_of("pool"))] = None,
    state: SessionState | None = None,
    after: AfterSession = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> dict[str, Any]:
    """Filter by pool and state; pages are keyed by the last session seen."""
    wanted = sessions.Filter(
        pool_id=None if pool_id is None else pool_id_of(pool_id),
        state=state,
        before=cursor_of("ses", after),
        limit=limit,
    )
    found = await sessions.list_sessions(rooms, wanted)
    return {"data": found, "next": found[-1]["id"] if len(found) == limit else None}


@router.get(
    "/{session_id}",
    operation_id="get_session",
    summary="Where a session stands",
    response_model=Session,
    responses=responses(SessionNotFound) | {304: {"description": "The ETag still holds."}},
)
async def get_session(rooms: Reads, session_id: SessionId, request: Request) -> Response:
    """The interval now. Send the ETag back as If-None-Match to poll for nothing."""
    body, version = await sessions.get_session(rooms, session_id)
    etag = f'"{version}"'
    headers = weak(etag)
    if still_holds(request, etag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


@router.patch(
    "/{session_id}",
    operation_id="change_session",
    summary="Change precision, budget or stop; pause, resume or close",
    response_model=Session,
    responses=responses(SessionNotFound, InvalidValue, UnreachablePrecision, SessionClosed),
)
async def change_session(
    rooms: Manages, session_id: SessionId, body: SessionChange
) -> dict[str, Any]:
    """Going on with another precision keeps the guarantee; closing is irrevocable."""
    wanted = sessions.Settings(
        precision=body.precision if "precision" in body.model_fields_set else "unchanged",
        budget=body.budget,
        stop_when_decided=body.stop_when_decided,
        lifecycle=body.state,
    )
    return await sessions.change_session(rooms, session_id, wanted)

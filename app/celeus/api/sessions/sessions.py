"""Sessions on the wire: open, list, read, change."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from celeus.api.access.parameters import (
    NO_NUL,
    AfterSession,
    Archived,
    Manages,
    Reads,
    SessionId,
    cursor_of,
    form_of,
    pool_id_of,
)
from celeus.api.sessions.opening_models import SessionChange, SessionOpening
from celeus.api.sessions.session_models import Session, SessionPage, SessionState
from celeus.api.wire.etags import KnownTags, WantedTag, still_holds, weak
from celeus.api.wire.idempotency import AttemptOf
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.core.plans.plan_request import SessionRequest
from celeus.errors import (
    Busy,
    IdempotencyKeyReused,
    InvalidValue,
    NothingToJudge,
    PoolNotFound,
    PoolNotSealed,
    PreconditionFailed,
    SessionClosed,
    SessionFixed,
    SessionNotFound,
    UnreachablePrecision,
)
from celeus.operations.insights import session_lists
from celeus.operations.insights.provisional import with_provisional
from celeus.operations.sessions import sessions

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=JsonRoute)
status_router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=JsonRoute)
"""Router of the route that dashboards poll: it comes first, since routes are tried in order."""


class SessionsQuery(BaseModel):
    """The conditions that listed sessions meet, and their order."""

    pool_id: str | None = Field(
        None, description="Sessions on this pool alone.", json_schema_extra=form_of("pool")
    )
    state: SessionState | None = Field(None, description="Sessions in this state alone.")
    q: str | None = Field(
        None,
        max_length=200,
        pattern=NO_NUL,
        description="Beginnings of words of the name, the owner and the tags: sessions that have"
        " all of them.",
    )
    tag: str | None = Field(
        None, max_length=40, pattern=NO_NUL, description="Sessions with this tag alone."
    )
    order: session_lists.Order = Field(
        "-opened",
        description="By opening, name, owner, state, last activity, score or progress; a minus"
        " reverses it.",
    )
    archived: Archived = False
    after: AfterSession = None
    limit: int = Field(50, ge=1, le=200, description="Entries of a page.")

    def filter(self, limit: int) -> session_lists.Filter:
        """Return these conditions for a page of ``limit`` sessions."""
        return session_lists.Filter(
            pool_id=None if self.pool_id is None else pool_id_of(self.pool_id),
            state=self.state,
            archived=self.archived,
            query=self.q,
            tag=self.tag,
            order=self.order,
            after=cursor_of("ses", self.after),
            limit=limit,
        )


@router.post(
    "",
    operation_id="open_session",
    summary="Open a session on a sealed pool",
    status_code=201,
    response_model=Session,
    responses=responses(
        InvalidValue,
        NothingToJudge,
        UnreachablePrecision,
        IdempotencyKeyReused,
        PoolNotFound,
        SessionNotFound,
        PoolNotSealed,
        Busy,
    ),
)
async def open_session(context: Manages, body: SessionOpening, attempt: AttemptOf) -> Response:
    """Freeze the plan and publish the commitment to the secret seed."""
    opening = sessions.Opening(
        pool_id=pool_id_of(body.pool_id),
        request=SessionRequest(
            claim=body.claim(),
            policy=body.policy,
            strategy=body.strategy,
            parameters=body.parameters.model_dump(exclude_none=True),
            best=body.best,
            table=body.table,
        ),
        lease_seconds=body.lease_seconds,
        name=body.name,
        tags=body.tags,
        instructions=body.instructions,
        planned_labels=None if body.planned_labels is None else body.planned_labels.model_dump(),
    )
    return await attempt.answer(
        201,
        orjson.dumps,
        lambda once: sessions.open_session(context, opening, once),
        lambda body: f"{router.prefix}/{body['id']}",
    )


@router.get(
    "",
    operation_id="list_sessions",
    summary="List sessions",
    response_model=SessionPage,
    responses=responses(InvalidValue, PoolNotFound),
)
async def list_sessions(
    context: Reads, params: Annotated[SessionsQuery, Query()]
) -> dict[str, Any]:
    """Filter and order; pages are keyed by the last session seen."""
    page = await session_lists.list_sessions(context, params.filter(params.limit))
    return {"data": page, "next": page[-1]["id"] if len(page) == params.limit else None}


@status_router.get(
    "/{session_id}",
    operation_id="get_session",
    summary="Where a session stands",
    response_model=Session,
    responses=responses(SessionNotFound) | {304: {"description": "The ETag still holds."}},
)
async def get_session(context: Reads, session_id: SessionId, known: KnownTags = None) -> Response:
    """The interval now. Send the ETag back as If-None-Match to poll for nothing."""
    body, version = await sessions.get_session(context, session_id)
    if not still_holds(known, etag := f'"{version}"'):
        body, version = await with_provisional(context, session_id, body, version)
        etag = f'"{version}"'
    headers = weak(etag)
    if still_holds(known, etag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


@router.patch(
    "/{session_id}",
    operation_id="change_session",
    summary="Change settings, instructions, tags or state; archive",
    response_model=Session,
    responses=responses(
        SessionNotFound,
        InvalidValue,
        UnreachablePrecision,
        SessionClosed,
        SessionFixed,
        PreconditionFailed,
    ),
)
async def change_session(
    context: Manages, session_id: SessionId, body: SessionChange, wanted_tag: WantedTag = None
) -> dict[str, Any]:
    """Going on with another precision keeps the guarantee; closing is irrevocable."""
    wanted = sessions.Settings(
        precision=body.precision if "precision" in body.model_fields_set else "unchanged",
        budget=body.budget,
        stop_when_decided=body.stop_when_decided,
        lifecycle=body.state,
        tags=body.tags,
        instructions=body.instructions
        if "instructions" in body.model_fields_set
        else sessions.UNCHANGED,
        archived=body.archived,
    )

    def meant(version: str) -> bool:
        return still_holds(wanted_tag, f'"{version}"')

    return await sessions.change_session(
        context, session_id, wanted, None if wanted_tag is None else meant
    )

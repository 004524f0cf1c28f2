"""A run's file that becomes a session, in one request."""

from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from celeus import errors
from celeus.api.access.parameters import Manages
from celeus.api.pools.pool_models import BYTES
from celeus.api.sessions.session_models import Session
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.uploads import format_of, spooled, unless_gone
from celeus.operations.runs.push import push

router = APIRouter(prefix="/v1/session-files", tags=["sessions"], route_class=JsonRoute)

MEDIA = "application/x-ndjson"
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The file that a session in process lies in, as it was written.",
        "content": {MEDIA: {"schema": BYTES}},
    }
}


@router.post(
    "",
    operation_id="create_session_from_file",
    summary="Make a session of a run's file",
    status_code=201,
    response_model=Session,
    openapi_extra=BODY,
    responses=responses(
        errors.InvalidValue,
        errors.BadRows,
        errors.SessionDiffers,
        errors.LedgerBroken,
        errors.Busy,
        errors.PoolTooLarge,
        errors.RunTooCostly,
        errors.VerificationBusy,
        errors.ProcessEnded,
    )
    | {200: {"model": Session, "description": "It was there already."}},
)
async def create_session_from_file(context: Manages, request: Request) -> Response:
    """The session comes closed, with its pool; a file that does not lead to itself is refused.

    All is computed again: every draw from the seed, every interval from the losses. Sent again it
    makes nothing new. Whose losses they are, and whether the session is one of several that ran,
    is the word of who pushes it: `origin` says so, and its certificate.
    """
    format_of(request, {MEDIA: "ndjson"})
    async with spooled(request) as file:
        pushed = await unless_gone(request, push(context, file))
    created = pushed.created
    headers = {"Location": f"/v1/sessions/{pushed.document['id']}"} if created else {}
    body = orjson.dumps(pushed.document)
    return Response(body, 201 if created else 200, headers, "application/json")

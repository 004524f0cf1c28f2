"""Links to a session's report on the wire: make, list and revoke them."""

from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from celeus.api.access.keys import Seconds
from celeus.api.access.parameters import Manages, SessionId, ShareId, form_of
from celeus.api.sessions.opening_models import STRICT
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.records import FromRecord, Time, wire_id
from celeus.errors import InvalidValue, SessionNotFound, ShareNotFound, TooManyShares
from celeus.operations.access import guest_links

router = APIRouter(prefix="/v1/sessions", tags=["sharing"], route_class=JsonRoute)

WEEK: Final[dict[str, JsonValue]] = {"expires_in_seconds": 604_800}


class ShareRequest(BaseModel):
    """The link to make."""

    model_config = ConfigDict(**STRICT, json_schema_extra={"examples": [WEEK]})

    expires_in_seconds: Seconds | None = Field(
        None, description="Seconds for which the link works; null: until it is revoked."
    )


class ShareOut(FromRecord):
    """A link, without what it carries."""

    id: Annotated[str, wire_id("share")] = Field(
        validation_alias="share_id",
        description="`share_` and 32 hexadecimal digits.",
        json_schema_extra=form_of("share"),
    )
    created_at: Time = Field(description="When it was made.")
    expires_at: Time | None = Field(description="Until when it works; null: until revoked.")


class NewShare(ShareOut):
    """A link, told this once."""

    url: str = Field(description="Leads anybody to the report, without signing in.")
    badge: str = Field(description="A picture (SVG) of what the session says now.")
    markdown: str = Field(description="The badge that leads to the report, to be pasted.")


class ShareList(BaseModel):
    """The links to a session that work."""

    data: list[ShareOut] = Field(description="The oldest first.")


@router.post(
    "/{session_id}/shares",
    operation_id="create_share",
    summary="Make a link to the report, for anybody",
    status_code=201,
    responses=responses(InvalidValue, SessionNotFound, TooManyShares),
)
async def create_share(context: Manages, session_id: SessionId, body: ShareRequest) -> NewShare:
    """Whoever has the link reads the report, as it stands, and nothing else."""
    life = None
    if body.expires_in_seconds is not None:
        life = timedelta(seconds=body.expires_in_seconds)
    made = await guest_links.create_share(context, session_id, life)
    url = f"{context.settings.address}/s/{made.token}"
    badge = f"{url}/badge.svg"
    markdown = f"[![Celeus]({badge})]({url})"
    return NewShare(**dict(ShareOut.model_validate(made)), url=url, badge=badge, markdown=markdown)


@router.get(
    "/{session_id}/shares",
    operation_id="list_shares",
    summary="List the links to the report, oldest first",
    response_model=ShareList,
    responses=responses(SessionNotFound),
)
async def list_shares(context: Manages, session_id: SessionId) -> dict[str, Any]:
    """Those that work, without what they carry."""
    found = await guest_links.list_shares(context, session_id)
    return {"data": found}


@router.delete(
    "/{session_id}/shares/{share_id}",
    operation_id="revoke_share",
    summary="Revoke a link to the report",
    status_code=204,
    responses=responses(SessionNotFound, ShareNotFound),
)
async def revoke_share(context: Manages, session_id: SessionId, share_id: ShareId) -> Response:
    """It leads nowhere from now on; pictures of its badge may be kept for a minute."""
    await guest_links.revoke_share(context, session_id, share_id)
    return Response(status_code=204)

"""Routes of invitations and their schemas: links that sign one browser in, once."""

from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from celeus import errors
from celeus.api.access.keys import KEY_EXAMPLE, Name, Scopes, Seconds, key_id_of, life_of
from celeus.api.access.parameters import (
    PAGE_DEFAULT,
    Administers,
    InvitationId,
    Limit,
    cursor_of,
    form_of,
    session_id_of,
)
from celeus.api.pools.losses import STRICT
from celeus.api.wire.idempotency import AttemptOf
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.records import FromRecord, Time, wire_id
from celeus.operations.access import people
from celeus.operations.access.people import InvitationRecord, MadeInvitation, NewInvitation
from celeus.operations.runtime.caller_cache import Scope
from celeus.operations.runtime.context import Context

router = APIRouter(prefix="/v1/invitations", tags=["access"], route_class=JsonRoute)

WEEK_SECONDS = 604_800
InvitationState = Literal["open", "used", "withdrawn", "expired"]


class InvitationIn(BaseModel):
    """The person to invite: somebody new by `name`, or the holder of a key by `key_id`."""

    model_config = STRICT | ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "Anna"},
                {"name": "Otto", "scopes": ["manage"], "expires_in_seconds": 3600},
                {"key_id": KEY_EXAMPLE},
            ]
        }
    )

    name: Name | None = Field(None, description="Name of the new key: whom it is for.")
    scopes: Scopes | None = Field(
        None, description="What somebody new may do; left out: `label`, which is blind."
    )
    key_id: str | None = Field(
        None,
        description="A key whose holder signs in with another browser, in place of `name`.",
        json_schema_extra={"pattern": "^[0-9a-f]{16}$"},
    )
    session_id: str | None = Field(
        None,
        description="Where the link leads to: the page on which this session is labelled, or"
        " looked at without scope `label`. Left out: the start.",
        json_schema_extra=form_of("ses"),
    )
    expires_in_seconds: Seconds = Field(WEEK_SECONDS, description="How long the link works.")
    key_expires_in_seconds: Seconds | None = Field(
        None, description="How long somebody new has access; null: until the key is revoked."
    )

    @property
    def request(self) -> NewInvitation:
        """Return what is asked for; refuses a body that does not name one person."""
        if (self.name is None) == (self.key_id is None):
            raise errors.InvalidValue(
                "An invitation is for somebody new or for the holder of a key.",
                field="name",
                rule="either `name`, or `key_id`",
            )
        if self.key_id is not None and (self.scopes or self.key_expires_in_seconds):
            raise errors.InvalidValue(
                "A key that exists keeps its scopes and its end.",
                field="scopes" if self.scopes else "key_expires_in_seconds",
                rule="left out with `key_id`",
            )
        return NewInvitation(
            timedelta(seconds=self.expires_in_seconds),
            self.name,
            tuple(self.scopes or ("label",)),
            None if self.key_id is None else key_id_of(self.key_id),
            life_of(self.key_expires_in_seconds),
            None if self.session_id is None else session_id_of(self.session_id),
        )


class InvitationOut(FromRecord):
    """An invitation without its secret, which is stored nowhere."""

    id: Annotated[str, wire_id("inv")] = Field(
        validation_alias="invitation_id",
        examples=["inv_019aa3c4d5e67f8091a2b3c4d5e6f708"],
        description="`inv_` and 32 hexadecimal digits.",
    )
    state: InvitationState = Field(
        description="`open` while it can be used; ended ones are kept for 30 days."
    )
    key_id: str = Field(description="The key that it signs in with.", examples=[KEY_EXAMPLE])
    name: str = Field(description="Name of that key: who is invited.")
    scopes: list[Scope] = Field(description="What that key allows.")
    path: str = Field(description="The page that it leads to.")
    created_at: Time = Field(description="When it was made.")
    expires_at: Time = Field(description="Until when it can be used.")


class InvitationMade(InvitationOut):
    """A new invitation, with its link: this once."""

    link: str | None = Field(
        description="The link for one person: an address where `CELEUS_PUBLIC_URL` names the"
        " service, else a path of it. It is shown in this answer alone: null where the request is"
        " repeated under its `Idempotency-Key`."
    )


def _answer(made: MadeInvitation, link: str | None) -> bytes:
    answer = InvitationMade(**dict(InvitationOut.model_validate(made.record)), link=link)
    return answer.model_dump_json().encode()


def _link(context: Context, path: str) -> str:
    return (context.settings.public_url or "").rstrip("/") + path


class InvitationPage(BaseModel):
    """Some invitations, the newest first."""

    data: list[InvitationOut] = Field(description="At most `limit` of them.")
    next: Annotated[str | None, wire_id("inv")] = Field(
        description="Give it as `after` for the next page."
    )


@router.post(
    "",
    operation_id="create_invitation",
    summary="Invite a person",
    status_code=201,
    response_model=InvitationMade,
    responses=responses(
        errors.InvalidValue,
        errors.IdempotencyKeyReused,
        errors.KeyNotFound,
        errors.KeyRetired,
        errors.SessionNotFound,
        errors.Busy,
    ),
)
async def create_invitation(
    context: Administers, body: InvitationIn, attempt: AttemptOf
) -> Response:
    """Make a link that signs one browser in, once; the link is in this answer alone.

    Somebody new gets a key of the caller's project, whose secret nobody is shown.
    """
    new = body.request
    return await attempt.answer(
        201,
        lambda made: _answer(made, _link(context, made.path)),
        lambda once: people.invite_person(context, new, once),
        lambda body: f"{router.prefix}/{body['id']}",
        kept=lambda made: _answer(made, None),
    )


@router.get(
    "",
    operation_id="list_invitations",
    summary="List invitations",
    response_model=InvitationPage,
)
async def list_invitations(
    context: Administers,
    state: Annotated[InvitationState | None, Query(description="Those in this state.")] = None,
    limit: Limit = PAGE_DEFAULT,
    after: Annotated[
        str | None,
        Query(description="`next` of the page before.", json_schema_extra=form_of("inv")),
    ] = None,
) -> dict[str, Any]:
    """From the newest on: those to the caller's project, the ended ones for 30 days."""
    cursor = cursor_of("inv", after)
    found, last = await people.page_of_invitations(context, limit, cursor, state)
    return {"data": found, "next": last}


@router.get(
    "/{invitation_id}",
    operation_id="get_invitation",
    summary="Get an invitation",
    response_model=InvitationOut,
    responses=responses(errors.InvitationNotFound),
)
async def get_invitation(context: Administers, invitation_id: InvitationId) -> InvitationRecord:
    """The invitation without its link."""
    return await people.get_invitation(context, invitation_id)


@router.post(
    "/{invitation_id}/revoke",
    operation_id="revoke_invitation",
    summary="Withdraw an invitation",
    response_model=InvitationOut,
    responses=responses(errors.InvitationNotFound, errors.Busy),
)
async def revoke_invitation(context: Administers, invitation_id: InvitationId) -> InvitationRecord:
    """End an open link, and its key if nobody has signed in with it.

    One that was used stays `used`: revoke its key to end the access.
    """
    return await people.withdraw(context, invitation_id)

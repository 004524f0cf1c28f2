"""Routes of keys and their schemas: what an admin of a project may do with its keys."""

import re
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from celeus import errors
from celeus.api.access.parameters import NAME, PAGE_DEFAULT, PAGE_MOST, Administers
from celeus.api.pools.losses import STRICT
from celeus.api.sessions.opening_models import AS_WHOLE
from celeus.api.wire.idempotency import AttemptOf
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.records import FromRecord, Time
from celeus.operations.access import people
from celeus.operations.access.keys import LONGEST_LIFE, KeyRecord, MadeKey, NewKey
from celeus.operations.access.people import KeyFilter
from celeus.operations.runtime.caller_cache import SCOPES, Scope

router = APIRouter(prefix="/v1/keys", tags=["access"], route_class=JsonRoute)

KEY_EXAMPLE = "1f2e3d4c5b6a7988"
_KEY_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)
_FORM: JsonDict = {"pattern": "^[0-9a-f]{16}$"}
MOST_SECONDS = int(LONGEST_LIFE.total_seconds())

Name = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        pattern=NAME,
        description="Whom or what it is for: 1 to 200 characters that can be printed. A rater of"
        " a panel has the name of their key.",
        examples=["Anna"],
    ),
]
Scopes = Annotated[
    list[Scope],
    Field(
        min_length=1,
        max_length=len(SCOPES),
        description="What it allows; `admin` includes all, `manage` includes `read`, and `label`"
        " alone is blind. Nobody gives a scope they lack.",
    ),
]

Seconds = Annotated[int, Field(ge=1, le=MOST_SECONDS), AS_WHOLE]


def life_of(seconds: int | None) -> timedelta | None:
    """A length of time as it travels; None has no end."""
    return None if seconds is None else timedelta(seconds=seconds)


class KeyIn(BaseModel):
    """A new key for a program, which sends it with its requests."""

    model_config = STRICT | ConfigDict(
        json_schema_extra={"examples": [{"name": "nightly", "scopes": ["manage", "label"]}]}
    )

    name: Name
    scopes: Scopes
    expires_in_seconds: Seconds | None = Field(
        None, description="How long it works; null: until it is revoked."
    )

    @property
    def request(self) -> NewKey:
        """Return what is asked for."""
        return NewKey(self.name, tuple(self.scopes), expires_in=life_of(self.expires_in_seconds))


class KeyChange(BaseModel):
    """The changes of a key."""

    model_config = STRICT | ConfigDict(json_schema_extra={"examples": [{"scopes": ["read"]}]})

    scopes: Scopes


class KeyOut(FromRecord):
    """A key without its secret, which is stored nowhere."""

    id: str = Field(
        validation_alias="key_id",
        examples=[KEY_EXAMPLE],
        description="16 hexadecimal digits, the second part of the key: no secret. The ledger"
        " names by it who sent an event.",
    )
    name: str = Field(description="Whom or what it is for.")
    scopes: list[Scope] = Field(description="What it allows.")
    person: bool = Field(
        description="Whether it is a person's: made by an invitation, or used to sign in."
    )
    created_at: Time = Field(description="When it was made.")
    expires_at: Time | None = Field(description="When it ends by itself; null: never.")
    last_used_at: Time | None = Field(
        description="When it was last used, to the minute; null: never."
    )
    revoked_at: Time | None = Field(description="When it was revoked; null: it was not.")
    replaced_by: str | None = Field(description="The key made when this one was rotated, if any.")


class KeyMade(KeyOut):
    """A new key, with what its holder sends: this once."""

    key: str | None = Field(
        description="The key, to be sent as `Authorization: Bearer ce_…`. It is shown in this"
        " answer alone: null where the request is repeated under its `Idempotency-Key`."
    )


def _made(made: MadeKey, *, shown: bool) -> bytes:
    answer = KeyMade(**dict(KeyOut.model_validate(made.record)), key=made.token if shown else None)
    return answer.model_dump_json().encode()


class KeyPage(BaseModel):
    """Some keys, the newest first."""

    data: list[KeyOut] = Field(description="At most `limit` of them.")
    next: str | None = Field(description="Give it as `after` for the next page.")


def key_id_of(wire: str) -> str:
    """The id of a key; a malformed one is the id of no key."""
    if _KEY_ID.fullmatch(wire) is None:
        raise errors.KeyNotFound(
            "There is no key of this id.", field="key_id", rule="16 hexadecimal digits"
        )
    return wire


async def _key_of_path(
    key_id: Annotated[
        str,
        Path(
            description="The key by its id: 16 hexadecimal digits.",
            examples=[KEY_EXAMPLE],
            json_schema_extra=_FORM,
        ),
    ],
) -> str:
    return key_id_of(key_id)


KeyId = Annotated[str, Depends(_key_of_path)]


@router.post(
    "",
    operation_id="create_key",
    summary="Create a key for a program",
    status_code=201,
    response_model=KeyMade,
    responses=responses(errors.InvalidValue, errors.IdempotencyKeyReused, errors.Busy),
)
async def create_key(context: Administers, body: KeyIn, attempt: AttemptOf) -> Response:
    """It belongs to the caller's project. The key is in this answer alone: keep it."""
    new = body.request
    return await attempt.answer(
        201,
        lambda made: _made(made, shown=True),
        lambda once: people.make_key(context, new, once),
        lambda body: f"{router.prefix}/{body['id']}",
        kept=lambda made: _made(made, shown=False),
    )


class KeysQuery(BaseModel):
    """The conditions that listed keys meet."""

    person: bool | None = Field(None, description="Those of people (`true`), or those of programs.")
    usable: bool | None = Field(
        None, description="Those that work (`true`), or those that are revoked or expired."
    )
    pending: bool | None = Field(
        None,
        description="Those with an open invitation that nobody has signed in with yet (`true`),"
        " or all others.",
    )
    limit: int = Field(PAGE_DEFAULT, ge=1, le=PAGE_MOST, description="Entries of a page.")
    after: str | None = Field(
        None, description="`next` of the page before.", json_schema_extra=_FORM
    )


@router.get("", operation_id="list_keys", summary="List keys", response_model=KeyPage)
async def list_keys(context: Administers, asked: Annotated[KeysQuery, Query()]) -> dict[str, Any]:
    """From the newest on: those of the caller's project, members and programs."""
    chosen = KeyFilter(asked.person, asked.usable, asked.pending)
    found, last = await people.page_of_keys(context, asked.limit, asked.after, chosen)
    return {"data": found, "next": last}


@router.get(
    "/{key_id}",
    operation_id="get_key",
    summary="Get a key",
    response_model=KeyOut,
    responses=responses(errors.KeyNotFound),
)
async def get_key(context: Administers, key_id: KeyId) -> KeyRecord:
    """The key without its secret."""
    return await people.get_key(context, key_id)


@router.patch(
    "/{key_id}",
    operation_id="change_key",
    summary="Change what a key allows",
    response_model=KeyOut,
    responses=responses(errors.InvalidValue, errors.KeyNotFound, errors.LastAdmin, errors.Busy),
)
async def change_key(context: Administers, key_id: KeyId, body: KeyChange) -> KeyRecord:
    """Whoever is signed in with it has the new scopes within `CELEUS_KEY_CACHE_SECONDS`."""
    return await people.change_scopes(context, key_id, body.scopes)


@router.post(
    "/{key_id}/revoke",
    operation_id="revoke_key",
    summary="Revoke a key",
    response_model=KeyOut,
    responses=responses(errors.KeyNotFound, errors.LastAdmin, errors.Busy),
)
async def revoke_key(context: Administers, key_id: KeyId) -> KeyRecord:
    """For good: it and its links no longer work, and its browsers are signed out."""
    return await people.remove_key(context, key_id)

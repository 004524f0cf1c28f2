"""Routes of what is deleted: sessions, and what is left of them."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from celeus import errors
from celeus.api.access.parameters import (
    NO_NUL,
    PAGE_DEFAULT,
    Administers,
    AfterSession,
    Limit,
    Reads,
    SessionId,
    cursor_of,
    form_of,
    pool_id_of,
)
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.records import FromRecord, Time, wire_id
from celeus.operations.deletion import sessions

router = APIRouter(prefix="/v1", tags=["sessions"], route_class=JsonRoute)

DIGEST = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"


class IssuedOut(FromRecord):
    """A certificate that was issued for a session."""

    digest: str = Field(description="SHA-256 of its bytes.")
    final: bool = Field(description="Whether the session was closed by then.")
    issued_at: Time = Field(description="The time that it says.")


class Tombstone(FromRecord):
    """The record that is kept of a deleted session."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "ses_019aa0b2c3d47e5f8a9b0c1d2e3f4a5c",
                    "pool_id": "pool_019aa0b2c3d47e5f8a9b0c1d2e3f4a5b",
                    "pool_digest": DIGEST,
                    "plan_digest": DIGEST,
                    "commitment": DIGEST,
                    "ledger_head": DIGEST,
                    "sequence": 804,
                    "revision": 1,
                    "state": "closed",
                    "pushed": False,
                    "opened_at": "2026-11-20T09:00:00.000000+00:00",
                    "deleted_at": "2026-11-23T14:00:00.000000+00:00",
                    "deleted_by": "1f2e3d4c5b6a7988",
                    "issued": 1,
                    "certificates": [
                        {
                            "digest": DIGEST,
                            "final": True,
                            "issued_at": "2026-11-21T14:00:00.000000+00:00",
                        }
                    ],
                }
            ]
        }
    )

    id: Annotated[str, wire_id("ses")] = Field(
        validation_alias="session_id", description="The id that it had; no other session gets it."
    )
    pool_id: Annotated[str, wire_id("pool")] = Field(
        description="The pool that it was on, deleted itself perhaps."
    )
    pool_digest: str = Field(description="The digest of that pool.")
    plan_digest: str = Field(description="SHA-256 of what was fixed before the first draw.")
    commitment: str = Field(description="The hash of its seed.")
    ledger_head: str = Field(description="The head of its ledger's chain.")
    sequence: int = Field(description="How many events its ledger had.")
    revision: int = Field(description="One more than there were corrections.")
    state: Literal["active", "paused", "closed"] = Field(
        validation_alias="lifecycle",
        description="As it was set: what was not closed had no final certificate.",
    )
    pushed: bool = Field(description="Whether it ran elsewhere and was pushed.")
    opened_at: Time = Field(description="When it was opened.")
    deleted_at: Time = Field(description="When it was deleted.")
    deleted_by: str | None = Field(
        description="Id of the key it was deleted with; null where none was used."
    )
    issued: int = Field(description="How many certificates were issued for it.")
    certificates: list[IssuedOut] = Field(description="The latest 100 of them, the last one first.")


class TombstonePage(BaseModel):
    """Some deleted sessions, those opened last first."""

    data: list[Tombstone] = Field(description="At most `limit` of them.")
    next: Annotated[str | None, wire_id("ses")] = Field(
        description="Give it as `after` for the next page."
    )


Purge = Annotated[
    str | None,
    Query(
        max_length=200,
        pattern=NO_NUL,
        description="The session's name or its id. Needed where certificates were issued for it:"
        " what they rest on is gone then.",
    ),
]
OfPool = Annotated[
    str | None,
    Query(description="Sessions on this pool alone.", json_schema_extra=form_of("pool")),
]


@router.delete(
    "/sessions/{session_id}",
    operation_id="delete_session",
    summary="Delete an archived session",
    response_model=Tombstone,
    responses=responses(
        errors.SessionNotFound,
        errors.SessionNotArchived,
        errors.SessionCertified,
        errors.SessionInUse,
        errors.InvalidValue,
        errors.Busy,
    ),
)
async def delete_session(
    context: Administers, session_id: SessionId, purge: Purge = None
) -> sessions.Tombstone:
    """For good, with its judgements; what is left is told, and counts among the pool's sessions.

    A session for which certificates were issued is deleted only where `purge` names it. One that a
    pool is based on stays.
    """
    return await sessions.delete_session(context, session_id, purge)


@router.get(
    "/tombstones",
    operation_id="list_tombstones",
    summary="List deleted sessions",
    response_model=TombstonePage,
    responses=responses(errors.InvalidValue, errors.PoolNotFound),
)
async def list_tombstones(
    context: Reads,
    pool_id: OfPool = None,
    limit: Limit = PAGE_DEFAULT,
    after: AfterSession = None,
) -> dict[str, Any]:
    """Their tombstones hold digests, and nothing that was judged."""
    pool = None if pool_id is None else pool_id_of(pool_id)
    found = await sessions.list_tombstones(context, pool, limit, cursor_of("ses", after))
    return {"data": found, "next": found[-1].session_id if len(found) == limit else None}


@router.get(
    "/tombstones/{session_id}",
    operation_id="get_tombstone",
    summary="What is left of a deleted session",
    response_model=Tombstone,
    responses=responses(errors.SessionNotFound),
)
async def get_tombstone(context: Reads, session_id: SessionId) -> sessions.Tombstone:
    """A certificate of it whose digest stands here was issued here; another was not kept."""
    return await sessions.get_tombstone(context, session_id)

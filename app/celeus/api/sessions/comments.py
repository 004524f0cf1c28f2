"""Comments of judges on the wire: read by those who see the session, erased by who runs it."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from celeus.api.access.parameters import NO_NUL, Limit, Manages, Reads, SessionId
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.records import Time
from celeus.errors import InvalidValue, SessionNotFound
from celeus.operations.sessions.labelling import comments

router = APIRouter(prefix="/v1/sessions", tags=["history"], route_class=JsonRoute)

MOST_ROUNDS = 2**31 - 1


class Comment(BaseModel):
    """A judge's comment on a judgement. It is part of neither the ledger nor a certificate."""

    round: int = Field(description="The round that was judged.")
    item: str = Field(description="Id of its item in the pool.")
    comment: str = Field(description="As it was said last.")
    key: str = Field(description="Id of the key that said it; empty for none.")
    author: str | None = Field(description="The name of that key; null where it is gone.")
    worker: str = Field(description="Who judged, or corrected, with that key.")
    rater: str | None = Field(description="The rater of a panel; null where there is none.")
    at: Time = Field(description="When it was said, by the clock of the database.")


class CommentPage(BaseModel):
    """Comments in the order of rounds; ``next`` goes into ``after`` for the following page."""

    data: list[Comment] = Field(
        description="About `limit` of them: all comments on a round come together."
    )
    next: int | None = Field(description="Give it as `after` for the next page; null at the end.")


class Erasure(BaseModel):
    """The number of erased comments."""

    erased: int = Field(description="Comments that were erased for good.")


@router.get(
    "/{session_id}/comments",
    operation_id="list_comments",
    summary="What judges commented",
    response_model=CommentPage,
    responses=responses(SessionNotFound),
)
async def list_comments(
    context: Reads,
    session_id: SessionId,
    after: Annotated[int, Query(ge=0, le=MOST_ROUNDS, description="Rounds behind this one.")] = 0,
    limit: Limit = 1_000,
) -> dict[str, Any]:
    """One of each key on a round, of a panel one of each rater."""
    rows, last = await comments.list_comments(context, session_id, after, limit)
    return {"data": rows, "next": last}


@router.delete(
    "/{session_id}/comments",
    operation_id="erase_comments",
    summary="Erase comments",
    responses=responses(SessionNotFound, InvalidValue),
)
async def erase_comments(
    context: Manages,
    session_id: SessionId,
    round_: Annotated[
        int | None,
        Query(alias="round", ge=1, le=MOST_ROUNDS, description="Those on this round."),
    ] = None,
    key: Annotated[
        str | None, Query(max_length=200, pattern=NO_NUL, description="Those said with this key.")
    ] = None,
) -> Erasure:
    """For good: they may hold personal data. The judgements stay as they are."""
    if round_ is None and key is None:
        rule = "a round, a key, or both"
        raise InvalidValue(f"give {rule}", field="query", rule=rule)
    return Erasure(erased=await comments.erase_comments(context, session_id, round_, key))

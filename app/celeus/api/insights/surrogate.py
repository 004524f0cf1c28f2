"""Beside the interval, on the wire: how good a session's surrogate is, and who is judging."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from celeus.api.access.parameters import NO_NUL, Reads, SessionId
from celeus.api.sessions.schema import Time
from celeus.api.wire.etags import KnownTags, still_holds, weak
from celeus.api.wire.problems import responses
from celeus.errors import Busy, InvalidValue, SessionNotFound
from celeus.operations.insights import surrogate as insights
from celeus.operations.sessions.ledger import moment

router = APIRouter(prefix="/v1/sessions", tags=["insights"])


class SurrogatePart(BaseModel):
    """A part of the pool: what its surrogates say, and what its losses are."""

    items: int
    labels: int = Field(description="Judged and folded rounds on its items.")
    least: float = Field(description="Smallest surrogate score of its items.")
    largest: float
    surrogate: float = Field(description="Mean surrogate score of its items.")
    used: float = Field(description="Mean surrogate that the policy bets with now.")
    loss: float | None = Field(
        description="Mean loss, estimated from its labels with weights that make up for unequal"
        " probabilities of being drawn; null without labels."
    )
    low: float | None = Field(description="Rough 95 % limits of `loss`: to look at, not a claim.")
    high: float | None


class Surrogate(BaseModel):
    """Calibration of the surrogate by bins of its score and by strata.

    Of two systems all of it is about the difference of their losses, and its surrogate is the
    difference of theirs. It speaks of the items that may be drawn, not of those known beforehand. A
    bad surrogate costs width, never validity: nothing certified rests on this answer.
    """

    policy: str
    strategy: str | None
    round: int
    revision: int
    width: float
    used: bool = Field(description="The policy looks at the surrogate.")
    labels: int
    surrogate: float = Field(description="Mean over these items.")
    loss: float | None = Field(description="Mean over them, estimated.")
    correlation: float | None = Field(description="Of surrogate and loss; null if one is constant.")
    curve: list[SurrogatePart] = Field(description="At most 10 bins of equal counts.")
    strata: list[SurrogatePart] = Field(description="Empty where the policy has none.")


class WorkerDraw(BaseModel):
    """A draw that waits for its judgement, and when its lease ends."""

    round: int
    expires_at: Time


class Worker(BaseModel):
    """What a worker did, and what it holds."""

    worker: str
    labels_minute: int
    labels_hour: int
    last_label_at: Time | None
    draws: list[WorkerDraw]


class WorkerPage(BaseModel):
    """Workers by name; ``next`` goes into ``after`` for the following page.

    `labels_hour` counts from `since`: an hour before `at`, or later where there were very many.
    The sums are those of all pages.
    """

    at: Time
    since: Time
    labels_minute: int
    labels_hour: int
    draws: int
    data: list[Worker]
    next: str | None


@router.get(
    "/{session_id}/surrogate",
    operation_id="get_surrogate",
    summary="How good the surrogate is",
    response_model=Surrogate,
    responses=responses(SessionNotFound, InvalidValue, Busy)
    | {304: {"description": "The ETag still holds."}},
)
async def get_surrogate(context: Reads, session_id: SessionId, known: KnownTags = None) -> Response:
    """From the folded rounds. Send the ETag back as If-None-Match to ask for nothing new."""
    if known:
        etag = f'"{await insights.surrogate_version(context, session_id)}"'
        if still_holds(known, etag):
            return Response(status_code=304, headers=weak(etag))
    document, version = await insights.surrogate(context, session_id)
    return Response(
        orjson.dumps(document), media_type="application/json", headers=weak(f'"{version}"')
    )


@router.get(
    "/{session_id}/workers",
    operation_id="list_workers",
    summary="Who is judging, and what each holds",
    response_model=WorkerPage,
    responses=responses(SessionNotFound),
)
async def list_workers(
    context: Reads,
    session_id: SessionId,
    after: Annotated[str | None, Query(max_length=128, pattern=NO_NUL)] = None,
    limit: Annotated[int, Query(ge=1, le=1_000, description="Entries of a page.")] = 100,
) -> dict[str, Any]:
    """Workers are known by the name they give, whatever their keys."""
    page = await insights.workers(context, session_id, after, limit)
    data = page["data"]
    return page | {
        "at": moment(page["at"]),
        "since": moment(page["since"]),
        "next": data[-1]["worker"] if len(data) == limit else None,
    }

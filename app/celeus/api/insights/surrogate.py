"""Beside the interval, on the wire: how good a session's surrogate is, and who is judging."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from celeus.api.access.parameters import NO_NUL, Reads, SessionId
from celeus.api.wire.etags import KnownTags, still_holds, weak
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.records import Time
from celeus.errors import Busy, InvalidValue, SessionNotFound
from celeus.operations.insights import surrogate as insights

router = APIRouter(prefix="/v1/sessions", tags=["insights"], route_class=JsonRoute)


class SurrogatePart(BaseModel):
    """A part of the pool: what its surrogates say, and what its losses are."""

    items: int = Field(description="How many items of the pool lie in this part.")
    labels: int = Field(description="Judged and folded rounds on its items.")
    least: float = Field(description="Smallest surrogate score of its items.")
    largest: float = Field(description="Largest surrogate score of its items.")
    surrogate: float = Field(description="Mean surrogate score of its items.")
    used: float = Field(
        description="Mean surrogate as the labels correct it by stratum; several columns are"
        " weighed beyond."
    )
    loss: float | None = Field(
        description="Mean loss, estimated from its labels with weights that make up for unequal"
        " probabilities of being drawn; null without labels."
    )
    low: float | None = Field(description="Rough 95 % limits of `loss`: to look at, not a claim.")
    high: float | None = Field(description="Upper rough limit of `loss`.")


class Surrogate(BaseModel):
    """Calibration of the surrogate by bins of its score and by strata.

    Of two systems all of it is about the difference of their losses, and its surrogate is the
    difference of theirs. It speaks of the items that may be drawn, not of those known beforehand. A
    bad surrogate costs width, never validity: nothing certified rests on this answer.
    """

    policy: str = Field(description="How items are chosen and bet on.")
    strategy: str | None = Field(
        description="How probabilities of the items became surrogate and proxy; null where they"
        " have none."
    )
    round: int = Field(description="The last folded round that it speaks of.")
    revision: int = Field(description="Counts amendments from 1, as in the session.")
    width: float = Field(description="Width of the session's interval at that round.")
    used: bool = Field(description="The policy looks at the surrogate.")
    labels: int = Field(description="Folded rounds that have a loss.")
    surrogate: float = Field(description="Mean over these items.")
    loss: float | None = Field(description="Mean over them, estimated.")
    correlation: float | None = Field(description="Of surrogate and loss; null if one is constant.")
    curve: list[SurrogatePart] = Field(description="At most 10 bins of equal counts.")
    strata: list[SurrogatePart] = Field(description="Empty where the policy has none.")


class WorkerDraw(BaseModel):
    """A draw that waits for its judgement, and when its lease ends."""

    round: int = Field(description="The round that is to be judged.")
    expires_at: Time = Field(description="After this others may get the item.")


class Worker(BaseModel):
    """A worker's labels, and the draws it holds."""

    worker: str = Field(description="The name it gave; workers of several keys may share it.")
    labels_minute: int = Field(description="Judgements in the last minute.")
    labels_hour: int = Field(description="Judgements since `since`.")
    last_label_at: Time | None = Field(
        description="When it judged last in that time; null where it did not."
    )
    draws: list[WorkerDraw] = Field(description="What it holds and has not judged.")


class WorkerPage(BaseModel):
    """Workers by name; ``next`` goes into ``after`` for the following page.

    `labels_hour` counts from `since`: an hour before `at`, or later where there were very many.
    The sums are those of all pages.
    """

    at: Time = Field(description="When this was counted.")
    since: Time = Field(description="From when `labels_hour` counts, an hour before or later.")
    labels_minute: int = Field(description="Judgements of all workers in the last minute.")
    labels_hour: int = Field(description="Judgements of all workers since `since`.")
    draws: int = Field(description="Draws that all workers hold together.")
    data: list[Worker] = Field(description="At most `limit` of them, by name.")
    next: str | None = Field(description="Give it as `after` for the next page; null at the end.")


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
    after: Annotated[
        str | None,
        Query(max_length=128, pattern=NO_NUL, description="`next` of the page before."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1_000, description="Entries of a page.")] = 100,
) -> dict[str, Any]:
    """Workers are known by the name they give, whatever their keys."""
    page = await insights.workers(context, session_id, after, limit)
    data = page["data"]
    return page | {"next": data[-1]["worker"] if len(data) == limit else None}

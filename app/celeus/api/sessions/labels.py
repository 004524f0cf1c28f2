"""The judgements of a session on the wire: by page, as a file, and all that a round had."""

from collections.abc import AsyncIterator
from dataclasses import fields
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from celeus.api.access.parameters import NO_NUL, PAGE_DEFAULT, PAGE_MOST, Reads, SessionId
from celeus.api.pools.items import ItemOut, item_members, whole_item
from celeus.api.sessions.label_files import FORMATS, writer_of
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.records import Time
from celeus.errors import InvalidValue, RoundNotDrawn, SessionNotFound
from celeus.operations.runtime.context import Context
from celeus.operations.sessions.labelling import labels
from celeus.operations.sessions.labelling.labels import LabelFilter, Labels

router = APIRouter(prefix="/v1/sessions", tags=["history"], route_class=JsonRoute)

MOST = 2**31 - 1


class LabelsQuery(BaseModel):
    """The judgements to export, and the format."""

    format_: Literal["json", "jsonl", "csv", "parquet"] = Field(
        "json",
        alias="format",
        description="`json`: a page; `jsonl`, `csv` and `parquet`: all of them, as a file.",
    )
    above: float | None = Field(
        None, allow_inf_nan=False, description="With a loss above this one; 0: the wrong ones."
    )
    person: str | None = Field(
        None,
        max_length=200,
        pattern=NO_NUL,
        description="Of this person: the name of a key, a worker or a rater.",
    )
    column: str | None = Field(
        None, max_length=200, pattern=NO_NUL, description="The group column that `value` is of."
    )
    value: str | None = Field(
        None, max_length=1_000, pattern=NO_NUL, description="Of items in this group."
    )
    commented: bool = Field(False, description="Those with a comment alone.")
    amended: bool = Field(False, description="Those that were corrected alone.")
    unjudgeable: bool = Field(False, description="Those that say that nobody can judge the item.")
    differs: bool = Field(
        False,
        description="Of a session that checks a judge: those of people who say otherwise than it.",
    )
    payload: bool = Field(False, description="Include what was shown of the item.")
    order: Literal["oldest", "newest"] = Field(
        "oldest", description="By when they were judged first."
    )
    limit: int = Field(
        PAGE_DEFAULT, ge=1, le=PAGE_MOST, description="Entries of a page; files have them all."
    )
    after: int | None = Field(
        None, ge=0, le=MOST, description="`next` of the page before; not with a file."
    )

    @property
    def wanted(self) -> LabelFilter:
        """The conditions among these."""
        conditions = self.model_dump(include={field.name for field in fields(LabelFilter)})
        return LabelFilter(**conditions, newest=self.order == "newest")


class Statement(BaseModel):
    """A judgement of an item."""

    loss: float | None = Field(
        description="The loss as it counts; null where nobody can judge the item, and where there"
        " are several `losses`."
    )
    losses: dict[str, float | None] | None = Field(
        description="By metric or system; of two systems by `a` and `b`, if they were given."
    )
    label: int | None = Field(description="The true class, where the judge gave that.")
    preference: Literal["a", "b", "tie", "both_bad"] | None = Field(
        description="Which of two systems was preferred, where the judge said that, wherever its"
        " answer stood."
    )
    grade: int | None = Field(description="By how many grades; null without a preference.")
    unjudgeable: str | None = Field(description="Why nobody can judge the item.")


class Label(Statement):
    """A judgement as it stands, after its corrections."""

    sequence: int = Field(description="Of the event in the ledger by which it was judged first.")
    round: int = Field(description="The round that it is of.")
    kind: Literal["label", "rating", "outcome"] = Field(
        description="`rating`: of one rater of a panel; `outcome`: what a panel has come to."
    )
    item: str = Field(description="Id of the item.")
    index: int = Field(description="Place of the item in its pool, from 0.")
    person: str | None = Field(description="Name of the key it was given with; else of the worker.")
    worker: str | None = Field(description="Who said it, by its own word.")
    rater: str | None = Field(description="The rater of a panel; null elsewhere.")
    turn: int | None = Field(description="For which time the rater judged the round.")
    left: Literal["a", "b"] | None = Field(
        description="Which of two systems' answers stood on the left; null elsewhere."
    )
    drawn_at: Time = Field(description="When the item was drawn.")
    judged_at: Time = Field(description="When it was judged first.")
    in_interval: bool = Field(description="Whether the session's interval speaks for its round.")
    corrections: int = Field(description="How often it was corrected.")
    corrected_at: Time | None = Field(description="When, the last time.")
    corrected_by: str | None = Field(description="By whom, the last time.")
    correction_reason: str | None = Field(description="Why, the last time.")
    comment: str | None = Field(description="What was added to it; several comments by lines.")
    probability: float = Field(
        description="That this item was drawn in this round, of those not drawn before."
    )
    weight: float | None = Field(
        description="The item's weight, as uploaded; null where all items count the same."
    )
    groups: dict[str, str] | None = Field(
        description="The item's group in every group column; null where there are none."
    )
    payload: dict[str, Any] | str | None = Field(
        None, description="What was shown of the item; left out unless asked for."
    )


class LabelPage(BaseModel):
    """Judgements by page. They are no uniform sample: the mean of their losses is not the score."""

    data: list[Label] = Field(
        description="At most `limit` of them; few, or none, where few fit the filter."
    )
    next: int | None = Field(description="Give it as `after` for the next page; null at the end.")


class RoundEvent(Statement):
    """An event of a round."""

    sequence: int = Field(description="Place in the ledger.")
    kind: Literal["draw", "observation", "unjudgeable", "amendment", "rating"] = Field(
        description="What happened."
    )
    at: Time = Field(description="Time of the database.")
    person: str | None = Field(description="Name of the key it came with; else rater or worker.")
    worker: str | None = Field(description="Who it was, by its own word.")
    rater: str | None = Field(description="The rater of a panel; null elsewhere.")
    turn: int | None = Field(description="For which time the rater judged; null for the first.")
    author: str | None = Field(description="Of a correction: who signed it.")
    reason: str | None = Field(description="Of a correction: why it was made.")


class RoundComment(BaseModel):
    """A judge's comment."""

    comment: str = Field(description="As it was said last.")
    person: str | None = Field(description="Name of the key; null where that is gone.")
    worker: str = Field(description="Who said it, by its own word.")
    rater: str | None = Field(description="The rater of a panel; null elsewhere.")
    at: Time = Field(description="When it was said.")


class RoundHistory(BaseModel):
    """A round: its item, its draw, and all that was said of it."""

    round: int = Field(description="Its number, from 1.")
    item: ItemOut = Field(description="The item, with its payload.")
    probability: float = Field(
        description="That this item was drawn in this round, of those not drawn before."
    )
    groups: dict[str, str] | None = Field(
        description="The item's group in every group column; null where there are none."
    )
    in_interval: bool = Field(description="Whether the session's interval speaks for it.")
    left: Literal["a", "b"] | None = Field(
        description="Which of two systems' answers stood on the left; null elsewhere."
    )
    events: list[RoundEvent] = Field(description="In the order of the ledger, the draw first.")
    comments: list[RoundComment] = Field(description="In the order of their times.")


@router.get(
    "/{session_id}/labels",
    operation_id="list_labels",
    summary="The judgements, as they stand",
    response_model=LabelPage,
    responses=responses(SessionNotFound, InvalidValue)
    | {
        200: {
            "content": {media: {} for media in sorted(FORMATS.values())},
            "description": "A page, or a file with all of them.",
        }
    },
)
async def list_labels(
    context: Reads, session_id: SessionId, params: Annotated[LabelsQuery, Query()]
) -> Response:
    """No uniform sample: the mean of these losses is not the score.

    Items were drawn with unequal `probability`. The score is the interval of the session; what an
    analysis of your own has to weight by is in every row.

    A file is as of one moment, however long it takes; a page may have fewer than `limit` and a
    `next`. With `payload` a page ends behind 4 MiB.
    """
    found = await labels.labels_of(context, session_id)
    wanted = params.wanted
    found.check_filter(wanted)
    if params.format_ == "json":
        return await _page(context, found, wanted, params)
    if params.after is not None:
        raise InvalidValue(
            "A file has all judgements.", field="after", rule="left out", value=params.after
        )
    name = f"ses_{session_id.hex}.labels.{params.format_}"
    return StreamingResponse(
        _file(context, found, wanted, params),
        media_type=FORMATS[params.format_],
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@router.get(
    "/{session_id}/rounds/{round}",
    operation_id="get_round",
    summary="What happened in a round",
    response_model=RoundHistory,
    responses=responses(SessionNotFound, RoundNotDrawn),
)
async def get_round(
    context: Reads,
    session_id: SessionId,
    round_: Annotated[int, Path(alias="round", ge=1, le=MOST, description="One that was drawn.")],
) -> Response:
    """The draw, every judgement and correction, and the comments."""
    found = await labels.round_history(context, session_id, round_)
    body = found | {"item": whole_item(found["item"])}
    return Response(orjson.dumps(body), media_type="application/json")


async def _page(
    context: Context, found: Labels, wanted: LabelFilter, params: LabelsQuery
) -> Response:
    rows, following = await labels.label_page(context, found, wanted, params.limit, params.after)
    if params.payload and rows:
        shown = await anext(_with_payloads(context, found, rows))
        if len(shown) < len(rows):
            rows, following = shown, shown[-1]["sequence"]
        rows = shown
    body = {"data": rows, "next": following}
    return Response(orjson.dumps(body), media_type="application/json")


async def _with_payloads(
    context: Context, found: Labels, rows: list[dict[str, Any]]
) -> AsyncIterator[list[dict[str, Any]]]:
    """The same rows with their payloads, as many at a time as fit an answer."""
    done = 0
    async for items in labels.payloads(context, found, rows):
        part = rows[done : done + len(items)]
        done += len(items)
        yield [
            row | {"payload": item_members(item)["payload"]}
            for row, item in zip(part, items, strict=True)
        ]


async def _file(
    context: Context, found: Labels, wanted: LabelFilter, params: LabelsQuery
) -> AsyncIterator[bytes]:
    writer = await writer_of(params.format_, found, payload=params.payload)
    yield writer.head
    async for rows in labels.all_labels(context, found, wanted):
        if params.payload:
            async for part in _with_payloads(context, found, rows):
                yield await writer.encoded(part)
        else:
            yield await writer.encoded(rows)
    yield await writer.end()

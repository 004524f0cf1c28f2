"""The claims of a session that makes a table of them, on the wire, and those added to it."""

import csv
import io
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Header, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from celeus.api.access.parameters import (
    NO_NUL,
    PAGE_DEFAULT,
    Limit,
    Manages,
    Reads,
    SessionId,
)
from celeus.api.insights.csv_cells import cell
from celeus.api.pools.items import item_members
from celeus.api.sessions.opening_models import STRICT, AskedQuestion
from celeus.api.sessions.session_models import Decision, Scale, ScoreInterval
from celeus.api.wire.idempotency import AttemptOf
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.core.insights.claim_rows import ClaimQuery, Order
from celeus.core.ledger import AddedQuestion, Addition
from celeus.core.plans.claim import MOST_QUESTIONS
from celeus.errors import (
    Busy,
    IdempotencyKeyReused,
    InvalidValue,
    SessionClosed,
    SessionFixed,
    SessionNotFound,
    UnreachablePrecision,
)
from celeus.operations.insights import table as insights

router = APIRouter(prefix="/v1/sessions", tags=["insights"], route_class=JsonRoute)

CSV = "text/csv"
HEADER = (
    "metric",
    "column",
    "value",
    "items",
    "known",
    "level",
    "estimate",
    "lower",
    "upper",
    "score",
    "better",
    "unit",
    "score_estimate",
    "score_lower",
    "score_upper",
    "precision",
    "met",
    "met_at",
    "whole",
    "added",
    "drawn",
    "judged",
    "in_interval",
    "answers",
)


class ClaimRounds(BaseModel):
    """Counts of the session's rounds that fell into the claim."""

    drawn: int = Field(description="Rounds given out on items of the claim.")
    judged: int = Field(description="Those whose judgement has arrived.")
    in_interval: int = Field(description="Judged ones that its interval speaks for.")


class TableClaimOut(BaseModel):
    """One claim: a metric over all items, or over those of one group.

    Each interval holds by itself at its `level`; `promises` of the session's status says what holds
    of several. Those to show of claims picked after looking are in the certificate, as `picked`.
    """

    metric: str = Field(description="Name of the metric in the pool.")
    column: str | None = Field(description="The group column; null for all items.")
    value: str | None = Field(description="The value of the group in it.")
    items: int = Field(description="Items of the pool that the claim is about.")
    known: int = Field(description="Items whose loss was known before the first draw.")
    level: float | None = Field(
        description="The interval misses the truth with at most this probability; null of a group"
        " that is judged whole, whose interval is certain."
    )
    precision: float | None = Field(
        description="Width at which its target is met; null where none is asked for."
    )
    estimate: float = Field(description="Of the mean loss.")
    lower: float = Field(description="Lower end of the interval, on the metric's scale.")
    upper: float = Field(description="Upper end of the interval, on the metric's scale.")
    score: ScoreInterval = Field(
        description="The same interval by the name and in the direction that people use."
    )
    sentence: str = Field(description="What the claim says by itself, as people name its score.")
    scale: Scale = Field(description="Where every loss of the metric lies.")
    whole: bool = Field(
        description="The group is judged to its last item, unless the budget ends first."
    )
    added: int | None = Field(
        description="After how many labels it was added, from the reserve of alpha; null of the"
        " claims that the session was opened with."
    )
    met: bool | None = Field(
        description="Its target is met: precision and answers; null where it has none."
    )
    met_at: int | None = Field(description="The session's round that it has it since.")
    rounds: ClaimRounds = Field(description="How far drawing, judging and folding have come in it.")
    answers: list[Decision] = Field(description="To its questions; `round` is the session's.")


class TableClaims(BaseModel):
    """All claims of a session, or those asked for."""

    session_id: str = Field(description="`ses_` and 32 hexadecimal digits.")
    sequence: int = Field(description="Number of the last event in its ledger.")
    round: int = Field(description="The last round in the intervals.")
    account: Literal["each", "together", "selected", "closed"] = Field(
        description="What holds of several claims: see `account` of the opening."
    )
    alpha: float = Field(description="As the session was opened; `account` tells what it bounds.")
    data: list[TableClaimOut] = Field(description="In the order asked for.")


class LaterClaim(BaseModel):
    """A claim to add: a metric over all items, or over those of one group."""

    model_config = ConfigDict(
        **STRICT,
        json_schema_extra={
            "examples": [
                {
                    "metric": "faithful",
                    "column": "topic",
                    "value": "law",
                    "level": 0.005,
                    "precision": 0.1,
                }
            ]
        },
    )

    metric: str = Field(pattern=NO_NUL, description="Name of a metric of the pool.")
    column: str | None = Field(
        None, pattern=NO_NUL, description="A group column; left out for all items."
    )
    value: str | None = Field(None, pattern=NO_NUL, description="The value of the group in it.")
    level: float = Field(description="Taken from the session's `reserve` for good.")
    precision: float | None = Field(
        None, description="Width at which its target is met; null for questions only."
    )
    questions: list[AskedQuestion] = Field(
        [],
        max_length=MOST_QUESTIONS,
        description="One-sided questions, answered at the claim's level.",
    )

    @property
    def addition(self) -> Addition:
        """The claim in the core's words."""
        questions = tuple(AddedQuestion(one.side, one.threshold) for one in self.questions)
        return Addition(**dict(self) | {"questions": questions})


@router.post(
    "/{session_id}/claims",
    operation_id="add_session_claim",
    summary="Add a claim at a level from the reserve",
    status_code=201,
    response_model=TableClaimOut,
    responses=responses(
        SessionNotFound,
        InvalidValue,
        UnreachablePrecision,
        IdempotencyKeyReused,
        SessionClosed,
        SessionFixed,
        Busy,
    ),
)
async def add_session_claim(
    context: Manages, session_id: SessionId, body: LaterClaim, attempt: AttemptOf
) -> Response:
    """It knows what was judged before, and bets on draws made from now on.

    Refused while a draw is out: pause the session, have what is out judged, add the claim, resume.
    """
    return await attempt.answer(
        201,
        orjson.dumps,
        lambda once: insights.add_claim(context, session_id, body.addition, once),
        lambda _: f"{router.prefix}/ses_{session_id.hex}/claims",
    )


@router.get(
    "/{session_id}/claims",
    operation_id="get_session_claims",
    summary="The claims of a session with metrics or groups",
    response_model=TableClaims,
    responses=responses(SessionNotFound, InvalidValue, Busy)
    | {200: {"content": {CSV: {"schema": {"type": "string"}}}}},
)
async def get_session_claims(  # noqa: PLR0913, PLR0917 -- one parameter each of the request
    context: Reads,
    session_id: SessionId,
    sort: Annotated[
        Order,
        Query(
            description="`plan`: all items first, then by group column; `score`: the least loss"
            " first; `width`: the widest interval on its scale first."
        ),
    ] = "plan",
    metric: Annotated[str | None, Query(description="Claims about this metric.")] = None,
    column: Annotated[
        str | None, Query(description="Claims about this group column; empty: about all items.")
    ] = None,
    format_: Annotated[
        Literal["json", "csv"] | None,
        Query(alias="format", description="Default: what `Accept` asks for, else `json`."),
    ] = None,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
) -> Any:  # noqa: ANN401 -- plain values, or a file
    """As they stand. `format=csv`, or `Accept: text/csv`, downloads them as a table."""
    found = await insights.table_claims(context, session_id, ClaimQuery(sort, metric, column))
    wants_csv = format_ == "csv" or (format_ is None and accept.startswith(CSV))
    if not wants_csv:
        return found
    name = f'attachment; filename="{found["session_id"]}.claims.csv"'
    return Response(
        _csv(found["data"]),
        media_type=f"{CSV}; charset=utf-8",
        headers={"Content-Disposition": name, "Vary": "Accept"},
    )


class ClaimItem(BaseModel):
    """An item that a claim speaks of, and what a judge said of it."""

    index: int = Field(description="Place in upload order, from 0.")
    id: str = Field(description="The id it was uploaded with.")
    payload: dict[str, Any] | str | None = Field(
        description="What judges are shown, as it was uploaded; null for nothing."
    )
    round: int | None = Field(description="The round it was judged in; null while it is not.")
    losses: dict[str, float | None] | None = Field(
        description="By metric, null where nobody could tell it; null while it is not judged."
    )
    known: list[str] = Field(description="Metrics whose loss was known before the first draw.")


class ClaimItems(BaseModel):
    """Some items of a claim, in upload order."""

    data: list[ClaimItem] = Field(description="At most `limit` of them, or as many as fit 4 MiB.")
    next: int | None = Field(description="Give it as `after` for the next page; null at the end.")


@router.get(
    "/{session_id}/items",
    operation_id="list_claim_items",
    summary="The items that a claim speaks of",
    response_model=ClaimItems,
    responses=responses(SessionNotFound, InvalidValue, Busy),
)
async def list_claim_items(  # noqa: PLR0913, PLR0917 -- one parameter each of the request
    context: Reads,
    session_id: SessionId,
    column: Annotated[
        str | None, Query(description="A group column of the session; left out for all items.")
    ] = None,
    value: Annotated[str | None, Query(description="The value of the group in it.")] = None,
    judged: Annotated[
        bool | None, Query(description="Judged items alone, or the others; left out: all.")
    ] = None,
    limit: Limit = PAGE_DEFAULT,
    after: Annotated[
        int | None, Query(ge=0, le=2**31 - 1, description="`next` of the page before.")
    ] = None,
) -> Response:
    """In upload order, with payloads and losses; a page ends early behind 4 MiB of payloads."""
    part = insights.Part(column, value, judged)
    page, following = await insights.part_items(context, session_id, part, limit, after)
    told = ("round", "losses", "known")
    data = [item_members(one.item) | {name: getattr(one, name) for name in told} for one in page]
    body = {"data": data, "next": following}
    return Response(orjson.dumps(body), media_type="application/json")


def _csv(rows: list[dict[str, Any]]) -> str:
    """The claims as CSV (RFC 4180), one a line."""
    text = io.StringIO()
    writer = csv.DictWriter(text, HEADER, extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        score = row["score"]
        writer.writerow(
            {name: cell(value) for name, value in row.items()}
            | {f"score_{end}": score[end] for end in ("estimate", "lower", "upper")}
            | {"score": cell(score["name"]), "better": score["better"], "unit": score["unit"]}
            | row["rounds"]
            | {"answers": "; ".join(map(_answer, row["answers"]))}
        )
    return text.getvalue()


def _answer(one: Mapping[str, Any]) -> str:
    return f"{one['side']} {one['threshold']:g}: {one['answer']}"

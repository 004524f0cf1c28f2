"""A session's past on the wire: trajectory and ledger, and what judges commented."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from celeus.api.access.parameters import NO_NUL, Limit, Manages, Reads, SessionId
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.records import Time
from celeus.core.plans.claim import Target
from celeus.errors import InvalidValue, SessionNotFound
from celeus.operations.sessions import history
from celeus.operations.sessions.event_rows import KIND_NAMES
from celeus.operations.sessions.labelling import comments

router = APIRouter(prefix="/v1/sessions", tags=["history"], route_class=JsonRoute)

Most = Annotated[int, Query(ge=1, le=10_000, description="Entries of a page.")]
MOST_ROUNDS = 2**31 - 1


class TrajectoryPoint(BaseModel):
    """The answer after a folded round."""

    round: int = Field(description="Rounds folded so far.")
    sequence: int = Field(description="Number of the last event of the request that brought it.")
    estimate: float = Field(description="Of the mean loss.")
    lower: float = Field(description="Lower end of the interval.")
    upper: float = Field(description="Upper end of the interval.")


class Trajectory(BaseModel):
    """The interval round by round; ``next`` goes into ``after`` for the following page.

    ``revision`` counts amendments: another one than before means that earlier pages are outdated.
    """

    alpha: float = Field(
        description="All intervals cover the truth at once with probability at least 1 - alpha."
    )
    target: Target = Field(description="Whether the claim is about the pool, or its population.")
    policy: str | None = Field(
        description="How items are chosen and bet on; null where there is no single interval."
    )
    method_version: str = Field(description="The version of the mathematics that the plan fixed.")
    revision: int = Field(description="Counts amendments from 1.")
    data: list[TrajectoryPoint] = Field(description="In the order of rounds.")
    next: int | None = Field(description="Give it as `after` for the next page; null at the end.")


class LedgerEntry(BaseModel):
    """One event. ``at`` is the database's time; ``detail`` holds worker, label, author, reason.

    Of a change and of a claim that is added, ``detail`` is what was asked.
    """

    sequence: int = Field(description="Place in the ledger, from 1 without gaps.")
    kind: Literal[
        "draw", "observation", "unjudgeable", "amendment", "change", "rating", "addition"
    ] = Field(description="What happened.")
    round: int | None = Field(
        description="The round it is about; null for a change or an added claim."
    )
    item: int | None = Field(description="Of a draw: index of the item in its pool.")
    q: float | None = Field(
        description="Of a draw: probability of this item among those not yet drawn."
    )
    strata_q: str | None = Field(
        description="Of one item in every stratum: little-endian float64 in hexadecimal."
    )
    seen: int | None = Field(
        description="Of a draw: sequence of the last event that its probabilities knew of."
    )
    loss: float | None = Field(
        description="Of a judgement that gives one number: the loss, on the scale of the pool."
    )
    losses: list[float | None] | None = Field(
        None, description="Of several systems or metrics, in their order."
    )
    detail: dict[str, Any] | None = Field(
        description="What else belongs to the event; null where nothing does."
    )
    at: Time = Field(description="Time of the database.")


class LedgerPage(BaseModel):
    """Events in order; ``next`` goes into ``after`` for the following page."""

    data: list[LedgerEntry] = Field(description="In the order of their sequence.")
    next: int | None = Field(description="Give it as `after` for the next page; null at the end.")


@router.get(
    "/{session_id}/trajectory",
    operation_id="get_trajectory",
    summary="The interval round by round",
    response_model=Trajectory,
    responses=responses(SessionNotFound),
)
async def get_trajectory(
    context: Reads,
    session_id: SessionId,
    after: Annotated[int, Query(ge=0, le=MOST_ROUNDS, description="Rounds behind this one.")] = 0,
    limit: Most = 1_000,
    points: Annotated[
        int | None, Query(ge=1, le=10_000, description="Thin evenly to about this many.")
    ] = None,
) -> dict[str, Any]:
    """Rounds after ``after``; thinning keeps the last one."""
    session, found = await history.trajectory(context, session_id, after, limit, points)
    named = ("alpha", "target", "policy", "method_version", "revision")
    return {name: session[name] for name in named} | {
        "data": found,
        "next": found[-1]["round"] if len(found) == limit else None,
    }


@router.get(
    "/{session_id}/ledger",
    operation_id="get_ledger",
    summary="Draws, observations and changes in order",
    response_model=LedgerPage,
    responses=responses(SessionNotFound),
)
async def get_ledger(
    context: Reads,
    session_id: SessionId,
    after: Annotated[
        int, Query(ge=0, le=2**31 - 1, description="Events behind this sequence.")
    ] = 0,
    limit: Most = 1_000,
) -> dict[str, Any]:
    """Append-only: a page once read never changes."""
    rows, last = await history.ledger(context, session_id, after, limit)
    data = [row | {"kind": KIND_NAMES[row["kind"]]} for row in rows]
    return {"data": data, "next": last}


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

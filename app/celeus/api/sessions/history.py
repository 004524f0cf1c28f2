"""A session's past on the wire: trajectory and ledger."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from celeus.api.access.parameters import Reads, SessionId
from celeus.api.sessions.schema import Time
from celeus.api.wire.problems import responses
from celeus.errors import SessionNotFound
from celeus.operations.sessions import history
from celeus.operations.sessions.ledger import KIND_NAMES, moment

router = APIRouter(prefix="/v1/sessions", tags=["history"])


class TrajectoryPoint(BaseModel):
    """The answer after a folded round."""

    round: int
    sequence: int
    estimate: float
    lower: float
    upper: float


class Trajectory(BaseModel):
    """The interval round by round; ``next`` goes into ``after`` for the following page.

    ``revision`` counts amendments: another one than before means that earlier pages are outdated.
    """

    alpha: float
    target: Literal["pool", "population"]
    policy: str | None
    method_version: str
    revision: int
    data: list[TrajectoryPoint]
    next: int | None


class LedgerEntry(BaseModel):
    """One event. ``at`` is the database's time; ``detail`` holds worker, label, author, reason.

    Of a change and of a claim that is added, ``detail`` is what was asked.
    """

    sequence: int
    kind: Literal["draw", "observation", "unjudgeable", "amendment", "change", "rating", "addition"]
    round: int | None
    item: int | None
    q: float | None
    strata_q: str | None = Field(
        description="Of one item in every stratum: little-endian float64 in hexadecimal."
    )
    seen: int | None
    loss: float | None
    losses: list[float | None] | None = Field(
        None, description="Of several systems or metrics, in their order."
    )
    detail: dict[str, Any] | None
    at: Time


class LedgerPage(BaseModel):
    """Events in order; ``next`` goes into ``after`` for the following page."""

    data: list[LedgerEntry]
    next: int | None


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
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
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
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
) -> dict[str, Any]:
    """Append-only: a page once read never changes."""
    rows, last = await history.ledger(context, session_id, after, limit)
    return {"data": [_entry(row) for row in rows], "next": last}


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"kind": KIND_NAMES[row["kind"]], "at": moment(row["at"])}

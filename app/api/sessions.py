"""Sessions on the wire: open, list, read, change."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from app.api.bodies import JsonRoute
from app.api.dependencies import NO_NUL, Manages, Reads, SessionId, cursor_of, pool_id_of
from app.api.problems import responses
from app.core.plan import Claim
from app.errors import (
    InvalidValue,
    PoolNotFound,
    PoolNotSealed,
    SessionClosed,
    SessionNotFound,
    UnreachablePrecision,
)
from app.operations import sessions

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=JsonRoute)

STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
SessionState = Literal[
    "active", "target_reached", "decided", "budget_spent", "exhausted", "paused", "closed"
]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
OPENING: JsonDict = {
    "pool_id": "pool_019aa0b2c3d47e5f8a9b0c1d2e3f4a5b",
    "target": "pool",
    "alpha": 0.05,
    "precision": 0.05,
}
SESSION: JsonDict = {
    "id": "ses_019aa0b2c3d47e5f8a9b0c1d2e3f4a5c",
    "pool_id": "pool_019aa0b2c3d47e5f8a9b0c1d2e3f4a5b",
    "state": "active",
    "target": "pool",
    "alpha": 0.05,
    "policy": "sharp",
    "strategy": "A",
    "method_version": "celeus-1",
    "round": 412,
    "estimate": 0.163,
    "lower": 0.121,
    "upper": 0.207,
    "width": 0.086,
    "precision": 0.05,
    "budget": 1737,
    "items": 1737,
    "stopped": False,
    "stop_reason": None,
    "rounds": {"drawn": 415, "observed": 413, "folded": 412, "pending": 2, "waiting": 1},
    "forecast": {"round": 400, "labels_left": 310, "low": 250, "high": 380},
    "warnings": [],
    "sequence": 828,
    "revision": 1,
    "lease_seconds": 300,
    "commitment": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "ledger_head": "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
    "created_at": "2026-11-21T09:30:00+00:00",
}


class Parameters(BaseModel):
    """Parameters of the policy; each has a default, and none can make an interval wrong."""

    model_config = STRICT

    beta: float | None = Field(None, description="Share of uniform draws, above 0, at most 1.")
    range: Literal["floor", "exact", "global"] | None = Field(
        None, description="How the range of a signal is bounded; `exact` costs O(items) a round."
    )
    theta: float | None = Field(None, description="Weight of the upward bet, between 0 and 1.")
    c: float | None = Field(None, description="Softness of the cap on the bets.")
    recentred: bool | None = Field(
        None, description="`evalue` only: false ignores drawing without replacement; not a claim."
    )


class SessionOpening(BaseModel):
    """What is to be certified, and how."""

    model_config = ConfigDict(**STRICT, json_schema_extra={"examples": [OPENING]})

    pool_id: str = Field(description="A sealed pool.", max_length=64)
    policy: str | None = Field(
        None, min_length=1, max_length=64, description="How items are chosen and bet on."
    )
    target: Literal["pool", "population"] = Field(
        "pool",
        description="Mean loss over the pool, or over the population it is an iid sample of.",
    )
    strategy: Literal["A", "B", "C"] | None = Field(
        None, description="Surrogate and proxy, where the items have probabilities."
    )
    alpha: float = Field(0.05, description="The interval covers with probability 1 - alpha.")
    precision: float | None = Field(None, description="Interval width at which to stop.")
    budget: int | None = Field(None, description="Most draws; default: the whole pool.")
    lease_seconds: int | None = Field(
        None, ge=1, le=604_800, description="How long a worker may hold a draw unheard."
    )
    population_bound: Literal["pairs", "hoeffding", "kl", "clopper_pearson", "margin"] | None = (
        Field(None, description="How the interval reaches from the pool to its population.")
    )
    alpha2: float | None = Field(None, description="Share of alpha for the population bound.")
    margin: float | None = Field(None, description="Half-width for a dependent pool.")
    margin_assumption: str = Field("", max_length=2000, pattern=NO_NUL)
    parameters: Parameters = Field(default_factory=Parameters)


class Rounds(BaseModel):
    """Counts of rounds. ``waiting`` ones are judged but follow one that is not."""

    drawn: int
    observed: int
    folded: int
    pending: int
    waiting: int


class Forecast(BaseModel):
    """Labels left until the precision: median, and the 10 and 90 % of simulated futures."""

    round: int
    labels_left: int
    low: int
    high: int


class Session(BaseModel):
    """Where a session stands. The interval speaks for the folded rounds."""

    model_config = ConfigDict(json_schema_extra={"examples": [SESSION]})

    id: str
    pool_id: str
    state: SessionState
    target: Literal["pool", "population"]
    alpha: float
    policy: str
    strategy: str | None
    method_version: str
    round: int
    estimate: float
    lower: float
    upper: float
    width: float
    precision: float | None
    budget: int
    items: int
    stopped: bool
    stop_reason: Literal["target_reached", "decided", "exhausted", "budget_spent"] | None
    rounds: Rounds
    forecast: Forecast | None
    warnings: list[str]
    sequence: int
    revision: int
    lease_seconds: int
    commitment: str
    ledger_head: str | None = Field(
        None, description="Head of the hash chain over the ledger; null for older sessions."
    )
    created_at: Time


class BlindSession(BaseModel):
    """The session as a key without scope `read` sees it: judges are not told where it stands."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"id": SESSION["id"], "state": SESSION["state"]}]}
    )

    id: str
    state: SessionState


class SessionPage(BaseModel):
    """Sessions, newest first; ``next`` goes into ``after`` for the following page."""

    data: list[Session]
    next: str | None


class SessionChange(BaseModel):
    """New settings; what is left out stays."""

    model_config = ConfigDict(**STRICT, json_schema_extra={"examples": [{"precision": 0.03}]})

    precision: float | None = Field(None, description="null: no precision.")
    budget: int | None = None
    state: Literal["active", "paused", "closed"] | None = Field(
        None, description="Resume, pause, or close for good."
    )


@router.post(
    "",
    operation_id="open_session",
    summary="Open a session on a sealed pool",
    status_code=201,
    response_model=Session,
    responses=responses(InvalidValue, UnreachablePrecision, PoolNotFound, PoolNotSealed),
)
async def open_session(rooms: Manages, body: SessionOpening) -> dict[str, Any]:
    """Freeze the plan and publish the commitment to the secret seed."""
    claim = Claim(
        target=body.target,
        alpha=body.alpha,
        precision=body.precision,
        budget=body.budget,
        population_bound=body.population_bound,
        alpha2=body.alpha2,
        margin=body.margin,
        margin_assumption=body.margin_assumption,
    )
    opening = sessions.Opening(
        pool_id=pool_id_of(body.pool_id),
        claim=claim,
        policy=body.policy,
        strategy=body.strategy,
        lease_seconds=body.lease_seconds,
        parameters=body.parameters.model_dump(exclude_none=True),
    )
    return await sessions.open_session(rooms, opening)


@router.get(
    "",
    operation_id="list_sessions",
    summary="List sessions, newest first",
    response_model=SessionPage,
    responses=responses(InvalidValue, PoolNotFound),
)
async def list_sessions(
    rooms: Reads,
    pool_id: Annotated[str | None, Query(max_length=64)] = None,
    state: SessionState | None = None,
    after: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> dict[str, Any]:
    """Filter by pool and state; pages are keyed by the last session seen."""
    wanted = sessions.Filter(
        pool_id=None if pool_id is None else pool_id_of(pool_id),
        state=state,
        before=cursor_of("ses", after),
        limit=limit,
    )
    found = await sessions.list_sessions(rooms, wanted)
    return {"data": found, "next": found[-1]["id"] if len(found) == limit else None}


@router.get(
    "/{session_id}",
    operation_id="get_session",
    summary="Where a session stands",
    response_model=Session,
    responses=responses(SessionNotFound) | {304: {"description": "The ETag still holds."}},
)
async def get_session(rooms: Reads, session_id: SessionId, request: Request) -> Response:
    """The interval now. Send the ETag back as If-None-Match to poll for nothing."""
    body, version = await sessions.get_session(rooms, session_id)
    etag = f'"{version}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    known = [tag.strip().removeprefix("W/") for tag in _if_none_match(request).split(",")]
    if etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


@router.patch(
    "/{session_id}",
    operation_id="change_session",
    summary="Change precision or budget; pause, resume or close",
    response_model=Session,
    responses=responses(SessionNotFound, InvalidValue, UnreachablePrecision, SessionClosed),
)
async def change_session(
    rooms: Manages, session_id: SessionId, body: SessionChange
) -> dict[str, Any]:
    """Going on with another precision keeps the guarantee; closing is irrevocable."""
    wanted = sessions.Settings(
        precision=body.precision if "precision" in body.model_fields_set else "unchanged",
        budget=body.budget,
        lifecycle=body.state,
    )
    return await sessions.change_session(rooms, session_id, wanted)


def _if_none_match(request: Request) -> str:
    return str(request.headers.get("if-none-match", ""))

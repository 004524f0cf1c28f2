"""Routes of pools and their schemas."""

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from celeus import errors
from celeus.api.access.parameters import (
    NAME,
    PAGE_DEFAULT,
    Administers,
    AfterPool,
    Archived,
    Limit,
    Manages,
    PoolId,
    Reads,
    cursor_of,
)
from celeus.api.pools.losses import (
    LEVELS,
    METRICS,
    STRICT,
    AnySystemsIn,
    BasedOnIn,
    BasedOnOut,
    LevelsIn,
    LineupOut,
    LossIn,
    LossOut,
    MetricOut,
    MetricsIn,
    ScoreIn,
    ScoreOut,
    SystemsOut,
    check_alone,
    levels_of,
    metrics_of,
    scale_of,
)
from celeus.api.pools.pool_models import (
    ITEM_EXAMPLE,
    ITEM_SCHEMA,
    LINEUP_EXAMPLE,
    PAIR_EXAMPLE,
    TABLE_EXAMPLE,
)
from celeus.api.sessions.instructions import InstructionsOut
from celeus.api.sessions.opening_models import Markdown
from celeus.api.wire.idempotency import AttemptOf
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import ColumnOut, responses
from celeus.api.wire.records import FromRecord, Time, wire_id
from celeus.intake.table.item_columns import named
from celeus.operations.pools import pools
from celeus.operations.pools.imports import Rows
from celeus.operations.pools.pools import NewPool
from celeus.operations.pools.record import PoolRecord
from celeus.operations.sessions.labelling import instructions
from celeus.operations.sessions.labelling.instructions import Instructions

router = APIRouter(prefix="/v1/pools", tags=["pools"], route_class=JsonRoute)


class PoolIn(BaseModel):
    """A new pool, with a `loss` or `metrics`; many items are better sent to its `items` later."""

    model_config = STRICT | ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "exam", "loss": {"kind": "zero_one"}},
                {
                    "name": "exam, by its accuracy",
                    "loss": {"kind": "zero_one"},
                    "score": {"name": "accuracy", "better": "higher"},
                },
                {
                    "name": "small",
                    "loss": {"kind": "zero_one"},
                    "items": [ITEM_EXAMPLE],
                    "sealed": True,
                },
                {
                    "name": "summaries",
                    "metrics": {
                        "faithful": {
                            "kind": "zero_one",
                            "score": {"name": "faithfulness", "better": "higher"},
                        },
                        "stars": {"kind": "bounded", "lower": 0, "upper": 4},
                    },
                    "items": [TABLE_EXAMPLE],
                },
                {
                    "name": "two models",
                    "systems": {"a": "qwen-72b", "b": "llama-70b", "normalisation": "whitespace"},
                    "loss": {"kind": "preference"},
                    "items": [PAIR_EXAMPLE],
                },
                {
                    "name": "exam, second version",
                    "loss": {"kind": "zero_one"},
                    "based_on": {
                        "session": "ses_019aa0b2c3d47e5f8a9b0c1d2e3f4a5c",
                        "labels_seen": "no",
                    },
                },
                {
                    "name": "three models",
                    "systems": {"names": ["qwen-72b", "llama-70b", "yi-34b"]},
                    "loss": {"kind": "zero_one"},
                    "items": [LINEUP_EXAMPLE],
                },
            ]
        }
    )

    name: str = Field(
        min_length=1,
        max_length=200,
        pattern=NAME,
        description="What people call it: 1 to 200 characters.",
    )
    loss: LossIn | None = Field(
        None,
        description="What one judgement measures, and on which scale; left out where there are"
        " `metrics`.",
    )
    metrics: MetricsIn | None = Field(None, description=METRICS)
    score: ScoreIn | None = Field(
        None,
        description="What the mean loss is called where results are told; plan and certificate"
        " state it. Of two systems it is the score of each.",
    )
    systems: AnySystemsIn | None = Field(
        None,
        description="Compare two systems, `a` and `b`, or seek the best of several, `names`: every"
        " item carries what each answered.",
    )
    based_on: BasedOnIn | None = Field(
        None,
        description="A judged session on an earlier version's answers to the same items. With"
        " `systems`, a is that version: items carry `b` only.",
    )
    levels: LevelsIn | None = Field(None, description=LEVELS)
    instructions: Markdown | None = Field(
        None,
        description="What judges are told, as Markdown; sessions may have their own. `task` shows"
        " it, and no digest has it.",
    )
    # Of a list of junk one element is told, not all.
    items: list[Annotated[dict[str, Any], WithJsonSchema(ITEM_SCHEMA)]] | None = Field(
        None, fail_fast=True, description="Items to begin with, all of them or none."
    )
    sealed: bool = Field(False, description="Seal the pool at once.")


def _counted(reasons: dict[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in reasons.items() if count}


class KnownOut(FromRecord):
    """Losses known before the first draw, by reason, and items with bounds of their own."""

    items: int = Field(
        validation_alias="known", description="Items whose loss is known: they are never drawn."
    )
    reasons: Annotated[dict[str, int], AfterValidator(_counted)] = Field(
        description="How many of those, by the reason given."
    )
    bounded: int = Field(description="Further items whose loss has bounds of its own.")
    bounds: dict[str, int] = Field(description="How many of those, by the reason given.")


class LevelOut(FromRecord):
    """A named grade of the scale."""

    name: str = Field(description="What people call it.")
    grade: float = Field(description="Its place on the scale, in the direction of the `score`.")
    help: str | None = Field(description="When it is the right one.")


class PoolChange(BaseModel):
    """The changes of a pool, also a sealed one; a member left out stays as it is."""

    model_config = STRICT | ConfigDict(
        json_schema_extra={
            "examples": [{"instructions": "Judge only what is *said*."}, {"archived": True}]
        }
    )

    instructions: Markdown | None = Field(
        None,
        description="What judges are told, as Markdown; null for nothing. Sessions with"
        " instructions of their own keep these.",
    )
    archived: bool | None = Field(
        None,
        description="True takes it out of the lists, false back; its items and sessions stay.",
    )


def _by_name(metrics: object) -> object:
    if isinstance(metrics, tuple):
        return {metric.name: metric for metric in metrics} or None
    return metrics


def _or_null(value: object) -> object:
    return value or None


class IntakeOut(FromRecord):
    """The way in which a file was read: what was certain, given, and seen in it."""

    format: str | None = Field(
        description="What the file was: csv, jsonl, or the tool that wrote it; null where its rows"
        " were items of the announced type."
    )
    read_as: list[str] = Field(description="How it was read: its separator, its encoding.")
    columns: list[ColumnOut] = Field(description="Empty where its rows were items.")
    answers: dict[str, Any] = Field(
        description="What was answered, by the names of the members of the request."
    )
    rows: int = Field(description="How many rows it had.")
    items: int = Field(description="How many items came of them.")
    skipped: int = Field(description="How many rows were bad, and left out.")


class PoolOut(FromRecord):
    """A pool without its items."""

    id: Annotated[str, wire_id("pool")] = Field(
        validation_alias="pool_id",
        examples=["pool_019aa3c4d5e67f8091a2b3c4d5e6f708"],
        description="`pool_` and 32 hexadecimal digits.",
    )
    name: str = Field(description="What people call it.")
    loss: LossOut | None = Field(
        validation_alias="single_scale", description="Null where the pool has `metrics`."
    )
    score: ScoreOut | None = Field(
        validation_alias="single_score",
        description="What the mean loss is called; null where the pool has `metrics`.",
    )
    metrics: Annotated[dict[str, MetricOut] | None, BeforeValidator(_by_name)] = Field(
        description="The losses that a judgement gives, by name; null where it gives one."
    )
    levels: Annotated[list[LevelOut] | None, BeforeValidator(_or_null)] = Field(
        description="Named grades of the scale; null where there are none."
    )
    group_columns: dict[str, list[str]] = Field(
        description="The group columns, each with its values in the order of their codes."
    )
    systems: SystemsOut | LineupOut | None = Field(
        validation_alias="named",
        description="The two systems compared, or those among which the best is sought.",
    )
    based_on: BasedOnOut | None = Field(
        description="The judged session of an earlier version, if there is one."
    )
    sealed: bool = Field(
        description="Whether its items are frozen; sessions take sealed pools only."
    )
    items: int = Field(description="Number of items.")
    classes: int | None = Field(description="Number of classes, where items have probabilities.")
    columns: list[str] = Field(description="Names of the numeric columns.")
    groups: list[str] = Field(description="Names of the groups, in order of their codes.")
    known: Annotated[KnownOut | None, BeforeValidator(_or_null)] = Field(
        validation_alias="stated",
        description="What is known of single losses; null where nothing is.",
    )
    intake: IntakeOut | None = Field(
        description="How the file was read that it was made of; null where it was made of none."
    )
    digest: str | None = Field(description="SHA-256 that names the sealed pool.")
    archived: bool = Field(description="Whether lists leave it out.")
    created_at: Time = Field(description="When it was made.")
    sealed_at: Time | None = Field(
        description="When its items were frozen; null while it takes more."
    )


class PoolPage(BaseModel):
    """Some pools, the newest first."""

    data: list[PoolOut] = Field(description="At most `limit` of them, without their items.")
    next: Annotated[str | None, wire_id("pool")] = Field(
        description="Give it as `after` for the next page."
    )


@router.post(
    "",
    operation_id="create_pool",
    summary="Create a pool",
    status_code=201,
    response_model=PoolOut,
    responses=responses(
        errors.InvalidValue,
        errors.BadRows,
        errors.IdempotencyKeyReused,
        errors.PoolNotFound,
        errors.SessionNotFound,
        errors.SessionNotClosed,
        errors.EmptyPool,
        errors.Busy,
        errors.PoolTooLarge,
    ),
)
async def create_pool(context: Manages, body: PoolIn, attempt: AttemptOf) -> Response:
    """Nothing is kept when one of the items is bad."""
    check_alone(
        body.metrics,
        loss=body.loss,
        score=body.score,
        systems=body.systems,
        based_on=body.based_on,
    )
    metrics = metrics_of(body.metrics)
    if body.loss is None:
        scale, systems = metrics[0].scale, None
    else:
        scale, systems = scale_of(body.loss, body.systems)
    basis = None if body.based_on is None else body.based_on.request
    rows: Rows | None = None
    if body.items is not None:
        rows = list(range(1, len(body.items) + 1)), [named(item) for item in body.items]
    wanted = NewPool(
        body.name,
        scale,
        rows,
        sealed=body.sealed,
        named=systems,
        based_on=basis,
        score=None if body.score is None else body.score.of(scale, systems),
        metrics=metrics,
        levels=levels_of(body.levels),
        instructions=body.instructions,
    )
    return await attempt.answer(
        201,
        lambda record: PoolOut.model_validate(record).model_dump_json().encode(),
        lambda once: pools.create_pool(context, wanted, once),
        lambda body: f"{router.prefix}/{body['id']}",
    )


@router.get("", operation_id="list_pools", summary="List pools", response_model=PoolPage)
async def list_pools(
    context: Reads,
    limit: Limit = PAGE_DEFAULT,
    after: AfterPool = None,
    *,
    archived: Archived = False,
) -> dict[str, Any]:
    """From the newest on; a page may hold fewer than `limit`, where groups have long names."""
    before = cursor_of("pool", after)
    found, last = await pools.list_pools(context, limit, before, archived=archived)
    return {"data": found, "next": last}


@router.get(
    "/{pool_id}",
    operation_id="get_pool",
    summary="Get a pool",
    response_model=PoolOut,
    responses=responses(errors.PoolNotFound),
)
async def get_pool(context: Reads, pool_id: PoolId) -> PoolRecord:
    """The pool without its items."""
    return await pools.get_pool(context, pool_id)


@router.patch(
    "/{pool_id}",
    operation_id="change_pool",
    summary="Change what judges are told; archive a pool",
    response_model=PoolOut,
    responses=responses(errors.PoolNotFound, errors.InvalidValue, errors.PoolBusy),
)
async def change_pool(context: Manages, pool_id: PoolId, body: PoolChange) -> PoolRecord:
    """The instructions for judges, which are no part of what is sealed; and the archive.

    Lists leave an archived pool out; what is on it can still be read and judged.
    """
    # First what may be refused
    if body.archived is not None:
        await pools.archive_pool(context, pool_id, archived=body.archived)
    if "instructions" in body.model_fields_set:
        await instructions.change_pool_instructions(context, pool_id, body.instructions)
    return await pools.get_pool(context, pool_id)


class PoolDeleted(BaseModel):
    """A pool that is gone."""

    id: str = Field(description="The id that it had.")
    items: int = Field(description="How many items it had.")


@router.delete(
    "/{pool_id}",
    operation_id="delete_pool",
    summary="Delete an archived pool without sessions",
    responses=responses(
        errors.PoolNotFound, errors.PoolNotArchived, errors.PoolInUse, errors.PoolBusy
    ),
)
async def delete_pool(context: Administers, pool_id: PoolId) -> PoolDeleted:
    """For good, with its items. A pool with sessions stays: what they certify rests on it."""
    record = await pools.delete_pool(context, pool_id)
    return PoolDeleted(id=f"pool_{record.pool_id.hex}", items=record.items)


@router.get(
    "/{pool_id}/instructions",
    operation_id="get_pool_instructions",
    summary="What judges of a pool are told",
    response_model=InstructionsOut,
    responses=responses(errors.PoolNotFound),
)
async def get_pool_instructions(context: Reads, pool_id: PoolId) -> Instructions:
    """The instructions of the pool, and how they were changed."""
    return await instructions.pool_instructions(context, pool_id)


@router.post(
    "/{pool_id}/seal",
    operation_id="seal_pool",
    summary="Seal a pool",
    response_model=PoolOut,
    responses=responses(errors.PoolNotFound, errors.EmptyPool, errors.PoolBusy),
)
async def seal_pool(context: Manages, pool_id: PoolId) -> PoolRecord:
    """Freeze the items; sealing again changes nothing."""
    return await pools.seal_pool(context, pool_id)

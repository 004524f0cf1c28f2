"""Routes of pools and their schemas."""

import tempfile
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Annotated, Any, Literal, Self

import numpy as np
from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from app import errors
from app.api.bodies import JsonRoute
from app.api.dependencies import (
    NO_NUL,
    PAGE_DEFAULT,
    Limit,
    Manages,
    PoolId,
    Reads,
    cursor_of,
)
from app.api.ids import pool_wire
from app.api.itemschema import ITEM_EXAMPLE, ITEM_SCHEMA, UPLOAD_BODY
from app.api.problems import ProblemError, responses
from app.api.rows import read_rows
from app.api.uploads import format_of, spooled
from app.core.losses import LossKind, LossScale
from app.core.pool import Pool
from app.operations import pools
from app.operations.imports import Rows
from app.operations.poolrecord import PoolRecord
from app.operations.pools import ImportOptions, NewPool

PART_BYTES = 1 << 18

router = APIRouter(prefix="/v1/pools", tags=["pools"], route_class=JsonRoute)

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)


class LossIn(BaseModel):
    """Scale of the loss, fixed before any label is seen."""

    model_config = _STRICT

    kind: LossKind
    lower: float | None = Field(None, description="Left out for zero_one and cross_entropy.")
    upper: float | None = Field(
        None, description="Needed for cross_entropy, which is clipped there, and for bounded."
    )


class PoolIn(BaseModel):
    """A new pool; many items are better sent to its `items` afterwards."""

    model_config = _STRICT | ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "exam", "loss": {"kind": "zero_one"}},
                {
                    "name": "small",
                    "loss": {"kind": "zero_one"},
                    "items": [ITEM_EXAMPLE],
                    "sealed": True,
                },
            ]
        }
    )

    name: str = Field(min_length=1, max_length=200, pattern=NO_NUL)
    loss: LossIn
    # Of a list of junk one element is told, not all.
    items: list[Annotated[dict[str, Any], WithJsonSchema(ITEM_SCHEMA)]] | None = Field(
        None, fail_fast=True
    )
    sealed: bool = Field(False, description="Seal the pool at once.")


class LossOut(BaseModel):
    """Scale of the loss."""

    kind: LossKind
    lower: float
    upper: float


class PoolOut(BaseModel):
    """A pool without its items."""

    id: str = Field(examples=["pool_019aa3c4d5e67f8091a2b3c4d5e6f708"])
    name: str
    loss: LossOut
    sealed: bool
    items: int = Field(description="Number of items.")
    classes: int | None = Field(description="Number of classes, where items have probabilities.")
    columns: list[str] = Field(description="Names of the numeric columns.")
    groups: list[str] = Field(description="Names of the groups, in order of their codes.")
    digest: str | None = Field(description="SHA-256 that names the sealed pool.")
    created_at: datetime
    sealed_at: datetime | None

    @classmethod
    def of(cls, record: PoolRecord) -> Self:
        """The record as it travels."""
        return cls(
            id=pool_wire(record.pool_id),
            name=record.name,
            loss=LossOut(
                kind=record.scale.kind, lower=record.scale.lower, upper=record.scale.upper
            ),
            sealed=record.sealed,
            items=record.items,
            classes=record.classes,
            columns=list(record.columns),
            groups=list(record.groups),
            digest=record.digest,
            created_at=record.created_at,
            sealed_at=record.sealed_at,
        )


class PoolPage(BaseModel):
    """Some pools, the newest first."""

    data: list[PoolOut]
    next: str | None = Field(description="Give it as `after` for the next page.")


class ItemOut(BaseModel):
    """An item as a judge sees it."""

    index: int = Field(description="Place in upload order, from 0.")
    id: str
    payload: dict[str, Any] | str | None


class ItemPage(BaseModel):
    """Some items, in upload order."""

    data: list[ItemOut]
    next: int | None = Field(description="Give it as `after` for the next page.")


class ImportOut(BaseModel):
    """What an import did, or with `dry_run` would have done."""

    pool: PoolOut
    added: int
    skipped: int = Field(description="Bad rows left out; their faults are in `errors`.")
    errors: list[ProblemError]
    dry_run: bool


@router.post(
    "",
    operation_id="create_pool",
    summary="Create a pool",
    status_code=201,
    responses=responses(
        errors.InvalidValue, errors.BadRows, errors.EmptyPool, errors.UploadTooLarge
    ),
)
async def create_pool(rooms: Manages, body: PoolIn) -> PoolOut:
    """Nothing is kept when one of the items is bad."""
    scale = LossScale.of(body.loss.kind, body.loss.lower, body.loss.upper)
    rows: Rows | None = None
    if body.items is not None:
        rows = list(range(1, len(body.items) + 1)), list(body.items)
    wanted = NewPool(body.name, scale, rows, sealed=body.sealed)
    return PoolOut.of(await pools.create_pool(rooms, wanted))


@router.get("", operation_id="list_pools", summary="List pools")
async def list_pools(
    rooms: Reads,
    limit: Limit = PAGE_DEFAULT,
    after: Annotated[str | None, Query(description="`next` of the page before.")] = None,
) -> PoolPage:
    """From the newest on."""
    found = await pools.list_pools(rooms, limit, cursor_of("pool", after))
    more = len(found) == limit
    return PoolPage(
        data=[PoolOut.of(record) for record in found],
        next=pool_wire(found[-1].pool_id) if more else None,
    )


@router.get(
    "/{pool_id}",
    operation_id="get_pool",
    summary="Get a pool",
    responses=responses(errors.PoolNotFound),
)
async def get_pool(rooms: Reads, pool_id: PoolId) -> PoolOut:
    """The pool without its items."""
    return PoolOut.of(await pools.get_pool(rooms, pool_id))


@router.post(
    "/{pool_id}/items",
    operation_id="add_items",
    summary="Add items",
    openapi_extra=UPLOAD_BODY,
    responses=responses(
        errors.InvalidValue,
        errors.BadRows,
        errors.PoolNotFound,
        errors.PoolSealed,
        errors.PoolBusy,
        errors.UploadTooLarge,
        errors.UnsupportedFormat,
    ),
)
async def add_items(
    rooms: Manages,
    pool_id: PoolId,
    request: Request,
    on_error: Annotated[
        Literal["fail", "skip"], Query(description="`skip` keeps the good rows.")
    ] = "fail",
    *,
    dry_run: Annotated[bool, Query(description="Check everything and keep nothing.")] = False,
) -> ImportOut:
    """All rows or none, unless bad ones are skipped; up to 100 faults are told by line."""
    form = format_of(request)
    pools.check_open(await pools.get_pool(rooms, pool_id))
    options = ImportOptions(skip_bad_rows=on_error == "skip", dry_run=dry_run)
    async with spooled(request) as file:
        imported = await pools.add_items(rooms, pool_id, read_rows(file, form), options)
    return ImportOut(
        pool=PoolOut.of(imported.pool),
        added=imported.added,
        skipped=imported.skipped,
        errors=[ProblemError(**pools.fault_members(fault)) for fault in imported.faults],
        dry_run=dry_run,
    )


@router.get(
    "/{pool_id}/items",
    operation_id="list_items",
    summary="List items",
    responses=responses(errors.PoolNotFound),
)
async def list_items(
    rooms: Reads,
    pool_id: PoolId,
    limit: Limit = PAGE_DEFAULT,
    after: Annotated[
        int | None, Query(ge=0, le=2**31 - 1, description="`next` of the page before.")
    ] = None,
) -> ItemPage:
    """In upload order, with their payloads."""
    found = await pools.list_items(rooms, pool_id, limit, after)
    return ItemPage(
        data=[ItemOut(index=item.index, id=item.id, payload=item.payload) for item in found],
        next=found[-1].index if len(found) == limit else None,
    )


@router.get(
    "/{pool_id}/columns.npz",
    operation_id="get_columns",
    summary="Download the numeric columns",
    response_class=StreamingResponse,
    responses=responses(errors.PoolNotFound)
    | {200: {"content": {"application/octet-stream": {}}, "description": "A NumPy archive."}},
)
async def get_columns(rooms: Reads, pool_id: PoolId) -> StreamingResponse:
    """What a verifier needs: every column, `groups`, and the digests as text."""
    record, pool = await pools.columns(rooms, pool_id)
    file = await to_thread.run_sync(_archive, pool)
    name = f"{pool_wire(record.pool_id)}.npz"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if record.digest is not None:
        headers["ETag"] = f'"{record.digest}"'
    return StreamingResponse(_parts(file), media_type="application/octet-stream", headers=headers)


@router.post(
    "/{pool_id}/seal",
    operation_id="seal_pool",
    summary="Seal a pool",
    responses=responses(errors.PoolNotFound, errors.EmptyPool, errors.PoolBusy),
)
async def seal_pool(rooms: Manages, pool_id: PoolId) -> PoolOut:
    """Freeze the items; sealing again changes nothing."""
    return PoolOut.of(await pools.seal_pool(rooms, pool_id))


def _archive(pool: Pool) -> IO[bytes]:
    """The columns as an NPZ archive on disk, at its beginning."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is sent
    np.savez(
        file,
        allow_pickle=False,
        groups=np.array(pool.groups, dtype=np.str_),
        items_digest=np.array(pool.items_digest.hex()),
        digest=np.array(pool.digest),
        **pool.columns,
    )
    file.seek(0)
    return file


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while part := file.read(PART_BYTES):
            yield part

"""Routes of a pool's items: the upload, the list, the numeric columns."""

import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from typing import IO, Annotated, Any, Literal

import numpy as np
import orjson
from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from celeus import errors
from celeus.api.access.parameters import PAGE_DEFAULT, Limit, Manages, PoolId, Reads
from celeus.api.pools.pool_models import UPLOAD_BODY
from celeus.api.pools.pools import PoolOut
from celeus.api.pools.sheets import Limits
from celeus.api.pools.upload_rows import read_rows
from celeus.api.wire.idempotency import StreamedAttempt
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import ProblemError, responses
from celeus.api.wire.records import FromRecord
from celeus.api.wire.uploads import format_of, spooled
from celeus.core.pools.item import Item
from celeus.core.pools.pool import Pool, archive_arrays
from celeus.core.pools.systems import SIDES
from celeus.operations.pools import pools
from celeus.operations.pools.imports import ImportOptions

PART_BYTES = 1 << 18

router = APIRouter(prefix="/v1/pools", tags=["pools"], route_class=JsonRoute)


class SideOut(BaseModel):
    """The answer of one of two systems, as a judge sees it."""

    answer: str | None = Field(
        description="The answer as text; null where there is only a payload."
    )
    payload: dict[str, Any] | str | None = Field(
        description="What else was uploaded to be shown of it; null for nothing."
    )


class ItemOut(BaseModel):
    """An item as a judge sees it."""

    index: int = Field(description="Place in upload order, from 0.")
    id: str = Field(description="The id it was uploaded with, unique in its pool.")
    payload: dict[str, Any] | str | None = Field(
        description="What judges are shown, as it was uploaded; null for nothing."
    )
    a: SideOut | None = Field(None, description="What system a answered, if two are compared.")
    b: SideOut | None = Field(None, description="What system b answered.")
    answers: dict[str, SideOut] | None = Field(
        None,
        description="What every system answered, by its name, if the best of several is sought.",
    )


class ItemPage(BaseModel):
    """Some items, in upload order."""

    data: list[ItemOut] = Field(description="At most `limit` of them, or as many as fit 4 MiB.")
    next: int | None = Field(description="Give it as `after` for the next page; null at the end.")


class ImportOut(FromRecord):
    """The result of an import, or with `dry_run` of its check."""

    pool: PoolOut = Field(description="The pool afterwards, or as it is where nothing was kept.")
    added: int = Field(description="Rows that became items, or would have.")
    skipped: int = Field(description="Bad rows left out; their faults are in `errors`.")
    errors: list[ProblemError] = Field(
        validation_alias="faults", description="Faults of bad rows by line, the first 100."
    )
    dry_run: bool = Field(description="Whether everything was checked and nothing kept.")


@router.post(
    "/{pool_id}/items",
    operation_id="add_items",
    summary="Add items",
    openapi_extra=UPLOAD_BODY,
    responses=responses(
        errors.InvalidValue,
        errors.BadRows,
        errors.IdempotencyKeyReused,
        errors.PoolNotFound,
        errors.PoolSealed,
        errors.PoolBusy,
        errors.Busy,
        errors.PoolTooLarge,
        errors.ProcessEnded,
    ),
    response_model=ImportOut,
)
async def add_items(  # noqa: PLR0913 - one parameter each of the request
    context: Manages,
    pool_id: PoolId,
    request: Request,
    attempt: StreamedAttempt,
    on_error: Annotated[
        Literal["fail", "skip"], Query(description="`skip` keeps the good rows.")
    ] = "fail",
    *,
    dry_run: Annotated[bool, Query(description="Check everything and keep nothing.")] = False,
) -> Response:
    """All rows or none, unless bad ones are skipped; up to 100 faults are told by line."""
    form = format_of(request)
    record = await pools.get_pool(context, pool_id)
    if attempt.key is None:
        # Before the upload comes in; one that came in before the seal may be asked for again.
        pools.check_open(record)
    options = ImportOptions(
        skip_bad_rows=on_error == "skip", dry_run=dry_run, elsewhere=form == "parquet"
    )
    limits = Limits(bytes=context.settings.upload_limit_bytes, rows=context.settings.max_items)
    async with spooled(request, attempt.hashed) as file, AsyncExitStack() as stack:
        if form == "parquet":
            await stack.enter_async_context(context.process(of_file=True))
        with closing(read_rows(file, form, limits)) as rows:
            return await attempt.answer(
                200,
                lambda done: ImportOut.model_validate(done).model_dump_json().encode(),
                lambda once: pools.add_items(
                    context, pool_id, rows, options, None if dry_run else once
                ),
            )


@router.get(
    "/{pool_id}/items",
    operation_id="list_items",
    summary="List items",
    response_model=ItemPage,
    responses=responses(errors.PoolNotFound),
)
async def list_items(
    context: Reads,
    pool_id: PoolId,
    limit: Limit = PAGE_DEFAULT,
    after: Annotated[
        int | None, Query(ge=0, le=2**31 - 1, description="`next` of the page before.")
    ] = None,
) -> Response:
    """In upload order, with their payloads; a page ends early behind 4 MiB of them."""
    page, following = await pools.list_items(context, pool_id, limit, after)
    data = [whole_item(item) for item in page]
    body = {"data": data, "next": following}
    return Response(orjson.dumps(body), media_type="application/json")


def whole_item(item: Item) -> dict[str, Any]:
    """An item for orjson, with what the systems of its pool answered."""
    return item_members(item) | _answers(item)


def _answers(item: Item) -> dict[str, Any]:
    """Return the answers of a pool's systems: those of two are members of their own."""
    sides = dict(item.sides or {})
    return sides if sides.keys() <= {*SIDES} else {"answers": sides}


def item_members(item: Item) -> dict[str, Any]:
    """An item for orjson; its payload goes into the answer as it is, and nobody parses it."""
    payload = None if item.payload is None else orjson.Fragment(item.payload)
    return {"index": item.index, "id": item.id, "payload": payload}


@router.get(
    "/{pool_id}/columns.npz",
    operation_id="get_columns",
    summary="Download the numeric columns",
    response_class=StreamingResponse,
    responses=responses(errors.PoolNotFound)
    | {200: {"content": {"application/octet-stream": {}}, "description": "A NumPy archive."}},
)
async def get_columns(context: Reads, pool_id: PoolId) -> StreamingResponse:
    """The file that a verifier needs: columns, names, digests, and the pool's facts as JSON."""
    record, pool = await pools.columns(context, pool_id)
    file = await to_thread.run_sync(archive_of, pool)
    name = f"pool_{record.pool_id.hex}.npz"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if record.digest is not None:
        headers["ETag"] = f'"{record.digest}"'
    return StreamingResponse(_parts(file), media_type="application/octet-stream", headers=headers)


def archive_of(pool: Pool) -> IO[bytes]:
    """The columns as an NPZ archive on disk, at its beginning."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is sent
    np.savez(file, allow_pickle=False, **archive_arrays(pool))
    file.seek(0)
    return file


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while part := file.read(PART_BYTES):
            yield part

"""Create, fill, seal, list and load pools."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from anyio import to_thread
from psycopg.errors import LockNotAvailable
from sqlalchemy import Text, cast, func, insert, or_, select, text, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from celeus.core.pools.item import Item
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.rows.growth import MAX_GROUP_BYTES
from celeus.core.pools.rows.validation import MAX_INT
from celeus.core.pools.score import Level, Score, check_levels
from celeus.core.pools.systems import AnySystems, Lineup
from celeus.errors import (
    EmptyPool,
    InvalidValue,
    PoolBusy,
    PoolInUse,
    PoolNotArchived,
    PoolNotFound,
    PoolNotSealed,
    PoolSealed,
)
from celeus.operations.pools.earlier import BasedOn, basis_of, check_carried
from celeus.operations.pools.imports import (
    ImportOptions,
    ImportResult,
    Rows,
    import_rows,
)
from celeus.operations.pools.record import PoolRecord, gather_small_chunks, read_chunks
from celeus.operations.runtime.context import Context, one_snapshot
from celeus.operations.runtime.idempotency import (
    IdempotentRequest,
    forget,
    keep,
    peek,
    transaction_of,
)
from celeus.operations.sessions.labelling.instructions import keep_instructions
from celeus.store.database import planned_rows
from celeus.store.tables import pools

Lock = Literal["rows", "pool"]
"""The part of a pool that is locked: its rows, or all of it, for which new sessions wait, too."""

ITEMS_DELETED_AT_ONCE = 50_000
PAGE_BYTES = 4 << 20
"""Payloads in an answer, which ends behind the one that fills it: a judge or a list asks again."""


@dataclass(frozen=True, slots=True)
class NewPool:
    """A pool to create, with its items where they are few, and its systems where there are several.

    ``scale`` is that of the difference where two are compared. ``based_on`` is a session on an
    earlier version, ``score`` what the mean of its losses is called. A pool of ``metrics`` has the
    scale of the first of them. ``levels`` name grades of its scale, ``instructions`` tell judges
    what to do.
    """

    name: str
    scale: LossScale
    rows: Rows | None = None
    sealed: bool = False
    named: AnySystems | None = None
    based_on: BasedOn | None = None
    score: Score | None = None
    metrics: tuple[Metric, ...] = ()
    levels: tuple[Level, ...] = ()
    instructions: str | None = None


async def create_pool(
    context: Context, new: NewPool, once: IdempotentRequest[PoolRecord] | None = None
) -> PoolRecord:
    """Create a pool, sealed at once on request. Stores nothing if a row is bad."""
    async with transaction_of(context, once) as db:
        record = await _create(db, context, new)
        if new.rows is not None and new.rows[0]:
            result = await import_rows(context, db, record, iter([new.rows]), ImportOptions())
            record = result.pool
        if new.sealed:
            record = await _seal(db, record)
        return await keep(db, context, once, record)


async def pool_of_file(
    context: Context,
    new: NewPool,
    batches: Iterator[Rows],
    options: ImportOptions,
    once: IdempotentRequest[ImportResult] | None = None,
) -> ImportResult:
    """Create a sealed pool from the rows of a file; a dry run stores nothing."""
    await peek(context, once)
    async with context.gates.importing(context.key_id or ""), transaction_of(context, once) as db:
        savepoint = await db.begin_nested()
        record = await _create(db, context, new)
        result = await import_rows(context, db, record, batches, options)
        if options.dry_run:
            numbers = await _sealable(db, result.pool) if options.numbers else None
            await savepoint.rollback()
            return replace(result, numbers=numbers)
        if options.intake is not None:
            of_pool = update(pools).where(pools.c.pool_id == record.pool_id)
            await db.execute(of_pool.values(intake=dict(options.intake(result))))
        result = replace(result, pool=await _seal(db, result.pool))
        await savepoint.commit()
        return await keep(db, context, once, result)


async def create_sealed_pool(
    context: Context, db: AsyncConnection, new: NewPool, batches: Iterator[Rows]
) -> PoolRecord:
    """A sealed pool of these rows, in the transaction of ``db``; refuses bad rows."""
    record = await _create(db, context, new)
    result = await import_rows(context, db, record, batches, ImportOptions())
    return await _seal(db, result.pool)


async def add_items(
    context: Context,
    pool_id: UUID,
    batches: Iterator[Rows],
    options: ImportOptions,
    once: IdempotentRequest[ImportResult] | None = None,
) -> ImportResult:
    """Add rows at the end of an open pool.

    All or nothing: a bad row refuses the upload with `bad_rows`, unless bad rows are to be
    skipped. Two imports at once into one pool are not possible: the second is refused as
    `pool_busy`.
    """
    await peek(context, once)
    async with context.gates.importing(context.key_id or ""), transaction_of(context, once) as db:
        record = await _lock(db, context.project_id, pool_id)
        check_open(record)
        savepoint = await db.begin_nested()
        result = await import_rows(context, db, record, batches, options)
        if options.dry_run:
            await savepoint.rollback()
        else:
            await savepoint.commit()
        return await keep(db, context, once, result)


def check_open(record: PoolRecord) -> None:
    """Refuse a sealed pool."""
    if record.sealed:
        raise PoolSealed(
            "The pool is sealed: its items can no longer change.",
            field="pool_id",
            rule="a pool that is not sealed",
            value=f"pool_{record.pool_id.hex}",
        )


async def seal_pool(context: Context, pool_id: UUID) -> PoolRecord:
    """Freeze the pool and name it by its digest; sealing again changes nothing."""
    async with context.transaction() as db:
        return await _seal(db, await _lock(db, context.project_id, pool_id))


async def archive_pool(context: Context, pool_id: UUID, *, archived: bool) -> PoolRecord:
    """Take a pool out of the lists, or back; its sessions go on."""
    async with context.transaction() as db:
        record = await _lock(db, context.project_id, pool_id)
        if record.archived == archived:
            return record
        change = update(pools).where(pools.c.pool_id == pool_id).returning(pools)
        result = await db.execute(change.values(archived_at=func.now() if archived else None))
        return PoolRecord.of(result.one())


async def delete_pool(context: Context, pool_id: UUID) -> PoolRecord:
    """Delete an archived pool without sessions, and its items; the record of what it was.

    All of it or, when the process dies, nothing: one transaction, which locks rows of this pool
    alone, in parts that each end long before the database gives a statement up. Whoever opens a
    session meanwhile waits, and finds no pool.
    """
    async with context.transaction() as db:
        record = await _lock(db, context.project_id, pool_id, "pool")
        wire = f"pool_{pool_id.hex}"
        if not record.archived:
            raise PoolNotArchived(
                "The pool is not archived.",
                field="pool_id",
                rule="an archived pool; PATCH it with `archived: true`",
                value=wire,
            )
        count = (await db.execute(_SESSIONS, {"pool_id": pool_id})).scalar_one()
        if count:
            sessions = "is 1 session" if count == 1 else f"are {count} sessions"
            raise PoolInUse(
                f"There {sessions} on the pool, and what is certified of it rests on the items.",
                field="pool_id",
                rule="a pool without sessions",
                value=wire,
            )
        for start in range(0, record.items, ITEMS_DELETED_AT_ONCE):
            part = {"start": start, "end": start + ITEMS_DELETED_AT_ONCE}
            await db.execute(_DELETE_ITEMS, part | {"pool_id": pool_id})
        await db.execute(_DELETE_CHUNKS, {"pool_id": pool_id})
        await db.execute(_DELETE, {"pool_id": pool_id})
        await forget(db, context, wire)
    context.states.forget_pool(context.project_id, pool_id)
    return record


async def get_pool(context: Context, pool_id: UUID) -> PoolRecord:
    """The pool without its items."""
    async with context.transaction() as db:
        return await _record(db, context.project_id, pool_id)


async def list_pools(
    context: Context, limit: int, after: UUID | None, *, archived: bool = False
) -> tuple[list[PoolRecord], UUID | None]:
    """Pools from the newest on, and the ``after`` of the next page, if there may be one.

    Without ``archived`` those that are archived are left out.

    ``after`` is the last one already seen. A page ends when the names of groups fill
    MAX_GROUP_BYTES, but has one pool at least.
    """
    query = select(pools).where(pools.c.project_id == context.project_id)
    if not archived:
        query = query.where(pools.c.archived_at.is_(None))
    if after is not None:
        query = query.where(pools.c.pool_id < after)
    newest = query.order_by(pools.c.pool_id.desc()).limit(limit).subquery()
    size = func.octet_length(cast(newest.c.groups, Text)) + func.coalesce(
        func.octet_length(cast(newest.c.group_columns, Text)), 0
    )
    upto = func.sum(size).over(order_by=newest.c.pool_id.desc())
    first, selected = (upto == size).label("first"), func.count().over().label("selected")
    sized = select(newest, upto.label("upto"), first, selected).subquery()
    fitting = select(sized).where(or_(sized.c.first, sized.c.upto <= MAX_GROUP_BYTES))
    async with context.transaction() as db:
        rows = await planned_rows(db, fitting.order_by(sized.c.pool_id.desc()))
    more = bool(rows) and (len(rows) == limit or len(rows) < rows[0].selected)
    return [PoolRecord.of(row) for row in rows], rows[-1].pool_id if more else None


async def list_items(
    context: Context, pool_id: UUID, limit: int, after: int | None
) -> tuple[list[Item], int | None]:
    """Items in upload order until PAGE_BYTES are full, and the ``after`` of the next page, if any.

    ``after`` is the last index already seen.
    """
    async with context.transaction() as db:
        record = await _record(db, context.project_id, pool_id)
        page = await read_items(db, pool_id, limit, -1 if after is None else after)
    more = bool(page) and page[-1].index + 1 < record.items
    if record.named is not None:
        page = [item.split(record.named) for item in page]
    return page, page[-1].index if more else None


async def read_items(db: AsyncConnection, pool_id: UUID, limit: int, after: int) -> list[Item]:
    """Items behind the index ``after``, up to a gap, ``limit`` or the one that fills PAGE_BYTES."""
    return await items_at(db, pool_id, range(after + 1, min(after + 1 + limit, MAX_INT + 1)))


async def items_at(db: AsyncConnection, pool_id: UUID, indices: Sequence[int]) -> list[Item]:
    """Items by their indices, in that order, up to a gap or the one that fills PAGE_BYTES."""
    params = {"pool_id": pool_id, "indices": list(indices), "page_bytes": PAGE_BYTES}
    return [Item(*row) for row in await db.execute(_PAGE, params)]


async def columns(context: Context, pool_id: UUID) -> tuple[PoolRecord, Pool]:
    """The pool with all its numbers, sealed or not; a sealed one is read once for all who ask."""
    async with context.transaction() as db:
        await one_snapshot(db)
        record = await _record(db, context.project_id, pool_id)
        pool = context.states.pool(context.project_id, pool_id) or await _load(db, record)
    if record.sealed:
        context.states.keep_pool(context.project_id, pool_id, pool)
    return record, pool


async def load_pool(db: AsyncConnection, project_id: UUID, pool_id: UUID) -> Pool:
    """Load the columns of a sealed pool in one read; refuses one that is not sealed."""
    record = await _record(db, project_id, pool_id)
    if not record.sealed:
        raise PoolNotSealed("The pool is not sealed: its items may still change.", field="pool_id")
    return await _load(db, record)


async def _create(db: AsyncConnection, context: Context, new: NewPool) -> PoolRecord:
    """A new pool without items, locked."""
    check_levels(new.levels, new.scale, new.score, alone=new.named is None and not new.metrics)
    pool_id, basis = uuid7(), None
    if new.based_on is not None:
        if isinstance(new.named, Lineup):
            raise InvalidValue(
                "A pool of several systems is based on no session.",
                field="based_on",
                rule="left out, or with one system or two",
            )
        basis = await basis_of(db, context.project_id, new.based_on, new.scale, new.named)
    await db.execute(
        insert(pools).values(
            pool_id=pool_id,
            project_id=context.project_id,
            name=new.name,
            loss_kind=new.scale.kind,
            loss_lower=new.scale.lower,
            loss_upper=new.scale.upper,
            systems=None if new.named is None else new.named.to_dict(),
            based_on=None if basis is None else basis.to_dict(),
            score=None if new.score is None else new.score.to_dict(),
            metrics=[metric.to_dict() for metric in new.metrics] or None,
            levels=[level.to_dict() for level in new.levels] or None,
            sealed=False,
            items=0,
            columns=[],
            groups=[],
            items_digest=CHAIN_START,
        )
    )
    if new.instructions:
        await keep_instructions(db, context, pool_id, None, new.instructions)
    return await _lock(db, context.project_id, pool_id)


async def _record(
    db: AsyncConnection, project_id: UUID, pool_id: UUID, *, lock: Lock | None = None
) -> PoolRecord:
    query = select(pools).where(pools.c.pool_id == pool_id, pools.c.project_id == project_id)
    if lock is not None:
        query = query.with_for_update(nowait=True, key_share=lock == "rows")
    row = (await db.execute(query)).one_or_none()
    if row is None:
        raise PoolNotFound.of(pool_id)
    return PoolRecord.of(row)


async def _lock(
    db: AsyncConnection, project_id: UUID, pool_id: UUID, lock: Lock = "rows"
) -> PoolRecord:
    try:
        return await _record(db, project_id, pool_id, lock=lock)
    except OperationalError as error:
        if isinstance(error.orig, LockNotAvailable):
            raise PoolBusy(
                "Another import or seal of this pool is under way; try again when it is done.",
                field="pool_id",
                rule="one import at a time",
                value=f"pool_{pool_id.hex}",
            ) from error
        raise


async def _seal(db: AsyncConnection, record: PoolRecord) -> PoolRecord:
    if record.sealed:
        return record
    pool = await _sealable(db, record)
    digest = await to_thread.run_sync(lambda: pool.digest)
    await gather_small_chunks(db, record.project_id, record.pool_id, pool.columns, pool.items)
    result = await db.execute(
        update(pools)
        .where(pools.c.pool_id == record.pool_id)
        .values(sealed=True, digest=bytes.fromhex(digest), sealed_at=func.now())
        .returning(pools)
    )
    return PoolRecord.of(result.one())


async def _sealable(db: AsyncConnection, record: PoolRecord) -> Pool:
    """The pool with its numbers; refuses one that cannot be sealed."""
    if record.items == 0:
        raise EmptyPool(
            "An empty pool cannot be sealed: there is nothing to evaluate.",
            field="items",
            rule="at least one item",
            value=0,
        )
    pool = await _load(db, record)
    check_carried(pool)
    return pool


async def _load(db: AsyncConnection, record: PoolRecord) -> Pool:
    return record.pool(await read_chunks(db, record.pool_id, record.items))


_SESSIONS = text("SELECT count(*) FROM sessions WHERE pool_id = :pool_id")
_DELETE_ITEMS = text(
    "DELETE FROM items WHERE pool_id = :pool_id AND index >= :start AND index < :end"
)
_DELETE_CHUNKS = text("DELETE FROM chunks WHERE pool_id = :pool_id")
_DELETE = text("DELETE FROM pools WHERE pool_id = :pool_id")
# One item after the other by its key, so that none beyond the page is even unpacked.
_PAGE = text(
    """
    WITH RECURSIVE page AS (
        SELECT 0 AS place, 0 AS index, NULL::text AS id, NULL::text AS payload, 0::bigint AS bytes
        UNION ALL
        SELECT page.place + 1, item.*, page.bytes + octet_length(item.id)
               + coalesce(octet_length(item.payload), 0)
        FROM page CROSS JOIN LATERAL (
            SELECT items.index, items.id, items.payload::text AS payload FROM items
            WHERE pool_id = :pool_id
                AND items.index = (CAST(:indices AS integer[]))[page.place + 1] OFFSET 0
        ) AS item
        WHERE page.bytes < :page_bytes
    )
    SELECT index, id, payload FROM page WHERE id IS NOT NULL ORDER BY place
    """
)

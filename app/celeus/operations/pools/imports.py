"""Import batches of rows into a pool, in the transaction that holds its lock.

Items go in by COPY, their numbers as chunks of columns.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import CancelScope, CapacityLimiter, to_thread
from psycopg.errors import UniqueViolation
from sqlalchemy import delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.canonical import canonical_json
from celeus.core.pools.pool import Pool
from celeus.core.pools.rows.assembly import Batch
from celeus.core.pools.rows.growth import PoolBuilder
from celeus.core.pools.rows.validation import Fault, Shape
from celeus.errors import BadRows
from celeus.operations.pools.earlier import kept_earlier, old_items
from celeus.operations.pools.record import CHUNK_BYTES, PoolRecord, write_chunks
from celeus.operations.runtime.concurrency import paused_collections
from celeus.operations.runtime.context import Context
from celeus.store.database import raw_connection
from celeus.store.tables import items, mappings, pools

MOST_FAULTY = 100
"""Bad rows after which an upload that must have none is read no further, and one that may have
some, or is only looked at, if they are most of its rows."""
MOST_SKIPPED = 100_000
"""Bad rows after which the latter is refused in any case: one may take its reader 0.3 ms, while the
pool is locked."""

MOST_COMPARED = 256
"""Rows looked at together with the items of the pool they are based on, 1 MiB each at most."""

BATCHES_AT_ONCE = CapacityLimiter(2)
SILENT_SECONDS = 1.0

T = TypeVar("T")
Rows = tuple[list[int], list[object]]

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import or a dry run: the pool afterwards and the skipped lines.

    ``numbers``: the pool of a dry run with its numbers, where they were asked for.
    """

    pool: PoolRecord
    added: int
    skipped: int
    faults: Sequence[Fault]
    dry_run: bool
    numbers: Pool | None = None


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import: skip bad rows; check without storing anything.

    ``intake`` returns how the file was read, which is kept with the pool that is made of it.
    ``elsewhere``: another process reads it, and one only waits for its rows. ``numbers``: a dry run
    returns those of the pool, for a plan.
    """

    skip_bad_rows: bool = False
    dry_run: bool = False
    elsewhere: bool = False
    numbers: bool = False
    intake: Callable[[ImportResult], Mapping[str, Any]] | None = None


async def import_rows(
    context: Context,
    db: AsyncConnection,
    record: PoolRecord,
    batches: Iterator[Rows],
    options: ImportOptions,
) -> ImportResult:
    """Add the rows to the pool whose row is locked, and update that row."""
    growth = PoolBuilder(
        scale=record.scale,
        named=record.named,
        items=record.items,
        items_digest=record.items_digest,
        shape=Shape.of_columns(record.columns, record.classes) if record.items else None,
        groups={name: code for code, name in enumerate(record.groups)},
        metrics=record.metrics,
        group_columns={
            name: {value: code for code, value in enumerate(values)}
            for name, values in record.group_columns.items()
        },
        stated=record.stated,
        columns=list(record.columns),
        most_items=context.settings.max_items,
    )
    if record.based_on is not None:
        growth.earlier = await kept_earlier(context, db, record)
        batches = _slices(batches)
    too_many = not await _grow(db, record, growth, batches, options)
    if too_many or (growth.faulty and not options.skip_bad_rows):
        least = "At least " if too_many else ""
        most = (
            f", where at most half and {MOST_SKIPPED} may be bad" if options.skip_bad_rows else ""
        )
        raise BadRows(
            f"{least}{growth.faulty} of the uploaded rows cannot become items{most}; "
            "nothing was kept.",
            errors=[fault.members() for fault in growth.faults],
            total_errors=growth.faulty,
        )
    updated = await db.execute(
        update(pools)
        .where(pools.c.pool_id == record.pool_id)
        .values(
            items=growth.items,
            items_digest=growth.items_digest,
            columns=growth.columns,
            groups=list(growth.groups),
            group_columns=[[name, list(codes)] for name, codes in growth.group_columns.items()]
            or None,
            stated=growth.stated.to_dict(),
            classes=growth.shape.classes if growth.shape and growth.items else None,
        )
        .returning(pools)
    )
    after = PoolRecord.of(updated.one())
    added = after.items - record.items
    return ImportResult(after, added, growth.faulty, growth.faults, options.dry_run)


async def _grow(
    db: AsyncConnection,
    record: PoolRecord,
    pool: PoolBuilder,
    batches: Iterator[Rows],
    options: ImportOptions,
) -> bool:
    """Add every good row; the faults of the others stand in ``pool`` afterwards.

    Returns False if it stopped early, at too many faults. Refuses more rows, good and bad together,
    than the pool may have items.
    """
    pool.waiting_from = pool_before = total = pool.items
    while (rows := await _next(db, batches, elsewhere=options.elsewhere)) is not None:
        total += len(rows[0])
        pool.check_count(total)
        if pool.earlier is None:
            assembled = await _batch_work(pool.assemble, *rows)
        else:
            old = await old_items(db, pool.earlier, rows[1])
            assembled = await _batch_work(pool.compare, pool.earlier, *rows, old)
        pool.shape = assembled.shape
        pool.blame(assembled.faults)
        if _too_many(pool.faulty, total - pool_before, skip=options.skip_bad_rows):
            return False
        pool.check_bytes(assembled.batch)
        batch = await _insert_items(db, record, pool, assembled.batch)
        if batch.ids:
            await to_thread.run_sync(pool.append, batch)
            if pool.waiting_bytes >= CHUNK_BYTES:
                await _write_waiting(db, record, pool)
        else:
            # PostgreSQL ends a transaction in which nothing is said for too long.
            await db.execute(text("SELECT 1"))
    await _write_waiting(db, record, pool)
    return True


def _too_many(faulty: int, rows: int, *, skip: bool) -> bool:
    most = skip and 2 * faulty <= rows
    return faulty > (MOST_SKIPPED if most else MOST_FAULTY)


def _slices(batches: Iterator[Rows]) -> Iterator[Rows]:
    """Yield the rows of the batches, few at a time."""
    for lines, rows in batches:
        for start in range(0, len(rows), MOST_COMPARED):
            yield lines[start : start + MOST_COMPARED], rows[start : start + MOST_COMPARED]


async def _batch_work(work: Callable[..., T], *args: object) -> T:
    """Return ``work(*args)`` of a batch: in a thread, few at once, without garbage collection.

    Python runs one thread at a time, so that more would only keep the event loop waiting; a
    collection would stop all of them to look through millions of lists.
    """
    async with BATCHES_AT_ONCE:
        with paused_collections:
            return await to_thread.run_sync(work, *args)


async def _next(db: AsyncConnection, batches: Iterator[Rows], *, elsewhere: bool) -> Rows | None:
    """The next rows, None behind the last.

    A thread that only waits for another process takes no place of those that compute, and the
    database hears of us meanwhile.
    """
    if not elsewhere:
        return await _batch_work(next, batches, None)
    reading = asyncio.ensure_future(to_thread.run_sync(next, batches, None))
    try:
        while not (await asyncio.wait({reading}, timeout=SILENT_SECONDS))[0]:
            await db.execute(text("SELECT 1"))
        return await reading
    finally:
        # Rows cannot be closed while a thread is in them
        with CancelScope(shield=True):
            await asyncio.wait({reading})


async def _insert_items(
    db: AsyncConnection, record: PoolRecord, pool: PoolBuilder, batch: Batch
) -> Batch:
    """Insert the items; returns the batch without ids that the pool had already.

    The database finds a duplicate while inserting, so that nothing is asked about in advance;
    only a batch that has one is looked up and inserted again.
    """
    if not batch.ids:
        return batch
    try:
        await _copy(db, record, pool.items, batch)
    except UniqueViolation:
        result = await db.execute(
            select(items.c.id).where(items.c.pool_id == record.pool_id, items.c.id.in_(batch.ids))
        )
        duplicates = set(result.scalars())
        rule = "an id no other item has"
        pool.blame(
            [
                Fault.of(line, "id", rule, name)
                for line, name in zip(batch.lines, batch.ids, strict=True)
                if name in duplicates
            ]
        )
        batch = batch.without(duplicates)
        if batch.ids:
            await _copy(db, record, pool.items, batch)
    return batch


async def _copy(db: AsyncConnection, record: PoolRecord, start: int, batch: Batch) -> None:
    lines = await to_thread.run_sync(_copy_text, record, start, batch)
    async with db.begin_nested():
        raw = raw_connection(db)
        async with (
            raw.cursor() as cursor,
            cursor.copy("COPY items (project_id, pool_id, index, id, payload) FROM STDIN") as copy,
        ):
            await copy.write(lines)


def _copy_text(record: PoolRecord, start: int, batch: Batch) -> bytes:
    """Rows in the text format of COPY, the first of them item ``start``."""
    names = batch.ids
    if any(escaped in "".join(names) for escaped in "\\\t\n\r"):
        names = [name.translate(_ESCAPES) for name in names]
    place = f"{record.project_id}\t{record.pool_id}"
    lines = [
        f"{place}\t{index}\t{name}\t{_payload_text(payload)}\n"
        for index, (name, payload) in enumerate(
            zip(names, batch.payloads, strict=True), start=start
        )
    ]
    return "".join(lines).encode()


def _payload_text(payload: bytes | None) -> str:
    # JSON holds no raw tab or line break: only its backslashes need another.
    return "\\N" if payload is None else payload.decode().replace("\\", "\\\\")


async def _write_waiting(db: AsyncConnection, record: PoolRecord, pool: PoolBuilder) -> None:
    for piece in pool.pieces():
        place = record.project_id, record.pool_id
        await write_chunks(db, *place, piece.columns, start=piece.start)


MOST_REMEMBERED = 50
"""Most mappings of a project; those used longest ago are forgotten."""
MOST_BYTES = 1 << 15


async def remembered_mappings(context: Context) -> list[dict[str, str]]:
    """Mappings of the project, the one used last first."""
    query = select(mappings.c.mapping)
    query = query.where(mappings.c.project_id == context.project_id)
    async with context.transaction() as db:
        found = await db.execute(query.order_by(mappings.c.used_at.desc()))
        return [dict(mapping) for mapping in found.scalars()]


async def remember_mapping(context: Context, mapping: Mapping[str, str]) -> None:
    """Keep the roles of these columns for the next file that has the same."""
    if len(canonical_json(dict(mapping))) > MOST_BYTES:
        return
    digest = hashlib.sha256(canonical_json(sorted(mapping))).digest()
    row = {"project_id": context.project_id, "columns_digest": digest, "mapping": dict(mapping)}
    kept = insert(mappings).values(row)
    kept = kept.on_conflict_do_update(
        index_elements=["project_id", "columns_digest"],
        set_={"mapping": kept.excluded.mapping, "used_at": func.now()},
    )
    of_project = mappings.c.project_id == context.project_id
    newest = (
        select(mappings.c.columns_digest)
        .where(of_project)
        .order_by(mappings.c.used_at.desc())
        .limit(MOST_REMEMBERED)
    )
    async with context.transaction() as db:
        await db.execute(kept)
        await db.execute(
            delete(mappings).where(of_project, mappings.c.columns_digest.not_in(newest))
        )

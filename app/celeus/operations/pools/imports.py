"""Import batches of rows into a pool, in the transaction that holds its lock.

Items go in by COPY, their numbers as chunks of columns.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
import orjson
from anyio import CapacityLimiter, to_thread
from numpy.typing import NDArray
from psycopg.errors import UniqueViolation
from sqlalchemy import select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.interval import Interval
from celeus.core.pools.bounds import Bounds
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import chain, dtype_of
from celeus.core.pools.rows.assembly import Assembled, Batch, encode_groups
from celeus.core.pools.rows.earlier import Earlier, OldItem
from celeus.core.pools.rows.lineups import assemble_lineup
from celeus.core.pools.rows.pairs import assemble_pairs
from celeus.core.pools.rows.tables import assemble_table
from celeus.core.pools.rows.validation import MAX_INT, Fault, Shape
from celeus.core.pools.systems import AnySystems, Lineup
from celeus.core.pools.table import MOST_VALUES
from celeus.core.pools.weights import LARGEST_RATIO
from celeus.errors import BadRows, InvalidValue, PoolTooLarge
from celeus.operations.pools.columns import CHUNK_BYTES, raw_connection, write_chunks
from celeus.operations.pools.earlier import kept_earlier, old_items
from celeus.operations.pools.record import PoolRecord, Stated
from celeus.operations.runtime.concurrency import paused_collections
from celeus.operations.runtime.context import Context
from celeus.store.tables import items, pools

FAULTS_TOLD = 100
"""Faults an answer lists; the others are only counted."""
MAX_GROUPS = 1_000
MAX_GROUP_BYTES = 96 << 10
"""Of a pool's group names as JSON, which every answer about the pool and its certificates hold."""
MAX_REASONS = 100

MOST_BYTES = 4 << 30
"""Bytes of a pool's columns: a worker that serves it holds them all in memory."""
MOST_FAULTY = 10_000
"""Bad rows after which an upload that must have none is read no further."""
MOST_SKIPPED = 100_000
"""Bad rows after which one that may have some, or is only looked at, is refused: one may take its
reader 0.3 ms, while the pool is locked."""

MOST_COMPARED = 256
"""Rows looked at together with the items of the pool they are based on, 1 MiB each at most."""

BATCHES_AT_ONCE = CapacityLimiter(2)

T = TypeVar("T")
Rows = tuple[list[int], list[object]]

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import or a dry run: the pool afterwards and the skipped lines."""

    pool: PoolRecord
    added: int
    skipped: int
    faults: Sequence[Fault]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How an import treats bad rows, and whether it stores anything."""

    skip_bad_rows: bool = False
    dry_run: bool = False


@dataclass(slots=True)
class Growth:
    """A pool while rows are added: its size so far, and the faults of its rows.

    ``earlier`` is the judged session it is based on, if it is.
    ``unstated`` items are written without columns of bounds, which came with a later one.
    """

    project_id: UUID
    pool_id: UUID
    scale: LossScale
    named: AnySystems | None
    items: int
    items_digest: bytes
    shape: Shape | None
    groups: dict[str, int]
    metrics: tuple[Metric, ...] = ()
    group_columns: dict[str, dict[str, int]] = field(default_factory=dict)
    stated: Stated = field(default_factory=Stated)
    columns: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    faulty: int = 0
    most_items: int = MAX_INT
    most_faulty: int = MOST_FAULTY
    waiting: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    waiting_from: int = 0
    unstated: int = 0
    earlier: Earlier | None = None

    def assemble(self, lines: list[int], rows: list[object]) -> Assembled:
        """What becomes of some rows."""
        if isinstance(self.named, Lineup):
            return assemble_lineup(lines, rows, self.named, self.shape)
        if self.named is not None:
            return assemble_pairs(lines, rows, self.named, self.shape)
        return assemble_table(lines, rows, self.scale, self.metrics, self.shape)

    def compare(
        self, earlier: Earlier, lines: list[int], rows: list[object], old: Mapping[str, OldItem]
    ) -> Assembled:
        """What becomes of some rows with what is carried over to them."""
        carried = earlier.carry(lines, rows, old)
        made = self.assemble(carried.lines, carried.rows)
        faults = sorted([*carried.faults, *made.faults], key=lambda one: one.line)
        columns = made.batch.columns | carried.columns(made.batch.lines)
        return replace(made, batch=replace(made.batch, columns=columns), faults=faults)

    def blame(self, faults: list[Fault]) -> None:
        """Count faulty lines and keep the first faults for the answer."""
        self.faulty += len({fault.line for fault in faults})
        self.faults += faults[: max(0, FAULTS_TOLD - len(self.faults))]


async def import_rows(
    context: Context,
    db: AsyncConnection,
    record: PoolRecord,
    batches: Iterator[Rows],
    options: ImportOptions,
) -> ImportResult:
    """Add the rows to the pool whose row is locked, and update that row."""
    growth = Growth(
        project_id=record.project_id,
        pool_id=record.pool_id,
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
        most_faulty=MOST_SKIPPED if options.skip_bad_rows else MOST_FAULTY,
    )
    if record.based_on is not None:
        growth.earlier = await kept_earlier(context, db, record)
        batches = _slices(batches)
    await grow(db, growth, batches)
    too_many = growth.faulty > growth.most_faulty
    if too_many or (growth.faulty and not options.skip_bad_rows):
        least = "At least " if too_many else ""
        most = f", where at most {MOST_SKIPPED} may be bad" if options.skip_bad_rows else ""
        raise BadRows(
            f"{least}{growth.faulty} of the uploaded rows cannot become items{most}; "
            "nothing was kept.",
            errors=[fault_members(fault) for fault in growth.faults],
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
            group_columns=[[name, list(it)] for name, it in growth.group_columns.items()] or None,
            stated=growth.stated.to_dict(),
            classes=growth.shape.classes if growth.shape and growth.items else None,
        )
        .returning(pools)
    )
    after = PoolRecord.of(updated.one())
    return ImportResult(after, after.items - record.items, growth.faulty, growth.faults)


def fault_members(fault: Fault) -> dict[str, object]:
    """The members of a fault in an answer."""
    return {"line": fault.line, "field": fault.field, "rule": fault.rule, "value": fault.value}


async def grow(db: AsyncConnection, pool: Growth, batches: Iterator[Rows]) -> None:
    """Add every good row; the faults of the others stand in ``pool`` afterwards.

    Stops early when more rows are faulty than the pool allows. Refuses more rows, good and bad
    together, than it may have items.
    """
    pool.waiting_from = pool.items
    total = pool.items
    while (rows := await _batch_work(next, batches, None)) is not None:
        total += len(rows[0])
        check_count(total, pool.most_items)
        if pool.earlier is None:
            assembled = await _batch_work(pool.assemble, *rows)
        else:
            old = await old_items(db, pool.earlier, rows[1])
            assembled = await _batch_work(pool.compare, pool.earlier, *rows, old)
        pool.shape = assembled.shape
        pool.blame(assembled.faults)
        if pool.faulty > pool.most_faulty:
            return
        _check_bytes(pool.items, assembled.batch)
        batch = await _insert_items(db, pool, assembled.batch)
        if batch.ids:
            await to_thread.run_sync(_append, pool, batch)
            await _write_full_chunks(db, pool)
        else:
            # PostgreSQL ends a transaction in which nothing is said for too long.
            await db.execute(text("SELECT 1"))
    await _write_waiting(db, pool)


def _slices(batches: Iterator[Rows]) -> Iterator[Rows]:
    """The same rows, few at a time."""
    for lines, rows in batches:
        for at in range(0, len(rows), MOST_COMPARED):
            yield lines[at : at + MOST_COMPARED], rows[at : at + MOST_COMPARED]


async def _batch_work(work: Callable[..., T], *args: object) -> T:
    """What ``work`` gives for a batch: in a thread, few at once, and without collections.

    Python runs one thread at a time, so that more would only keep the event loop waiting; a
    collection would stop all of them to look through millions of lists.
    """
    async with BATCHES_AT_ONCE:
        with paused_collections:
            return await to_thread.run_sync(work, *args)


def check_count(items: int, most: int) -> None:
    """Refuse a pool of more items than ``most``."""
    if items > most:
        raise PoolTooLarge(
            "The pool would have too many items.",
            field="items",
            rule=f"at most {most} items, skipped rows included",
            value=items,
        )


def _check_bytes(items: int, batch: Batch) -> None:
    """Refuse a pool whose columns would exceed MOST_BYTES."""
    numbers = sum(column.nbytes for column in batch.columns.values()) / max(1, len(batch.ids))
    size = int(numbers * (items + len(batch.ids)))
    if size > MOST_BYTES:
        raise PoolTooLarge(
            "The pool would have too many numbers.",
            field="items",
            rule=f"at most {MOST_BYTES} bytes of scores and probabilities",
            value=size,
        )


async def _insert_items(db: AsyncConnection, pool: Growth, batch: Batch) -> Batch:
    """Insert the items; returns the batch without ids that the pool had already.

    The database finds a duplicate while inserting, so that nothing is asked about in advance;
    only a batch that has one is looked up and inserted again.
    """
    if not batch.ids:
        return batch
    try:
        await _copy(db, pool, batch)
    except UniqueViolation:
        result = await db.execute(
            select(items.c.id).where(items.c.pool_id == pool.pool_id, items.c.id.in_(batch.ids))
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
            await _copy(db, pool, batch)
    return batch


async def _copy(db: AsyncConnection, pool: Growth, batch: Batch) -> None:
    lines = await to_thread.run_sync(_copy_text, pool, batch)
    async with db.begin_nested():
        raw = await raw_connection(db)
        async with (
            raw.cursor() as cursor,
            cursor.copy("COPY items (project_id, pool_id, index, id, payload) FROM STDIN") as copy,
        ):
            await copy.write(lines)


def _copy_text(pool: Growth, batch: Batch) -> bytes:
    """Rows in the text format of COPY."""
    names = batch.ids
    if any(escaped in "".join(names) for escaped in "\\\t\n\r"):
        names = [name.translate(_ESCAPES) for name in names]
    place = f"{pool.project_id}\t{pool.pool_id}"
    lines = [
        f"{place}\t{index}\t{name}\t{_payload_text(payload)}\n"
        for index, (name, payload) in enumerate(
            zip(names, batch.payloads, strict=True), start=pool.items
        )
    ]
    return "".join(lines).encode()


def _payload_text(payload: bytes | None) -> str:
    # JSON holds no raw tab or line break: only its backslashes need another.
    return "\\N" if payload is None else payload.decode().replace("\\", "\\\\")


def _append(pool: Growth, batch: Batch) -> None:
    columns = dict(batch.columns)
    if batch.groups:
        pool.groups = encode_groups(batch.groups, pool.groups)
        _check_groups(pool.groups)
        codes = [pool.groups[name] for name in batch.groups]
        columns["group"] = np.array(codes, dtype=dtype_of("group"))
    columns |= _coded(pool, batch.values)
    if batch.reasons:
        columns["known"] = _reasons(pool, batch)
    if "loss_lower" in columns:
        if "known" not in pool.columns:
            # Of the items before nothing is stated, whether they wait or are written.
            pool.unstated = pool.waiting_from
            for name, column in _nothing_stated(pool.items - pool.waiting_from, pool.scale).items():
                pool.waiting[name] = [column]
    elif "loss_lower" in pool.columns:
        columns |= _nothing_stated(len(batch.ids), pool.scale)
    if "weight" in columns:
        _check_weights(pool, columns["weight"])
    pool.columns = sorted(columns)
    for name, column in columns.items():
        pool.waiting.setdefault(name, []).append(column)
    pool.items_digest = chain(pool.items_digest, batch.records())
    pool.items += len(batch.ids)


def _coded(pool: Growth, values: Mapping[str, list[str]]) -> dict[str, NDArray[Any]]:
    """The columns of codes of the values in the group columns; notes values that are new."""
    columns = {}
    for name, texts in values.items():
        codes_of = encode_groups(texts, pool.group_columns.get(name, {}))
        if len(codes_of) > MOST_VALUES:
            raise InvalidValue(
                f"The group column {name} has too many different values; what tells items apart"
                " belongs into their payload.",
                field=f"groups.{name}",
                rule=f"at most {MOST_VALUES} different values",
                value=len(codes_of),
            )
        pool.group_columns[name] = codes_of
        column = f"group_{name}"
        columns[column] = np.array([codes_of[one] for one in texts], dtype=dtype_of(column))
    names = [[name, list(it)] for name, it in pool.group_columns.items()]
    if values and (size := len(orjson.dumps(names))) > MAX_GROUP_BYTES:
        raise InvalidValue(
            "The group columns have too many and too long values.",
            field="groups",
            rule=f"together at most {MAX_GROUP_BYTES} bytes of JSON",
            value=size,
        )
    return columns


def _check_weights(pool: Growth, weight: NDArray[np.float64]) -> None:
    """Refuse weights that are too far apart for a float to hold their sums."""
    least, largest = pool.stated.weights or (np.inf, 0.0)
    least, largest = min(least, float(weight.min())), max(largest, float(weight.max()))
    if largest > LARGEST_RATIO * least:
        raise InvalidValue(
            f"The weights of the items go from {least:g} to {largest:g}: that is too far apart.",
            field="weight",
            rule=f"at most {LARGEST_RATIO:g} times the least weight of the pool",
            value=largest,
        )
    pool.stated = replace(pool.stated, weights=(least, largest))


def _check_groups(names: Collection[str]) -> None:
    """Refuse more names than an answer about the pool can hold."""
    if len(names) <= MAX_GROUPS and len(orjson.dumps(list(names))) <= MAX_GROUP_BYTES:
        return
    raise InvalidValue(
        "The items name too many groups, or too long ones; what tells items apart belongs into"
        " their payload.",
        field="group",
        rule=f"at most {MAX_GROUPS} different names, together at most {MAX_GROUP_BYTES} bytes of"
        " JSON",
        value=len(names),
    )


def _reasons(pool: Growth, batch: Batch) -> NDArray[np.int32]:
    """The numbers of the reasons, 0 where there is none; counts them."""
    known, bounded = np.array(batch.reasons) != "", np.zeros(len(batch.ids), dtype=np.bool_)
    if "loss_lower" in batch.columns:
        bounds = Bounds(batch.columns["loss_lower"], batch.columns["loss_upper"])
        known = bounds.known
        bounded = ~known & ~bounds.of_scale(Interval(pool.scale.lower, pool.scale.upper))
    # Bounds as wide as the scale state nothing, whatever their reason.
    reasons = [one if own else "" for one, own in zip(batch.reasons, known | bounded, strict=True)]
    counts, of_bounds = dict(pool.stated.reasons), Counter(pool.stated.bounds)
    for reason, is_known in zip(reasons, known.tolist(), strict=True):
        if reason:
            counts[reason] = counts.get(reason, 0) + is_known
            of_bounds[reason] += not is_known
    if len(counts) > MAX_REASONS:
        raise InvalidValue(
            "The items name too many reasons why losses are known or have bounds.",
            field="known.reason",
            rule=f"at most {MAX_REASONS} different texts",
            value=len(counts),
        )
    total = pool.stated.bounded + int(bounded.sum())
    pool.stated = replace(pool.stated, reasons=counts, bounded=total, bounds=+of_bounds)
    numbers = {reason: number for number, reason in enumerate(("", *counts))}
    return np.array([numbers[reason] for reason in reasons], dtype=dtype_of("known"))


def _nothing_stated(items: int, scale: LossScale) -> dict[str, NDArray[Any]]:
    """Columns of items of whose losses nothing is stated."""
    return {
        "loss_lower": np.full(items, scale.lower),
        "loss_upper": np.full(items, scale.upper),
        "known": np.zeros(items, dtype=dtype_of("known")),
    }


async def _write_full_chunks(db: AsyncConnection, pool: Growth) -> None:
    sizes = (sum(part.nbytes for part in parts) for parts in pool.waiting.values())
    if max(sizes, default=0) >= CHUNK_BYTES:
        await _write_waiting(db, pool)


async def _write_waiting(db: AsyncConnection, pool: Growth) -> None:
    if pool.unstated:
        before = _nothing_stated(pool.unstated, pool.scale)
        await write_chunks(db, pool.project_id, pool.pool_id, before, start=0)
        pool.unstated = 0
    columns = {name: np.concatenate(parts) for name, parts in pool.waiting.items()}
    await write_chunks(db, pool.project_id, pool.pool_id, columns, start=pool.waiting_from)
    pool.waiting_from = pool.items
    pool.waiting = {}

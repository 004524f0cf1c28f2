"""What labels, sessions and items cost: bytes on disk and in the WAL, and processor time.

One client works on 64 sessions in turns, so that the processor time of every cycle is known by
itself; then many work on one session, whose requests are taken together.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from celeus.simulation.sessions import Truth
from celeus.store.tables import metadata
from tests.bench.connection import Connection
from tests.bench.judges import Judge
from tests.bench.results import Line
from tests.bench.scale.costs import Costs
from tests.bench.scale.processors import Processors
from tests.bench.truths import synthetic
from tests.bench.worlds import World, opened, sealed

ITEMS = 50_000
SESSIONS = 64
TOGETHER = 64
"""Clients on one session, whose requests wait for each other."""
SECONDS = 4.0
FLUSHES = 200
BLOCK = 8192
_SIZES = """
    SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
    """


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes of every table with its long values, of its indexes, and of the WAL so far."""

    tables: Counter[str]
    indexes: Counter[str]
    wal: int
    images: int

    @classmethod
    def of(cls, url: str) -> "Disk":
        """As it is now."""
        with psycopg.connect(url) as db:
            rows = db.execute(_SIZES).fetchall()
            wal = db.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
            images = db.execute("SELECT wal_fpi FROM pg_stat_wal").fetchone()
        assert wal is not None
        assert images is not None
        return cls(
            Counter({name: table for name, table, _ in rows if name in metadata.tables}),
            Counter({name: index for name, _, index in rows if name in metadata.tables}),
            int(wal[0]),
            int(images[0]),
        )


@dataclass(slots=True)
class Footprint:
    """What was measured, as lines and as what the model of the service is fed with."""

    costs: Costs
    lines: list[Line] = field(default_factory=list)


async def footprint_of(world: World, *, quick: bool) -> Footprint:
    """Fill an empty database with items, sessions and labels, looking at each."""
    labels, opens = (1_280, 100) if quick else (6_400, 500)
    truth = synthetic(ITEMS, risk=0.5, vagueness=20.0)
    lines: list[Line] = []
    url = world.database_url
    async with world.services() as urls, AsyncExitStack() as stack:
        first = await stack.enter_async_context(Connection.to(urls[0]))
        before = Disk.of(url)
        pool = await sealed(first, truth)
        after = Disk.of(url)
        lines += _disk_lines("item", before, after, ITEMS)
        before = after
        for _ in range(opens):
            await opened(first, pool)
        after = Disk.of(url)
        lines += _disk_lines("session", before, after, opens)
        judges = [
            Judge(first, await opened(first, pool), f"judge-{number}", truth)
            for number in range(SESSIONS)
        ]
        for judge in judges:
            await judge.begin()
        spent = await _labels_lines(url, judges, labels, lines)
        together = await _together(urls[0], await opened(first, pool, None), truth)
    means = {name: statistics.fmean(one[name] for one in spent) for name in spent[0]}
    service = [one["service"] for one in spent]
    costs = Costs(
        service=means["service"],
        service_spread=statistics.stdev(service) / means["service"],
        service_together=together["service"],
        database=means["database"],
        database_together=together["database"],
        redis=means["redis"],
        client=means["client"],
        flush=_flush_ms(),
    )
    return Footprint(costs, [*lines, *costs.lines()])


async def _together(url: str, session: str, truth: Truth) -> dict[str, float]:
    """Milliseconds of a cycle where many clients wait for one session."""
    async with AsyncExitStack() as stack:
        judges = []
        for number in range(TOGETHER):
            connection = await stack.enter_async_context(Connection.to(url))
            judges.append(Judge(connection, session, f"judge-{number}", truth))
        for judge in judges:
            await judge.begin()
        processors = Processors.now()
        before = processors.seconds()
        end = time.perf_counter() + SECONDS
        done = sum(await asyncio.gather(*(judge.cycles_until(end) for judge in judges)))
        after = processors.seconds()
    return {it: 1000.0 * (after[it] - before[it]) / done for it in after}


async def footprint_lines(world: World, *, quick: bool) -> AsyncIterator[Line]:
    """Bytes by table, WAL, and processor time a cycle."""
    for line in (await footprint_of(world, quick=quick)).lines:
        yield line


async def _labels_lines(
    url: str, judges: list[Judge], labels: int, lines: list[Line]
) -> list[dict[str, float]]:
    """Label in two halves, the first behind a checkpoint; milliseconds of every cycle."""
    spent: list[dict[str, float]] = []
    processors = Processors.now()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("VACUUM")
        db.execute("CHECKPOINT")
    start = middle = Disk.of(url)
    for half in ("right after a checkpoint", "later"):
        for number in range(labels // 2):
            before = processors.seconds()
            await judges[number % len(judges)].cycle()
            after = processors.seconds()
            spent.append({it: 1000.0 * (after[it] - before[it]) for it in after})
        end = Disk.of(url)
        wal = (end.wal - middle.wal) / (labels // 2)
        images = (end.images - middle.images) / (labels // 2)
        lines.append(Line(f"WAL of a label, {half}", [wal], "bytes"))
        lines.append(Line("… whole pages in it", [images], ""))
        middle = end
    lines += _disk_lines("label", start, middle, labels)
    return spent


def _disk_lines(what: str, before: Disk, after: Disk, count: int) -> list[Line]:
    """Bytes of one by table, the WAL, and all together, of what grew by a byte each."""
    lines, total = [], 0.0
    for name in after.tables:
        table = (after.tables[name] - before.tables[name]) / count
        index = (after.indexes[name] - before.indexes[name]) / count
        total += table + index
        if table + index >= 1.0:
            lines.append(Line(f"a {what} in {name}: rows", [table], "bytes"))
            lines.append(Line("… indexes", [index], "bytes"))
    lines.append(Line(f"a {what} on disk", [total], "bytes"))
    if what != "label":
        lines.append(Line(f"WAL of a {what}", [(after.wal - before.wal) / count], "bytes"))
    return lines


def _flush_ms() -> float:
    """Median milliseconds until 8 KiB written behind each other are on disk."""
    times = []
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("wb") as log:
        log.write(bytes(FLUSHES * BLOCK))
        log.flush()
        os.fsync(log.fileno())
        log.seek(0)
        for _ in range(FLUSHES):
            log.write(bytes(BLOCK))
            log.flush()
            began = time.perf_counter()
            os.fdatasync(log.fileno())
            times.append(1000.0 * (time.perf_counter() - began))
    return statistics.median(times)

"""Imports and mappings of pools."""

import asyncio
import json
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from threading import Event
from uuid import UUID

import numpy as np
import psycopg
import pytest
import rfc8785
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, chain
from celeus.core.pools.rows import growth
from celeus.errors import EmptyPool, InvalidValue, PoolBusy
from celeus.operations.pools import imports, pools
from celeus.operations.pools.imports import (
    MOST_REMEMBERED,
    ImportOptions,
    Rows,
    remember_mapping,
    remembered_mappings,
)
from celeus.operations.pools.pools import NewPool
from celeus.operations.pools.record import Columns, PoolRecord, read_chunks
from celeus.operations.runtime.context import Context
from celeus.store.tables import chunks

ZERO_ONE = LossScale.of("zero_one")
ALL_OR_NOTHING = ImportOptions()
SKIP = ImportOptions(skip_bad_rows=True)


def rows(*items: object, first_line: int = 1) -> Rows:
    return list(range(first_line, first_line + len(items))), list(items)


def scored(start: int, stop: int) -> Rows:
    return rows(*({"id": f"i{index}", "surrogate": index / 1000} for index in range(start, stop)))


async def filled(context: Context, count: int = 10) -> PoolRecord:
    return await pools.create_pool(context, NewPool("pool", ZERO_ONE, scored(0, count)))


async def test_a_pool_loads_as_it_was_uploaded(context: Context) -> None:
    items = [
        {
            "id": f"é\t\\{index}\n",
            "target_probs": [0.25, 0.75] if index % 2 else [1, 0],
            "surrogate_probs": [0.5, 0.5],
            "surrogates": [index / 10, 0.5],
            "group": "odd" if index % 2 else "even",
            "payload": {"text": f'"\\n\t\\{index}', "\ue000": 2.0**53 - 1.0, "\U00010000": -1e-05},
        }
        for index in range(10)
    ]
    made = await pools.create_pool(context, NewPool("p", ZERO_ONE, rows(*items), sealed=True))
    async with context.transaction() as db:
        pool = await pools.load_pool(db, context.project_id, made.pool_id)
    assert (pool.items, pool.classes, pool.groups) == (10, 2, ("even", "odd"))
    assert pool.surrogates[0].tolist() == [index / 10 for index in range(10)]
    assert pool.columns["group"].tolist() == [0, 1] * 5
    assert pool.columns["target_probs"][1].tolist() == [0.25, 0.75]
    assert pool.digest == made.digest
    assert not any(column.flags.writeable for column in pool.columns.values())
    listed, following = await pools.list_items(context, made.pool_id, 100, None)
    payloads = [json.loads(item.payload or "null") for item in listed]
    assert [item.id for item in listed] == [item["id"] for item in items]
    assert (payloads, following) == ([item["payload"] for item in items], None)
    records = [
        rfc8785.dumps([item.id, payload]) for item, payload in zip(listed, payloads, strict=True)
    ]
    assert chain(CHAIN_START, records) == pool.items_digest


async def test_the_columns_of_a_sealed_pool_are_read_once(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await pools.create_pool(context, NewPool("a", ZERO_ONE, scored(0, 300), sealed=True))
    reads: list[object] = []

    async def counted(db: AsyncConnection, pool_id: UUID, items: int) -> Columns:
        reads.append(pool_id)
        return await read_chunks(db, pool_id, items)

    monkeypatch.setattr(pools, "read_chunks", counted)
    (_, first), (_, second) = [await pools.columns(context, made.pool_id) for _ in range(2)]
    assert (first.digest, second is first, len(reads)) == (made.digest, True, 1)


async def test_a_pool_has_one_digest_however_it_came(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = await pools.create_pool(context, NewPool("a", ZERO_ONE, scored(0, 300), sealed=True))
    monkeypatch.setattr(imports, "CHUNK_BYTES", 256)
    piecewise = await pools.create_pool(context, NewPool("b", ZERO_ONE))
    for start in range(0, 300, 100):
        batches = iter([scored(start, start + 60), scored(start + 60, start + 100)])
        await pools.add_items(context, piecewise.pool_id, batches, ALL_OR_NOTHING)
    _, before = await pools.columns(context, piecewise.pool_id)
    sealed = await pools.seal_pool(context, piecewise.pool_id)
    assert before.digest == at_once.digest == sealed.digest
    async with context.transaction() as db:
        count = await db.scalar(select(func.count()).where(chunks.c.pool_id == piecewise.pool_id))
    assert count == 1, "small chunks are joined when the pool is sealed"


async def test_a_duplicate_in_a_later_batch_of_one_import_is_found_too(context: Context) -> None:
    made = await pools.create_pool(context, NewPool("p", ZERO_ONE))
    batches = iter([rows({"id": "a"}, {"id": "b"}), rows({"id": "b"}, {"id": "c"}, first_line=3)])
    done = await pools.add_items(context, made.pool_id, batches, SKIP)
    assert (done.added, done.skipped, [fault.line for fault in done.faults]) == (3, 1, [3])
    listed, _ = await pools.list_items(context, made.pool_id, 10, None)
    assert [(item.index, item.id) for item in listed] == [(0, "a"), (1, "b"), (2, "c")]


async def test_too_many_groups_are_refused(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "MAX_GROUPS", 2)
    made = await pools.create_pool(context, NewPool("p", ZERO_ONE))
    named = rows(*({"id": name, "group": name} for name in "abc"))
    with pytest.raises(InvalidValue) as refused:
        await pools.add_items(context, made.pool_id, iter([named]), ALL_OR_NOTHING)
    assert refused.value.field == "group"


async def test_an_empty_pool_cannot_be_sealed(context: Context) -> None:
    made = await pools.create_pool(context, NewPool("p", ZERO_ONE))
    with pytest.raises(EmptyPool):
        await pools.seal_pool(context, made.pool_id)
    with pytest.raises(EmptyPool):
        await pools.create_pool(context, NewPool("p", ZERO_ONE, sealed=True))
    assert await pools.list_pools(context, 10, None) == ([made], None)


async def test_of_two_imports_at_once_the_second_is_refused_and_the_first_is_whole(
    context: Context,
) -> None:
    made = await pools.create_pool(context, NewPool("p", ZERO_ONE))
    begun, go_on = Event(), Event()

    def slow() -> Iterator[Rows]:
        yield scored(0, 5)
        begun.set()
        go_on.wait(10)
        yield scored(5, 10)

    first = asyncio.create_task(pools.add_items(context, made.pool_id, slow(), ALL_OR_NOTHING))
    await asyncio.to_thread(begun.wait, 10)
    for attempt in (
        pools.add_items(context, made.pool_id, iter([scored(20, 25)]), ALL_OR_NOTHING),
        pools.seal_pool(context, made.pool_id),
    ):
        with pytest.raises(PoolBusy):
            await attempt
    go_on.set()
    assert (await first).pool.items == 10
    _, pool = await pools.columns(context, made.pool_id)
    assert pool.surrogates[0].tolist() == [index / 1000 for index in range(10)]


async def test_who_waits_for_another_process_takes_no_place_of_those_who_compute(
    context: Context,
) -> None:
    made = await filled(context)
    go_on = Event()
    begun = [Event() for _ in range(int(imports.BATCHES_AT_ONCE.total_tokens))]

    def slow(begins: Event) -> Iterator[Rows]:
        begins.set()
        go_on.wait(30)
        yield scored(0, 5)

    waiting = [
        asyncio.create_task(
            pools.pool_of_file(
                replace(context, key_id=f"key {number}"),
                NewPool("slow", ZERO_ONE),
                slow(begins),
                ImportOptions(elsewhere=True),
            )
        )
        for number, begins in enumerate(begun)
    ]
    try:
        for begins in begun:
            assert await asyncio.to_thread(begins.wait, 10)
        adding = pools.add_items(context, made.pool_id, iter([scored(20, 25)]), ALL_OR_NOTHING)
        assert (await asyncio.wait_for(adding, 10)).added == 5
    finally:
        go_on.set()
        assert [done.added for done in await asyncio.gather(*waiting)] == [5] * len(begun)


async def test_the_database_hears_of_an_import_that_waits_for_another_process(
    context: Context, emptying: psycopg.Connection
) -> None:
    """It ends a transaction in which nothing is said for long; parsing a document may take that."""
    go_on = Event()

    def slow() -> Iterator[Rows]:
        go_on.wait(30)
        yield scored(0, 5)

    heard = (
        "SELECT max(state_change) FROM pg_stat_activity"
        " WHERE state = 'idle in transaction' AND query = 'SELECT 1'"
    )
    options = ImportOptions(elsewhere=True)
    waiting = asyncio.create_task(
        pools.pool_of_file(context, NewPool("slow", ZERO_ONE), slow(), options)
    )
    try:
        for _ in range(200):
            if emptying.execute(heard).fetchone() != (None,):
                break
            await asyncio.sleep(0.05)
        assert emptying.execute(heard).fetchone() != (None,)
    finally:
        go_on.set()
        assert (await waiting).added == 5


async def test_an_import_that_is_given_up_ends_after_the_thread_that_reads_for_it(
    context: Context,
) -> None:
    begun, go_on = Event(), Event()

    def slow() -> Generator[Rows]:
        begun.set()
        go_on.wait(30)
        yield scored(0, 5)

    with closing(slow()) as lines:
        adding = asyncio.create_task(
            pools.pool_of_file(
                context, NewPool("slow", ZERO_ONE), lines, ImportOptions(elsewhere=True)
            )
        )
        assert await asyncio.to_thread(begun.wait, 10)
        adding.cancel()
        asyncio.get_running_loop().call_later(0.2, go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert go_on.is_set()


async def test_sixteen_imports_at_once_leave_whole_uploads_only(context: Context) -> None:
    made = await pools.create_pool(context, NewPool("p", ZERO_ONE))

    async def attempt(number: int) -> int:
        upload = scored(number * 10, number * 10 + 10)
        try:
            done = await pools.add_items(context, made.pool_id, iter([upload]), ALL_OR_NOTHING)
        except PoolBusy:
            return 0
        return done.added

    added = await asyncio.gather(*(attempt(number) for number in range(16)))
    record, pool = await pools.columns(context, made.pool_id)
    assert record.items == sum(added) > 0
    listed, _ = await pools.list_items(context, made.pool_id, 1000, None)
    assert [item.index for item in listed] == list(range(record.items))
    expected = [int(item.id[1:]) / 1000 for item in listed]
    assert np.array_equal(pool.surrogates[0], expected)
    assert chain(CHAIN_START, [rfc8785.dumps([item.id, None]) for item in listed]) == (
        pool.items_digest
    )


async def test_those_used_last_are_kept_and_the_last_one_comes_first(context: Context) -> None:
    for number in range(MOST_REMEMBERED + 2):
        await remember_mapping(context, {f"column {number}": "text"})
    await remember_mapping(context, {"column 7": "answer"})
    found = await remembered_mappings(context)
    assert len(found) == MOST_REMEMBERED
    assert found[0] == {"column 7": "answer"}
    assert {"column 0": "text"} not in found


async def test_a_mapping_of_very_many_columns_is_not_kept(context: Context) -> None:
    await remember_mapping(context, {f"column {number}": "hidden" for number in range(5_000)})
    assert await remembered_mappings(context) == []

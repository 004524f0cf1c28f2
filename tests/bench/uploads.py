"""Getting a pool in and a session open: import by format, sealing, opening, coming back."""

import io
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from tests.bench.connection import Connection
from tests.bench.results import Goal, Line
from tests.bench.truths import Floats, synthetic
from tests.bench.worlds import World, created, opened, sealed

REBUILT_ROUNDS = 5_000
REBUILT_ITEMS = 127_600
ROUNDS_AT_ONCE = 250


def _ndjson(table: pa.Table) -> bytes:
    return b"\n".join(map(orjson.dumps, table.to_pylist()))


def _csv(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pyarrow.csv.write_csv(table, file)
    return file.getvalue()


def _parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file)
    return file.getvalue()


@dataclass(frozen=True, slots=True)
class Upload:
    """A format, as it is announced and written."""

    name: str
    media: str
    write: Callable[[pa.Table], bytes]


UPLOADS = (
    Upload("NDJSON", "application/x-ndjson", _ndjson),
    Upload("CSV", "text/csv", _csv),
    Upload("Parquet", "application/vnd.apache.parquet", _parquet),
)


async def upload_lines(world: World, *, quick: bool) -> AsyncIterator[Line]:
    """Import, seal and open at a million items; a fresh process coming back to a long session."""
    items, repeats = (100_000, 1) if quick else (1_000_000, 3)
    truth = synthetic(items)
    table = items_of(truth.scores.surrogate)
    sealing: list[float] = []
    pools: list[str] = []
    async with world.services() as urls, Connection.to(urls[0]) as connection:
        for upload in UPLOADS:
            body = upload.write(table)
            rates = []
            for _ in range(repeats):
                pool = await created(connection)
                seconds = await _posted(connection, f"/v1/pools/{pool}/items", body, upload.media)
                rates.append(items / seconds)
                sealing.append(await _posted(connection, f"/v1/pools/{pool}/seal"))
                pools.append(pool)
            what = f"import of {items:,} items over HTTP, {upload.name}"
            yield Line(what, rates, "items/s", Goal.least(50_000, "items/s"))
    yield Line(f"sealing {items:,} items", sealing, "s")
    cold: list[float] = []
    warm: list[float] = []
    for pool in pools[:repeats]:
        async with world.services() as urls, Connection.to(urls[0]) as connection:
            for times in (cold, warm, warm):
                times.append(await _opened_in(connection, pool))
    goal = Goal.most(3, "s")
    yield Line(f"opening a session on {items:,} items, pool not loaded", cold, "s", goal)
    yield Line(f"opening a session on {items:,} items, pool loaded", warm, "s", goal)
    samples = await _comeback(world, repeats)
    what = f"first answer of a new process: {REBUILT_ROUNDS:,} rounds, {REBUILT_ITEMS:,} items"
    yield Line(what, samples, "s", Goal.most(2, "s"))


def items_of(surrogate: Floats) -> pa.Table:
    """Items with an id and a surrogate, no payload."""
    ids = [f"item-{index:07d}" for index in range(surrogate.size)]
    return pa.table({"id": ids, "surrogate": surrogate})


async def _posted(
    connection: Connection, path: str, body: bytes = b"", media: str = "application/json"
) -> float:
    began = time.perf_counter()
    (await connection.post(path, body, media)).json()
    return time.perf_counter() - began


async def _opened_in(connection: Connection, pool: str) -> float:
    began = time.perf_counter()
    await opened(connection, pool)
    return time.perf_counter() - began


async def _comeback(world: World, repeats: int) -> list[float]:
    """Seconds until a process that knows nothing hands out the next item of a long session."""
    truth = synthetic(REBUILT_ITEMS)
    async with world.services() as urls, Connection.to(urls[0]) as connection:
        # Without a precision it does not stop before its rounds are full
        session = await opened(connection, await sealed(connection, truth), precision=None)
        path = f"/v1/sessions/{session}"
        asked = {"worker": "judge", "count": ROUNDS_AT_ONCE}
        answer = await connection.send(f"{path}/next", asked)
        for _ in range(REBUILT_ROUNDS // ROUNDS_AT_ONCE):
            judged = [
                {"round": draw["round"], "loss": int(truth.loss[draw["item"]["index"]])}
                for draw in answer["draws"]
            ]
            body = {"observations": judged, "worker": "judge", "next": ROUNDS_AT_ONCE}
            answer = await connection.send(f"{path}/observe", body)
    samples = []
    for _ in range(repeats):
        async with world.services() as urls, Connection.to(urls[0]) as connection:
            began = time.perf_counter()
            await connection.send(f"{path}/next", {"worker": "judge", "count": 1})
            samples.append(time.perf_counter() - began)
    return samples

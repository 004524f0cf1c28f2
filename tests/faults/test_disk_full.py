"""A full disk: under the embedded database, and under the uploads of a server."""

import asyncio
from contextlib import suppress
from pathlib import Path

import httpx
import psycopg
import pytest

from celeus.store.embedded import server
from tests.faults.disks import small_disk
from tests.faults.loads import assert_nothing_lost, client_of, loaded, until
from tests.faults.processes import serving
from tests.faults.tally import Tally
from tests.servers import Service, started_service

pytestmark = pytest.mark.nightly

ROUNDS = 160


async def test_a_full_disk_under_the_embedded_database_loses_nothing(tally: Tally) -> None:
    """Full for the tables; then for the log too, which PostgreSQL does not survive."""
    with small_disk(mebibytes=192) as disk:
        environment = {"CELEUS_DATA_DIR": str(disk.folder / "data")}
        service = await asyncio.to_thread(started_service, None, None, environment)
        try:
            async with loaded([service.url], ROUNDS) as load:
                work = asyncio.create_task(load.judged(judges=4, pause=0.1))
                await load.reached(30)
                await asyncio.to_thread(disk.fill)
                # The pages that tables still had are used up, and then nothing is acknowledged
                await until(lambda: load.answers[503] > 3)
                disk.free()
                await load.reached(len(load.acknowledged) + 20)
                await asyncio.to_thread(disk.fill)
                await asyncio.to_thread(fill_log, disk.folder / "data")
                before = load.answers[503]
                await until(lambda: load.answers[503] > before + 3)
                disk.free()
                if server.pid(disk.folder / "data") is None:
                    await asyncio.to_thread(ended, service)
                    service = await asyncio.to_thread(started_service, None, None, environment)
                    load.urls[0] = service.url
                await work
                assert set(load.answers) <= {0, 200, 503}
                url = server.running(disk.folder / "data")
                assert url is not None
                await assert_nothing_lost(load, url)
        finally:
            await asyncio.to_thread(ended, service)
    tally.count("disk of the embedded database full: tables, then the log too", 2)


def ended(service: Service) -> None:
    """End a server as an operator does."""
    service.process.terminate()
    service.process.wait(60)


def fill_log(folder: Path) -> None:
    """Have PostgreSQL need a new file of its log, for which there is no room."""
    url = server.running(folder)
    assert url is not None
    with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as db:
        for _ in range(3):
            db.execute("SELECT pg_switch_wal()")
            db.execute("CREATE TEMPORARY TABLE filler AS SELECT 1")
            db.execute("SELECT pg_logical_emit_message(true, 'fill', repeat('x', 20000))")
            db.execute("DROP TABLE filler")


async def test_an_upload_that_finds_no_room_is_refused_by_name(
    database_url: str, tally: Tally
) -> None:
    with small_disk(mebibytes=4) as disk:
        environment = {"TMPDIR": str(disk.folder)}
        async with (
            serving(1, database_url, environment=environment) as (service,),
            client_of(service.url) as client,
        ):
            body = {"name": "big", "loss": {"kind": "zero_one"}}
            pool = (await client.post("/v1/pools", json=body)).json()["id"]
            lines = b"".join(
                b'{"id": "i%d", "surrogate": 0.5, "payload": "%0200d"}\n' % (number, number)
                for number in range(30_000)
            )
            answer = await upload(client, pool, lines)
            assert (answer.status_code, answer.json()["code"]) == (503, "disk_full"), answer.text
            assert answer.headers["Retry-After"]
            small = lines[: lines.index(b"\n", 100_000) + 1]
            assert (await upload(client, pool, small)).json()["added"] == small.count(b"\n")
            assert (await client.post(f"/v1/pools/{pool}/seal")).status_code == 200
            disk.fill()
            answer = await client.get(f"/v1/pools/{pool}/columns.npz")
            assert (answer.status_code, answer.json()["code"]) == (503, "disk_full")
    tally.count("temporary folder full: upload, download of columns", 2)


async def upload(client: httpx.AsyncClient, pool: str, lines: bytes) -> httpx.Response:
    return await client.post(
        f"/v1/pools/{pool}/items",
        content=lines,
        headers={"Content-Type": "application/x-ndjson"},
    )

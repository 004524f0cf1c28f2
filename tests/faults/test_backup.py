"""Backup and restore with PostgreSQL's own tools, as docs/operations.md tells, under load."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psycopg
import pytest
from httpx import AsyncClient

from celeus.store.embedded import server
from tests.factories import known_pool, opened
from tests.faults.loads import Load, assert_nothing_lost, client_of, loaded
from tests.faults.processes import serving
from tests.faults.tally import Tally
from tests.operations.replays import Kept, kept
from tests.receivers import until
from tests.servers import (
    Service,
    data_folder,
    put_cluster,
    started_service,
)

pytestmark = pytest.mark.nightly

ROUNDS = 120
RESTORE = ["pg_restore", "--single-transaction", "-d"]
CLEAN = ["--clean", "--if-exists"]


def celeus(*arguments: str | Path, **settings: str | Path) -> str:
    """Run a command as an operator does; what it prints."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("CELEUS_")}
    chosen = {f"CELEUS_{name.upper()}": str(value) for name, value in settings.items()}
    command = [sys.executable, "-m", "celeus.cli", *map(str, arguments)]
    done = subprocess.run(
        command, env=own | chosen, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def run(*arguments: str | Path, **settings: str | Path) -> str:
    """The same, while other things go on."""
    return await asyncio.to_thread(celeus, *arguments, **settings)


async def dumped(dump: Path, **settings: str | Path) -> None:
    """Back up, whatever is going on."""
    await run("admin", "database", "pg_dump", "-Fc", "-f", dump, **settings)


@asynccontextmanager
async def private(folder: Path) -> AsyncIterator[Service]:
    """A server with a database of its own."""
    environment = {"CELEUS_DATA_DIR": str(folder)}
    service = await asyncio.to_thread(started_service, None, None, environment)
    try:
        yield service
    finally:
        service.process.terminate()
        await asyncio.to_thread(service.process.wait, 60)


@contextmanager
def empty_database(url: str) -> Iterator[str]:
    """Another database on the same server, with nothing in it."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE DATABASE restored")
    try:
        yield url.replace("/celeus?", "/restored?")
    finally:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("DROP DATABASE restored WITH (FORCE)")


def goes_on_from(load: Load, found: Kept, url: str) -> Load:
    """The judges of a restored session: what the backup holds was acknowledged to them."""
    known = {row["round"]: row["sequence"] for row in found.events if row["kind"] == 2}
    return Load(load.pool, load.session, [url], load.rounds, acknowledged=known)


async def test_a_backup_taken_under_load_is_whole_and_its_sessions_go_on(
    database_url: str, tally: Tally
) -> None:
    with data_folder() as folder, empty_database(database_url) as restored_url:
        dump = folder / "celeus.dump"
        async with (
            serving(2, database_url) as services,
            loaded([service.url for service in services], ROUNDS) as load,
        ):
            work = asyncio.create_task(load.judged(pause=0.2))
            await load.reached(ROUNDS // 4)
            before = dict(load.acknowledged)
            load.pause = 2.0
            await dumped(dump, database_url=database_url)
            load.pause = 0.02
            await work
            found = await assert_nothing_lost(load, database_url)
        await run("admin", "database", *RESTORE, "restored", dump, database_url=restored_url)
        copy = kept(restored_url, load.session)
        assert copy.events == found.events[: len(copy.events)]
        assert len(copy.events) < len(found.events), "it was taken in the middle"
        kept_rounds = {row["round"]: row["sequence"] for row in copy.events if row["kind"] == 2}
        assert before.items() <= kept_rounds.items(), "all that was acknowledged before it began"
        audit = await run("admin", "audit", database_url=restored_url)
        assert f"1 sessions, {len(copy.events)} events" in audit
        # The key of the backup opens the restored service
        async with serving(1, restored_url) as (service,):
            going_on = goes_on_from(load, copy, service.url)
            await going_on.judged()
            await assert_nothing_lost(going_on, restored_url)
        audit = await run("admin", "audit", database_url=restored_url)
        assert "0 differ" in audit
    tally.count("pg_dump under load, restored into an empty database", 1)


async def test_the_private_database_is_restored_into_a_new_folder(tally: Tally) -> None:
    with data_folder() as folder:
        old, new = put_cluster(folder / "old"), folder / "new"
        dump = folder / "celeus.dump"
        async with private(old) as service, loaded([service.url], 60) as load:
            work = asyncio.create_task(load.judged(judges=4))
            await load.reached(20)
            await dumped(dump, data_dir=old)
            await work
        await run("admin", "migrate", "--data-dir", new)
        await run("admin", "database", "--data-dir", new, *RESTORE, "celeus", *CLEAN, dump)
        shutil.copy2(old / "signing.pem", new)
        audit = await run("admin", "audit", "--data-dir", new)
        assert "1 sessions" in audit
        assert "0 differ" in audit
        async with private(new) as service:
            url = server.running(new)
            assert url is not None
            going_on = goes_on_from(load, kept(url, load.session), service.url)
            await going_on.judged(judges=4)
            await assert_nothing_lost(going_on, url)
    tally.count("private database dumped under load, restored into a new folder", 1)


async def test_servers_that_ran_through_a_restore_follow_the_restored_ledger(
    database_url: str, redis_url: str, tally: Tally
) -> None:
    """One is ahead of what was restored, and the ledger grows past it again, with other losses."""
    with data_folder() as folder:
        dump = folder / "celeus.dump"
        async with (
            serving(2, database_url, redis_url, status_ttl_seconds=1) as services,
            client_of(services[0].url) as one,
            client_of(services[1].url) as other,
        ):
            pool = await known_pool(one, 2 * ROUNDS)
            session = await opened(one, pool, budget=ROUNDS)
            path = f"/v1/sessions/{session}"
            for number in range(10):
                await judged(one if number % 2 else other, path, loss=0)
            await dumped(dump, database_url=database_url)
            for _ in range(10):
                # These will never have been; only this server remembers them
                await judged(other, path, loss=0)
            await run(
                "admin", "database", *RESTORE, "celeus", *CLEAN, dump, database_url=database_url
            )
            copy = kept(database_url, session)
            assert len(copy.events) == 20
            for _ in range(15):
                await judged(one, path, loss=1)
            await judged(other, path, loss=1)
            audit = await run("admin", "audit", database_url=database_url)
            assert "1 sessions, 52 events" in audit

            async def rounds_judged() -> int:
                return int((await other.get(path)).json()["rounds"]["judged"])

            await until(rounds_judged, lambda judged: judged == 26)
    tally.count("older state restored under running servers", 1)


async def judged(client: AsyncClient, path: str, loss: int) -> None:
    """Judge one round, whatever is said of it."""
    offer = (await client.post(f"{path}/next", json={"worker": "ada"})).json()
    body = {"round": offer["draws"][0]["round"], "loss": loss, "worker": "ada"}
    answer = await client.post(f"{path}/observe", json=body)
    assert answer.status_code == 200, answer.text

"""PostgreSQL stopped, crashed and started under load: refused by name meanwhile, nothing lost."""

import asyncio
import os
import signal
import time

import psycopg
import pytest

from celeus.store import revisions
from tests.faults.loads import (
    Load,
    Watch,
    assert_nothing_lost,
    client_of,
    loaded,
    until,
)
from tests.faults.processes import serving
from tests.faults.routes import EVERY_ROUTE, asked
from tests.faults.tally import Tally
from tests.servers import RestartablePostgres, data_folder, restartable_postgres

pytestmark = pytest.mark.nightly

ROUNDS = 120
SLOWEST_SECONDS = 30.0
"""Far more than lock timeout and connection timeout together, for a machine that is busy."""


def crash_one_backend(postgres: RestartablePostgres) -> None:
    """Have PostgreSQL throw every connection out and recover, as after a segmentation fault."""
    with psycopg.connect(postgres.url) as db:
        row = db.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'celeus' LIMIT 1"
        ).fetchone()
    assert row is not None
    os.kill(row[0], signal.SIGKILL)


async def every_route_refused(load: Load) -> list[int]:
    """Ask everything while there is no database."""
    async with client_of(load.urls[0]) as client:
        statuses = []
        for route in EVERY_ROUTE:
            began = time.monotonic()
            statuses.append(await asked(client, route, load))
            assert time.monotonic() - began < SLOWEST_SECONDS
        assert (await client.get("/healthz")).status_code == 200
    return statuses


async def test_a_database_stopped_crashed_and_started_under_load_costs_only_time(
    tally: Tally,
) -> None:
    with data_folder() as folder, restartable_postgres(folder / "data") as postgres:
        revisions.upgrade(postgres.url)
        async with (
            serving(2, postgres.url) as services,
            loaded([service.url for service in services], ROUNDS) as load,
        ):
            watch = Watch(load)
            async with watch.watching():
                work = asyncio.create_task(load.judged())
                await load.reached(20)
                await asyncio.to_thread(postgres.stop, "fast")
                refused = await every_route_refused(load)
                await asyncio.to_thread(postgres.start)
                await load.reached(50)
                refusals = load.answers[503]
                await asyncio.to_thread(postgres.stop, "immediate")
                await until(lambda: load.answers[503] > refusals)
                await asyncio.to_thread(postgres.start)
                await load.reached(80)
                await asyncio.to_thread(crash_one_backend, postgres)
                await work
            assert set(refused) == {503}
            assert load.answers[503] > 0
            assert load.answers[0] == 0, "a server answers, whatever its database does"
            assert load.slowest < SLOWEST_SECONDS
            found = await assert_nothing_lost(load, postgres.url)
            watch.assert_true(found, most_behind_seconds=0)
    tally.count("PostgreSQL stopped (fast, immediate) or crashed under load", 3)
    tally.count("requests without a database, each refused as 503", len(refused))

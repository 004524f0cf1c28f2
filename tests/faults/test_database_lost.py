"""PostgreSQL stopped, crashed and started under load: refused by name meanwhile, nothing lost."""

import asyncio
import os
import signal
import time
from collections import Counter

import psycopg

from app.store import migrations
from tests.faults.loads import (
    Watch,
    assert_nothing_lost,
    assert_worth_repeating,
    client_of,
    loaded,
)
from tests.faults.processes import serving
from tests.faults.tally import Tally
from tests.servers import RestartablePostgres, data_folder, restartable_postgres

ROUNDS = 120
SLOWEST_SECONDS = 10.0
"""Lock timeout and connection timeout together are less."""

EVERY_ROUTE = [
    ("GET", "/readyz", None),
    ("GET", "/v1/pools", None),
    ("GET", "/v1/pools/{pool}", None),
    ("GET", "/v1/pools/{pool}/items", None),
    ("GET", "/v1/pools/{pool}/columns.npz", None),
    ("POST", "/v1/pools", {"name": "new", "loss": {"kind": "zero_one"}}),
    ("POST", "/v1/pools/{pool}/seal", None),
    ("GET", "/v1/sessions", None),
    ("GET", "/v1/sessions/{session}", None),
    ("GET", "/v1/sessions/{session}/trajectory", None),
    ("GET", "/v1/sessions/{session}/ledger", None),
    ("GET", "/v1/sessions/{session}/stream", None),
    ("POST", "/v1/sessions", {"pool_id": "{pool}"}),
    ("POST", "/v1/sessions/{session}/next", {"worker": "ada"}),
    ("POST", "/v1/sessions/{session}/observe", {"round": 1, "loss": 0, "worker": "ada"}),
    (
        "POST",
        "/v1/sessions/{session}/amendments",
        {"round": 1, "loss": 0, "author": "ada", "reason": "typo"},
    ),
    ("PATCH", "/v1/sessions/{session}", {"budget": ROUNDS}),
]


def crash_one_backend(postgres: RestartablePostgres) -> None:
    """Have PostgreSQL throw every connection out and recover, as after a segmentation fault."""
    with psycopg.connect(postgres.url) as db:
        row = db.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'celeus' LIMIT 1"
        ).fetchone()
    assert row is not None
    os.kill(row[0], signal.SIGKILL)


async def every_route_refused(url: str, pool: str, session: str) -> Counter[int]:
    """Ask everything while there is no database."""
    names = {"{pool}": pool, "{session}": session}
    answers: Counter[int] = Counter()
    async with client_of(url) as client:
        for method, path, body in EVERY_ROUTE:
            where, told = path, body
            for name, real in names.items():
                where = where.replace(name, real)
                if told is not None:
                    told = {key: real if value == name else value for key, value in told.items()}
            began = time.monotonic()
            answer = await client.request(method, where, json=told)
            assert time.monotonic() - began < SLOWEST_SECONDS
            assert_worth_repeating(answer)
            answers[answer.status_code] += 1
        assert (await client.get("/healthz")).status_code == 200
    return answers


async def test_a_database_stopped_crashed_and_started_under_load_costs_only_time(
    tally: Tally,
) -> None:
    with data_folder() as folder, restartable_postgres(folder / "data") as postgres:
        migrations.upgrade(postgres.url)
        async with (
            serving(2, postgres.url) as services,
            loaded([service.url for service in services], ROUNDS) as load,
        ):
            watch = Watch(load)
            async with watch.watching():
                work = asyncio.create_task(load.judged())
                await load.reached(20)
                await asyncio.to_thread(postgres.stop, "fast")
                refused = await every_route_refused(services[0].url, load.pool.id, load.session)
                await asyncio.to_thread(postgres.start)
                await load.reached(50)
                await asyncio.to_thread(postgres.stop, "immediate")
                await asyncio.sleep(1)
                await asyncio.to_thread(postgres.start)
                await load.reached(80)
                await asyncio.to_thread(crash_one_backend, postgres)
                await work
            assert refused == {503: len(EVERY_ROUTE)}
            assert load.answers[503] > 0
            assert load.answers[0] == 0, "a server answers, whatever its database does"
            assert load.slowest < SLOWEST_SECONDS
            found = await assert_nothing_lost(load, postgres.url)
            watch.assert_true(found, most_behind_seconds=0)
    tally.count("PostgreSQL stopped (fast, immediate) or crashed under load", 3)
    tally.count("requests without a database, each refused as 503", refused[503])

"""Clocks that jump: leases end early or late, times of events stay in order."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from tests.factories import known_pool, opened
from tests.faults.clocks import HostClock, database_clock
from tests.faults.loads import assert_nothing_lost, client_of, loaded
from tests.faults.processes import serving
from tests.faults.tally import Tally

pytestmark = pytest.mark.nightly

JUMPS = 30
HOUR = 3600.0
MADE = 30


async def test_the_databases_clock_jumps_under_load(database_url: str, tally: Tally) -> None:
    rng = random.Random(5)  # noqa: S311 - only where the clock jumps to
    with database_clock(database_url) as clock:
        async with (
            serving(2, clock.url) as services,
            loaded([one.url for one in services], 120, lease_seconds=2) as load,
        ):
            work = asyncio.create_task(load.judged(pause=0.2))
            for _ in range(JUMPS):
                offset = rng.choice([-24 * HOUR, -HOUR, -3.0, 0.0, 3.0, HOUR, 24 * HOUR])
                await asyncio.to_thread(clock.jump, offset + rng.random())
                await asyncio.sleep(0.05)
            await work
            found = await assert_nothing_lost(load, database_url)
            times = [row["at"] for row in found.events]
            assert times == sorted(times)
            assert (times[-1] - times[0]).total_seconds() > HOUR / 2, "the jumps were seen"
            assert set(load.answers) == {200}
    tally.count("jumps of the database's clock, up to a day either way, under load", JUMPS)


async def test_ids_made_while_the_hosts_clock_jumps_back_are_all_listed(
    database_url: str, tmp_path: Path, tally: Tally
) -> None:
    rng = random.Random(6)  # noqa: S311 - only where the clock jumps to
    clock = HostClock(tmp_path)
    async with (
        serving(1, database_url, environment=clock.environment) as (service,),
        client_of(service.url) as client,
    ):
        clock.jump(HOUR)
        pool = await known_pool(client, 20)
        pools, sessions = [pool.id], [await opened(client, pool)]
        for made in range(MADE):
            clock.jump(rng.uniform(-HOUR, HOUR))
            body = {"name": f"pool {made}", "loss": {"kind": "zero_one"}}
            pools.append((await client.post("/v1/pools", json=body)).json()["id"])
            sessions.append(await opened(client, pool))
            if made == MADE // 2:
                clock.jump(-HOUR)
                between = await listed(client, "/v1/sessions")
                assert set(between) == set(sessions)
        assert sorted(sessions) != sessions, "the jumps were seen"
        for path, known in (("/v1/pools", pools), ("/v1/sessions", sessions)):
            found = await listed(client, path)
            assert sorted(found) == sorted(known)
            for name in known:
                assert (await client.get(f"{path}/{name}")).json()["id"] == name
    tally.count("jumps of a host's clock while ids are made", MADE)


async def listed(client: AsyncClient, path: str) -> list[str]:
    """Every id that paging through a list shows, in its order."""
    found: list[str] = []
    after: dict[str, Any] = {}
    while True:
        page = (await client.get(path, params={"limit": 7} | after)).json()
        found += [one["id"] for one in page["data"]]
        if page["next"] is None:
            return found
        after = {"after": page["next"]}

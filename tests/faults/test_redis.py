"""Redis killed, emptied, filled, silenced: what is told stays true, and judges notice nothing."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import redis

from tests.faults.loads import (
    MOST_SECONDS,
    Load,
    Watch,
    assert_nothing_lost,
    client_of,
    loaded,
    until,
)
from tests.faults.processes import serving
from tests.faults.proxies import Cut, Link, before_port, let_pass
from tests.faults.tally import Tally
from tests.servers import RedisServer, free_port, running_redis

pytestmark = pytest.mark.nightly

ROUNDS = 180
TTL_SECONDS = 2
MOST_BEHIND_SECONDS = TTL_SECONDS + 1.5
"""How old a status may be when its successor was lost with Redis: its time to live, and haste."""


@asynccontextmanager
async def watched(database_url: str, redis_url: str, servers: int) -> AsyncIterator[Watch]:
    """Servers, a session nobody has worked on, dashboards on each."""
    async with (
        serving(servers, database_url, redis_url, status_ttl_seconds=TTL_SECONDS) as services,
        loaded([service.url for service in services], ROUNDS) as load,
    ):
        watch = Watch(load)
        async with watch.watching():
            yield watch


async def finished(watch: Watch, work: asyncio.Task[None], database_url: str) -> None:
    """Let the judges come to their end; then everything told was true."""
    await work
    load = watch.load
    found = await assert_nothing_lost(load, database_url, shared_rounds=False)
    last = found.session["sequence"]
    await until(lambda: watch.seen[-1][1]["sequence"] == watch.streamed[-1]["sequence"] == last)
    watch.assert_true(found, MOST_BEHIND_SECONDS)
    assert set(load.answers) == {200}, "a judge never notices Redis"
    assert set(watch.answers) == {200}
    assert load.slowest < 5


async def test_redis_killed_full_silent_slow_or_torn(database_url: str, tally: Tally) -> None:
    async def silent(_link: Link, _piece: bytes) -> None:
        await asyncio.Event().wait()

    async def slow(_link: Link, _piece: bytes) -> None:
        await asyncio.sleep(0.2)

    async def torn(_link: Link, _piece: bytes) -> None:
        if rng.random() < 0.3:
            raise Cut

    rng = random.Random(4)  # noqa: S311 - only which answer is cut
    port, kills = free_port(), 3
    async with (
        before_port(port) as (proxy, at),
        watched(database_url, f"redis://127.0.0.1:{at}/0", servers=2) as watch,
    ):
        load = watch.load
        work = asyncio.create_task(load.judged(pause=0.5))
        for number in range(kills):
            with running_redis(port) as server:
                await load.reached((number + 1) * 20)
                server.end()
            await load.reached(len(load.acknowledged) + 1)
        with running_redis(port) as server:
            await load.reached(80)
            # Writes are refused, reads are not: what is kept from before must not be believed
            limit_memory(server, "1mb")
            await load.reached(100)
            limit_memory(server, "0")
            for number, fault in enumerate((silent, slow, torn), start=1):
                proxy.answered = fault
                await load.reached(100 + 20 * number)
            proxy.answered = let_pass
            await finished(watch, work, database_url)
    tally.count("Redis killed under load and started again, empty", kills)
    tally.count("Redis full, silent, slow, or torn off in mid-answer, under load", 4)


def limit_memory(server: RedisServer, limit: str) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", limit)


async def test_redis_emptied_and_its_listeners_cut_off(database_url: str, tally: Tally) -> None:
    with running_redis() as server:
        async with watched(database_url, server.url, servers=1) as watch:
            load = watch.load
            work = asyncio.create_task(load.judged(pause=0.5))
            with redis.Redis.from_url(server.url) as client:
                faults = lost_contents(client)
                for fault in faults:
                    await asyncio.to_thread(fault)
                    await load.reached(len(load.acknowledged) + 1)
            await finished(watch, work, database_url)
            await assert_heals(load, server.url)
    # Once while the session is judged, once more when it rests
    tally.count("Redis emptied, or its scripts or listeners gone", 2 * len(faults))


def lost_contents(client: redis.Redis) -> list[Callable[[], object]]:
    return [
        client.flushall,
        client.script_flush,
        lambda: client.client_kill_filter(_type="pubsub"),
    ]


async def assert_heals(load: Load, redis_url: str) -> None:
    """Whatever is lost, the true status is told, and soon lies in Redis again."""
    key = "celeus:status:1:" + load.session.removeprefix("ses_")
    async with client_of(load.urls[0]) as reader:
        path = f"/v1/sessions/{load.session}"
        status = (await reader.get(path)).json()
        with redis.Redis.from_url(redis_url) as client:
            for fault in lost_contents(client):
                fault()
                async with asyncio.timeout(MOST_SECONDS):
                    while True:
                        assert (await reader.get(path)).json() == status
                        if 0 < client.ttl(key) <= TTL_SECONDS:
                            break
                        await asyncio.sleep(0.05)

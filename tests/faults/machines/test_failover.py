"""The machine of the database dies: its standby takes its place, and nothing acknowledged is lost.

It takes root, Debian's HAProxy, and minutes.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from tests.faults.loads import Load, assert_nothing_lost, loaded
from tests.faults.machines.network import Machine, machines
from tests.faults.machines.programs import haproxy, require
from tests.faults.machines.standby import Pair, by_itself, running_pair, supervised
from tests.faults.processes import serving
from tests.faults.tally import Tally
from tests.operations.replays import kept
from tests.servers import data_folder, free_port

FAILOVERS = 10
ROUNDS = 200
BACK_SECONDS = 30.0

pytestmark = pytest.mark.nightly

BALANCER = """
defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    timeout check 1s

listen database
    bind 127.0.0.1:{port}
    # Told by whoever decides which is the primary, as Patroni is at /primary
    option httpchk GET /
    default-server check inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
{servers}
"""


@asynccontextmanager
async def balanced(count: int = 2) -> AsyncIterator[tuple[Pair, str]]:
    """A pair on two machines, looked after, and the address that always leads to its primary."""
    require("haproxy")
    with machines(count) as places, data_folder() as folder:
        async with running_pair(places, folder) as pair, supervised(pair) as told:
            port = free_port()
            servers = "\n".join(
                f"    server node-{number} {node.machine.address}:{node.machine.port}"
                f" port {told[number]} addr 127.0.0.1"
                for number, node in enumerate(pair.nodes)
            )
            with haproxy(BALANCER.format(port=port, servers=servers), port, folder):
                yield pair, f"postgresql://postgres@127.0.0.1:{port}/celeus"


async def failed_over(pair: Pair, urls: list[str], fault: Callable[[Machine], None]) -> Load:
    """A session judged to its end while the primary is lost; it was back in time."""
    async with loaded(urls, ROUNDS) as load:
        work = asyncio.create_task(load.judged())
        await load.reached(ROUNDS // 4)
        assert pair.primary is not None
        before = pair.promotions
        fault(pair.primary.machine)
        lost_at = time.monotonic()
        await work
        assert pair.promotions == before + 1
    times = [lost_at, *(at for at in sorted(load.acknowledged_at.values()) if at > lost_at)]
    load.outage = max(later - at for at, later in pairwise(times))
    assert load.outage < BACK_SECONDS
    return load


async def assert_all_kept(loads: list[Load], database_url: str) -> None:
    """What any of the sessions had acknowledged outlived all later failovers, too."""
    for load in loads:
        found = kept(database_url, load.session)
        written = {row["round"]: row["sequence"] for row in found.events if row["kind"] == 2}
        assert load.acknowledged == written


def told(ways: str, loads: list[Load]) -> str:
    """The figures of docs/evidence/trust.md."""
    seconds = [load.outage for load in loads]
    return (
        f"{ways}: {len(loads)} failovers, {sum(len(load.acknowledged) for load in loads)} labels"
        f" acknowledged, 0 lost; until the next one {statistics.median(seconds):.1f} s in the"
        f" median, {max(seconds):.1f} s at most; answers"
        f" {dict(sum((load.answers for load in loads[1:]), loads[0].answers))}"
    )


@pytest.mark.parametrize("fault", [Machine.power_off, Machine.cut])
async def test_a_database_whose_machine_dies_loses_nothing_acknowledged(
    fault: Callable[[Machine], None],
    tally: Tally,
    record_property: Callable[[str, object], None],
) -> None:
    loads = []
    async with balanced() as (pair, database_url), serving(2, database_url) as services:
        urls = [service.url for service in services]
        for _ in range(FAILOVERS):
            load = await failed_over(pair, urls, fault)
            await assert_nothing_lost(load, database_url)
            loads.append(load)
            await pair.repair()
        await assert_all_kept(loads, database_url)
        # Nobody started a process of the service again
        assert all(service.process.poll() is None for service in services)
    record_property("measured", told(fault.__name__, loads))
    tally.count("machine of the database lost under load: no power, or no network", len(loads))


@pytest.mark.parametrize("fault", [Machine.power_off, Machine.cut])
async def test_the_service_finds_the_new_primary_by_itself(
    fault: Callable[[Machine], None],
    tally: Tally,
    record_property: Callable[[str, object], None],
) -> None:
    """By an address that names both; what is silent is given up by the settings of a connection."""
    with machines(2) as places, data_folder() as folder:
        async with running_pair(places, folder) as pair, supervised(pair):
            database_url = by_itself(*pair.nodes)
            async with serving(2, database_url) as services:
                load = await failed_over(pair, [service.url for service in services], fault)
                await assert_nothing_lost(load, database_url)
                assert all(service.process.poll() is None for service in services)
    record_property("measured", told(f"{fault.__name__}, without a proxy", [load]))
    tally.count("machine of the database lost under load, its standby found without a proxy", 1)

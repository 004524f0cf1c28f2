"""What is committed on the primary alone is acknowledged to nobody."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from sqlalchemy import text

from celeus.store.database import Database
from tests.faults.loads import assert_nothing_lost, assert_worth_repeating, client_of, loaded
from tests.faults.machines.network import here
from tests.faults.machines.standby import Node, Pair, by_itself, running_pair
from tests.faults.processes import serving
from tests.faults.tally import Tally
from tests.servers import data_folder

pytestmark = pytest.mark.nightly

WAITING = "pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'celeus'"
CANCELLED = 4


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    """A primary and its synchronous standby, both on this machine."""
    with data_folder() as folder:
        async with running_pair(here(2), folder) as pair:
            yield pair


async def commits_waiting(primary: Node) -> int:
    """How many commits of the service wait for the standby; one at least."""
    query = f"SELECT count(*) FROM {WAITING}"
    async with asyncio.timeout(60):
        while not (waiting := int(await primary.told(query))):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
    return waiting


async def pool_created(url: str) -> str:
    """The id of a pool that is created once, however often that has to be asked for."""
    async with client_of(url) as client:
        while True:
            answer = await client.post(
                "/v1/pools",
                json={"name": "one", "loss": {"kind": "zero_one"}},
                headers={"Idempotency-Key": "one"},
            )
            if answer.is_success:
                return str(answer.json()["id"])
            assert_worth_repeating(answer)
            await asyncio.sleep(0.1)


async def test_a_commit_whose_wait_for_the_standby_is_cancelled_is_not_acknowledged(
    pair: Pair, tally: Tally
) -> None:
    """Nor is it when it is found committed: the answer to a repetition waits for the standby."""
    primary, standby = pair.nodes
    async with (
        serving(2, by_itself(primary, standby)) as services,
        loaded([service.url for service in services], rounds=60) as load,
    ):
        work = asyncio.create_task(load.judged())
        await load.reached(20)
        await standby.stop()
        await commits_waiting(primary)
        creation = asyncio.create_task(pool_created(load.urls[0]))
        acknowledged = dict(load.acknowledged)
        cancelled = 0
        while cancelled < CANCELLED:
            await commits_waiting(primary)
            told = await primary.told(f"SELECT count(pg_cancel_backend(pid)) FROM {WAITING}")
            cancelled += int(told)
        await commits_waiting(primary)
        assert load.acknowledged == acknowledged
        assert load.answers[503] > 0
        assert not creation.done()
        # All that was cancelled is on the primary alone, and now it is lost
        await primary.stop()
        standby.start()
        await standby.until("SELECT pg_is_in_recovery()", "True")
        await pair.promote(standby)
        await work
        await assert_nothing_lost(load, by_itself(standby))
        async with client_of(load.urls[1]) as client:
            assert (await client.get(f"/v1/pools/{await creation}")).status_code == 200
    tally.count("waits of a commit for its standby cancelled, and the standby promoted", CANCELLED)


async def test_a_commit_is_not_cancelled_with_the_request_that_waits_for_it(pair: Pair) -> None:
    primary, standby = pair.nodes
    address, _, _ = by_itself(primary).rpartition("&")
    database = Database.connect(address, pool_size=1)

    async def rename() -> None:
        async with database.transaction() as db:
            await db.execute(text("UPDATE projects SET name = 'renamed'"))

    try:
        await database.reachable()
        await standby.stop()
        request = asyncio.create_task(rename())
        await commits_waiting(primary)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await asyncio.sleep(0.5)
        assert await commits_waiting(primary) == 1
        assert await database.reachable()
        standby.start()
        await primary.until(f"SELECT count(*) FROM {WAITING}", "0")
    finally:
        await database.close()
    with psycopg.connect(by_itself(standby).replace("read-write", "any")) as db:
        assert db.execute("SELECT name FROM projects").fetchone() == ("renamed",)

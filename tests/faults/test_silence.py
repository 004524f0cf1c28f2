"""A database that is there and says nothing: every request still gets an answer."""

import asyncio
import time

import pytest

from tests.faults.loads import assert_nothing_lost, client_of, loaded
from tests.faults.processes import serving
from tests.faults.proxies import Link, before_postgres, let_pass
from tests.faults.routes import EVERY_ROUTE, asked
from tests.faults.tally import Tally
from tests.servers import data_folder

pytestmark = pytest.mark.nightly

STATEMENT_SECONDS = 1.0
LOCK_SECONDS = 1.0
SLOWEST_SECONDS = 40.0
"""A few times a statement, the grace and the wait for a connection; and a busy machine."""


async def test_a_database_that_falls_silent_costs_every_request_a_bounded_time(
    database_url: str, tally: Tally
) -> None:
    async def silence(_link: Link, _piece: bytes) -> None:
        await asyncio.Event().wait()

    with data_folder() as folder:
        async with (
            before_postgres(database_url, folder) as (proxy, through),
            serving(
                1,
                through,
                database_pool_size=4,
                lock_timeout_ms=int(1000 * LOCK_SECONDS),
                statement_timeout_ms=int(1000 * STATEMENT_SECONDS),
            ) as (service,),
            loaded([service.url], 60) as load,
        ):
            work = asyncio.create_task(load.judged(pause=0.1))
            await load.reached(20)
            proxy.answered = silence
            async with client_of(service.url) as client:
                began = time.monotonic()
                answers = await asyncio.gather(
                    *(asked(client, route, load) for route in EVERY_ROUTE)
                )
                assert time.monotonic() - began < SLOWEST_SECONDS
            # Some may have heard that the session is busy before nothing was heard any more
            assert 503 in answers
            assert set(answers) <= {409, 503}
            proxy.answered = let_pass
            await work
            assert load.answers[503] > 0
            assert load.slowest < SLOWEST_SECONDS
            await assert_nothing_lost(load, database_url)
    tally.count("requests to a database that says nothing, each refused in time", len(answers))

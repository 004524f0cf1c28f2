"""A server stopped in mid-transaction, holding a session's row, and woken when others went on."""

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable

import pytest

from tests.faults.loads import MOST_SECONDS, assert_nothing_lost, loaded, until
from tests.faults.processes import serving
from tests.faults.proxies import Link, Proxy, before_postgres
from tests.faults.tally import Tally
from tests.servers import data_folder

LOCK_SECONDS = 0.3
IDLE_SECONDS = 5
ROUNDS = 120

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not hasattr(socket, "SO_PEERCRED"), reason="only Linux says which process asked"
    ),
]


LOCKED = b"lease_seconds"
"""A column of the row that is locked: who reads it holds the lock."""
COMMITTED = b"COMMIT\x00"


class Pauses:
    """Stops the process to which the database answers a word, before it hears it."""

    def __init__(self, proxy: Proxy) -> None:
        self.word: bytes | None = None
        self.stopped = asyncio.Event()
        self.pid = 0
        proxy.answered = self.answered

    async def answered(self, link: Link, piece: bytes) -> None:
        if self.word is not None and self.word in piece:
            self.word = None
            self.pid = link.peer
            os.kill(self.pid, signal.SIGSTOP)
            self.stopped.set()

    async def hold(self, word: bytes, meanwhile: Awaitable[None]) -> None:
        """Stop the next process that is answered ``word``, while something else happens."""
        self.word = word
        async with asyncio.timeout(MOST_SECONDS):
            await self.stopped.wait()
        self.stopped.clear()
        await meanwhile
        os.kill(self.pid, signal.SIGCONT)


async def test_a_server_stopped_while_it_holds_the_row_lock_loses_nothing(
    database_url: str, tally: Tally
) -> None:
    """Until the others are told it is busy; until they go on; and between commit and answer."""
    with data_folder() as folder:
        async with (
            before_postgres(database_url, folder) as (proxy, through),
            serving(
                2,
                through,
                lock_timeout_ms=int(1000 * LOCK_SECONDS),
                statement_timeout_ms=int(1000 * IDLE_SECONDS),
            ) as services,
            loaded([service.url for service in services], ROUNDS) as load,
        ):
            pauses = Pauses(proxy)
            work = asyncio.create_task(load.judged(pause=0.1))
            try:
                await load.reached(20)
                await pauses.hold(LOCKED, until(lambda: load.answers[409] > 0))
                await load.reached(40)
                await pauses.hold(LOCKED, load.reached(60))
                await load.reached(80)
                await pauses.hold(COMMITTED, load.reached(100))
                await work
            finally:
                for service in services:
                    service.process.send_signal(signal.SIGCONT)
            assert load.answers[503] > 0, "the one that slept too long was told"
            await assert_nothing_lost(load, database_url)
    tally.count("server stopped (SIGSTOP) while it held the row lock, or a commit", 3)

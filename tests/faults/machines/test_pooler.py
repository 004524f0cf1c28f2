"""PgBouncer between service and database, which gives each transaction another connection."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from celeus.store import migrate
from celeus.store.embedded.account import account
from tests.faults.loads import assert_nothing_lost, client_of, loaded
from tests.faults.machines.programs import require, running
from tests.faults.processes import serving
from tests.faults.routes import EVERY_ROUTE, sent
from tests.faults.tally import Tally
from tests.servers import data_folder, free_port

ROUNDS = 120
CONNECTIONS = 3
"""Of PgBouncer to the database: far fewer than the service has to PgBouncer."""

pytestmark = pytest.mark.nightly

POOLER = """
[databases]
* = host={sockets} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
"""


@contextmanager
def pgbouncer(database_url: str, folder: Path) -> Iterator[str]:
    """PgBouncer in transaction mode before a private PostgreSQL; the address that leads there."""
    require("pgbouncer")
    place, _, sockets = database_url.partition("host=")
    port = free_port()
    file = folder / "pgbouncer.ini"
    file.write_text(POOLER.format(sockets=sockets, port=port, connections=CONNECTIONS))
    owner = account()
    user = ["-u", owner.name] if owner.switch else []
    with running(["pgbouncer", *user, str(file)], port, folder / "pgbouncer.log"):
        yield place.replace("@/", f"@127.0.0.1:{port}/").rstrip("?")


async def test_a_pooler_of_transactions_changes_nothing(database_url: str, tally: Tally) -> None:
    with data_folder() as folder, pgbouncer(database_url, folder) as pooled:
        await asyncio.to_thread(migrate.migrate, pooled)
        async with (
            serving(2, pooled, database_pooler=True, lock_timeout_ms=3_000) as services,
            loaded([service.url for service in services], ROUNDS) as load,
        ):
            await load.judged()
            assert load.answers[500] == 0
            assert set(load.answers) <= {200, 409}
            await assert_nothing_lost(load, database_url)
            async with client_of(load.urls[0]) as client:
                for route in (it for it in EVERY_ROUTE if not it[1].endswith("/stream")):
                    answer = await sent(client, route, load)
                    assert answer.status_code < 500, (route, answer.text)
    tally.count("sessions judged through PgBouncer, of transactions", 1)

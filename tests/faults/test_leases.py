"""A thousand leases end at one moment, and everybody asks at once."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from httpx import AsyncClient

from celeus.store.database import Database
from tests.factories import drawn, known_pool, opened
from tests.faults.clocks import database_clock
from tests.faults.loads import assert_told, client_of
from tests.faults.processes import serving
from tests.faults.tally import Tally
from tests.operations.replays import assert_whole, kept

pytestmark = pytest.mark.nightly

HOLDERS, EACH = 8, 128
OUT = HOLDERS * EACH
WORKERS = 32
LEASE_SECONDS = 3600
PATIENCE_MS = 120_000
"""How long a request waits for the others: a busy machine may take long over a thousand rounds."""


async def test_a_thousand_leases_ending_at_once_go_to_one_worker_each(
    database_url: str, database: Database, tally: Tally
) -> None:
    with database_clock(database_url) as clock:
        async with (
            serving(2, clock.url, max_draws_out=OUT, lock_timeout_ms=PATIENCE_MS) as services,
            client_of(services[0].url) as one,
            client_of(services[1].url) as other,
        ):
            clients = [one, other]
            pool = await known_pool(one, 2 * OUT)
            session = await opened(one, pool, budget=OUT, lease_seconds=LEASE_SECONDS)
            first = await asyncio.gather(
                *(hold(clients, session, f"gone-{number}", EACH) for number in range(HOLDERS))
            )
            assert_one_worker_each(first, OUT)
            assert (await drawn(one, session, 1, "too late"))["state"] == "all_leased"
            await asyncio.to_thread(clock.jump, 2 * LEASE_SECONDS)
            second = await asyncio.gather(
                *(
                    hold(clients, session, f"judge-{number}", OUT // WORKERS)
                    for number in range(WORKERS)
                )
            )
            assert_one_worker_each(second, OUT)
            # The rounds are the same draws: an expired lease is never drawn anew
            items = {draw["round"]: draw["item"]["index"] for draws in first for draw in draws}
            assert {
                draw["round"]: draw["item"]["index"] for draws in second for draw in draws
            } == items
            receipts = await asyncio.gather(
                *(
                    judge(clients, session, number, pool.losses, draws)
                    for number, draws in enumerate(second)
                )
            )
            acknowledged = {told["round"]: told["sequence"] for some in receipts for told in some}
            found = kept(database_url, session)
            written = {row["round"]: row["sequence"] for row in found.events if row["kind"] == 2}
            assert acknowledged == written
            assert (await assert_whole(database, found)).folded == OUT
            for service in services:
                await assert_told(service.url, session, found.session["status"])
    tally.count("leases ending at once, then asked for by 32 workers", OUT)


async def hold(
    clients: list[AsyncClient], session: str, worker: str, count: int
) -> list[dict[str, Any]]:
    """Have a worker ask until it is answered; what it then holds."""
    client = clients[hash(worker) % len(clients)]
    found: list[dict[str, Any]] = (await drawn(client, session, count, worker))["draws"]
    return found


def assert_one_worker_each(held: list[list[dict[str, Any]]], rounds: int) -> None:
    times = Counter(draw["round"] for draws in held for draw in draws)
    assert sorted(times) == list(range(1, rounds + 1))
    assert set(times.values()) == {1}


async def judge(
    clients: list[AsyncClient],
    session: str,
    number: int,
    losses: list[int],
    draws: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Report all that a worker holds in one request."""
    observations = [
        {"round": draw["round"], "loss": losses[draw["item"]["index"]]} for draw in draws
    ]
    answer = await clients[number % 2].post(
        f"/v1/sessions/{session}/observe",
        json={"observations": observations, "worker": f"judge-{number}"},
    )
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["receipts"]
    return found

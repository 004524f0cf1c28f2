"""A client that sends every request three times: one after another, or all at once."""

import asyncio
import random
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from httpx import AsyncClient

from celeus.store.database import Database
from tests.faults.loads import client_of
from tests.faults.processes import serving
from tests.faults.tally import Tally
from tests.operations.replays import assert_whole, kept

pytestmark = pytest.mark.nightly

ROUNDS = 40
TIMES = 3


@dataclass
class Stubborn:
    """Sends each request three times, to either server, and counts them."""

    clients: list[AsyncClient]
    rng: random.Random
    requests: int = 0

    async def ask(
        self, method: str, path: str, body: object = None, key: str | None = None
    ) -> list[httpx.Response]:
        """The three answers; none of them an error of the service."""
        self.requests += 1
        headers = {} if key is None else {"Idempotency-Key": key}
        calls = [
            self.rng.choice(self.clients).request(method, path, json=body, headers=headers)
            for _ in range(TIMES)
        ]
        if self.rng.random() < 0.5:
            answers = list(await asyncio.gather(*calls))
        else:
            answers = [await call for call in calls]
        assert all(answer.status_code < 500 for answer in answers)
        return answers

    async def alike(self, *asked: Any) -> Any:  # noqa: ANN401 - whatever the wire carries
        """The one answer that all three are."""
        first, *others = await self.ask(*asked)
        assert first.is_success, first.text
        assert [other.json() for other in others] == [first.json()] * (TIMES - 1)
        return first.json()


async def test_every_request_sent_three_times_has_its_effect_once(
    database_url: str, database: Database, tally: Tally
) -> None:
    items = [{"id": f"item-{number}", "surrogate": number / 200} for number in range(100)]
    async with (
        serving(2, database_url) as services,
        client_of(services[0].url) as one,
        client_of(services[1].url) as other,
    ):
        client = Stubborn([one, other], random.Random(7))  # noqa: S311 - only who is asked
        body: dict[str, Any] = {"name": "p", "loss": {"kind": "zero_one"}, "items": items}
        pool = (await client.alike("POST", "/v1/pools", body, "pool"))["id"]
        await client.alike("POST", f"/v1/pools/{pool}/seal")
        opening = {"pool_id": pool, "budget": ROUNDS}
        session = (await client.alike("POST", "/v1/sessions", opening, "session"))["id"]
        path = f"/v1/sessions/{session}"
        acknowledged = {}
        for number in range(1, ROUNDS + 1):
            receipt = await judged(client, path, number)
            acknowledged[receipt["round"]] = receipt["sequence"]
        await amended_and_changed(client, path)
        await client.alike("GET", path)
        for listing in ("/v1/pools", "/v1/sessions", f"{path}/ledger", f"{path}/trajectory"):
            await client.alike("GET", listing)
        assert len((await client.alike("GET", "/v1/pools"))["data"]) == 1
        assert len((await client.alike("GET", "/v1/sessions"))["data"]) == 1
        late = await client.ask("POST", f"{path}/next", {"worker": "late"})
        assert {answer.json()["state"] for answer in late} == {"closed"}
    found = kept(database_url, session)
    kinds = [row["kind"] for row in found.events]
    # Draws, observations, one amendment; paused, resumed, closed
    assert [kinds.count(kind) for kind in (1, 2, 4, 5)] == [ROUNDS, ROUNDS, 1, 3]
    written = {row["round"]: row["sequence"] for row in found.events if row["kind"] == 2}
    assert acknowledged == written
    await assert_whole(database, found)
    tally.count("requests sent three times", client.requests)


async def judged(client: Stubborn, path: str, number: int) -> dict[str, Any]:
    """Draw and judge a round, each three times; the receipt, which is always the same."""
    offers = [a.json() for a in await client.ask("POST", f"{path}/next", {"worker": "ada"})]
    assert [offer["draws"][0]["round"] for offer in offers] == [number] * TIMES
    told = {"round": number, "loss": number % 2, "worker": "ada"}
    answers = [a.json() for a in await client.ask("POST", f"{path}/observe", told)]
    receipts = [answer["receipt"] for answer in answers]
    assert sorted(receipt.pop("replayed") for receipt in receipts) == [False, True, True]
    assert receipts == [receipts[0]] * TIMES
    return dict(receipts[0])


async def amended_and_changed(client: Stubborn, path: str) -> None:
    body = {"round": 1, "loss": 0, "author": "ada", "reason": "typo"}
    answers = [a.json() for a in await client.ask("POST", f"{path}/amendments", body)]
    assert len({answer["receipt"]["sequence"] for answer in answers}) == 1
    for state in ("paused", "active", "closed"):
        changed = await client.ask("PATCH", path, {"state": state})
        assert len({answer.json()["sequence"] for answer in changed}) == 1

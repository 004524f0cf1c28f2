"""A worker killed while it sends: its messages come by another one, under the same ids."""

import asyncio
import json

from celeus.operations.webhooks.outbox import EVENTS
from tests.factories import known_pool, opened
from tests.faults.loads import client_of
from tests.faults.processes import serving
from tests.receivers import hang, receiving, status, until

SESSIONS = 3
INSIDE = {"CELEUS_WEBHOOK_INTERNAL": "127.0.0.0/8", "CELEUS_WEBHOOK_HTTP": "true"}


async def test_messages_of_a_killed_worker_are_sent_by_another(database_url: str) -> None:
    async with receiving(hang, status(204)) as receiver:
        async with serving(1, database_url, environment=INSIDE) as [service]:
            async with client_of(service.url) as client:
                body = {"url": receiver.url, "events": list(EVENTS)}
                hook = (await client.post("/v1/webhooks", json=body)).json()
                pool = await known_pool(client, 30)
                sessions = [await opened(client, pool) for _ in range(SESSIONS)]
                for one in sessions:
                    await client.patch(f"/v1/sessions/{one}", json={"state": "closed"})
                [held] = await receiver.sent(1)
            service.kill()
        async with (
            serving(2, database_url, environment=INSIDE) as services,
            client_of(services[1].url) as client,
        ):

            async def log() -> list[dict[str, str]]:
                path = f"/v1/webhooks/{hook['id']}/deliveries"
                found: list[dict[str, str]] = (await client.get(path)).json()["data"]
                return found

            def all_delivered(found: list[dict[str, str]]) -> bool:
                return {one["state"] for one in found} == {"delivered"}

            found = await until(log, all_delivered)
            await asyncio.sleep(2)
    stopped = [one for one in found if one["event"] == "session.stopped"]
    assert len(stopped) == SESSIONS
    ids = [one.headers["webhook-id"] for one in receiver.requests]
    # The one that was held came twice, the others once, though two workers looked for them
    assert sorted(ids) == sorted([*(one["id"] for one in found), held.headers["webhook-id"]])
    told = {json.loads(one.body)["data"]["session"] for one in receiver.requests}
    assert told == set(sessions)

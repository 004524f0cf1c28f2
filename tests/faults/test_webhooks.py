"""A worker killed while it sends, or as it commits: what was committed is told, and only that."""

import json
import os
import signal
import socket
from datetime import timedelta

import httpx
import psycopg
import pytest

from celeus.operations.webhooks.deliveries import LEASE_SECONDS
from celeus.operations.webhooks.outbox import EVENTS
from tests.factories import known_pool, opened
from tests.faults.loads import client_of
from tests.faults.processes import serving
from tests.faults.proxies import Cut, Link, Proxy, before_postgres
from tests.faults.tally import Tally
from tests.receivers import hang, receiving, status, until
from tests.servers import data_folder

SESSIONS = 3
LEASE = timedelta(seconds=LEASE_SECONDS)
COMMIT = b"COMMIT\x00"
INSIDE = {"CELEUS_WEBHOOK_INTERNAL": "127.0.0.0/8", "CELEUS_WEBHOOK_HTTP": "true"}


@pytest.fixture
def database_url(lone_database_url: str) -> str:
    """One that only the test's own services deliver for."""
    return lone_database_url


class KilledAtTheCommit:
    """Kills the worker that changes a session when it asks for the COMMIT, or is answered."""

    def __init__(self, proxy: Proxy) -> None:
        self.armed: list[str] = []
        proxy.asked, proxy.answered = self.asked, self.answered

    async def asked(self, link: Link, piece: bytes) -> None:
        # By an append, not by who looks for sessions that have gone quiet
        if self.armed and b"UPDATE sessions SET sequence" in piece:
            link.notes.add(self.armed.pop())
        self._kill("asked", link, piece)

    async def answered(self, link: Link, piece: bytes) -> None:
        self._kill("answered", link, piece)

    def _kill(self, moment: str, link: Link, piece: bytes) -> None:
        if moment in link.notes and COMMIT in piece:
            os.kill(link.peer, signal.SIGKILL)
            raise Cut


@pytest.mark.nightly
async def test_messages_of_a_killed_worker_are_sent_by_another(
    database_url: str, tally: Tally
) -> None:
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
        with psycopg.connect(database_url) as db:
            db.execute("UPDATE deliveries SET next_attempt_at = next_attempt_at - %s", [LEASE])
            db.execute("UPDATE webhooks SET busy_until = busy_until - %s", [LEASE])
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

            await until(log, all_delivered)
            # What might have been sent twice is on its way before what happens now
            sessions.append(await opened(client, pool))
            await client.patch(f"/v1/sessions/{sessions[-1]}", json={"state": "closed"})
            found = await until(log, all_delivered)
    stopped = [one for one in found if one["event"] == "session.stopped"]
    assert len(stopped) == SESSIONS + 1
    ids = [one.headers["webhook-id"] for one in receiver.requests]
    # The one that was held came twice, the others once, though two workers looked for them
    assert sorted(ids) == sorted([*(one["id"] for one in found), held.headers["webhook-id"]])
    told = {json.loads(one.body)["data"]["session"] for one in receiver.requests}
    assert told == set(sessions)
    tally.count("`kill -9` of a worker while it sends to a webhook", 1)


@pytest.mark.skipif(
    not hasattr(socket, "SO_PEERCRED"), reason="only Linux says which process asked"
)
async def test_a_message_is_there_if_and_only_if_what_it_tells_of_was_committed(
    database_url: str, tally: Tally
) -> None:
    """A worker is killed before its COMMIT has arrived, then once it has."""
    with data_folder() as folder:
        async with (
            before_postgres(database_url, folder) as (proxy, through),
            serving(1, through, workers=2, environment=INSIDE) as (service,),
        ):
            fault = KilledAtTheCommit(proxy)
            async with client_of(service.url) as client:
                hook = {"url": "http://127.0.0.1:9/", "events": ["session.stopped"]}
                assert (await client.post("/v1/webhooks", json=hook)).status_code == 201
                pool = await known_pool(client, 30)
                sessions = [await opened(client, pool) for _ in range(2)]
            for moment, session in zip(("asked", "answered"), sessions, strict=True):
                async with client_of(service.url) as client:
                    fault.armed.append(moment)
                    with pytest.raises(httpx.RemoteProtocolError):
                        await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
                async with client_of(service.url) as client:
                    found = (await client.get(f"/v1/sessions/{session}")).json()
                assert (found["state"] == "closed") is (moment == "answered")
            with psycopg.connect(database_url) as db:
                told = db.execute("SELECT data->>'session' FROM deliveries").fetchall()
    assert told == [(sessions[1],)]
    tally.count("`kill -9` just before and just after the commit that a webhook is told of", 2)

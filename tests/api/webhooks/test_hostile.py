"""Receivers that mean harm, or are broken: nothing is let in, nothing lost, nobody else waits."""

import asyncio
from functools import partial
from ipaddress import ip_address
from typing import Any

import pytest
from httpx import AsyncClient

from celeus.operations.webhooks import sending
from celeus.operations.webhooks.addresses import Guard, is_public
from celeus.operations.webhooks.deliveries import AT_ONCE_OF_PROJECT
from celeus.settings import Settings
from tests.factories import known_pool, opened
from tests.receivers import drip, endless, flood, hang, receiving, status, until

# Services that stay open would deliver these messages, too
pytestmark = pytest.mark.own_context

INSIDE = {"webhook_internal": "127.0.0.1/32", "webhook_http": True}
LATE_SECONDS = 6.0
EVIL = [
    "https://localhost/",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0177.0.0.1/",
    "https://0.0.0.0/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b:1::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:0:7f00:1::]/",
    "https://[fd00::1]/",
    "https://[fe80::1]/",
    "https://[fec0::1]/",
    "https://[ff0e::1]/",
    "https://169.254.169.254/latest/meta-data",
    "https://10.1.2.3/",
    "https://172.16.0.1/",
    "https://192.168.0.1/",
    "https://100.64.0.1/",
    "https://192.88.99.1/",
    "https://192.0.0.192/",
    "https://168.63.129.16/",
    "https://198.18.0.1/",
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://user:word@8.8.8.8/",
    "http://8.8.8.8/",
    "ftp://8.8.8.8/",
    "https:///path",
    "https://8.8.8.8:0/",
    "https://8.8.8.8:65536/",
    "file:///etc/passwd",
    "//8.8.8.8/",
    "https://8.8.8.8/\n",
]


@pytest.mark.parametrize("url", EVIL)
async def test_an_address_inside_is_refused(client: AsyncClient, url: str) -> None:
    body = {"url": url, "events": ["session.stopped"]}
    answer = await client.post("/v1/webhooks", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, "url"), answer.text
    assert (await client.get("/v1/webhooks")).json()["data"] == []


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_an_address_of_the_internet_is_let_through(address: str) -> None:
    assert is_public(ip_address(address))


async def test_hosts_and_networks_that_the_operator_names_are_let_through() -> None:
    guard = Guard.of("10.0.0.0/8 localhost", plain=True)
    for url in ("http://localhost/", "https://10.1.2.3/", "https://[::ffff:10.1.2.3]/"):
        await guard.check(url)


class TestInside:
    """With loopback let through, so that receivers can be had at all."""

    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update=INSIDE)

    async def hook(self, client: AsyncClient, url: str) -> str:
        body = {"url": url, "events": ["session.stopped"]}
        answer = await client.post("/v1/webhooks", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def tried(self, client: AsyncClient, hook: str) -> dict[str, Any]:
        answer = await client.post(f"/v1/webhooks/{hook}/test")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def test_a_redirection_inside_is_not_followed(self, client: AsyncClient) -> None:
        async with receiving() as inside:
            led = status(307, "", f"Location: {inside.url}")
            async with receiving(led) as receiver:
                delivery = await self.tried(client, await self.hook(client, receiver.url))
            assert (delivery["state"], delivery["status"]) == ("failed", 307)
            assert "not followed" in delivery["note"]
            assert inside.connections == 0

    async def test_a_name_that_leads_inside_later_is_not_followed(
        self, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What a name means is decided where it is looked up, at every attempt."""
        async with receiving() as receiver:
            hook = await self.hook(client, receiver.url)
            # The same host means an address inside that nobody named, from now on
            found = [(2, 1, 6, "", ("127.0.0.2", 0))]
            monkeypatch.setattr("socket.getaddrinfo", lambda *_args, **_more: found)
            delivery = await self.tried(client, hook)
            assert (delivery["state"], delivery["status"]) == ("failed", None)
            assert delivery["note"] == "Not sent: its host is not on the public internet."
            assert receiver.connections == 0

    async def test_of_a_flood_no_more_is_read_than_is_kept(self, client: AsyncClient) -> None:
        async with receiving(flood) as receiver:
            delivery = await self.tried(client, await self.hook(client, receiver.url))
        assert (delivery["state"], delivery["status"], len(delivery["answer"])) == (
            "delivered",
            200,
            1_000,
        )

    @pytest.mark.parametrize(
        "part", [b"HTTP/1.1 103 Early Hints\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-More: yes\r\n"]
    )
    async def test_interim_answers_and_heads_without_end_are_given_up_at_once(
        self, client: AsyncClient, part: bytes
    ) -> None:
        """To read them takes time, in which everybody else waits."""
        async with receiving(endless(part)) as receiver:
            delivery = await self.tried(client, await self.hook(client, receiver.url))
        assert (delivery["state"], delivery["status"]) == ("failed", None)
        assert "longer than 32 KiB" in delivery["note"] or "RemoteProtocolError" in delivery["note"]

    async def test_a_project_leaves_places_to_others(self, client: AsyncClient) -> None:
        async with receiving(hang) as receiver:
            for _ in range(AT_ONCE_OF_PROJECT + 4):
                await self.hook(client, receiver.url)
            session = await opened(client, await known_pool(client, items=40))
            await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
            await receiver.sent(AT_ONCE_OF_PROJECT)
            # Looked for again several times
            await asyncio.sleep(3)
            assert len(receiver.requests) == AT_ONCE_OF_PROJECT

    async def test_a_refused_connection_is_told(self, client: AsyncClient) -> None:
        async with receiving() as receiver:
            hook = await self.hook(client, receiver.url)
        delivery = await self.tried(client, hook)
        assert (delivery["state"], delivery["status"]) == ("failed", None)
        assert "ConnectError" in delivery["note"]

    async def test_who_hangs_or_drips_keeps_nobody_waiting(
        self, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sending, "SECONDS", LATE_SECONDS)
        async with receiving(hang) as silent, receiving(drip) as slow, receiving() as good:
            bad = [await self.hook(client, receiver.url) for receiver in (silent, slow)]
            hook = await self.hook(client, good.url)
            pool = await known_pool(client, items=40)
            for _ in range(3):
                session = await opened(client, pool)
                await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
            await silent.sent(1)
            await slow.sent(1)
            await good.sent(3)
            # One message of a webhook at once
            assert (len(silent.requests), len(slow.requests)) == (1, 1)

            async def log(hook_id: str) -> list[dict[str, Any]]:
                answer = await client.get(f"/v1/webhooks/{hook_id}/deliveries")
                found: list[dict[str, Any]] = answer.json()["data"]
                return found

            def late(found: list[dict[str, Any]]) -> bool:
                return any(f"{LATE_SECONDS:g} s" in (delivery["note"] or "") for delivery in found)

            # Nobody had to wait for them: they still say nothing
            assert not any([late(await log(hook_id)) for hook_id in bad])

            for hook_id in bad:
                found = await until(partial(log, hook_id), late)
                assert {delivery["state"] for delivery in found} == {"pending"}
            assert [delivery["state"] for delivery in await log(hook)] == ["delivered"] * 3

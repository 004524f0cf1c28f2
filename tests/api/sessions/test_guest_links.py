"""Links that show one report to anybody, and nothing else."""

import logging
from datetime import datetime
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from celeus.commands.service.logs import ShortTarget
from celeus.core.insights.badges import badge_of
from tests.conftest import Execute
from tests.factories import known_pool, labelled, opened
from tests.pairs import A, B, pair

SVG = "{http://www.w3.org/2000/svg}"


async def shared(client: AsyncClient, session: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = await client.post(f"/v1/sessions/{session}/shares", json=more)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def stranger(app: FastAPI) -> AsyncClient:
    """Somebody without a key."""
    transport = ASGITransport(app, raise_app_exceptions=False)
    return AsyncClient(transport=transport, base_url="http://celeus.test")


def path_of(address: str) -> str:
    return address.removeprefix("http://127.0.0.1:8000")


async def words(client: AsyncClient, share: dict[str, Any]) -> tuple[str, str, str, str]:
    """Title, both sides and colour of a badge."""
    answer = await client.get(path_of(share["badge"]))
    assert answer.status_code == 200, answer.text
    picture = ET.fromstring(answer.text)  # noqa: S314 -- our own
    title = picture.find(f"{SVG}title")
    label, message = picture.iter(f"{SVG}text")
    colour = list(picture.iter(f"{SVG}rect"))[-1].get("fill")
    assert title is not None
    return str(title.text), str(label.text), str(message.text), str(colour)


async def test_anybody_reads_the_report_by_a_link_and_nothing_else(
    app: FastAPI, client: AsyncClient
) -> None:
    pool = await known_pool(client, items=60)
    session = await opened(client, pool, name="Exam")
    await labelled(client, session, pool, 20)
    share = await shared(client, session)
    assert share["markdown"] == f"[![Celeus]({share['badge']})]({share['url']})"
    async with stranger(app) as other:
        answer = await other.get(path_of(share["url"]))
        assert answer.status_code == 200
        assert "Report on <bdi>Exam</bdi>" in answer.text
        assert answer.headers["x-robots-tag"].startswith("noindex")
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        status = (await client.get(f"/v1/sessions/{session}")).json()
        assert status["sentence"] in answer.text
        for text in ("of a test", "ada", "item-0", "number"):
            assert f">{text}<" not in answer.text
        assert (await other.get(f"/v1/sessions/{session}")).status_code == 401
        assert (await other.get(f"/v1/sessions/{session}/report")).status_code == 401
        assert (await other.post(path_of(share["url"]))).status_code in {401, 405}


async def test_a_link_is_unknown_revoked_and_expired_alike(
    app: FastAPI, client: AsyncClient, execute: Execute
) -> None:
    pool = await known_pool(client, items=40)
    session = await opened(client, pool)
    revoked, expired = [await shared(client, session, expires_in_seconds=3600) for _ in range(2)]
    listed = (await client.get(f"/v1/sessions/{session}/shares")).json()["data"]
    assert [link["id"] for link in listed] == [revoked["id"], expired["id"]]
    assert "url" not in listed[0]
    assert datetime.fromisoformat(listed[0]["expires_at"]) > datetime.fromisoformat(
        listed[0]["created_at"]
    )
    path = f"/v1/sessions/{session}/shares/{revoked['id']}"
    assert (await client.delete(path)).status_code == 204
    assert (await client.delete(path)).json()["code"] == "share_not_found"
    execute("UPDATE shares SET expires_at = now() - interval '1 second'")
    kept = execute("SELECT token_hash FROM shares").fetchall()
    assert revoked["url"].rpartition("/")[2].encode() not in bytes(kept[0][0])
    async with stranger(app) as other:
        texts = set()
        for address in (revoked["url"], expired["url"], revoked["url"][:-1] + "~", "/s/x"):
            for way in ("", "/badge.svg"):
                answer = await other.get(path_of(address) + way)
                assert answer.status_code == 404
                texts.add(answer.text)
        assert len(texts) == 1
    assert (await client.get(f"/v1/sessions/{session}/shares")).json()["data"] == []


async def test_a_badge_says_what_the_session_says(app: FastAPI, client: AsyncClient) -> None:
    pool = await known_pool(client, items=200)
    question = {"side": "at_most", "threshold": 0.9}
    asked = {"questions": [question], "stop_when_decided": False}
    session = await opened(client, pool, **asked)
    share = await shared(client, session)
    async with stranger(app) as other:
        title, label, message, colour = await words(other, share)
        assert (label, message, colour) == ("error rate", "no labels yet", "#5f6670")
        assert title.startswith("Nothing is judged yet: error rate ")
        await labelled(client, session, pool, 60)
        status = (await client.get(f"/v1/sessions/{session}")).json()
        title, label, message, colour = await words(other, share)
        assert title == status["sentence"]
        interval, certain, labels = message.split(", ")
        low, high = interval.removesuffix("\N{NARROW NO-BREAK SPACE}%").split("–")
        assert float(low) <= 100 * status["lower"] < 100 * status["upper"] <= float(high)
        assert f"{low} to {high}" in status["sentence"]
        assert (certain, labels) == ("95\N{NARROW NO-BREAK SPACE}%", "60 labels")
        assert colour == ("#1a7f37" if status["decisions"][0]["answer"] == "yes" else "#1f5fa8")
        await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
        assert (await words(other, share))[2].endswith("60 labels, final")


async def test_a_badge_is_not_sent_again_while_it_holds(app: FastAPI, client: AsyncClient) -> None:
    pool = await known_pool(client, items=60)
    session = await opened(client, pool)
    share = await shared(client, session)
    async with stranger(app) as other:
        first = await other.get(path_of(share["badge"]))
        assert first.headers["content-type"].startswith("image/svg+xml")
        assert first.headers["cache-control"] == "public, max-age=60"
        known = {"If-None-Match": first.headers["etag"]}
        assert (await other.get(path_of(share["badge"]), headers=known)).status_code == 304
        await labelled(client, session, pool, 3)
        assert (await other.get(path_of(share["badge"]), headers=known)).status_code == 200


async def test_a_badge_of_two_systems_names_both(app: FastAPI, client: AsyncClient) -> None:
    two = await pair(client, "losses")
    session = await opened(client, two)
    share = await shared(client, session)
    async with stranger(app) as other:
        _, label, message, _ = await words(other, share)
    assert (label, message) == (f"{A} less {B}", "no labels yet")


@pytest.mark.parametrize(
    ("changes", "message", "colour"),
    [
        (
            {},
            "19.1–36.9\N{NARROW NO-BREAK SPACE}%, 95\N{NARROW NO-BREAK SPACE}%, 101 labels",
            "blue",
        ),
        ({"answers": ["yes"]}, None, "green"),
        ({"answers": ["yes", "no"]}, None, "red"),
        ({"answers": ["yes", "undecided"]}, None, "blue"),
        ({"origin": {"at": "2026"}, "state": "closed"}, ", pushed, final", "blue"),
        ({"alpha": 0.001}, "99.9\N{NARROW NO-BREAK SPACE}%", "blue"),
    ],
)
def test_the_words_of_a_badge(changes: dict[str, Any], message: str | None, colour: str) -> None:
    status = {
        "best": None,
        "table": None,
        "alpha": changes.get("alpha", 0.05),
        "state": changes.get("state", "active"),
        "origin": changes.get("origin"),
        "scale": {"lower": 0.0, "upper": 1.0},
        "lower": 0.191,
        "upper": 0.369,
        "items": 500,
        "known": 0,
        "target": "pool",
        "effective_items": None,
        "rounds": {"in_interval": 102},
        "decisions": [{"answer": answer} for answer in changes.get("answers", [])],
        "verdict": None,
        "score": {
            "name": "error rate",
            "unit": "share",
            "estimate": 0.28,
            "lower": 0.191,
            "upper": 0.369,
        },
    }
    badge = badge_of(status, labels=101, names=None)
    assert badge.label == "error rate"
    assert message is None or message in badge.message
    assert badge.colour == colour


def test_the_log_leaves_out_what_a_link_carries() -> None:
    for path in ("/s/secret", "/s/secret/badge.svg"):
        args = ("1.2.3.4:5", "GET", path, "1.1", 200)
        record = logging.LogRecord("access", logging.INFO, "", 0, "", args, None)
        assert ShortTarget().filter(record)
        assert "secret" not in str(record.args)

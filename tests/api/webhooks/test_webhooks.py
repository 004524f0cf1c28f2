"""Webhooks over the wire, to real receivers on loopback that the operator lets through."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from celeus.operations.runtime.context import open_context
from celeus.operations.webhooks.outbox import EVENTS
from celeus.settings import Settings
from tests.conftest import Execute
from tests.factories import known_pool, labelled, opened
from tests.keys import bearer, key_in
from tests.receivers import Receiver, Request, receiving, status, until

# Services that stay open would deliver these messages, too
pytestmark = pytest.mark.own_context

INSIDE = {"webhook_internal": "127.0.0.0/8", "webhook_http": True}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update=INSIDE)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as opened:
        yield opened


async def made(client: AsyncClient, url: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    body = {"url": url, "events": list(EVENTS)} | more
    answer = await client.post("/v1/webhooks", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def log(client: AsyncClient, hook: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await client.get(f"/v1/webhooks/{hook['id']}/deliveries")
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def settled(client: AsyncClient, hook: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The log once so many messages are delivered."""

    def all_delivered(found: list[dict[str, Any]]) -> bool:
        return len([delivery for delivery in found if delivery["state"] == "delivered"]) >= count

    return await until(lambda: log(client, hook), all_delivered)


def signatures(secret: str, request: Request) -> list[str]:
    """The right signature, and those that came."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    head = request.headers
    signed = f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + request.body
    right = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return [f"v1,{right}", *head["webhook-signature"].split(" ")]


async def test_a_session_that_stops_is_told_with_its_own_sentence(
    client: AsyncClient, receiver: Receiver
) -> None:
    hook = await made(client, receiver.url)
    pool = await known_pool(client, items=60)
    question = {"side": "at_most", "threshold": 0.99}
    asked = {"questions": [question], "stop_when_decided": False}
    session = await opened(client, pool, name="Exam", budget=30, **asked)
    last = (await labelled(client, session, pool, 60))["session"]
    assert last["stop_reason"] == "budget_spent"
    sent = [json.loads(request.body) for request in await receiver.sent(3)]
    assert {message["type"] for message in sent} == {
        "session.decided",
        "session.budget_reached",
        "session.stopped",
    }
    stopped = next(message for message in sent if message["type"] == "session.stopped")
    assert stopped["data"] == {
        "session": session,
        "name": "Exam",
        "pool": pool.id,
        "state": "budget_spent",
        "stop_reason": "budget_spent",
        "round": last["round"],
        "sequence": last["sequence"],
        "revision": 1,
        "sentence": last["sentence"],
        "words": [f"Is the error rate at most 99\u202f%? {last['words']['answers'][0]['answer']}."],
        "links": {
            "session": f"http://127.0.0.1:8000/sessions/{session}",
            "report": f"http://127.0.0.1:8000/v1/sessions/{session}/report",
        },
    }
    decided = next(message for message in sent if message["type"] == "session.decided")
    assert decided["data"]["answers"] == [{"question": "at_most 0.99", "answer": "yes"}]
    found = await settled(client, hook, 3)
    assert [delivery["event"] for delivery in reversed(found)][-1] == "session.stopped"
    first = receiver.requests[0]
    right, *given = signatures(hook["secret"], first)
    assert given == [right]
    assert first.headers["content-type"] == "application/json"
    assert first.headers["webhook-id"] in {delivery["id"] for delivery in found}


async def test_a_certificate_is_told_once(client: AsyncClient, receiver: Receiver) -> None:
    pool = await known_pool(client, items=40)
    session, other = [await opened(client, pool) for _ in range(2)]
    hook = await made(client, receiver.url, events=["certificate.issued"], session_id=session)
    for closing in (other, session):
        assert (await client.patch(f"/v1/sessions/{closing}", json={"state": "closed"})).is_success
        for _ in range(2):
            assert (await client.get(f"/v1/sessions/{closing}/certificate")).is_success
    [sent] = await receiver.sent(1)
    data = json.loads(sent.body)["data"]
    assert data["session"] == session
    assert data["certificate"]["final"] is True
    assert len(data["certificate"]["digest"]) == 64
    assert len(await settled(client, hook, 1)) == 1


async def test_what_is_refused_is_sent_again_under_the_same_id(client: AsyncClient) -> None:
    async with receiving(status(500, "not now"), status(204)) as receiver:
        hook = await made(client, receiver.url, events=["session.stopped"])
        pool = await known_pool(client, items=40)
        session = await opened(client, pool)
        await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
        await receiver.sent(1)
        [delivery] = await until(lambda: log(client, hook), lambda found: found[0]["status"])
        assert (delivery["state"], delivery["status"], delivery["answer"]) == (
            "pending",
            500,
            "not now",
        )
        assert delivery["next_attempt_at"] > delivery["attempted_at"]
        first, second = await receiver.sent(2)
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert first.body == second.body
        [delivery] = await settled(client, hook, 1)
        assert (delivery["attempts"], delivery["status"], delivery["next_attempt_at"]) == (
            2,
            204,
            None,
        )
        assert (await client.get(f"/v1/webhooks/{hook['id']}")).json()["failing_since"] is None


async def test_a_receiver_that_is_gone_is_sent_no_more_until_it_is_enabled(
    client: AsyncClient,
) -> None:
    async with receiving(status(410), status(204)) as receiver:
        hook = await made(client, receiver.url, events=["session.stopped"])
        path = f"/v1/webhooks/{hook['id']}"
        pool = await known_pool(client, items=40)
        session = await opened(client, pool)
        await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})

        async def look() -> dict[str, Any]:
            found: dict[str, Any] = (await client.get(path)).json()
            return found

        settings = await until(look, lambda settings: not settings["active"])
        assert "410" in settings["note"]
        [delivery] = await log(client, hook)
        assert delivery["state"] == "failed"
        again = f"{path}/deliveries/{delivery['id']}/retry"
        refused = await client.post(again)
        assert (refused.status_code, refused.json()["code"]) == (409, "webhook_disabled")
        enabled = (await client.patch(path, json={"active": True})).json()
        assert (enabled["active"], enabled["note"]) == (True, None)
        assert (await client.post(again)).json()["state"] == "pending"
        await settled(client, hook, 1)


async def test_a_test_message_tells_what_came_back(client: AsyncClient) -> None:
    async with receiving(status(200, "thank you"), status(302, "", "Location: /")) as receiver:
        hook = await made(client, receiver.url)
        test = f"/v1/webhooks/{hook['id']}/test"
        delivery = (await client.post(test)).json()
        assert (delivery["state"], delivery["status"], delivery["answer"]) == (
            "delivered",
            200,
            "thank you",
        )
        assert delivery["message"]["type"] == "webhook.test"
        assert json.loads(receiver.requests[0].body) == delivery["message"]
        led = (await client.post(test)).json()
        assert (led["state"], led["status"]) == ("failed", 302)
        assert "not followed" in led["note"]
        assert [listed["state"] for listed in await log(client, hook)] == ["failed", "delivered"]


async def test_a_rotation_has_both_secrets_sign_for_a_while(
    client: AsyncClient, receiver: Receiver
) -> None:
    hook = await made(client, receiver.url)
    path = f"/v1/webhooks/{hook['id']}"
    new = (await client.post(f"{path}/rotate", json={"overlap_seconds": 60})).json()
    assert new["secret"] != hook["secret"]
    assert new["former_secret_until"] is not None
    await client.post(f"{path}/test")
    newer, older = (
        signatures(webhook["secret"], receiver.requests[0])[0] for webhook in (new, hook)
    )
    assert receiver.requests[0].headers["webhook-signature"] == f"{newer} {older}"
    last = (await client.post(f"{path}/rotate", json={"overlap_seconds": 0})).json()
    await client.post(f"{path}/test")
    right, *given = signatures(last["secret"], receiver.requests[1])
    assert given == [right]
    assert "secret" not in (await client.get(path)).json()


@pytest.mark.parametrize(
    ("form", "place"), [("slack", ["text"]), ("discord", ["content"]), ("teams", ["attachments"])]
)
async def test_other_receivers_take_their_own_form(
    client: AsyncClient, receiver: Receiver, form: str, place: list[str]
) -> None:
    hook = await made(client, receiver.url, format=form, events=["session.stopped"])
    pool = await known_pool(client, items=40)
    session = await opened(client, pool, name="<Exam> & co")
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    [sent] = await receiver.sent(1)
    content = json.loads(sent.body)
    assert set(place) <= content.keys()
    name = "&lt;Exam&gt; &amp; co" if form == "slack" else "<Exam> & co"
    assert f"{name} is closed. Nothing is judged: error rate" in sent.body.decode()
    assert f"/sessions/{session}" in sent.body.decode()
    await settled(client, hook, 1)


async def test_a_session_that_waits_for_labels_is_told_once(
    app: FastAPI, client: AsyncClient, receiver: Receiver, execute: Execute
) -> None:
    hook = await made(client, receiver.url, events=["session.stalled"])
    pool = await known_pool(client, items=40)
    waiting, fresh, paused = [await opened(client, pool) for _ in range(3)]
    await labelled(client, waiting, pool, 2)
    await labelled(client, fresh, pool, 2)
    await client.patch(f"/v1/sessions/{paused}", json={"state": "paused"})
    deliveries = app.state.context.deliveries
    execute("UPDATE sessions SET created_at = now() - interval '3 days'")
    ago = "UPDATE events SET at = now() - interval '25 hours' WHERE session_id = %s"
    execute(ago, [waiting.removeprefix("ses_")])
    for _ in range(3):
        deliveries._sweep_at = 0.0
        await deliveries._sweep()
    [sent] = await receiver.sent(1)
    message = json.loads(sent.body)
    assert (message["type"], message["data"]["session"]) == ("session.stalled", waiting)
    assert message["data"]["since"] < message["timestamp"]
    assert len(await settled(client, hook, 1)) == 1


async def test_a_deleted_webhook_is_told_nothing(client: AsyncClient, receiver: Receiver) -> None:
    hook = await made(client, receiver.url)
    path = f"/v1/webhooks/{hook['id']}"
    changed = await client.patch(path, json={"events": ["session.stopped"], "active": False})
    assert (changed.json()["events"], changed.json()["active"]) == (["session.stopped"], False)
    assert (await client.get("/v1/webhooks")).json()["data"] == [changed.json()]
    assert (await client.delete(path)).status_code == 204
    assert (await client.delete(path)).json()["code"] == "webhook_not_found"
    assert (await client.get("/v1/webhooks")).json()["data"] == []


async def test_a_command_that_opens_the_database_delivers_nothing(
    database_url: str, execute: Execute
) -> None:
    """It has other settings than the service, and ends in a moment."""
    key_in(database_url, "admin")
    execute(
        """
        WITH hook AS (
            INSERT INTO webhooks (webhook_id, project_id, url, format, events, secret)
            SELECT gen_random_uuid(), project_id, 'https://192.0.2.1/', 'json', '[]', '\\x00'
            FROM projects LIMIT 1 RETURNING *
        )
        INSERT INTO deliveries (delivery_id, webhook_id, project_id, event, data,
            next_attempt_at)
        SELECT gen_random_uuid(), webhook_id, project_id, 'session.stopped', '{}', now()
        FROM hook
        """
    )
    async with open_context(Settings(database_url=database_url)):
        await asyncio.sleep(1)
    assert execute("SELECT attempts FROM deliveries").fetchall() == [(0,)]


async def test_a_chat_is_told_the_answers_and_once_of_a_budget(
    client: AsyncClient, receiver: Receiver
) -> None:
    """Names mention nobody, and lead nowhere."""
    await made(client, receiver.url, format="discord")
    pool = await known_pool(client, items=60)
    question = {"side": "at_most", "threshold": 0.99}
    asked = {"questions": [question], "stop_when_decided": False}
    session = await opened(client, pool, name="[x](http://a.example) @all", budget=30, **asked)
    last = (await labelled(client, session, pool, 60))["session"]
    texts = [json.loads(request.body)["content"] for request in await receiver.sent(2)]
    answer = last["words"]["answers"][0]
    assert any(f"{answer['question']} Yes, since label" in message_text for message_text in texts)
    assert (
        len(
            [
                message_text
                for message_text in texts
                if "has spent its budget of labels." in message_text
            ]
        )
        == 1
    )
    assert all(
        "\u200b[x]" in message_text and "\u200b@all" in message_text for message_text in texts
    )


async def test_webhooks_belong_to_a_project_and_to_who_manages_it(
    client: AsyncClient, receiver: Receiver, database_url: str
) -> None:
    hook = await made(client, receiver.url)
    other = bearer(key_in(database_url, "admin", project="other"))
    path = f"/v1/webhooks/{hook['id']}"
    assert (await client.get(path, headers=other)).status_code == 404
    assert (await client.post(f"{path}/test", headers=other)).status_code == 404
    assert (await client.get("/v1/webhooks", headers=other)).json()["data"] == []
    for scope in ("read", "label"):
        lesser = bearer(key_in(database_url, scope))
        assert (await client.get("/v1/webhooks", headers=lesser)).status_code == 403
    pool = await known_pool(client, items=40)
    session = await opened(client, pool)
    stolen = {"url": receiver.url, "events": ["session.stopped"], "session_id": session}
    assert (await client.post("/v1/webhooks", json=stolen, headers=other)).status_code == 404
    manager = bearer(key_in(database_url, "manage"))
    assert (await client.get(path, headers=manager)).status_code == 200

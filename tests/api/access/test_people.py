"""People and keys over the interface: invited, listed, changed and removed by an admin."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from celeus.operations.access.browsers import csrf_of
from tests.api.contract import client_with
from tests.conftest import Execute
from tests.factories import known_pool, opened
from tests.keys import ADMIN, bearer, key_in
from tests.web.test_signing_in import service

Visiting = Callable[..., AbstractAsyncContextManager[AsyncClient]]
OWN = ADMIN.split("_")[1]
DAY = 86_400


@pytest.fixture
async def browser(app: FastAPI) -> AsyncIterator[AsyncClient]:
    """Somebody who has neither key nor cookie yet."""
    async with client_with(app, None) as client:
        yield client


async def invited(client: AsyncClient, **body: object) -> dict[str, Any]:
    answer = await client.post("/v1/invitations", json=body)
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def open_link(browser: AsyncClient, link: str) -> Response:
    return await browser.post("/login", data={"invite": link.partition("#invite=")[2]})


def run(database_url: str, statement: str, *values: object) -> None:
    with psycopg.connect(database_url) as db:
        db.execute(statement.encode(), values)


async def test_a_key_is_shown_once_and_works(client: AsyncClient, app: FastAPI) -> None:
    body = {"name": "nightly", "scopes": ["label", "manage", "label"], "expires_in_seconds": DAY}
    made = await client.post("/v1/keys", json=body)
    assert made.status_code == 201
    document = made.json()
    token = document.pop("key")
    assert token.startswith(f"ce_{document['id']}_")
    assert document["scopes"] == ["manage", "label"]
    assert document["created_at"] < document["expires_at"]
    assert document["person"] is False
    found = await client.get(made.headers["Location"])
    assert found.json() == document
    listed = await client.get("/v1/keys")
    assert document in listed.json()["data"]
    assert token[20:] not in listed.text
    async with client_with(app, token) as program:
        assert (await program.get("/v1/pools")).status_code == 200
        assert (await program.get("/v1/keys")).status_code == 403
    assert (await client.get(f"/v1/keys/{document['id']}")).json()["last_used_at"] is not None


async def test_a_repetition_makes_no_second_one_and_shows_no_secret(
    client: AsyncClient, execute: Execute
) -> None:
    for path, body, secret, there in (
        ("/v1/keys", {"name": "a", "scopes": ["read"]}, "key", 2),
        ("/v1/invitations", {"name": "Anna"}, "link", 1),
    ):
        once = {"Idempotency-Key": f"once for {path}"}
        first, *again = [await client.post(path, json=body, headers=once) for _ in range(3)]
        assert first.json()[secret] is not None
        for answer in again:
            assert answer.status_code == 201
            assert answer.headers["Idempotency-Replayed"] == "true"
            assert answer.json() == first.json() | {secret: None}
        assert len((await client.get(path)).json()["data"]) == there
        kept = execute("SELECT encode(answer, 'escape') FROM idempotency").fetchall()
        assert first.json()[secret][-43:] not in str(kept), "a secret is kept nowhere"


async def test_lists_are_paged_from_the_newest_on(client: AsyncClient) -> None:
    names = [f"k{number}" for number in range(5)]
    for name in names:
        await client.post("/v1/keys", json={"name": name, "scopes": ["read"]})
        await invited(client, name=f"p {name}")
    for path, expected in (
        ("/v1/keys?person=false", [*reversed(names), "of a test"]),
        ("/v1/keys?person=true", [f"p {name}" for name in reversed(names)]),
        ("/v1/invitations?state=open", [f"p {name}" for name in reversed(names)]),
    ):
        found: list[str] = []
        after = ""
        while True:
            page = (await client.get(f"{path}&limit=2{after}")).json()
            assert len(page["data"]) <= 2
            found += [key["name"] for key in page["data"]]
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        assert found == expected
    for path in ("/v1/keys?after=" + "f" * 16, "/v1/invitations?after=inv_1"):
        answer = await client.get(path)
        assert (answer.status_code, answer.json()["field"]) == (422, "after")


async def test_who_has_not_come_yet_is_pending(
    client: AsyncClient, browser: AsyncClient, database_url: str
) -> None:
    anna, otto = await invited(client, name="Anna"), await invited(client, name="Otto")

    async def names(query: str) -> list[str]:
        return [key["name"] for key in (await client.get(f"/v1/keys?{query}")).json()["data"]]

    assert await names("person=true&pending=true") == ["Otto", "Anna"]
    assert await names("pending=false") == ["of a test"]
    await open_link(browser, anna["link"])
    assert await names("person=true&pending=false") == ["Anna"]
    # A link more for somebody who has come changes nothing
    await invited(client, key_id=anna["key_id"])
    assert await names("person=true&pending=false") == ["Anna"]
    late = "UPDATE invitations SET expires_at = now() WHERE key_id = %s"
    run(database_url, late, otto["key_id"])
    assert await names("person=true&pending=false") == ["Otto", "Anna"]
    assert await names("pending=true") == []


async def test_somebody_invited_labels_and_is_a_member(
    client: AsyncClient, browser: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client, 30))
    made = await invited(client, name="Anna", session_id=session)
    assert made["path"] == f"/label/{session}"
    assert (made["state"], made["scopes"]) == ("open", ["label"])
    assert made["link"].startswith("/login#invite=")
    answer = await open_link(browser, made["link"])
    assert (answer.status_code, answer.headers["Location"]) == (303, made["path"])
    assert (await browser.get(made["path"])).status_code == 200
    after = (await client.get(f"/v1/invitations/{made['id']}")).json()
    assert after == {name: value for name, value in made.items() if name != "link"} | {
        "state": "used"
    }
    [member] = (await client.get("/v1/keys?person=true")).json()["data"]
    assert (member["id"], member["name"]) == (made["key_id"], "Anna")
    assert member["last_used_at"] is not None
    again = await invited(client, key_id=member["id"])
    assert (again["name"], again["path"]) == ("Anna", "/")
    manager = await invited(client, name="Otto", scopes=["manage"], session_id=session)
    assert manager["path"] == f"/sessions/{session}"


async def test_the_link_has_the_address_that_people_use(database_url: str) -> None:
    async with service(database_url, public_url="https://celeus.example/") as client:
        client.headers.update(bearer())
        made = await invited(client, name="Anna")
        assert made["link"].startswith("https://celeus.example/login#invite=")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "a", "key_id": OWN}, "name"),
        ({"key_id": OWN, "scopes": ["read"]}, "scopes"),
        ({"key_id": OWN, "key_expires_in_seconds": 1}, "key_expires_in_seconds"),
        ({"name": "a", "scopes": []}, "scopes"),
        ({"name": "a", "scopes": ["root"]}, "scopes.0"),
        ({"name": "a\nb"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "a", "expires_in_seconds": 0}, "expires_in_seconds"),
        ({"name": "a", "expires_in_seconds": 10**12}, "expires_in_seconds"),
    ],
)
async def test_an_invitation_that_makes_no_sense_is_refused(
    body: dict[str, Any], field: str, client: AsyncClient
) -> None:
    answer = await client.post("/v1/invitations", json=body)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid_value")
    assert problem.get("field") == field
    assert (await client.get("/v1/invitations")).json()["data"] == []
    assert (await client.get("/v1/keys?person=true")).json()["data"] == []


async def test_a_withdrawn_link_says_so_and_takes_its_unused_key_along(
    client: AsyncClient, browser: AsyncClient
) -> None:
    made = await invited(client, name="Anna")
    for _ in range(2):
        ended = await client.post(f"/v1/invitations/{made['id']}/revoke")
        assert ended.json().get("state") == "withdrawn", ended.text
    page = await open_link(browser, made["link"])
    assert page.status_code == 401
    assert "it was withdrawn; whoever sent it can send you a new one" in page.text
    assert (await client.get(f"/v1/keys/{made['key_id']}")).json()["revoked_at"] is not None
    assert (await client.get("/v1/keys?usable=true&person=true")).json()["data"] == []


async def test_withdrawing_leaves_the_key_of_a_member_and_of_another_open_link(
    client: AsyncClient, browser: AsyncClient
) -> None:
    made = await invited(client, name="Anna")
    second = await invited(client, key_id=made["key_id"])
    await client.post(f"/v1/invitations/{made['id']}/revoke")
    assert (await open_link(browser, second["link"])).status_code == 303
    third = await invited(client, key_id=made["key_id"])
    await client.post(f"/v1/invitations/{third['id']}/revoke")
    used = await client.post(f"/v1/invitations/{second['id']}/revoke")
    assert used.json()["state"] == "used", "it was too late, and the answer says so"
    key = (await client.get(f"/v1/keys/{made['key_id']}")).json()
    assert key["revoked_at"] is None


async def test_a_link_that_is_used_or_over_says_so(
    client: AsyncClient, browser: AsyncClient, database_url: str
) -> None:
    made = await invited(client, name="Anna")
    assert (await open_link(browser, made["link"])).status_code == 303
    assert (
        "it was used, and each signs in one browser"
        in (await open_link(browser, made["link"])).text
    )
    late = await invited(client, name="Otto")
    run(database_url, "UPDATE invitations SET expires_at = now() WHERE used_at IS NULL")
    assert "it has expired" in (await open_link(browser, late["link"])).text
    states = [
        invitation["state"] for invitation in (await client.get("/v1/invitations")).json()["data"]
    ]
    assert states == ["expired", "used"]


async def test_scopes_of_a_member_change_at_once(client: AsyncClient, browser: AsyncClient) -> None:
    made = await invited(client, name="Anna", scopes=["read"])
    await open_link(browser, made["link"])
    path = f"/v1/keys/{made['key_id']}"
    assert (await browser.get("/v1/pools")).status_code == 200
    lower = await client.patch(path, json={"scopes": ["label"]})
    assert lower.json()["scopes"] == ["label"]
    assert (await browser.get("/v1/pools")).status_code == 403
    await client.patch(path, json={"scopes": ["read", "label", "manage"]})
    assert (await browser.get("/v1/pools")).status_code == 200
    assert (await client.get(path)).json()["scopes"] == ["manage", "label", "read"]


async def test_nobody_locks_the_project_out(client: AsyncClient, browser: AsyncClient) -> None:
    # Neither an invitation that nobody has opened, nor another project's admin, administers this
    made = await invited(client, name="Otto", scopes=["admin"])
    for answer in (
        await client.post(f"/v1/keys/{OWN}/revoke"),
        await client.patch(f"/v1/keys/{OWN}", json={"scopes": ["manage", "label"]}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "last_admin")
    key = (await client.get(f"/v1/keys/{OWN}")).json()
    assert (key["scopes"], key["revoked_at"]) == (["admin"], None)
    await open_link(browser, made["link"])
    assert (await client.post(f"/v1/keys/{OWN}/revoke")).status_code == 200
    assert (await client.get("/v1/keys")).status_code == 401
    token = browser.cookies["celeus"]
    last = await browser.post(
        f"/v1/keys/{made['key_id']}/revoke", headers={"X-CSRF-Token": csrf_of(token)}
    )
    assert last.json()["code"] == "last_admin"


async def test_of_two_admins_who_remove_each_other_at_once_one_stays(
    app: FastAPI, database_url: str, execute: Execute
) -> None:
    for _ in range(5):
        run(database_url, "DELETE FROM keys")
        tokens = [key_in(database_url) for _ in range(2)]
        ids = [token.split("_")[1] for token in tokens]
        async with client_with(app, tokens[0]) as first, client_with(app, tokens[1]) as second:
            for client in (first, second):
                assert (await client.get("/v1/keys")).status_code == 200, "known to the cache"
            answers = await asyncio.gather(
                first.post(f"/v1/keys/{ids[1]}/revoke"), second.post(f"/v1/keys/{ids[0]}/revoke")
            )
            assert sorted(answer.status_code for answer in answers) == [200, 401]
        left = execute("SELECT count(*) FROM keys WHERE revoked_at IS NULL").fetchone()
        assert left == (1,)


async def test_an_admin_lowered_in_the_meantime_grants_nothing(
    app: FastAPI, database_url: str, execute: Execute
) -> None:
    token = key_in(database_url)
    async with client_with(app, token) as lowered:
        assert (await lowered.get("/v1/keys")).status_code == 200, "known to the cache"
        lower = "UPDATE keys SET scopes = '[\"manage\"]' WHERE key_id = %s"
        run(database_url, lower, token.split("_")[1])
        for path, body in (
            ("/v1/keys", {"name": "a", "scopes": ["admin"]}),
            ("/v1/invitations", {"name": "a", "scopes": ["admin"]}),
            ("/v1/invitations", {"key_id": OWN}),
            (f"/v1/keys/{OWN}/revoke", None),
        ):
            answer = await lowered.post(path, json=body)
            assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing"), path
    assert execute("SELECT count(*) FROM keys").fetchone() == (2,)


async def test_a_link_opened_while_it_is_withdrawn_is_either_used_or_withdrawn(
    client: AsyncClient, app: FastAPI
) -> None:
    for _ in range(10):
        made = await invited(client, name="Anna")
        async with client_with(app, None) as browser:
            opening, ending = await asyncio.gather(
                open_link(browser, made["link"]),
                client.post(f"/v1/invitations/{made['id']}/revoke"),
            )
            state = ending.json()["state"]
            assert (opening.status_code, state) in {(303, "used"), (401, "withdrawn")}
            served = (await browser.get("/login")).text.count('id="present"')
            assert served == (opening.status_code == 303)


async def test_every_act_is_logged_by_ids_and_never_with_a_secret(
    client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "celeus")
    made = (await client.post("/v1/keys", json={"name": "a", "scopes": ["read"]})).json()
    link = await invited(client, name="Anna")
    await client.patch(f"/v1/keys/{made['id']}", json={"scopes": ["label"]})
    await client.post(f"/v1/keys/{made['id']}/revoke")
    await client.post(f"/v1/invitations/{link['id']}/revoke")
    lines = [
        record.getMessage() for record in caplog.records if record.name.endswith("access.people")
    ]
    assert lines == [
        f"key {made['id']} was made with read, by key {OWN}",
        f"invitation {link['id']} was made for key {link['key_id']} with label, by key {OWN}",
        f"key {made['id']} had its scopes changed from read to label, by key {OWN}",
        f"key {made['id']} was revoked, by key {OWN}",
        f"invitation {link['id']} was withdrawn, by key {OWN}",
    ]
    assert made["key"] not in caplog.text
    assert link["link"][-43:] not in caplog.text


async def test_an_admin_is_left_only_who_gets_in_tomorrow(
    client: AsyncClient, browser: AsyncClient, execute: Execute
) -> None:
    """A key that ends in a moment administers nothing then, nor does a person who is signed out."""
    brief = {"name": "brief", "scopes": ["admin"], "expires_in_seconds": 60}
    assert (await client.post("/v1/keys", json=brief)).status_code == 201
    made = await invited(client, name="Otto", scopes=["admin"])
    await open_link(browser, made["link"])
    execute("DELETE FROM browser_sessions")
    refused = await client.post(f"/v1/keys/{OWN}/revoke")
    assert (refused.status_code, refused.json()["code"]) == (409, "last_admin")
    # With another link they would get in again
    again = await client.post("/v1/invitations", json={"key_id": made["key_id"]})
    assert again.status_code == 201, again.text
    assert (await client.post(f"/v1/keys/{OWN}/revoke")).status_code == 200

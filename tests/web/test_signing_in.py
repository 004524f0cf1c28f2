"""Signing in over HTTP: what a browser is given, what it then may, and when that ends."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from httpx import ASGITransport, AsyncClient, Response
from sqlalchemy import text

from celeus.errors import KeyNotFound, KeyRetired, SessionNotFound, Unauthenticated
from celeus.operations.access.authentication import admit
from celeus.operations.access.browsers import MOST_BROWSERS, csrf_of, sign_in
from celeus.operations.access.invitations import (
    LinkRequest,
    accept,
    invite,
    invite_anew,
    invite_operator,
)
from celeus.operations.access.keys import NewKey, create_key, list_keys, revoke_key
from celeus.operations.runtime.concurrency import STRANGERS_AT_ONCE
from celeus.operations.runtime.context import Context
from celeus.settings import Settings
from celeus.web.rendering import Templates
from celeus.web.signin import local_path
from tests.clients import visited
from tests.factories import known_pool, opened
from tests.keys import ADMIN, bearer, key_in

Visiting = Callable[..., AbstractAsyncContextManager[AsyncClient]]
WEEK = timedelta(days=7)


def csrf(browser: AsyncClient) -> dict[str, str]:
    """What the pages of this browser show with their writes."""
    return {"X-CSRF-Token": csrf_of(browser.cookies["celeus"])}


def own(browser: AsyncClient) -> dict[str, str]:
    """What the pages of this browser show with their forms."""
    return {"csrf": csrf_of(browser.cookies["celeus"])}


def run(database_url: str, statement: str, *values: object) -> None:
    with psycopg.connect(database_url) as db:
        db.execute(statement.encode(), values)


def key_id(token: str) -> str:
    return token.split("_")[1]


def service(database_url: str, **chosen: object) -> AbstractAsyncContextManager[AsyncClient]:
    """Another service on the same database, with settings of its own."""
    return visited(Settings(database_url=database_url, **chosen))  # type: ignore[arg-type]


@pytest.fixture
def context(app: FastAPI) -> Context:
    context: Context = app.state.context
    return context


async def test_a_page_leads_whoever_is_not_signed_in_to_the_login_and_back(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting() as browser:
        led = await browser.get("/label/ses_1?a=b%20c&d=/e")
        assert led.status_code == 303
        assert led.headers["Location"] == "/login?next=/label/ses_1%3Fa%3Db%2520c%26d%3D/e"
        assert led.headers["Cache-Control"] == "no-store"
        shown = await browser.get(led.headers["Location"])
        assert shown.status_code == 200
        assert 'value="/label/ses_1?a=b%20c&amp;d=/e"' in shown.text
        data = {"key": key_in(database_url), "next": "/label/ses_1?a=b%20c&d=/e"}
        back = await browser.post("/login", data=data)
        assert back.status_code == 303
        assert back.headers["Location"] == "/label/ses_1?a=b%20c&d=/e"
        assert (await browser.get("/login")).text.count('id="present"') == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_the_cookie_is_for_this_service_alone_and_for_no_script(
    scheme: str, app: FastAPI, database_url: str
) -> None:
    transport = ASGITransport(app)
    async with AsyncClient(transport=transport, base_url=f"{scheme}://celeus.test") as browser:
        answer = await browser.post("/login", data={"key": key_in(database_url)})
    name, *told = [part.strip() for part in answer.headers["Set-Cookie"].split(";")]
    assert name.startswith("celeus=")
    expected = {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"}
    assert set(told) == expected | ({"Secure"} if scheme == "https" else set())
    token = name.removeprefix("celeus=")
    with psycopg.connect(database_url) as db:
        kept = db.execute("SELECT b::text FROM browser_sessions b").fetchall()
    assert len(kept) == 1
    assert token not in str(kept), "only a hash is kept"


ELSEWHERE = [
    "//evil.test",
    "///evil.test",
    r"/\evil.test",
    r"\/evil.test",
    r"\\evil.test",
    "https://evil.test",
    "https:evil.test",
    "http:/evil.test",
    "javascript:alert(1)",
    "evil.test",
    "",
    " /x",
    "/\t/evil.test",
    "/\n/evil.test",
    "\t//evil.test",
    "/x\r\nSet-Cookie: a=b",
    "/é",
    "/\x00",
    "/" + "x" * 2_000,
    "/login?next=/login",
]


async def test_nobody_is_led_elsewhere_by_signing_in(visiting: Visiting, database_url: str) -> None:
    token = key_in(database_url)
    async with visiting() as browser:
        for asked in ELSEWHERE:
            assert local_path(asked) == "/"
            page = await browser.get("/login", params={"next": asked})
            assert 'name="next" value="/"' in page.text
            answer = await browser.post("/login", data={"key": token, "next": asked})
            assert (answer.status_code, answer.headers["Location"]) == (303, "/"), asked


@pytest.mark.parametrize("asked", ["/", "/sessions/new", "/label/ses_1?x=%20#a", "/a//b", "/a:b"])
def test_paths_of_this_service_are_led_to(asked: str) -> None:
    assert local_path(asked) == asked


async def test_every_key_that_does_not_work_is_told_the_same(
    visiting: Visiting, database_url: str
) -> None:
    working = key_in(database_url)
    revoked = key_in(database_url)
    run(database_url, "UPDATE keys SET revoked_at = now() WHERE key_id = %s", key_id(revoked))
    tokens = [
        *("", "nonsense", "ce_", "ce_é", f"Bearer {working}", f"ce_{'f' * 16}_{'x' * 43}"),
        *(working[:-1], working[:20] + "x" * 43, revoked),
        key_in(database_url, life=timedelta(0)),
    ]
    async with visiting() as browser:
        answers = [await browser.post("/login", data={"key": token}) for token in tokens]
        assert {answer.status_code for answer in answers} == {401}
        assert len({answer.text for answer in answers}) == 1
        assert "not a key that works" in answers[0].text
        assert not browser.cookies
        assert (await browser.post("/login", data={"key": f" {working}\n"})).status_code == 303


async def test_wrong_keys_and_links_are_limited_like_anywhere_else(database_url: str) -> None:
    async with service(database_url, failed_keys_per_minute=4) as browser:
        tries = [{"key": "ce_1"}, {"invite": "x" * 43}, {"key": "ce_2"}]
        for data in tries:
            assert (await browser.post("/login", data=data)).status_code == 401
        assert (await browser.get("/v1/pools")).status_code == 401
        for data in tries:
            limited = await browser.post("/login", data=data)
            assert limited.status_code == 429
            assert int(limited.headers["Retry-After"]) >= 1
            assert "too many" in limited.text
        browser.cookies["celeus"] = "x" * 43
        assert (await browser.get("/label/ses_1")).status_code == 429, "a guessed cookie too"
        browser.cookies.clear()
        assert (await browser.get("/label/ses_1")).status_code == 303, "who guesses nothing is led"
        right = await browser.post("/login", data={"key": key_in(database_url)})
        assert right.status_code == 303, "a key that works is let in all the same"


@pytest.mark.parametrize(
    "content", [b"key=" + b"x" * 20_000, b"&".join([b"a=b"] * 100), b"\xff\x00=%zz"]
)
async def test_a_form_that_is_none_is_refused_calmly(content: bytes, visiting: Visiting) -> None:
    async with visiting() as browser:
        answer = await browser.post("/login", content=content)
    assert answer.status_code == 422
    assert answer.headers["Content-Type"].startswith("text/html")


async def test_signing_in_again_ends_the_browsers_session_before(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url, "read")) as browser, visiting() as copied:
        copied.cookies["celeus"] = browser.cookies["celeus"]
        assert (await copied.get("/v1/pools")).status_code == 200
        assert (await browser.post("/login", data={"key": key_in(database_url)})).is_redirect
        assert (await browser.get("/v1/pools")).status_code == 200
        assert (await copied.get("/v1/pools")).status_code == 401


async def test_signing_out_ends_this_browser_and_no_other(
    visiting: Visiting, database_url: str
) -> None:
    token = key_in(database_url, "read")
    async with visiting(token) as browser, visiting(token) as another, visiting() as copied:
        copied.cookies["celeus"] = browser.cookies["celeus"]
        assert (await browser.post("/logout")).status_code == 403
        ended = await browser.post("/logout", data=own(browser))
        assert (ended.status_code, ended.headers["Location"]) == (303, "/login")
        assert "Max-Age=0" in ended.headers["Set-Cookie"]
        assert not browser.cookies
        assert (await copied.get("/v1/pools")).status_code == 401
        assert (await another.get("/v1/pools")).status_code == 200


async def revoke(context: Context, key: str) -> None:
    await revoke_key(context, key)


ENDINGS = {
    "the key expires": "UPDATE keys SET expires_at = now()",
    "the key is revoked behind the service": "UPDATE keys SET revoked_at = now()",
    "its time is over": "UPDATE browser_sessions SET expires_at = now()",
    "nobody used it": "UPDATE browser_sessions SET last_seen_at = now() - interval '7 days'",
    "the key is gone": "DELETE FROM keys",
}


@pytest.mark.parametrize("statement", ENDINGS.values(), ids=ENDINGS)
async def test_a_browser_is_signed_out_when(statement: str, database_url: str) -> None:
    async with service(database_url, key_cache_seconds=0) as browser:
        token = key_in(database_url, "read")
        await browser.post("/login", data={"key": token})
        assert (await browser.get("/v1/pools")).status_code == 200
        run(database_url, f"{statement} WHERE key_id = %s", key_id(token))
        assert (await browser.get("/v1/pools")).status_code == 401
        led = await browser.get("/label/ses_1")
        assert led.status_code == 303
        told = await browser.get(led.headers["Location"])
        assert "You have been signed out" in told.text
        assert "Max-Age=0" in told.headers["Set-Cookie"], "the browser forgets what is over"
        assert "signed out" not in (await browser.get("/login")).text


async def test_revoking_a_key_ends_the_browsers_signed_in_by_it_for_good(
    context: Context, visiting: Visiting, database_url: str
) -> None:
    token, other = key_in(database_url, "read"), key_in(database_url, "read")
    async with visiting(token), visiting(other):
        await revoke_key(context, key_id(token))
        with psycopg.connect(database_url) as db:
            left = db.execute("SELECT key_id FROM browser_sessions").fetchall()
    assert left == [(key_id(other),)]


async def test_a_browser_remembered_is_let_in_without_the_database_and_not_for_long(
    database_url: str,
) -> None:
    async with service(database_url, key_cache_seconds=2.0) as browser:
        token = key_in(database_url, "read")
        await browser.post("/login", data={"key": token})
        assert (await browser.get("/v1/pools")).status_code == 200
        run(database_url, "DELETE FROM browser_sessions")
        assert (await browser.get("/v1/pools")).status_code == 200
        await asyncio.sleep(2.1)
        assert (await browser.get("/v1/pools")).status_code == 401


async def test_use_is_noted_to_the_minute_and_keeps_a_browser_signed_in(
    database_url: str,
) -> None:
    async with service(database_url, key_cache_seconds=0) as browser:
        token = key_in(database_url, "read")
        await browser.post("/login", data={"key": token})
        aged = "UPDATE browser_sessions SET last_seen_at = now() - interval '6 days'"
        run(database_url, aged)
        run(database_url, "UPDATE keys SET last_used_at = NULL")
        assert (await browser.get("/v1/pools")).status_code == 200
        with psycopg.connect(database_url) as db:
            seen = "SELECT now() - last_seen_at < interval '1 minute' FROM browser_sessions"
            assert db.execute(seen).fetchone() == (True,)
            used = "SELECT last_used_at IS NOT NULL FROM keys WHERE key_id = %s"
            assert db.execute(used, [key_id(token)]).fetchone() == (True,)


async def test_browsers_of_one_key_and_what_is_over_take_bounded_room(context: Context) -> None:
    caller = await admit(context, *ADMIN.split("_", 2)[1:])
    for _ in range(MOST_BROWSERS + 5):
        await sign_in(context, caller, "/")
    async with context.transaction() as db:
        count = text("SELECT count(*) FROM browser_sessions")
        assert await db.scalar(count) == MOST_BROWSERS
        await db.execute(text("UPDATE browser_sessions SET expires_at = now()"))
    await sign_in(context, caller, "/")
    async with context.transaction() as db:
        assert await db.scalar(count) == 1
    for _ in range(3):
        made = await invite(context, caller.key_id, LinkRequest("/", WEEK))
        await accept(context, made.token)
    async with context.transaction() as db:
        ended = "UPDATE invitations SET used_at = used_at - interval '31 days'"
        await db.execute(text(ended))
    await invite(context, caller.key_id, LinkRequest("/", WEEK))
    async with context.transaction() as db:
        assert await db.scalar(text("SELECT count(*) FROM invitations")) == 1


async def test_a_link_used_at_once_by_many_signs_one_of_them_in(
    context: Context, visiting: Visiting, database_url: str
) -> None:
    made = await invite(
        context, key_id(key_in(database_url, "read")), LinkRequest("/label/x", WEEK)
    )

    async def use() -> Response:
        async with visiting() as browser:
            return await browser.post("/login", data={"invite": made.token})

    answers = await asyncio.gather(*(use() for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [303] + [401] * 7
    [won] = [answer for answer in answers if answer.is_redirect]
    assert won.headers["Location"] == "/label/x"
    assert len({answer.text for answer in answers if not answer.is_redirect}) == 1
    with psycopg.connect(database_url) as db:
        assert db.execute("SELECT count(*) FROM browser_sessions").fetchone() == (1,)
        assert made.token not in str(db.execute("SELECT i::text FROM invitations i").fetchall())


async def test_the_same_link_twice_signs_in_once(context: Context, visiting: Visiting) -> None:
    made = await invite_operator(context, WEEK)
    assert made is not None
    assert made.token not in repr(made)
    async with visiting() as browser:
        first = await browser.post("/login", data={"invite": made.token})
        second = await browser.post("/login", data={"invite": made.token})
        assert (first.status_code, second.status_code) == (303, 401)
        assert "no longer works" in second.text
        assert (await browser.get("/v1/pools")).status_code == 200, "and takes nothing away"


async def test_a_link_works_no_longer_when_it_or_its_key_is_over(
    context: Context, database_url: str
) -> None:
    token = key_in(database_url, "read")
    for statement in (
        "UPDATE invitations SET expires_at = now() WHERE key_id = %s",
        "UPDATE keys SET expires_at = now() WHERE key_id = %s",
        "UPDATE keys SET revoked_at = now() WHERE key_id = %s",
    ):
        run(database_url, "UPDATE keys SET expires_at = NULL WHERE key_id = %s", key_id(token))
        made = await invite(context, key_id(token), LinkRequest("/", WEEK))
        run(database_url, statement, key_id(token))
        with pytest.raises(Unauthenticated):
            await accept(context, made.token)
    with pytest.raises(KeyRetired):
        await invite(context, key_id(token), LinkRequest("/", WEEK))
    with pytest.raises(KeyNotFound):
        await invite(context, "0" * 16, LinkRequest("/", WEEK))
    for guess in ("", "x", "x" * 43, secrets.token_urlsafe(32)):
        with pytest.raises(Unauthenticated):
            await accept(context, guess)


async def test_a_link_for_a_session_needs_a_key_of_its_project(
    context: Context, visiting: Visiting, database_url: str
) -> None:
    async with visiting() as client:
        client.headers.update(bearer())
        session = await opened(client, await known_pool(client, 30))
    wanted = LinkRequest(f"/label/{session}", WEEK, UUID(session.removeprefix("ses_")))
    made = await invite_anew(context, NewKey("Anna", ("label",)), wanted)
    async with visiting() as browser:
        answer = await browser.post("/login", data={"invite": made.token})
        assert answer.headers["Location"] == f"/label/{session}"
        body = {"worker": "anna"}
        path = f"/v1/sessions/{session}/next"
        drawn = await browser.post(path, json=body, headers=csrf(browser))
        assert len(drawn.json()["draws"]) == 1
    other = key_in(database_url, "label", project="other")
    with pytest.raises(SessionNotFound):
        await invite(context, key_id(other), wanted)
    before = len(await list_keys(context))
    with pytest.raises(SessionNotFound):
        await invite_anew(context, NewKey("Otto", ("label",), "other"), wanted)
    assert len(await list_keys(context)) == before


async def test_the_operators_link_is_for_the_oldest_admin_key_of_the_default_project(
    context: Context, database_url: str
) -> None:
    run(database_url, "DELETE FROM keys")
    assert await invite_operator(context, WEEK) is None
    key_in(database_url, "admin", project="other")
    key_in(database_url, "manage")
    assert await invite_operator(context, WEEK) is None
    first = await create_key(context, NewKey("first", ("admin",)))
    await create_key(context, NewKey("second", ("admin",)))
    made = await invite_operator(context, WEEK)
    assert made is not None
    assert made.key_id == first.record.key_id


async def test_a_database_older_than_signing_in_is_told(
    visiting: Visiting, alter: Callable[[str], Awaitable[object]], database_url: str
) -> None:
    await alter("ALTER TABLE browser_sessions RENAME TO no_sessions")
    try:
        async with visiting() as browser:
            browser.cookies["celeus"] = "x" * 43
            answers = [
                await browser.get("/label/ses_1"),
                await browser.post("/login", data={"key": key_in(database_url)}),
            ]
            wire = await browser.get("/v1/pools")
            assert (await browser.get("/login")).status_code == 200
    finally:
        await alter("ALTER TABLE no_sessions RENAME TO browser_sessions")
    assert [answer.status_code for answer in answers] == [503, 503]
    assert all("celeus admin migrate" in answer.text for answer in answers)
    assert wire.json()["code"] == "schema_behind"


async def test_others_have_their_turn_between_pages_for_everybody(
    app: FastAPI, visiting: Visiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty thousand pages asked for at once kept everybody waiting for 43 s."""
    turn, made = 0, Counter[int]()

    def page(self: Templates, *args: object, **named: object) -> HTMLResponse:
        made[turn] += 1
        return original(self, *args, **named)  # type: ignore[arg-type]

    original = Templates.page
    monkeypatch.setattr(Templates, "page", page)
    async with visiting() as anybody:
        visits = [asyncio.create_task(anybody.get("/login")) for _ in range(60)]
        while not all(visit.done() for visit in visits):
            turn += 1
            await asyncio.sleep(0)
        assert {visit.result().status_code for visit in visits} == {200}
    assert made.total() == 60
    assert max(made.values()) <= STRANGERS_AT_ONCE
    assert app.state.context.gates.strangers.taken == 0

"""What forms of pages change, and that none of another place changes anything."""

import re
from html import unescape

import pytest
from httpx import Response

from celeus.main import PAGES
from celeus.operations.access.browsers import csrf_of
from celeus.web.forms import FORM_TYPE, MOST_FIELDS, MOST_FORM_BYTES
from celeus.web.pages import PageRoute
from tests.factories import known_pool, labelled, opened
from tests.keys import bearer, key_in
from tests.web.test_signing_in import Visiting, csrf, own

FORMS = [
    route.path
    for router in PAGES
    for route in router.routes
    if isinstance(route, PageRoute) and "POST" in (route.methods or ()) and route.path != "/login"
]


def shown_once(page: str) -> str:
    """The secret that a page shows."""
    found = re.search(r'<input readonly value="([^"]+)"', page)
    assert found is not None, page
    return unescape(found[1])


@pytest.mark.parametrize("path", FORMS)
async def test_no_form_does_anything_without_what_its_own_page_shows(
    path: str, visiting: Visiting, database_url: str
) -> None:
    path = path.replace("{session_id}", "ses_" + "0" * 32).replace("{round_}", "1")
    async with visiting(key_in(database_url)) as browser:
        cookie = browser.cookies["celeus"]
        made = {"act": "key", "name": "theirs", "scopes": "admin"}
        for csrf in ("", cookie, csrf_of("x" * 43), csrf_of(cookie)[:-1]):
            answer = await browser.post(path, data={**made, "csrf": csrf})
            assert answer.status_code == 403, csrf
            assert "A form has to show" in answer.text
        for header in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.test"}):
            answer = await browser.post(path, data=made | own(browser), headers=header)
            assert answer.status_code == 403, header
            assert answer.headers["Connection"] == "close", "its body is unread"
        header = {"X-CSRF-Token": csrf_of(cookie)}
        assert (await browser.post(path, data=made, headers=header)).status_code == 403
        names = [key["name"] for key in (await browser.get("/v1/keys")).json()["data"]]
    assert "theirs" not in names


async def test_people_are_invited_given_roles_and_removed_by_forms_alone(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as admin, visiting() as anna:
        form = {"act": "invite", "name": " Anna ", "scopes": "label", "expires_in_seconds": "86400"}
        page = await admin.post("/people", data=form | own(admin))
        assert page.status_code == 200
        link = shown_once(page.text)
        assert link.startswith("http://celeus.test/login#invite=")
        assert link not in (await admin.get("/people")).text
        token = link.partition("#invite=")[2]
        assert (await anna.post("/login", data={"invite": token})).status_code == 303

        keys = (await admin.get("/v1/keys", params={"person": True})).json()["data"]
        (key,) = [key for key in keys if key["name"] == "Anna"]
        form = {"act": "role", "id": key["id"], "scopes": "read"}
        answer = await admin.post("/people", data=form | own(admin))
        assert answer.headers["Location"] == "/people#members-title"
        assert (await admin.get(f"/v1/keys/{key['id']}")).json()["scopes"] == ["read"]
        page = await admin.post("/people", data={"act": "invite", "key_id": key["id"]} | own(admin))
        assert shown_once(page.text) != link
        form = {"act": "remove", "id": key["id"]}
        answer = await admin.post("/people", data=form | own(admin))
        assert answer.headers["Location"] == "/people#members-title"
        assert (await anna.get("/")).headers["Location"] == "/login?next=/"


async def test_a_key_is_made_once_with_scopes_and_shown_once(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as admin:
        form: dict[str, str | list[str]] = {"act": "key", "name": "nightly"}
        refused = await admin.post("/people", data=form | own(admin))
        assert refused.status_code == 422
        assert "Choose at least one." in refused.text
        assert 'value="nightly"' in refused.text, "what was typed stays"
        form = {**form, "scopes": ["read", "label"], **own(admin)}
        page = await admin.post("/people", data=form)
        token = shown_once(page.text)
        program = await admin.get("/v1/pools", headers=bearer(token))
        assert program.status_code == 200
        answer = await admin.post("/people", data={"act": "nothing"} | own(admin))
        assert answer.status_code == 422


async def test_a_page_that_is_loaded_again_makes_no_second_secret(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as admin:
        for path, sent, listed in (
            ("/people", {"act": "key", "name": "nightly", "scopes": "read"}, "/v1/keys"),
            ("/people", {"act": "invite", "name": "Anna", "scopes": "label"}, "/v1/invitations"),
            (
                "/webhooks",
                {"act": "make", "url": "https://8.8.8.8/hook", "events": "session.decided"},
                "/v1/webhooks",
            ),
        ):
            numbers = re.findall(r'name="once" value="([\w-]+)"', (await admin.get(path)).text)
            form = sent | {"once": numbers[0]} | own(admin)
            # What was refused may be corrected and sent again
            refused = await admin.post(path, data=form | {"name": "\n", "url": "x"})
            assert refused.status_code == 422, refused.text
            shown_once((await admin.post(path, data=form)).text)
            before = (await admin.get(listed)).json()["data"]
            again = await admin.post(path, data=form)
            assert again.status_code == 409
            assert "This form was sent already" in again.text
            assert numbers[0] not in again.text
            assert (await admin.get(listed)).json()["data"] == before
            other = await admin.post(path, data=form | {"once": sent["act"]})
            shown_once(other.text)


@pytest.mark.parametrize("scope", ["label", "read", "manage"])
async def test_a_form_needs_the_scope_of_its_page(
    scope: str, visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url, scope)) as browser:
        form = {"act": "key", "name": "mine", "scopes": "admin"}
        answer = await browser.post("/people", data=form | own(browser))
        assert answer.status_code == 403
        answer = await browser.post("/webhooks", data={"act": "delete"} | own(browser))
        assert answer.status_code == (404 if scope == "manage" else 403)


async def test_webhooks_are_refused_with_what_was_chosen_made_switched_and_deleted(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as browser:
        form = {"act": "make", "url": "ftp://x", "format": "teams", "events": "session.decided"}
        refused = await browser.post("/webhooks", data=form | own(browser))
        assert refused.status_code == 422
        for kept in ('value="ftp://x"', '"teams" selected', '"session.decided" checked'):
            assert kept in refused.text
        assert '"session.stalled" checked' not in refused.text
        form |= {"url": "https://8.8.8.8/hook", "format": "json"}
        page = await browser.post("/webhooks", data=form | own(browser))
        assert shown_once(page.text).startswith("whsec_")
        (hook,) = (await browser.get("/v1/webhooks")).json()["data"]
        assert hook["events"] == ["session.decided"]
        form = {"act": "switch", "id": hook["id"], "active": "false"}
        await browser.post("/webhooks", data=form | own(browser))
        del form["active"]
        for field in ({}, {"active": ""}, {"activ": "false"}):
            answer = await browser.post("/webhooks", data=form | field | own(browser))
            assert answer.status_code == 422, field
        assert not (await browser.get(f"/v1/webhooks/{hook['id']}")).json()["active"]
        form = {"act": "delete", "id": hook["id"]}
        answer = await browser.post("/webhooks", data=form | own(browser))
        assert answer.headers["Location"] == "/webhooks#list-title"
        assert (await browser.get("/v1/webhooks")).json()["data"] == []


async def test_a_form_is_read_as_utf_8_or_refused(visiting: Visiting, database_url: str) -> None:
    async with visiting(key_in(database_url)) as browser:
        csrf = own(browser)["csrf"].encode()

        async def sent(name: bytes) -> Response:
            form = b"act=invite&name=%b&scopes=label&csrf=%b" % (name, csrf)
            header = {"Content-Type": FORM_TYPE}
            return await browser.post("/people", content=form, headers=header)

        for name in ("Größe".encode(), b"Gr%C3%B6%C3%9Fe"):
            assert "Link for Größe" in (await sent(name)).text
        for name in ("Größe".encode("latin-1"), b"Gr%F6%DFe"):
            refused = await sent(name)
            assert refused.status_code == 422
            assert "UTF-8" in refused.text


async def test_a_form_that_is_too_long_or_has_too_many_fields_is_refused(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as browser:
        for sent in ("a=" + "x" * MOST_FORM_BYTES, "a=b&" * (MOST_FIELDS + 1)):
            answer = await browser.post(
                "/people", content=sent, headers={"Content-Type": FORM_TYPE}
            )
            assert answer.status_code == 422, sent[:10]


async def test_a_link_to_a_report_is_made_and_revoked_on_the_page_of_its_session(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as browser:
        browser.headers.update(csrf(browser))
        pool = await known_pool(browser, 10)
        mine, other = [await opened(browser, pool) for _ in range(2)]
        form = {"act": "share", "id": other} | own(browser)
        link = shown_once((await browser.post(f"/sessions/{mine}", data=form)).text)
        assert (await browser.get(link)).status_code == 200
        assert (await browser.get(f"/v1/sessions/{other}/shares")).json()["data"] == []
        (share,) = (await browser.get(f"/v1/sessions/{mine}/shares")).json()["data"]
        form = {"act": "revoke", "id": share["id"]} | own(browser)
        answer = await browser.post(f"/sessions/{mine}", data=form)
        assert answer.headers["Location"] == f"/sessions/{mine}#sharing-title"
        assert (await browser.get(link)).status_code == 404


async def test_a_judgement_is_corrected_and_a_session_changed_and_deleted_by_forms_alone(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as browser:
        browser.headers.update(csrf(browser))
        pool = await known_pool(browser, 20)
        session = await opened(browser, pool, precision=0.2)
        await labelled(browser, session, pool, 5)
        table = f"/sessions/{session}/judged?order=oldest"
        form = {"act": "correct", "id": "2", "choice": "unjudgeable"} | own(browser)
        refused = await browser.post(table, data=form)
        assert refused.status_code == 422
        assert re.search(r'<details open><summary id="change-2">', refused.text)
        assert '"unjudgeable" selected' in refused.text
        answer = await browser.post(table, data=form | {"reason": "cut off"})
        assert answer.headers["Location"] == f"{table}#change-2"
        assert "Cannot be judged: cut off" in (await browser.get(table)).text

        async def sent(act: str, **fields: str) -> Response:
            data = {"act": act} | fields | own(browser)
            return await browser.post(f"/sessions/{session}?scale=whole", data=data)

        assert (await sent("precision", precision="7")).status_code == 422
        answer = await sent("precision", precision="0,1")
        assert answer.headers["Location"] == f"/sessions/{session}?scale=whole#actions-title"
        assert (await sent("release", rounds="6")).status_code == 303
        assert (await sent("release", rounds="six")).status_code == 422
        await sent("change", state="paused")
        told = (await browser.get(f"/v1/sessions/{session}")).json()
        assert (told["state"], told["precision"]) == ("paused", 0.1)
        assert (await sent("delete")).status_code == 409, "it is not archived"
        await sent("change", archived="true")
        assert (await sent("delete")).headers["Location"] == "/#main"
        assert (await sent("delete")).headers["Location"] == "/#main", "it is gone already"


async def test_the_round_of_a_page_is_the_one_that_is_corrected(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as browser:
        browser.headers.update(csrf(browser))
        pool = await known_pool(browser, 20)
        session = await opened(browser, pool)
        await labelled(browser, session, pool, 3)
        form = {"act": "correct", "id": "1", "choice": "unjudgeable"} | own(browser)
        table = f"/sessions/{session}/judged"
        for page in ("/77", "/0", "/-1"):
            answer = await browser.post(table + page, data=form | {"reason": "cut off"})
            assert answer.status_code in {404, 422}, page
        for named in ("", "one", "-1"):
            answer = await browser.post(table, data=form | {"reason": "cut off", "id": named})
            assert answer.status_code == 422, named
        refused = await browser.post(f"{table}/2", data=form)
        assert refused.status_code == 422
        assert '<details open><summary id="change-2">' in refused.text
        answer = await browser.post(f"{table}/2", data=form | {"reason": "cut off"})
        assert answer.headers["Location"] == f"{table}/2#change-2"
        path = f"/v1/sessions/{session}/labels"
        rows = (await browser.get(path, params={"amended": True})).json()["data"]
        assert [row["round"] for row in rows] == [2]


async def test_draws_that_nobody_holds_are_not_given_back_in_silence(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as browser:
        browser.headers.update(csrf(browser))
        pool = await known_pool(browser, 20)
        session = await opened(browser, pool)
        await labelled(browser, session, pool, 3)
        for rounds, told in (("4 4 99", "1 of 2 draws"), ("4 99 999", "0 of 3 draws")):
            form = {"act": "release", "rounds": rounds} | own(browser)
            refused = await browser.post(f"/sessions/{session}", data=form)
            assert refused.status_code == 409, rounds
            assert f"{told} given back: nobody holds the others." in refused.text


async def test_only_a_field_that_is_sent_empty_takes_the_precision_away(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as browser:
        browser.headers.update(csrf(browser))
        session = await opened(browser, await known_pool(browser, 10), precision=0.2)
        form = {"act": "precision"} | own(browser)
        for field in ({}, {"precison": "0.1"}, {"precision": " "}, {"precision": "0,"}):
            answer = await browser.post(f"/sessions/{session}", data=form | field)
            assert answer.status_code == 422, field
            assert (await browser.get(f"/v1/sessions/{session}")).json()["precision"] == 0.2
        await browser.post(f"/sessions/{session}", data=form | {"precision": ""})
        assert (await browser.get(f"/v1/sessions/{session}")).json()["precision"] is None


async def test_who_manages_deletes_nothing(visiting: Visiting, database_url: str) -> None:
    async with visiting(key_in(database_url, "manage", "read")) as browser:
        browser.headers.update(csrf(browser))
        pool = await known_pool(browser, 10)
        form = {"act": "archive", "id": pool.id} | own(browser)
        answer = await browser.post("/sessions/new?archived=true", data=form)
        assert answer.headers["Location"] == "/sessions/new?archived=true#pool-list"
        assert (await browser.get(f"/v1/pools/{pool.id}")).json()["archived"]
        answer = await browser.post("/sessions/new", data=form | {"act": "delete"})
        assert answer.status_code == 403
        await browser.post("/sessions/new", data=form | {"act": "restore"})
        assert not (await browser.get(f"/v1/pools/{pool.id}")).json()["archived"]

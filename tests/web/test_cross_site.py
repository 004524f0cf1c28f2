"""Other places' pages, and other headers: what a cookie opens, and what it does not."""

import itertools
import re

import pytest
from fastapi import FastAPI

from celeus.main import PAGES
from celeus.operations.access.browsers import csrf_of
from celeus.web.pages import PageRoute
from tests.api.contract import CLOSED, MISSING, client_with
from tests.keys import ADMIN, bearer, key_in
from tests.web.test_signing_in import Visiting, csrf, service

WRITING = [route for route in CLOSED if route.method not in {"GET", "HEAD"}]
PLAIN_PAGES = [
    route.path
    for router in PAGES
    for route in router.routes
    if isinstance(route, PageRoute) and "GET" in (route.methods or ()) and "{" not in route.path
]


@pytest.mark.parametrize("scope", ["label", "manage"])
async def test_a_cookie_opens_what_its_key_opens(
    scope: str, app: FastAPI, visiting: Visiting, database_url: str
) -> None:
    token = key_in(database_url, scope)
    async with client_with(app, token) as program, visiting(token) as browser:
        for route in CLOSED:
            expected = await route.ask(program, MISSING)
            answer = await route.ask(browser, MISSING, headers=csrf(browser))
            assert answer.status_code == expected.status_code, route.path
            if answer.is_error:
                assert answer.content == expected.content
            if route.method == "GET":
                assert "Cache-Control" in answer.headers, "a browser is shared by many"


async def test_no_write_by_cookie_passes_without_what_its_own_pages_show(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as browser:
        cookie = browser.cookies["celeus"]
        shown: list[list[tuple[str, str]]] = [
            [],
            [("X-CSRF-Token", "")],
            [("X-CSRF-Token", csrf_of("x" * 43))],
            [("X-CSRF-Token", cookie)],
            [("X-CSRF-Token", csrf_of(cookie)[:-1])],
            [("X-CSRF-Token", csrf_of(cookie)), ("x-csrf-token", csrf_of(cookie))],
            [("Cookie", f"celeus={cookie}; csrf={csrf_of(cookie)}")],
            [("X-XSRF-Token", csrf_of(cookie))],
        ]
        for route, headers in itertools.product(WRITING, shown):
            answer = await browser.request(route.method, route.path, headers=headers)
            told = (answer.status_code, answer.json()["code"])
            assert told == (403, "csrf_missing"), (route.path, headers)
            assert answer.headers["Connection"] == "close"
        assert (await browser.get("/v1/pools")).json()["data"] == []


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ({}, True),
        ({"Origin": "http://celeus.test"}, True),
        ({"Origin": "https://celeus.test"}, True),
        ({"Origin": "https://people.test"}, True),
        ({"Origin": "https://evil.test"}, False),
        ({"Origin": "http://celeus.test.evil.test"}, False),
        ({"Origin": "http://celeus.test:8080"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
        ({"Origin": "http://[celeus.test"}, False),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://proxied.test"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://celeus.test"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-origin, cross-site"}, False),
    ],
    ids=str,
)
async def test_a_page_of_another_place_has_nothing_written_and_nobody_signed_in(
    headers: dict[str, str], database_url: str, *, passes: bool
) -> None:
    data = {"key": key_in(database_url)}
    async with service(database_url, public_url="https://people.test") as browser:
        answer = await browser.post("/login", data=data, headers=headers)
        assert answer.status_code == (303 if passes else 403)
        assert ("Set-Cookie" in answer.headers) == passes
        if not passes:
            await browser.post("/login", data=data)
        body = {"name": "mine", "loss": {"kind": "zero_one"}}
        answer = await browser.post("/v1/pools", json=body, headers=csrf(browser) | headers)
        assert answer.status_code == (201 if passes else 403)
        assert len((await browser.get("/v1/pools")).json()["data"]) == passes


SHOWING_NO_KEY = [
    "",
    "Bearer",
    "Basic Zm9v",
    f"Bearer {ADMIN[:20]}{'x' * 43}",
    f"Bearer {ADMIN}, Bearer {ADMIN}",
]


async def test_a_header_that_shows_no_key_is_not_passed_over_for_a_cookie(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as browser:
        for header in SHOWING_NO_KEY:
            answer = await browser.get("/v1/pools", headers={"Authorization": header})
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), header


async def test_where_both_came_along_the_key_decides(visiting: Visiting, database_url: str) -> None:
    async with visiting(key_in(database_url)) as browser:
        labels = bearer(key_in(database_url, "label"))
        assert (await browser.get("/v1/pools", headers=labels)).status_code == 403
    async with visiting(key_in(database_url, "label")) as browser:
        body = {"name": "mine", "loss": {"kind": "zero_one"}}
        made = await browser.post("/v1/pools", json=body, headers=bearer())
        assert made.status_code == 201, "a program's write needs nothing of a page"


NOT_OURS = [
    "celeus={0}; celeus={0}",
    "celeus={1}; celeus={0}",
    "celeus={0}x",
    'celeus="{0}"',
    "celeus={0}%00",
    "Celeus={0}",
    "__Host-celeus={0}",
    "celeus2={0}",
    "celeus",
    "celeus=",
    "=celeus={0}",
    "celeus={2}",
    "a=b, celeus={0}",
    "celeus=' OR 1=1 -- aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
]


async def test_a_cookie_that_is_not_ours_opens_nothing(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as browser:
        token = browser.cookies["celeus"]
    async with visiting() as browser:
        for cookies in NOT_OURS:
            shown = cookies.format(token, "x" * 43, ADMIN)
            answer = await browser.get("/v1/pools", headers={"Cookie": shown})
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), shown
        beside = {"Cookie": f"theme=dark; celeus={token};other=1"}
        assert (await browser.get("/v1/pools", headers=beside)).status_code == 200


@pytest.mark.parametrize("path", PLAIN_PAGES)
async def test_no_page_can_be_framed_or_run_what_is_not_ours(
    path: str, visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as browser:
        answer = await browser.get(path)
        assert answer.status_code == 200
        refused = await browser.get("/nothing-here", headers={"Accept": "text/html"})
        assert refused.status_code == 404
    for page in (answer, refused):
        policy = dict(
            part.split(" ", 1) for part in page.headers["Content-Security-Policy"].split("; ")
        )
        assert policy["default-src"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["base-uri"] == "'none'"
        assert policy["form-action"] == "'self'"
        assert policy["script-src"] == "'self'"
        assert page.headers["X-Frame-Options"] == "DENY"
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert page.headers["Cache-Control"] == "no-store"
        assert re.search(r"<style|\son\w+=|\sstyle=|javascript:", page.text) is None
        scripts = re.findall(r"<script\b[^>]*>", page.text)
        assert all(' src="/static/' in one or "application/json" in one for one in scripts)


async def test_a_page_shows_its_own_browser_what_it_needs_to_write(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url)) as one, visiting(key_in(database_url)) as other:
        pages = [(await browser.get("/login")).text for browser in (one, other)]
        shown = [re.findall(r'<meta name="csrf" content="(.*)">', page) for page in pages]
        assert shown == [[csrf_of(browser.cookies["celeus"])] for browser in (one, other)]
        assert shown[0] != shown[1]
        assert all(
            browser.cookies["celeus"] not in page for browser in (one, other) for page in pages
        )


@pytest.mark.parametrize("path", ["/nothing", "/docs/nothing", "/metrics", "/openapi.json"])
async def test_people_who_type_an_address_are_led_and_programs_refused(
    path: str, visiting: Visiting
) -> None:
    async with visiting() as anybody:
        led = await anybody.get(path, headers={"Accept": "text/html,*/*"})
        assert (led.status_code, led.headers["Location"]) == (303, f"/login?next={path}")
        wire = await anybody.get("/v1/pools", headers={"Accept": "text/html,*/*"})
        assert (wire.status_code, wire.json()["code"]) == (401, "unauthenticated")
        assert (await anybody.post(path, headers={"Accept": "text/html"})).status_code in {401, 303}


async def test_names_with_markup_in_them_are_text(visiting: Visiting, database_url: str) -> None:
    project = "<img src=x onerror=alert(1)>"
    async with visiting(key_in(database_url, project=project)) as browser:
        page = (await browser.get("/login")).text
    assert project not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


async def test_a_page_that_a_scope_does_not_open_says_so_calmly(
    visiting: Visiting, database_url: str
) -> None:
    async with visiting(key_in(database_url, "read")) as reader:
        answer = await reader.get("/label/ses_" + "0" * 32)
    assert answer.status_code == 403
    assert "this needs a key with scope label" in answer.text.lower()
    async with visiting(key_in(database_url, "label")) as judge:
        answer = await judge.get("/label/ses_" + "0" * 32)
        assert answer.status_code == 404
        assert answer.headers["Content-Type"].startswith("text/html")

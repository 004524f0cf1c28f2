"""People sign in, in a real browser: by key, by link, by keyboard alone."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.evaluations import barriers
from tests.browser.site import NARROW, WIDE, Complaints, Site


def opened(site: Site) -> str:
    """Id of a session on a pool of forty items."""
    items = [{"id": f"item-{i}", "surrogate": 0.5, "payload": f"item {i}"} for i in range(40)]
    body = {"name": "forty", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
    with site.client() as client:
        pool = client.post("/v1/pools", json=body).json()["id"]
        return str(client.post("/v1/sessions", json={"pool_id": pool}).json()["id"])


def invited(site: Site, *options: str) -> str:
    """The link that `celeus admin keys invite` prints."""
    words = ("admin", "keys", "invite", "--url", site.url, *options)
    told = subprocess.run(
        [sys.executable, "-m", "celeus.cli", *words],
        env={"CELEUS_DATABASE_URL": site.database_url},
        check=True,
        capture_output=True,
        text=True,
    )
    return told.stdout.strip()


def revoked(site: Site, token: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "celeus.cli", "admin", "keys", "revoke", token],
        env={"CELEUS_DATABASE_URL": site.database_url},
        check=True,
        capture_output=True,
    )


def test_a_key_signs_in_and_out_by_keyboard_alone(page: Page, server: Site) -> None:
    page.goto("/")
    expect(page).to_have_url(f"{server.url}/login?next=/")
    expect(page.get_by_label("Key")).to_be_focused()
    page.keyboard.type(server.key("read"))
    page.keyboard.press("Enter")
    page.wait_for_url(f"{server.url}/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    for _ in range(8):
        page.keyboard.press("Tab")
        if page.get_by_role("button", name="Sign out").evaluate("it => it.matches(':focus')"):
            break
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{server.url}/login")
    page.goto("/")
    expect(page).to_have_url(f"{server.url}/login?next=/")


@pytest.mark.nightly
def test_a_wrong_key_is_told_and_what_was_wanted_is_kept(
    page: Page, server: Site, complaints: Complaints
) -> None:
    complaints.expect("401 (Unauthorized)")
    page.goto("/login?next=/%3Fstate%3Dactive")
    page.get_by_label("Key").fill("ce_nonsense")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("not a key that works")
    expect(page.get_by_label("Key")).to_be_focused()
    page.keyboard.type(server.key("read"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{server.url}/?state=active")


@pytest.mark.nightly
def test_a_link_leads_to_its_page_once_and_leaves_no_trace_in_the_address(
    new_context: Callable[..., BrowserContext], server: Site, complaints: Complaints
) -> None:
    session = opened(server)
    options = ("--session", session, "--name", "Anna", "--project", server.project)
    link = invited(server, *options)
    anna = new_context().new_page()
    anna.goto(link)
    expect(anna).to_have_url(f"{server.url}/label/{session}")
    anna.go_back()
    assert "invite" not in anna.url
    complaints.expect("401 (Unauthorized)")
    other = new_context().new_page()
    other.goto(link)
    expect(other.get_by_role("alert")).to_contain_text("no longer works")
    expect(other.get_by_label("Key")).to_be_visible()
    assert "invite" not in other.url


@pytest.mark.nightly
def test_a_link_works_where_the_login_is_open_already(page: Page, server: Site) -> None:
    link = invited(server, "--session", opened(server), "--name", "Bo", "--project", server.project)
    page.goto("/login")
    page.evaluate("link => { location.href = link; }", link)
    page.wait_for_url(f"{server.url}/label/*")


@pytest.mark.nightly
def test_whoever_is_signed_in_already_is_told_and_goes_on(
    signed_in: Callable[..., Page], server: Site
) -> None:
    page = signed_in("read")
    page.goto("/login?next=/%3Fstate%3Dclosed")
    expect(page.get_by_text("already signed in")).to_contain_text(server.project)
    page.get_by_role("link", name="Continue").click()
    expect(page).to_have_url(f"{server.url}/?state=closed")


@pytest.mark.nightly
def test_a_stream_comes_by_cookie_and_ends_with_the_key(
    signed_in: Callable[..., Page], server: Site, complaints: Complaints
) -> None:
    complaints.expect("401 (Unauthorized)")
    session, token = opened(server), server.key("read")
    page = signed_in(token=token)
    page.goto("/login")
    page.evaluate(
        """path => {
            window.heard = 0;
            window.stream = new EventSource(path);
            for (const kind of ["message", "session", "news"]) {
                window.stream.addEventListener(kind, () => { window.heard += 1; });
            }
        }""",
        f"/v1/sessions/{session}/stream",
    )
    page.wait_for_function(
        "() => window.stream.readyState === EventSource.OPEN && window.heard > 0"
    )
    revoked(server, token)
    page.wait_for_function("() => window.stream.readyState === EventSource.CLOSED", timeout=30_000)


SCRIPTS = (
    "const style = document.querySelector('link[rel=stylesheet]').href;"
    "const { api } = await import(style.replace('celeus.css', 'js/api.js'));"
)


def asked(page: Page, *request: object) -> Any:  # noqa: ANN401 - whatever the script came to
    """What a request by the pages' own script comes to: its answer, or the problem's fields."""
    return page.evaluate(
        """async ([method, path, body, options]) => {
            SCRIPTS
            try {
                return await api(method, path, body ?? undefined, options ?? {});
            } catch ({ status, code, detail }) {
                return { status, code, detail };
            }
        }""".replace("SCRIPTS", SCRIPTS),
        list(request),
    )


@pytest.mark.nightly
def test_scripts_write_with_what_the_page_holds_and_are_told_problems(
    signed_in: Callable[..., Page], complaints: Complaints
) -> None:
    page = signed_in("manage")
    page.goto("/login")
    body: dict[str, Any] = {"name": "ours", "loss": {"kind": "zero_one"}}
    assert asked(page, "POST", "/v1/pools", body)["name"] == "ours"
    complaints.expect("422", "403")
    wrong = asked(page, "POST", "/v1/pools", body | {"name": 1})
    assert (wrong["status"], wrong["code"]) == (422, "invalid_value")
    page.evaluate("document.querySelector('meta[name=csrf]').content = 'guessed'")
    refused = asked(page, "POST", "/v1/pools", body)
    assert (refused["status"], refused["code"]) == (403, "csrf_missing")


@pytest.mark.nightly
def test_scripts_wait_while_the_service_is_busy_and_say_when_it_is_away(
    signed_in: Callable[..., Page], complaints: Complaints
) -> None:
    complaints.expect("503", "net::ERR_FAILED")
    page = signed_in("read")
    page.goto("/login")
    refused = 0

    def busy(route: Route) -> None:
        nonlocal refused
        refused += 1
        if refused > 2:
            route.fallback()
        else:
            route.fulfill(status=503, headers={"Retry-After": "1"}, json={"code": "busy"})

    page.route("**/v1/pools", busy)
    assert asked(page, "GET", "/v1/pools") == {"data": [], "next": None}
    assert refused == 3
    page.unroute("**/v1/pools")
    page.route("**/v1/pools", lambda route: route.abort())
    away = asked(page, "GET", "/v1/pools", None, {"retry": 0})
    assert (away["status"], away["code"]) == (0, "unreachable")
    page.unroute("**/v1/pools")


@pytest.mark.nightly
def test_who_is_signed_out_elsewhere_comes_back_to_the_same_page(
    signed_in: Callable[..., Page], server: Site, complaints: Complaints
) -> None:
    complaints.expect("401 (Unauthorized)", "403 (Forbidden)")
    page = signed_in("read")
    page.goto("/?state=active")
    elsewhere = page.context.new_page()
    elsewhere.goto("/")
    elsewhere.get_by_role("button", name="Sign out").click()
    expect(elsewhere).to_have_url(f"{server.url}/login")
    with page.expect_response("**/v1/pools") as answered:
        # Not waited for: the answer takes the script along to the login
        page.evaluate(f"async () => {{ {SCRIPTS} api('GET', '/v1/pools').catch(() => null); }}")
    assert answered.value.status == 401
    expect(page).to_have_url(f"{server.url}/login?next=%2F%3Fstate%3Dactive")
    page.get_by_label("Key").fill(server.key("read"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{server.url}/?state=active")


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["360", "1440"])
def test_nobody_is_kept_out_of_the_login(
    size: dict[str, int],
    scheme: str,
    new_context: Callable[..., BrowserContext],
    signed_in: Callable[..., Page],
    complaints: Complaints,
) -> None:
    complaints.expect("401 (Unauthorized)", "404 (Not Found)")
    stranger = new_context(viewport=size, color_scheme=scheme).new_page()
    stranger.goto("/login")
    check(stranger)
    stranger.get_by_label("Key").fill("nonsense")
    stranger.keyboard.press("Enter")
    expect(stranger.get_by_role("alert")).to_be_visible()
    check(stranger)
    known = signed_in("read", viewport=size, color_scheme=scheme)
    for path in ("/login", "/nothing-here"):
        known.goto(path)
        check(known)


def check(page: Page) -> None:
    """Nothing serious keeps anybody out, and nothing has to be scrolled sideways."""
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

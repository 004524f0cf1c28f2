"""Pages of other places, in a real browser: they may link here, and nothing else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import Complaints, Site

pytestmark = pytest.mark.nightly


@contextmanager
def other_place(html: str, host: str) -> Iterator[str]:
    """A page somewhere else; `localhost` is another site, `127.0.0.1` another origin of ours."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(f"<!doctype html><link rel=icon href='data:,'>{html}".encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://{host}:{listening.server_port}/"
        finally:
            listening.shutdown()
            thread.join()


PLACES = pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])


@pytest.fixture
def page(signed_in: Callable[..., Page], complaints: Complaints) -> Page:
    """Somebody signed in, who comes around elsewhere too."""
    complaints.expect("asked elsewhere")
    return signed_in()


@PLACES
def test_a_link_from_elsewhere_leads_whoever_is_signed_in_to_the_page(
    host: str, page: Page, server: Site
) -> None:
    with other_place(f"<a href='{server.url}/?state=closed'>look</a>", host) as place:
        page.goto(place)
        page.get_by_role("link", name="look").click()
        # A strict cookie stays behind at first; the page to sign in finds it again
        expect(page).to_have_url(f"{server.url}/?state=closed")
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()


@PLACES
def test_a_form_elsewhere_changes_nothing_here(
    host: str, page: Page, server: Site, complaints: Complaints
) -> None:
    complaints.expect("401 (Unauthorized)", "403 (Forbidden)")
    forms = f"""
        <form method=post action='{server.url}/logout'><button>out</button></form>
        <form method=post enctype='text/plain' action='{server.url}/v1/pools'>
            <input name='{{"name": "theirs", "loss": {{"kind": "zero_one"}}, "x": "' value='"}}'>
            <button>pool</button></form>
        <form method=post action='{server.url}/login'>
            <input name=key value={server.key("read")}><button>in</button></form>"""
    before = page.context.cookies(server.url)
    with other_place(forms, host) as place:
        for button in ("out", "pool", "in"):
            page.goto(place)
            page.get_by_role("button", name=button, exact=True).click()
            page.wait_for_url(f"{server.url}/**")
    assert page.context.cookies(server.url) == before
    page.goto("/")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    with server.client() as client:
        assert client.get("/v1/pools").json()["data"] == []


@PLACES
def test_a_script_elsewhere_reads_and_writes_nothing_here(
    host: str, page: Page, server: Site, complaints: Complaints
) -> None:
    complaints.expect("CORS policy", "net::ERR_", "401 (Unauthorized)", "403 (Forbidden)")
    with other_place("<p>somewhere else</p>", host) as place:
        page.goto(place)
        for method, headers in (
            ("GET", {}),
            ("POST", {}),
            ("POST", {"X-CSRF-Token": "guessed", "Content-Type": "application/json"}),
            ("DELETE", {}),
        ):
            told = page.evaluate(
                """async ([url, method, headers]) => {
                    const body = method === "GET" ? undefined : "{}";
                    const options = { method, headers, body, credentials: "include" };
                    try { return await (await fetch(url, options)).text(); } catch { return null; }
                }""",
                [f"{server.url}/v1/pools", method, headers],
            )
            assert told is None, method
        blind = page.evaluate(
            """url => fetch(url, { mode: "no-cors", credentials: "include" })
                .then(answer => answer.type, () => "refused")""",
            f"{server.url}/login",
        )
        assert blind in {"opaque", "refused"}
    with server.client() as client:
        assert client.get("/v1/pools").json()["data"] == []


@PLACES
def test_no_page_shows_in_a_frame_elsewhere(
    host: str, page: Page, server: Site, complaints: Complaints
) -> None:
    complaints.expect("frame", "X-Frame-Options", "net::ERR_BLOCKED_BY_RESPONSE")
    with other_place(f"<iframe src='{server.url}/login'></iframe>", host) as place:
        page.goto(place)
        page.wait_for_load_state("networkidle")
        [framed] = [frame for frame in page.frames if frame != page.main_frame]
        assert framed.get_by_label("Key").count() == 0
        assert "Sign in" not in framed.content()

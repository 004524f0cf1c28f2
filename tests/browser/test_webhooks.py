"""Webhooks and links to a report, made and tried by hand in a real browser."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.evaluations import barriers
from tests.browser.site import Complaints, Site, at_night

LOOKS = [(360, "dark"), at_night(1440, "light")]


@contextmanager
def receiver() -> Iterator[str]:
    """Somewhere that says thank you."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"thank you")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}/hook"
        finally:
            listening.shutdown()
            thread.join()


def opened(server: Site) -> str:
    items = [{"id": f"i{number}", "surrogate": 0.5} for number in range(30)]
    pool = {"name": "Shared exam", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
    with server.client() as client:
        pool_id = client.post("/v1/pools", json=pool).json()["id"]
        body = {"pool_id": pool_id, "name": "Shared exam"}
        return str(client.post("/v1/sessions", json=body).json()["id"])


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_webhook_is_made_and_tried_by_keyboard(
    signed_in: Callable[..., Page], complaints: Complaints, width: int, scheme: str
) -> None:
    complaints.expect("422 (Unprocessable")
    page = signed_in(viewport={"width": width, "height": 900}, color_scheme=scheme)
    with receiver() as url:
        page.goto("/webhooks")
        page.get_by_label("Address").fill("https://127.0.0.1:0/")
        page.keyboard.press("Enter")
        expect(page.locator("#url-error")).to_contain_text("cannot lead to this address")
        page.get_by_label("Address").fill(url)
        page.keyboard.press("Enter")
        secret = page.get_by_role("textbox", name="The secret")
        expect(secret).to_have_value(re.compile(r"^whsec_\S{44}$"))
        assert barriers(page) == []
        hook = page.locator(".hook", has_text=url)
        hook.get_by_role("button", name="Send a test").press("Enter")
        expect(hook.get_by_role("row", name="webhook.test")).to_be_focused()
        page.goto("/webhooks")
        hook.get_by_text("Messages").press("Enter")
        expect(hook.get_by_role("cell", name="webhook.test", exact=True)).to_be_visible()
        expect(hook).to_contain_text("thank you")
        hook.get_by_role("button", name=re.compile("^Send again")).first.press("Enter")
        assert barriers(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        hook.get_by_role("button", name="Delete").press("Enter")
        page.get_by_role("button", name="Delete it").press("Enter")
        expect(hook).to_have_count(0)


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_report_is_shared_and_taken_back(
    signed_in: Callable[..., Page],
    server: Site,
    browser: Browser,
    width: int,
    scheme: str,
) -> None:
    page = signed_in(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(f"/sessions/{opened(server)}")
    page.get_by_label("It works").select_option(label="a week")
    page.get_by_role("button", name="Make a link").press("Enter")
    link = page.get_by_role("textbox", name="Link to the report")
    expect(page.get_by_role("group", name="The new link")).to_be_focused()
    url = link.input_value()
    assert page.get_by_role("textbox", name="Badge, as Markdown").input_value() == (
        f"[![Celeus]({url}/badge.svg)]({url})"
    )
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    stranger = browser.new_page()
    stranger.goto(url)
    expect(stranger.get_by_role("heading", level=1)).to_have_text("Report on Shared exam")
    stranger.goto(f"{url}/badge.svg")
    assert "no labels yet" in stranger.content()
    page.get_by_role("button", name=re.compile("^Revoke")).press("Enter")
    expect(page.get_by_role("button", name=re.compile("^Revoke"))).to_have_count(0)
    answer = stranger.goto(url)
    assert answer is not None
    assert answer.status == 404
    stranger.close()

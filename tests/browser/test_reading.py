"""Report, documentation and reference as a person meets them, in a real browser."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.evaluations import barriers
from tests.browser.site import NARROW, WIDE, Site

pytestmark = pytest.mark.nightly

WATCHED = ["/docs", "/docs/api"]
SHOWN = ["open_session", "observe"]


def judged_session(site: Site, labels: int = 120) -> str:
    """A session of this project, judged by a program."""
    rng = np.random.default_rng(1)
    surrogate = rng.random(400)
    losses = (rng.random(400) < surrogate).astype(int).tolist()
    items = [{"id": str(at), "surrogate": float(one)} for at, one in enumerate(surrogate)]
    with site.client() as client:
        form = {
            "name": "Answers <b>of</b> a model",
            "loss": {"kind": "zero_one"},
            "items": items,
            "sealed": True,
        }
        pool = client.post("/v1/pools", json=form).raise_for_status().json()
        asked = [{"side": "at_most", "threshold": 0.9}]
        opening = {"pool_id": pool["id"], "precision": 0.2, "questions": asked}
        opening["stop_when_decided"] = False
        session = str(client.post("/v1/sessions", json=opening).raise_for_status().json()["id"])
        answer = client.post(f"/v1/sessions/{session}/next", json={"worker": "ada"}).json()
        for _ in range(labels):
            if not answer["draws"]:
                break
            draw = answer["draws"][0]
            body = {
                "round": draw["round"],
                "loss": losses[draw["item"]["index"]],
                "worker": "ada",
                "next": 1,
            }
            answer = client.post(f"/v1/sessions/{session}/observe", json=body).json()
    return session


@pytest.fixture
def session(server: Site) -> str:
    return judged_session(server)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["narrow", "wide"])
def test_the_report_is_readable_everywhere(
    scheme: str,
    viewport: dict[str, int],
    session: str,
    signed_in: Callable[..., Page],
) -> None:
    page = signed_in("read", viewport=viewport, color_scheme=scheme)
    page.goto(f"/v1/sessions/{session}/report")
    expect(page.locator(".claim")).to_contain_text("error rate")
    expect(page.get_by_role("img", name=re.compile("labels"))).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert barriers(page) == []


def test_the_report_is_a_file_that_needs_nothing(
    session: str,
    server: Site,
    new_context: Callable[..., BrowserContext],
    tmp_path: Path,
) -> None:
    with server.client() as client:
        kept = client.get(f"/v1/sessions/{session}/report").raise_for_status().content
    file = tmp_path / "report.html"
    file.write_bytes(kept)
    context = new_context(offline=True)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    claim = page.locator(".claim")
    expect(claim).to_contain_text("valid at every look")
    size = claim.evaluate("one => parseFloat(getComputedStyle(one).fontSize)")
    assert size > 18, "its own styles hold, by the policy that travels in the file"
    assert asked == [file.as_uri()]


def test_the_report_is_made_for_paper(session: str, signed_in: Callable[..., Page]) -> None:
    page = signed_in("read", color_scheme="dark")
    page.goto(f"/v1/sessions/{session}/report")
    page.emulate_media(media="print", color_scheme="dark")
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert ground == "rgb(255, 255, 255)", "paper is white"
    assert page.evaluate("getComputedStyle(document.querySelector('figure')).breakInside") == (
        "avoid"
    )
    printed = page.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF")
    sheets = printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ")
    assert 2 <= sheets <= 6


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["narrow", "wide"])
def test_the_documentation_is_readable_everywhere(
    scheme: str, viewport: dict[str, int], signed_in: Callable[..., Page]
) -> None:
    page = signed_in("label", viewport=viewport, color_scheme=scheme)
    for address in WATCHED:
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
        assert barriers(page) == [], address


def test_one_walks_through_the_documentation_by_its_links(
    signed_in: Callable[..., Page], server: Site
) -> None:
    page = signed_in("read")
    page.goto("/docs")
    page.get_by_role("article").get_by_role("link", name="Concepts", exact=True).click()
    expect(page).to_have_url(f"{server.url}/docs/concepts")
    page.get_by_role("navigation", name="On this page").get_by_role(
        "link", name="Pool or population"
    ).click()
    expect(page).to_have_url(f"{server.url}/docs/concepts#pool-or-population")
    current = page.get_by_role("navigation", name="Documentation").locator("[aria-current=page]")
    expect(current).to_have_text("Concepts")


def test_titles_and_headings_are_searched_word_by_word(
    signed_in: Callable[..., Page], server: Site
) -> None:
    page = signed_in("read")
    page.goto("/docs")
    words = page.get_by_role("searchbox", name="Search titles and headings")
    matches = page.get_by_role("search").get_by_role("listitem")
    expect(matches).to_have_count(0)
    words.fill("POOL population")
    expect(page.get_by_role("search").get_by_role("status")).to_contain_text("section")
    page.get_by_role("link", name="Concepts: Pool or population").click()
    expect(page).to_have_url(f"{server.url}/docs/concepts#pool-or-population")
    page.go_back()
    words.fill("no page says this")
    expect(matches).to_have_count(0)
    expect(page.get_by_role("search").get_by_role("status")).to_have_text("0 sections")


def test_on_a_small_screen_the_navigation_is_folded(signed_in: Callable[..., Page]) -> None:
    page = signed_in("read", viewport=NARROW)
    page.goto("/docs/gate")
    link = page.get_by_role("link", name="Operate the service", exact=True)
    expect(link).to_be_hidden()
    page.get_by_text("All pages").click()
    expect(link).to_be_visible()


def test_a_command_is_copied_as_it_stands(
    signed_in: Callable[..., Page],
) -> None:
    page = signed_in("read")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/docs/certificates")
    block = page.locator(".code").first
    block.get_by_role("button", name="Copy").click()
    expect(block.get_by_role("button")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("celeus verify certificate.json\n")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_reference_is_searched_and_can_be_read(
    signed_in: Callable[..., Page], scheme: str
) -> None:
    page = signed_in("label", color_scheme=scheme)
    page.goto("/reference")
    expect(page.get_by_role("heading", name="Reference of the API")).to_be_visible()
    page.get_by_role("searchbox").fill("certificate session")
    page.locator("#sections a:visible").first.click()
    expect(page.locator("section:target, h3:target")).to_be_in_viewport()
    # All of it would take minutes
    parts = [".top", ".search", "#get_report", "#schema-Session"]
    assert barriers(page, context={"include": [[part] for part in parts]}) == []

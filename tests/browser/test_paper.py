"""Pages on paper: A4, whole, with nothing over anything else and nothing to press."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.evaluations import Evaluation
from tests.browser.site import Site
from tests.browser.test_table import Tables

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
PAPER = ViewportSize(width=688, height=1002)
"""A4 within margins of 14 and 16 mm, at 96 pixels an inch."""
OVERLAPS = """() => {
    const boxes = [];
    const texts = document.createTreeWalker(document.querySelector("main") ?? document.body, 4);
    while (texts.nextNode()) {
        const { parentElement: place, textContent } = texts.currentNode;
        const text = textContent.trim();
        if (!text || place.closest("script, style, .visually-hidden, desc, title")) continue;
        if (!place.checkVisibility({ visibilityProperty: true })) continue;
        const range = document.createRange();
        range.selectNodeContents(texts.currentNode);
        for (const box of range.getClientRects()) boxes.push({ box, text });
    }
    const found = [];
    for (const { box, text } of boxes)
        if (box.left < -1 || box.right > innerWidth + 1) found.push(`beyond the paper: ${text}`);
    for (const [at, one] of boxes.entries())
        for (const { box, text } of boxes.slice(at + 1)) {
            const wide = Math.min(one.box.right, box.right) - Math.max(one.box.left, box.left);
            const high = Math.min(one.box.bottom, box.bottom) - Math.max(one.box.top, box.top);
            if (wide > 2 && high > 4) found.push(`${one.text} | ${text}`);
        }
    return found;
}"""
"""Texts that lie over each other, or beyond the edge."""
PRESSED = "button, input:not([type=hidden]), select, summary, .button"


def printed(page: Page) -> int:
    """Lay the page out for paper; gives the number of sheets."""
    page.set_viewport_size(PAPER)
    page.emulate_media(media="print")
    page.wait_for_timeout(300)
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(29, 27, 24)"
    for one in page.locator(PRESSED).all():
        expect(one).to_be_hidden()
    made = page.pdf(prefer_css_page_size=True)
    assert made.startswith(b"%PDF")
    return made.count(b"/Type /Page\n") + made.count(b"/Type /Page ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_session_its_report_and_its_judgements_are_printed(
    signed_in: SignedIn, server: Site, scheme: str
) -> None:
    asked = [{"side": "at_most", "threshold": 0.4}]
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened(name="Exam", questions=asked, precision=0.2)
        evaluation.judged(session, 60)
    page = signed_in(color_scheme=scheme)
    page.goto(f"/sessions/{session}")
    expect(page.locator("#health .verdict")).to_be_visible()
    assert printed(page) <= 4
    chart = page.locator("#chart svg.course").bounding_box()
    assert chart is not None
    assert 1.2 < chart["width"] / chart["height"] < 3, "the chart keeps its form"
    page = signed_in(color_scheme=scheme)
    page.goto(f"/v1/sessions/{session}/report")
    assert 2 <= printed(page) <= 6
    page = signed_in(color_scheme=scheme)
    page.goto(f"/sessions/{session}/judged")
    expect(page.locator("#judgements tbody tr")).to_have_count(60)
    assert 1 <= printed(page) <= 3
    page.goto(f"/sessions/{session}/judged/1")
    expect(page.locator("#history li")).not_to_have_count(0)
    assert printed(page) == 1


def test_a_table_of_claims_is_printed(signed_in: SignedIn, server: Site) -> None:
    tables = Tables(server, subjects=8)
    tables.judge(60)
    page = signed_in()
    page.goto(f"/sessions/{tables.session}")
    expect(page.locator("#claims tbody tr")).to_have_count(1 + 8)
    assert printed(page) <= 4
    page = signed_in()
    page.goto(f"/v1/sessions/{tables.session}/report")
    expect(page.locator(".claim")).to_be_visible()
    assert printed(page) <= 8

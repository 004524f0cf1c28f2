"""The dashboard: live cards, filters, many sessions, nothing yet."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import Evaluation, barriers, multiplied, painted
from tests.browser.site import NARROW, Complaints, Site

SignedIn = Callable[..., Page]


def test_a_card_moves_with_its_session(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened(name="Exam", precision=0.3)
        page = signed_in("read")
        page.goto("/")
        card = page.get_by_role("article").filter(has_text="Exam")
        expect(card).to_contain_text("0 of 200 items judged")
        expect(card).to_contain_text("Active")
        told = evaluation.judged(session, 200)
        expect(card).to_contain_text("Precision reached")
        expect(card).to_contain_text(f"{told['rounds']['judged']} of 200 items judged")
        interval = card.get_by_role("img")
        expect(interval).to_have_attribute(
            "aria-label", re.compile(r"from \d+\.\d+ to \d+\.\d+\s%, on a")
        )
        opened = evaluation.opened(name="Opened meanwhile")
        first = page.get_by_role("article").first
        expect(first).to_contain_text("Opened meanwhile", timeout=20_000)
        page.get_by_role("link", name="Opened meanwhile").focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(opened))


TURNING = "\u05d1\u05d7\u05d9\u05e0\u05d4"
IN_THE_OPEN = """name => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    const apart = "bdi, .visually-hidden";
    for (let text = texts.nextNode(); text !== null; text = texts.nextNode())
        if (text.data.includes(name)) found.push(text.parentElement.closest(apart) === null);
    return found;
}"""


def test_names_written_the_other_way_round_turn_nothing_beside_them(
    signed_in: SignedIn, server: Site
) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 40, TURNING)
        session = evaluation.opened(name=TURNING)
        evaluation.judged(session, 3, worker=TURNING)
        page = signed_in()
        for path, ready, count in (
            ("/", "article h2", 1),
            (f"/sessions/{session}", "#workers table", 4),
            (f"/label/{session}", "h1", 1),
            ("/sessions/new", "#pools li", 1),
            (f"/sessions/new?pool={evaluation.pool}", "#chosen-facts:not(:empty)", 3),
            (f"/v1/sessions/{session}/report", "h1", 3),
        ):
            page.goto(path)
            page.locator(ready).first.wait_for()
            # Parts of a page come with answers of their own
            there = f"([name, count]) => ({IN_THE_OPEN})(name).length >= count"
            page.wait_for_function(there, arg=[TURNING, count])
            found = page.evaluate(IN_THE_OPEN, TURNING)
            assert (path, len(found), any(found)) == (path, count, False)


def test_sessions_are_filtered_by_their_state(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 40)
        evaluation.opened(name="Goes on")
        paused = evaluation.opened(name="Rests")
        client.patch(f"/v1/sessions/{paused}", json={"state": "paused"})
    page = signed_in()
    page.goto("/")
    expect(page.get_by_role("article")).to_have_count(2)
    page.get_by_role("link", name="Paused").click()
    expect(page.get_by_role("article")).to_have_text(re.compile("Rests"))
    page.get_by_role("link", name="Decided").click()
    expect(page.get_by_role("heading", name="No sessions here")).to_be_visible()
    page.get_by_role("link", name="Show all sessions").click()
    expect(page.get_by_role("article")).to_have_count(2)


def test_an_empty_project_is_told_the_next_step(signed_in: SignedIn) -> None:
    page = signed_in("manage")
    page.goto("/")
    expect(page.get_by_role("heading", name="Nothing is being evaluated yet")).to_be_visible()
    step = page.get_by_role("link", name="Start a new session")
    expect(step).to_have_attribute("href", "/sessions/new")
    assert barriers(page) == []
    reader = signed_in("read")
    reader.goto("/")
    expect(reader.get_by_text("opening a session needs a key with the scope")).to_be_visible()
    expect(reader.get_by_role("link", name="New session")).to_have_count(0)


def test_names_with_html_are_shown_as_text(signed_in: SignedIn, server: Site) -> None:
    name = '<script>alert("no")</script><img src=x onerror=alert(1)>'
    with server.client() as client:
        Evaluation(client, 20).opened(name=name)
    page = signed_in()
    page.goto("/")
    expect(page.get_by_role("link", name=name)).to_be_visible()
    assert page.locator("#cards script, #cards img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(signed_in: SignedIn, server: Site, scheme: str) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 60)
        evaluation.judged(evaluation.opened(precision=0.4, name="One"), 60)
        evaluation.opened()
    page = signed_in(viewport=NARROW, color_scheme=scheme)
    page.goto("/")
    expect(page.get_by_role("article")).to_have_count(2)
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_thousand_sessions_are_usable(
    signed_in: SignedIn, server: Site, record_property: Callable[[str, object], None]
) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 40)
        session = evaluation.opened(name="The first")
        evaluation.judged(session, 10)
    multiplied(server.database_url, session, 1_000)
    page = signed_in("read")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/")
    cards = page.get_by_role("article")
    expect(cards).to_have_count(24)
    first, usable = painted(page)
    told = f"dashboard, 1 000 sessions: painted {first:.0f} ms, usable {usable:.0f} ms"
    record_property("measured", told)
    more = page.get_by_role("button", name="Show more sessions")
    more.click()
    expect(cards).to_have_count(72)
    expect(page.locator("article a").nth(24)).to_be_focused()
    while more.is_visible():
        shown = cards.count()
        more.click()
        page.wait_for_function(
            "shown => document.querySelectorAll('article').length > shown", arg=shown
        )
    expect(cards).to_have_count(1_001)
    asked.clear()
    page.wait_for_timeout(3_000)
    # Only what somebody sees is asked for
    assert len([url for url in asked if "/v1/sessions/ses_" in url]) <= 40


def test_a_service_that_goes_away_is_told_of_and_comes_back(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    complaints.expect("ERR_INTERNET_DISCONNECTED")
    with server.client() as client:
        evaluation = Evaluation(client, 40)
        session = evaluation.opened(name="Exam")
        page = signed_in("read")
        page.goto("/")
        expect(page.get_by_role("article")).to_have_count(1)
        page.context.set_offline(offline=True)
        expect(page.get_by_text("has not answered since")).to_be_visible(timeout=30_000)
        evaluation.judged(session, 5)
        page.context.set_offline(offline=False)
        expect(page.get_by_text("5 of 40 items judged")).to_be_visible(timeout=30_000)
        expect(page.get_by_text("has not answered since")).to_have_count(0, timeout=30_000)

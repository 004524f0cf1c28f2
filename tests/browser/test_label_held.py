"""The last label where the service takes none back: it waits in the browser, and can be undone."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.labelling import ITEM, all_sent, await_round, change, events, press, visit
from tests.browser.site import Complaints, Site, at_night
from tests.browser.test_best import several
from tests.browser.test_table import Tables

SignedIn = Callable[..., Page]
FIRST_UNANSWERED = """() => {
    const asked = [];
    const { fetch } = window;
    window.fetch = (address, options) => {
        if (!String(address).endsWith("/observe")) return fetch(address, options);
        asked.push(JSON.parse(options.body).round);
        localStorage.asked = asked;
        return asked.length === 1 ? new Promise(() => {}) : fetch(address, options);
    };
}"""
"""Keeps the rounds of which labels are sent; the first label does not arrive."""


def opened(site: Site, kind: str) -> str:
    """A session whose labels stand: of claims by group, or of the best of several systems."""
    if kind == "best":
        return several(site, "answers")[0]
    items = [{"id": f"item-{at}", "group": "ab"[at % 2]} for at in range(80)]
    body = {"name": "exam", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
    with site.client() as client:
        pool = client.post("/v1/pools", json=body).raise_for_status().json()["id"]
        asked = {"pool_id": pool, "groups": ["group"], "precision": 0.2}
        session = client.post("/v1/sessions", json=asked).raise_for_status().json()["id"]
    return str(session)


def losses(site: Site, session: str) -> list[tuple[int, list[float]]]:
    """The losses of every claim or system that are stored of which round."""
    observed = events(site, session, "observation")
    return [(event["round"], event["losses"]) for event in observed]


def test_the_last_label_is_taken_back_before_it_is_sent(server: Site, signed_in: SignedIn) -> None:
    session = opened(server, "groups")
    page = signed_in("label")
    visit(page, session)
    expect(page.locator("#stands")).to_contain_text("stands")
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_disabled()
    judged = press(page, "1")
    undo.click()
    await_round(page, judged)
    expect(page.locator("#notices")).to_contain_text("You judged this “Correct”")
    # However long it takes to judge anew, nothing is sent meanwhile
    page.wait_for_timeout(6_000)
    assert losses(server, session) == []
    press(page, "2")
    following = press(page, "1")
    expect(page.locator("#count")).to_have_text("2")
    all_sent(page)
    assert losses(server, session) == [(judged, [1]), (following, [0])]
    expect(undo).to_be_disabled()


@pytest.mark.parametrize("key", ["2", at_night("Escape")])
def test_a_label_that_is_kept_or_said_again_is_sent(
    server: Site, signed_in: SignedIn, key: str
) -> None:
    session = opened(server, "groups")
    page = signed_in("label")
    visit(page, session)
    judged = press(page, "2")
    page.keyboard.press("z")
    await_round(page, judged)
    press(page, key)
    all_sent(page)
    assert losses(server, session) == [(judged, [1])]


@pytest.mark.nightly
def test_an_answer_among_several_systems_is_taken_back(server: Site, signed_in: SignedIn) -> None:
    session = opened(server, "best")
    page = signed_in("label")
    visit(page, session)

    def judge(key: str) -> int:
        """Say the same of every answer: by the first or last set, or on a line for each."""
        lines = page.locator("#answers .line").count()
        if lines:
            for _ in range(lines):
                page.keyboard.press(key)
            return press(page, "Enter")
        buttons = page.locator("#answers button")
        return press(page, "0" if key == "1" else str(buttons.count() - 1))

    judged = judge("1")
    page.keyboard.press("z")
    await_round(page, judged)
    judge("0")
    all_sent(page)
    assert losses(server, session) == [(judged, [0.0] * 4)]


@pytest.mark.nightly
def test_metrics_are_taken_back(server: Site, signed_in: SignedIn) -> None:
    tables = Tables(server, subjects=2)
    page = signed_in("label")
    visit(page, tables.session)
    for key in "005":
        page.keyboard.press(key)
    judged = press(page, "Enter")
    page.keyboard.press("z")
    await_round(page, judged)
    expect(page.locator("#notices")).to_contain_text("“correct: Wrong, harmful: good, grade: 5”")
    for key in "113":
        page.keyboard.press(key)
    press(page, "Enter")
    all_sent(page)
    assert losses(server, tables.session) == [(judged, [0, 1, 3])]


@pytest.mark.nightly
def test_a_label_is_sent_when_the_window_is_left(server: Site, signed_in: SignedIn) -> None:
    session = opened(server, "groups")
    page = signed_in("label")
    visit(page, session)
    judged = press(page, "2")
    page.goto("/docs")
    while not losses(server, session):
        page.wait_for_timeout(50)
    assert losses(server, session) == [(judged, [1])]
    # What was kept is sent again, and known again
    page.goto(f"/label/{session}")
    page.locator(ITEM).wait_for()
    all_sent(page)
    expect(page.locator("#notices")).to_be_empty()
    expect(page.locator("#count")).to_have_text("1")
    assert losses(server, session) == [(judged, [1])]


@pytest.mark.nightly
def test_a_label_taken_back_is_not_counted_when_the_session_is_closed(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("409 (Conflict)")
    session = opened(server, "groups")
    page = signed_in("label")
    visit(page, session)
    judged = press(page, "2")
    page.keyboard.press("z")
    await_round(page, judged)
    change(server, session, state="closed")
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    expect(page.locator("#notices")).to_contain_text("was closed before your last label arrived")
    expect(page.locator("#count")).to_have_text("0")
    all_sent(page)


@pytest.mark.nightly
def test_the_last_label_is_sent_while_one_before_it_has_no_answer(
    server: Site, signed_in: SignedIn
) -> None:
    session = opened(server, "groups")
    page = signed_in("label")
    visit(page, session)
    page.evaluate(FIRST_UNANSWERED)
    first = press(page, "2")
    second = press(page, "1")
    page.wait_for_function("localStorage.asked")
    page.goto("/docs")
    assert page.evaluate("JSON.parse(`[${localStorage.asked}]`)") == [first, second]
    visit(page, session)
    all_sent(page)
    assert sorted(losses(server, session)) == sorted([(first, [1]), (second, [0])])

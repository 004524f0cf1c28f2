"""What judges are told beside the item, what they add to a judgement, and what they pass on."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.evaluations import barriers
from tests.browser.labelling import (
    ITEM,
    all_sent,
    await_round,
    change,
    compared,
    events,
    press,
    round_on,
    session_of,
    texts,
    visit,
)
from tests.browser.site import NARROW, WIDE, Site

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
TOLD = "Judge only what is *said*.\n\n- Style does not matter.\n- Spelling neither."
SCALE = {"kind": "bounded", "lower": 0, "upper": 3}
LEVELS = [
    {"name": "wrong", "grade": 0, "help": "States something false."},
    {"name": "perfect", "grade": 3, "help": "Nothing to add."},
]
RUBRIC = {"levels": LEVELS, "score": {"name": "quality", "better": "higher"}}


def box(found: Locator) -> dict[str, float]:
    """Where an element stands."""
    place = found.bounding_box()
    assert place is not None
    return {"x": place["x"], "y": place["y"], "width": place["width"]}


def onward(page: Page, key: str) -> int:
    """Press a key; the round it was pressed for, once the next item is there."""
    before = press(page, key)
    page.locator(ITEM).wait_for()
    return before


def comments(site: Site, session: str) -> list[str]:
    """What judges added, as whoever runs the session reads it."""
    with site.client() as client:
        told = client.get(f"/v1/sessions/{session}/comments").raise_for_status().json()
    return [one["comment"] for one in told["data"]]


def test_instructions_stand_beside_the_item_and_stay_as_they_were_left(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(4), SCALE, pool=RUBRIC, instructions=TOLD)
    page = signed_in("label")
    item = visit(page, session)
    brief = page.locator("#brief")
    expect(brief.locator("em")).to_have_text("said")
    for words in ("Style does not matter.", "3 perfect", "Nothing to add."):
        expect(brief).to_contain_text(words)
    expect(item).not_to_contain_text("Style")
    assert box(brief)["x"] >= box(item)["x"] + box(item)["width"]
    text = page.locator("#brief-text")
    expect(text).to_be_visible()
    page.keyboard.press("i")
    expect(text).to_be_hidden()
    onward(page, "3")
    page.reload()
    page.locator(ITEM).wait_for()
    expect(text).to_be_hidden()
    page.keyboard.press("i")
    expect(text).to_be_visible()


def test_on_a_phone_they_are_folded_above_the_item(server: Site, signed_in: SignedIn) -> None:
    session = session_of(server, texts(4), pool={"instructions": TOLD})
    page = signed_in("label", viewport=NARROW)
    item = visit(page, session)
    text = page.locator("#brief-text")
    expect(text).to_be_hidden()
    assert box(page.locator("#brief"))["y"] < box(item)["y"]
    page.locator("#brief-fold").click()
    expect(text).to_be_visible()
    page.reload()
    page.locator(ITEM).wait_for()
    expect(text).to_be_visible()


def test_what_every_item_repeats_is_not_shown_again(server: Site, signed_in: SignedIn) -> None:
    own = "Of this one, the second sentence."
    payloads = [{"Rubric": one, "text": "an item"} for one in (f"{TOLD}\n", own)]
    session = session_of(server, payloads, instructions=TOLD)
    page = signed_in("label")
    seen = []
    visit(page, session)
    for _ in payloads:
        page.locator(ITEM).wait_for()
        seen.append(page.locator(ITEM).inner_text().split("\n")[0])
        press(page, "1")
    assert sorted(seen) == sorted([own, "an item"])


def test_instructions_that_change_are_shown_to_who_is_at_work(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(4))
    page = signed_in("label")
    visit(page, session)
    expect(page.locator("#brief")).to_be_hidden()
    change(server, session, instructions="From now on **strictly**.")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#brief strong")).to_have_text("strictly")
    expect(page.locator("#notices")).to_contain_text("The instructions have changed")
    press(page, "1")
    expect(page.locator("#notices")).not_to_contain_text("have changed")


def test_a_comment_goes_with_the_judgement(server: Site, signed_in: SignedIn) -> None:
    session = session_of(server, texts(6))
    page = signed_in("label")
    visit(page, session)
    field = page.get_by_label("Comment", exact=True)
    expect(field).to_be_hidden()
    page.keyboard.press("c")
    expect(field).to_be_focused()
    page.keyboard.type("2 of 3 are right, I pass")
    page.keyboard.press("Escape")
    onward(page, "2")
    expect(field).to_be_hidden()
    onward(page, "1")
    page.keyboard.press("c")
    page.keyboard.type("unreadable")
    page.keyboard.press("Enter")
    expect(field).not_to_be_focused()
    page.keyboard.press("u")
    press(page, "1")
    all_sent(page)
    assert comments(server, session) == ["2 of 3 are right, I pass", "unreadable"]
    assert [one["loss"] for one in events(server, session, "observation")] == [1, 0]
    expect(page.locator("#count")).to_have_text("3")


def again(page: Page, comment: str, key: str) -> None:
    """Judge the last item again by a key, with another comment."""
    after = round_on(page)
    page.keyboard.press("z")
    expect(page.locator("#notices")).to_contain_text("You judged this")
    page.keyboard.press("c")
    page.get_by_label("Comment", exact=True).fill(comment)
    page.keyboard.press("Escape")
    page.keyboard.press(key)
    await_round(page, after)
    all_sent(page)


def test_a_comment_is_changed_and_taken_back_with_its_label(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(6))
    page = signed_in("label")
    visit(page, session)
    field = page.get_by_label("Comment", exact=True)

    page.keyboard.press("c")
    page.keyboard.type("first")
    page.keyboard.press("Escape")
    onward(page, "2")
    all_sent(page)
    page.keyboard.press("z")
    expect(field).to_have_value("first")
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    again(page, "second", "2")
    assert comments(server, session) == ["second"]
    assert events(server, session, "amendment") == []
    again(page, "third", "1")
    assert comments(server, session) == ["third"]
    again(page, "fourth", "1")
    assert comments(server, session) == ["fourth"]
    again(page, "", "1")
    assert comments(server, session) == []
    assert [one["loss"] for one in events(server, session, "amendment")] == [0]
    expect(page.locator("#count")).to_have_text("1")


def test_an_item_is_passed_to_somebody_else(server: Site, signed_in: SignedIn) -> None:
    session = session_of(server, texts(3), budget=2)
    page = signed_in("label")
    visit(page, session)
    passed = onward(page, "p")
    other = round_on(page)
    expect(page.locator("#count")).to_have_text("0")
    assert passed != other
    # Nothing else may be drawn: nobody came for it, so it is asked for again
    press(page, "1")
    await_round(page, passed)
    expect(page.locator("#notices")).to_contain_text("You passed this item on")
    # Passed on again, it waits for somebody
    page.get_by_role("button", name="Pass on").click()
    expect(page.locator("#rest")).to_contain_text("Passed on")
    all_sent(page)
    somebody = signed_in("label")
    visit(somebody, session)
    press(somebody, "2")
    all_sent(somebody)
    assert [one["loss"] for one in events(server, session, "observation")] == [0, 1]


def test_who_cannot_judge_is_shown_the_difference(server: Site, signed_in: SignedIn) -> None:
    session = session_of(server, texts(3))
    page = signed_in("label")
    visit(page, session)
    expect(page.locator("#ways")).to_contain_text("Pass on: others can")
    page.keyboard.press("u")
    expect(page.locator("#why")).to_be_visible()
    press(page, "p")
    expect(page.locator("#why")).to_be_hidden()
    assert events(server, session, "unjudgeable") == []


def test_nobody_passes_the_turn_of_a_panel(server: Site, signed_in: SignedIn) -> None:
    token = server.key("label")
    panel = ["of a test", "another"]
    session = session_of(server, texts(3), raters="assigned", protocol="consensus", panel=panel)
    page = signed_in(token=token)
    item = visit(page, session)
    expect(page.get_by_role("button", name="Cannot judge")).to_be_visible()
    expect(page.get_by_role("button", name="Pass on")).to_be_hidden()
    shown = item.get_attribute("data-round") or ""
    page.keyboard.press("p")
    expect(item).to_have_attribute("data-round", shown)


@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_in_the_way_of_anybody(
    server: Site, signed_in: SignedIn, viewport: dict[str, int], scheme: str
) -> None:
    page = signed_in("label", viewport=viewport, color_scheme=scheme)
    long = "\n\n".join(f"{at}. {TOLD}" for at in range(30))
    asked: dict[str, Any] = {"instructions": long}
    sessions = [session_of(server, texts(3), SCALE, pool=RUBRIC, **asked)]
    sessions.append(compared(server, "preference", decide={"margin": 0.25}, **asked)[0])
    for session in sessions:
        visit(page, session)
        page.keyboard.press("c")
        assert barriers(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.keyboard.press("Escape")
        page.keyboard.press("i")
        assert barriers(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_two_answers_are_commented_and_passed_on_too(server: Site, signed_in: SignedIn) -> None:
    session, _ = compared(server, "preference", decide={"margin": 0.25}, instructions=TOLD)
    page = signed_in("label")
    visit(page, session)
    expect(page.locator("#brief")).to_contain_text("Style does not matter.")
    onward(page, "p")
    page.keyboard.press("c")
    page.keyboard.type("both say the same")
    page.keyboard.press("Escape")
    press(page, "ArrowDown")
    all_sent(page)
    assert comments(server, session) == ["both say the same"]

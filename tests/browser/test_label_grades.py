"""Named levels by their keys, and lists of more classes than there are keys."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import barriers
from tests.browser.labelling import (
    ITEM,
    all_sent,
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
QUALITY = {"name": "quality", "better": "higher"}
GRADES = {"kind": "bounded", "lower": 0, "upper": 3}
LEVELS = [
    {"name": "wrong", "grade": 0, "help": "States something false."},
    {"name": "poor", "grade": 1},
    {"name": "good", "grade": 2},
    {"name": "perfect", "grade": 3, "help": "Nothing to add."},
]
COLOURS = ["blue", "red", "green", "reed", "grey", "pink", "teal", "plum", "gold", "navy", "Café"]
COLOURS[-1:-1] = [f"tint {number}" for number in range(21)]
NOTICES = "#notices"
MARKED = "[role=option][aria-selected=true]"


def levelled(site: Site, levels: list[dict[str, Any]], upper: float = 3, items: int = 4) -> str:
    """An open session whose pool has these levels from 0 up."""
    pool = {"levels": levels, "score": QUALITY}
    return session_of(site, texts(items), GRADES | {"upper": upper}, pool=pool)


def test_a_level_is_given_by_the_key_of_its_grade(server: Site, signed_in: SignedIn) -> None:
    session = levelled(server, LEVELS)
    page = signed_in("label")
    visit(page, session)
    expect(page.get_by_text("Higher is better")).to_have_count(1)
    buttons = page.locator("#answers button")
    assert [one.inner_text().split() for one in buttons.all()] == [
        [str(one["grade"]), one["name"]] for one in LEVELS
    ]
    page.keyboard.press("7")
    for key in "301":
        press(page, key)
    page.get_by_role("button", name="2 good").click()
    all_sent(page)
    assert [one["loss"] for one in events(server, session, "observation")] == [0, 3, 2, 1]
    page.keyboard.press("z")
    expect(page.locator(NOTICES)).to_contain_text("You judged this “2 good”")


def test_the_better_end_is_said_of_a_scale_where_low_is_good(
    server: Site, signed_in: SignedIn
) -> None:
    pool = {
        "levels": [{"name": "harmless", "grade": 0}, {"name": "harmful", "grade": 1}],
        "score": {"name": "harm", "better": "lower"},
    }
    session = session_of(server, texts(3), pool=pool)
    page = signed_in("label")
    visit(page, session)
    expect(page.get_by_text("Lower is better")).to_have_count(1)
    press(page, "1")
    press(page, "0")
    all_sent(page)
    assert [one["loss"] for one in events(server, session, "observation")] == [1, 0]


def test_no_digit_means_a_grade_that_it_is_not(server: Site, signed_in: SignedIn) -> None:
    names = ["wrong", "half", "right", "superb"]
    levels = [{"name": name, "grade": at / 2} for at, name in enumerate(names)]
    session = levelled(server, levels, upper=1.5)
    page = signed_in("label")
    item = visit(page, session)
    shown = item.get_attribute("data-round")
    for digit in "0123456789":
        page.keyboard.press(digit)
    expect(item).to_have_attribute("data-round", shown or "")
    expect(page.get_by_role("button", name="0.5 half")).to_be_visible()
    press(page, "w")
    press(page, "r")
    all_sent(page)
    assert [one["loss"] for one in events(server, session, "observation")] == [1, 0]


def test_as_many_levels_as_there_may_be_have_letters(server: Site, signed_in: SignedIn) -> None:
    levels = [{"name": f"step {at}", "grade": at} for at in range(20)]
    session = levelled(server, levels, upper=19)
    page = signed_in("label")
    visit(page, session)
    expect(page.get_by_text("Higher is better")).to_have_count(1)
    expect(page.locator("#answers button").last).to_have_text("N 19 step 19")
    for key in "1qn":
        page.keyboard.press(key)
    all_sent(page)
    assert [one["loss"] for one in events(server, session, "observation")] == [19, 0]
    page.keyboard.press("z")
    expect(page.locator(NOTICES)).to_contain_text("You judged this “19 step 19”")


def coloured(site: Site, page: Page) -> str:
    """A session of more classes than keys, and its page."""
    payload = {"text": "which colour?", "choices": [*COLOURS, "re"]}
    session = session_of(site, [payload] * 8, members={"prediction": 0})
    visit(page, session)
    expect(page.get_by_role("option")).to_have_count(len(COLOURS) + 1)
    return session


def given(site: Site, page: Page, session: str) -> list[str]:
    """The classes that were given, by name."""
    all_sent(page)
    labels = [one["detail"]["label"] for one in events(site, session, "observation")]
    return [[*COLOURS, "re"][label] for label in labels]


def test_a_list_is_made_shorter_by_typing(server: Site, signed_in: SignedIn) -> None:
    page = signed_in("label")
    session = coloured(server, page)
    field = page.get_by_role("combobox", name="Class")
    expect(field).to_be_focused()
    marked = page.locator(MARKED)
    expect(marked).to_have_count(0)
    page.keyboard.press("Enter")  # nothing typed, nothing given
    expect(page.get_by_role("alert")).to_be_visible()
    # The exact one first, then those that begin so, then those that have it within
    page.keyboard.type("RE")
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.get_by_role("option")).to_have_text(["re", "red", "reed", "green", "grey"])
    expect(marked).to_have_text("re")
    expect(page.locator("#class-told")).to_have_text("5 classes fit. Enter takes “re”.")
    press(page, "Enter")
    expect(field).to_have_value("")
    page.keyboard.type("ree")
    expect(marked).to_have_text("reed")
    press(page, "Enter")
    page.keyboard.type("cafe")
    press(page, "Enter")
    assert given(server, page, session) == ["re", "reed", "Café"]


def test_a_list_is_gone_through_by_arrows_and_clicks(server: Site, signed_in: SignedIn) -> None:
    page = signed_in("label")
    session = coloured(server, page)
    field, marked = page.get_by_role("combobox", name="Class"), page.locator(MARKED)
    page.keyboard.type("ree")
    page.keyboard.press("ArrowDown")
    expect(marked).to_have_text("green")
    page.keyboard.press("ArrowDown")
    expect(marked).to_have_text("reed")
    page.keyboard.press("ArrowUp")
    press(page, "Enter")
    page.keyboard.press("ArrowUp")
    expect(marked).to_have_text("re")
    press(page, "Enter")
    judged = round_on(page)
    page.get_by_role("option", name="pink").click()
    # The field of the next item takes the focus once the item is there, which may take a request
    expect(page.locator(ITEM)).not_to_have_attribute("data-round", str(judged))
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).not_to_be_focused()
    page.keyboard.type("teal")
    expect(field).to_have_value("teal")
    press(page, "Enter")
    assert given(server, page, session) == ["green", "re", "pink", "teal"]


@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    server: Site, signed_in: SignedIn, viewport: dict[str, int], scheme: str
) -> None:
    page = signed_in("label", viewport=viewport, color_scheme=scheme)
    visit(page, levelled(server, LEVELS))
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    payload = {"text": "which?", "choices": [f"{one} of some length" for one in COLOURS]}
    visit(page, session_of(server, [payload] * 2, members={"prediction": 0}))
    page.get_by_role("combobox").fill("re")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

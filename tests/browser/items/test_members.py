"""What the members of a payload are, under the names that tools give them."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.labelling import session_of, visit
from tests.browser.site import NARROW, WIDE, Site

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
QUESTION = {"question": "Why?", "answer": "So.", "reference": "Because."}
LONG = "\n".join(f"Line {number} of a long answer, with some words in it." for number in range(400))


@pytest.mark.parametrize(
    "names",
    [
        ("prompt", "response", "expected"),
        ("Input", "OUTPUT", "expected_output"),
        ("query", "completion", "Ground Truth"),
        ("userInput", "prediction", "gold"),
        ("instruction", "actual-output", "ideal"),
    ],
)
def test_parts_are_known_by_their_common_names(
    server: Site, signed_in: SignedIn, names: tuple[str, str, str]
) -> None:
    payload = dict(zip(names, QUESTION.values(), strict=True))
    page = signed_in("label")
    visit(page, session_of(server, [payload]))
    for part, told in QUESTION.items():
        expect(page.locator(f".payload-{part}")).to_contain_text(told)
    expect(page.locator("#announcer")).to_contain_text("Item: Why?. So.")


def test_what_has_no_place_is_shown_under_its_name(server: Site, signed_in: SignedIn) -> None:
    payload = {
        "Instruction": "Add.",
        "input": "1 + 1",
        "output": "2",
        "model": "m",
        "n": {"a": [1]},
    }
    page = signed_in("label")
    item = visit(page, session_of(server, [payload]))
    expect(page.locator(".payload-question")).to_contain_text("Add.")
    expect(page.locator(".payload-named").first).to_have_text("input1 + 1")
    expect(item.get_by_text("model")).to_be_hidden()
    page.get_by_text("More about this item").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".payload-more")).to_contain_text("modelm")
    expect(page.locator(".payload-more .payload-json")).to_contain_text('"a"')


def test_a_payload_of_unknown_members_is_shown_by_their_names(
    server: Site, signed_in: SignedIn
) -> None:
    page = signed_in("label")
    visit(page, session_of(server, [{"caption": "A dog.", "stars": 3, "nothing": None}]))
    named = page.locator(".payload-named").all_inner_texts()
    assert sorted(named) == ["caption\nA dog.", "stars\n3"]


def test_documents_and_several_references_are_lists(server: Site, signed_in: SignedIn) -> None:
    payload = {
        "query": "How long?",
        "retrieved": ["It is 81 km.", {"title": "Atlas", "page_content": "81."}],
        "answer": "81 km",
        "ideal": ["81 km", 81],
    }
    page = signed_in("label")
    visit(page, session_of(server, [payload]))
    assert page.locator(".payload-documents > li").count() == 2
    expect(page.locator(".payload-documents > li").nth(1)).to_contain_text("81.")
    assert page.locator(".payload-reference li").all_inner_texts() == ["81 km", "81"]


def test_the_answer_stands_beside_the_reference_where_there_is_room(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, [QUESTION] * 4)
    for viewport, beside in ((WIDE, True), (NARROW, False)):
        page = signed_in("label", viewport=viewport)
        visit(page, session)
        answer = page.locator(".payload-answer").bounding_box()
        reference = page.locator(".payload-reference").bounding_box()
        assert answer is not None
        assert reference is not None
        assert (answer["y"] == reference["y"]) is beside
        assert (reference["x"] >= answer["x"] + answer["width"]) is beside


def test_a_long_text_is_folded_until_all_of_it_is_asked_for(
    server: Site, signed_in: SignedIn
) -> None:
    page = signed_in("label", viewport=NARROW)
    item = visit(page, session_of(server, [{"answer": LONG}, {"answer": {"markdown": LONG}}]))
    expect(item).to_contain_text("Line 20 ")
    expect(item).not_to_contain_text("Line 399 ")
    more = page.get_by_role("button", name="Show all")
    expect(more).to_have_attribute("aria-expanded", "false")
    more.focus()
    page.keyboard.press("Enter")
    expect(item).to_contain_text("Line 399 ")
    less = page.get_by_role("button", name="Show less")
    expect(less).to_be_focused()
    expect(less).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Enter")
    expect(item).not_to_contain_text("Line 399 ")


def test_each_text_has_its_own_direction(server: Site, signed_in: SignedIn) -> None:
    payload = {
        "question": "מהי בירת אוסטרליה?",
        "answer": {"markdown": "Canberra.\n\nقنبرة هي العاصمة.\n\n- واحد\n- two"},
    }
    page = signed_in("label")
    visit(page, session_of(server, [payload]))
    page.locator(".payload-markdown").wait_for()
    shown = page.locator(".payload-question .payload-text, .payload-markdown :is(p, li)")
    found = shown.evaluate_all("all => all.map((one) => getComputedStyle(one).direction)")
    assert found == ["rtl", "ltr", "rtl", "rtl", "ltr"]

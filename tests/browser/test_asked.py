"""What a file leaves open is asked on the page, answered there, and can be answered otherwise."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.evaluations import barriers
from tests.browser.site import NARROW, WIDE, Complaints
from tests.browser.test_natural_files import CUT_OFF, choose

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
BETTER = "Which values of score are better?"
SHARED = "How are rows that share one to be read?"


def runs() -> bytes:
    """Ten items, each rated in two runs, with who rated it."""
    cells = (f"i{at // 2},Say {at // 2}.,Word {at},0.{at % 10},rater {at}" for at in range(20))
    return "\n".join(["id,question,answer,score,annotator", *cells, ""]).encode()


def question(page: Page, text: str) -> Locator:
    return page.get_by_role("group", name=text)


def make(page: Page) -> Locator:
    return page.get_by_role("button", name="Create the pool")


def test_several_questions_are_answered_by_keyboard_and_answered_otherwise(
    signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("422")
    page = signed_in("manage")
    choose(page, "runs.csv", runs())
    first = question(page, BETTER).get_by_role("radio").first
    expect(first).to_be_focused()
    expect(page.locator("#announcer")).to_contain_text(f"2 questions to answer. {BETTER}")
    expect(make(page)).to_be_disabled()
    page.keyboard.press("Space")
    expect(page.locator("#questions-told")).to_contain_text("1 question to answer")
    expect(page.locator("#announcer")).to_contain_text("1 question to answer.")
    expect(first).to_be_focused()
    expect(first).to_be_checked()
    expect(make(page)).to_be_disabled()
    page.keyboard.press("Tab")
    expect(question(page, SHARED).get_by_role("radio").first).to_be_focused()
    page.keyboard.press("Space")
    expect(page.locator("#checked")).to_contain_text("20 rows: every row is a valid item")
    expect(make(page)).to_be_enabled()
    expect(page.locator("#questions-told")).to_contain_text("All answered.")
    expect(page.locator("#item-hidden")).to_have_text("Hidden from judges: annotator")
    expect(page.locator("#columns-table tr", has_text="annotator")).to_contain_text("Why: ")
    question(page, SHARED).get_by_role("radio", name="first").check()
    expect(page.locator("#checked")).to_contain_text("10 rows: every row is a valid item")
    expect(first).to_be_checked()


def test_each_value_that_stands_for_no_score_is_chosen_of_several(
    signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("422")
    page = signed_in("manage")
    signs = {0: "error", 1: "skipped"}
    cells = (f"i{at},Say {at}.,Word {at},{signs.get(at, 0.5)}" for at in range(20))
    choose(page, "gaps.csv", "\n".join(["id,question,answer,accuracy", *cells, ""]).encode())
    asked = question(page, "stand for no score")
    asked.get_by_role("checkbox", name="error").check()
    expect(page.locator("#questions-told")).to_contain_text("All answered.")
    asked.get_by_role("checkbox", name="skipped").check()
    expect(page.locator("#checked")).to_contain_text("20 rows: every row is a valid item")
    expect(asked.get_by_role("checkbox", name="error")).to_be_checked()


def test_a_role_given_afterwards_outweighs_the_answer_which_column_is_judged(
    signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("422")
    page = signed_in("manage")
    rows = [
        {"question": f"Say {at}.", "gpt_answer": f"g{at}", "llama_answer": f"l{at}"}
        for at in range(12)
    ]
    choose(page, "wide.json", json.dumps(rows).encode())
    asked = question(page, "Which column is judged?")
    page.get_by_label("What question is", exact=True).select_option("text")
    expect(page.locator("#columns-told")).to_contain_text("As you said.")
    expect(make(page)).to_be_disabled()
    asked.get_by_role("radio", name="gpt_answer").check()
    shown = page.locator("#item-shown")
    expect(shown).to_contain_text("g0")
    expect(shown).not_to_contain_text("l0")
    expect(make(page)).to_be_enabled()
    page.get_by_label("What llama_answer is", exact=True).select_option("answer")
    expect(shown).to_contain_text("l0")
    expect(shown).not_to_contain_text("g0")
    expect(asked).not_to_be_attached()


def test_what_decided_a_number_of_one_file_is_asked_of_the_next(
    signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("422")
    page = signed_in("manage")
    choose(page, "runs.csv", runs())
    expect(page.locator("#columns-told")).to_contain_text("separated by comma")
    question(page, BETTER).get_by_role("radio", name="lower").check()
    question(page, SHARED).get_by_role("radio", name=re.compile("^items")).check()
    make(page).click()
    expect(page.locator("#chosen-facts")).to_contain_text("20 items")
    page.goto("/sessions/new")
    page.get_by_label("A file", exact=True).check()
    page.set_input_files("#file", {"name": "b.csv", "mimeType": "text/csv", "buffer": runs()})
    expect(question(page, BETTER)).to_be_visible()
    expect(make(page)).to_be_disabled()


@pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", NARROW)])
def test_questions_are_legible_and_nothing_is_cut_off(
    signed_in: SignedIn, complaints: Complaints, scheme: str, viewport: dict[str, int]
) -> None:
    complaints.expect("422")
    page = signed_in("manage", viewport=viewport, color_scheme=scheme)
    choose(page, "runs.csv", runs().replace(b"annotator", b"annotator_" + b"x" * 90))
    expect(page.get_by_role("group", name=SHARED)).to_be_visible()
    assert barriers(page) == []
    assert page.evaluate(CUT_OFF.replace("#columns", "#questions *, #columns")) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_columns_of_two_systems_are_chosen_in_the_table(
    signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("422")
    page = signed_in("manage")
    rows = [
        {"question": f"Say {at}.", "gpt_answer": f"g{at}", "llama_answer": f"l{at}"}
        for at in range(12)
    ]
    choose(page, "wide.json", json.dumps(rows).encode())
    expect(question(page, "Which column is judged?")).to_be_visible()
    page.get_by_role("radio", name="Answers of two systems").check()
    expect(page.locator("#file-problem")).to_contain_text("Choose “Answer of A”")
    expect(make(page)).to_be_disabled()
    page.get_by_label("What gpt_answer is", exact=True).select_option("answer_a")
    expect(page.locator("#file-problem")).to_contain_text("the other system")
    expect(make(page)).to_be_disabled()
    page.get_by_label("What llama_answer is", exact=True).select_option("answer_b")
    expect(page.locator("#item-shown .payload-side")).to_have_text(["Leftg0", "Rightl0"])
    expect(page.locator("#file-problem")).to_be_empty()
    expect(make(page)).to_be_enabled()

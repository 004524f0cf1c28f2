"""Files as people have them become pools on the page, and nobody has to read how."""

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.evaluations import barriers
from tests.browser.natural import ROWS, excel, files, questions
from tests.browser.site import NARROW, WIDE, Complaints, Site
from tests.browser.test_new_session import file_of, kept

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
CUT_OFF = """() => [...document.querySelectorAll("#columns *, #looks *")].filter((one) => {
    const card = one.closest(".card.step");
    return !one.closest(".example, option") &&
        one.getBoundingClientRect().right > card.getBoundingClientRect().right;
}).map((one) => one.outerHTML.slice(0, 100))"""
CLICKS = 2
"""Choose the file, create the pool."""
ASKED = {
    "Fragen.csv": ("Which values of Confidence are better?", "higher"),
    "samples_toy_gen_2026-11-23T04-57-27.200140.jsonl": (
        "The log has several filters. Which one?",
        "strict-match",
    ),
}
"""Questions that a file leaves open and their answers, by its name: a click more each."""


def choose(page: Page, name: str, content: bytes) -> None:
    """A project without pools begins with a file."""
    page.goto("/sessions/new")
    expect(page.get_by_label("A file", exact=True)).to_be_checked()
    page.set_input_files("#file", file_of(name, content))
    if name in ASKED:
        page.get_by_role("radio", name=ASKED[name][1]).check()


@pytest.mark.parametrize("case", list(files()), ids=lambda case: case[0].split("_")[0])
def test_a_natural_file_becomes_a_pool_in_two_clicks(
    signed_in: SignedIn,
    server: Site,
    complaints: Complaints,
    record_property: Callable[[str, object], None],
    case: tuple[str, bytes, str, int],
) -> None:
    name, content, shows, items = case
    page = signed_in("manage")
    page.goto("/sessions/new")
    expect(page.get_by_label("A file", exact=True)).to_be_checked()
    began = time.monotonic()
    page.set_input_files("#file", file_of(name, content))
    if name in ASKED:
        complaints.expect("422")
        text, answer = ASKED[name]
        question = page.get_by_role("group", name=text)
        expect(question).to_be_visible()
        expect(page.get_by_role("button", name="Create the pool")).to_be_disabled()
        question.get_by_role("radio", name=answer).check()
    expect(page.locator("#checked")).to_contain_text("every row is a valid item")
    seen = time.monotonic() - began
    expect(page.locator("#item-shown")).to_contain_text(shows)
    if not shows:
        expect(page.locator("#item-shown img")).to_be_visible()
    page.get_by_role("button", name="Create the pool").click()
    expect(page.locator("#chosen-facts")).to_contain_text(f"{items} items")
    made = time.monotonic() - began
    clicks = CLICKS + (name in ASKED)
    told = f"{name}: {clicks} clicks, shown after {seen:.1f} s, a pool after {made:.1f} s"
    record_property("measured", told)
    assert [pool["items"] for pool in kept(server)] == [items]


def role(page: Page, column: str) -> Locator:
    columns = page.locator("#columns")
    if columns.get_attribute("open") is None:
        columns.get_by_text("Change", exact=True).click()
    return page.get_by_label(f"What {column} is", exact=True)


def test_another_role_changes_what_a_judge_will_see_and_the_next_file_has_it(
    signed_in: SignedIn, server: Site
) -> None:
    page = signed_in("manage")
    choose(page, "questions.csv", questions())
    shown = page.locator("#item-shown")
    expect(shown).to_contain_text("Reference")
    roles = f"{ROWS} rows: question, answer, reference, group."
    expect(page.locator("#columns-line")).to_have_text(roles)
    expect(role(page, "category")).to_have_value("group")
    role(page, "expected_answer").focus()
    page.keyboard.type("Hid")
    expect(role(page, "expected_answer")).to_have_value("hidden")
    expect(shown).not_to_contain_text("Reference")
    expect(role(page, "expected_answer")).to_be_focused()
    expect(page.locator("#columns-told")).to_contain_text("As you said.")
    create(page)
    again(page)
    expect(page.locator("#columns-told")).to_contain_text("As for the last pool made")
    expect(role(page, "expected_answer")).to_have_value("hidden")
    role(page, "category").select_option("question")
    expect(role(page, "question")).to_have_value("hidden")
    expect(shown).to_contain_text("others")
    create(page)
    assert len(kept(server)) == 2


def test_what_may_be_a_verdict_is_shown_as_for_the_last_file_only_when_somebody_says_so(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    page = signed_in("manage")
    choose(page, "questions.csv", questions())
    role(page, "category").select_option("question")
    create(page)
    complaints.expect("422")
    again(page)
    question = page.get_by_role("group", name="do judges see category?")
    expect(question).to_contain_text("Its values look like verdicts")
    expect(page.get_by_role("button", name="Create the pool")).to_be_disabled()
    assert barriers(page) == []
    question.get_by_role("radio", name="Question").click()
    expect(page.locator("#checked")).to_contain_text("every row is a valid item")
    expect(question).to_have_count(0)
    expect(page.locator("#item-shown")).to_contain_text("others")
    create(page)
    first, second = kept(server)
    assert first["intake"]["columns"] == second["intake"]["columns"]


def create(page: Page) -> None:
    page.get_by_role("button", name="Create the pool").click()
    expect(page.locator("#chosen-facts")).to_contain_text(f"{ROWS} items")


def again(page: Page) -> None:
    """The same file on a new page."""
    page.goto("/sessions/new")
    page.get_by_label("A file", exact=True).check()
    page.set_input_files("#file", file_of("again.csv", questions()))


def test_items_are_turned_and_faults_name_the_column(
    signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("422")
    page = signed_in("manage")
    choose(page, "Fragen.csv", excel() + b"77;Was?;Nichts;viel\n")
    expect(page.locator(".faults li")).to_contain_text("Line 15, Confidence: must be a number")
    expect(page.locator("#item-place")).to_have_text("1 of 8")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#item-shown")).to_contain_text("Wie heißt Ort 1?")
    expect(page.locator("#item-beside")).to_contain_text("Item 1 · guess of the loss 0.89")
    page.get_by_role("button", name="Previous").click()
    page.get_by_role("button", name="Previous").click()
    expect(page.locator("#item-place")).to_have_text("8 of 8")


def test_two_answers_stand_side_by_side(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    # Twelve items are too few for the precision that the page begins with
    complaints.expect("422")
    page = signed_in("manage")
    rows = "".join(f"Which is {at}?,It is {at}.,No idea.\n" for at in range(ROWS))
    choose(page, "pairs.csv", f"prompt,response_a,response_b\n{rows}".encode())
    expect(page.locator("#item-shown .payload-side")).to_have_text(
        ["LeftIt is 0.", "RightNo idea."]
    )
    page.get_by_role("button", name="Create the pool").click()
    expect(page.locator("#chosen-facts")).to_contain_text("A against B")
    assert [pool["items"] for pool in kept(server)] == [ROWS]


def test_sample_data_are_ready_to_be_labelled(signed_in: SignedIn, server: Site) -> None:
    page = signed_in()
    page.goto("/")
    page.get_by_role("button", name="Try with sample data").click()
    page.wait_for_url(re.compile(r"/label/ses_[0-9a-f]{32}$"))
    expect(page.locator("#item")).to_contain_text("What is the capital of")
    page.get_by_role("button", name="Right").or_(page.get_by_role("button", name="Correct")).click()
    expect(page.locator("#count")).to_have_text("1")
    (session,) = kept(server, "sessions")
    assert (session["name"], session["score"]["name"]) == ("Sample: capitals", "accuracy")


@pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", NARROW)])
def test_axe_finds_nothing_serious_and_nothing_is_cut_off(
    signed_in: SignedIn, complaints: Complaints, scheme: str, viewport: dict[str, int]
) -> None:
    complaints.expect("422")
    page = signed_in("manage", viewport=viewport, color_scheme=scheme)
    for name, content, shows, _ in files():
        if name in {"Fragen.csv", "chats.json"}:
            choose(page, name, content)
            expect(page.locator("#item-shown")).to_contain_text(shows)
            assert barriers(page) == []
            assert page.evaluate(CUT_OFF) == []


def test_a_scale_that_is_not_listed_can_be_given(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    content = b"question,answer,score\n" + b"".join(
        b"How deep is sea %d?,Very.,%d\n" % (at, 2 + at % 5) for at in range(30)
    )
    page = signed_in("manage")
    choose(page, "seas.csv", content)
    expect(role(page, "score")).to_have_value("hidden")
    complaints.expect("422")
    role(page, "score").select_option("score")
    page.get_by_role("radio", name="higher").check()
    scale = page.get_by_role("group", name="What is the scale of score?")
    scale.get_by_label("Another answer").fill("1 to 7")
    scale.get_by_label("Another answer").blur()
    expect(page.locator("#checked")).to_contain_text("every row is a valid item")
    page.get_by_role("button", name="Create the pool").click()
    expect(page.locator("#chosen-facts")).to_contain_text("30 items")
    (pool,) = kept(server)
    assert pool["intake"]["answers"] == {"better": ["higher"], "scale": ["1 to 7"]}
    page.get_by_text("How the file was read").click()
    expect(page.get_by_role("row", name="Answered scale")).to_contain_text("1 to 7")

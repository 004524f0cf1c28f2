"""Two long texts beside each other, the words marked in which they differ."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import barriers
from tests.browser.labelling import press, session_of, visit
from tests.browser.site import Site

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
SAID = "The moon pulls the near side more strongly than the far side, so that two bulges arise."
KNOWN = SAID.replace("pulls", "draws").replace("arise", "form")


def test_words_that_differ_are_marked_when_asked_for(server: Site, signed_in: SignedIn) -> None:
    items = [{"answer": SAID, "reference": KNOWN}] * 4
    page = signed_in("label")
    visit(page, session_of(server, items))
    button = page.get_by_role("button", name="Mark the words that differ")
    expect(button).to_have_attribute("aria-pressed", "false")
    button.focus()
    page.keyboard.press("Enter")
    answer = page.locator(".payload-answer")
    expect(answer.locator("mark")).to_have_text(["pulls", "arise"])
    expect(page.locator(".payload-reference mark")).to_have_text(["draws", "form"])
    expect(answer.locator(".payload-text")).to_have_text(SAID)
    assert barriers(page) == []
    press(page, "1")
    expect(answer.locator("mark")).to_have_count(2)
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    expect(page.locator("mark")).to_have_count(0)
    expect(answer.locator(".payload-text")).to_have_text(SAID)


def test_texts_that_are_the_same_are_told_to_be(server: Site, signed_in: SignedIn) -> None:
    items = [{"answer": SAID, "reference": f"{SAID}\n"}, {"answer": "No", "reference": "Yes"}]
    page = signed_in("label")
    visit(page, session_of(server, items))
    button = page.get_by_role("button", name="Mark the words that differ")
    if button.count() == 0:
        press(page, "1")
    button.click()
    expect(page.locator("#item")).to_contain_text("They are the same, word for word.")

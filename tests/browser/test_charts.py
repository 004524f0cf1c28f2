"""Charts on the page and in the report: axes with names, thresholds drawn and said."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import Evaluation
from tests.browser.site import NARROW, WIDE, Site

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
ASKED_LINE = "#chart .asked"
ASKED = [{"side": "at_most", "threshold": 0.6}]
HIGHER = {"name": "accuracy", "better": "higher"}


def chart_of(page: Page, session: str) -> dict[str, float]:
    """What is written beside the chart of a session, with how far down it stands."""
    page.goto(f"/sessions/{session}")
    expect(page.locator("#chart-readout")).to_contain_text("after 30 labels")
    texts = page.locator("#chart text, #chart .unit")
    place = "texts => texts.map(text => [text.textContent, text.getBoundingClientRect().y])"
    return dict(texts.evaluate_all(place))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["phone", "desktop"])
def test_axes_have_names_and_a_threshold_is_drawn_with_its_words(
    signed_in: SignedIn, server: Site, viewport: dict[str, int], scheme: str
) -> None:
    with server.client() as client:
        evaluation = Evaluation(client)
        plain, asked = (
            evaluation.opened(precision=0.1, questions=questions, stop_when_decided=False)
            for questions in ([], ASKED)
        )
        for session in (plain, asked):
            evaluation.judged(session, 30)
    page = signed_in("read", viewport=viewport, color_scheme=scheme)
    written = chart_of(page, plain)
    assert {"labels", "error rate (lower is better)"} <= set(written)
    expect(page.locator(ASKED_LINE)).to_have_count(0)
    expect(page.locator("#chart-key")).not_to_contain_text("threshold")
    words = "at most 60\u202f%"
    assert words in chart_of(page, asked)
    line = page.locator(ASKED_LINE).bounding_box()
    assert line is not None
    assert line["width"] > viewport["width"] / 4
    expect(page.locator("#chart-key")).to_contain_text("threshold asked about")
    spoken = page.get_by_role("img", name=re.compile(r"Asked: at most 60\s%\? undecided"))
    expect(spoken).to_be_visible()
    page.goto(f"/v1/sessions/{asked}/report")
    expect(page.locator("svg text.level")).to_have_text(words)
    expect(page.locator("svg desc")).to_contain_text(f"Thresholds asked about: {words}.")


def test_a_threshold_is_told_on_the_scale_of_the_score(signed_in: SignedIn, server: Site) -> None:
    """A loss of at most 0.6 is an accuracy of at least 40 %, and lies at 40 % of the axis."""
    with server.client() as client:
        evaluation = Evaluation(client, score=HIGHER)
        session = evaluation.opened(questions=ASKED, stop_when_decided=False)
        evaluation.judged(session, 30)
    page = signed_in("read")
    words = "at least 40\u202f%"
    places = chart_of(page, session)
    assert {words, "accuracy (higher is better)"} <= set(places)
    ticks = (places["60\u202f%"], places[words], places["20\u202f%"])
    assert sorted(ticks) == list(ticks), "between the lines of 60 and 20 %"
    page.goto(f"/v1/sessions/{session}/report")
    expect(page.locator("svg text.level")).to_have_text(words)

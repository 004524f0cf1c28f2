"""Charts on the page and in the report: axes with names, thresholds drawn and said."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import Evaluation
from tests.browser.site import NARROW, WIDE, Site

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
WRITTEN = """
    window.written = [];
    const fillText = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (words, x, y) {
        window.written.push([words, x / this.canvas.width, y / this.canvas.height]);
        fillText.apply(this, arguments);
    };
"""
"""Keeps what is written on a canvas, with its place there from 0 to 1."""
HUES = """() => {
    const canvas = document.querySelector("#chart canvas");
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, copy.width, copy.height);
    let red = 0;
    for (let at = 0; at < data.length; at += 4)
        if (data[at] > 1.6 * data[at + 1] && data[at + 3] > 200) red += 1;
    return red;
}"""
"""How many pixels of the chart are of the colour of thresholds."""
ASKED = [{"side": "at_most", "threshold": 0.6}]
HIGHER = {"name": "accuracy", "better": "higher"}


def chart_of(page: Page, session: str) -> set[str]:
    """What is written on the chart of a session."""
    page.add_init_script(WRITTEN)
    page.goto(f"/sessions/{session}")
    expect(page.locator("#chart-readout")).to_contain_text("after 30 labels")
    page.wait_for_function("() => window.written.some(([words]) => words === 'labels')")
    return {words for words, _, _ in page.evaluate("window.written")}


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
    assert {"labels", "error rate (lower is better)"} <= written
    assert page.evaluate(HUES) == 0
    expect(page.locator("#chart-key")).not_to_contain_text("threshold")
    words = "at most 60\u202f%"
    assert words in chart_of(page, asked)
    assert page.evaluate(HUES) > viewport["width"] / 4
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
    assert {words, "accuracy (higher is better)"} <= chart_of(page, session)
    places = {text: y for text, _, y in page.evaluate("window.written")}
    ticks = (places["60\u202f%"], places[words], places["20\u202f%"])
    assert sorted(ticks) == list(ticks), "between the lines of 60 and 20 %"
    page.goto(f"/v1/sessions/{session}/report")
    expect(page.locator("svg text.level")).to_have_text(words)

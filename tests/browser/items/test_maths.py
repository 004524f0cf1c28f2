"""Formulas in texts, and what is none."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import barriers
from tests.browser.labelling import session_of, visit
from tests.browser.site import NARROW, Site

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
FORMULAS = [
    r"$x$",
    r"$\frac{1}{2}$",
    r"$5 + 6 = 11$",
    r"\(\alpha\)",
    r"\[\sum_{i=1}^{n} i\]",
    r"$$\begin{pmatrix} a & b \\ c & d \end{pmatrix}$$",
    "$$\na = b\n+ c\n$$",
    "设$y$为正数",
]
NONE = [
    "$5 and $6",
    "from $5-$6, or US$20,000 and US$30",
    "$5 for one (US$) and 6$ for two",
    "echo $HOME:$PATH and ${a}${b}",
    r"\$x\$ and \\(x\\)",
    "a$b$c",
    "$ x $",
    "$$",
]
HOSTILE = [
    r"$\href{javascript:window.hacked=1}{x}$",
    r"$\url{https://elsewhere.example}$",
    r"$\includegraphics{https://elsewhere.example/x.png}$",
    r"$\class{card}{x}$",
    r"$\style{position:fixed}{x}$",
    r"$\htmlId{item}{x}$",
    r"$\def\a{\a\a}\a$",
    r"$\frac{1$",
    "$" + r"\sqrt{" * 90 + "x" + "}" * 90 + "$",
    r"$\ref{main}$",
    r"$\text{<img src=x onerror=window.hacked=2>}\notacommand$",
]
GREEDY = [
    r"$\rule{9999em}{9999em}$",
    r"$\hspace{-9999em}\text{far left}$",
    r"$\raisebox{9999em}{high}$",
    r"$\raisebox{-9999em}{low}$",
    r"$\kern-9999pt\text{elsewhere}$",
    r"$\Huge\Huge x$",
    r"$\text{<b onclick=window.hacked=3>b</b>}$",
]


def test_formulas_are_shown_in_texts_and_in_markdown(server: Site, signed_in: SignedIn) -> None:
    written = "\n\n".join(f"Number {at}: {one}" for at, one in enumerate(FORMULAS))
    alone = "\n\n".join(FORMULAS)
    payload = {"question": written, "answer": {"markdown": alone}, "reference": "`$x$`"}
    page = signed_in("label")
    visit(page, session_of(server, [payload]))
    expect(page.locator(".payload-question math")).to_have_count(len(FORMULAS))
    expect(page.locator(".payload-answer math")).to_have_count(len(FORMULAS))
    expect(page.locator(".payload-question mfrac")).to_have_count(1)
    expect(page.locator(".payload-answer .payload-formula.display")).to_have_count(3)
    expect(page.locator(".broken")).to_have_count(0)
    expect(page.locator("math [style]")).not_to_have_count(0)


@pytest.mark.parametrize("kind", ["text", "markdown"])
def test_money_and_names_of_variables_are_no_formulas(
    server: Site, signed_in: SignedIn, kind: str
) -> None:
    page = signed_in("label")
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    item = visit(page, session_of(server, [{kind: "\n\n".join(NONE)}]))
    if kind == "markdown":
        page.locator(".payload-markdown").wait_for()
    expect(item).to_contain_text("$5 and $6")
    expect(item).to_contain_text("${a}${b}")
    assert page.locator(".payload-formula").count() == 0
    assert not [one for one in fetched if "temml" in one], "and the library is not loaded"


def test_a_broken_or_hostile_formula_is_shown_as_its_source(
    server: Site, signed_in: SignedIn
) -> None:
    page = signed_in("label")
    item = visit(page, session_of(server, [{"text": "\n\n".join(HOSTILE)}]))
    expect(page.locator(".payload-formula.broken")).to_have_count(len(HOSTILE))
    for one in HOSTILE:
        assert one in item.inner_text()
    assert page.evaluate("window.hacked") is None
    assert page.locator("#item :is(a, img, script, math)").count() == 0


def test_a_formula_stays_in_its_box_and_leads_nowhere(server: Site, signed_in: SignedIn) -> None:
    page = signed_in("label", viewport=NARROW)
    visit(page, session_of(server, [{"question": "\n\n".join(GREEDY), "answer": "short"}]))
    expect(page.locator(".payload-question math")).to_have_count(len(GREEDY))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    box = page.locator(".payload-question").bounding_box()
    assert box is not None
    assert box["height"] < 2_000
    assert page.locator("#item :is(a, img, script, [id], [onclick])").count() == 0
    answer = page.locator(".payload-answer .payload-text")
    over = answer.evaluate(
        """(one) => {
            one.scrollIntoView({ block: "center" });
            const { left, top, width, height } = one.getBoundingClientRect();
            return document.elementFromPoint(left + width / 2, top + height / 2) === one;
        }"""
    )
    assert over, "nothing lies over the answer"
    assert page.evaluate("window.hacked") is None


def test_a_thousand_formulas_do_not_hold_the_page(server: Site, signed_in: SignedIn) -> None:
    bomb = r"\def\a{xxxxxxxxxx}\def\b{\a\a\a\a\a\a\a\a\a\a}\def\c{\b\b\b\b\b\b\b\b\b\b}\c\c\c\c"
    page = signed_in("label")
    visit(page, session_of(server, [{"text": f"${bomb}$ " * 20, "markdown": "$x$ " * 5_000}]))
    page.get_by_role("button", name="Show all").last.click()
    page.wait_for_function("document.querySelectorAll('#item math').length > 0")
    page.keyboard.press("1")
    page.locator("#rest").get_by_text("All done").wait_for()


def test_a_wide_formula_is_scrolled_by_keys(server: Site, signed_in: SignedIn) -> None:
    wide = " ".join(rf"\frac{{a_{{{at}}}}}{{b_{{{at}}}}}" for at in range(60))
    page = signed_in("label", viewport=NARROW)
    visit(page, session_of(server, [{"text": f"See $${wide}$$ and ${wide}$ there."}]))
    expect(page.get_by_role("group", name="A wide formula")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert barriers(page) == []

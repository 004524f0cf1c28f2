"""Items with more in them than a page bears: the beginning of it, and the rest when asked for."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import barriers
from tests.browser.foreign import Foreign, listening
from tests.browser.items.test_chats import sound
from tests.browser.labelling import session_of, visit
from tests.browser.site import NARROW, Complaints, Site
from tests.browser.test_label_items import picture

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
MEDIA = 32
"""Pictures and sounds of an item that are loaded at first."""
COME = """() => [...document.querySelectorAll("#item :is(img, audio)")]
    .every((one) => one.naturalWidth > 0 || one.readyState > 0)"""
"""All pictures and sounds of the item are there."""
ELEMENTS = 8_000
FRACTION = r"$\sqrt{\frac{a^2}{b_3}}$"
HIGH = "$" + r"\raisebox{11em}{" * 20 + "x" + "}" * 20 + "$"


def elements(page: Page) -> int:
    return int(page.evaluate("document.querySelectorAll('#item *').length"))


def markdown(pictures: list[str]) -> str:
    return " ".join(f"![a]({one})" for one in pictures)


@pytest.mark.parametrize("kind", ["image", "audio", "markdown", "messages", "answers"])
def test_an_item_loads_some_dozens_of_pictures_and_sounds(
    server: Site, signed_in: SignedIn, complaints: Complaints, tmp_path: Path, kind: str
) -> None:
    """Also from a host that the service lists, of which they load without a click."""
    content, form = (sound(), "audio/wav") if kind == "audio" else (picture(), "image/png")
    body = base64.b64decode(content.rpartition(",")[2])
    with listening(Foreign(body, form), tmp_path) as foreign:
        complaints.expect(f"asked elsewhere: {foreign.url('', 'localhost')}")
        page = signed_in("label", viewport=NARROW, ignore_https_errors=True)
        many = [foreign.url(str(number), "localhost") for number in range(90)]
        assert_some_dozens_load(page, session_of(server, [payload(kind, many)]), foreign)


def payload(kind: str, many: list[str]) -> dict[str, Any]:
    """An item with all of these pictures or sounds."""
    payloads: dict[str, dict[str, Any]] = {
        "image": {"image": many},
        "audio": {"audio": many},
        "markdown": {"markdown": markdown(many)},
        "messages": {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image", "image": one} for one in many[at:end]],
                }
                for at, end in ((0, 30), (30, 60), (60, 90))
            ]
        },
        "answers": {"pair": [{"image": many[:45]}, {"image": many[45:]}]},
    }
    return payloads[kind]


def assert_some_dozens_load(page: Page, session: str, foreign: Foreign) -> None:
    """At first, and again after a click."""
    visit(page, session)
    page.wait_for_function(COME)
    assert MEDIA // 2 <= len({*foreign.asked}) <= MEDIA
    button = (
        page.get_by_role("button", name="Show")
        .filter(has_text="picture")
        .or_(page.get_by_role("button", name="Show").filter(has_text="sound"))
    )
    button.first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(":is(.payload-image, .payload-sound):focus-within")).to_have_count(1)
    page.wait_for_function(COME)
    assert MEDIA < len({*foreign.asked}) <= 2 * MEDIA
    shown = page.locator(".payload-image, .payload-sound").count()
    assert MEDIA < shown <= 2 * MEDIA
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert barriers(page) == []


LONG: dict[str, tuple[object, str]] = {
    "members": ({f"member {at}": "v" for at in range(5_000)}, "members left"),
    "context": ({"question": "q", "context": ["d"] * 5_000}, "documents left"),
    "choices": ({"question": "q", "choices": ["c"] * 5_000}, "texts left"),
    "chat": ({"messages": [{"role": "user", "content": "**x**"}] * 5_000}, "messages left"),
    "message": ({"messages": [{"role": "user", "content": ["x"] * 5_000}]}, "parts left"),
}


@pytest.mark.parametrize("kind", LONG)
def test_an_item_of_many_parts_shows_the_first_of_them(
    server: Site, signed_in: SignedIn, kind: str
) -> None:
    payload, words = LONG[kind]
    page = signed_in("label")
    visit(page, session_of(server, [payload]))
    button = page.get_by_role("button", name=words).first
    expect(button).to_be_visible()
    first = elements(page)
    assert first < ELEMENTS
    button.click()
    page.wait_for_function(f"document.querySelectorAll('#item *').length >= {first}")
    assert elements(page) < 2 * ELEMENTS
    page.keyboard.press("1")
    page.locator("#rest").get_by_text("All done").wait_for()


def test_the_last_reply_of_a_long_chat_is_there_to_be_judged(
    server: Site, signed_in: SignedIn
) -> None:
    chat = [{"role": "user", "content": f"ask {at}"} for at in range(1_000)]
    page = signed_in("label")
    visit(
        page, session_of(server, [{"messages": [*chat, {"role": "assistant", "content": "So."}]}])
    )
    expect(page.locator(".payload-message.last")).to_contain_text("So.")
    page.get_by_text("999 earlier messages").click()
    expect(page.locator(".payload-message").first).to_contain_text("ask 0")
    page.get_by_role("button", name="messages left").click()
    expect(page.get_by_text("ask 200", exact=True)).to_be_visible()
    assert [
        text.splitlines()[-1] for text in page.locator(".payload-message").all_inner_texts()[-2:]
    ] == ["ask 999", "So."]


def test_formulas_of_an_item_are_some_hundreds_and_more_when_asked_for(
    server: Site, signed_in: SignedIn
) -> None:
    payload = {f"m{at}": f"{FRACTION} " * 60 for at in range(12)}
    page = signed_in("label")
    visit(page, session_of(server, [payload, {"text": FRACTION}]))
    while page.locator("#item .payload-formula").count() == 1:
        page.keyboard.press("1")
    expect(page.locator("#item math")).to_have_count(300)
    more = page.get_by_role("button", name="Show more formulas")
    more.click()
    expect(page.locator("#item math")).to_have_count(600)
    more.click()
    expect(page.locator("#item math")).to_have_count(720)
    expect(more).to_be_hidden()


def test_a_formula_shifts_nothing_over_the_page(server: Site, signed_in: SignedIn) -> None:
    low = HIGH.replace("{11em}", "{-11em}")
    page = signed_in("label", viewport=NARROW)
    visit(page, session_of(server, [{"question": f"a {HIGH} b", "answer": {"markdown": low}}]))
    expect(page.locator("#item math")).to_have_count(2)
    page.wait_for_function("document.querySelectorAll('.payload-formula.high').length === 2")
    assert page.evaluate("document.documentElement.scrollHeight") < 6_000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    covered = page.evaluate(
        """() => [...document.querySelectorAll("button, a[href], summary")]
            .filter((one) => one.checkVisibility() && !one.closest("#item"))
            .filter((one) => {
              one.scrollIntoView({ block: "center" });
              const { left, top, width, height } = one.getBoundingClientRect();
              const over = document.elementFromPoint(left + width / 2, top + height / 2);
              return over !== null && over.closest(".payload-formula") !== null;
            }).length"""
    )
    assert covered == 0
    assert barriers(page) == []

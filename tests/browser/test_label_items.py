"""What an item looks like to its judge, whatever its payload holds, and what can be said of it."""

import base64
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import barriers
from tests.browser.labelling import all_sent, events, press, round_on, session_of, texts, visit
from tests.browser.site import NARROW, WIDE, Complaints, Site

SignedIn = Callable[..., Page]
BOUNDED = {"kind": "bounded", "lower": -1, "upper": 3}


def picture(side: int = 8) -> str:
    """A small PNG as a data URL."""
    rows = b"".join(b"\0" + bytes([16 * (x ^ y) % 256 for x in range(side)]) for y in range(side))
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    chunks = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunks).decode()


QUESTION = {
    "instructions": "Judge whether the answer says the same as the reference.",
    "question": "What is the capital of Australia?",
    "answer": "Sydney",
    "reference": {"markdown": "**Canberra**, since 1913"},
    "source": {"book": 12},
}
MARKDOWN = """\
# Tides

The *moon* pulls, see [here](https://example.org) and [not here](javascript:alert(1)).

| near | far |
|------|-----|
| more | less |

```python
print("code")
```

<b>no HTML</b>
"""


SHOWN: list[tuple[object, dict[str, str]]] = [
    ("a text alone", {".payload-text": "a text alone"}),
    ({"text": "two\n  lines"}, {".payload-text": "two\n  lines"}),
    (
        QUESTION,
        {
            ".payload-question": "What is the capital of Australia?",
            ".payload-answer": "Sydney",
            ".payload-reference strong": "Canberra",
            ".payload-instructions": "Judge whether",
            ".payload-more .payload-json": '"book": 12',
        },
    ),
    (
        {"markdown": MARKDOWN},
        {
            ".payload-markdown h2": "Tides",
            ".payload-markdown a[rel~=noopener]": "here",
            ".payload-markdown td >> nth=1": "less",
            ".payload-markdown > p >> nth=1": "<b>no HTML</b>",
            ".payload-markdown > p >> nth=0": "[not here](javascript:alert(1))",
        },
    ),
    ({"pair": ["one", {"text": "other"}]}, {".payload-side >> nth=1": "other"}),
    ({"text": "which?", "choices": ["this", "that"]}, {".payload-choices li >> nth=1": "that"}),
    ({"number": 7, "a": {"list": [1, 2]}}, {".payload-json": '"list": [\n    1,\n    2'}),
    (
        {"text": 7, "image": 12},
        {".payload-image": "not one that can be shown", ".payload-text": "7"},
    ),
    ({"pair": ["alone"]}, {".payload-json": '"alone"'}),
    (None, {".payload-none": "This item has no content. Its id is item-9."}),
    ({}, {".payload-none": "Its id is item-10."}),
]


@pytest.mark.nightly
def test_an_item_is_shown_by_what_its_payload_holds(server: Site, signed_in: SignedIn) -> None:
    session = session_of(server, [payload for payload, _ in SHOWN])
    page = signed_in("label")
    visit(page, session)
    for _ in SHOWN:
        drawn = {event["round"]: event["item"] for event in events(server, session, "draw")}
        for selector, shown in SHOWN[drawn[round_on(page)]][1].items():
            part = page.locator(f"#item {selector}").first
            if selector.startswith(".payload-more"):
                page.get_by_text("More about this item").click()
            expect(part).to_be_visible()
            assert shown in part.inner_text(), selector
        press(page, "1")
    expect(page.locator("#rest")).to_contain_text("All done")


@pytest.mark.nightly
def test_pictures_are_shown_from_data(server: Site, signed_in: SignedIn) -> None:
    images = {"image": [picture(), {"src": picture(300), "alt": "a pattern"}]}
    page = signed_in("label")
    visit(page, session_of(server, [images]))
    for name in ("Picture of item item-0", "a pattern"):
        image = page.get_by_role("img", name=name)
        expect(image).to_be_visible()
        page.wait_for_function("one => one.naturalWidth > 0", arg=image.element_handle())
    small = page.get_by_role("img", name="Picture of item item-0").bounding_box()
    assert small is not None
    assert small["width"] > 100, "eight pixels are shown large enough to be told apart"


@pytest.mark.nightly
def test_a_broken_picture_says_so_and_is_loaded_again_when_asked(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("asked elsewhere: https://localhost:9/nothing.png", "ERR_")
    page = signed_in("label")
    # Nothing listens there, at a host that the service lists
    visit(page, session_of(server, [{"image": "https://localhost:9/nothing.png"}]))
    frame = page.locator(".payload-image")
    expect(frame).to_contain_text("This picture did not load")
    expect(frame).to_contain_text("Press “Load again”, or “Cannot judge”")
    expect(frame).to_contain_text("nothing.png")
    page.route("**/nothing.png", lambda route: route.fulfill(body=_png(), content_type="image/png"))
    frame.get_by_role("button", name="Load again").click()
    expect(frame.get_by_role("img")).to_be_visible()
    press(page, "1")


def _png() -> bytes:
    return base64.b64decode(picture().partition(",")[2])


HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


def test_html_and_script_in_a_payload_are_text(server: Site, signed_in: SignedIn) -> None:
    places = ["text", "markdown", "question", "answer", "reference", "instructions", HOSTILE]
    payload: dict[str, Any] = dict.fromkeys(places, HOSTILE)
    payload |= {
        "image": [f"javascript:{HOSTILE}", "data:text/html," + HOSTILE],
        "pair": [HOSTILE, {"markdown": f"[x](javascript:alert(1))\n\n{HOSTILE}"}],
        "choices": [HOSTILE, "</script><svg onload='window.hacked = 3'>"],
        "__proto__": {"hacked": 4},
    }
    page = signed_in("label")
    item = visit(page, session_of(server, [payload]))
    page.locator(".payload-markdown").first.wait_for()
    assert item.inner_text().count("<script>window.hacked = 1</script>") >= 8
    assert page.evaluate("window.hacked") is None
    assert page.locator("#item :is(script, svg, iframe, object, embed, style, link)").count() == 0
    assert page.locator("#item img").count() == 0
    assert page.locator("#item a[href^=javascript]").count() == 0
    for part in page.locator("#item :is(.payload-side, .payload-answer)").all():
        part.scroll_into_view_if_needed()
        page.evaluate("() => new Promise(requestAnimationFrame)")
    press(page, "1")


@pytest.mark.nightly
def test_the_policy_of_the_page_allows_pictures_and_sounds_by_https_and_nothing_else(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(1))
    answer = signed_in("label").goto(f"/label/{session}")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    directives = {one.split()[0]: one.split()[1:] for one in policy.split(";")}
    assert directives["default-src"] == ["'none'"]
    assert directives["script-src"] == directives["style-src"] == ["'self'"]
    assert directives["connect-src"] == ["'self'"]
    assert set(directives["img-src"]) == {"'self'", "data:", "https:"}
    assert directives["media-src"] == directives["img-src"]
    assert "unsafe" not in policy


@pytest.mark.nightly
def test_payloads_of_a_megabyte_are_shown_and_judged(server: Site, signed_in: SignedIn) -> None:
    long = "word " * 200_000 + "the end"
    page = signed_in("label", viewport=NARROW)
    item = visit(page, session_of(server, [{name: long} for name in ("text", "markdown", "other")]))
    for _ in range(3):
        box = page.get_by_role("button", name="Correct").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= NARROW["height"], "the answers stay in reach"
        top = item.bounding_box()
        assert top is not None
        assert top["y"] >= -1, "an item is shown from its beginning"
        if page.get_by_text("More about this item").count():
            page.get_by_text("More about this item").click()
        page.get_by_role("button", name="Show all").click()
        assert "the end" in item.inner_text()
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        press(page, "1")
    all_sent(page)


KEYS: list[tuple[int, dict[str, Any], str, int]] = [
    (3, {"text": "soup", "choices": ["bad", "neutral", "good"]}, "3", 2),
    (10, {"text": "a digit"}, "7", 7),
    (10, {"text": "a digit", "choices": [str(9 - one) for one in range(10)]}, "7", 2),
    (10, {"text": "ten", "choices": [f"class {one}" for one in range(10)]}, "0", 9),
    (2, {"pair": ["a", "b"]}, "2", 1),
    (3, {"pair": ["a", "b"]}, "3", 2),
    (2, {"text": "x", "choices": ["a", "b"], "answer": "a"}, "1", 0),
]


@pytest.mark.nightly
def test_number_keys_give_classes(server: Site, signed_in: SignedIn) -> None:
    page = signed_in("label")
    for classes, payload, key, label in KEYS:
        members = {"target_probs": [1 / classes] * classes}
        session = session_of(server, [payload], members=members)
        visit(page, session)
        press(page, key)
        all_sent(page)
        [observed] = events(server, session, "observation")
        assert observed["detail"]["label"] == label, payload


@pytest.mark.nightly
def test_more_classes_than_keys_are_given_by_name(server: Site, signed_in: SignedIn) -> None:
    names = [f"bird {number}" for number in range(31)] + ["wren"]
    payload = {"text": "which bird?", "choices": names}
    session = session_of(server, [payload] * 3, members={"prediction": 0})
    page = signed_in("label")
    item = visit(page, session)
    page.keyboard.type("birx")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("There is no such class.")
    field = page.get_by_label("Class", exact=True)
    field.fill("Wr")
    page.keyboard.press("Enter")
    field.fill("bird 7")
    press(page, "Enter")
    all_sent(page)
    assert [one["detail"]["label"] for one in events(server, session, "observation")] == [31, 7]
    page.keyboard.press("Escape")
    page.keyboard.press("z")
    expect(page.locator("#notices")).to_contain_text("You judged this “bird 7”")
    expect(item).to_be_visible()


@pytest.mark.nightly
def test_classes_whose_number_is_not_known_are_given_by_number(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(4), members={"prediction": 120})
    page = signed_in("label")
    visit(page, session)
    page.keyboard.type("12x")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("A class is a whole number")
    page.get_by_label("Class").fill("120")
    press(page, "Enter")
    page.keyboard.press("u")
    press(page, "1")
    all_sent(page)
    assert [one["loss"] for one in events(server, session, "observation")] == [0]
    assert len(events(server, session, "unjudgeable")) == 1


@pytest.mark.nightly
def test_a_graded_loss_is_given_by_a_slider_and_by_keys(server: Site, signed_in: SignedIn) -> None:
    session = session_of(server, texts(8), BOUNDED)
    page = signed_in("label")
    visit(page, session)
    give = page.get_by_role("button", name="Submit")
    expect(give).to_be_disabled()
    page.keyboard.press("Enter")  # nothing chosen, nothing given
    page.keyboard.press("1")
    page.keyboard.press("ArrowRight")
    expect(page.locator("output")).to_have_text("1.04")
    press(page, "Enter")
    expect(give).to_be_disabled()
    page.keyboard.press("End")
    press(page, "Enter")
    page.get_by_role("slider", name="Loss").fill("-1")
    give.click()
    page.locator("#count").get_by_text("3").wait_for()
    all_sent(page)
    losses = [one["loss"] for one in events(server, session, "observation")]
    assert losses == pytest.approx([1.04, 3, -1], abs=1e-12)
    page.keyboard.press("z")
    expect(page.locator("#notices")).to_contain_text("Loss: -1")


@pytest.mark.nightly
def test_a_digit_is_the_grade_it_names(server: Site, signed_in: SignedIn) -> None:
    session = session_of(server, texts(4), {"kind": "bounded", "lower": 0, "upper": 5})
    page = signed_in("label")
    visit(page, session)
    expect(page.locator("body")).to_contain_text("type a value")
    page.keyboard.press("3")
    page.keyboard.press("7")
    expect(page.locator("output")).to_have_text("3")
    press(page, "Enter")
    all_sent(page)
    assert [one["loss"] for one in events(server, session, "observation")] == [3]


@pytest.mark.nightly
def test_what_is_new_is_told_to_who_does_not_see(server: Site, signed_in: SignedIn) -> None:
    session = session_of(server, [{"text": "the first"}, {"text": "the second"}])
    page = signed_in("label")
    visit(page, session)
    status = page.locator("#announcer")
    expect(status).to_contain_text("Item: the")
    first = status.inner_text()
    page.get_by_role("button", name="Correct").focus()
    page.keyboard.press("Enter")
    expect(status).to_contain_text("Correct. Item: the")
    assert status.inner_text() not in first
    expect(page.get_by_role("button", name="Correct")).to_be_focused()


@pytest.mark.nightly
@pytest.mark.parametrize(("viewport", "scheme"), [(NARROW, "dark"), (WIDE, "light")])
def test_axe_finds_nothing_serious(
    server: Site, signed_in: SignedIn, viewport: dict[str, int], scheme: str
) -> None:
    page = signed_in("label", viewport=viewport, color_scheme=scheme)
    whole = QUESTION | {"markdown": MARKDOWN, "image": picture(), "pair": ["a", "b"]}
    forms: list[dict[str, Any]] = [
        {},
        {"loss": BOUNDED},
        {"members": {"target_probs": [0.1] * 10}},
        {"members": {"prediction": 3}},
    ]
    for form in forms:
        payload = {"text": "short"} if "members" in form else whole
        visit(page, session_of(server, [payload] * 2, **form))
        assert barriers(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Cannot judge").click()
    assert barriers(page) == []
    page.keyboard.press("2")
    page.keyboard.press("z")
    assert barriers(page) == []

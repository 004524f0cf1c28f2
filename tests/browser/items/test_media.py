"""Pictures and sounds of an item: beside what is asked, enlarged, heard, and missing."""

import base64
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import barriers
from tests.browser.items.test_chats import sound
from tests.browser.labelling import round_on, session_of, texts, visit
from tests.browser.site import NARROW, WIDE, Complaints, Site
from tests.browser.test_label_items import picture

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
PICTURED = {"question": "What is it?", "image": {"src": picture(300), "alt": "A pattern"}}


def test_a_picture_stands_beside_the_question_where_there_is_room(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, [PICTURED] * 4)
    for viewport, beside in ((WIDE, True), (NARROW, False)):
        page = signed_in("label", viewport=viewport)
        visit(page, session)
        page.get_by_role("button", name="Enlarge").wait_for()
        question = page.locator(".payload-question").bounding_box()
        image = page.get_by_role("img", name="A pattern").bounding_box()
        assert question is not None
        assert image is not None
        assert (image["x"] >= question["x"] + question["width"]) is beside
        assert (image["y"] + image["height"] <= question["y"]) is not beside


def test_a_picture_is_enlarged_and_left_by_keys_alone(server: Site, signed_in: SignedIn) -> None:
    page = signed_in("label")
    visit(page, session_of(server, [PICTURED] * 4))
    before = round_on(page)
    page.get_by_role("button", name="Enlarge").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="A pattern")
    image = dialog.get_by_role("img", name="A pattern")
    first = image.bounding_box()
    page.keyboard.press("+")
    page.keyboard.press("1")
    assert first is not None
    wider = "([image, width]) => image.getBoundingClientRect().width > 1.4 * width"
    page.wait_for_function(wider, arg=[image.element_handle(), first["width"]])
    page.keyboard.press("-")
    again = "([image, width]) => image.getBoundingClientRect().width === width"
    page.wait_for_function(again, arg=[image.element_handle(), first["width"]])
    assert barriers(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Enlarge")).to_be_focused()
    assert round_on(page) == before, "a key pressed in the dialog judges nothing"
    page.get_by_role("img", name="A pattern").click()
    page.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)


def test_a_picture_that_cannot_be_shown_is_told_with_its_link(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("asked elsewhere: https://localhost:9/nothing.png", "ERR_")
    # Nothing listens there, at a host that the service lists
    missing = "https://localhost:9/nothing.png"
    page = signed_in("label")
    visit(page, session_of(server, [{"image": [missing, "ftp://files.example/a.png"]}]))
    expect(page.get_by_role("link", name="nothing.png")).to_have_attribute("href", missing)
    expect(page.locator(".payload-image").last).to_contain_text("ftp://files.example/a.png")
    assert page.locator("a[href^=ftp]").count() == 0


def test_a_sound_is_played_by_keys_and_keeps_the_item(server: Site, signed_in: SignedIn) -> None:
    payload = {"audio": {"data": sound(), "format": "wav", "alt": "A silence"}}
    page = signed_in("label")
    visit(page, session_of(server, [payload] * 4, {"kind": "bounded", "lower": 0, "upper": 5}))
    audio = page.locator("audio")
    expect(audio).to_have_attribute("aria-label", "A silence")
    page.wait_for_function("one => one.readyState > 0", arg=audio.element_handle())
    audio.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    expect(page.locator("output")).to_have_text("not chosen")
    page.wait_for_function("one => one.currentTime > 0", arg=audio.element_handle())
    assert barriers(page) == []


def test_a_sound_that_cannot_be_played_says_so(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("404", "ERR_")
    broken = "data:audio/wav;base64," + base64.b64encode(b"no sound").decode()
    page = signed_in("label")
    visit(page, session_of(server, [{"audio": [broken, "javascript:alert(1)"]}]))
    frames = page.locator(".payload-sound")
    expect(frames.first).to_contain_text("This sound did not load")
    expect(frames.last).to_contain_text("not one that can be played")


def test_other_pages_show_items_in_the_same_way(signed_in: SignedIn) -> None:
    page = signed_in()
    page.goto("/sessions/new")
    line = b'{"question": "What is $x^2$?", "output": "It is it.", "expected": "y"}\n'
    page.set_input_files(
        "#file", {"name": "a.jsonl", "mimeType": "application/jsonl", "buffer": line * 3}
    )
    expect(page.locator("#item-shown math")).to_have_count(1)
    expect(page.locator("#item-shown .payload-beside .payload-reference")).to_contain_text("y")


def test_texts_alone_load_nothing_more(server: Site, signed_in: SignedIn) -> None:
    page = signed_in("label")
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    visit(page, session_of(server, texts(3)))
    page.wait_for_timeout(300)
    assert not [one for one in fetched if "markdown-it" in one or "temml" in one]

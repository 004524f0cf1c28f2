"""Nothing that a payload names is asked of another host unless somebody clicks on it.

A payload is often what the evaluated model wrote; a picture in it would tell its host which items
were drawn, and in which order.
"""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import barriers
from tests.browser.foreign import Foreign, listening
from tests.browser.items.test_chats import sound
from tests.browser.labelling import press, session_of, visit
from tests.browser.site import DRAWN, NARROW, Complaints, Site, at_night
from tests.browser.test_label_items import picture

SignedIn = Callable[..., Page]
PNG = base64.b64decode(picture().partition(",")[2])


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Foreign]:
    """A host of pictures, by https."""
    with listening(Foreign(PNG, "image/png"), tmp_path) as host:
        yield host


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Foreign]:
    """A host of pictures, by http."""
    with listening(Foreign(PNG, "image/png", "http"), tmp_path) as host:
        yield host


def routes(url: Callable[[str], str]) -> list[tuple[str, dict[str, Any]]]:
    """Payloads by the way in which each would have a browser ask another host."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><style>@import'
        f' "{url("import.css")}";</style><image href="{url("within.png")}" width="9" height="9"/>'
        f"<rect width='9' height='9' fill='url({url('fill.svg')}#a)'/></svg>"
    )
    html = (
        f'<img src="{url("img.png")}" srcset="{url("set.png")} 2x"><iframe src="{url("frame")}">'
        f'</iframe><video poster="{url("poster.png")}"></video><link rel="preload" as="image"'
        f' href="{url("preload.png")}"><p style="background: url({url("style.png")})">x</p>'
        f'<object data="{url("object")}"></object><meta http-equiv="refresh"'
        f' content="0;{url("refresh")}">'
    )
    tex = (
        rf"$\includegraphics{{{url('tex.png')}}}$ $\href{{{url('href')}}}{{x}}$"
        rf" $\textcolor{{url({url('colour.png')})}}{{x}}$"
    )
    part = {"type": "image_url", "image_url": {"url": url("chat.png")}}
    source = {"type": "image", "source": {"type": "url", "url": url("claude.png")}}
    heard = {"type": "input_audio", "input_audio": {"src": url("chat.wav")}}
    return [
        ("member", {"image": url("member.png")}),
        ("list", {"images": [{"src": url("list.png"), "alt": "a"}, {"url": url("other.png")}]}),
        ("markdown", {"markdown": f"![a]({url('markdown.png')}) [![b]({url('b.png')})](x)"}),
        ("reference", {"markdown": f"![a][b]\n\n[b]: {url('reference.png')}"}),
        ("reply", {"messages": [{"role": "assistant", "content": f"![a]({url('reply.png')})"}]}),
        ("chat", {"messages": [{"role": "user", "content": [part, source, heard]}]}),
        ("audio", {"audio": [url("audio.wav"), {"src": url("src.wav"), "alt": "a"}]}),
        ("pair", {"pair": [{"image": url("left.png")}, {"markdown": f"![]({url('right.png')})"}]}),
        ("answer", {"answer": {"image": url("answer.png")}, "question": {"audio": url("q.wav")}}),
        ("more", {"text": "a", "other": [{"role": "user", "content": [part]}]}),
        ("link", {"markdown": f"[a]({url('link')}) <{url('auto')}> {url('bare')}"}),
        ("svg", {"image": "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()}),
        ("html", {"text": html, "markdown": html, "answer": html}),
        ("maths", {"text": tex, "markdown": tex}),
    ]


NAMES = [name for name, _ in routes(str)]


@pytest.mark.parametrize("route", [NAMES[0], *map(at_night, NAMES[1:])])
def test_a_payload_asks_no_other_host(
    route: str, server: Site, signed_in: SignedIn, foreign: Foreign, plain: Foreign
) -> None:
    """The item is shown, and another like it is made ready behind it."""
    page = signed_in("label", ignore_https_errors=True)
    payloads = [dict(routes(host.url))[route] for host in (foreign, plain) for _ in range(2)]
    visit(page, session_of(server, payloads))
    for _ in range(3):
        seen(page)
        press(page, "1")
    seen(page)
    assert foreign.asked + plain.asked == []


def seen(page: Page) -> None:
    """Return when the item is shown in full and everything it loads has come or failed."""
    for folded in page.locator("#item summary").all():
        folded.click()
    # No tap is taken before what is judged was in view
    page.mouse.wheel(0, 10_000)
    page.evaluate(DRAWN)
    page.wait_for_load_state("networkidle")


@pytest.mark.nightly
def test_a_foreign_picture_is_loaded_by_a_click(
    server: Site, signed_in: SignedIn, foreign: Foreign, complaints: Complaints
) -> None:
    complaints.expect(f"asked elsewhere: {foreign.url('a.png')}")
    page = signed_in("label", viewport=NARROW, ignore_https_errors=True)
    visit(page, session_of(server, [{"image": {"src": foreign.url("a.png"), "alt": "A cat"}}]))
    frame = page.locator(".payload-image")
    expect(frame).to_contain_text(foreign.host)
    expect(frame).to_contain_text("A cat")
    assert barriers(page) == []
    frame.get_by_role("button", name="Load picture").press("Enter")
    image = frame.get_by_role("img", name="A cat")
    page.wait_for_function("one => one.naturalWidth > 0", arg=image.element_handle())
    expect(frame).to_be_focused()
    assert foreign.asked == ["/a.png"]
    frame.get_by_role("button", name="Enlarge").click()
    page.keyboard.press("Escape")
    press(page, "1")


@pytest.mark.nightly
def test_a_foreign_sound_is_loaded_by_a_click(
    server: Site, signed_in: SignedIn, foreign: Foreign, complaints: Complaints
) -> None:
    complaints.expect(f"asked elsewhere: {foreign.url('a.wav')}")
    foreign.body, foreign.content_type = base64.b64decode(sound()), "audio/wav"
    page = signed_in("label", ignore_https_errors=True)
    visit(page, session_of(server, [{"audio": foreign.url("a.wav")}]))
    frame = page.locator(".payload-sound")
    expect(frame).to_contain_text(foreign.host)
    frame.get_by_role("button", name="Load sound").click()
    audio = frame.locator("audio")
    page.wait_for_function("one => one.readyState > 0", arg=audio.element_handle())


@pytest.mark.nightly
def test_a_host_that_the_operator_lists_is_asked_at_once_and_beforehand(
    server: Site, signed_in: SignedIn, foreign: Foreign, plain: Foreign, complaints: Complaints
) -> None:
    complaints.expect(f"asked elsewhere: {foreign.url('', 'localhost')}")
    page = signed_in("label", ignore_https_errors=True)
    payloads = [{"image": foreign.url(f"{number}.png", "localhost")} for number in range(2)]
    session = session_of(server, [*payloads, {"image": plain.url("a.png", "localhost")}])
    with page.expect_request("**/0.png"), page.expect_request("**/1.png"):
        visit(page, session)
        for _ in range(2):
            press(page, "1")
    expect(page.locator("#item")).to_be_visible()
    seen(page)
    assert plain.asked == []


@pytest.mark.nightly
def test_a_link_leads_to_https_alone_and_takes_nothing_along(
    server: Site, signed_in: SignedIn
) -> None:
    told = "[safe](https://example.org/a) [plain](http://example.org/b) www.example.org"
    page = signed_in("label")
    visit(page, session_of(server, [{"markdown": told}]))
    link = page.locator("#item a")
    expect(link).to_have_count(1)
    expect(link).to_have_attribute("href", "https://example.org/a")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")


@pytest.mark.nightly
@pytest.mark.parametrize("address", ["/sessions/new", "/label/{session}"])
def test_pages_that_show_items_allow_no_http_and_no_look_up_of_names(
    address: str, server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, [{"text": "a"}])
    answer = signed_in().goto(address.format(session=session))
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "http:" not in policy
    assert answer.headers["x-dns-prefetch-control"] == "off"

"""Every page in all widths and colours: nothing to scroll sideways, cut off, or in anybody's way.

The pages are those of `make pictures`, with sessions in every state. A page is opened once and seen
in each look, as whoever resizes the window or changes the colours of the system does.
"""

import secrets
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from playwright.sync_api import Page, ViewportSize

from tests.browser.evaluations import barriers
from tests.browser.site import DRAWN, WIDE, Complaints, Site
from tests.browser.test_webhooks import receiver
from tests.keys import key_in
from tests.nightly import NIGHTLY
from tests.pictures.pages import PAGES, Shown
from tests.pictures.world import PEOPLE, World, known_as
from tests.servers import Service

PHONE = {"width": 390, "height": 844}
Scheme = Literal["dark", "light"]
LOOKS: tuple[tuple[dict[str, int], Scheme], ...] = ((PHONE, "dark"),)
"""The width and the colours that other tests in the browser see least; at night all."""
if NIGHTLY:
    LOOKS = (*LOOKS, (WIDE, "light"), (PHONE, "light"), (WIDE, "dark"))
SEEN_ELSEWHERE = {
    # Loading it takes seconds of a processor, and axe minutes: test_reading.py
    "reference",
    # Silence is waited for: test_silence.py
    "silent",
    # Paper has no width of a window: test_paper.py
    *("printed-session", "printed-report", "printed-judged"),
    # The same page as "not-found"; a session is broken for it: tests/web/test_error_pages.py
    "failed",
}
SIDEWAYS = "document.documentElement.scrollWidth - innerWidth"
CUT_OFF = """() => [...document.querySelectorAll("main *")].filter((element) => {
    const { overflowX, textOverflow, position } = getComputedStyle(element);
    return ["hidden", "clip"].includes(overflowX) && textOverflow !== "ellipsis" &&
        position !== "absolute" && element.scrollWidth > element.clientWidth + 1;
}).map((element) => element.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def world(running_site: tuple[Service, str]) -> Iterator[World]:
    """A project with sessions in every state."""
    service, database_url = running_site
    site = Site(service, database_url, f"geography-{secrets.token_hex(4)}")
    with receiver() as address:
        yield World.made(site, address)


@pytest.mark.timeout(900)
def test_every_page_fits_and_is_readable_in_all_widths_and_colours(
    world: World,
    signed_in: Callable[..., Page],
    page: Page,
    complaints: Complaints,
) -> None:
    complaints.expect("404 (Not Found)", "403 (Forbidden)")
    pages: dict[tuple[tuple[str, ...], str | None] | None, Page] = {None: page}
    faults: dict[str, list[str]] = {}
    for shown in PAGES:
        if shown.name in SEEN_ELSEWHERE:
            continue
        visitor = (shown.scopes, shown.project) if shown.scopes is not None else None
        if visitor not in pages:
            pages[visitor] = signed_in(token=key_of(world.site, shown))
        shown.reach(pages[visitor], world)
        for viewport, scheme in LOOKS:
            if found := seen(pages[visitor], viewport, scheme):
                faults[f"{shown.name}, {viewport['width']}, {scheme}"] = found
    assert faults == {}


def seen(page: Page, viewport: dict[str, int], scheme: Scheme) -> list[str]:
    """Return what is wrong with the page in a window of this size and in these colours."""
    # A page behind another one draws no frames
    page.bring_to_front()
    page.set_viewport_size(ViewportSize(width=viewport["width"], height=viewport["height"]))
    page.emulate_media(color_scheme=scheme)
    page.evaluate(DRAWN)
    sideways = int(page.evaluate(SIDEWAYS))
    found = [f"{sideways} pixels to scroll sideways"] if sideways > 0 else []
    found += [f"cut off: {element}" for element in page.evaluate(CUT_OFF)]
    return found + barriers(page)


def key_of(site: Site, shown: Shown) -> str:
    """A key of somebody with a name, who may see this page."""
    project = shown.project or site.project
    key = key_in(site.database_url, *shown.scopes or (), project=project)
    known_as(site.database_url, key, PEOPLE[0] if shown.scopes == ("label",) else PEOPLE[2])
    return key

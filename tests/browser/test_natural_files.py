"""Files as people have them become pools on the page, and nobody has to read how."""

import json
import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.natural import ROWS, excel, files, questions
from tests.browser.site import NARROW, Complaints, Site
from tests.browser.test_new_session import file_of, kept

SignedIn = Callable[..., Page]
CLICKS = 2
"""Choose the file, create the pool."""


def choose(page: Page, name: str, content: bytes) -> None:
    """A project without pools begins with a file."""
    page.goto("/sessions/new")
    expect(page.get_by_label("A file", exact=True)).to_be_checked()
    page.set_input_files("#file", file_of(name, content))


@pytest.mark.parametrize("case", list(files()), ids=lambda case: case[0].split("_")[0])
def test_a_natural_file_becomes_a_pool_in_two_clicks(
    signed_in: SignedIn,
    server: Site,
    record_property: Callable[[str, object], None],
    case: tuple[str, bytes, str, int],
) -> None:
    name, content, shows, items = case
    page = signed_in("manage")
    page.goto("/sessions/new")
    expect(page.get_by_label("A file", exact=True)).to_be_checked()
    began = time.monotonic()
    page.set_input_files("#file", file_of(name, content))
    expect(page.locator("#checked")).to_contain_text("every row is a valid item")
    seen = time.monotonic() - began
    expect(page.locator("#item-shown")).to_contain_text(shows)
    if not shows:
        expect(page.locator("#item-shown img")).to_be_visible()
    page.get_by_role("button", name="Create the pool").click()
    expect(page.locator("#chosen-facts")).to_contain_text(f"{items} items")
    record_property("clicks", CLICKS)
    record_property("seconds until it is shown", round(seen, 2))
    record_property("seconds until there is a pool", round(time.monotonic() - began, 2))
    print(f"{name}: {CLICKS} clicks, {seen:.2f} s, {time.monotonic() - began:.2f} s")
    assert [pool["items"] for pool in kept(server)] == [items]

"""The labelling page in a session with a panel of raters."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Response, expect

from tests.browser.labelling import ITEM, all_sent, press, session_of, texts
from tests.browser.site import Complaints, Site

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]


def test_who_is_not_of_the_panel_is_told_so_and_a_rater_when_it_is_not_their_turn(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    # Such a key is refused every item
    complaints.expected.append("422")
    token = server.key("label")
    stranger = signed_in("label")
    panel = ["of nobody", "of nobody else"]
    session = session_of(server, texts(4), raters="assigned", protocol="consensus", panel=panel)
    stranger.goto(f"{server.url}/label/{session}")
    expect(stranger.locator("#rest")).to_contain_text("Not on the panel")
    assert stranger.locator(ITEM).count() == 0
    page = signed_in(token=token)
    name = page.request.get(f"{server.url}/v1/sessions/{session}/task").json()["labeller"]["name"]
    own = session_of(
        server, texts(2), raters="assigned", protocol="consensus", panel=[name, "of nobody"]
    )
    page.goto(f"{server.url}/label/{own}")
    for _ in range(2):
        page.locator(ITEM).wait_for()
        press(page, "1")
    all_sent(page)
    expect(page.locator("#rest")).to_contain_text("Not your turn")


def test_items_are_shown_in_the_order_in_which_they_came(server: Site, signed_in: SignedIn) -> None:
    """Answers are in the order of numbers that say nothing, and an item held is not put off."""
    page = signed_in("label")
    came: list[int] = []

    def hear(answer: Response) -> None:
        if answer.url.endswith(("/next", "/observe")):
            rounds = [draw["round"] for draw in answer.json()["draws"]]
            came.extend(number for number in rounds if number not in came)

    page.on("response", hear)
    page.goto(f"{server.url}/label/{session_of(server, texts(12))}")
    page.locator(ITEM).wait_for()
    judged = [press(page, "1") for _ in range(9)]
    all_sent(page)
    assert judged == came[:9]

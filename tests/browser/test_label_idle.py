"""Nobody keeps the others waiting: what an idle window held goes to who is there."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.labelling import (
    ITEM,
    all_sent,
    events,
    press,
    round_on,
    session_of,
    texts,
    visit,
)
from tests.browser.site import Site

pytestmark = pytest.mark.nightly

SignedIn = Callable[..., Page]
MINUTE = 60_000
STEP = 5_000
WAITING = "waits for an item drawn earlier, which"


def pass_time(page: Page, milliseconds: int) -> None:
    """Let the page's clock run, with real time for the answers it waits for."""
    for _ in range(milliseconds // STEP):
        page.clock.run_for(STEP)
        page.wait_for_timeout(40)


def status(site: Site, session: str) -> dict[str, int]:
    with site.client() as client:
        rounds: dict[str, int] = client.get(f"/v1/sessions/{session}").json()["rounds"]
    return rounds


def test_of_two_people_one_of_them_idle_the_other_goes_on_within_90_seconds(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(40))
    idle, busy = signed_in("label"), signed_in("label")
    idle.clock.install()
    busy.clock.install()
    visit(idle, session)
    left = round_on(idle)
    visit(busy, session)

    def judge() -> None:
        """Judge an item in 5 seconds."""
        busy.clock.run_for(STEP)
        press(busy, "1")
        all_sent(busy)

    for _ in range(6):
        judge()
    assert status(server, session)["in_interval"] == 0, "all wait for the first item"
    pass_time(idle, MINUTE + 15_000)
    # What is at hand is judged first: half a minute of work, and then both items of the other
    while (judged := status(server, session))["in_interval"] < judged["judged"]:
        judge()
    assert left in {event["round"] for event in events(server, session, "observation")}
    assert judged["judged"] <= 6 + 30_000 // STEP + 2
    idle.keyboard.press("Shift")
    expect(idle.locator("#notices")).to_contain_text("the item you had open was passed on")
    assert round_on(idle) != left
    press(idle, "2")
    expect(idle.locator("#notices")).to_be_empty()
    all_sent(idle)
    assert len(events(server, session, "observation")) == judged["judged"] + 1


def test_who_comes_back_alone_finds_the_item_that_was_open(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(10))
    page = signed_in("label")
    page.clock.install()
    visit(page, session)
    before = round_on(page)
    pass_time(page, 3 * MINUTE)
    page.mouse.move(50, 60)
    expect(page.locator("#notices")).to_be_empty()
    assert press(page, "2") == before
    all_sent(page)
    [event] = events(server, session, "observation")
    assert (event["round"], event["loss"]) == (before, 1)


def test_a_long_item_gives_the_time_to_read_it(server: Site, signed_in: SignedIn) -> None:
    session = session_of(server, [{"text": "A word. " * 300}] * 10)
    page = signed_in("label")
    page.clock.install()
    visit(page, session)
    released = []
    page.on("request", lambda it: released.append(it.url) if "/release" in it.url else None)
    pass_time(page, 3 * MINUTE)
    assert released == []
    pass_time(page, 3 * MINUTE)
    assert len(released) == 1


def test_a_window_that_is_left_gives_back_what_it_held(server: Site, signed_in: SignedIn) -> None:
    session = session_of(server, texts(20))
    page = signed_in("label")
    visit(page, session)
    left = round_on(page)
    page.goto("/docs")
    page.wait_for_timeout(500)
    other = signed_in("label")
    visit(other, session)
    assert round_on(other) == left


def test_the_page_of_a_session_says_who_holds_what_others_wait_for_and_passes_it_on(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(40), name="Held")
    token = server.key("label")
    first, second = signed_in(token=token), signed_in(token=token)
    visit(first, session)
    left = round_on(first)
    visit(second, session)
    press(second, "1")
    all_sent(second)
    page = signed_in()
    page.clock.install()
    page.goto(f"/sessions/{session}")
    expect(page.locator(".workers tbody tr")).to_have_count(1)
    held = page.locator("#held")
    pass_time(page, MINUTE // 2)
    expect(held).to_contain_text(f"1 label {WAITING} of a test holds")
    held.get_by_role("button", name="Give it to whoever asks next").click()
    pass_time(page, STEP)
    expect(held).to_contain_text("is free for whoever asks next")
    expect(held.get_by_role("button")).to_have_count(0)
    # It had taken two more before
    while (judged := status(server, session))["in_interval"] < judged["judged"]:
        press(second, "1")
        all_sent(second)
    assert left in {event["round"] for event in events(server, session, "observation")}
    pass_time(page, STEP)
    expect(held).to_be_empty()


def test_who_may_only_look_is_told_and_offered_nothing(server: Site, signed_in: SignedIn) -> None:
    session = session_of(server, texts(20))
    first, second = signed_in("label"), signed_in("label")
    visit(first, session)
    visit(second, session)
    press(second, "1")
    all_sent(second)
    page = signed_in("read")
    page.clock.install()
    page.goto(f"/sessions/{session}")
    expect(page.locator(".workers tbody tr")).to_have_count(1)
    pass_time(page, MINUTE // 2)
    expect(page.locator("#held")).to_contain_text(WAITING)
    expect(page.locator("#held").get_by_role("button")).to_have_count(0)
    expect(first.locator(ITEM)).to_have_count(1)

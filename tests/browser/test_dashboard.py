"""The dashboard: a live table, orders, search, tags, many sessions, nothing yet."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.browser.evaluations import Evaluation, barriers, multiplied, painted
from tests.browser.site import DRAWN, NARROW, WIDE, Complaints, Site

SignedIn = Callable[..., Page]


def rows(page: Page) -> Locator:
    """The sessions in the table, or the cards that narrow screens show."""
    return page.locator("#sessions tbody tr")


def names(page: Page) -> list[str]:
    """What the sessions shown are called, in their order."""
    return page.locator("#sessions tbody th").all_inner_texts()


def test_a_row_moves_with_its_session(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened(name="Exam", precision=0.3)
        page = signed_in("read")
        page.goto("/")
        row = rows(page).filter(has_text="Exam")
        expect(row).to_contain_text("0 of 200 items judged")
        expect(row).to_contain_text("Active")
        # Nothing known is drawn as nothing
        expect(row.locator(".score")).to_be_empty()
        told = evaluation.judged(session, 200)
        expect(row.locator(".badge.reached")).to_have_text("Precision reached")
        assert told["words"]["share"] == 1.0
        expect(row).to_contain_text(f"{told['words']['labels']} labels")
        expect(row.locator("time")).to_have_text(re.compile("just now|1 minute ago"))
        interval = row.get_by_role("img")
        expect(interval).to_have_attribute(
            "aria-label", re.compile(r"from \d+\.\d+ to \d+\.\d+\s%, on a")
        )
        exam = page.get_by_role("link", name="Exam")
        exam.focus()
        opened = evaluation.opened(name="Opened meanwhile")
        first = rows(page).first
        expect(first).to_contain_text("Opened meanwhile")
        expect(exam).to_be_focused()
        page.get_by_role("link", name="Opened meanwhile").focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(opened))


TURNING = "\u05d1\u05d7\u05d9\u05e0\u05d4"
IN_THE_OPEN = """name => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    const apart = "bdi, .visually-hidden";
    for (let text = texts.nextNode(); text !== null; text = texts.nextNode())
        if (text.data.includes(name)) found.push(text.parentElement.closest(apart) === null);
    return found;
}"""


@pytest.mark.nightly
def test_names_written_the_other_way_round_turn_nothing_beside_them(
    signed_in: SignedIn, server: Site
) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 40, TURNING)
        session = evaluation.opened(name=TURNING)
        evaluation.judged(session, 3, worker=TURNING)
        page = signed_in()
        for path, ready, count in (
            ("/", "#sessions tbody th", 1),
            (f"/sessions/{session}", "#workers table", 4),
            (f"/label/{session}", "h1", 1),
            ("/sessions/new", "#pools li", 1),
            (f"/sessions/new?pool={evaluation.pool}", "#chosen-facts:not(:empty)", 3),
            (f"/v1/sessions/{session}/report", "h1", 3),
        ):
            page.goto(path)
            page.locator(ready).first.wait_for()
            # Parts of a page come with answers of their own
            there = f"([name, count]) => ({IN_THE_OPEN})(name).length >= count"
            page.wait_for_function(there, arg=[TURNING, count])
            found = page.evaluate(IN_THE_OPEN, TURNING)
            assert (path, len(found), any(found)) == (path, count, False)


@pytest.mark.nightly
def test_sessions_are_filtered_by_their_state(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 40)
        evaluation.opened(name="Goes on")
        paused = evaluation.opened(name="Rests")
        client.patch(f"/v1/sessions/{paused}", json={"state": "paused"})
    page = signed_in()
    page.goto("/")
    expect(rows(page)).to_have_count(2)
    page.get_by_role("link", name="Paused").click()
    expect(rows(page)).to_have_text(re.compile("Rests"))
    page.get_by_role("link", name="Decided").click()
    expect(page.get_by_role("heading", name="No sessions here")).to_be_visible()
    page.get_by_role("link", name="Show all sessions").click()
    expect(rows(page)).to_have_count(2)


@pytest.mark.nightly
def test_an_empty_project_is_told_the_next_step(signed_in: SignedIn) -> None:
    page = signed_in("manage")
    page.goto("/")
    expect(page.get_by_role("heading", name="Nothing is being evaluated yet")).to_be_visible()
    step = page.get_by_role("link", name="Start a new session")
    expect(step).to_have_attribute("href", "/sessions/new")
    assert barriers(page) == []
    reader = signed_in("read")
    reader.goto("/")
    expect(reader.get_by_text("opening a session needs a key with the scope")).to_be_visible()
    expect(reader.get_by_role("link", name="New session")).to_have_count(0)


@pytest.mark.nightly
def test_names_with_html_are_shown_as_text(signed_in: SignedIn, server: Site) -> None:
    name = '<script>alert("no")</script><img src=x onerror=alert(1)>'
    with server.client() as client:
        Evaluation(client, 20).opened(name=name)
    page = signed_in()
    page.goto("/")
    expect(page.get_by_role("link", name=name)).to_be_visible()
    assert page.locator("#sessions script, #sessions img").count() == 0


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    signed_in: SignedIn, server: Site, scheme: str, viewport: dict[str, int]
) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 60)
        session = evaluation.opened(precision=0.4, name="One", tags=["nightly", "a b"])
        evaluation.judged(session, 60)
        evaluation.opened()
    page = signed_in(viewport=viewport, color_scheme=scheme)
    page.goto("/")
    expect(rows(page)).to_have_count(2)
    page.get_by_role("button", name="Edit the tags of One").click()
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.nightly
def test_sessions_are_ordered_by_the_columns(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 40)
        for name in ("banana", "Apple", "cherry"):
            evaluation.opened(name=name)
    page = signed_in("read")
    page.goto("/")
    expect(rows(page)).to_have_count(3)
    assert names(page) == ["cherry", "Apple", "banana"]
    column = page.get_by_role("columnheader", name="Session")
    column.get_by_role("link").focus()
    page.keyboard.press("Enter")
    expect(column).to_have_attribute("aria-sort", "ascending")
    expect(rows(page).first).to_contain_text("Apple")
    assert names(page) == ["Apple", "banana", "cherry"]
    page.keyboard.press("Enter")
    expect(column).to_have_attribute("aria-sort", "descending")
    expect(rows(page).first).to_contain_text("cherry")
    expect(page).to_have_url(re.compile(r"order=-name"))
    page.reload()
    expect(rows(page).first).to_contain_text("cherry")
    page.get_by_label("Order").select_option("oldest first")
    expect(rows(page).first).to_contain_text("banana")
    page.get_by_label("Order").select_option("by name")
    expect(rows(page).first).to_contain_text("Apple")
    with server.client() as client:
        evaluation = Evaluation(client, 40)
        evaluation.opened(name="Aachen")
    # Whoever is about to click finds the rows where they were
    expect(rows(page).last).to_contain_text("Aachen")
    assert names(page) == ["Apple", "banana", "cherry", "Aachen"]


@pytest.mark.nightly
def test_sessions_are_ordered_by_score_and_progress(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 60)
        sessions = {
            name: evaluation.opened(name=name, precision=precision)
            for name, precision in (("far", 0.4), ("near", 0.2), ("new", 0.3))
        }
        for name in ("far", "near"):
            evaluation.judged(sessions[name], 12)
    page = signed_in("read")
    page.goto("/")
    rising = ("ascending", "descending")
    for column, ways in (("Score", rising), ("Progress", rising[::-1])):
        heading = page.get_by_role("columnheader", name=column)
        heading.get_by_role("link").focus()
        for way in ways:
            page.keyboard.press("Enter")
            expect(heading).to_have_attribute("aria-sort", way)
        expect(rows(page)).to_have_count(3)
    # Progress, least first
    assert names(page) == ["new", "near", "far"]
    page.get_by_label("Order").select_option("by score, lowest first")
    expect(rows(page).last).to_contain_text("new")


@pytest.mark.nightly
def test_sessions_are_found_by_name_owner_and_tag(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 40)
        evaluation.opened(name="Capitals, model 2", tags=["nightly"])
        evaluation.opened(name="Summaries", tags=["release 7", "nightly"])
    page = signed_in("read")
    page.goto("/")
    expect(rows(page)).to_have_count(2)
    search = page.get_by_role("searchbox", name="Search")
    search.fill("mod capi")
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text("Capitals")
    search.fill("release")
    expect(rows(page)).to_contain_text("Summaries")
    search.fill("of a test")
    expect(rows(page)).to_have_count(2)
    search.fill("' | & ( nothing")
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()
    page.get_by_role("link", name="Show all sessions").click()
    page.get_by_role("link", name="release 7").click()
    expect(rows(page)).to_have_count(1)
    expect(page.get_by_text("Filed under")).to_contain_text("release 7")
    page.get_by_role("link", name="show sessions without it").click()
    expect(rows(page)).to_have_count(2)


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["phone", "desktop"])
def test_tags_are_changed_by_keyboard(
    signed_in: SignedIn, server: Site, viewport: dict[str, int]
) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 40)
        session = evaluation.opened(name="Exam")
        client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
        page = signed_in("manage", viewport=viewport)
        page.goto("/")
        add = page.get_by_role("button", name=re.compile("(Add a tag to|Edit the tags of) Exam"))
        add.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_label("Tags of Exam, with commas between")).to_be_focused()
        page.keyboard.press("Escape")
        expect(add).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.type("nightly, <b>release</b>,, nightly ")
        page.keyboard.press("Enter")
        expect(page.locator(".tag")).to_have_text(["nightly", "<b>release</b>"])
        expect(add).to_be_focused()
        assert evaluation.told(session)["tags"] == ["nightly", "<b>release</b>"]
    reader = signed_in("read", viewport=viewport)
    reader.goto("/")
    expect(reader.locator(".tag")).to_have_count(2)
    expect(reader.get_by_role("button", name="Edit the tags of Exam")).to_have_count(0)


@pytest.mark.nightly
def test_a_thousand_sessions_are_usable(
    signed_in: SignedIn, server: Site, record_property: Callable[[str, object], None]
) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 40)
        session = evaluation.opened(name="The first")
        evaluation.judged(session, 10)
    multiplied(server.database_url, session, 1_000)
    page = signed_in("read")
    page.goto("/")
    shown = rows(page)
    expect(shown).to_have_count(24)
    first, usable = painted(page)
    told = f"dashboard, 1 000 sessions: painted {first:.0f} ms, usable {usable:.0f} ms"
    record_property("measured", told)
    more = page.get_by_role("link", name="Show more sessions")
    more.click()
    expect(shown).to_have_count(72)
    expect(page.locator("#sessions tbody th a").nth(24)).to_be_focused()
    for count in (120, 168, 200):
        more.click()
        expect(shown).to_have_count(count)
    # A page is not longer than that
    last = names(page)[-1]
    more.click()
    expect(page.locator("#sessions tbody")).not_to_contain_text(last)


COLOURS_OF_BEFORE = """() => {
    const colour = (element) => getComputedStyle(element).color;
    const texts = [...document.querySelectorAll("#sessions :is(.progress span, time)")];
    return texts.filter((text) => colour(text) !== colour(document.body)).length;
}"""


@pytest.mark.nightly
def test_rows_out_of_sight_change_their_colours_with_those_of_the_system(
    signed_in: SignedIn, server: Site
) -> None:
    with server.client() as client:
        session = Evaluation(client, 40).opened(name="The first")
    multiplied(server.database_url, session, 20)
    page = signed_in("read")
    page.goto("/")
    expect(rows(page)).to_have_count(21)
    for _ in range(12):
        page.set_viewport_size(ViewportSize(width=WIDE["width"], height=WIDE["height"]))
        page.emulate_media(color_scheme="light")
        page.evaluate(DRAWN)
        page.set_viewport_size(ViewportSize(width=NARROW["width"], height=NARROW["height"]))
        page.emulate_media(color_scheme="dark")
        page.evaluate(DRAWN)
        assert page.evaluate(COLOURS_OF_BEFORE) == 0


@pytest.mark.nightly
def test_a_service_that_goes_away_is_told_of_and_comes_back(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    complaints.expect("ERR_INTERNET_DISCONNECTED")
    with server.client() as client:
        evaluation = Evaluation(client, 40)
        session = evaluation.opened(name="Exam")
        page = signed_in("read")
        page.goto("/")
        expect(rows(page)).to_have_count(1)
        page.context.set_offline(offline=True)
        expect(page.get_by_text("has not answered since")).to_be_visible(timeout=30_000)
        evaluation.judged(session, 5)
        page.context.set_offline(offline=False)
        expect(page.get_by_text(re.compile("^5 of "))).to_be_visible(timeout=30_000)
        expect(page.get_by_text("has not answered since")).to_have_count(0, timeout=30_000)


@pytest.mark.nightly
def test_what_is_archived_leaves_the_list_and_comes_back(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 40)
        session = evaluation.opened(name="Old")
        evaluation.opened(name="New")
    page = signed_in("manage", "label")
    page.goto(f"/sessions/{session}")
    page.get_by_role("button", name="Archive").focus()
    page.keyboard.press("Enter")
    back = page.get_by_role("button", name="Restore from the archive")
    expect(back).to_be_focused()
    expect(page.locator("#actions-why")).to_contain_text("lists leave it out")
    expect(page.get_by_role("link", name="Label by hand")).to_have_count(0)
    page.goto("/")
    expect(rows(page)).to_have_count(1)
    page.get_by_role("link", name="Including archived").click()
    expect(rows(page)).to_have_count(2)
    expect(rows(page).filter(has_text="Old")).to_contain_text("archived")
    page.goto(f"/sessions/{session}")
    back.click()
    expect(page.get_by_role("link", name="Label by hand")).to_be_visible()

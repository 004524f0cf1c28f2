"""Labels that cannot be sent, and sessions that end meanwhile: nothing is lost, nothing doubled."""

import re
from collections.abc import Callable

import httpx
import psycopg
import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.labelling import (
    ITEM,
    all_sent,
    await_round,
    change,
    events,
    press,
    round_on,
    session_of,
    texts,
    visit,
)
from tests.browser.site import Complaints, Site
from tests.factories import numbers_of
from tests.servers import again, running_services

SignedIn = Callable[..., Page]
UNREACHABLE = ("net::ERR_", "Failed to load resource")


def test_labels_given_without_a_connection_come_in_when_it_is_back(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect(*UNREACHABLE)
    session = session_of(server, texts(20))
    page = signed_in("label")
    visit(page, session)
    page.context.set_offline(True)
    first = press(page, "2")
    second = press(page, "1")
    expect(page.locator("#notices")).to_contain_text("2 labels are stored in this browser")
    expect(page.locator("#rest")).to_contain_text("Waiting for the connection")
    expect(page.locator("#count")).to_have_text("2")
    # The second was never sent: it changes where it is kept, and needs no amendment.
    page.keyboard.press("z")
    press(page, "2")
    page.context.set_offline(False)
    page.locator(ITEM).wait_for()
    all_sent(page)
    expect(page.locator("#notices")).to_be_empty()
    observed = events(server, session, "observation")
    assert [(event["round"], event["loss"]) for event in observed] == [(first, 1), (second, 1)]
    assert events(server, session, "amendment") == []


@pytest.mark.nightly
def test_who_judges_fast_has_more_items_at_hand_without_a_connection(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect(*UNREACHABLE)
    session = session_of(server, texts(60))
    page = signed_in("label")
    page.clock.install()
    visit(page, session)
    for _ in range(15):
        page.clock.run_for(3_000)
        press(page, "1")
        all_sent(page)
        page.locator(ITEM).wait_for()
    page.context.set_offline(True)
    ahead = 0
    while page.locator(ITEM).count():
        press(page, "2")
        ahead += 1
    # At 3 seconds each, half a minute of work would be ten
    assert 5 <= ahead <= 10
    page.context.set_offline(False)
    page.clock.run_for(20_000)
    all_sent(page)
    assert len(events(server, session, "observation")) == 15 + ahead


@pytest.mark.nightly
def test_labels_are_kept_while_a_page_without_connection_is_reloaded(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect(*UNREACHABLE)
    session = session_of(server, texts(20))
    page = signed_in("label")
    visit(page, session)
    page.context.set_offline(True)
    judged = press(page, "2")
    with pytest.raises(Exception, match="ERR_INTERNET_DISCONNECTED"):
        page.reload()
    page.context.set_offline(False)
    visit(page, session)
    all_sent(page)
    [observed] = events(server, session, "observation")
    assert (observed["round"], observed["loss"]) == (judged, 1)
    assert round_on(page) != judged


@pytest.mark.nightly
def test_labels_of_a_window_that_was_closed_are_sent_by_the_next(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect(*UNREACHABLE)
    session = session_of(server, texts(20))
    page = signed_in("label")
    visit(page, session)
    page.context.set_offline(True)
    judged = press(page, "2")
    page.close()
    other = page.context.new_page()
    other.context.set_offline(False)
    visit(other, session)
    all_sent(other)
    [observed] = events(server, session, "observation")
    assert (observed["round"], observed["loss"]) == (judged, 1)


@pytest.mark.nightly
def test_labels_left_under_another_name_wait_for_whoever_has_it(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(20))
    entry = {"kind": "observe", "round": 7, "said": {"loss": 1}, "worker": "bob 1"}
    page = signed_in("label")
    visit(page, session)
    page.evaluate(
        "([place, kept]) => localStorage.setItem(place, JSON.stringify(kept))",
        [f"celeus.unsent:{session}:bob:bob%201", {"alive": 0, "entries": [entry]}],
    )
    page.reload()
    expect(page.locator("#notices")).to_contain_text("1 label of “bob” waits in this browser")
    expect(page.get_by_role("link", name="Sign in as bob")).to_be_visible()
    judged = press(page, "2")
    expect(page.locator("#count")).to_have_text("1")
    expect(page.locator("#notices")).to_contain_text("1 label of “bob” waits in this browser")
    assert [event["round"] for event in events(server, session, "observation")] == [judged]


@pytest.mark.nightly
def test_an_answer_that_is_lost_doubles_no_label(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect(*UNREACHABLE)
    session = session_of(server, texts(20))
    page = signed_in("label")
    visit(page, session)
    lost: list[int] = []

    def lose(route: Route) -> None:
        # The service takes the label, and the browser never hears of it.
        if len(lost) < 2:
            lost.append(route.fetch().status)
            route.abort()
        else:
            route.continue_()

    page.route("**/observe", lose)
    judged = press(page, "2")
    all_sent(page)
    assert lost == [200, 200]
    [observed] = events(server, session, "observation")
    assert observed["round"] == judged
    expect(page.locator("#count")).to_have_text("1")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, "<h1>No backend</h1>"),
        (413, "too large for this gateway"),
        (200, '{"portal": "sign in to this network"}'),
        (200, "null"),
    ],
)
def test_an_answer_that_is_not_the_services_takes_no_label(
    server: Site, signed_in: SignedIn, complaints: Complaints, status: int, body: str
) -> None:
    complaints.expect(*UNREACHABLE)
    session = session_of(server, texts(20))
    page = signed_in("label")
    visit(page, session)
    asked: list[str] = []

    def stand_between(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(status=status, body=body)

    page.route("**/v1/sessions/*/*", stand_between)
    judged = press(page, "2")
    expect(page.locator("#notices")).to_contain_text("1 label is stored in this browser")
    assert asked
    page.unroute("**/v1/sessions/*/*")
    page.get_by_role("button", name="Try now").click()
    all_sent(page)
    [observed] = events(server, session, "observation")
    assert (observed["round"], observed["loss"]) == (judged, 1)


@pytest.mark.nightly
def test_labels_left_behind_are_sent_after_the_clock_was_put_back(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(20))
    page = signed_in("label")
    visit(page, session)
    judged = round_on(page)
    entry = {"kind": "observe", "round": judged, "said": {"loss": 1}, "worker": "crashed"}
    page.evaluate(
        "([place, entry]) => localStorage.setItem(place, JSON.stringify("
        "{ alive: Date.now() + 86400000, entries: [entry] }))",
        [f"celeus.unsent:{session}:of%20a%20test:crashed", entry],
    )
    page.reload()
    all_sent(page)
    [observed] = events(server, session, "observation")
    assert (observed["round"], observed["loss"]) == (judged, 1)


@pytest.mark.nightly
def test_a_name_of_any_characters_labels(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect(*UNREACHABLE)
    session = session_of(server, texts(20))
    token = server.key("label")
    with psycopg.connect(server.database_url) as db:
        name = "a" * 79 + "\N{OWL}" * 40
        db.execute("UPDATE keys SET name = %s WHERE key_id = %s", [name, token.split("_")[1]])
    page = signed_in(token=token)
    visit(page, session)
    page.context.set_offline(True)
    judged = press(page, "2")
    page.context.set_offline(False)
    all_sent(page)
    [observed] = events(server, session, "observation")
    assert observed["round"] == judged


@pytest.mark.nightly
def test_a_server_that_stops_and_starts_again_is_waited_for(
    server: Site, new_context: Callable[..., BrowserContext], complaints: Complaints
) -> None:
    complaints.expect(*UNREACHABLE, "asked elsewhere")
    with running_services(1, server.database_url) as (service,):
        session = session_of(server, texts(20))
        signing_in = httpx.post(
            f"{service.url}/login", data={"key": server.key("label")}, timeout=30
        )
        context = new_context(base_url=service.url)
        cookie = {"name": "celeus", "value": signing_in.cookies["celeus"], "url": service.url}
        context.add_cookies([cookie])  # type: ignore[list-item]
        page = context.new_page()
        visit(page, session)
        service.kill()
        first, second = press(page, "1"), press(page, "2")
        expect(page.locator("#notices")).to_contain_text("The service cannot be reached")
        with again(service, server.database_url):
            page.get_by_role("button", name="Try now").click()
            all_sent(page)
            page.locator(ITEM).wait_for()
            third = press(page, "1")
            all_sent(page)
    found = [event["round"] for event in events(server, session, "observation")]
    assert found == [first, second, third]


@pytest.mark.nightly
def test_what_another_has_judged_meanwhile_is_told_calmly(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(20))
    page = signed_in("label")
    visit(page, session)
    with server.client() as client:
        round_ = numbers_of(server.database_url, session).round_of(round_on(page))
        said = {"round": round_, "loss": 0, "worker": "another"}
        client.post(f"/v1/sessions/{session}/observe", json=said)
    press(page, "2")
    expect(page.locator("#notices")).to_contain_text("Somebody else has judged that item")
    expect(page.locator("#count")).to_have_text("0")
    press(page, "2")
    expect(page.locator("#count")).to_have_text("1")


@pytest.mark.nightly
def test_a_label_for_an_archived_session_is_kept_until_it_is_restored(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("409")
    session = session_of(server, texts(20))
    page = signed_in("label")
    visit(page, session)
    change(server, session, archived=True)
    press(page, "1")
    expect(page.locator("#notices")).to_contain_text("The session was archived before")
    expect(page.get_by_role("heading", name="Paused")).to_be_visible()
    assert events(server, session, "observation") == []
    change(server, session, archived=False)
    page.reload()
    all_sent(page)
    assert len(events(server, session, "observation")) == 1
    press(page, "1")
    expect(page.locator("#count")).to_have_text("2")


@pytest.mark.nightly
def test_a_paused_session_takes_what_is_judged_and_goes_on_when_it_is_resumed(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(20))
    page = signed_in("label")
    visit(page, session)
    change(server, session, state="paused")
    first = press(page, "1")
    # It holds another item already, which may be judged too.
    expect(page.locator("#notices")).to_contain_text("The session is paused")
    second = press(page, "1")
    expect(page.locator("#rest")).to_contain_text("Paused")
    change(server, session, state="active")
    page.evaluate("window.dispatchEvent(new Event('focus'))")
    page.locator(ITEM).wait_for()
    third = press(page, "1")
    all_sent(page)
    found = [event["round"] for event in events(server, session, "observation")]
    assert found == [first, second, third]


@pytest.mark.nightly
def test_a_session_that_is_done_thanks_and_the_last_label_can_be_taken_back(
    server: Site, signed_in: SignedIn
) -> None:
    session = session_of(server, texts(20), budget=2)
    page = signed_in("label")
    visit(page, session)
    press(page, "1")
    last = press(page, "1")
    expect(page.locator("#rest")).to_contain_text("All done")
    all_sent(page)
    page.keyboard.press("z")
    await_round(page, last)
    press(page, "2")
    all_sent(page)
    assert [event["round"] for event in events(server, session, "amendment")] == [last]


@pytest.mark.nightly
def test_a_session_closed_while_somebody_labels_ends_calmly(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("409")
    session = session_of(server, texts(20))
    page = signed_in("label")
    visit(page, session)
    press(page, "1")
    all_sent(page)
    change(server, session, state="closed")
    press(page, "1")
    expect(page.locator("#rest")).to_contain_text("The session is closed")
    expect(page.locator("#notices")).to_contain_text("was not accepted")
    expect(page.locator("#count")).to_have_text("1")
    expect(page.locator("#undo")).to_be_disabled()


@pytest.mark.nightly
def test_an_undo_that_comes_too_late_leaves_the_label_as_it_is(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("409")
    session = session_of(server, texts(20), precision=0.2)
    page = signed_in("label")
    visit(page, session)
    press(page, "1")
    all_sent(page)
    change(server, session, precision=0.99)
    page.keyboard.press("z")
    press(page, "2")
    expect(page.locator("#notices")).to_contain_text("your first label for that item stands")
    assert events(server, session, "amendment") == []


@pytest.mark.nightly
def test_a_revoked_key_loses_nothing_and_leads_to_signing_in_again(
    server: Site, signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("401", "403")
    session = session_of(server, texts(20))
    token = server.key("label")
    page = signed_in("label", token=token)
    visit(page, session)
    with psycopg.connect(server.database_url) as db:
        ending = "UPDATE keys SET revoked_at = now() WHERE key_id = %s"
        db.execute(ending, [token.split("_")[1]])
    page.wait_for_timeout(5500)  # a process remembers for 5 s whom it has let in
    judged = press(page, "2")
    expect(page.locator("#notices")).to_contain_text("You are signed out")
    expect(page.locator("#notices")).to_contain_text("1 label is stored in this browser")
    page.get_by_role("link", name="Sign in again").click()
    expect(page).to_have_url(re.compile(r"/login\?next=.*label.*" + session))
    page.get_by_label("Key", exact=True).fill(server.key("label"))
    page.keyboard.press("Enter")
    page.locator(ITEM).wait_for()
    all_sent(page)
    [observed] = events(server, session, "observation")
    assert (observed["round"], observed["loss"]) == (judged, 1)

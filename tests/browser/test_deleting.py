"""Sessions and pools deleted for good from their pages."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import Evaluation, barriers
from tests.browser.site import NARROW, WIDE, Complaints, Site, at_night

SignedIn = Callable[..., Page]


def archived(server: Site, *, certified: bool) -> str:
    """An archived session of five labels."""
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened(name="Exam")
        evaluation.judged(session, 5)
        path = f"/v1/sessions/{session}"
        if certified:
            assert client.post(f"{path}/certificate").status_code == 201
        assert client.patch(path, json={"archived": True}).status_code == 200
    return session


@pytest.mark.parametrize(
    ("viewport", "scheme"), [(NARROW, "dark"), at_night(WIDE, "light")], ids=["phone", "desktop"]
)
def test_what_certificates_rest_on_is_deleted_by_typing_its_name(
    signed_in: SignedIn,
    server: Site,
    complaints: Complaints,
    viewport: dict[str, int],
    scheme: str,
) -> None:
    complaints.expect("409", "422", "404")
    session = archived(server, certified=True)
    page = signed_in(viewport=viewport, color_scheme=scheme)
    page.goto(f"/sessions/{session}")
    page.get_by_role("button", name="Delete for good…").press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Its 5 labels")
    expect(dialog.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)

    page.get_by_role("button", name="Delete for good…").click()
    dialog.get_by_role("button", name="Delete for good").click()
    expect(dialog.get_by_role("alert")).to_contain_text("A certificate was issued")
    name = dialog.get_by_label("Type “Exam” to delete it all the same")
    expect(name).to_be_focused()
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    name.fill("exam")
    name.press("Enter")
    expect(dialog.get_by_role("alert")).to_have_text("That is not the name of this session.")
    name.fill("Exam")
    name.press("Enter")
    expect(page).to_have_url(re.compile(r"/$"))
    with server.client() as client:
        assert client.get(f"/v1/tombstones/{session}").json()["issued"] == 1
    answer = page.goto(f"/sessions/{session}")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", name="Nothing here")).to_be_visible()


@pytest.mark.nightly
def test_what_somebody_else_has_deleted_meanwhile_is_deleted(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    complaints.expect("404")
    session = archived(server, certified=False)
    page = signed_in()
    page.goto(f"/sessions/{session}")
    page.get_by_role("button", name="Delete for good…").click()
    with server.client() as client:
        assert client.delete(f"/v1/sessions/{session}").status_code == 200
    page.get_by_role("dialog").get_by_role("button", name="Delete for good").click()
    expect(page).to_have_url(re.compile(r"/$"))


@pytest.mark.nightly
def test_only_an_admin_is_offered_to_delete_and_only_what_is_archived(
    signed_in: SignedIn, server: Site
) -> None:
    session = archived(server, certified=False)
    delete = "Delete for good…"
    manager = signed_in("manage")
    manager.goto(f"/sessions/{session}")
    expect(manager.get_by_role("button", name="Restore from the archive")).to_be_visible()
    expect(manager.get_by_role("button", name=delete)).to_have_count(0)
    page = signed_in()
    page.goto(f"/sessions/{session}")
    expect(page.get_by_role("button", name=delete)).to_be_visible()
    page.get_by_role("button", name="Restore from the archive").click()
    expect(page.get_by_role("button", name=delete)).to_have_count(0)


@pytest.mark.nightly
def test_pages_that_show_a_session_are_told_when_somebody_deletes_it(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    complaints.expect("404", "409")
    session = archived(server, certified=False)
    list_page, own, label = signed_in(), signed_in(), signed_in()
    list_page.goto("/?archived=true")
    row = list_page.locator("#sessions tbody tr").filter(has_text="Exam")
    expect(row).to_have_count(1)
    own.goto(f"/sessions/{session}")
    expect(own.locator("#sentence")).to_be_visible()
    label.goto(f"/label/{session}")
    expect(label.get_by_role("heading", name="Paused")).to_be_visible()
    with server.client() as client:
        assert client.delete(f"/v1/sessions/{session}").status_code == 200
    gone = f"There is no session {session}. This page no longer follows it."
    expect(own.locator("#banner")).to_contain_text(gone, timeout=20_000)
    expect(row).to_have_count(0, timeout=20_000)
    expect(label.get_by_role("heading", name="No such session")).to_be_visible(timeout=40_000)
    expect(label.locator("main")).to_contain_text("it was deleted, or another key signed in")


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["phone", "desktop"])
def test_a_pool_is_archived_and_deleted_where_pools_are_chosen(
    signed_in: SignedIn, server: Site, complaints: Complaints, viewport: dict[str, int]
) -> None:
    complaints.expect("409")
    with server.client() as client:
        used = Evaluation(client, name="Used")
        used.opened(name="On it")
        Evaluation(client, name="Mistaken")
    page = signed_in(viewport=viewport)
    page.goto("/sessions/new")
    page.get_by_label("An existing pool").check()
    pools = page.locator("#pools li")
    expect(pools).to_have_count(2)
    expect(page.get_by_role("button", name="Archive")).to_have_count(0)
    page.get_by_label("Archived ones, too").check()
    for name in ("Used", "Mistaken"):
        page.get_by_role("button", name=f"Archive {name}").click()
        expect(pools.filter(has_text=name)).to_contain_text("archived")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Delete… Mistaken").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("“Mistaken” goes with its 200 items")
    dialog.get_by_role("button", name="Delete for good").click()
    expect(pools).to_have_count(1)
    page.get_by_role("button", name="Delete… Used").click()
    dialog.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_role("alert").filter(has_text="There is 1 session")).to_be_visible()
    expect(dialog).to_have_count(0)
    expect(pools).to_have_count(1)

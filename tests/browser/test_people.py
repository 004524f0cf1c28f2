"""People and keys from the page: invited, at work, and removed, without a shell on the server."""

from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, Request, expect

from tests.browser.evaluations import barriers
from tests.browser.labelling import all_sent
from tests.browser.site import NARROW, WIDE, Complaints, Site
from tests.browser.test_signing_in import opened


def agreed(page: Page, yes: str) -> None:
    """Say yes to what the page asks."""
    page.get_by_role("dialog").get_by_role("button", name=yes).click()


def invited(admin: Page, name: str, session: str) -> str:
    """The link that the page shows once, for somebody who labels."""
    admin.goto(f"/sessions/{session}")
    admin.get_by_role("link", name="Invite a labeller").click()
    expect(admin.get_by_label("Name").first).to_be_focused()
    expect(admin.get_by_label("Session", exact=True)).to_have_value(session)
    admin.keyboard.type(name)
    admin.keyboard.press("Enter")
    return admin.get_by_role("textbox", name=f"Link for {name}").input_value()


def label_one(page: Page, now: int) -> None:
    """Judge the item that is shown; returns once the service has the label."""
    expect(page.locator("#item")).to_be_visible()
    page.keyboard.press("1")
    expect(page.locator("#count")).to_have_text(str(now))
    all_sent(page)


def test_somebody_is_invited_labels_comes_home_and_is_removed(
    signed_in: Callable[..., Page],
    new_context: Callable[..., BrowserContext],
    server: Site,
    complaints: Complaints,
) -> None:
    session = opened(server)
    admin = signed_in(token=server.key())
    link = invited(admin, "Anna", session)
    assert link.startswith(f"{server.url}/login#invite=")
    expect(admin.locator("#invitations")).to_contain_text("labels · opens a session · link: 7 days")

    anna = new_context().new_page()
    anna.goto(link)
    expect(anna).to_have_url(f"{server.url}/label/{session}")
    label_one(anna, 1)
    anna.get_by_role("link", name="Celeus").click()
    expect(anna.get_by_role("heading", level=1)).to_have_text("Hello, Anna")
    card = anna.get_by_role("article")
    for words in ("forty", "1 labelled by you", "Open"):
        expect(card).to_contain_text(words)
    assert barriers(anna) == []
    card.get_by_role("link", name="Continue labelling").click()
    expect(anna).to_have_url(f"{server.url}/label/{session}")
    label_one(anna, 2)

    admin.reload()
    expect(admin.locator("#invitations")).to_contain_text("No link is open")
    member = admin.locator("#members li", has_text="Anna")
    expect(member).to_contain_text("last seen just now")
    complaints.expect("401 (Unauthorized)")
    member.get_by_role("button", name="Remove Anna").click()
    agreed(admin, "Remove")
    expect(admin.locator("#members")).not_to_contain_text("Anna")
    anna.keyboard.press("1")
    expect(anna.locator("#notices")).to_contain_text("You are signed out")
    anna.goto("/")
    expect(anna.locator("#ended")).to_contain_text("You have been signed out")


@pytest.mark.nightly
def test_a_double_click_invites_once(signed_in: Callable[..., Page], server: Site) -> None:
    admin = signed_in(token=server.key())
    admin.goto("/people")
    methods: list[str] = []

    def note(request: Request) -> None:
        methods.append(request.method)

    admin.on("request", note)
    admin.get_by_label("Name").first.fill("Otto")
    admin.get_by_role("button", name="Make the link").dblclick()
    link = admin.get_by_role("textbox", name="Link for Otto")
    expect(link).to_be_visible()
    assert methods.count("POST") == 1
    expect(admin.get_by_role("group", name="The new link")).to_be_focused()
    admin.get_by_role("button", name="Copy").click()
    expect(admin.locator("#announcer")).not_to_be_empty()
    admin.reload()
    expect(link).to_have_count(0)
    expect(admin.locator("#invitations li")).to_have_count(1)


@pytest.mark.nightly
def test_who_has_not_come_yet_is_invited_and_no_member(
    signed_in: Callable[..., Page], server: Site
) -> None:
    admin = signed_in(token=server.key())
    invited(admin, "Anna", opened(server))
    expect(admin.locator("#invitations")).to_contain_text("Anna")
    expect(admin.locator("#members")).to_contain_text("you")
    expect(admin.locator("#members")).not_to_contain_text("Anna")


@pytest.mark.nightly
def test_a_start_page_tells_what_is_to_be_done(
    signed_in: Callable[..., Page], server: Site
) -> None:
    session = opened(server)
    told = "## **When** is it right?\n\nAs the [guide](https://example.org) says."
    with server.client() as client:
        changed = client.patch(f"/v1/sessions/{session}", json={"instructions": told})
        assert changed.status_code == 200, changed.text
    page = signed_in("label", viewport=NARROW)
    page.goto("/")
    card = page.get_by_role("article")
    expect(card).to_contain_text("When is it right?")
    assert barriers(page) == []
    card.get_by_role("link", name="All instructions").click()
    expect(page.locator("#brief")).to_contain_text("As the guide says.")
    # Folded on a phone as a rule, and open for who came to read them
    expect(page.get_by_text("As the guide says.")).to_be_visible()


@pytest.mark.nightly
def test_people_are_invited_and_taken_back_without_scripts(
    signed_in: Callable[..., Page], server: Site
) -> None:
    admin = signed_in(token=server.key(), java_script_enabled=False)
    admin.goto("/people")
    expect(admin.get_by_text("need JavaScript")).to_have_count(0)
    admin.get_by_label("Name").first.fill("Otto")
    admin.get_by_role("button", name="Make the link").click()
    expect(admin.get_by_role("textbox", name="Link for Otto")).to_be_visible()
    admin.get_by_role("button", name="Withdraw the link for Otto").click()
    agreed(admin, "Withdraw it")
    expect(admin.locator("#invitations")).to_contain_text("No link is open")
    admin.get_by_role("button", name="Sign out").click()
    expect(admin.get_by_role("heading", level=1)).to_have_text("Sign in")


@pytest.mark.nightly
def test_a_withdrawn_link_says_so_and_the_last_admin_stays(
    signed_in: Callable[..., Page],
    new_context: Callable[..., BrowserContext],
    server: Site,
    complaints: Complaints,
) -> None:
    complaints.expect("401 (Unauthorized)", "409 (Conflict)")
    admin = signed_in(token=server.key())
    admin.goto("/")
    admin.get_by_role("link", name="People").click()
    admin.get_by_label("Name").first.fill("Otto")
    admin.get_by_label("Role").select_option("administers")
    admin.get_by_role("button", name="Make the link").click()
    link = admin.get_by_role("textbox", name="Link for Otto").input_value()
    admin.get_by_role("button", name="Remove of a test").click()
    agreed(admin, "Remove")
    expect(admin.get_by_role("alert").first).to_contain_text("Nobody would be left")
    admin.get_by_role("button", name="Withdraw the link for Otto").click()
    agreed(admin, "Withdraw it")
    expect(admin.locator("#invitations")).to_contain_text("No link is open")
    otto = new_context().new_page()
    otto.goto(link)
    expect(otto.get_by_role("alert")).to_contain_text("it was withdrawn; whoever sent it")


@pytest.mark.nightly
def test_roles_change_and_keys_are_made_and_revoked(
    signed_in: Callable[..., Page], server: Site, complaints: Complaints
) -> None:
    complaints.expect("401 (Unauthorized)", "403 (Forbidden)", "422 (Unprocessable")
    admin = signed_in(token=server.key())
    viewer = signed_in(token=server.key("read"))
    viewer.goto("/")
    expect(viewer.get_by_role("link", name="People")).to_have_count(0)
    viewer.goto("/people")
    expect(viewer.get_by_role("heading", level=1)).to_contain_text("Not allowed with this key")
    admin.goto("/people")
    row = admin.locator("#members li").filter(has=admin.locator(".person", has_text="views"))
    row.get_by_role("combobox").select_option("labels")
    row.get_by_role("button", name="Change").click()
    expect(admin.locator("#members .person", has_text="labels")).to_be_visible()
    viewer.goto("/")
    expect(viewer.get_by_role("heading", level=1)).to_have_text("Hello, of a test")
    expect(viewer.get_by_text("nothing to label for you at the moment")).to_be_visible()

    admin.get_by_text("Make a key").click()
    admin.get_by_label("Name").nth(1).fill("nightly")
    admin.get_by_role("button", name="Make the key").click()
    expect(admin.locator("#key-scopes-error")).to_have_text("Choose at least one.")
    admin.get_by_role("checkbox", name="manages").check()
    admin.get_by_role("button", name="Make the key").click()
    token = admin.get_by_role("textbox", name="Key of nightly").input_value()
    with server.client(token) as program:
        assert program.get("/v1/pools").status_code == 200
        admin.get_by_role("button", name="Revoke the key nightly").click()
        agreed(admin, "Revoke it")
        expect(admin.locator("#keys")).to_contain_text("There is no key yet")
        assert program.get("/v1/pools").status_code == 401


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["360", "1440"])
def test_nobody_is_kept_out_of_the_page(
    size: dict[str, int], scheme: str, signed_in: Callable[..., Page], server: Site
) -> None:
    page = signed_in(token=server.key(), viewport=size, color_scheme=scheme)
    page.goto("/people")
    for name in ("Anna", "A very long name of somebody who is invited by a link " * 3):
        page.get_by_label("Name").first.fill(name)
        page.get_by_role("button", name="Make the link").click()
        expect(page.get_by_role("group", name="The new link")).to_be_focused()
    page.get_by_text("Make a key").click()
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

"""What was judged: the table with its filters, a round with its history, and its correction."""

import re
from collections.abc import Callable
from time import perf_counter

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.evaluations import Evaluation, barriers, long_session, painted
from tests.browser.site import NARROW, WIDE, Complaints, Site

SignedIn = Callable[..., Page]
MANY = 100_000


@pytest.fixture
def judged(server: Site) -> str:
    """A session with judgements of two people, a comment, a correction and one nobody can judge."""
    with server.client() as client:
        session = Evaluation(client).opened()
        path = f"/v1/sessions/{session}"
        for number in range(12):
            worker = "ada" if number % 3 else "bob"
            asked = client.post(f"{path}/next", json={"worker": worker}).json()["draws"]
            form = {"round": asked[0]["round"], "worker": worker}
            form |= {"unjudgeable": "cut off"} if number == 4 else {"loss": number % 2}
            form |= {"comment": "<b>odd</b>"} if number == 7 else {}
            assert client.post(f"{path}/observe", json=form).status_code == 200
        correction = {"round": 3, "loss": 1, "author": "cy", "reason": "misread"}
        assert client.post(f"{path}/amendments", json=correction).status_code == 200
    return session


@pytest.fixture
def compared(server: Site) -> str:
    """Two systems by preference, of which a judge always prefers the left one."""
    item = {"a": {"answer": "yes"}, "b": {"answer": "no"}}
    body = {
        "name": "two",
        "systems": {"a": "older", "b": "newer"},
        "loss": {"kind": "preference"},
        "items": [item | {"id": str(at)} for at in range(30)],
        "sealed": True,
    }
    with server.client() as client:
        pool = client.post("/v1/pools", json=body).json()["id"]
        session: str = client.post("/v1/sessions", json={"pool_id": pool}).json()["id"]
        path = f"/v1/sessions/{session}"
        for _ in range(8):
            [draw] = client.post(f"{path}/next", json={"worker": "ada"}).json()["draws"]
            form = {"round": draw["round"], "worker": "ada", "preference": "left"}
            assert client.post(f"{path}/observe", json=form).status_code == 200
    return session


@pytest.mark.nightly
def test_of_two_systems_names_are_told_and_corrections_are_preferences(
    signed_in: SignedIn, server: Site, compared: str
) -> None:
    page = signed_in(viewport=WIDE)
    names = {"a": "older", "b": "newer"}
    seen = set()
    for round_ in range(1, 9):
        page.goto(f"/sessions/{compared}/judged/{round_}")
        with server.client() as client:
            left = client.get(f"/v1/sessions/{compared}/rounds/{round_}").json()["left"]
        seen.add(left)
        first = page.locator(".payload-side").first
        expect(first).to_contain_text(f"Left: {names[left]}")
        expect(first).to_contain_text("yes" if left == "a" else "no")
        expect(page.locator("#history")).to_contain_text(f"{names[left]} is better")
    assert seen == {"a", "b"}
    assert barriers(page) == []
    page.goto(f"/sessions/{compared}/judged")
    row = page.locator("#round-8")
    for words, reason in (("Equally good", "misread"), ("Both are bad", "neither answers")):
        corrected(row, words, reason)
        expect(row.locator("td").first.locator("bdi").first).to_have_text(words)


def corrected(place: Locator, words: str, reason: str) -> None:
    """Correct a judgement where it stands, in the words of its judge."""
    place.locator("summary").click()
    place.get_by_label("Judgement").select_option(words)
    place.get_by_label("Reason").fill(reason)
    place.get_by_role("button", name="Correct it").click()


def rows(page: Page) -> int:
    return page.locator("#judgements tbody tr").count()


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_judgements_are_filtered_by_the_address(
    signed_in: SignedIn, judged: str, viewport: dict[str, int], scheme: str
) -> None:
    page = signed_in(viewport=viewport, color_scheme=scheme)
    page.goto(f"/sessions/{judged}")
    page.get_by_role("link", name="What was judged").click()
    expect(page.locator("#told")).to_have_text("12 judgements on this page.")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_label("Show", exact=True).select_option("With a comment")
    expect(page.locator("#told")).to_have_text("1 judgement on this page.")
    expect(page.locator("#judgements tbody tr")).to_contain_text("“<b>odd</b>”")
    expect(page).to_have_url(re.compile(r"which=commented"))
    page.get_by_label("Show", exact=True).select_option("All judgements")
    page.get_by_label("Person").fill("bob")
    page.get_by_label("Person").press("Enter")
    expect(page.locator("#told")).to_have_text("4 judgements on this page.")
    page.reload()
    expect(page.locator("#told")).to_have_text("4 judgements on this page.")
    expect(page.get_by_label("Person")).to_have_value("bob")
    with page.expect_download() as started:
        page.get_by_role("link", name="CSV").click()
    text = started.value.path().read_text()
    assert started.value.suggested_filename == f"{judged}.labels.csv"
    assert len(text.splitlines()) == 1 + 4
    page.go_back()
    expect(page.locator("#told")).to_have_text("12 judgements on this page.")


def test_a_judgement_is_read_and_corrected_in_its_row_in_the_words_of_its_judge(
    signed_in: SignedIn, judged: str, complaints: Complaints
) -> None:
    complaints.expect("422")
    page = signed_in()
    page.goto(f"/sessions/{judged}/judged?which=amended")
    [row] = page.locator("#judgements tbody tr").all()
    expect(row).to_contain_text("corrected 1 time")
    item = row.get_by_role("link").inner_text()
    # What was judged, and not only its id
    expect(row.locator("th p")).to_have_text(item.replace("item-", "Item "))
    expect(row.locator("td").first).to_contain_text("Wrong")
    corrected(row, "Correct", "")
    expect(row.get_by_role("alert")).not_to_be_empty()
    row.get_by_label("Reason").fill("looked again")
    row.get_by_role("button", name="Correct it").click()
    expect(row).to_contain_text("corrected 2 times")
    expect(row.locator("td").first.locator("bdi").first).to_have_text("Correct")
    expect(row.locator("summary")).to_be_focused()
    row.get_by_role("link").click()
    history = page.locator("#history li")
    expect(history).to_have_count(4)
    expect(history.nth(2)).to_contain_text("corrected by cy: Wrong — “misread”")
    expect(history.last).to_contain_text("Correct — “looked again”")
    expect(page.locator(".drawn")).to_contain_text(item.replace("item-", "Item "))
    corrected(page.locator("#judgements"), "Cannot be judged", "illegible")
    expect(history).to_have_count(5)
    assert barriers(page) == []


@pytest.mark.nightly
def test_who_only_reads_corrects_nothing_and_who_labels_sees_nothing(
    signed_in: SignedIn, server: Site, judged: str
) -> None:
    page = signed_in("read")
    page.goto(f"/sessions/{judged}/judged/3")
    expect(page.locator("#history li")).to_have_count(3)
    expect(page.get_by_text("Change the judgement")).to_have_count(0)
    with server.client(server.key("label")) as labeller:
        for path in ("judged", "judged/3"):
            assert labeller.get(f"/sessions/{judged}/{path}").status_code == 403


@pytest.mark.nightly
def test_a_hundred_thousand_judgements_stay_quick(
    signed_in: SignedIn, server: Site, record_property: Callable[[str, object], None]
) -> None:
    with server.client() as client:
        session = long_session(client, server.database_url, MANY)
    page = signed_in("read")
    page.goto(f"/sessions/{session}/judged")
    expect(page.locator("#told")).to_contain_text("100 judgements on this page")
    first, usable = painted(page)
    assert rows(page) == 100
    began = perf_counter()
    page.locator("#next").click()
    page.wait_for_url(re.compile("after="))
    expect(page.locator("#first")).to_be_visible()
    turned = 1000 * (perf_counter() - began)
    began = perf_counter()
    page.get_by_label("Show", exact=True).select_option("Wrong ones: loss above 0")
    page.wait_for_url(re.compile("which=above"))
    expect(page.locator("#told")).to_contain_text("100 judgements on this page")
    wrong = 1000 * (perf_counter() - began)
    page.get_by_label("Person").fill("nobody")
    began = perf_counter()
    page.get_by_label("Person").press("Enter")
    expect(page.locator("#told")).to_contain_text("Nothing here")
    nobody = 1000 * (perf_counter() - began)
    record_property(
        "measured",
        f"judged, 100 000 labels: painted {first:.0f} ms, usable {usable:.0f} ms, next page"
        f" {turned:.0f} ms, wrong ones {wrong:.0f} ms, nobody's {nobody:.0f} ms",
    )

"""The page of a session: it moves with every label, and does what its buttons say."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Page, expect

from tests.browser.evaluations import Evaluation, barriers, long_session, painted
from tests.browser.site import NARROW, WIDE, Complaints, Site

SignedIn = Callable[..., Page]
BAND = "#chart .band"
"""The interval in the picture; its form is the attribute `d`."""


def figure(page: Page, name: str) -> str:
    """What stands under a figure's name."""
    return page.locator(f"#figures dt:text-is('{name}') + dd").inner_text()


def test_a_label_moves_the_chart_the_figures_and_the_table(
    signed_in: SignedIn, server: Site
) -> None:
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened(name="Exam", precision=0.2)
        page = signed_in("read")
        page.goto(f"/sessions/{session}")
        begins = "The chart begins with the first label in the interval."
        expect(page.get_by_text(begins)).to_be_visible()
        evaluation.judged(session, 40)
        readout = page.locator("#chart-readout")
        expect(readout).to_contain_text("after 40 labels")
        drawn = page.locator(BAND).get_attribute("d")
        assert drawn is not None
        told = evaluation.judged(session, 1)
        expect(readout).to_contain_text("after 41 labels")
        expect(page.locator(BAND)).not_to_have_attribute("d", drawn)
        expect(page.locator("#figures")).to_contain_text("41 of")
        estimate = float(figure(page, "Estimate").removesuffix("\u202f%"))
        assert estimate == pytest.approx(100 * told["estimate"], abs=0.51)
        page.get_by_text("Show as a table").first.click()
        rows = page.locator("#chart-table tbody tr")
        expect(rows.last.locator("th")).to_have_text("41")
        evaluation.judged(session, 1)
        expect(rows.last.locator("th")).to_have_text("42")
        page.locator("#chart svg.course").click()
        # What is clicked on leads to the item whose label it is
        expect(page).to_have_url(re.compile(r"/judged/\d+$"))
        expect(page.locator("#history li").last).to_contain_text("judged by")


@pytest.mark.nightly
def test_the_surrogate_and_the_workers_are_shown(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened(precision=0.05)
        evaluation.judged(session, 60, "ada")
        body = {"worker": "<b>bob</b>", "count": 3}
        client.post(f"/v1/sessions/{session}/next", json=body)
        worth = client.get(f"/v1/sessions/{session}/surrogate").json()
    page = signed_in("read")
    page.goto(f"/sessions/{session}")
    expect(page.locator(".verdict")).to_contain_text("A bad surrogate costs width, never validity")
    expect(page.get_by_role("img", name=re.compile("Mean loss by surrogate score"))).to_be_visible()
    page.get_by_label("By stratum").check()
    page.locator("#health summary").click()
    expect(page.locator("#health tbody tr")).to_have_count(len(worth["strata"]))
    table = page.locator("#workers tbody tr")
    expect(table).to_have_count(2)
    expect(table.first).to_contain_text("<b>bob</b>")
    expect(table.first).to_contain_text(re.compile(r"3, for \d+"))
    expect(table.last).to_contain_text("60")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("sharp", "and the session uses them that way"),
        ("celeus", "which costs labels: this policy takes them as they are"),
    ],
)
def test_a_surrogate_upside_down_is_told_with_what_becomes_of_it(
    signed_in: SignedIn, server: Site, policy: str, words: str
) -> None:
    with server.client() as client:
        evaluation = Evaluation(client)
        evaluation.losses = 1 - evaluation.losses
        session = evaluation.opened(policy=policy)
        evaluation.judged(session, 100)
    page = signed_in("read")
    page.goto(f"/sessions/{session}")
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text(f"they are upside down, {words}")
    assert ("a shift like that is learned" in verdict.inner_text()) == (policy == "sharp")


@pytest.mark.nightly
def test_pausing_and_resuming_by_keyboard(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened(precision=0.2)
        page = signed_in("manage")
        page.goto(f"/sessions/{session}")
        page.get_by_role("button", name="Pause").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#state")).to_have_text("Paused")
        assert evaluation.told(session)["state"] == "paused"
        resume = page.get_by_role("button", name="Resume")
        expect(resume).to_be_focused()
        expect(page.locator("#announcer")).to_have_text("The session is paused.")
        page.keyboard.press("Space")
        expect(page.locator("#state")).to_have_text("Active")
        # The button is off until the answer has come, and the keyboard's place with it
        expect(page.get_by_role("button", name="Pause")).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="New precision…")).to_be_focused()


@pytest.mark.nightly
def test_a_session_is_managed_without_scripts(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened(name="Exam", precision=0.2)
        evaluation.judged(session, 3)
        page = signed_in(java_script_enabled=False)
        page.goto(f"/sessions/{session}")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#state")).to_have_text("Paused")
        page.get_by_role("button", name="New precision…").click()
        page.get_by_label("Width of the interval at which to stop").fill("0,1")
        page.get_by_role("button", name="Set the precision").click()
        expect(page.locator("#figures")).to_contain_text("10 points")
        page.get_by_role("link", name="What was judged").click()
        row = page.locator("#round-3")
        row.locator("summary").click()
        row.get_by_label("Judgement").select_option("Cannot be judged")
        row.get_by_label("Reason").fill("cut off")
        row.get_by_role("button", name="Correct it").click()
        expect(row).to_contain_text("corrected 1 time")
        expect(row.locator("summary")).to_be_focused()
        page.get_by_role("link", name="Exam").click()
        page.get_by_role("button", name="Archive").click()
        page.get_by_role("button", name="Delete for good…").click()
        page.get_by_role("button", name="Delete for good", exact=True).click()
        expect(page).to_have_url(f"{server.url}/#main")
        assert client.get(f"/v1/tombstones/{session}").is_success


@pytest.mark.nightly
def test_a_new_precision_by_keyboard(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    complaints.expect("422")
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened(precision=0.2)
        page = signed_in("manage")
        page.goto(f"/sessions/{session}")
        page.get_by_role("button", name="New precision…").focus()
        page.keyboard.press("Enter")
        field = page.get_by_label("Width of the interval at which to stop")
        expect(field).to_be_focused()
        page.keyboard.type("-1")
        page.keyboard.press("Enter")
        expect(page.locator("#precision-error")).to_contain_text("above 0")
        expect(field).to_be_focused()
        field.fill("7")
        page.keyboard.press("Enter")
        expect(page.locator("#precision-error")).to_contain_text("did you mean 7")
        field.fill("0.1")
        page.keyboard.press("Enter")
        expect(page.locator("#precision-asked")).not_to_be_visible()
        expect(page.get_by_role("button", name="New precision…")).to_be_focused()
        expect(page.locator("#figures")).to_contain_text("10 points")
        assert evaluation.told(session)["precision"] == 0.1
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        expect(page.locator("#precision-asked")).not_to_be_visible()
        assert evaluation.told(session)["precision"] == 0.1


def test_closing_asks_first_and_the_certificate_is_downloaded(
    signed_in: SignedIn, server: Site, tmp_path: Path, complaints: Complaints
) -> None:
    complaints.expect("409", "503")
    with server.client() as client:
        evaluation = Evaluation(client, 60)
        session = evaluation.opened(precision=0.5)
        evaluation.judged(session, 20)
        page = signed_in("manage")
        page.goto(f"/sessions/{session}")
        page.get_by_role("button", name="Close for good…").click()
        dialog = page.get_by_role("dialog", name="Close this session for good?")
        expect(dialog).to_contain_text("This cannot be undone")
        expect(dialog.get_by_role("button", name="Keep it open")).to_be_focused()
        page.keyboard.press("Enter")
        expect(dialog).not_to_be_visible()
        assert evaluation.told(session)["state"] != "closed"
        page.get_by_role("button", name="Close for good…").click()
        dialog.get_by_role("button", name="Close for good", exact=True).click()
        expect(page.locator("#state")).to_have_text("Closed")
        expect(page.get_by_text("The session is closed for good")).to_be_visible()
        for name in ("Pause", "New precision…", "Close for good…"):
            expect(page.get_by_role("button", name=name)).to_be_disabled()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download the certificate").click()
        path = tmp_path / "certificate.json"
        download.value.save_as(path)
        assert download.value.suggested_filename == f"{session}.certificate.json"
        certificate = json.loads(path.read_bytes())
        assert (certificate["final"], certificate["session_id"]) == (True, session)
        content = {"Content-Type": "application/json"}
        verified = client.post(
            "/v1/certificates/verify", content=path.read_bytes(), headers=content
        )
        assert verified.json()["valid"] is True


@pytest.mark.nightly
def test_a_key_that_may_only_look_is_told_why(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client, 40)
        asked = [{"side": "at_most", "threshold": 0.9}]
        session = evaluation.opened(questions=asked, stop_when_decided=False)
        evaluation.judged(session, 40)
    page = signed_in("read")
    page.goto(f"/sessions/{session}")
    pause = page.get_by_role("button", name="Pause")
    expect(pause).to_be_disabled()
    expect(pause).to_have_accessible_description(re.compile("needs a key with the scope"))
    expect(page.get_by_role("link", name="Label by hand")).to_have_count(0)
    expect(page.locator("#answers")).to_contain_text("Is the error rate at most 90\u202f%?")
    expect(page.locator("#answers .badge.reached")).to_contain_text("Yes, since label")


@pytest.mark.nightly
def test_a_correction_begins_the_chart_anew(signed_in: SignedIn, server: Site) -> None:
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened()
        evaluation.judged(session, 30)
        page = signed_in("read")
        page.goto(f"/sessions/{session}")
        page.get_by_text("Show as a table").first.click()
        rows = page.locator("#chart-table tbody tr")
        expect(rows).to_have_count(30)
        before = rows.all_inner_texts()
        body = {"round": 1, "unjudgeable": "torn", "author": "ada", "reason": "looked again"}
        assert client.post(f"/v1/sessions/{session}/amendments", json=body).is_success
        expect(rows.first).not_to_have_text(before[0])
        expect(rows).to_have_count(30)


@pytest.mark.nightly
def test_a_lost_connection_is_told_and_found_again(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    complaints.expect("ERR_INTERNET_DISCONNECTED", "ERR_NETWORK")
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened()
        evaluation.judged(session, 5)
        page = signed_in("read")
        streams: list[str] = []
        page.on("request", lambda request: streams.append(request.url))
        page.route("**/stream?*", lambda route: route.abort())
        complaints.expect("ERR_FAILED")
        page.goto(f"/sessions/{session}")
        expect(page.locator("#silence")).to_contain_text("No live news has come since")
        page.unroute("**/stream?*")
        expect(page.locator("#silence")).to_be_empty(timeout=30_000)
        evaluation.judged(session, 5)
        expect(page.locator("#chart-readout")).to_contain_text("after 10 labels")


@pytest.mark.nightly
def test_a_page_nobody_looks_at_keeps_no_connection(signed_in: SignedIn, server: Site) -> None:
    hide = """hidden => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened()
        evaluation.judged(session, 5)
        page = signed_in("read")
        page.goto(f"/sessions/{session}")
        readout = page.locator("#chart-readout")
        expect(readout).to_contain_text("after 5 labels")
        page.evaluate(hide, arg=True)
        evaluation.judged(session, 5)
        page.wait_for_timeout(2_500)
        expect(readout).to_contain_text("after 5 labels")
        page.evaluate(hide, arg=False)
        expect(readout).to_contain_text("after 10 labels")
        expect(page.locator("#banner")).to_be_empty()


@pytest.mark.nightly
def test_a_revoked_key_leads_to_the_sign_in(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    complaints.expect("401")
    token = server.key("read")
    with server.client() as client:
        session = Evaluation(client, 40).opened()
    page = signed_in(token=token)
    page.goto(f"/sessions/{session}")
    expect(page.locator("#workers")).to_contain_text("Nobody has judged")
    ending = "UPDATE keys SET revoked_at = now() WHERE key_id = %s"
    with psycopg.connect(server.database_url) as db:
        db.execute(ending, [token.split("_")[1]])
    expect(page).to_have_url(re.compile(rf"/login\?next=%2Fsessions%2F{session}"), timeout=30_000)


@pytest.mark.nightly
def test_a_session_that_never_was_is_told_of_calmly(
    signed_in: SignedIn, complaints: Complaints
) -> None:
    complaints.expect("404")
    page = signed_in("read")
    answer = page.goto(f"/sessions/ses_{'0' * 31}1")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("link", name="Back to the sessions")).to_be_visible()


@pytest.mark.nightly
@pytest.mark.parametrize(("scheme", "viewport"), [("light", NARROW), ("dark", WIDE)])
def test_axe_finds_nothing_serious(
    signed_in: SignedIn, server: Site, scheme: str, viewport: dict[str, int]
) -> None:
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened(precision=0.1, name="<script>alert(1)</script>")
        evaluation.judged(session, 60)
        client.post(f"/v1/sessions/{session}/next", json={"worker": "bob", "count": 2})
    page = signed_in(viewport=viewport, color_scheme=scheme)
    page.goto(f"/sessions/{session}")
    expect(page.get_by_role("heading", name="<script>alert(1)</script>")).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text("60 labels")
    for summary in page.get_by_text("Show as a table").all():
        summary.click()
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Close for good…").click()
    assert barriers(page) == []


@pytest.mark.nightly
def test_a_hundred_thousand_rounds_are_usable(
    signed_in: SignedIn, server: Site, record_property: Callable[[str, object], None]
) -> None:
    with server.client() as client:
        session = long_session(client, server.database_url, 100_000)
    page = signed_in("read")
    page.goto(f"/sessions/{session}")
    expect(page.locator(BAND)).to_be_visible(timeout=30_000)
    drawn = page.evaluate("performance.now()")
    expect(page.locator("#chart-readout")).to_contain_text("100\u202f000 labels")
    first, usable = painted(page)
    expect(page.locator(".verdict")).to_contain_text("100\u202f000 labels", timeout=60_000)
    told = page.evaluate("performance.now()")
    page.get_by_text("Show as a table").first.click()
    expect(page.locator("#chart-table tbody tr").last.locator("th")).to_have_text("100\u202f000")
    chart = page.locator("#chart svg.course")
    chart.hover(position={"x": 200, "y": 100})
    expect(page.locator("#chart-readout")).to_contain_text("After")
    record_property(
        "measured",
        f"session, 100 000 rounds: painted {first:.0f} ms, usable {usable:.0f} ms, "
        f"chart {drawn:.0f} ms, surrogate {told:.0f} ms",
    )


PHONE = {"width": 360, "height": 640}
"""A small phone; what is asked for stands on its first screen."""


ASKED = [{"side": "at_most", "threshold": 0.6}]
PLANNED = {"low": 48, "median": 55, "high": 61}


@pytest.mark.nightly
def test_the_answer_comes_first(signed_in: SignedIn, server: Site) -> None:
    settings = {"precision": 0.3, "planned_labels": PLANNED, "stop_when_decided": False}
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened(name="Exam", questions=ASKED, **settings)
        page = signed_in("manage", "label", viewport=PHONE)
        page.goto(f"/sessions/{session}")
        expect(page.locator("#sentence")).to_contain_text("Nothing is judged yet")
        plan = "the plan at opening said about 55 (48 to 61)."
        expect(page.locator("#progress")).to_have_text(f"No labels yet; {plan}")
        assert figure(page, "Estimate") == "–"
        label = page.get_by_role("link", name="Label by hand")
        expect(label).to_be_in_viewport(ratio=1)
        expect(label).to_have_class(re.compile("primary"))
        told = evaluation.judged(session, 5)
    expect(page.locator("#sentence")).to_have_text(told["sentence"])
    question = re.compile(r"Is the error rate at most 60\s%\? Undecided so far")
    expect(page.locator("#answers")).to_have_text(question)
    more = re.compile(rf"5 labels, about \d+ \(\d+ to \d+\) more; {re.escape(plan)}")
    expect(page.locator("#progress")).to_have_text(more)
    expect(page.locator("#holds")).to_be_hidden()
    expect(label).to_be_in_viewport(ratio=1)


@pytest.mark.nightly
def test_after_the_stop_page_and_report_say_what_the_interval_holds(
    signed_in: SignedIn, server: Site
) -> None:
    with server.client() as client:
        evaluation = Evaluation(client)
        session = evaluation.opened(questions=ASKED, precision=0.3, stop_when_decided=False)
        body = {"worker": "bob", "count": 1}
        [held] = client.post(f"/v1/sessions/{session}/next", json=body).json()["draws"]
        evaluation.judged(session, 100)
        page = signed_in("manage", "label", viewport=PHONE)
        page.goto(f"/sessions/{session}")
        waiting = "0 of 100 labels are in the interval; 100 wait for an item drawn earlier"
        expect(page.locator("#holds")).to_contain_text(waiting)
        at_worst = evaluation.told(session)["provisional"]["sentence"]
        expect(page.locator("#provisional")).to_have_text(at_worst)
        body = {"round": held["round"], "loss": 0, "worker": "bob"}
        assert client.post(f"/v1/sessions/{session}/observe", json=body).is_success
        expect(page.locator("#state")).to_have_text("Precision reached")
        expect(page.locator("#provisional")).to_be_hidden()
        told = evaluation.told(session)
    expect(page.locator("#state")).to_have_class("badge reached")
    expect(page.locator("#answers .badge.reached")).to_contain_text("Yes, since label")
    words = told["words"]
    expect(page.locator("#holds")).to_have_text(words["holds"])
    assert words["holds"] == "All 101 labels are in the interval; no draw is open."
    expect(page.get_by_role("link", name="Label by hand")).to_have_count(0)
    primary = page.locator("#lead .primary:visible")
    expect(primary).to_have_text(["Open the report", "Download the certificate"])
    assert barriers(page) == []
    page.goto(f"/v1/sessions/{session}/report")
    report = page.locator("main")
    for said in (told["sentence"], words["progress"], words["holds"]):
        expect(report).to_contain_text(said)
    for one in words["answers"]:
        expect(report).to_contain_text(f"{one['question']}{one['answer']}")


@pytest.mark.nightly
@pytest.mark.parametrize("settings", [{}, {"account": "together"}], ids=["interval", "table"])
def test_a_phone_shows_label_by_hand_first(
    signed_in: SignedIn, server: Site, settings: dict[str, str]
) -> None:
    name = "A rather long name of an evaluation of a chatbot"
    with server.client() as client:
        session = Evaluation(client).opened(name=name, precision=0.2, **settings)
    page = signed_in(viewport=PHONE)
    page.goto(f"/sessions/{session}")
    expect(page.get_by_role("link", name="Label by hand")).to_be_in_viewport(ratio=1)

"""Opening a session as a person does: a pool or a file, a plan, the plan frozen."""

import io
import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Error, Page, Route, expect

from tests.browser.evaluations import barriers
from tests.browser.site import NARROW, WIDE, Complaints, Site
from tests.pairs import A, B, body_of

SignedIn = Callable[..., Page]
PLANNED_MS = 120_000
ITEMS = 60
HOSTILE = "<img src=x onerror=alert(1)>"


def rows(count: int = ITEMS, seed: int = 0) -> list[tuple[str, float, str]]:
    guesses = np.random.default_rng(seed).random(count).round(3)
    return [(f"q-{at}", float(one), f"Question {at}?") for at, one in enumerate(guesses)]


def csv(count: int = ITEMS) -> bytes:
    lines = [f"{name},{guess},{text}" for name, guess, text in rows(count)]
    return "\n".join(["id,surrogate,payload.question", *lines, ""]).encode()


def file_of(name: str, content: bytes) -> Any:  # noqa: ANN401 - as Playwright takes it
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def made_pool(site: Site, name: str = "exam", content: bytes | None = None) -> str:
    with site.client() as client:
        answer = client.post(
            "/v1/pool-files",
            params={"name": name, "kind": "zero_one"},
            content=content or csv(),
            headers={"Content-Type": "text/csv"},
        )
        return str(answer.raise_for_status().json()["pool"]["id"])


def kept(site: Site, what: str = "pools") -> list[dict[str, Any]]:
    with site.client() as client:
        found: list[dict[str, Any]] = client.get(f"/v1/{what}").raise_for_status().json()["data"]
        return found


def with_file(page: Page, name: str, content: bytes) -> None:
    page.goto("/sessions/new")
    page.get_by_label("A file", exact=True).check()
    page.set_input_files("#file", file_of(name, content))


def chosen(page: Page, pool: str) -> None:
    """The page with a pool chosen by its address, and its plan made."""
    page.goto(f"/sessions/new?pool={pool}")
    expect(page.locator("#plan-result")).to_be_visible(timeout=PLANNED_MS)


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["phone", "desktop"])
def test_how_a_file_was_read_stands_where_its_pool_does(
    signed_in: SignedIn, server: Site, viewport: dict[str, int]
) -> None:
    content = "number,prompt,reply,internal cost\n" + "".join(
        f"{at},Question {at}?,Reply {at},{at / 7:.3f}\n" for at in range(ITEMS)
    )
    pool = made_pool(server, content=content.encode())
    with server.client() as client:
        told = client.get(f"/v1/pools/{pool}").json()["intake"]
        session = client.post("/v1/sessions", json={"pool_id": pool}).json()["id"]
    page = signed_in("manage", "read", viewport=viewport)
    for path in (f"/sessions/new?pool={pool}", f"/sessions/{session}"):
        page.goto(path)
        line = page.get_by_text("How the file was read")
        expect(line).to_be_visible()
        shown = page.locator("details.intake")
        expect(shown.locator("table")).to_be_hidden()
        line.click()
        expect(shown).to_contain_text(f"{ITEMS} rows of csv (separated by comma): {ITEMS} items.")
        for column in told["columns"]:
            row = shown.get_by_role("row").filter(has_text=column["name"]).first
            expect(row).to_contain_text(column["why"])
        expect(shown.get_by_role("row", name="reply")).to_contain_text("Answer")
        assert barriers(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.goto(f"/sessions/new?pool={made_pool_of_items(server)}")
    expect(page.locator("#chosen-facts")).not_to_be_empty()
    expect(page.get_by_text("How the file was read")).to_have_count(0)


def made_pool_of_items(site: Site) -> str:
    form = {"name": "sent", "loss": {"kind": "zero_one"}, "items": [{"id": "q"}], "sealed": True}
    with site.client() as client:
        return str(client.post("/v1/pools", json=form).raise_for_status().json()["id"])


def test_a_dropped_file_becomes_a_pool_a_plan_and_a_session(
    signed_in: SignedIn, server: Site
) -> None:
    page = signed_in("manage", "read")
    page.goto("/sessions/new")
    drop = page.get_by_text("or drop it here")
    expect(drop).to_be_visible()
    carried = page.evaluate_handle(
        """text => {
            const carried = new DataTransfer();
            carried.items.add(new File([text], "spring exam.csv"));
            return carried;
        }""",
        csv().decode(),
    )
    page.dispatch_event("#drop", "drop", {"dataTransfer": carried})
    expect(page.locator("#checked")).to_contain_text(f"{ITEMS} rows: every row is a valid item")
    expect(page.get_by_role("cell", name="Question 7?")).to_be_visible()
    figure = page.locator("#plan-result .figure")
    expect(figure).to_contain_text(re.compile(r"about \d+ labels"), timeout=PLANNED_MS)
    expect(page.get_by_role("button", name="Open the session")).to_be_disabled()
    assert kept(server) == []
    page.get_by_role("button", name="Create the pool").click()
    expect(page.locator("#chosen-name")).to_have_text("spring exam")
    expect(figure).to_be_visible()
    page.get_by_role("textbox", name="Precision").fill("0.2")
    page.get_by_role("button", name="Plan again").click()
    expect(page.locator("#plan-told")).to_contain_text("Simulated just now", timeout=PLANNED_MS)
    expect(page.locator("#plan-result .figure")).to_contain_text(re.compile(r"about \d+ labels"))
    expect(page.get_by_role("row", name=re.compile("^uniform")).first).to_be_visible()
    page.get_by_label("Name of the session").fill("Spring, first look")
    page.get_by_role("button", name="Open the session").click()
    page.wait_for_url(re.compile(r"/sessions/ses_[0-9a-f]{32}$"))
    (session,) = kept(server, "sessions")
    assert (session["precision"], session["policy"], session["items"]) == (0.2, "sharp", ITEMS)
    assert session["name"] == "Spring, first look"
    assert 0 < session["planned_labels"]["median"] <= ITEMS


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_other_formats_are_shown_before_anything_is_kept(
    signed_in: SignedIn, server: Site, form: str
) -> None:
    page = signed_in("manage")
    names, guesses, texts = zip(*rows(20), strict=True)
    if form == "parquet":
        sink = io.BytesIO()
        table = {"id": names, "surrogate": guesses, "payload.question": texts}
        pq.write_table(pa.table({name: list(column) for name, column in table.items()}), sink)
        content = sink.getvalue()
    else:
        lines = (f'{{"id": "{name}", "surrogate": {guess}}}' for name, guess, _ in rows(20))
        content = "\n".join(lines).encode()
    with_file(page, f"items.{form}", content)
    expect(page.locator("#checked")).to_contain_text("20 rows: every row is a valid item")
    expect(page.get_by_role("cell", name="q-3", exact=True)).to_be_visible()
    assert kept(server) == []


@pytest.mark.nightly
def test_bad_rows_are_told_by_line_and_may_be_left_out(signed_in: SignedIn, server: Site) -> None:
    page = signed_in("manage")
    content = csv(5) + b"q-5,7,Too large?\nq-6,much,A word?\n" + b"q-0,0.5,Again?\n"
    with_file(page, "bad.csv", content)
    faults = page.locator(".faults li")
    expect(faults).to_have_count(3)
    expect(faults.nth(0)).to_contain_text("Line 7, surrogate")
    expect(faults.nth(1)).to_contain_text("Line 8, surrogate")
    make = page.get_by_role("button", name="Create the pool")
    expect(make).to_be_disabled()
    leave = page.get_by_label("Leave the 3 bad rows out")
    leave.check()
    # Another look finds the same rows bad
    page.get_by_label("A grade").check()
    expect(make).to_be_enabled()
    expect(leave).to_be_checked()
    # Nobody has agreed to leave out others
    page.get_by_label("Largest loss").fill("10")
    expect(page.get_by_label("Leave the 2 bad rows out")).not_to_be_checked()
    expect(make).to_be_disabled()
    page.get_by_label("Right or wrong").check()
    leave.check()
    make.click()
    expect(page.locator("#chosen-facts")).to_contain_text("5 items")
    assert [pool["items"] for pool in kept(server)] == [5]


@pytest.mark.nightly
def test_hostile_names_and_cells_are_shown_as_text(signed_in: SignedIn) -> None:
    page = signed_in("manage")
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    script = "<script>alert(2)</script>"
    content = f'id,group,payload\n{HOSTILE},{script},"{script}"\nb,,{HOSTILE}\n'.encode()
    with_file(page, f"{HOSTILE}.csv", content)
    expect(page.locator("#file-name")).to_have_text(f"{HOSTILE}.csv")
    expect(page.locator(".preview")).to_contain_text(HOSTILE)
    expect(page.locator(".preview")).to_contain_text(script)
    expect(page.locator(".faults")).to_contain_text("Line 3")
    page.get_by_label("Leave the 1 bad row out").check()
    page.get_by_role("button", name="Create the pool").click()
    expect(page.locator("#chosen-name")).to_have_text(HOSTILE)
    page.reload()
    expect(page.locator(".pool-name")).to_have_text(HOSTILE)
    assert page.locator("main img, main script:not([type='application/json'])").count() == 0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("photo.png", b"\x89PNG\r\n", "is a picture"),
        ("nothing.csv", b"", "is empty"),
        ("page.csv", b"<html><p>One, two</p></html>", "no table that is known"),
        ("noise.csv", b"a,b\n\x01\x02\xff\n", "no text and no table"),
        ("cut.parquet", b"PAR1 and then no more", "cannot be read as Parquet"),
    ],
)
def test_a_wrong_file_gets_a_calm_word_and_nothing_is_kept(  # noqa: PLR0913, PLR0917 - three of them a case
    signed_in: SignedIn, server: Site, complaints: Complaints, name: str, content: bytes, said: str
) -> None:
    complaints.expect("422")
    page = signed_in("manage")
    with_file(page, name, content)
    expect(page.locator("#file-problem")).to_contain_text(said)
    expect(page.locator("#file-problem")).to_contain_text("Nothing was stored")
    assert kept(server) == []
    page.set_input_files("#file", file_of("right.csv", csv(5)))
    expect(page.locator("#checked")).to_contain_text("5 rows: every row is a valid item")
    expect(page.locator("#file-problem")).to_be_empty()


@pytest.mark.nightly
def test_the_kind_of_loss_decides_what_a_row_may_hold(signed_in: SignedIn, server: Site) -> None:
    page = signed_in("manage")
    with_file(page, "grades.csv", b"id,surrogate\na,3\nb,4.5\n")
    expect(page.locator(".faults li")).to_have_count(2)
    page.get_by_label("A grade").check()
    expect(page.locator("#checked")).to_contain_text("2 rows: every row is a valid item")
    page.get_by_label("Largest loss").fill("4")
    expect(page.locator(".faults li")).to_have_count(1)
    page.get_by_label("Largest loss").fill("ten")
    expect(page.get_by_text("This must be a number.")).to_be_visible()
    expect(page.get_by_role("button", name="Create the pool")).to_be_disabled()
    page.get_by_label("Largest loss").fill("5")
    page.get_by_role("button", name="Create the pool").click()
    expect(page.locator("#chosen-facts")).to_contain_text("grades from 0 to 5")
    assert [pool["loss"]["upper"] for pool in kept(server)] == [5.0]


@pytest.mark.nightly
def test_what_is_typed_while_a_file_is_looked_at_stays(signed_in: SignedIn) -> None:
    page = signed_in("manage")
    with_file(page, "grades.csv", b"id,surrogate\na,3\nb,4.5\n")
    expect(page.locator(".faults li")).to_have_count(2)
    looks = re.compile("/sessions/new/file$")
    held: list[Route] = []

    def hold_first(look: Route) -> None:
        if held:
            look.continue_()
        held.append(look)

    page.route(looks, hold_first)
    with page.expect_request(looks):
        page.get_by_label("A grade").check()
    largest = page.get_by_label("Largest loss")
    largest.fill("4")
    largest.press("Tab")
    with suppress(Error):
        # Where it was not given up
        held[0].continue_()
    expect(page.locator(".faults li")).to_have_count(1)
    expect(largest).to_have_value("4")


@pytest.mark.nightly
def test_a_session_is_opened_without_scripts(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    complaints.expect("422")
    made_pool(server)
    page = signed_in("manage", "read", java_script_enabled=False)
    page.goto("/sessions/new")
    page.locator(".pool").click()
    expect(page.locator("#chosen-name")).to_have_text("exam")
    page.get_by_role("link", name="Choose another").click()
    page.locator(".pool").click()
    page.get_by_role("textbox", name="Precision").fill("wide")
    page.get_by_role("button", name="Open the session").click()
    expect(page.locator("#precision-wrong")).to_have_text("This must be a number.")
    page.get_by_role("textbox", name="Precision").fill("0.3")
    page.get_by_role("button", name="Open the session").click()
    page.wait_for_url(re.compile(r"/sessions/ses_[0-9a-f]{32}$"))
    assert [session["precision"] for session in kept(server, "sessions")] == [0.3]


@pytest.mark.nightly
def test_an_upload_shows_its_progress_and_can_be_cancelled(
    signed_in: SignedIn, server: Site
) -> None:
    page = signed_in("manage")
    page.goto("/sessions/new")
    page.get_by_label("A file", exact=True).check()
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 100_000}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", slow)
    page.set_input_files("#file", file_of("large.csv", csv(60_000)))
    expect(page.locator("#progress-told")).to_contain_text("% sent")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#file-problem")).to_contain_text("Cancelled. Nothing was stored.")
    expect(page.get_by_role("button", name="Create the pool")).to_be_disabled()
    assert kept(server) == []


@pytest.mark.nightly
def test_of_a_large_file_the_first_part_is_looked_at(signed_in: SignedIn) -> None:
    page = signed_in("manage")
    page.goto("/sessions/new")
    page.get_by_label("A file", exact=True).check()
    carried = page.evaluate_handle(
        """() => {
            const line = "x".repeat(1000);
            const lines = Array.from({length: 17000}, (_, at) => `item-${at},${line}`);
            const carried = new DataTransfer();
            carried.items.add(new File([["id,payload", ...lines].join("\\n")], "large.csv"));
            return carried;
        }"""
    )
    page.dispatch_event("#drop", "drop", {"dataTransfer": carried})
    checked = page.locator("#checked")
    expect(checked).to_contain_text(
        re.compile(r"The first 1.0\d\d rows: every row"), timeout=PLANNED_MS
    )
    expect(checked).to_contain_text("the rest is read when the pool is created")
    expect(page.locator("#file-size")).to_have_text("17.2 MB")
    expect(page.get_by_role("button", name="Create the pool")).to_be_enabled()


@pytest.mark.nightly
def test_a_pool_is_found_by_its_name_and_opened_by_keyboard_alone(
    signed_in: SignedIn, server: Site
) -> None:
    for name in ("spring", "summer", "autumn"):
        made_pool(server, name, csv(30))
    page = signed_in("manage", "read")
    page.goto("/sessions/new")
    expect(page.locator(".pool")).to_have_count(3)
    page.get_by_label("Search").focus()
    page.keyboard.type("summ")
    expect(page.locator(".pool")).to_have_count(1)
    expect(page.locator("#pools-told")).to_have_text("1 pool of 3, newest first.")
    for _ in range(4):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.pool')"):
            break
    page.keyboard.press("Enter")
    expect(page.locator("#chosen-name")).to_have_text("summer")
    expect(page.get_by_role("link", name="Choose another")).to_be_focused()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "open":
            break
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/sessions/ses_[0-9a-f]{32}$"))


@pytest.mark.nightly
def test_a_refusal_stands_at_the_field_it_names(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    complaints.expect("422")
    pool = made_pool(server)
    page = signed_in("manage")
    chosen(page, pool)
    for label, value, said in (
        ("Precision", "7", "below the scale"),
        ("Chance of being wrong", "1", "at most 0.5"),
        ("Precision", "wide", "must be a number"),
    ):
        field = page.get_by_role("textbox", name=label)
        before = field.input_value()
        field.fill(value)
        page.get_by_role("button", name="Open the session").click()
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_be_focused()
        expect(field.locator("xpath=..").locator(".error")).to_contain_text(said)
        field.fill(before)
    page.get_by_text("Ask a yes-or-no question").click()
    page.get_by_label("Is the mean loss").select_option("at_most")
    page.get_by_label("this number?").fill("3")
    page.get_by_role("button", name="Plan again").click()
    expect(page.get_by_label("this number?")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#plan-problem")).to_contain_text("corrected first")
    assert kept(server, "sessions") == []


@pytest.mark.nightly
def test_a_pool_that_was_deleted_meanwhile_is_not_chosen(signed_in: SignedIn, server: Site) -> None:
    pool = made_pool(server)
    page = signed_in("manage", "read")
    page.goto("/sessions/new")
    expect(page.locator(".pool")).to_be_visible()
    with server.client() as client:
        client.patch(f"/v1/pools/{pool}", json={"archived": True}).raise_for_status()
        client.delete(f"/v1/pools/{pool}").raise_for_status()
    page.locator(".pool").click()
    expect(page.locator(".pool")).to_have_count(0)
    expect(page.locator("#announcer")).to_have_text("This pool is no longer there")
    expect(page.locator("#chosen")).to_be_hidden()
    expect(page.get_by_role("button", name="Open the session")).to_be_disabled()


@pytest.mark.nightly
def test_a_double_click_opens_one_session(signed_in: SignedIn, server: Site) -> None:
    page = signed_in("manage", "read")
    page.goto(f"/sessions/new?pool={made_pool(server)}")
    page.get_by_role("button", name="Open the session").dblclick()
    page.wait_for_url(re.compile(r"/sessions/ses_[0-9a-f]{32}$"))
    assert len(kept(server, "sessions")) == 1


@pytest.mark.nightly
def test_settings_may_be_fixed_at_the_opening(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    complaints.expect("409")
    page = signed_in("manage", "read")
    page.goto(f"/sessions/new?pool={made_pool(server)}")
    switch = page.get_by_label("Fix these settings for good")
    expect(switch).not_to_be_checked()
    switch.focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Open the session").click()
    page.wait_for_url(re.compile(r"/sessions/ses_[0-9a-f]{32}$"))
    (session,) = kept(server, "sessions")
    assert session["fixed"] is True
    with server.client() as client:
        refused = client.patch(f"/v1/sessions/{session['id']}", json={"precision": 0.2})
    assert (refused.status_code, refused.json()["code"]) == (409, "session_fixed")
    expect(page.get_by_role("button", name="Pause")).to_be_enabled()
    expect(page.get_by_role("button", name="New precision…")).not_to_be_visible()
    expect(page.locator("#actions-why")).to_have_text(
        "Precision, budget and stop were fixed at opening."
    )
    expect(page.locator("table.plan")).to_contain_text("fixed at opening")


@pytest.mark.nightly
def test_what_is_evaluated_is_named_by_its_digest(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    complaints.expect("422")
    page = signed_in("manage", "read")
    chosen(page, made_pool(server))
    expect(page.locator("#plan-told")).to_contain_text("Simulated just now")
    page.get_by_text("Name what is evaluated by its digest").click()
    page.get_by_label("What it is called").fill("model.safetensors")
    # No plan is another one for it
    expect(page.locator("#planner")).not_to_have_class(re.compile("stale"))
    page.get_by_role("button", name="Open the session").click()
    digest = page.get_by_label("Digest, in hexadecimal digits")
    expect(digest).to_have_attribute("aria-invalid", "true")
    digest.fill("ab" * 32)
    assert barriers(page) == []
    page.get_by_role("button", name="Open the session").click()
    page.wait_for_url(re.compile(r"/sessions/ses_[0-9a-f]{32}$"))
    (session,) = kept(server, "sessions")
    [subject] = session["subject"]
    assert subject == {"name": "model.safetensors", "algorithm": "sha256", "digest": "ab" * 32}


@pytest.mark.nightly
def test_the_smallest_width_of_a_population_is_said_and_a_policy_out_of_reach_told(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    complaints.expect("422")
    page = signed_in("manage")
    chosen(page, made_pool(server))
    result = page.locator("#plan-result")
    expect(result).to_contain_text("There is no smallest width")
    page.get_by_label("all items like these").check()
    expect(page.locator("#plan-told")).to_contain_text("for other settings")
    precision = page.get_by_role("textbox", name="Precision")
    precision.fill("0.05")
    page.get_by_role("button", name="Plan again").click()
    expect(precision).to_have_attribute("aria-invalid", "true", timeout=PLANNED_MS)
    expect(page.locator("#precision-wrong")).to_contain_text("cannot be reached")
    precision.fill("0.15")
    page.get_by_role("button", name="Plan again").click()
    expect(result).to_contain_text("out of reach", timeout=PLANNED_MS)
    expect(result).to_contain_text(f"Even with all {ITEMS} items judged")
    page.get_by_text("Policy, budget and leases").click()
    page.get_by_role("combobox", name="Policy").select_option("celeus")
    page.get_by_role("button", name="Plan again").click()
    expect(result).to_contain_text("celeus cannot be opened for this", timeout=PLANNED_MS)
    expect(page.get_by_role("row", name=re.compile("^celeus"))).to_contain_text("not below")


@pytest.mark.nightly
def test_a_session_is_opened_over_all_runs_on_its_items(signed_in: SignedIn, server: Site) -> None:
    page = signed_in("manage")
    chosen(page, made_pool(server))
    page.get_by_label("all runs on these items").check()
    page.get_by_role("textbox", name="Precision").fill("0.3")
    page.get_by_role("button", name="Plan again").click()
    expect(page.locator("#plan-result")).to_contain_text(
        "the interval for all runs on these items", timeout=PLANNED_MS
    )
    page.get_by_role("button", name="Open the session").click()
    expect(page.locator("table.plan")).to_contain_text("over all runs")


@pytest.mark.nightly
def test_a_plan_for_settings_that_were_changed_meanwhile_says_so(
    signed_in: SignedIn, server: Site
) -> None:
    page = signed_in("manage")
    page.goto(f"/sessions/new?pool={made_pool(server)}")
    expect(page.locator("#plan")).to_have_text("Simulating…")
    page.get_by_role("textbox", name="Chance of being wrong").fill("0.1")
    expect(page.locator("#plan-result")).to_be_visible(timeout=PLANNED_MS)
    expect(page.locator("#plan-told")).to_have_text("These numbers are for other settings.")


@pytest.mark.nightly
def test_who_may_not_manage_is_told_so(signed_in: SignedIn, complaints: Complaints) -> None:
    complaints.expect("403")
    page = signed_in("read", "label")
    page.goto("/sessions/new")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("#form")).to_have_count(0)


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_in_the_way_of_anybody(
    signed_in: SignedIn, server: Site, viewport: dict[str, int], scheme: str
) -> None:
    pool = made_pool(server)
    page = signed_in("manage", viewport=viewport, color_scheme=scheme)
    page.goto("/sessions/new")
    expect(page.locator(".pool")).to_have_count(1)
    assert barriers(page) == []
    page.get_by_label("A file", exact=True).check()
    page.set_input_files("#file", file_of("bad.csv", csv(9) + b"q-9,7,Too large?\n"))
    expect(page.locator(".faults li")).to_have_count(1)
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    chosen(page, pool)
    page.get_by_text("Policy, budget and leases").click()
    page.get_by_text("Ask a yes-or-no question").click()
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def with_preferences(page: Page, items: list[dict[str, Any]]) -> None:
    """The page with a pool made of a file of two systems, whose answers judges compare."""
    with_file(page, "answers.jsonl", "\n".join(json.dumps(row) for row in items).encode())
    # The rows say what they hold
    expect(page.get_by_role("radio", name="Answers of two systems")).to_be_checked()
    page.get_by_role("radio", name="Which answer is better").check()
    page.get_by_label("Name of system A").fill(A)
    page.get_by_label("Name of system B").fill(B)
    page.get_by_label("Equal answers").select_option("casefold")
    expect(page.locator("#checked")).to_contain_text("60 rows: every row is a valid item")
    assert barriers(page) == []
    page.get_by_role("button", name="Create the pool").click()


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [{"width": 390, "height": 844}, WIDE], ids=["phone", "wide"])
def test_a_file_of_two_systems_becomes_a_comparison(
    signed_in: SignedIn, server: Site, viewport: dict[str, int]
) -> None:
    body, pool = body_of("preference")
    page = signed_in("manage", "read", viewport=viewport)
    with_preferences(page, body["items"])
    known = sum(pool.known)
    facts = f"60 items · {A} against {B}, which answer is better · {known} known beforehand"
    expect(page.locator("#chosen-facts")).to_contain_text(facts)
    page.get_by_role("textbox", name="Precision").fill("")
    page.get_by_role("textbox", name="Margin").fill("0.15")
    expect(page.locator("#plan-told")).not_to_contain_text("Simulating", timeout=PLANNED_MS)
    page.get_by_role("button", name="Plan again").click()
    told = page.locator("#plan-told")
    expect(told).to_contain_text("Simulated just now", timeout=PLANNED_MS)
    expect(page.locator("#plan-result .figure")).to_contain_text(re.compile(r"about \d+ labels"))
    expect(page.locator("#plan-result")).to_contain_text("A paired test that looks only once")
    expect(page.locator("#plan-result")).to_contain_text("Simulated with a difference of")
    expect(page.get_by_label("Expected difference")).to_be_visible()
    expect(page.get_by_text("never asked for")).to_be_visible()
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("checkbox", name="Audit what is known").check()
    page.get_by_role("button", name="Open the session").click()
    expect(page.locator("#sentence")).to_contain_text("Nothing is judged yet")
    [session] = kept(server, "sessions")
    assert session["verdict"] == {"margin": 0.15, "answer": "undecided", "round": None}
    assert (session["precision"], session["known"]) == (None, 0)
    [made] = kept(server)
    assert made["systems"]["normalisation"] == "casefold"


@pytest.mark.nightly
def test_a_file_is_not_looked_at_again_while_it_becomes_a_pool(
    signed_in: SignedIn, server: Site
) -> None:
    """It was, half a second after the last letter of a name, which gave up the pool under way."""
    page = signed_in("manage", "read")
    with_file(page, "exam.csv", csv())
    score, make = page.get_by_label("What the score is called"), page.locator("#make")
    expect(make).to_be_enabled()
    held: list[Route] = []
    looks = re.compile("/sessions/new/file$")
    page.route(looks, lambda look: held.append(look))  # noqa: PLW0108 - Playwright marks it
    with page.expect_request(looks):
        # What is typed is looked at before it is created
        score.fill("accuracy")
        assert make.is_disabled()
    expect(make).to_be_disabled()
    held.pop().continue_()
    make.click()
    score.fill("error rate")
    expect(make).to_be_disabled()
    page.wait_for_timeout(1000)
    [creating] = held
    creating.continue_()
    expect(page.locator("#chosen-name")).to_have_text("exam")
    [made] = kept(server)
    assert made["score"]["name"] == "accuracy"


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["", " "], ids=["empty", "blank"])
def test_a_missing_pool_name_is_told_before_the_file_is_sent(
    signed_in: SignedIn, name: str
) -> None:
    page = signed_in("manage")
    with_file(page, "exam.csv", csv())
    make, field = page.locator("#make"), page.get_by_label("Name of the pool")
    expect(make).to_be_enabled()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    field.fill(name)
    make.click()
    expect(field).to_be_focused()
    assert field.evaluate("field => field.validity.valid") is False
    assert sent == []


@pytest.mark.nightly
def test_a_verdict_without_margin_is_planned_and_opened(signed_in: SignedIn, server: Site) -> None:
    body, _ = body_of("losses")
    with server.client() as client:
        pool = client.post("/v1/pools", json=body).raise_for_status().json()["id"]
    page = signed_in("manage", "read")
    chosen(page, pool)
    page.get_by_role("textbox", name="Precision").fill("")
    page.get_by_role("textbox", name="Margin").fill("0")
    page.get_by_label("Expected difference").fill("0.2")
    page.get_by_role("button", name="Plan again").click()
    expect(page.locator("#plan-told")).to_contain_text("Simulated just now", timeout=PLANNED_MS)
    expect(page.locator("#plan-result")).to_contain_text("Simulated with a difference of 0.2")
    page.get_by_role("button", name="Open the session").click()
    expect(page.locator("#answers")).to_contain_text(f"Is {A} or {B} at least as good?")


@pytest.mark.nightly
@pytest.mark.parametrize("margin", ["0.001", "x"])
def test_a_margin_that_cannot_be_is_refused_at_its_field(
    signed_in: SignedIn, server: Site, complaints: Complaints, margin: str
) -> None:
    complaints.expect("422")
    body, _ = body_of("losses")
    with server.client() as client:
        pool = client.post("/v1/pools", json=body).raise_for_status().json()["id"]
    page = signed_in("manage", "read")
    chosen(page, pool)
    page.get_by_role("textbox", name="Margin").fill(margin)
    page.get_by_role("button", name="Open the session").click()
    expect(page.locator("#margin")).to_have_attribute("aria-invalid", "true")


def predicted(*classes: int) -> bytes:
    lines = [f"q-{at},{one}" for at, one in enumerate(classes)]
    return "\n".join(["id,prediction", *lines, ""]).encode()


@pytest.mark.nightly
def test_a_new_version_goes_on_from_what_a_session_judged(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    old = made_pool(server, "first", predicted(0, 1, 2, 0, 1, 2))
    with server.client() as client:
        opened = client.post("/v1/sessions", json={"pool_id": old}).raise_for_status().json()
        path = f"/v1/sessions/{opened['id']}"
        draws = client.post(f"{path}/next", json={"worker": "ada", "count": 4}).json()["draws"]
        for draw in draws:
            said = {"round": draw["round"], "worker": "ada", "label": 1}
            client.post(f"{path}/observe", json=said).raise_for_status()
        client.patch(path, json={"state": "closed"}).raise_for_status()
    page = signed_in("manage", "read")
    with_file(page, "second.csv", predicted(1, 1, 1, 0, 0, 0))
    expect(page.locator("#checked")).to_contain_text("6 rows: every row is a valid item")
    page.get_by_text("A new version of what a session has judged").click()
    page.get_by_label("The session, closed").fill(opened["id"])
    complaints.expect("422")
    wrong = page.locator("#labels_seen-wrong")
    expect(wrong).to_contain_text("Whether the makers of the new version saw labels")
    page.get_by_label("Its makers saw labels of these items").select_option("no")
    expect(page.locator("#checked")).to_contain_text("6 rows: every row is a valid item")
    assert barriers(page) == []
    page.get_by_role("button", name="Create the pool").click()
    expect(page.locator("#chosen-facts")).to_contain_text("4 known beforehand")
    [made] = [one for one in kept(server) if one["name"] == "second"]
    assert made["based_on"]["session"] == opened["id"]


def metrics_pool(site: Site) -> str:
    chance = np.random.default_rng(4).random(120).round(3).tolist()
    items = [
        {
            "id": f"text-{at}",
            "surrogates": {"correct": one, "grade": round(5 * one, 3)},
            "groups": {"topic": ("law", "art")[at % 2]},
        }
        for at, one in enumerate(chance)
    ]
    score = {"name": "accuracy", "better": "higher"}
    metrics = {
        "correct": {"kind": "zero_one", "score": score},
        "grade": {"kind": "bounded", "lower": 0, "upper": 5},
    }
    body = {"name": "summaries", "metrics": metrics, "items": items, "sealed": True}
    with site.client() as client:
        answer = client.post("/v1/pools", json=body)
        return str(answer.raise_for_status().json()["id"])


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["phone", "desktop"])
def test_metrics_and_groups_are_chosen_planned_and_opened(
    signed_in: SignedIn, server: Site, viewport: dict[str, int]
) -> None:
    page = signed_in("manage", "read", viewport=viewport)
    chosen(page, metrics_pool(server))
    expect(page.locator("#chosen-facts")).to_contain_text("2 metrics: correct, grade")
    expect(page.locator("#of-precision, #target, #policy")).to_have_count(3)
    for hidden in ("#of-precision", "#target", "#group-width-0", "#reserve", "#policy"):
        expect(page.locator(hidden)).to_be_hidden()
    page.get_by_role("textbox", name=re.compile("Over all items.*correct")).fill("0.3")
    page.get_by_role("textbox", name=re.compile("Over all items.*grade")).fill("")
    page.get_by_role("checkbox", name=re.compile("topic")).check()
    page.get_by_role("textbox", name=re.compile("Within every group.*correct")).fill("0.5")
    page.get_by_role("radio", name=re.compile("^All together")).check()
    page.get_by_label("Reserve").fill("0.01")
    expect(page.locator("#alpha-help")).to_contain_text("95")
    page.get_by_role("button", name="Plan again").click(timeout=PLANNED_MS)
    expect(page.locator("#plan-told")).to_contain_text("Simulated just now", timeout=PLANNED_MS)
    plan = page.locator("#plan-result")
    expect(plan.locator(".figure")).to_contain_text(re.compile(r"about \d+ labels"))
    expect(plan.get_by_role("row")).to_have_count(1 + 3)
    expect(plan).to_contain_text("for grade")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Open the session").click()
    page.wait_for_url(re.compile(r"/sessions/ses_[0-9a-f]{32}$"))
    (session,) = kept(server, "sessions")
    with server.client() as client:
        claims = client.get(f"/v1/sessions/{session['id']}/claims").json()
    assert claims["account"] == "together"
    assert [one["precision"] for one in claims["data"]] == [0.3, None, 0.5, None, 0.5, None]
    assert sum(one["level"] for one in claims["data"]) == pytest.approx(0.04)


@pytest.mark.nightly
def test_groups_of_a_pool_of_one_loss_may_be_chosen(signed_in: SignedIn, server: Site) -> None:
    lines = [f"{name},{guess},{'ab'[at % 2]}" for at, (name, guess, _) in enumerate(rows(80))]
    content = "\n".join(["id,surrogate,group", *lines, ""]).encode()
    page = signed_in("manage", "read")
    chosen(page, made_pool(server, content=content))
    expect(page.locator("#policy")).to_have_count(1)
    expect(page.get_by_role("radio", name=re.compile("^All together"))).to_be_hidden()
    page.get_by_role("textbox", name="Precision").fill("0.4")
    page.get_by_role("checkbox", name=re.compile("group")).check()
    page.get_by_role("radio", name=re.compile("^All answers yes")).check()
    page.get_by_text("Ask a yes-or-no question").click()
    page.get_by_label("Asked of").select_option("groups")
    page.get_by_label("Is the mean loss").select_option("at_most")
    page.get_by_label("this number?").fill("0.9")
    page.get_by_role("button", name="Open the session").click()
    page.wait_for_url(re.compile(r"/sessions/ses_[0-9a-f]{32}$"))
    (session,) = kept(server, "sessions")
    with server.client() as client:
        claims = client.get(f"/v1/sessions/{session['id']}/claims").json()
    assert claims["account"] == "closed"
    assert [len(one["answers"]) for one in claims["data"]] == [0, 1, 1]
    assert claims["data"][0]["precision"] == 0.4


TOLD = "Judge only what is *said*.\n\n- Style does not matter."


def with_levels(page: Page, complaints: Complaints) -> None:
    """The page with a file of questions, and levels from 0 to 3 of which two have names."""
    questions = b"question\n" + b"".join(b"How deep is sea %d?\n" % at for at in range(30))
    with_file(page, "seas.csv", questions)
    page.get_by_role("radio", name="A grade").check()
    page.get_by_label("Largest loss").fill("3")
    page.get_by_text("Name the levels").click()
    expect(page.get_by_label("Value")).to_have_count(4 + 1)
    page.get_by_label("Name", exact=True).nth(0).fill("wrong")
    expect(page.get_by_label("What the score is called")).to_have_value("quality")
    expect(page.get_by_text("Higher is better.")).to_be_visible()
    page.get_by_label("When it is right").nth(0).fill("It states something false.")
    page.get_by_label("Name", exact=True).nth(3).fill("perfect")
    page.get_by_label("Value").nth(4).fill("7")
    page.get_by_label("Name", exact=True).nth(4).fill("superb")
    complaints.expect("422")
    expect(page.locator("[aria-invalid=true]")).to_have_value("7")
    expect(page.locator(".level .error")).to_contain_text("lies on the scale")
    page.get_by_label("Name", exact=True).nth(4).fill("")
    expect(page.locator("#checked")).to_contain_text("30 rows: every row is a valid item")


@pytest.mark.nightly
def test_levels_of_a_file_are_named_and_instructions_previewed(
    signed_in: SignedIn, server: Site, complaints: Complaints
) -> None:
    page = signed_in("manage", "read")
    with_levels(page, complaints)
    page.get_by_role("button", name="Create the pool").click()
    expect(page.locator("#chosen-facts")).to_contain_text("0 wrong … 3 perfect")
    page.get_by_label("Instructions for judges").fill(TOLD)
    shown = page.locator("#instructions-shown")
    expect(shown.locator("em")).to_have_text("said")
    assert barriers(page) == []
    page.get_by_role("button", name="Open the session").click()
    page.wait_for_url(re.compile(r"/sessions/ses_[0-9a-f]{32}$"))
    [pool] = kept(server)
    [session] = kept(server, "sessions")
    assert [(one["name"], one["grade"], one["help"]) for one in pool["levels"]] == [
        ("wrong", 0, "It states something false."),
        ("perfect", 3, None),
    ]
    assert (pool["score"]["name"], pool["score"]["better"]) == ("quality", "higher")
    with server.client() as client:
        told = client.get(f"/v1/sessions/{session['id']}/task").json()
    assert told["instructions"] == TOLD
    assert [one["loss"] for one in told["levels"]] == [3, 0]


@pytest.mark.nightly
def test_levels_need_a_score_and_are_of_one_system(signed_in: SignedIn) -> None:
    page = signed_in("manage")
    with_file(page, "exam.csv", csv(9))
    expect(page.locator("#checked")).to_contain_text("9 rows: every row is a valid item")
    page.get_by_text("Name the levels").click()
    page.get_by_label("Name", exact=True).nth(0).fill("wrong")
    page.get_by_label("Name", exact=True).nth(1).fill("right")
    expect(page.get_by_label("What the score is called")).to_have_value("accuracy")
    page.get_by_label("What the score is called").fill("")
    expect(page.locator("#score_name-wrong")).to_contain_text("it needs a name")
    page.get_by_role("radio", name="Answers of two systems").check()
    expect(page.get_by_text("Name the levels")).to_be_hidden()


@pytest.mark.nightly
def test_levels_wait_for_the_ends_of_the_scale(signed_in: SignedIn) -> None:
    page = signed_in("manage")
    with_file(page, "exam.csv", csv(9))
    page.get_by_role("radio", name="A grade").check()
    largest = page.get_by_label("Largest loss")
    largest.fill("")
    page.get_by_text("Name the levels").click()
    expect(page.locator("#loss-upper-wrong")).to_have_text("This must be a number.")
    expect(page.locator(".level")).to_have_count(1)
    largest.fill("3")
    expect(page.locator(".level")).to_have_count(4 + 1)


@pytest.mark.nightly
def test_instructions_of_a_pool_are_shown_and_may_be_left(
    signed_in: SignedIn, server: Site
) -> None:
    pool = made_pool(server)
    with server.client() as client:
        client.patch(f"/v1/pools/{pool}", json={"instructions": TOLD}).raise_for_status()
    page = signed_in("manage", "read")
    chosen(page, pool)
    expect(page.locator("#instructions-look")).to_contain_text("those of the pool")
    expect(page.locator("#instructions-shown em")).to_have_text("said")
    page.get_by_role("button", name="Open the session").click()
    page.wait_for_url(re.compile(r"/sessions/ses_[0-9a-f]{32}$"))
    [session] = kept(server, "sessions")
    with server.client() as client:
        told = client.get(f"/v1/sessions/{session['id']}/instructions").json()
    assert told["instructions"] == TOLD
    assert [one["of"] for one in told["versions"]] == ["pool"]


@pytest.mark.nightly
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_levels_and_instructions_are_in_nobodys_way(
    signed_in: SignedIn, viewport: dict[str, int], scheme: str
) -> None:
    page = signed_in("manage", viewport=viewport, color_scheme=scheme)
    with_file(page, "exam.csv", csv(9))
    page.get_by_role("radio", name="A grade").check()
    page.get_by_text("Name the levels").click()
    page.get_by_label("Instructions for judges").fill(f"{TOLD} {'x' * 90}")
    expect(page.locator("#instructions-shown em")).to_have_text("said")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

"""The tutorial, walked as it is written; with CELEUS_SCREENSHOTS=1 its pictures are taken anew."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from celeus.core.certificate.ed25519 import public_to_pem
from celeus.demo.by_hand import write_pool
from celeus.demo.digits import digits
from celeus.demo.server import Server, running_server
from tests.browser.labelling import ITEM, all_sent, press
from tests.browser.site import Site
from tests.docs.pages import ROOT
from tests.servers import Service

pytestmark = pytest.mark.nightly

PICTURES = ROOT / "docs" / "pictures"
TAKEN = os.environ.get("CELEUS_SCREENSHOTS") == "1"
WINDOW = {"width": 1180, "height": 820}
PLANNED_MS = 90_000
MOST_LABELS = 400
ENOUGH = "#rest:is([data-rest='target_reached'], [data-rest='decided']):not([hidden])"


def take(page: Page, name: str) -> None:
    """Keep what the page shows as a picture of the tutorial, where pictures are wanted."""
    assert (PICTURES / f"tutorial-{name}.png").is_file() or TAKEN
    if TAKEN:
        page.screenshot(path=PICTURES / f"tutorial-{name}.png")


@pytest.fixture(scope="module")
def started() -> Iterator[Server]:
    """`celeus serve`, as the reader starts it."""
    with running_server(keep=False) as server:
        server.await_ready()
        yield server


@pytest.fixture
def server(started: Server) -> Site:
    return Site(Service(started.url, started.process), "", "default")


def celeus(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What the reader types."""
    return subprocess.run(
        [sys.executable, "-m", "celeus.cli", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )


def invited(started: Server, *options: str) -> str:
    """The link `celeus admin keys invite` prints."""
    folder = ("--data-dir", str(started.folder), "--url", started.url)
    made = celeus("admin", "keys", "invite", *options, *folder)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.mark.timeout(900)
def test_the_tutorial_leads_from_an_empty_list_to_a_verified_certificate(
    started: Server, new_context: Callable[..., BrowserContext], tmp_path: Path
) -> None:
    file = tmp_path / "digits.jsonl"
    assert write_pool(file) == 1737
    page = _window(new_context)
    _sign_in(page, started)
    _say_what_is_evaluated(page, file)
    session = _plan_and_open(page)
    labeller = _window(new_context)
    labeller.goto(invited(started, "--name", "ann", "--session", session))
    labeller.wait_for_url(f"{started.url}/label/{session}")
    windows = [labeller, labeller.context.new_page()]
    windows[1].goto(labeller.url)
    expect(windows[0].locator(f"{ITEM} img")).to_be_visible()
    take(labeller, "label")
    known = _digits_of(file)
    readout = page.locator("#chart-readout")
    assert _label_with_keys(windows, known, 10) == 10
    expect(readout).to_contain_text(re.compile(r"after \d+ labels"))
    before = readout.inner_text()
    for precision in ("0.1", "0.2"):
        _ask_for(page, precision)
    labels = 10 + _label_with_keys(windows, known, MOST_LABELS)
    assert 20 <= labels < MOST_LABELS
    # The page of the session was open all the while
    expect(readout).not_to_have_text(before)
    expect(page.locator("#state")).to_have_text("Precision reached")
    expect(page.locator("#chart svg").first).to_be_visible()
    _take_watching(page)
    certificate = _report_and_certificate(page, session, tmp_path)
    _verify(Site(Service(started.url, started.process), "", "default"), started, certificate)


def _take_watching(page: Page) -> None:
    if TAKEN:
        # How good the surrogate is comes a little later than the interval
        expect(page.locator("#health .verdict")).to_be_visible()
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    take(page, "watch")


def _window(new_context: Callable[..., BrowserContext]) -> Page:
    return new_context(viewport=WINDOW).new_page()


def _sign_in(page: Page, started: Server) -> None:
    shown = re.search(r"http\S+/login#invite=\S+", (started.folder / "server.log").read_text())
    assert shown is not None, "the server shows a link"
    page.goto(shown[0])
    page.wait_for_url(f"{started.url}/")


def _say_what_is_evaluated(page: Page, file: Path) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name="New session").click()
    page.get_by_label("A file", exact=True).check()
    page.set_input_files("#file", file)
    expect(page.locator("#checked")).to_contain_text(re.compile(r"1.?737 rows"))
    take(page, "file")
    page.get_by_role("button", name="Create the pool").click()
    expect(page.locator("#chosen-name")).to_have_text("digits")


def _plan_and_open(page: Page) -> str:
    """The id of the session."""
    page.get_by_role("textbox", name="Precision").fill("0.2")
    expect(page.locator("#plan-result")).to_be_visible(timeout=PLANNED_MS)
    page.get_by_role("button", name="Plan again").click()
    expect(page.locator("#plan-told")).to_contain_text("Simulated just now", timeout=PLANNED_MS)
    page.evaluate("scrollTo(0, 0)")
    take(page, "plan")
    page.get_by_label("Name of the session").fill("Digits by hand")
    page.get_by_role("button", name="Open the session").click()
    page.wait_for_url(re.compile(r"/sessions/ses_[0-9a-f]{32}$"))
    return page.url.rpartition("/")[2]


def _report_and_certificate(page: Page, session: str, folder: Path) -> Path:
    """The file of the final certificate."""
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Open the report").click()
    report = opened.value
    expect(report.locator(".claim")).to_contain_text("valid at every look")
    page.get_by_role("button", name="Close for good…").click()
    dialog = page.get_by_role("dialog", name="Close this session for good?")
    dialog.get_by_role("button", name="Close for good", exact=True).click()
    expect(page.locator("#state")).to_have_text("Closed")
    report.reload()
    expect(report.locator(".standing")).to_contain_text("Final")
    take(report, "report")
    with page.expect_download() as downloaded:
        page.get_by_role("link", name="Download the certificate").click()
    assert downloaded.value.suggested_filename == f"{session}.certificate.json"
    kept = folder / "certificate.json"
    downloaded.value.save_as(kept)
    return kept


def _digits_of(file: Path) -> dict[str, int]:
    """The true digit of every picture in the file."""
    labels = digits(0).labels
    seen = {
        (item := json.loads(line))["payload"]["image"]["src"]: labels[item["id"]]
        for line in file.read_text().splitlines()
    }
    assert len(seen) > 1700
    return seen


def _label_with_keys(windows: Sequence[Page], known: Mapping[str, int], most: int) -> int:
    """Type the digits that are seen, in the windows by turns, until there are enough."""
    for count in range(most):
        page = windows[count % len(windows)]
        # A window may have to wait for its next item when the service takes its time
        page.wait_for_selector(f"{ITEM} img, {ENOUGH}")
        if page.locator(ENOUGH).is_visible():
            expect(page.locator("#rest")).to_contain_text("The session has all the labels it needs")
            for window in windows:
                all_sent(window)
            return count
        told = page.locator("main").inner_text()
        assert not re.search(r"estimate|interval|precision", told, re.IGNORECASE)
        source = page.locator(f"{ITEM} img").get_attribute("src")
        press(page, str(known[str(source)]))
    return most


def _ask_for(page: Page, precision: str) -> None:
    page.get_by_role("button", name="New precision…").click()
    page.get_by_label("Width of the interval at which to stop").fill(precision)
    page.keyboard.press("Enter")
    points = re.compile(rf"{100 * float(precision):.0f}\spoints")
    expect(page.locator("#figures dt:text-is('Precision') + dd")).to_have_text(points)


def _verify(site: Site, started: Server, certificate: Path) -> None:
    """As somebody who trusts nobody: with the pool's columns, and with one digit changed."""
    document = json.loads(certificate.read_bytes())
    with site.client(started.key) as client:
        told = client.get(f"/v1/sessions/{document['session_id']}").raise_for_status().json()
        columns = client.get(f"/v1/pools/{told['pool_id']}/columns.npz").raise_for_status()
        key = client.get("/v1/certificates/key").raise_for_status().json()["public_key"]
    pool = certificate.with_name("pool.npz")
    pool.write_bytes(columns.content)
    trusted = certificate.with_name("issuer.pem")
    trusted.write_bytes(public_to_pem(bytes.fromhex(key)))
    whole = celeus("verify", str(certificate), "--pool", str(pool), "--public-key", str(trusted))
    assert whole.returncode == 0, whole.stdout + whole.stderr
    assert f"valid final certificate of {document['session_id']}" in whole.stdout
    changed = certificate.with_name("changed.json")
    changed.write_bytes(certificate.read_bytes().replace(b'"labels":', b'"labels":1', 1))
    spoilt = celeus("verify", str(changed), "--pool", str(pool))
    assert spoilt.returncode == 1
    assert "does not hold" in spoilt.stderr

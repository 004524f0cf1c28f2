"""Journeys over the wheel of a release, which carries one script for each page."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from playwright.sync_api import CDPSession, Page

from tests.browser.evaluations import moment
from tests.browser.items.test_maths import test_formulas_are_shown_in_texts_and_in_markdown
from tests.browser.labelling import ITEM, press, session_of, texts
from tests.browser.site import Site, running_pages
from tests.browser.test_label_items import test_an_item_is_shown_by_what_its_payload_holds
from tests.browser.test_labelling import (
    test_a_label_is_taken_back_after_a_reload_too,
    test_thirty_items_are_labelled_by_keyboard_in_two_windows_at_once,
)
from tests.browser.test_new_session import (
    test_a_dropped_file_becomes_a_pool_a_plan_and_a_session,
)
from tests.browser.test_session_page import test_a_label_moves_the_chart_the_figures_and_the_table
from tests.servers import Service
from tests.wheels import CHECKOUT, built

WEB = Path("app/celeus/web")
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not (CHECKOUT / WEB / "node_modules" / "esbuild").exists(),
        reason="Node or its packages are missing: make bundle",
    ),
]

SignedIn = Callable[..., Page]
LATENCY_MS = 400
MARK_ITEM = f"""
    new MutationObserver((_, watch) => {{
        if (document.querySelector("{ITEM}") === null) return;
        watch.disconnect();
        requestAnimationFrame(() => performance.mark("item"));
    }}).observe(document, {{ subtree: true, childList: true, attributes: true }});
"""

__all__ = [
    "test_a_dropped_file_becomes_a_pool_a_plan_and_a_session",
    "test_a_label_is_taken_back_after_a_reload_too",
    "test_a_label_moves_the_chart_the_figures_and_the_table",
    "test_an_item_is_shown_by_what_its_payload_holds",
    "test_formulas_are_shown_in_texts_and_in_markdown",
    "test_thirty_items_are_labelled_by_keyboard_in_two_windows_at_once",
]


@pytest.fixture(scope="module")
def running_site(
    postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, str]]:
    """A server out of a wheel that was made in a copy of the checkout."""
    folder = tmp_path_factory.mktemp("release")
    checkout = folder / "checkout"
    ignored = shutil.ignore_patterns("node_modules", "__pycache__", "bundle")
    for name in ("app", "docs", "alembic"):
        shutil.copytree(CHECKOUT / name, checkout / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", ".gitignore"):
        shutil.copy(CHECKOUT / name, checkout)
    web = checkout / WEB
    (web / "node_modules").symlink_to(CHECKOUT / WEB / "node_modules")
    subprocess.run([shutil.which("npm") or "npm", "run", "--silent", "bundle"], cwd=web, check=True)
    (web / "node_modules").unlink()
    with ZipFile(built(folder / "wheel", checkout)) as wheel:
        wheel.extractall(folder / "installed")
    with running_pages(postgres_url, folder, PYTHONPATH=str(folder / "installed")) as served:
        yield served


def slowed(page: Page) -> CDPSession:
    """Have every answer come `LATENCY_MS` later."""
    tools = page.context.new_cdp_session(page)
    tools.send("Network.enable")
    line = {"latency": LATENCY_MS, "downloadThroughput": -1, "uploadThroughput": -1}
    tools.send("Network.emulateNetworkConditions", {"offline": False, **line})
    return tools


def test_the_first_item_comes_after_the_page_its_script_and_a_draw(
    server: Site, signed_in: SignedIn, record_property: Callable[[str, object], None]
) -> None:
    session = session_of(server, texts(20))
    page = signed_in("label")
    page.add_init_script(MARK_ITEM)
    slowed(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    arrived: list[int] = []
    page.on("requestfinished", lambda request: arrived.append(request.sizes()["responseBodySize"]))
    page.goto(f"/label/{session}")
    item = moment(page, "item")
    told = (
        f"labelling page at {LATENCY_MS} ms latency: first item after {item:.0f} ms,"
        f" {len(asked)} requests, {sum(arrived)} bytes"
    )
    record_property("measured", told)
    scripts = [url for url in asked if url.endswith(".js")]
    assert [url.rpartition("/js/")[2] for url in scripts] == ["label.js"]
    press(page, "1")

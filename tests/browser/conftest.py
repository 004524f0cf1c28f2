"""A real server, and a real browser that looks at its pages as a person would."""

import asyncio
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Response,
    expect,
    sync_playwright,
)

from tests.browser.site import (
    NO_BROWSER,
    PATIENCE_MS,
    WIDE,
    Complaints,
    Site,
    running_pages,
)
from tests.servers import Service

CHROMIUM = Path(
    os.environ.get("CELEUS_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
)
REQUIRED = os.environ.get("CELEUS_REQUIRE_BROWSER") == "1"
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def pytest_runtest_setup() -> None:
    """Where there is no browser its tests are skipped, or fail where they are required."""
    if CHROMIUM.is_file():
        return
    told = f"{NO_BROWSER} at {CHROMIUM}; CELEUS_CHROMIUM names another"
    if REQUIRED:
        pytest.fail(told, pytrace=False)
    pytest.skip(told)


@pytest.fixture(scope="session")
def running_site(
    postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, str]]:
    """One real server for all tests in the browser, on a database of its own."""
    with running_pages(postgres_url, tmp_path_factory.mktemp("signing")) as served:
        yield served


@pytest.fixture
def server(running_site: tuple[Service, str]) -> Site:
    """The server, with a project nobody else uses."""
    service, database_url = running_site
    return Site(service, database_url, f"project-{secrets.token_hex(4)}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """Chromium for a whole run, and the event loop by which Playwright talks to it."""
    with sync_playwright() as playwright:
        loop = asyncio.get_running_loop()
        expect.set_options(timeout=PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        asyncio.events._set_running_loop(None)
        yield browser, loop
        asyncio.events._set_running_loop(loop)
        browser.close()


@pytest.fixture
def browser(chromium: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """The browser; Playwright's loop counts as running during this test alone.

    Otherwise asynchronous tests that come later in the same process could not run theirs.
    """
    browser, loop = chromium
    asyncio.events._set_running_loop(loop)
    yield browser
    asyncio.events._set_running_loop(None)


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    """What the browser's console and network complained about; none may be left unexplained."""
    complaints = Complaints()
    yield complaints
    assert complaints.unexpected == []


@pytest.fixture
def new_context(
    browser: Browser, server: Site, complaints: Complaints
) -> Iterator[Callable[..., BrowserContext]]:
    """`new_context(viewport=NARROW, color_scheme="dark")`: a browser that knows nobody yet."""
    made: list[BrowserContext] = []

    def new(**options: object) -> BrowserContext:
        chosen = {"base_url": server.url, "viewport": WIDE, "reduced_motion": "reduce"} | options
        context = browser.new_context(**chosen)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE_MS)
        _listen(context, server.url, complaints)
        made.append(context)
        return context

    yield new
    for context in made:
        context.close()


@pytest.fixture
def page(new_context: Callable[..., BrowserContext]) -> Page:
    """A page of a browser in which nobody is signed in."""
    return new_context().new_page()


@pytest.fixture
def signed_in(new_context: Callable[..., BrowserContext], server: Site) -> Callable[..., Page]:
    """`signed_in("label", viewport=NARROW)`: a page of somebody with these scopes, or with all."""

    def page_of(*scopes: str, token: str | None = None, **options: object) -> Page:
        shown = token or server.key(*scopes)
        answer = httpx.post(f"{server.url}/login", data={"key": shown}, timeout=90)
        assert answer.status_code == 303, answer.text
        context = new_context(**options)
        cookie = answer.cookies["celeus"]
        context.add_cookies([{"name": "celeus", "value": cookie, "url": server.url}])
        return context.new_page()

    return page_of


def _listen(context: BrowserContext, url: str, complaints: Complaints) -> None:
    own = urlsplit(url).netloc

    def request_begun(address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.netloc != own:
            complaints.heard.append(f"asked elsewhere: {address}")

    def answered(response: Response) -> None:
        if response.ok and response.url.endswith("/new/plan"):
            complaints.planned(response.url)

    def listen(page: Page) -> None:
        page.on("pageerror", lambda error: complaints.heard.append(f"error: {error}"))

    context.on("page", listen)
    context.on(
        "console",
        lambda message: (
            complaints.heard.append(f"console: {message.text} ({message.location['url']})")
            if message.type in {"error", "warning"}
            else None
        ),
    )
    context.on("request", lambda request: request_begun(request.url))
    context.on("response", answered)

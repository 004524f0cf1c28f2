"""A service that says nothing any more: every page that shows live things tells, and soon."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.evaluations import Evaluation, barriers
from tests.browser.labelling import ITEM
from tests.browser.site import NARROW, Complaints, Site
from tests.faults.proxies import Link, Proxy, before_port
from tests.servers import Service, again, running_services

# Each starts a server, and waits for what pages wait for
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300)]
TOLD_WITHIN = 10.0
BACK_WITHIN_MS = 15_000
GOES_AWAY = ("net::ERR_", "Failed to load resource", "asked elsewhere")
SILENT = "The service has not answered since"
STALLED = "No live news has come since"
BEGUN = {
    "dashboard": "tr[data-id] a",
    "session": "#chart-readout:has-text('after 20 labels')",
    "label": ITEM,
    "judged": "#told:has-text('20 judgements')",
    "judgement": "#history",
    "new session": ".pool-name",
    "items": "#items li",
}
Opened = Callable[..., Page]


@dataclass
class Gateway:
    """A proxy before the service, in a thread of its own, that stops to pass on what it is told."""

    port: int = 0
    holds: bool = False
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    @contextmanager
    def before(self, service: Service) -> Iterator[str]:
        """Where it answers."""
        stack = AsyncExitStack()

        async def begin() -> None:
            port = urlsplit(service.url).port
            assert port is not None
            proxy, self.port = await stack.enter_async_context(before_port(port))
            self._listen(proxy)

        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(begin(), self._loop).result(30)
            yield f"http://127.0.0.1:{self.port}"
        finally:
            asyncio.run_coroutine_threadsafe(stack.aclose(), self._loop).result(30)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(30)
            self._loop.close()

    def _listen(self, proxy: Proxy) -> None:
        async def asked(link: Link, piece: bytes) -> None:
            if b"/stream" in piece:
                link.notes.add("stream")

        async def answered(link: Link, _piece: bytes) -> None:
            while self.holds and "stream" in link.notes:  # noqa: ASYNC110 - a thread sets it
                await asyncio.sleep(0.05)

        proxy.asked, proxy.answered = asked, answered


@pytest.fixture
def service(server: Site) -> Iterator[Service]:
    """A server that a test may stop."""
    with running_services(1, server.database_url) as (service,):
        yield service


@pytest.fixture
def opened(
    server: Site, new_context: Callable[..., BrowserContext], complaints: Complaints
) -> Opened:
    """`opened(url, kind)`: the page of this kind, of a server at an address of its own."""
    complaints.expect(*GOES_AWAY)
    with server.client() as client:
        evaluation = Evaluation(client, 60)
        session = evaluation.opened(name="Exam", precision=0.05)
        evaluation.judged(session, 20)
        table = evaluation.opened(name="Table", account="together")
    paths = {
        "dashboard": "/",
        "session": f"/sessions/{session}",
        "label": f"/label/{session}",
        "judged": f"/sessions/{session}/judged",
        "judgement": f"/sessions/{session}/judged/1",
        "new session": "/sessions/new",
        "items": f"/sessions/{table}/items",
    }

    def page_of(url: str, kind: str, **options: object) -> Page:
        answer = httpx.post(f"{url}/login", data={"key": server.key()}, timeout=30)
        context = new_context(base_url=url, **options)
        cookie: Any = {"name": "celeus", "value": answer.cookies["celeus"], "url": url}
        context.add_cookies([cookie])
        page = context.new_page()
        page.goto(paths[kind])
        expect(page.locator(BEGUN[kind]).first).to_be_visible()
        return page

    return page_of


class BadGateway(BaseHTTPRequestHandler):
    """What a proxy says whose service is gone."""

    def do_GET(self) -> None:
        """Refuse."""
        self.send_error(502)

    do_POST = do_GET  # noqa: N815 - the library's own

    def log_message(self, *_: object) -> None:
        """Say nothing of it."""


@contextmanager
def refusing(url: str) -> Iterator[None]:
    """Bad Gateway to everybody at an address."""
    port = urlsplit(url).port
    assert port is not None
    with ThreadingHTTPServer(("127.0.0.1", port), BadGateway) as gateway:
        thread = threading.Thread(target=gateway.serve_forever)
        thread.start()
        try:
            yield
        finally:
            gateway.shutdown()
            thread.join(30)


def told_after(page: Page) -> float:
    """Seconds from `listened` until the page said so."""
    seconds = page.evaluate("window.told")
    assert isinstance(seconds, int | float)
    return seconds


def listened(page: Page, words: str = SILENT) -> None:
    """From now on the page counts the seconds until it says so."""
    page.evaluate(
        """words => {
            const began = performance.now();
            window.told = new Promise(tell => {
                new MutationObserver((_, observer) => {
                    if (!document.body.textContent.includes(words)) return;
                    observer.disconnect();
                    tell((performance.now() - began) / 1000);
                }).observe(document.body, { childList: true, subtree: true, characterData: true });
            });
        }""",
        words,
    )


def taken_back(page: Page) -> None:
    """Return once the page no longer says so."""
    expect(page.get_by_text(SILENT)).to_have_count(0, timeout=BACK_WITHIN_MS)
    expect(page.locator("#silence")).to_be_empty(timeout=BACK_WITHIN_MS)


LIVE = {
    "stopped": ("dashboard", "session", "label", "new session", "items"),
    "killed": ("dashboard", "session", "label", "judged", "judgement"),
    "offline": ("dashboard",),
    "bad gateway": ("dashboard",),
}


@contextmanager
def silent(fault: str, service: Service, pages: Iterable[Page]) -> Iterator[None]:
    """The service says nothing to these pages in the block, and answers behind it."""
    if fault == "stopped":
        service.process.send_signal(signal.SIGSTOP)
        yield
        service.process.send_signal(signal.SIGCONT)
    elif fault == "offline":
        for page in pages:
            page.context.set_offline(True)
        yield
        for page in pages:
            page.context.set_offline(False)
    else:
        service.kill()
        with refusing(service.url) if fault == "bad gateway" else nullcontext():
            yield


@pytest.mark.parametrize(("fault", "kinds"), LIVE.items(), ids=LIVE)
def test_every_live_page_says_soon_that_the_service_is_silent(  # noqa: PLR0913, PLR0917 - fixtures
    fault: str,
    kinds: Iterable[str],
    service: Service,
    server: Site,
    opened: Opened,
    record_property: Callable[[str, object], None],
) -> None:
    pages = {kind: opened(service.url, kind) for kind in kinds}
    for page in pages.values():
        listened(page)
    with silent(fault, service, pages.values()):
        for page in pages.values():
            expect(page.get_by_text(SILENT)).to_be_visible()
    seconds = {kind: told_after(page) for kind, page in pages.items()}
    gone = service.process.poll() is not None
    with again(service, server.database_url) if gone else nullcontext():
        for page in pages.values():
            taken_back(page)
    for kind, one in seconds.items():
        record_property("measured", f"{kind}, {fault}: told after {one:.1f} s")
    assert max(seconds.values()) < TOLD_WITHIN


def test_a_stream_that_says_nothing_is_told_of_and_asked_for_anew(
    server: Site, opened: Opened, record_property: Callable[[str, object], None]
) -> None:
    gateway = Gateway()
    with gateway.before(server.service) as url:
        page = opened(url, "session")
        page.wait_for_timeout(5_000)
        expect(page.locator("#silence")).to_be_empty()
        listened(page, STALLED)
        gateway.holds = True
        expect(page.get_by_text(STALLED)).to_be_visible()
        seconds = told_after(page)
        gateway.holds = False
        taken_back(page)
    record_property("measured", f"session, silent stream: told after {seconds:.1f} s")
    assert seconds < TOLD_WITHIN


def test_one_slow_answer_is_not_taken_for_silence(server: Site, opened: Opened) -> None:
    page = opened(server.url, "dashboard")
    page.evaluate(
        """() => {
            window.seen = [];
            const place = document.getElementById("silence");
            new MutationObserver(() => window.seen.push(place.textContent))
                .observe(place, { childList: true });
        }"""
    )
    held: list[Route] = []

    def slow(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route(f"{server.url}/", slow)
    page.wait_for_timeout(11_000)
    held[0].continue_()
    page.wait_for_timeout(1_000)
    assert page.evaluate("window.seen") == []


def test_what_says_so_covers_nothing_and_is_readable(service: Service, opened: Opened) -> None:
    pages = [
        opened(service.url, "session", viewport=NARROW, color_scheme=scheme)
        for scheme in ("light", "dark")
    ]
    service.process.send_signal(signal.SIGSTOP)
    for page in pages:
        expect(page.locator("#silence")).to_contain_text(SILENT)
        expect(page.get_by_role("status").filter(has_text=SILENT)).to_have_count(1)
        assert barriers(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    service.process.send_signal(signal.SIGCONT)
    for page in pages:
        taken_back(page)

"""The cookie of a browser, and what tells that one of our own pages sent a request."""

import hmac
import re
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

from starlette.types import Message, Scope, Send

from celeus.errors import CsrfMissing
from celeus.operations.access.browsers import SignedIn
from celeus.operations.runtime.caller_cache import Caller

COOKIE = "celeus"
CSRF_HEADER = "X-CSRF-Token"
INTERFACE = "/v1/"
"""Prefix of the interface; pages have every other path."""
READING = frozenset({"GET", "HEAD"})
"""Methods that change nothing, and therefore need not show which page sent them."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


def headers_of(scope: Scope, name: bytes) -> list[str]:
    """Every value of a header, in the order they came."""
    return [value.decode("latin-1") for given, value in scope["headers"] if given == name]


def cookie_of(scope: Scope) -> str | None:
    """The cookie a browser was given, of which there must be exactly one."""
    pairs = [
        pair.strip().partition("=")
        for header in headers_of(scope, b"cookie")
        for pair in header.split(";")
    ]
    ours = [value for name, _, value in pairs if name == COOKIE]
    return ours[0] if len(ours) == 1 and _TOKEN.fullmatch(ours[0]) else None


def require_own_page(scope: Scope, caller: Caller, public_url: str | None) -> None:
    """Refuse what would change something, unless a page made for this very browser sent it.

    A form, which goes to a page, shows in its body what a script shows in a header: `web.forms`.
    """
    if caller.browser is None or scope["method"] in READING:
        return
    if scope["path"].startswith(INTERFACE) and not shows_page(scope, caller.browser.csrf):
        raise CsrfMissing(
            "a write by cookie has to show what stands in the page that sends it",
            rule=f"one header `{CSRF_HEADER}` with the content of the page's `<meta name=csrf>`",
        )
    require_own_origin(scope, public_url)


def shows_page(scope: Scope, csrf: str) -> bool:
    """Return whether a header shows what stands in the pages of the browser with this token."""
    shown = headers_of(scope, CSRF_HEADER.lower().encode())
    return len(shown) == 1 and hmac.compare_digest(shown[0].encode(), csrf.encode())


def require_own_origin(scope: Scope, public_url: str | None) -> None:
    """Refuse what a page of somebody else had the browser send.

    A browser says itself how the page is related to us; one that does not, where it comes from.
    Whoever says neither is no browser.
    """
    related = headers_of(scope, b"sec-fetch-site")
    if related:
        is_own = related in (["same-origin"], ["none"])
    else:
        hosts = {host.lower() for host in headers_of(scope, b"host")}
        hosts |= {urlsplit(public_url).netloc.lower()} if public_url else set()
        is_own = all(_host(origin) in hosts for origin in headers_of(scope, b"origin"))
    if not is_own:
        raise CsrfMissing(
            "a page of another place had the browser send this", rule="a page of this service"
        )


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def given_cookie(scope: Scope, signed_in: SignedIn) -> str:
    """`Set-Cookie` that has the browser go on signed in."""
    return _set_cookie(scope, signed_in.token, signed_in.seconds)


def taken_cookie(scope: Scope) -> str:
    """`Set-Cookie` that has the browser forget."""
    return _set_cookie(scope, "", 0)


def _set_cookie(scope: Scope, value: str, seconds: int) -> str:
    cookie = SimpleCookie({COOKIE: value})
    cookie[COOKIE] |= {
        "path": "/",
        "max-age": seconds,
        "httponly": True,
        "samesite": "Strict",
        "secure": scope.get("scheme") == "https",
    }
    return cookie.output(header="").strip()


def kept_private(send: Send) -> Send:
    """Have what is answered to a signed-in browser be kept by nobody for anybody else.

    Programs keep nothing unasked; a browser is shared by whoever signs in at it.
    """

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message.setdefault("headers", [])
            if not any(name.lower() == b"cache-control" for name, _ in headers):
                message["headers"] = [*headers, (b"cache-control", b"private, no-cache")]
        await send(message)

    return send_with_headers

"""The address of a service, the key for it, and the headers of its answers."""

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version

import httpx2

from celeus.errors import InvalidValue
from celeus.shorten import printable

HERE = "http://127.0.0.1:8000"
"""Address at which `celeus serve` listens by default."""
REQUEST_SECONDS = 60.0
MOST_CONNECTIONS = 100
LIMITS = httpx2.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_CONNECTIONS)
"""A judge in every connection, and none is closed between two labels."""
MOST_LETTERS = 300
_SESSION = re.compile(r"ses_[0-9a-f]{32}")
_KEY = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Service:
    """An address and the headers that every request to it has."""

    url: str
    headers: Mapping[str, str]

    @classmethod
    def of(cls, url: str | None, key: str | None) -> "Service":
        """Return the service as given, else of CELEUS_URL and CELEUS_KEY; refuses wrong ones."""
        url = (url or os.environ.get("CELEUS_URL") or HERE).rstrip("/")
        key = key or os.environ.get("CELEUS_KEY") or None
        check_service(url, key)
        if not key:
            raise InvalidValue(
                "there is no key: give one as `key`, or in CELEUS_KEY", field="CELEUS_KEY"
            )
        agent = f"celeus/{own_version()}"
        return cls(url, {"Authorization": f"Bearer {key}", "User-Agent": agent})


def own_version() -> str:
    """Version of the installed package, 0 of a checkout that was never installed."""
    try:
        return version("celeus")
    except PackageNotFoundError:
        return "0"


def check_service(url: str, key: str | None) -> None:
    """Refuse what is no address, and no key."""
    if not _is_address(url):
        rule = f"an address such as {HERE}, without user and query"
        raise InvalidValue(f"url must be {rule}", field="url", rule=rule)
    if key is not None and _KEY.fullmatch(key) is None:
        raise InvalidValue("the key holds characters that no key has", field="CELEUS_KEY")


def check_session(session: str) -> None:
    """Refuse what is no id of a session."""
    if _SESSION.fullmatch(session) is None:
        rule = "`ses_` and 32 hexadecimal digits"
        raise InvalidValue(f"session must be {rule}", field="session", rule=rule, value=session)


def seconds(retry_after: str | None) -> float:
    """The header as seconds from now, 0.0 without one: it is a number of them or a date."""
    if retry_after is None:
        return 0.0
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return 0.0


def reason(error: BaseException) -> str:
    """The operating system's message beneath those of libraries."""
    while error.__cause__ is not None:
        error = error.__cause__
    return plain(str(error)) or type(error).__name__


def plain(text: str) -> str:
    """A stranger's text on one line, without control characters."""
    text_only = "".join(letter if letter.isprintable() else " " for letter in printable(text))
    return " ".join(text_only.split())[:MOST_LETTERS]


def _is_address(url: str) -> bool:
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL:
        return False
    # What else an address may hold could be a secret, and an address is printed
    bare = not (parts.userinfo or parts.query or parts.fragment)
    return parts.scheme in {"http", "https"} and parts.host != "" and bare

"""One document of a service over HTTP, in bounded time, or a sentence why there is none."""

import http.client
import json
import re
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from app.errors import InvalidValue
from app.quoting import printable

MOST_BYTES = 4 * 1024 * 1024
MOST_LETTERS = 300
ASK_AGAIN = frozenset({429, 500, 502, 503, 504})
"""Refusals that may be over in a moment; any other stays one."""
TEXTS = ("id", "target", "state", "policy", "method_version")
NUMBERS = ("alpha", "lower", "upper", "estimate", "round", "revision")
ANSWERS = ("yes", "no", "undecided")
_SESSION = re.compile(r"ses_[0-9a-f]{32}")
_KEY = re.compile(r"[!-~]+")


class Unanswered(Exception):
    """There is no document; ``status`` is None when nobody answered at all.

    ``retry_after`` is how many seconds the service asks to be left alone.
    """

    def __init__(
        self, message: str, *, status: int | None = None, retry_after: float = 0.0
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after

    @property
    def passing(self) -> bool:
        """It may be over in a moment."""
        return self.status is None or self.status in ASK_AGAIN


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A key is for the server it was given for, and for no other it may point to."""

    def redirect_request(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 -- whatever urllib passes
        """None: the redirection is the answer."""


@dataclass(frozen=True, slots=True)
class Server:
    """A session at a service, read with a key."""

    url: str
    session: str
    key: str | None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            rule = "an address such as http://127.0.0.1:8000"
            raise InvalidValue(f"url must be {rule}", field="url", rule=rule, value=self.url)
        if _SESSION.fullmatch(self.session) is None:
            rule = "`ses_` and 32 hexadecimal digits"
            raise InvalidValue(
                f"session must be {rule}", field="session", rule=rule, value=self.session
            )
        if self.key is not None and _KEY.fullmatch(self.key) is None:
            raise InvalidValue("the key is none: it has other than visible characters", field="key")

    def document(self, seconds: float) -> dict[str, Any]:
        """Where the session stands, within ``seconds``; raises Unanswered."""
        found: list[dict[str, Any] | Unanswered] = []

        def ask() -> None:
            try:
                found.append(self._asked(seconds))
            except Unanswered as error:
                found.append(error)

        # Timeouts of sockets start anew with every byte, and a name may take its own time to be
        # found: only a thread that can be left behind is over when it should be.
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(seconds)
        if not found:
            message = f"{self.url} does not answer within {seconds:.3g} seconds"
            raise Unanswered(message)
        answer = found[0]
        if isinstance(answer, Unanswered):
            raise answer
        return answer

    def _asked(self, seconds: float) -> dict[str, Any]:
        address = f"{self.url.rstrip('/')}/v1/sessions/{self.session}"
        headers = {"Accept": "application/json", "Cache-Control": "no-cache"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 -- http or https
        opener = urllib.request.build_opener(_NoRedirects)
        try:
            with opener.open(request, timeout=seconds) as answer:
                body = answer.read(MOST_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(error) from None
        except urllib.error.URLError as error:
            raise Unanswered(f"{self.url} cannot be reached: {_reason(error.reason)}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unanswered(f"{self.url} cannot be reached: {_reason(error)}") from None
        return self._read(body)

    def _read(self, body: bytes) -> dict[str, Any]:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if isinstance(document, dict):
            # A session last written to by an older service says nothing of decisions.
            document.setdefault("decisions", [])
        if not _is_session(document):
            message = f"{self.url} answers with something that is not a session"
            raise Unanswered(message, status=200)
        session: dict[str, Any] = document
        return session


def _is_session(document: object) -> bool:
    """What is read here is there, and of its type; anybody may answer at an address."""
    if not isinstance(document, dict) or not isinstance(document.get("decisions"), list):
        return False
    return (
        all(_is_word(document.get(name)) for name in TEXTS)
        and all(isinstance(document.get(name), float | int) for name in NUMBERS)
        and all(_is_decision(one) for one in document["decisions"])
    )


def _is_word(text: object) -> bool:
    return isinstance(text, str) and plain(text) == text


def _is_decision(one: object) -> bool:
    return (
        isinstance(one, dict)
        and one.get("side") in ("at_most", "at_least")
        and isinstance(one.get("threshold"), float | int)
        and one.get("answer") in ANSWERS
        and isinstance(one.get("round"), int | None)
    )


def _refused(error: urllib.error.HTTPError) -> Unanswered:
    try:
        problem = json.loads(error.read(MOST_BYTES))
        detail = str(problem["detail"])
    except (OSError, http.client.HTTPException, ValueError, RecursionError, KeyError, TypeError):
        detail = error.reason
    text = plain(detail)
    after = _seconds(error.headers.get("Retry-After"))
    return Unanswered(
        f"the service answers {error.code}: {text}", status=error.code, retry_after=after
    )


def _seconds(retry_after: str | None) -> float:
    """The header as seconds from now: it is a number of them or a date."""
    if retry_after is None:
        return 0.0
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return 0.0


def _reason(error: object) -> str:
    return plain(str(error)) or type(error).__name__


def plain(text: str) -> str:
    """What a stranger wrote, on one line that no terminal takes for an order."""
    kept = "".join(letter if letter.isprintable() else " " for letter in printable(text))
    return " ".join(kept.split())[:MOST_LETTERS]

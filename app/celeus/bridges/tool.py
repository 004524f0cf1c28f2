"""A client of a tool's HTTP API: JSON in, JSON out, and no secret in any message.

Some tools name traces, runs and records by 32 hexadecimal digits: marks become such ids.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Self

import httpx2

from celeus.client.service import plain, reason
from celeus.errors import InvalidValue, Unauthenticated, Unavailable

REQUEST_SECONDS = 60.0
PASSING = frozenset({408, 425, 429})
SERVER_ERRORS = 500
REFUSED = frozenset({401, 403})

Headers = Mapping[str, str]


class ToolUnavailable(Unavailable):
    """Raised when a tool does not answer now; whether the request took effect is not known."""


class Tool:
    """A tool at ``url``. ``name`` is what messages call it, ``hint`` where its secret comes from.

    ``sign`` gives the headers that let a request in; it is asked again when the tool refuses them.
    Raises `ToolUnavailable`, `celeus.Refusal`.
    """

    def __init__(self, name: str, url: str, sign: Callable[["Tool"], Headers], hint: str) -> None:
        self.name = name
        self.url = _checked(name, url)
        self._sign = sign
        self._hint = hint
        self._headers: Headers | None = None
        self._http = httpx2.Client(timeout=REQUEST_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str, **query: object) -> Any:  # noqa: ANN401 -- JSON
        """Return the JSON at a path; parameters that are None are left out of the query."""
        given = {name: value for name, value in query.items() if value is not None}
        return self.ask("GET", path, query=given)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, Any] | None = None,
        *,
        known: int | None = None,
    ) -> Any:  # noqa: ANN401 -- JSON
        """Return the answer as JSON, None if it has no body or the status ``known``."""
        signed_before = self._headers is not None
        if self._headers is None:
            self._headers = self._sign(self)
        answer = self.send(method, path, body, query, self._headers)
        if answer.status_code in REFUSED and signed_before:
            # What let it in may have run out
            self._headers = self._sign(self)
            answer = self.send(method, path, body, query, self._headers)
        return None if answer.status_code == known else self.read(answer)

    def send(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, Any] | None = None,
        headers: Headers | None = None,
    ) -> httpx2.Response:
        """Send a request, return its answer of any status; raises `ToolUnavailable` for none."""
        try:
            return self._http.request(
                method, self.url + path, params=query, headers=headers, json=body
            )
        except httpx2.HTTPError as error:
            raise ToolUnavailable(
                f"{self.name} cannot be reached at {self.url}: {reason(error)}"
            ) from None

    def read(self, answer: httpx2.Response) -> Any:  # noqa: ANN401 -- JSON
        """Return the JSON of an answer; raises for every status that is not a success."""
        status = answer.status_code
        if status in PASSING or status >= SERVER_ERRORS:
            raise ToolUnavailable(f"{self.name} at {self.url} answers {status}")
        if status in REFUSED:
            raise Unauthenticated(f"{self.name} at {self.url} refuses ({status}): {self._hint}")
        if not answer.is_success:
            path = answer.request.url.path
            raise InvalidValue(
                f"{self.name} answers {status} to {answer.request.method} {path}:"
                f" {plain(self._without_secret(answer.text))}"
            )
        try:
            return answer.json() if answer.content else None
        except (ValueError, RecursionError):
            raise InvalidValue(f"{self.url} does not speak as {self.name} does") from None

    def _without_secret(self, text: str) -> str:
        """Return a tool's text with the secrets of the request's headers removed."""
        for value in (self._headers or {}).values():
            text = text.replace(value.split()[-1], "…")
        return text


def _checked(name: str, url: str) -> str:
    rule = "an address such as http://127.0.0.1:8080"
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL:
        parts = httpx2.URL("")
    if parts.scheme not in {"http", "https"} or not parts.host or parts.userinfo:
        message = f"the address of {name} must be {rule}"
        raise InvalidValue(message, field="tool_url", rule=rule)
    return url.rstrip("/")


_SESSION_DIGITS, _ROUND_DIGITS = 22, 9


def id_of(mark: str) -> str:
    """The id of a mark: the same whenever it is asked for, and another one for every mark."""
    session, _, number = mark.partition("/")
    blind = number.startswith("b")
    round_ = int(number.removeprefix("b"))
    return f"{_prefix(session)}{int(blind)}{round_:0{_ROUND_DIGITS}x}"


def mark_of(session: str, id_: str) -> str | None:
    """Return the mark that has this id, None for an id of another session or of no bridge."""
    digits = id_.replace("-", "").lower()
    number = digits.removeprefix(_prefix(session))
    if number == digits or len(number) != _ROUND_DIGITS + 1:
        return None
    return f"{session}/{'b' if number[0] == '1' else ''}{int(number[1:], 16)}"


def _prefix(session: str) -> str:
    return hashlib.sha256(session.encode()).hexdigest()[:_SESSION_DIGITS]

"""HTTP client of the gate: one document of a service in bounded time, or the reason why not."""

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any

import httpx2

from celeus.client.service import (
    ASK_AGAIN,
    check_service,
    check_session,
    plain,
    reason,
    seconds,
)
from celeus.errors import InvalidValue

MOST_BYTES = 4 * 1024 * 1024
MOST_WHOLE = 2**53
TEXTS = ("id", "target", "state", "policy", "method_version")
NUMBERS = ("alpha", "lower", "upper", "estimate")
WHOLE_NUMBERS = ("round", "revision", "changes")
DEFAULTS = {
    "decisions": [],
    "fixed": False,
    "changes": 0,
    "verdict": None,
    "systems": None,
    "score": None,
    "sentence": None,
}
"""What a session means that was last written to by an older service and says nothing of them."""
ANSWERS = ("yes", "no", "undecided")
VERDICTS = ("a_at_least_as_good", "b_at_least_as_good", "equivalent", "undecided")


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
        """Whether a retry may succeed."""
        return self.status is None or self.status in ASK_AGAIN


@dataclass(frozen=True, slots=True)
class Server:
    """A session at a service, read with a key."""

    url: str
    session: str
    key: str | None

    def __post_init__(self) -> None:
        check_service(self.url, self.key)
        check_session(self.session)

    def document(self, within: float) -> dict[str, Any]:
        """Where the session stands, within so many seconds; raises Unanswered."""
        return self._session(ask(self.url, f"/v1/sessions/{self.session}", self.key, within))

    def _session(self, document: object) -> dict[str, Any]:
        session = DEFAULTS | document if isinstance(document, dict) else {}
        several = {"best": "seeks the best of several systems", "table": "makes a table of claims"}
        kind = next((it for it in several if isinstance(session.get(it), dict)), None)
        if kind is not None and session.get("id") == self.session:
            message = f"{self.session} {several[kind]}: there is no single interval to ask"
            raise InvalidValue(message, field="session", rule="a session on one system, or on two")
        if not _is_session(session) or session["id"] != self.session:
            message = f"{self.url} answers with something that is not {self.session}"
            raise Unanswered(message, status=200)
        return session


def ask(url: str, path: str, key: str | None, within: float) -> Any:  # noqa: ANN401 -- JSON
    """The JSON that a service answers within so many seconds, None for what is none.

    Raises Unanswered.
    """
    try:
        # Of all requests: a timeout of the socket starts anew with every byte
        answer, body = asyncio.run(asyncio.wait_for(_request(url, path, key), within))
    except TimeoutError:
        message = f"{url} does not answer within {within:.3g} seconds"
        raise Unanswered(message) from None
    except httpx2.HTTPError as error:
        raise Unanswered(f"{url} cannot be reached: {reason(error)}") from None
    if answer.status_code != httpx2.codes.OK:
        raise _refusal(answer, body)
    return _json(body)


async def _request(url: str, path: str, key: str | None) -> tuple[httpx2.Response, bytes]:
    """The answer and the beginning of its body; redirections are not followed.

    A key is for the server it was given for, and for no other one it points to.
    """
    headers = {"Cache-Control": "no-cache", "Accept-Encoding": "identity"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    body = b""
    async with (
        httpx2.AsyncClient(timeout=None) as client,
        client.stream("GET", url.rstrip("/") + path, headers=headers) as answer,
    ):
        async for part in answer.aiter_raw():
            body += part
            if len(body) > MOST_BYTES:
                break
    return answer, body


def _json(body: bytes) -> Any:  # noqa: ANN401 -- JSON
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _is_session(document: dict[str, Any]) -> bool:
    """What is read here is there, and may be so in a session; anybody may answer at an address."""
    return (
        all(_is_word(document.get(name)) for name in TEXTS)
        and all(_is_number(document.get(name)) for name in NUMBERS)
        and all(_is_whole(document.get(name)) for name in WHOLE_NUMBERS)
        and document["lower"] <= document["upper"]
        and 0 < document["alpha"] < 1
        and isinstance(document["fixed"], bool)
        and isinstance(document["decisions"], list)
        and all(map(_is_decision, document["decisions"]))
        and _is_verdict(document["verdict"])
        and _are_systems(document["systems"])
        and _is_score(document["score"])
        and isinstance(document["sentence"], str | None)
    )


def _is_word(text: object) -> bool:
    return isinstance(text, str) and plain(text) == text


def _is_number(value: object) -> bool:
    """Whether it is a finite float, or a whole number that is one; True and False are none."""
    return type(value) in (float, int) and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def _is_whole(value: object) -> bool:
    return type(value) is int and 0 <= value < MOST_WHOLE


def _is_decision(one: object) -> bool:
    return (
        isinstance(one, dict)
        and one.get("side") in ("at_most", "at_least")
        and _is_number(one.get("threshold"))
        and one.get("answer") in ANSWERS
        and (one.get("round") is None or _is_whole(one["round"]))
    )


def _is_verdict(one: object) -> bool:
    return one is None or (
        isinstance(one, dict)
        and _is_number(one.get("margin"))
        and one["margin"] >= 0
        and one.get("answer") in VERDICTS
        and (one.get("round") is None or _is_whole(one["round"]))
    )


def _are_systems(names: object) -> bool:
    return names is None or (
        isinstance(names, dict) and all(isinstance(names.get(side), str) for side in ("a", "b"))
    )


def _is_score(one: object) -> bool:
    return one is None or (
        isinstance(one, dict)
        and all(isinstance(one.get(name), str) for name in ("name", "unit"))
        and all(_is_number(one.get(name)) for name in ("estimate", "lower", "upper"))
        and one["lower"] <= one["upper"]
    )


def _refusal(answer: httpx2.Response, body: bytes) -> Unanswered:
    problem = _json(body)
    detail = problem.get("detail") if isinstance(problem, dict) else None
    return Unanswered(
        f"the service answers {answer.status_code}: {plain(str(detail or answer.reason_phrase))}",
        status=answer.status_code,
        retry_after=seconds(answer.headers.get("Retry-After")),
    )

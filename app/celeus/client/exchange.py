"""Requests one after the other, as a generator that yields each and is sent its answer.

Nothing here sends anything: a client runs such a flow to its end, blocking or not, so that both
kinds of client try again, page and judge by the same code.
"""

import json
import random
import re
import uuid
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

from celeus.client.refusals import Problem, Unanswered, Unreachable, problem_of
from celeus.client.service import own_version, seconds
from celeus.errors import InvalidValue

TRIES = 5
PATIENCE_SECONDS = 300.0
"""Seconds after the first failure for which judges wait until a service is back."""
AWAY = frozenset({502, 503, 504})
"""Statuses of a service, or of a proxy before it, while it starts or stops."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 8.0
LONGEST_WAIT = 60.0
"""Longest `Retry-After`, in seconds, after which a request is sent again."""
KEEPS_ANSWERS = re.compile(
    r"/v1/(pools|pool-files|sessions|keys|invitations|pools/[^/?]+/items|sessions/[^/?]+/claims)(\?.*)?"
)
"""Paths of creations; elsewhere a service refuses an `Idempotency-Key`."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """A request; ``path`` begins after the address.

    The body is ``body``, or the ``parts`` read anew each time it is sent. ``seconds`` is how long
    the answer may take where it takes longer than others.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    parts: Callable[[], Iterable[bytes]] | None = None
    body: bytes | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a service: its status, headers and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def success(self) -> bool:
        """True if the request was carried out."""
        return 200 <= self.status < 300

    def document(self) -> Any:  # noqa: ANN401 -- JSON
        """The body as JSON; raises Unreachable for what is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise Unreachable("the answer is no JSON: this is no Celeus service") from None

    def problem(self) -> Problem:
        """The refusal that it is."""
        try:
            body = json.loads(self.body)
        except (ValueError, RecursionError):
            body = None
        asked = seconds(self.headers.get("retry-after"))
        return problem_of(self.status, body if isinstance(body, dict) else {}, retry_after=asked)


@dataclass(frozen=True, slots=True)
class LostAnswer:
    """No answer came; whether the request took effect is not known."""

    reason: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for so many seconds before the next request."""

    seconds: float


Outcome = Answer | LostAnswer | None
Flow = Generator[Request | Pause, Outcome, T]
"""Yields requests and pauses, is sent an answer for each request, and returns a value."""


def sent(request: Request, *, patient: bool = False, tries: int = TRIES) -> Flow[Answer]:
    """The answer to a request, which is sent several times; raises Problem, Unreachable.

    With ``patient`` it is sent more often than ``tries``, to outlast a restart of the service.
    """
    attempt = 1
    outcome = yield request
    until = monotonic() + PATIENCE_SECONDS
    while (wait := pause_after(outcome, attempt)) is not None:
        away = patient and (not isinstance(outcome, Answer) or outcome.status in AWAY)
        if monotonic() + wait > until if away else attempt >= tries:
            break
        yield Pause(wait)
        attempt += 1
        outcome = yield request
    return checked(outcome)


def checked(outcome: Outcome) -> Answer:
    """Return the answer to a request; raises Problem for a refusal and Unreachable for none."""
    if not isinstance(outcome, Answer):
        raise Unanswered("nobody answers" if outcome is None else outcome.reason)
    if not outcome.success:
        raise outcome.problem()
    return outcome


def pause_after(outcome: Outcome, attempt: int) -> float | None:
    """Seconds until another try, None where none is worth it."""
    asked = 0.0
    if isinstance(outcome, Answer):
        problem = None if outcome.success else outcome.problem()
        if problem is None or not problem.passing:
            return None
        asked = problem.retry_after
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (attempt - 1))
    if asked > LONGEST_WAIT:
        return None
    return max(asked, pause * random.uniform(0.5, 1.0))  # noqa: S311 -- spreads clients in time


def get(path: str, **query: object) -> Flow[Any]:
    """The JSON at a path; what is None is no part of the query."""
    given = {name: value for name, value in query.items() if value is not None}
    return (yield from sent(Request("GET", path, given))).document()


def post(
    path: str,
    body: object = None,
    method: str = "POST",
    *,
    patient: bool = False,
    tries: int = TRIES,
) -> Flow[Any]:
    """The answer to a request that may be repeated as it is, sent as `sent` says."""
    request = _with_body(method, path, body, {})
    return (yield from sent(request, patient=patient, tries=tries)).document()


def created(path: str, body: object) -> Flow[Any]:
    """The answer to a creation; sent several times, it creates once."""
    return (yield from sent(_with_body("POST", path, body, once()))).document()


def _with_body(method: str, path: str, body: object, headers: dict[str, str]) -> Request:
    if body is None:
        return Request(method, path, headers=headers)
    typed = headers | {"Content-Type": "application/json"}
    return Request(method, path, headers=typed, body=encoded(body, "the request"))


def encoded(value: object, what: str) -> bytes:
    """A value as JSON, those of NumPy too; raises InvalidValue for what has none."""
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        rule = "values that JSON has; no NaN and no infinity"
        message = f"{what} cannot be written as JSON: {error}"
        raise InvalidValue(message, field="body", rule=rule) from None
    return text.encode()


def _plain(value: object) -> object:
    """A value of NumPy, pandas or the standard library as JSON has it."""
    for method in ("tolist", "isoformat"):
        if hasattr(value, method):
            return getattr(value, method)()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not in JSON")


def member(document: Any, name: str) -> Any:  # noqa: ANN401 -- JSON
    """A member of an answer; raises Unreachable where there is none."""
    if not isinstance(document, dict) or name not in document:
        raise Unreachable(f"the answer has no {name}: this is no Celeus service")
    return document[name]


def once() -> dict[str, str]:
    """The header by which a creation that is sent again creates nothing twice."""
    return {"Idempotency-Key": str(uuid.uuid4())}


def greeted(url: str) -> Flow[None]:
    """Refuse an address at which another program answers, or a service of another series."""
    try:
        version = yield from get("/version")
    except Problem as problem:
        if problem.passing:
            raise
        raise Unreachable(f"{url} is no Celeus service: {problem.detail}") from None
    if not isinstance(version, dict) or version.get("service") != "celeus":
        raise Unreachable(f"{url} is no Celeus service")
    theirs, ours = str(version.get("version")), own_version()
    if "0" not in (theirs, ours) and series(theirs) != series(ours):
        pip = f"pip install 'celeus=={series(theirs)}.*'"
        raise Unreachable(f"{url} runs celeus {theirs}, and this client is {ours}: {pip}")


def series(number: str) -> str:
    """Return the part that compatible versions share: up to the first number that is not 0."""
    first, _, rest = number.partition(".")
    return first if first != "0" else f"0.{rest.partition('.')[0]}"

"""The errors between a client and a service; `celeus.Refusal` catches all of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from celeus.client.service import plain
from celeus.errors import NeedsAnswer, Refusal, Unavailable
from celeus.intake.questions import in_python, question_lines

SHOWN_FAULTS = 3
REQUEST_TIMEOUT = 408
TOO_MANY = 429
SERVER_ERRORS = 500


class Problem(Refusal):
    """The service answered, and declined: its status, and the stable code of docs/api.md.

    ``field``, ``rule`` and ``value`` name what is wrong where a single value is; ``errors`` holds
    all faults listed, of the rows of an upload for instance. ``retry_after`` is how many seconds
    the service asks to wait.
    """

    def __init__(self, status: int, body: Mapping[str, Any], *, retry_after: float = 0.0) -> None:
        self.status = status
        self.retry_after = retry_after
        self.code = str(body.get("code") or status)
        self.errors: list[dict[str, Any]] = body.get("errors") or []
        super().__init__(
            f"{self._sentence(body)}{faults(self.errors)} ({self._numbered()})",
            field=body.get("field"),
            rule=body.get("rule"),
            value=body.get("value"),
        )

    @property
    def passing(self) -> bool:
        """True if another try may succeed: a conflict is an answer, but for `busy`."""
        if self.status in {REQUEST_TIMEOUT, TOO_MANY} or self.code == "busy":
            return True
        return self.status >= SERVER_ERRORS

    def _numbered(self) -> str:
        return " ".join(dict.fromkeys((str(self.status), self.code)))

    def _sentence(self, body: Mapping[str, Any]) -> str:
        text = plain(str(body.get("detail") or body.get("title") or "The service declines."))
        if self.code == "unauthenticated":
            return f"{text.rstrip('.')}; give a key that works as `key`, or in CELEUS_KEY"
        if self.code == "scope_missing":
            scope = str(body.get("rule")).rpartition(" ")[2]
            command = f"celeus admin keys create --name me --scope {scope}"
            return f"{text.rstrip('.')}; `{command}` makes one"
        if self.code == "session_not_found":
            return f"{text.rstrip('.')}; check its id, and the project of the key"
        if self.status == TOO_MANY:
            when = f"in {self.retry_after:.0f} seconds" if self.retry_after else "later"
            return f"{text.rstrip('.')}; ask again {when}"
        return text


class UnansweredFile(Problem, NeedsAnswer):
    """The file leaves open what a number or a judge's view rests on.

    The text lists every question with its choices, as members of `create_pool`; ``questions`` holds
    them as data.
    """

    def __init__(self, status: int, body: Mapping[str, Any], *, retry_after: float = 0.0) -> None:
        super().__init__(status, body, retry_after=retry_after)
        self.more["questions"] = body.get("questions") or []

    def _sentence(self, body: Mapping[str, Any]) -> str:
        lines = question_lines(body.get("questions") or [], in_python)
        return "\n".join(["The file leaves questions open.", *map(_plain_line, lines)])


def _plain_line(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip(" "))]
    return indent + plain(line)


def problem_of(status: int, body: Mapping[str, Any], *, retry_after: float = 0.0) -> Problem:
    """The refusal in the body of an answer."""
    kind = UnansweredFile if body.get("code") == NeedsAnswer.code else Problem
    return kind(status, body, retry_after=retry_after)


class Unreachable(Unavailable):
    """Nobody answered, also after repeating, or what answered is no such service."""


class Unanswered(Unreachable):
    """Nobody answered; somebody may another time."""


def faults(errors: Sequence[Mapping[str, Any]]) -> str:
    """The first faults by line, where lines are known."""
    lines = [
        f"line {error['line']}: {error.get('field')} must be {error.get('rule')}"
        for error in errors[:SHOWN_FAULTS]
        if error.get("line") is not None
    ]
    return "" if not lines else f" {plain('; '.join(lines))}"

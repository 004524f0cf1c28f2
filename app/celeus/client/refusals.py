"""What goes wrong between a client and a service; `celeus.Refusal` catches all of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from celeus.client.service import plain
from celeus.errors import Refusal, Unavailable

SHOWN_FAULTS = 3


class Problem(Refusal):
    """The service answered, and declined: its status, and the stable code of docs/api.md.

    ``field``, ``rule`` and ``value`` say what is to blame where a single value is; ``errors`` holds
    all faults that were told, of the rows of an upload for instance.
    """

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(body.get("code") or status)
        self.errors: list[dict[str, Any]] = body.get("errors") or []
        super().__init__(
            f"{self._said(body)}{faults(self.errors)} ({status} {self.code})",
            field=body.get("field"),
            rule=body.get("rule"),
            value=body.get("value"),
        )

    def _said(self, body: Mapping[str, Any]) -> str:
        text = plain(str(body.get("detail") or body.get("title") or "The service declines."))
        if self.code == "unauthenticated":
            return f"{text.rstrip('.')}; give a key that works as `key`, or in CELEUS_KEY"
        if self.code == "scope_missing":
            scope = str(body.get("rule")).rpartition(" ")[2]
            return f"{text.rstrip('.')}; `celeus keys create --name me --scope {scope}` makes one"
        return text


class Unreachable(Unavailable):
    """Nobody answered, also after repeating, or what answered is no such service."""


def faults(errors: Sequence[Mapping[str, Any]]) -> str:
    """The first faults by line, where lines were told."""
    told = [
        f"line {one['line']}: {one.get('field')} must be {one.get('rule')}"
        for one in errors[:SHOWN_FAULTS]
        if one.get("line") is not None
    ]
    return "" if not told else f" {plain('; '.join(told))}"

"""Words that several pages share."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from celeus.core.insights.figures import count

STATES: Final = {
    "active": ("Active", "active"),
    "target_reached": ("Precision reached", "reached"),
    "decided": ("Decided", "reached"),
    "budget_spent": ("Budget spent", ""),
    "exhausted": ("Whole pool judged", ""),
    "paused": ("Paused", ""),
    "closed": ("Closed", ""),
}
"""Word and badge of each state of a session."""
_HOUR, _DAY = 60, 1_440
_MOST_HOURS = 36


def counted(number: int, noun: str) -> str:
    """Return "1 label", "2 labels"."""
    return f"{count(number)} {noun}{'s' * (number != 1)}"


def short(value: float) -> str:
    """Return a number to three digits."""
    return f"{float(f'{value:.3g}'):.10g}"


def sentence(words: str) -> str:
    """Return words as a sentence: capitalised, with its stop."""
    return f"{words[:1].upper()}{words[1:].rstrip('.')}{'' if words.endswith('?') else '.'}"


def minute(at: datetime) -> str:
    """Return a moment to the minute."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def ago(moment: str | datetime) -> str:
    """Return how long ago a moment, which may be written as ISO 8601, was, in words."""
    then = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    minutes = round((datetime.now(UTC) - then).total_seconds() / 60)
    if minutes < 1:
        return "just now"
    if minutes < _HOUR:
        return f"{counted(minutes, 'minute')} ago"
    if minutes < _HOUR * _MOST_HOURS:
        return f"{counted(round(minutes / _HOUR), 'hour')} ago"
    return f"{counted(round(minutes / _DAY), 'day')} ago"


def name_of(session: Mapping[str, Any]) -> str:
    """Return what a session is called; one without a name by the end of its id."""
    return str(session["name"] or f"Session {session['id'][-8:]}")


def labels_done(session: Mapping[str, Any]) -> str:
    """Return the labels of those likely to be needed, in words."""
    labels, share = session["words"]["labels"], session["words"]["share"]
    if share == 1:
        return counted(labels, "label")
    if share:
        return f"{count(labels)} of about {counted(round(labels / share), 'label')}"
    if session["repeats"]:
        return f"{count(labels)} of at most {counted(session['budget'], 'draw')} judged"
    return f"{count(labels)} of {counted(session['items'] - session['known'], 'item')} judged"

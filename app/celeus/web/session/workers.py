"""The judges at work: labels of the last minute and hour, draws held, and who waits for whom."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from celeus.web.wording import counted

_WINDOW: Final = re.compile(" [0-9a-f]{12}$")
"""The ending of a person's name that the labelling page adds, one for each window."""
_MOST_SECONDS: Final = 90


class Person(NamedTuple):
    """A person or program: whoever works from several windows is one."""

    name: str
    minute: int
    hour: int
    last: str | None
    rounds: Sequence[int]
    left: str
    """Time until the first of their draws is given back."""


class Held(NamedTuple):
    """The first draw that labels wait for, what they wait for, and what its holder holds."""

    first: int
    words: str
    rounds: Sequence[int]


def persons(workers: Sequence[Mapping[str, Any]], now: datetime) -> list[Person]:
    """Return the persons behind these workers, as `list_workers` has them."""
    windows: dict[str, list[Mapping[str, Any]]] = {}
    for worker in workers:
        windows.setdefault(_WINDOW.sub("", worker["worker"]), []).append(worker)
    return [_person(name, theirs, now) for name, theirs in windows.items()]


def _person(name: str, windows: Sequence[Mapping[str, Any]], now: datetime) -> Person:
    draws = [draw for window in windows for draw in window["draws"]]
    ends = [datetime.fromisoformat(draw["expires_at"]) - now for draw in draws]
    return Person(
        name=name,
        minute=sum(window["labels_minute"] for window in windows),
        hour=sum(window["labels_hour"] for window in windows),
        last=max(window["last_label_at"] or "" for window in windows) or None,
        rounds=[draw["round"] for draw in draws],
        left=_in_words(min(ends)) if ends else "",
    )


def held(session: Mapping[str, Any], judging: Sequence[Person]) -> Held | None:
    """Return what the labels that are not in the interval yet wait for; None where none waits."""
    rounds = session["rounds"]
    labels, first = rounds["judged"] - rounds["in_interval"], rounds["in_interval"] + 1
    if session["state"] != "active" or labels <= 0:
        return None
    holder = next((person for person in judging if first in person.rounds), None)
    held_by = "is free for whoever asks next" if holder is None else f"{holder.name} holds"
    verb = "waits" if labels == 1 else "wait"
    words = f"{counted(labels, 'label')} {verb} for an item drawn earlier, which {held_by}."
    return Held(first, words, [] if holder is None else holder.rounds)


def _in_words(left: timedelta) -> str:
    seconds = round(left.total_seconds())
    if seconds < _MOST_SECONDS:
        return f"{seconds}\N{NARROW NO-BREAK SPACE}s"
    return f"{round(seconds / 60)}\N{NARROW NO-BREAK SPACE}min"

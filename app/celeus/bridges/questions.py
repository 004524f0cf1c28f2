"""The question people are asked, the task they are shown, and the judgement their answer makes."""

import html
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from celeus.client.results import ShownAnswer
from celeus.errors import InvalidValue

Judgement = Mapping[str, Any]
"""A judgement in the words of the interface, such as `{"loss": 0}`."""

CANNOT_TELL = "Cannot tell"
UNJUDGEABLE: Judgement = {"unjudgeable": "cannot tell"}
MOST_OPTIONS = 100
_PAIRS = {
    "Only left is correct": {"losses": {"left": 0, "right": 1}},
    "Both are correct": {"losses": {"left": 0, "right": 0}},
    "Neither is correct": {"losses": {"left": 1, "right": 1}},
    "Only right is correct": {"losses": {"left": 1, "right": 0}},
}
_SHOWN = ("instructions", "image", "text", "markdown", "question", "choices", "pair", "answer")
_LAST = ("reference",)
_QUOTES = str.maketrans({"'": "%27", "\\": "%5C", "\n": "", "\r": ""})
_SAFE = ("https://", "data:image/")
_HOST = re.compile(r"https://([a-z0-9.-]+)(?::\d+)?(?:[/?#]|\Z)", re.IGNORECASE)
"""The host of an address, where browsers and this expression cannot differ about it."""


@dataclass(frozen=True, slots=True)
class Task:
    """An item to be judged: what its judge may see, and nothing else.

    ``mark`` is its name in the tool, ``sides`` the two answers of a comparison, left and right.
    """

    mark: str
    id: str
    payload: Any
    sides: tuple[ShownAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """The form of a judgement: ``options`` by their words, or a number that is no option.

    ``takes``: whether such a number is a `loss` from ``lower`` to ``upper``, or a `label`, a whole
    number from 0; None where there is none. ``labels``: options are classes, whose names an item
    may bring.
    """

    options: Mapping[str, Judgement]
    takes: str | None = None
    lower: float = 0.0
    upper: float = 1.0
    labels: bool = False

    @property
    def text(self) -> str:
        """The question in words."""
        if self.takes == "loss":
            return f"The loss, from {self.lower:g} (best) to {self.upper:g} (worst)"
        return "Which class is it?" if self.labels else "What is true of it?"

    def options_of(self, payload: object) -> Mapping[str, Judgement]:
        """The options of an item, with its own names of the classes where it brings some."""
        members = payload if isinstance(payload, Mapping) else {}
        if self.labels:
            names = members.get("choices")
            if isinstance(names, list | tuple) and names:
                return _classes([words(name) for name in names])
            if isinstance(members.get("pair"), list | tuple):
                return _classes(["Left", "Right", "Tie"])
        return self.options

    def judgement_of(self, answer: object, payload: object = None) -> Judgement | None:
        """Return the judgement that an answer makes, None if it makes none."""
        if answer == CANNOT_TELL:
            return UNJUDGEABLE
        if isinstance(answer, str):
            return self.options_of(payload).get(answer)
        if isinstance(answer, bool) or not isinstance(answer, int | float):
            return None
        if self.takes == "loss" and self.lower <= answer <= self.upper:
            return {"loss": answer}
        if self.takes == "label" and answer >= 0 and float(answer).is_integer():
            return {"label": int(answer)}
        return None


def question_of(task: Mapping[str, Any]) -> Question:
    """Return the question of a session from its `task`; refuses a task that has no such form."""
    loss, comparison = task.get("loss"), task.get("comparison")
    if task.get("metrics") or task.get("best") or loss is None:
        raise _no_form("one loss or one comparison", "several losses")
    if task.get("rater") is not None:
        raise _no_form("one judge an item", "a panel")
    if task.get("repeats") or task.get("success"):
        found = "a fresh run of a system for each label, where another tool shows a stored answer,"
        raise _no_form("items that are judged once", found)
    if task["takes_labels"]:
        classes = task.get("classes")
        if classes is not None and classes <= MOST_OPTIONS:
            return Question(_classes([str(number) for number in range(classes)]), labels=True)
        return Question({}, takes="label", labels=True)
    if comparison is not None:
        return Question(_compared(comparison))
    lower, upper = loss["scale"]
    if loss["kind"] == "zero_one":
        return Question({name: {"loss": loss} for loss, name in enumerate(task["words"])})
    return Question({}, takes="loss", lower=lower, upper=upper)


def _compared(comparison: Mapping[str, Any]) -> Mapping[str, Judgement]:
    if comparison["kind"] == "zero_one":
        return _PAIRS
    if comparison["kind"] == "preference":
        return _preferences(int(comparison["scale"][1]))
    raise _no_form("options", "a loss of each of two answers")


def _preferences(grades: int) -> Mapping[str, Judgement]:
    options: dict[str, Judgement] = {}
    for side, order in (("left", range(grades, 0, -1)), ("right", range(1, grades + 1))):
        for grade in order:
            by = "" if grades == 1 else f" by {grade}"
            options[f"{side.title()} is better{by}"] = {"preference": side, "grade": grade}
        if side == "left":
            options["Equally good"] = {"preference": "tie"}
            options["Both are bad"] = {"preference": "both_bad"}
    return options


def _classes(names: list[str]) -> Mapping[str, Judgement]:
    if len(set(names) - {CANNOT_TELL}) < len(names):
        names = [f"{number}: {name}" for number, name in enumerate(names)]
    return {name: {"label": number} for number, name in enumerate(names)}


def _no_form(rule: str, found: str) -> InvalidValue:
    return InvalidValue(
        f"Sessions that ask for {found} are judged on the page of Celeus or by programs.",
        field="session",
        rule=f"one that asks for {rule}",
    )


def words(value: object) -> str:
    """A value of a payload as people read it."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and len(value) == 1 and {*value} <= {"text", "markdown"}:
        return str(next(iter(value.values())))
    return json.dumps(value, ensure_ascii=False)


def parts_of(task: Task) -> list[tuple[str, Any]]:
    """Return the parts of a task to show, as title and value, in the labelling page's order."""
    parts = _members(task.payload)
    for name, side in zip(("left", "right"), task.sides, strict=False):
        shown = [] if side.answer is None else [(name, side.answer)]
        parts += shown + [(f"{name}: {title}", value) for title, value in _members(side.payload)]
    return parts or [("item", task.id)]


def _members(payload: object) -> list[tuple[str, Any]]:
    if payload is None:
        return []
    if not isinstance(payload, Mapping):
        return [("item", payload)]
    order = {name: place for place, name in enumerate(_SHOWN)} | dict.fromkeys(_LAST, len(_SHOWN))
    return sorted(payload.items(), key=lambda member: order.get(member[0], len(order)))


def members_of(task: Task) -> dict[str, Any]:
    """A task as members of an object, the names of classes with their numbers."""
    return {
        title: _lines(title, value) if title == "choices" else value
        for title, value in parts_of(task)
    }


def text_of(task: Task) -> str:
    """A task as plain text."""
    return "\n\n".join(f"{title}: {_lines(title, value)}" for title, value in parts_of(task))


def html_of(task: Task, media_hosts: Collection[str] = ()) -> str:
    """A task as HTML, in which nothing of a payload is interpreted; pictures are shown.

    A picture at another host than ``media_hosts`` is a link: were it loaded, its host would learn
    which items are drawn.
    """
    return "".join(
        f"<h4>{html.escape(title)}</h4>"
        + (_pictures(value, media_hosts) if title.endswith("image") else _block(title, value))
        for title, value in parts_of(task)
    )


def _block(title: str, value: object) -> str:
    return f'<div style="white-space: pre-wrap">{html.escape(_lines(title, value))}</div>'


def _lines(title: str, value: object) -> str:
    if title == "choices" and isinstance(value, list | tuple):
        return "\n".join(f"{number}: {words(choice)}" for number, choice in enumerate(value))
    if title == "pair" and isinstance(value, list | tuple) and len(value) == 2:
        left, right = map(words, value)
        return f"left: {left}\n\nright: {right}"
    return words(value)


def _pictures(value: object, media_hosts: Collection[str]) -> str:
    each: Callable[[object], str] = lambda picture: (  # noqa: E731
        _picture(picture.get("src"), picture.get("alt", ""), media_hosts)
        if isinstance(picture, Mapping)
        else _picture(picture, "", media_hosts)
    )
    return "".join(map(each, value if isinstance(value, list | tuple) else [value]))


def _picture(source: object, alt: object, media_hosts: Collection[str]) -> str:
    if not isinstance(source, str) or not source.startswith(_SAFE):
        return _block("image", source)
    style, src = "max-width: 100%", f'src="{html.escape(source)}" '
    if source.startswith("data:"):
        # Label Studio takes such a source away, and not such a style
        style += f"; content: url('{source.translate(_QUOTES)}')"
        src = ""
    elif not (host := _HOST.match(source)) or host[1].lower() not in media_hosts:
        address = html.escape(source)
        rel, words = "noopener noreferrer nofollow", html.escape(str(alt or source))
        return f'<p><a href="{address}" target="_blank" rel="{rel}">{words}</a></p>'
    return f'<img {src}alt="{html.escape(str(alt))}" style="{html.escape(style)}">'

"""Judgements in the words of their judges, and the form that corrects one in the same words."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from celeus.api.sessions.round_models import AmendmentRequest
from celeus.core.interval import Interval
from celeus.core.pools.losses import LossScale
from celeus.core.pools.score import Score, ends_of
from celeus.core.pools.systems import SIDES, TIES, OneLoss, Systems
from celeus.errors import InvalidValue
from celeus.operations.sessions.labelling.task import Task
from celeus.web.forms import Form, number_in, validated

EXCERPT = 160
"""Longest excerpt of an item, in characters."""
MOST_CHOICES = 50
UNJUDGEABLE = "unjudgeable"
"""The choice in a form for an item that nobody can judge; its reason is that of the correction."""
MOST_NAMED_GRADES = 2
"""A preference of so many grades is better or much better; of more, better by a number."""
_Said = Literal["loss", "losses", "label", "preference", "grade", "unjudgeable"]
"""Members of a judgement that are choices; author, reason and round are none."""
_CHOICE: TypeAdapter[dict[_Said, Any]] = TypeAdapter(dict[_Said, Any])
_TIES = dict(zip(TIES, ("Equally good", "Both are bad"), strict=True))
_TOLD = ("question", "prompt", "text", "messages", "answer", "content")
"""Members of a payload that tell items apart, in the order of an excerpt."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that can be chosen: its words, and the members of the request that gives it."""

    words: str
    members: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number that can be typed; ``turned`` less it is the loss where a high score is good."""

    name: str
    label: str
    help: str
    turned: float | None = None


class JudgeWords:
    """The words of a session's judges, as its labelling page has them."""

    def __init__(self, task: Task) -> None:
        self._task = task
        systems = task.systems
        self._two = systems if isinstance(systems, Systems) else None
        self._names = {} if self._two is None else {"a": self._two.a, "b": self._two.b}

    def of(self, label: Mapping[str, Any], payload: object = None) -> str:
        """Return what was judged."""
        if label["unjudgeable"] is not None:
            return f"Cannot be judged: {label['unjudgeable']}"
        if label["preference"] is not None:
            return self._preferred(label["preference"], label["grade"])
        if label["label"] is not None:
            return dict(enumerate(_classes(payload))).get(label["label"], f"Class {label['label']}")
        losses = label["losses"] or {}
        if losses:
            return ", ".join(
                f"{self._names.get(name, name)}: {self.part(name, loss)}"
                for name, loss in losses.items()
            )
        return "" if label["loss"] is None else self._loss(label["loss"])

    def choices(self, payload: object) -> list[Choice]:
        """Return the answers to choose from; none where a number is typed."""
        return [Choice(words, json.dumps(members)) for words, members in self._choices(payload)]

    @property
    def numbers(self) -> list[Number]:
        """The numbers to type where there is nothing to choose from."""
        task = self._task
        if task.takes_labels:
            most = "" if task.classes is None else f", from 0 to {task.classes - 1}"
            return [Number("label", "True class", f"Its number{most}.")]
        score, name = task.score, "Loss" if task.score is None else task.score.name
        if self._two is not None:
            sides = [(side, f"{name} of {self._names[side]}") for side in SIDES]
            return [_number(*side, self._two.loss, score) for side in sides]
        return [_number("loss", name, task.scale, score)]

    def correction(self, form: Form, round_: int) -> AmendmentRequest:
        """Return what the form of a correction says of a round."""
        reason, chosen = form.get("reason").strip(), form.get("choice")
        members: Any = {"unjudgeable": reason}
        if not chosen:
            typed = {number.name: _typed(number, form) for number in self.numbers}
            members = {"losses": typed} if "a" in typed else typed
        elif chosen != UNJUDGEABLE:
            try:
                members = _CHOICE.validate_json(chosen)
            except ValidationError as error:
                raise InvalidValue("choice: the page has no such choice", field="choice") from error
        members |= {"round": round_, "reason": reason or None}
        return validated(AmendmentRequest, members, strict=True)

    def _choices(self, payload: object) -> Iterator[tuple[str, dict[str, Any]]]:
        task = self._task
        if task.takes_labels:
            names = _classes(payload) or [f"Class {at}" for at in range(task.classes or 0)]
            if len(names) <= MOST_CHOICES:
                yield from ((name, {"label": at}) for at, name in enumerate(names))
        elif self._two is not None:
            yield from self._compared(self._two)
        elif task.levels and task.score is not None:
            for level in sorted(task.levels, key=lambda level: level.grade):
                yield f"{level.grade:g} {level.name}", {"loss": level.loss(task.scale, task.score)}
        elif task.scale.kind == "zero_one":
            yield from ((word, {"loss": loss}) for loss, word in enumerate(task.words))

    def _compared(self, systems: Systems) -> Iterator[tuple[str, dict[str, Any]]]:
        if systems.loss.kind == "preference":
            grades = range(int(systems.loss.upper), 0, -1)
            for side, ordered in (("a", grades), ("b", reversed(grades))):
                for grade in ordered:
                    yield self._preferred(side, grade), {"preference": side, "grade": grade}
                if side == "a":
                    yield from ((words, {"preference": tie}) for tie, words in _TIES.items())
        elif systems.loss.kind == "zero_one":
            verdicts = self._task.words
            for a, b in ((0, 1), (0, 0), (1, 1), (1, 0)):
                words = f"{systems.a}: {verdicts[a]}, {systems.b}: {verdicts[b]}"
                yield words, {"losses": {"a": a, "b": b}}

    def _preferred(self, preference: str, grade: int | None) -> str:
        """Return a preference as its button has it, of the system in place of the side."""
        if preference in _TIES:
            return _TIES[preference]
        grades = 1 if self._two is None else self._two.loss.upper
        name = self._names.get(preference, preference.upper())
        if grades <= MOST_NAMED_GRADES:
            return f"{name} is {'much ' * (grade == MOST_NAMED_GRADES)}better"
        return f"{name} is better by {grade}"

    def part(self, name: str, loss: float | None) -> str:
        """Return the loss of a metric or of a system in words."""
        if loss is None:
            return "cannot tell"
        for metric in self._task.metrics:
            if metric.name == name:
                return _value(loss, metric.scale, metric.score, metric.words)
        scale, score = self._task.scale if self._two is None else self._two.loss, self._task.score
        return _value(loss, scale, score, self._task.words)

    def _loss(self, loss: float) -> str:
        scale, score = self._task.scale, self._task.score
        if score is not None:
            for level in self._task.levels:
                if level.loss(scale, score) == loss:
                    return f"{level.grade:g} {level.name}"
        words = _value(loss, scale, score, self._task.words)
        if scale.kind == "zero_one":
            return words
        return f"{'loss' if score is None else score.name} {words}"


def excerpt(item: Mapping[str, Any]) -> str:
    """Return the beginning of what tells an item from others."""
    found = [*_texts(item["payload"])]
    if not found:
        found = [f"{name}: {side['answer']}" for name, side in item["sides"].items()]
    text = " ".join(" · ".join(found[:2]).split())
    return text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1]}…"


def _texts(payload: object) -> Iterator[str]:
    if isinstance(payload, str):
        yield payload
    elif isinstance(payload, list):
        # Of a chat what is judged: its last message
        yield from _texts(payload[-1] if payload else None)
    elif isinstance(payload, Mapping):
        named = [payload[name] for name in _TOLD if payload.get(name)]
        for inner in named or payload.values():
            yield from _texts(inner)


def _classes(payload: object) -> Sequence[str]:
    """Return the classes' own names that an item brings."""
    shown = payload if isinstance(payload, Mapping) else {}
    choices = shown.get("choices")
    if isinstance(choices, list):
        return [
            str(choice.get("text", choice)) if isinstance(choice, Mapping) else str(choice)
            for choice in choices
        ]
    return ["Left", "Right", "Tie"] if isinstance(shown.get("pair"), list) else []


def _number(name: str, label: str, scale: LossScale | OneLoss, score: Score | None) -> Number:
    ends = ends_of(scale.kind, score)
    turned = None
    if score is not None and score.better == "higher":
        turned = scale.lower + scale.upper
    range_ = f"From {scale.lower:g} ({ends[0]}) to {scale.upper:g} ({ends[1]})."
    return Number(name, label, range_, turned)


def _typed(number: Number, form: Form) -> float:
    """Return the number that was typed, as a loss; a class stays a whole one."""
    typed = number_in(form.get(number.name), number.name, number.label)
    return typed if number.turned is None else float(f"{number.turned - typed:.12g}")


def _value(
    loss: float, scale: LossScale | OneLoss, score: Score | None, words: tuple[str, str]
) -> str:
    if scale.kind == "zero_one" and loss in {0, 1}:
        return words[int(loss)]
    ends = Interval(scale.lower, scale.upper)
    return _figure(loss if score is None else score.at(loss, ends))


def _figure(value: float) -> str:
    return f"{value:.6g}".replace("-", "\N{MINUS SIGN}")

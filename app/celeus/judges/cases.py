"""The case a judge is shown, its opinion, and the judge that is a model with a rubric."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from celeus.client.fingerprint import fingerprint
from celeus.errors import InvalidValue
from celeus.judges.endpoint import Endpoint, NoAnswer
from celeus.judges.reading import GRAMMAR, UNREADABLE, Reading, read
from celeus.judges.rubrics import CANNOT_TELL, Rubric
from celeus.judges.verdicts import Verdicts, key_of
from celeus.shorten import shortened

NO_VERDICT = "the judge gave no verdict"


@dataclass(frozen=True, slots=True)
class Answer:
    """One of several answers to an item."""

    answer: str | None
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Case:
    """An item as it is judged: its payload, and the answers of two or more systems, if any.

    ``run`` names the run of a system that is judged, where items are run again: session, round and
    number. It is empty where a verdict on the item is one for good.
    """

    id: str
    payload: Any
    answers: tuple[Answer, ...] = ()
    run: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Opinion:
    """A judge's opinion on a case.

    A ``loss`` of an item of one system; ``losses`` of all answers; or a ``preference`` (`left`,
    `tie`, `right`) of two. None of them where it cannot tell, and ``reason`` says why. ``guesses``
    are of the loss, of all losses, or of the difference left less right: expected losses where the
    judge gives the probability of its verdicts, as ``soft`` says of each; None where nothing is
    known. ``readings`` are what the judge wrote, and how it was read.
    """

    loss: float | None = None
    losses: tuple[float, ...] = ()
    preference: str | None = None
    reason: str = ""
    guesses: tuple[float | None, ...] = ()
    soft: tuple[bool, ...] = ()
    readings: tuple[Reading, ...] = ()

    @property
    def unreadable(self) -> bool:
        """True if something the judge wrote holds no verdict."""
        return any(reading.verdict == UNREADABLE for reading in self.readings)


Judge = Callable[[Case], Opinion]


class Model:
    """A judge: a model at an endpoint, a rubric, and the verdicts given before."""

    def __init__(self, endpoint: Endpoint, rubric: Rubric, verdicts: Verdicts) -> None:
        self._endpoint = endpoint
        self._rubric = rubric
        self._verdicts = verdicts
        self._unreadable: dict[str, Reading] = {}
        asked = endpoint.request(rubric.template.template, rubric.schema())
        parts = [rubric.instructions, dict(rubric.scale), rubric.disagreement]
        self.fingerprint = fingerprint([asked, parts])

    def __call__(self, case: Case) -> Opinion:
        """Judge a case; refuses one that lacks a field the rubric shows."""
        readings = [self._reading(fields) for fields in self.shown(case)]
        if self._rubric.disagreement is not None:
            return self._pair(*readings)
        scale = self._rubric.scale
        losses = [reading.loss(scale) for reading in readings]
        softs = [reading.soft(scale) for reading in readings]
        guesses = (soft if soft is not None else loss for soft, loss in _zipped(softs, losses))
        opinion = Opinion(
            reason=next((_why(reading) for reading in readings if reading.loss(scale) is None), ""),
            guesses=tuple(guesses),
            soft=tuple(soft is not None for soft in softs),
            readings=tuple(readings),
        )
        known = [loss for loss in losses if loss is not None]
        if len(known) < len(losses):
            return opinion
        if case.answers:
            return _with(opinion, losses=tuple(known))
        return _with(opinion, loss=known[0])

    def shown(self, case: Case) -> list[dict[str, Any]]:
        """Return the fields the rubric shows, one entry a call; refuses a case that lacks one."""
        common = _members(case.payload)
        if self._rubric.disagreement is not None:
            if len(case.answers) != 2:
                raise InvalidValue(
                    f"the rubric compares two answers, and {case.id} has {len(case.answers)}: give"
                    " it a scale in place of disagreement",
                    field="rubric",
                )
            first, second = (
                {"answer": answer.answer, **_members(answer.payload)} for answer in case.answers
            )
            first, second = map(_only_answer, (first, second))
            calls = [
                common | {"first": first, "second": second},
                common | {"first": second, "second": first},
            ]
        elif case.answers:
            calls = [
                {**common, **_members(answer.payload)}
                | ({} if answer.answer is None else {"answer": answer.answer})
                for answer in case.answers
            ]
        else:
            calls = [common]
        for fields in calls:
            for name in self._rubric.fields:
                if fields.get(name) is None:
                    has = ", ".join(field for field in fields if fields[field] is not None)
                    raise InvalidValue(
                        f"item {shortened(case.id)} has no {name!r} to show, only"
                        f" {has or 'nothing'}: give the rubric a template with the members that"
                        " items have",
                        field="rubric",
                    )
        return calls

    def _reading(self, fields: Mapping[str, Any]) -> Reading:
        """Return one verdict, after a second try with another seed where the first has none.

        A text without a verdict is kept for this run only: the next one asks again.
        """
        prompt, schema = self._rubric.prompt(fields), self._rubric.schema()
        request = self._endpoint.request(prompt, schema)
        key = key_of(self._endpoint.model, request, GRAMMAR)
        kept = self._verdicts.get(key)
        if kept is not None:
            return Reading.of(kept)
        if key in self._unreadable:
            return self._unreadable[key]
        reading = self._asked(request)
        if reading.verdict == UNREADABLE and self._endpoint.seeded:
            reading = self._asked(self._endpoint.request(prompt, schema, seed=1))
        if reading.verdict == UNREADABLE:
            return self._unreadable.setdefault(key, reading)
        return Reading.of(self._verdicts.keep(key, reading.to_dict()))

    def _asked(self, request: Mapping[str, Any]) -> Reading:
        try:
            choice = self._endpoint.choice(request)
        except NoAnswer as error:
            return Reading(UNREADABLE, str(error), text=str(error))
        return read(choice, [*self._rubric.scale])

    def _pair(self, forth: Reading, back: Reading) -> Opinion:
        """Both orders: where the verdicts differ the order, and not the answers, decided one."""
        scale = self._rubric.scale
        losses = [forth.loss(scale), _turned(back.loss(scale))]
        softs = [forth.soft(scale), _turned(back.soft(scale))]
        best = [soft if soft is not None else loss for soft, loss in _zipped(softs, losses)]
        known = [guess for guess in best if guess is not None]
        opinion = Opinion(
            reason=next((_why(order) for order in (forth, back) if order.loss(scale) is None), ""),
            guesses=(math.fsum(known) / len(known) if known else None,),
            soft=(None not in softs,),
            readings=(forth, back),
        )
        if None in losses:
            return opinion
        if losses[0] == losses[1]:
            side = {-1.0: "left", 0.0: "tie", 1.0: "right"}[losses[0] or 0.0]
            return _with(opinion, preference=side)
        if self._rubric.disagreement == "tie":
            return _with(opinion, preference="tie")
        return _with(opinion, reason="the judge's verdict changes with the order of the answers")


def _with(opinion: Opinion, **judgement: Any) -> Opinion:  # noqa: ANN401 -- members of an opinion
    members = {name: getattr(opinion, name) for name in ("reason", "guesses", "soft", "readings")}
    return Opinion(**members | judgement)


def _zipped(
    softs: Iterable[float | None], losses: Iterable[float | None]
) -> Iterable[tuple[float | None, float | None]]:
    return zip(softs, losses, strict=True)


def _turned(loss: float | None) -> float | None:
    return None if loss is None else 0.0 - loss


def _why(reading: Reading) -> str:
    if reading.verdict == CANNOT_TELL:
        return f"the judge cannot tell: {reading.reason}"
    return reading.reason or NO_VERDICT


def _members(payload: object) -> dict[str, Any]:
    """Return a payload's members for a template, and the whole under the name `payload`."""
    if payload is None:
        return {}
    whole = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return {"payload": whole} | (dict(payload) if isinstance(payload, Mapping) else {})


def _only_answer(side: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- JSON
    """The text of an answer, or its payload where it has none."""
    return side["answer"] if side["answer"] is not None else side.get("payload")

"""Questions that a file leaves open.

A reader never settles by itself what decides a number, or what a judge is shown: the format says
it, the user has said it, or it is asked. All doors ask the same questions: the page shows them with
their choices, the API answers 422 `needs_answer`, and the command line names the options.
"""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from celeus.errors import NeedsAnswer

ROLES = frozenset({"id", "score"})
"""Names of questions which column has that role."""


def typed(name: str, value: str, column: str | None = None) -> str:
    """An answer as it is typed in a command: of a column's role, or of anything else."""
    if name == "mapping":
        return f"--mapping {shlex.quote(f'{column}={value}')}"
    if name in ROLES:
        return f"--mapping {shlex.quote(f'{value}={name}')}"
    return f"--given {shlex.quote(f'{name}={value}')}"


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that may be given: its value, and its meaning in a phrase."""

    value: str
    means: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a file.

    ``name`` is the member of `Options` to give, in a query or in Python, and the option of the
    command line. Without ``choices`` any text will do. ``column`` is what it is about, and
    ``example`` a row in which it shows.
    """

    name: str
    text: str
    choices: tuple[Choice, ...] = ()
    column: str | None = None
    example: Mapping[str, Any] | None = None

    @property
    def line(self) -> str:
        """The question with its choices, for a terminal."""
        listed = "; ".join(
            f"{typed(self.name, choice.value, self.column)}: {choice.means}"
            for choice in self.choices
        )
        return f"{self._asking} ({listed or typed(self.name, '…', self.column)})"

    @property
    def named(self) -> str:
        """The question with its choices, by the names of a query or of Python."""
        listed = "; ".join(f"{self.name}={choice.value}: {choice.means}" for choice in self.choices)
        return f"{self._asking} ({listed or self.name})"

    @property
    def _asking(self) -> str:
        """The text, and of roles that they are given all at once."""
        roles = " Give a `mapping` of all columns." if self.name == "mapping" else ""
        return self.text + roles


def asked(place: str, questions: Sequence[Question], detail: str | None = None) -> NeedsAnswer:
    """The refusal of a file that leaves these questions open; ``detail`` is it in a sentence."""
    first = questions[0]
    return NeedsAnswer(
        detail or " ".join([f"{place}:", *(question.line for question in questions)]),
        field=first.name,
        questions=[asdict(question) for question in questions],
    )


def as_option(question: Mapping[str, Any], value: str) -> str:
    """An answer as an option of a command."""
    return typed(question["name"], value, question["column"])


def question_lines(
    questions: Sequence[Mapping[str, Any]],
    written: Callable[[Mapping[str, Any], str], str] = as_option,
) -> Iterator[str]:
    """The lines of these questions, each with its choices as they are ``written`` in an answer."""
    for question in questions:
        yield " ".join(question["text"].split())
        for choice in question["choices"] or [{"value": "…", "means": "any text"}]:
            means = " ".join(choice["means"].split())
            yield f"    {written(question, choice['value'])}: {means}"


def in_python(question: Mapping[str, Any], value: str) -> str:
    """An answer as an argument of a call in Python."""
    answer = json.dumps(value, ensure_ascii=False)
    if question["name"] == "mapping":
        answer = f"{{{json.dumps(question['column'], ensure_ascii=False)}: {answer}, …}}"
    return f"{question['name']}={answer}"


def named(refusal: NeedsAnswer) -> NeedsAnswer:
    """The same refusal, its questions by the names of a query or of Python."""
    questions = [
        Question(
            **{**question, "choices": tuple(Choice(**choice) for choice in question["choices"])}
        )
        for question in refusal.questions
    ]
    place = refusal.detail.partition(":")[0]
    detail = " ".join([f"{place}:", *(question.named for question in questions)])
    renamed = NeedsAnswer(detail, field=refusal.field)
    renamed.more.update(refusal.more)
    return renamed

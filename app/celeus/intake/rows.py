"""The one row that every reader yields: what a model answered to an item, and what it lost.

A loss lies between 0 and 1. A score that a log does not have is no loss: None, and never 0.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from celeus.errors import InvalidValue
from celeus.intake.questions import Choice, Question, asked


@dataclass(frozen=True, slots=True)
class Row:
    """One answer of one model to one item.

    ``loss`` is None where the log has no score: an error, a scorer without an answer, NaN.
    ``check`` is a hash of what the item is, empty where the log does not say: rows of one id are of
    one item where it agrees. ``prediction`` is the place of the answer in ``choices``,
    ``confidence`` the probability that the model gave it. ``extracted`` is what the scorer took of
    the answer, where it did not score all of it. ``known`` is the loss that people said before,
    which is a fact. ``weight`` is what the item counts in the tool's
    own mean. ``drawn``: a session had it run, so that a mean over the rows of this log is no
    estimate of all. ``more`` is what a judge is shown beside question and reference.
    """

    id: str
    model: str
    loss: float | None
    repeat: int = 1
    question: str | None = None
    reference: str | None = None
    answer: str | None = None
    extracted: str | None = None
    prediction: int | None = None
    choices: tuple[str, ...] = ()
    confidence: float | None = None
    check: str = ""
    group: str | None = None
    known: float | None = None
    weight: float = 1.0
    drawn: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answer_text(self) -> str | None:
        """The answer as text; of several choices the one it took, with its place if alike."""
        if self.prediction is None or self.answer is not None:
            return self.answer
        choice = self.choices[self.prediction]
        return choice if self.choices.count(choice) == 1 else f"{self.prediction + 1}. {choice}"

    @property
    def taken(self) -> str | None:
        """The part of the answer that was scored."""
        return self.answer_text if self.extracted is None else self.extracted


@dataclass(frozen=True, slots=True)
class Log:
    """The rows of one file or folder.

    ``settings`` are what logs of one task share (its version, examples shown), by name: where they
    differ the scores are of different tests on the same items. ``notes`` are sentences on what was
    read: which of several numbers of the tool the mean of the losses is, and what counts as failed.
    """

    name: str
    rows: list[Row]
    settings: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a table of outputs that are named; the others have their roles by name.

    ``roles`` are roles as of an upload, ``model`` says whose output a row is.
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None

    @property
    def score(self) -> str | None:
        """The column of the score."""
        return next((name for name, role in self.roles.items() if role == "score"), None)

    @property
    def named(self) -> dict[str, str]:
        """The roles of all columns that are named."""
        hidden = {} if self.model is None else {self.model: "hidden"}
        return hidden | dict(self.roles)

    @property
    def whole(self) -> frozenset[str]:
        """The named columns under which no other is named: an object there is one value."""
        cuts = ((name, end) for name in self.named for end, sign in enumerate(name) if sign == ".")
        return frozenset(self.named.keys() - {name[:end] for name, end in cuts})


@dataclass(frozen=True, slots=True)
class Options:
    """The answers to what a file leaves open: which of several things to read, and how.

    ``higher`` says which way the score is better, where the log does not; ``scale`` are the ends of
    the score. ``key`` is the member of the metadata that names an item. ``own_confidence`` says
    that the model held out has answered, and helps to guess what it lost. ``reducer`` makes one
    score of several runs of an item, in place of the rule that the log names. ``missing`` are the
    values that stand for no score; `none` says of a table that no number does, `COLUMN=VALUE` is of
    one column, `COLUMN=any` of whatever a column of errors says.

    Of a table: ``roles`` are those of all its columns, ``answer`` the column that is judged,
    ``groups`` those that are groups whatever they look like. Of one of outputs, ``columns`` are
    those that are named, and ``judged`` says that people judge them.
    ``directions`` and ``scales`` are those of columns by name; ``higher``, and the scale under '',
    are of the guess, or of the only column of numbers. ``repeats`` says what rows of one id are:
    `items`, `runs` (items too, as many of each id), the `first` of them, their `mean`, or the only
    rows that are read, as `COLUMN=VALUE`; several are joined by `; `. Of outputs `COLUMN` tells the
    runs of an item apart.
    ``rows`` is the table, member or kind of rows that is meant, of a file with several, and behind
    a colon, or alone, which rows are items: `with_id` or `all`.
    """

    metric: str | None = None
    filter: str | None = None
    tasks: tuple[str, ...] = ()
    higher: bool | None = None
    scale: tuple[float, float] = (0.0, 1.0)
    key: str | None = None
    own_confidence: bool = False
    reducer: str | None = None
    missing: tuple[str, ...] = ()
    roles: Mapping[str, str] | None = None
    answer: str | None = None
    groups: tuple[str, ...] = ()
    directions: Mapping[str, bool] = field(default_factory=dict)
    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    repeats: str | None = None
    rows: str | None = None
    columns: Columns = Columns()
    judged: bool = False

    @property
    def items(self) -> str | None:
        """The part of ``rows`` that says which of them are items."""
        last = (self.rows or "").rpartition(":")[2]
        return last if last in {"with_id", "all"} else None

    def direction(self, place: str, metric: str, *, documented: bool | None = None) -> bool:
        """Return True if a higher score is better, as asked or as the log says; else refuse."""
        higher = self.higher if self.higher is not None else documented
        if higher is None:
            way = "say so with --given better=higher or better=lower"
            ways = Choice("higher", "a higher one"), Choice("lower", "a lower one")
            question = Question("better", f"Which {metric} is better?", ways, metric)
            detail = f"{place} does not say which {metric} is better: {way}"
            raise asked(place, [question], " ".join(detail.split()))
        return higher


def refused(detail: str, field: str | None = None) -> InvalidValue:
    """The refusal of a log, in one line."""
    return InvalidValue(" ".join(detail.split()), field=field)


def chosen(names: list[str], wanted: str | None, place: str, option: str) -> str:
    """The name that is wanted, or the only one there is; of several it is asked.

    Refuses a name that is not there, and none at all.
    """
    listed = ", ".join(names)
    if wanted is not None and wanted not in names:
        raise refused(f"{place} has no {option} {wanted!r}, only {listed or 'none'}", option)
    if not names:
        raise refused(f"{place} has no {option}: there are no scores in it", option)
    question = choice_of(names, wanted, option)
    if question is not None:
        how = f"choose one with --given {option}=…"
        detail = f"{place} has no single {option} but several ({listed}): {how}"
        raise asked(place, [question], " ".join(detail.split()))
    return names[0] if wanted is None else wanted


def choice_of(names: list[str], wanted: str | None, option: str) -> Question | None:
    """The question which of these names is meant; None where it is said, or there is one only."""
    if wanted is not None or len(names) == 1:
        return None
    text = f"The log has several {option}s. Which one?"
    return Question(option, text, tuple(Choice(name, f"the {option} {name}") for name in names))


def keyed(metadata: Mapping[str, Any] | None, key: str, place: str) -> str:
    """The name of an item by the ``key`` of its metadata; refuses one without it."""
    held = (metadata or {}).get(key)
    if held is None:
        raise refused(f"{place} has no {key!r} in its metadata", "id")
    return str(held)


def digest_of(*parts: object) -> str:
    """A hash of what an item is."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def text_of(value: object) -> str | None:
    """A value as the text a judge is shown: itself, or its JSON; None for none."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)

"""A file as it is read, on the page of a new session: its questions, columns, items and bad rows.

The page sends the file with the fields of its form, the names of those that somebody has changed,
and the state that it was given the last time.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import PurePath
from typing import IO, Any, Final, NamedTuple

from pydantic import BaseModel

from celeus.api.pools.files import PoolFileOut, PoolFileQuery, RowOut
from celeus.api.wire.problems import ColumnOut, ProblemError, QuestionOut
from celeus.api.wire.uploads import Format
from celeus.core.insights.figures import count
from celeus.errors import Busy, InvalidValue, NeedsAnswer, RateLimited, Refusal, Unavailable
from celeus.shorten import as_json
from celeus.web.forms import number_in, validated
from celeus.web.wording import counted, sentence, short

ROLES: Final = {
    "id": "Id",
    "question": "Question",
    "answer": "Answer",
    "reference": "Reference",
    "messages": "Chat",
    "image": "Picture",
    "text": "Text beside it",
    "choices": "Choices",
    "instructions": "Instructions",
    "answer_a": "Answer of A",
    "answer_b": "Answer of B",
    "surrogate": "Guess of the loss",
    "score": "Guess of the score",
    "prediction": "Predicted class",
    "weight": "Weight",
    "group": "Group",
    "payload": "Shown, folded",
    "known": "Known verdict",
    "hidden": "Hidden",
}
"""Names of the roles of a column, in the order of the choice."""
_FORMATS: Final = {"csv": "CSV", "json": "JSON", "jsonl": "JSON Lines", "parquet": "Parquet"}
_SOURCES: Final = {
    "given": "As you said.",
    "remembered": "As for the last pool made of a file with these columns.",
    "guessed": "Taken from the names and values of the columns: change what is wrong.",
    "log": "As the format says.",
}
SEVERAL: Final = frozenset({"missing"})
"""Questions that several values may answer."""
OPEN: Final = frozenset({"scale"})
"""Questions with other answers than those that are listed."""
_FORMS: Final[Mapping[str, Format]] = {
    **dict.fromkeys(("csv", "tsv", "txt"), "csv"),
    **dict.fromkeys(("jsonl", "ndjson"), "ndjson"),
    **dict.fromkeys(("parquet", "pq"), "parquet"),
}
"""Format that a file is sent as, by the end of its name; that of all others is found out."""
LOOKED_AT: Final = "checked"
"""Name of the pool of a dry run, which is kept nowhere."""
SHOWN_ROWS: Final = 8
_MOST_LEVELS: Final = 20
PEEKED_BYTES: Final = 1 << 16
STATE_BYTES: Final = 1 << 20
"""Longest state of a page: it grows with the columns of a file."""
_MOST_CHANGES: Final = 256
_MOST_FAULTS: Final = 12
_HIGHEST_KEY: Final = 9
_MANY: Final = frozenset({"payload", "group", "hidden"})
"""Roles that several columns may have."""
_GUESSES: Final = frozenset({"surrogate", "score"})
"""Roles of which one column may have one."""
_JUDGED: Final = frozenset({"answer", "answer_a", "answer_b", "messages"})
_OF_NUMBERS: Final = frozenset({"better", "scale", "missing"})
"""Questions about numbers."""
_NUMBERS: Final = frozenset({"score", "surrogate", "known"})
"""Roles of columns of numbers."""
_TWO_SYSTEMS: Final = re.compile(
    rb'"[ab]"\s*:\s*\{\s*"(answer|prediction|payload|surrogate)"'
    rb"|\b(answer|prediction|payload|surrogate|response|output|completion|antwort)_?[ab12]\b"
    rb"|\b(chosen|rejected)\b",
    re.IGNORECASE,
)
"""A member, or a column, that only rows of two systems have; two words where they are near."""
_NEAR_BYTES: Final = 5_000
_LOSS: Final = frozenset({"zero_one", "bounded", "cross_entropy"})
_KINDS: Final = {
    "lower": frozenset({"bounded"}),
    "upper": frozenset({"bounded", "cross_entropy", "preference", "difference"}),
    "score_name": _LOSS,
    "score_better": _LOSS,
    "system_a": _LOSS | {"preference"},
    "system_b": _LOSS | {"preference"},
    "normalisation": _LOSS | {"preference"},
}
"""Fields that suit some kinds of loss only."""
_OF_TWO: Final = frozenset({"preference", "difference", "system_a", "system_b", "normalisation"})
_OF_ONE: Final = frozenset({"cross_entropy"})
"""Kinds and fields that suit answers of two systems, or of one."""
_NUMBER_FIELDS: Final = frozenset({"lower", "upper"})
_EARLIER: Final = ("based_on", "labels_seen", "earlier_answer", "earlier_system")
_PLACES: Final = {
    "name": "pool_name",
    "session": "based_on",
    "answer": "earlier_answer",
    "system": "earlier_system",
    "score.name": "score_name",
    "score.better": "score_better",
}
"""Fields of the page by the names that refusals give them."""
_PRESET: Final = {
    "subject": "one",
    "kind": "zero_one",
    "lower": "0",
    "upper": "5",
    "system_a": "A",
    "system_b": "B",
    "score_better": "lower",
}
_BESIDE: Final = {
    "surrogate": "guess of the loss",
    "weight": "weight",
    "group": "group",
    "prediction": "predicted class",
}
"""Members of an item that are not shown to a judge."""
_COLUMNS_OF_TWO: Final = (
    "Which columns hold the answers of the two systems? Choose “Answer of A” and “Answer of B” in"
    " the table below."
)
_COLUMNS: Final = "What do judges see of a row? Choose what every column is in the table below."
_HALF: Final = "Choose the answer of the other system in the table below, too."
_IDS: Final = {"pool_name": "pool-name", "lower": "loss-lower", "upper": "loss-upper"}
"""Elements of fields that are not called as these."""


class AskedQuestion(BaseModel):
    """A question of a file, and what is answered so far."""

    question: QuestionOut
    answers: list[str] = []

    @property
    def key(self) -> str:
        """The name of the question on the page."""
        return json.dumps([self.question.name, self.question.column])

    @property
    def kind(self) -> str:
        """The kind of input that chooses an answer."""
        return "checkbox" if self.question.name in SEVERAL else "radio"

    @property
    def example(self) -> list[tuple[str, str]]:
        """The row in which the question shows."""
        return [(name, _text(value)) for name, value in (self.question.example or {}).items()]

    @property
    def is_open(self) -> bool:
        """True if any text is an answer."""
        return self.question.name in OPEN or not self.question.choices

    @property
    def before(self) -> str:
        """The beginning of an answer in words of one's own: the name of the column."""
        first = self.question.choices[0].value if self.question.choices else ""
        return first[: first.rfind("=") + 1]

    @property
    def other(self) -> str:
        """The answer that is none of the choices."""
        listed = {choice.value for choice in self.question.choices}
        return next((answer for answer in self.answers if answer not in listed), "").removeprefix(
            self.before
        )

    def words(self, value: str) -> str:
        """Return a choice without the name of the column that the question has said."""
        if self.question.name == "mapping":
            return ROLES.get(value, value)
        before = "" if self.question.name == "repeats" else f"{self.question.column}="
        return value.removeprefix(before)

    def ask_again(self, question: QuestionOut) -> None:
        """Take what is asked now; of several values, those that were chosen stay choices."""
        if question.name in SEVERAL:
            known = {choice.value for choice in self.question.choices}
            self.question.choices += [new for new in question.choices if new.value not in known]
        else:
            self.question, self.answers = question, []

    def take(self, listed: list[str], other: str, *, typed: bool) -> None:
        """Take the answer: of those that are listed, or in words of one's own."""
        written = other and (typed or not listed)
        self.answers = [f"{self.before}{other}"] if written else listed


class FileState(BaseModel):
    """State that the page keeps of a file from one look at it to the next.

    ``given``: somebody has said what its columns are. ``supposed``: it looked like two systems.
    """

    format: str | None = None
    read_as: list[str] = []
    columns: list[ColumnOut] = []
    roles: dict[str, str] = {}
    source: str | None = None
    given: bool = False
    supposed: bool = False
    questions: list[AskedQuestion] = []

    def place(self, column: str, role: str) -> None:
        """Give a column a role; another one that had it, of which there is one, is not used."""
        alone = _GUESSES if role in _GUESSES else {role} - _MANY
        changed = {name for name, given in self.roles.items() if given in alone} - {column}
        self.roles |= dict.fromkeys(changed, "hidden") | {column: role}
        self.given = True
        # What was asked of them is asked no longer, nor what is judged where that is said now
        self.questions = [
            asked
            for asked in self.questions
            if not (
                role in _JUDGED or asked.answers
                if asked.question.name == "answer"
                else asked.question.column in changed | {column}
            )
        ]

    def ask(self, questions: Sequence[QuestionOut]) -> None:
        """Ask these, too; what is answered stays."""
        known = {asked.key: asked for asked in self.questions}
        for question in questions:
            # Roles are given in the table of columns, where nobody can give one that stands there
            if question.name == "mapping" and self.is_hidden(question):
                continue
            asked = AskedQuestion(question=question)
            if asked.key in known:
                known[asked.key].ask_again(question)
            else:
                self.questions.append(asked)

    def settle(self) -> None:
        """Ask nothing else; which column is judged stays open where roles were given instead."""
        self.questions = [
            asked for asked in self.questions if asked.answers or asked.question.name == "answer"
        ]

    def is_hidden(self, question: QuestionOut) -> bool:
        """Return whether a question is about a column that judges would not see."""
        return self.roles.get(question.column or "", "hidden") == "hidden"

    @property
    def is_half(self) -> bool:
        """Somebody has said which column is the answer of one of two systems only."""
        roles = set(self.roles.values())
        return self.given and ("answer_a" in roles) != ("answer_b" in roles)

    @property
    def mapping(self) -> str:
        """The roles as a request takes them; what is not used is left out."""
        return json.dumps({name: role for name, role in self.roles.items() if role != "hidden"})

    @property
    def answers(self) -> dict[str, Any]:
        """The answers, as a request has them, but for columns that hold no numbers now."""
        given: dict[str, Any] = {}
        for asked in self.questions:
            name, column = asked.question.name, asked.question.column or ""
            if name in _OF_NUMBERS:
                if self.roles.get(column, "score") in _NUMBERS:
                    given.setdefault(name, []).extend(asked.answers)
            elif asked.answers:
                given[name] = asked.answers[-1]
        return given


class ShownItem(NamedTuple):
    """An item as if it were drawn, and what is not shown of it to a judge."""

    draw: dict[str, Any]
    name: str
    beside: str


class Level(NamedTuple):
    """A row in which a level is named."""

    grade: str = ""
    name: str = ""
    help: str = ""


class FileForm:
    """The part of the page for a file: what it was read as, and what may be said of it."""

    def __init__(
        self, fields: Mapping[str, list[str]] | None = None, state: str = "", name: str = ""
    ) -> None:
        self.fields = dict(fields or {})
        self.state = FileState.model_validate_json(state) if state else FileState()
        self.found: PoolFileOut | None = None
        self.fault: Refusal | None = None
        self._hint = self.announced = ""
        self.whole = True
        self.form = _FORMS.get(PurePath(name).suffix.lower().removeprefix("."))
        self.lead = ""
        """The element that whoever brought it here goes on with."""
        self.changed = list(dict.fromkeys(self.fields.get("changed", [])))
        columns = (self.fields.get(f"level.{name}", []) for name in Level._fields)
        self.levels = [Level(*row) for row in zip_longest(*columns, fillvalue="")]

    def __getitem__(self, name: str) -> str:
        """Return what stands in a field."""
        return self.fields.get(name, [_PRESET.get(name, "")])[0].strip()

    def __setitem__(self, name: str, value: str) -> None:
        """Write into a field."""
        self.fields[name] = [value]

    def take_changes(self, file: IO[bytes]) -> None:
        """Take what follows from every change; refuses more than people make between two looks."""
        if len(self.changed) > _MOST_CHANGES:
            words = f"At most {_MOST_CHANGES} fields can change at once."
            raise InvalidValue(words, field="changed")
        for name in self.changed:
            file.seek(0)
            self._take(name, file)
        self._offer_levels()

    def _take(self, name: str, file: IO[bytes]) -> None:
        """Take what follows from a change of this field."""
        part, _, rest = name.partition(".")
        if name == "file":
            self._suppose(file)
        elif name == "subject":
            # The same answer has another meaning of two systems
            self.state.supposed, self.state.questions = False, []
            self.about(self["subject"])
        elif name == "kind":
            self._suit_kind()
        elif part == "role":
            self.state.place(rest, self[name])
        elif part in {"answer", "other"}:
            self._answer(rest, typed=part == "other")
        elif name == "level.name" and self._named and not self["score_name"]:
            # Levels are of a score; they mostly say how good something is
            self["score_name"] = "accuracy" if self["kind"] == "zero_one" else "quality"
            self["score_better"] = "higher"

    def _suppose(self, file: IO[bytes]) -> None:
        """Begin with what a file looks like, but for what somebody has chosen meanwhile."""
        self.state = FileState()
        if not self._names_levels:
            self.levels = []
        kind = self["kind"] if "kind" in self.changed else ""
        if "subject" not in self.changed and kind not in _OF_ONE | _OF_TWO:
            self.state.supposed = _holds_two(file)
            self.about("two" if self.state.supposed else "one")

    @property
    def _names_levels(self) -> bool:
        """True if somebody has written into a row of the levels."""
        return any(name.startswith("level.") for name in self.changed)

    def _offer_levels(self) -> None:
        """Have a row for each grade of the scale while none has a name, and room for one more."""
        begins = {"file", "subject", "kind", "lower", "upper"} & {*self.changed}
        named = self._names_levels or any(level.name.strip() for level in self.levels)
        if begins and not named:
            self.levels = [Level(grade) for grade in self._first_grades()]
        if len(self.levels) < _MOST_LEVELS and self.levels[-1:] != [Level()]:
            self.levels.append(Level())

    def about(self, subject: str) -> None:
        """Take the rows as answers of two systems, or of one."""
        self["subject"] = subject
        if self["kind"] in (_OF_ONE if subject == "two" else _OF_TWO):
            self["kind"] = "zero_one"
        self._suit_kind()

    def _suit_kind(self) -> None:
        """Begin with the limits of another kind of loss, unless somebody has given others."""
        if "upper" in self.changed:
            return
        self["upper"] = "1" if self["kind"] in {"preference", "difference"} else "5"

    def _answer(self, key: str, *, typed: bool) -> None:
        for asked in self.state.questions:
            if asked.key == key:
                listed = self.fields.get(f"answer.{key}", [])
                if asked.question.name == "mapping" and listed:
                    return self.state.place(asked.question.column or "", listed[-1])
                return asked.take(listed, self[f"other.{key}"], typed=typed)
        return None

    def _first_grades(self) -> list[str]:
        """Return every grade that has a key, else the two ends; none of a scale without ends."""
        if self["kind"] == "zero_one":
            return ["0", "1"]
        try:
            low, high = self._number("lower"), self._number("upper")
        except InvalidValue:
            return []
        keyed = low.is_integer() and high.is_integer() and 0 <= low <= high <= _HIGHEST_KEY
        grades = range(int(low), int(high) + 1) if keyed else (low, high)
        return [f"{grade:.15g}" for grade in grades]

    def query(self, **more: object) -> PoolFileQuery:
        """Return what is asked of the file; refuses a field that cannot be read."""
        kind, two = self["kind"], self["subject"] == "two"
        given: dict[str, Any] = {"kind": kind}
        for name, kinds in _KINDS.items():
            if kind in kinds and (two or name not in _OF_TWO):
                given[name] = self._number(name) if name in _NUMBER_FIELDS else self[name]
        if not given.get("score_name"):
            given.pop("score_better", None)
        if self["based_on"]:
            given |= {name: self[name] for name in _EARLIER}
        given = {name: value for name, value in given.items() if value != ""}
        if self.state.given:
            given["mapping"] = self.state.mapping
        return validated(PoolFileQuery, given | self._levels() | self.state.answers | more)

    @property
    def looking(self) -> PoolFileQuery:
        """The request to look at the file."""
        more: dict[str, object] = {"name": LOOKED_AT, "dry_run": True, "preview": SHOWN_ROWS}
        # Somebody is still naming them
        return self.query(**more | ({"levels": None} if len(self._named) == 1 else {}))

    @property
    def making(self) -> PoolFileQuery:
        """The request to make the pool: as it was shown, whatever the rest would suggest."""
        if not self["pool_name"]:
            raise InvalidValue("The pool needs a name.", field="name")
        more = {"name": self["pool_name"], "on_error": "skip" if self["skip"] else "fail"}
        if self.state.source != "items":
            more["mapping"] = self.state.mapping
        return self.query(**more)

    @property
    def _named(self) -> list[int]:
        """The rows of levels that have a name."""
        suits = self["subject"] == "one" and self["kind"] in {"zero_one", "bounded"}
        return [at for at, level in enumerate(self.levels) if suits and level.name.strip()]

    def _levels(self) -> dict[str, str]:
        if not self._named:
            return {}
        if not self["score_name"]:
            words = "Levels are grades of a score: it needs a name."
            raise InvalidValue(words, field="score_name")
        levels: list[dict[str, object]] = [
            {
                "name": self.levels[at].name.strip(),
                "grade": number_in(self.levels[at].grade, f"levels.{place}.grade"),
                "help": self.levels[at].help.strip() or None,
            }
            for place, at in enumerate(self._named)
        ]
        return {"levels": json.dumps(levels)}

    def _number(self, name: str) -> float:
        return number_in(self[name], name)

    @property
    def must_choose(self) -> bool:
        """True if the answer of the other system has to be chosen first."""
        # With an earlier version, the answer of one is enough
        return self["subject"] == "two" and not self["based_on"] and self.state.is_half

    @property
    def hint(self) -> str:
        """The thing to do first; empty where nothing is missing."""
        return _HALF if self.must_choose else self._hint

    def show(self, found: PoolFileOut) -> None:
        """Show what a look at the file has found."""
        self.found = found
        state = self.state
        state.settle()
        state.source = "given" if state.given else found.mapping_source
        state.format, state.read_as, state.columns = found.format, found.read_as, found.columns
        state.roles = dict(found.mapping)
        self.announced = f"{self.counted_rows}: {self.valid}. {self.guesses}"

    def refuse(self, fault: Refusal) -> None:
        """Show why there is no such pool, or ask what the file leaves open."""
        self.fault = fault
        if isinstance(fault, NeedsAnswer):
            self._ask(fault)
        else:
            self.lead = _IDS.get(self.wrong, self.wrong)

    def _ask(self, fault: NeedsAnswer) -> None:
        questions = [QuestionOut.model_validate(question) for question in fault.questions]
        columns: Any = fault.more.get("columns") or []
        state = self.state
        if columns:
            state.columns = [ColumnOut.model_validate(column) for column in columns]
            state.roles = {column.name: column.role for column in state.columns}
            state.format = fault.more.get("format")  # type: ignore[assignment]
            state.read_as = fault.more.get("read_as") or []  # type: ignore[assignment]
            state.source = None
        state.ask(questions)
        if state.questions:
            text = questions[0].text.replace("`", "")
            self.announced = f"{counted(len(questions), 'question')} to answer. {text}"
        first = next((asked.key for asked in state.questions if not asked.answers), None)
        self.lead = "" if first is None else f"question-{first}"
        mapped = [new for new in questions if new.name == "mapping" and state.is_hidden(new)]
        if mapped:
            named = self["subject"] == "two" and self["kind"] != "difference"
            self._hint = _COLUMNS_OF_TWO if named else _COLUMNS
            self.lead = f"role.{mapped[0].column}"

    @property
    def is_asked(self) -> bool:
        """True if the file leaves something open."""
        return isinstance(self.fault, NeedsAnswer)

    @property
    def wrong(self) -> str:
        """The field at which a refusal stands; empty where that is none of the page."""
        if self.fault is None or self.is_asked:
            return ""
        field = self.fault.field or ""
        level = re.fullmatch(r"levels\.(\d+)\.(name|grade|help)", field)
        if level and int(level[1]) < len(self._named):
            return f"level-{level[2]}-{self._named[int(level[1])]}"
        last = field.rpartition(".")[2]
        name = _PLACES.get(field) or _PLACES.get(last, last)
        return name if name in {"pool_name", *_KINDS, *_EARLIER} else ""

    @property
    def why(self) -> str:
        """The words of a refusal."""
        if self.fault is None:
            return ""
        fault, words = self.fault, sentence(self.fault.detail)
        if fault.rule is not None:
            words += f" It must be {fault.rule}."
        if fault.field is not None and fault.value is not None:
            words += f" Found in {fault.field}: {_text(as_json(fault.value))}."
        return words

    @property
    def problem(self) -> str:
        """The fault of the file as a whole, or the thing to do first."""
        if self.fault is None or self.is_asked or self.wrong or self.faults:
            return self.hint
        later = isinstance(self.fault, Busy | RateLimited | Unavailable)
        return f"{self.why}{' Try again in a moment.' if later else ''} Nothing was stored."

    @property
    def open(self) -> int:
        """The number of questions without an answer."""
        return sum(not asked.answers for asked in self.state.questions)

    @property
    def can_make(self) -> bool:
        """True if there are items and nothing is open, other than whether bad rows are left out."""
        return self.found is not None and self.found.items > 0 and not self.open

    @property
    def items(self) -> list[ShownItem]:
        """The first items, as judges will see them."""
        return [_shown(first.item) for first in self.found.first] if self.found else []

    @property
    def hidden(self) -> list[str]:
        """The columns that judges do not see."""
        columns = self.found.columns if self.found else []
        return [column.name for column in columns if column.role == "hidden"]

    @property
    def asks(self) -> str:
        """The number of open questions, and what they keep from being done."""
        if not self.open:
            return "All answered. You can change an answer here."
        return (
            f"{counted(self.open, 'question')} to answer before the pool can be created: the file"
            " does not say it, and it decides what is measured or what judges see."
        )

    @property
    def line(self) -> str:
        """The rows and what their columns are, in a line."""
        if self.found is None:
            return "What its columns mean"
        used = dict.fromkeys(role for role in self.state.roles.values() if role != "hidden")
        return f"{self.counted_rows}: {', '.join(ROLES.get(role, role).lower() for role in used)}."

    @property
    def description(self) -> str:
        """The file's format, how it was read, and the source of its roles."""
        state = self.state
        read = [_FORMATS.get(state.format or "", ""), *state.read_as]
        parts = [", ".join(filter(None, read)), counted(len(state.columns), "column")]
        words = "; ".join(filter(None, parts))
        return f"{words[:1].upper()}{words[1:]}. {_SOURCES.get(state.source or '', '')}".strip()

    @property
    def counted_rows(self) -> str:
        """The number of rows read."""
        if self.found is None:
            return ""
        found = counted(self.found.items + self.found.skipped, "row")
        return found if self.whole else f"The first {found}"

    @property
    def valid(self) -> str:
        """The number of rows that are items."""
        if self.found is None or not self.found.skipped:
            return "every row is a valid item"
        items, skipped = self.found.items, self.found.skipped
        return f"{counted(items, 'row')} are valid items, {count(skipped)} are not"

    @property
    def guesses(self) -> str:
        """The guesses of the losses that the items have."""
        if self.found is None:
            return ""
        if any(name.startswith("surrogate.") for name in self.found.numeric):
            return "They have a surrogate."
        if self.found.classes is not None:
            return f"They have probabilities of {count(self.found.classes)} classes."
        return "They have no surrogate: the session works without one but needs more labels."

    @property
    def preview(self) -> list[RowOut]:
        """The first rows as they stand in the file, where they are items already."""
        found = self.found
        return found.preview if found and found.mapping_source == "items" else []

    @property
    def names(self) -> list[str]:
        """The members of the rows that are previewed."""
        return list(dict.fromkeys(name for row in self.preview for name in row.cells))

    @property
    def faults(self) -> list[ProblemError]:
        """The bad rows that are known."""
        if self.found is not None:
            return self.found.errors
        rows: Any = [] if self.fault is None else self.fault.more.get("errors", [])
        return [ProblemError.model_validate(fault) for fault in rows]

    @property
    def bad(self) -> set[int | None]:
        """The lines that are no items."""
        return {fault.line for fault in self.faults}

    @property
    def faulty(self) -> list[str]:
        """The first bad rows, each with what is wrong."""
        lines = self.state.format in {None, "csv", "jsonl"}
        return [
            f"{'Line' if lines else 'Row'} {count(fault.line or 0)}{self._place(fault.field)}:"
            f" must be {fault.rule}, but is {_text(fault.value)}"
            for fault in self.faults[:_MOST_FAULTS]
        ]

    @property
    def more(self) -> int:
        """The number of bad rows not listed."""
        total: Any = None if self.fault is None else self.fault.more.get("total_errors")
        if self.found is not None:
            total = self.found.skipped
        return max(0, (len(self.faults) if total is None else total) - _MOST_FAULTS)

    def _place(self, role: str) -> str:
        roles = _GUESSES if role == "surrogate" else {role}
        columns = [name for name, given in self.state.roles.items() if given in roles]
        place = columns[0] if columns else role
        return f", {place}" if place else ""


def _holds_two(file: IO[bytes]) -> bool:
    """Return whether the beginning or the end of a file looks like rows of two systems."""
    start = file.read(PEEKED_BYTES)
    file.seek(0, 2)
    file.seek(max(0, file.tell() - PEEKED_BYTES))
    chosen = -math.inf
    for match in _TWO_SYSTEMS.finditer(start + file.read()):
        word = match[0].lower()
        if word == b"chosen":
            chosen = match.end()
        elif word != b"rejected" or match.start() - chosen <= _NEAR_BYTES:
            return True
    return False


def _shown(item: Mapping[str, Any]) -> ShownItem:
    """Return an uploaded item as if it were drawn."""
    answers = [_answer(answer) for answer in (item.get("answers") or {}).values()]
    left, right = (_answer(side) if (side := item.get(name)) else None for name in "ab")
    shown = {"index": 0, "id": str(item.get("id")), "payload": item.get("payload")}
    draw = {"round": 0, "item": shown, "left": left, "right": right, "answers": answers or None}
    beside = [
        f" · {words} {short(value) if isinstance(value, int | float) else value}"
        for member, words in _BESIDE.items()
        if (value := item.get(member)) is not None
    ]
    return ShownItem(draw, f"Item {item.get('id')}", "".join(beside))


def _answer(side: Mapping[str, Any]) -> dict[str, Any]:
    return {"answer": side.get("answer"), "payload": side.get("payload")}


def _text(value: Any) -> str:  # noqa: ANN401 -- a value of a file
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

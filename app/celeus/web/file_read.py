"""A file as it is read, on the page of a new session: its questions, columns and bad rows.

The page keeps the answers, and asks for this part of it to be shown anew when they change.
"""

import json
from typing import Any, Final

from fastapi import Response
from pydantic import BaseModel

from celeus.api.pools.files import RowOut
from celeus.api.wire.problems import ColumnOut, ProblemError, QuestionOut
from celeus.core.insights.figures import count
from celeus.web.pages import ManagesPage, page_router
from celeus.web.wording import counted

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
_MOST_FAULTS: Final = 12

router = page_router()


class AskedQuestion(BaseModel):
    """A question of a file, and what is answered so far."""

    key: str
    question: QuestionOut
    answers: list[str] = []

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


class FoundRows(BaseModel):
    """The rows of a file as items; ``whole`` where all of it was read."""

    items: int
    skipped: int
    whole: bool
    numeric: list[str]
    classes: int | None
    preview: list[RowOut] = []


class FileToShow(BaseModel):
    """A file as it was read: its columns with their roles, questions, and rows that are items."""

    format: str | None = None
    read_as: list[str] = []
    columns: list[ColumnOut] = []
    roles: dict[str, str] = {}
    examples: dict[str, list[str]] = {}
    source: str | None = None
    questions: list[AskedQuestion] = []
    rows: FoundRows | None = None
    faults: list[ProblemError] = []
    total: int = 0
    lines: bool = True

    @property
    def asks(self) -> str:
        """The number of open questions, and what they keep from being done."""
        left = sum(not asked.answers for asked in self.questions)
        if not left:
            return "All answered. You can change an answer here."
        return (
            f"{counted(left, 'question')} to answer before the pool can be created: the file does"
            " not say it, and it decides what is measured or what judges see."
        )

    @property
    def line(self) -> str:
        """The rows and what their columns are, in a line."""
        if self.rows is None:
            return "What its columns mean"
        used = dict.fromkeys(role for role in self.roles.values() if role != "hidden")
        return f"{self.counted_rows}: {', '.join(ROLES.get(role, role).lower() for role in used)}."

    @property
    def description(self) -> str:
        """The file's format, how it was read, and the source of its roles."""
        read = [_FORMATS.get(self.format or "", ""), *self.read_as]
        parts = [", ".join(filter(None, read)), counted(len(self.columns), "column")]
        words = "; ".join(filter(None, parts))
        return f"{words[:1].upper()}{words[1:]}. {_SOURCES.get(self.source or '', '')}".strip()

    @property
    def counted_rows(self) -> str:
        """The number of rows read."""
        if self.rows is None:
            return ""
        found = counted(self.rows.items + self.rows.skipped, "row")
        return found if self.rows.whole else f"The first {found}"

    @property
    def valid(self) -> str:
        """The number of rows that are items."""
        if self.rows is None or not self.rows.skipped:
            return "every row is a valid item"
        items, skipped = self.rows.items, self.rows.skipped
        return f"{counted(items, 'row')} are valid items, {count(skipped)} are not"

    @property
    def guesses(self) -> str:
        """The guesses of the losses that the items have."""
        if self.rows is None:
            return ""
        if any(name.startswith("surrogate.") for name in self.rows.numeric):
            return "They have a surrogate."
        if self.rows.classes is not None:
            return f"They have probabilities of {count(self.rows.classes)} classes."
        return "They have no surrogate: the session works without one but needs more labels."

    @property
    def names(self) -> list[str]:
        """The members of the rows that are previewed."""
        rows = [] if self.rows is None else self.rows.preview
        return list(dict.fromkeys(name for row in rows for name in row.cells))

    @property
    def bad(self) -> set[int | None]:
        """The lines that are no items."""
        return {fault.line for fault in self.faults}

    @property
    def faulty(self) -> list[str]:
        """The first bad rows, each with what is wrong."""
        unit = "Line" if self.lines else "Row"
        return [
            f"{unit} {count(fault.line or 0)}{self._place(fault.field)}: must be {fault.rule},"
            f" but is {_text(fault.value)}"
            for fault in self.faults[:_MOST_FAULTS]
        ]

    @property
    def more(self) -> int:
        """The number of bad rows not listed."""
        return max(0, self.total - _MOST_FAULTS)

    def _place(self, role: str) -> str:
        roles = {"surrogate", "score"} if role == "surrogate" else {role}
        columns = [name for name, given in self.roles.items() if given in roles]
        place = columns[0] if columns else role
        return f", {place}" if place else ""


@router.post("/sessions/new/file")
async def file_read(view: ManagesPage, body: FileToShow) -> Response:
    """Show what a file is read as: a part of the page of a new session."""
    return view.page("file_read.html", read=body, roles=ROLES)


def _text(value: Any) -> str:  # noqa: ANN401 -- a value of a file
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

"""A table as it was found in a file, whatever the file: names of columns, and rows."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from celeus.errors import InvalidValue

MOST_COLUMNS = 1_000
MOST_BAD = 100
"""Bad rows after which a file must have as many good ones to be read on."""
DEEPEST = 200
_NESTED = (dict, list, tuple)
DEPTH_RULE = f"at most {DEEPEST} objects and lists within each other"


@dataclass(frozen=True, slots=True)
class BadRow:
    """A placeholder for a row that cannot be read: the rule it breaks, and its text."""

    rule: str
    text: str


SheetRow = dict[str, Any] | BadRow


@dataclass(frozen=True, slots=True)
class Score:
    """The facts of a score: its direction and ends, None where open, and values that are none."""

    higher: bool | None = None
    scale: tuple[float, float] | None = None
    missing: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """The facts that a format itself settles: certain, whatever a file's values look like.

    ``roles`` are the roles of columns by name; a column without one is hidden. ``higher`` says that
    a higher score is better, None where the format does not fix it; ``scale`` are the ends of the
    score, and ``missing`` the values that stand for none. ``metrics`` are all columns that may be
    the score, of which `Options.metric` names one; ``repeats`` are columns in which rows of one id
    differ, such as a trial, a turn or a rater, and ``calls`` ids that no two runs share.
    """

    roles: Mapping[str, str]
    higher: bool | None = None
    scale: tuple[float, float] | None = None
    missing: tuple[object, ...] = ()
    metrics: Mapping[str, Score] = field(default_factory=dict)
    repeats: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of a file, as often as they are asked for, each with the number of its line or row.

    ``form`` is what the file is, such as `csv` or `lm-eval`; ``read_as`` is how it was read, a
    phrase each; ``known`` is what its format settles, None where the columns have to say it, all
    but those with ``roles`` by name.
    ``cells`` says that values are texts, as in CSV.
    """

    form: str
    rows: Callable[[], Iterator[tuple[int, SheetRow]]]
    read_as: tuple[str, ...] = ()
    known: Known | None = None
    cells: bool = False
    roles: Mapping[str, str] = field(default_factory=dict)


def bounded(rows: Iterator[tuple[int, SheetRow]]) -> Iterator[tuple[int, SheetRow]]:
    """The rows; refuses the file at a bad one if there were many, and most were bad."""
    bad = 0
    for count, (number, row) in enumerate(rows, 1):
        bad += isinstance(row, BadRow)
        yield number, row
        if bad > MOST_BAD and 2 * bad > count and isinstance(row, BadRow):
            detail = f"{bad} of the first {count} rows cannot be read."
            raise refused(detail, row.rule, row.text, f"line {number}")


def is_deep(value: object, levels: int = DEEPEST) -> bool:
    """More than so many objects and lists lie within each other: too many to go through them."""
    if not isinstance(value, _NESTED):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(
        is_deep(member, levels - 1) for member in inner if isinstance(member, _NESTED)
    )


def refused(detail: str, rule: str, value: object = None, field: str = "body") -> InvalidValue:
    """The refusal of a file, in one line."""
    return InvalidValue(" ".join(detail.split()), field=field, rule=rule, value=value)

"""The roles of columns, and who says them: a format, or somebody who gives a mapping."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from celeus.intake.sources.sheet import Known, refused
from celeus.intake.table.column_names import POSITIONS, effective_names, last_name, words
from celeus.intake.table.columns import Column

SHOWN = ("question", "answer", "reference", "image", "messages", "text", "choices", "instructions")
"""Roles of what a judge is shown, by the names that these have in a payload."""
SIDES = ("answer_a", "answer_b")
SEEN = frozenset({*SHOWN, *SIDES, "payload"})
"""Roles of what a judge sees."""
GUESSES = ("surrogate", "score")
NUMBERS = (*GUESSES, "known", "weight", "prediction")
HIDDEN = "hidden"
MANY = frozenset({"payload", "group", HIDDEN})
"""Roles that several columns may have."""
ROLES = ("id", *SHOWN, *SIDES, *NUMBERS, "group", "payload", HIDDEN)
JUDGED = frozenset({"answer", "messages", *SIDES})
"""Roles of what is judged itself."""
ASKS = frozenset({"question", "text", "image", "payload"})
"""Roles of what is shown beside it, and is judged where there is nothing else."""
BY_FORMAT = "the format says so"
Source = Literal["format", "given", "name", "value"]


@dataclass(frozen=True, slots=True)
class Kind:
    """The losses of the pool: their scale, and whether two systems are compared.

    ``preferred`` says that a judge of the two says which one is better, and nothing else.
    """

    lower: float = 0.0
    upper: float = 1.0
    two: bool = False
    preferred: bool = False


@dataclass(frozen=True, slots=True)
class Placed:
    """A column with its role, the reason for it in a phrase, and where that is from."""

    name: str
    role: str
    why: str
    source: Source


def by_format(columns: Sequence[Column], known: Known) -> list[Placed]:
    """The roles that a format has for its columns; one without is hidden."""
    beside = "the format shows it to nobody"
    return [
        Placed(
            column.name,
            known.roles.get(column.name, HIDDEN),
            BY_FORMAT if column.name in known.roles else beside,
            "format",
        )
        for column in columns
    ]


def by_mapping(
    columns: Sequence[Column], mapping: Mapping[str, str], why: str = "given"
) -> list[Placed]:
    """The roles that somebody gave; a column that is left out is hidden.

    Refuses a column or role that is not there, or a role twice.
    """
    names = [column.name for column in columns]
    _check_given(names, mapping)
    if {*mapping.values()} <= {HIDDEN}:
        rule = "a role for one column at least"
        raise refused("No column says what the items are.", rule, None, "mapping")
    left_out = "left out of the mapping"
    return [
        Placed(name, mapping.get(name, HIDDEN), why if name in mapping else left_out, "given")
        for name in names
    ]


def with_roles(
    placed: Sequence[Placed],
    roles: Mapping[str, str],
    why: str = "given",
    source: Source = "given",
) -> list[Placed]:
    """The same columns, these with the roles that somebody gave, which no others have then."""
    _check_given([column.name for column in placed], roles)
    taken = {*roles.values()} - MANY
    if not taken.isdisjoint(GUESSES):
        taken |= {*GUESSES}
    return [
        Placed(column.name, roles[column.name], why, source)
        if column.name in roles
        else replace(column, role=HIDDEN, why=f"another column is the {column.role}")
        if column.role in taken
        else column
        for column in placed
    ]


def with_answer(placed: Sequence[Placed], answer: str) -> list[Placed]:
    """The same columns, this one being judged; refuses one that is not there.

    A question, or a text, that is named stays what it is: it is judged itself.
    """
    roles = {column.name: column.role for column in placed}
    if answer not in roles:
        listed = ", ".join(roles)[:400]
        raise refused("The file has no such column.", f"one of {listed}", answer, "answer")
    if roles[answer] not in ASKS | JUDGED:
        return with_roles(placed, {answer: "answer"})
    others = [name for name, role in roles.items() if role == "answer" and name != answer]
    return with_roles(placed, dict.fromkeys(others, HIDDEN))


def with_groups(placed: Sequence[Placed], groups: Sequence[str]) -> list[Placed]:
    """The same columns, these being groups; refuses one that is not there."""
    names = [column.name for column in placed]
    absent = next((group for group in groups if group not in names), None)
    if absent is not None:
        listed = ", ".join(names)[:400]
        raise refused("The file has no such column.", f"one of {listed}", absent, "group")
    return with_roles(placed, dict.fromkeys(groups, "group"))


def without_positions(placed: Sequence[Placed]) -> list[Placed]:
    """The same columns; a guessed id that is called a place in its file, is none in another."""
    why = "its name: a place in this file, which joins none of another"
    return [
        replace(column, role=HIDDEN, why=why)
        if column.role == "id"
        and column.source == "name"
        and not words(POSITIONS).isdisjoint(effective_names(column.name)[0])
        else column
        for column in placed
    ]


def is_ambiguous(column: Placed) -> bool:
    """Return True for a reference that may be the answer itself, such as a `target`."""
    name = last_name(column.name)
    return column.source == "name" and column.role == "reference" and name in {"target", "solution"}


def _check_given(names: Sequence[str], mapping: Mapping[str, str]) -> None:
    taken: dict[str, str] = {}
    for name, role in mapping.items():
        place = f"mapping.{name}"
        if name not in names:
            listed = ", ".join(names)[:400]
            raise refused("The file has no such column.", f"one of {listed}", name, place)
        if role not in ROLES:
            raise refused("There is no such role.", f"one of {', '.join(ROLES)}", role, place)
        if role not in MANY and role in taken:
            rule = f"a role of its own: {taken[role]} is the {role} already"
            raise refused("Two columns have one role.", rule, role, place)
        taken[role] = name
    if {*GUESSES} <= {*mapping.values()}:
        raise refused(
            "A guess of the loss is a surrogate, or follows from a score.",
            "one of the two",
            "surrogate and score",
            "mapping",
        )

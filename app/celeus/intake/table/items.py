"""Rows of a sheet as items of a pool, by the roles of its columns.

A surrogate that is 0 or 1 in every row says that an item is certain, which no guess is: it becomes

    g = (v + p) / 2    where all are at an end of the scale
    g = v              else

with p the mean over the rows that have one, and p where a row has none; as of the logs of several
models (`celeus.intake.joining`). Of a score, which is better the higher it is, v is the scale
turned over.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from celeus.intake.sources.sheet import BadRow, Sheet, refused
from celeus.intake.table.chats import messages_of
from celeus.intake.table.columns import (
    Column,
    flat,
    is_missing,
    kept,
    number_of,
    picture_of,
    shown,
)
from celeus.intake.table.roles import MANY, ROLES, SIDES, Kind

HEARTBEAT_ROWS = 20_000
_UNFORESEEN = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)


@dataclass(frozen=True, slots=True)
class Guess:
    """The facts of a surrogate before it is used: its mean, and whether it is hard."""

    mean: float
    hard: bool

    def of(self, value: float | None) -> float:
        """The surrogate of a row."""
        if value is None:
            return self.mean
        return (value + self.mean) / 2 if self.hard else value


def checked(mapping: Mapping[str, str], columns: Sequence[Column]) -> dict[str, str]:
    """A role for every column; refuses a column or role that is not there, or a role twice."""
    names = [column.name for column in columns]
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
    roles = {name: mapping.get(name, "ignore") for name in names}
    given = set(roles.values())
    if {"surrogate", "score"} <= given:
        raise refused(
            "A guess of the loss is a surrogate, or follows from a score.",
            "one of the two",
            "surrogate and score",
            "mapping",
        )
    if given <= {"ignore"}:
        rule = "a role for one column at least"
        raise refused("No column says what the items are.", rule, None, "mapping")
    return roles


class Items:
    """The rows of a sheet as the service takes items."""

    def __init__(
        self, sheet: Sheet, columns: Sequence[Column], roles: Mapping[str, str], kind: Kind
    ) -> None:
        """Take roles that are `checked`."""
        self._sheet = sheet
        self._kind = kind
        self._roles = {name: role for name, role in roles.items() if role != "ignore"}
        self._comma = {column.name: column.comma for column in columns}
        self._groups = [name for name, role in self._roles.items() if role == "group"]
        self._guess: Guess | None = None

    def rows(self) -> Iterator[tuple[int, dict[str, Any] | BadRow] | None]:
        """Line or row number and item, or what is wrong with it; None now and then on the way."""
        if not {"surrogate", "score"}.isdisjoint(self._roles.values()):
            yield from self._look()
        for number, (line, row) in enumerate(self._sheet.rows(), 1):
            yield line, row if isinstance(row, BadRow) else self._made(number, row)

    def _look(self) -> Iterator[None]:
        """Find the mean of the surrogate, and whether all of it is at the ends of the scale."""
        total, count, hard = 0.0, 0, True
        ends = {self._kind.lower, self._kind.upper}
        name = next(path for path, role in self._roles.items() if role in {"surrogate", "score"})
        for number, (_, row) in enumerate(self._sheet.rows()):
            if number % HEARTBEAT_ROWS == HEARTBEAT_ROWS - 1:
                yield None
            value = None if isinstance(row, BadRow) else dict(flat(row)).get(name)
            found = None if is_missing(value) else self._loss(name, value)
            if isinstance(found, float) and self._kind.lower <= found <= self._kind.upper:
                total, count, hard = total + found, count + 1, hard and found in ends
        if count == 0:
            raise refused(
                "The column of the surrogate holds no guess of a loss.",
                f"numbers from {self._kind.lower:g} to {self._kind.upper:g}",
                None,
                f"mapping.{name}",
            )
        self._guess = Guess(total / count, hard)

    def _loss(self, name: str, value: object) -> object:
        """A guess of the loss, of a surrogate or a score; the value itself where it is none."""
        number = number_of(value, comma=self._comma.get(name, False))
        if not isinstance(number, int | float) or not abs(number) <= sys.float_info.max:
            return value
        if self._roles[name] == "score":
            return self._kind.lower + self._kind.upper - number
        return float(number)

    def _made(self, number: int, row: dict[str, Any]) -> dict[str, Any] | BadRow:
        """The item of a row; of one that none can be made of, what stands in the way."""
        try:
            return self._item(number, dict(flat(row)))
        except _UNFORESEEN as error:
            return BadRow("a row of which an item can be made", f"{type(error).__name__}: {error}")

    def _item(self, number: int, row: dict[str, Any]) -> dict[str, Any]:
        item: dict[str, Any] = {"id": str(number)}
        payload: dict[str, Any] = {}
        for name, role in self._roles.items():
            value = row.get(name)
            if role in {"surrogate", "score"}:
                item["surrogate"] = self._surrogate(name, value)
            elif role in SIDES:
                item[role[-1]] = {"answer": "" if is_missing(value) else shown(value)}
            elif role == "id":
                item["id"] = "" if is_missing(value) else shown(value).strip()
            elif not is_missing(value):
                self._set(item, payload, name, value)
        if payload:
            item["payload"] = payload
        return item

    def _set(self, item: dict[str, Any], payload: dict[str, Any], name: str, value: object) -> None:
        """Put what may be missing into its place."""
        role = self._roles[name]
        if role in {"weight", "prediction"}:
            number = number_of(value, comma=self._comma.get(name, False))
            item[role] = _whole(number) if role == "prediction" else number
        elif role == "group" and len(self._groups) == 1:
            item["group"] = shown(value)
        elif role == "group":
            item.setdefault("groups", {})[name] = shown(value)
        elif role == "payload":
            payload[name] = kept(value)
        else:
            payload[role] = _SHOWN.get(role, shown)(value)

    def _surrogate(self, name: str, value: object) -> object:
        if self._guess is None or is_missing(value):
            return self._guess and self._guess.mean
        found = self._loss(name, value)
        return self._guess.of(found) if isinstance(found, float) else found


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _chat(value: object) -> Any:  # noqa: ANN401 -- any JSON
    found = messages_of(value)
    return kept(value) if found is None else kept(found)


def _choices(value: object) -> Any:  # noqa: ANN401 -- any JSON
    return [shown(choice) for choice in value] if isinstance(value, list) else shown(value)


_SHOWN: Mapping[str, Callable[[Any], Any]] = {
    "image": picture_of,
    "messages": _chat,
    "choices": _choices,
}

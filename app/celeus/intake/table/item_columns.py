"""Columns of a table whose rows are items already, and its rows.

The name of a column is the path to its value in the row: lists are spread over `target_probs.0`,
`target_probs.1`, and so is a payload, `payload.question`, and what several systems answered,
`answers.NAME.prediction`. Of metrics and group columns there are `surrogate_NAME`, `known_NAME` and
`group_COLUMN`, of two systems `answer_a`. Parquet may hold them in one column of lists or structs.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from celeus.core.pools.rows.fields import FIELDS, SIDE_FIELDS
from celeus.errors import InvalidValue
from celeus.intake.sources.sheet import BadRow, SheetRow

JsonReader = Callable[[bytes], object]
"""Reads a JSON value; raises ValueError for what is none, InvalidValue for a repeated name."""
Path = tuple[str | int, ...]
"""Names of members within each other, or the place in a list."""
MAX_MEMBERS = 32
"""Members of a row; an item has at most sixteen."""
MOST_COLUMNS = 20_000
"""Every batch costs some time for each."""
_SIDES = ("a", "b")
_PLACE = re.compile("0|[1-9][0-9]{0,5}")
_LISTS = ("surrogates", "target_probs", "surrogate_probs")
_PARTS: Mapping[str, Path] = {
    **{f"known_{name}": ("known", name) for name in ("loss", "label", "reason")},
    **{f"{name}_{side}": (side, name) for side in _SIDES for name in sorted(SIDE_FIELDS)},
}
"""Columns that are members of the fields `known`, `a` and `b`."""
_PLAIN = frozenset({*FIELDS, *_SIDES, "answers", "groups"})
_TABLED = {"surrogate_": "surrogates", "known_": "known", "group_": "groups"}
"""Columns that together are fields by metric or group column, by what their names begin with."""
_NUMBERS = frozenset({"surrogate", "proxy", "weight", "loss_lower", "loss_upper"})
_OURS = frozenset({*FIELDS, *_PARTS, "prediction_a", "prediction_b"}) - frozenset(
    {"id", "group", "prediction", "weight", "known", *(f"answer_{side}" for side in _SIDES)}
)
"""Columns that no table but ours has."""
_OUR_PARTS = tuple(f"{name}." for name in ("payload", "payload_a", "payload_b", *_LISTS))


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of the columns of a table, by their positions.

    ``lists`` are positions of the elements of fields that are lists, and ``payloads`` paths of
    payloads that are spread over columns.
    """

    paths: tuple[Path, ...]
    lists: Mapping[str, list[int]]
    payloads: frozenset[Path]

    @classmethod
    def of(cls, header: list[str]) -> Self:
        """Layout of a header; refuses columns that are unknown, doubled or missing."""
        if len(header) > MOST_COLUMNS:
            raise _refused(f"at most {MOST_COLUMNS} columns", len(header))
        names: dict[Path, str] = {}
        for name in header:
            path = _path_of(name)
            if path in names:
                raise _refused("every column once", name)
            names[path] = name
        if ("id",) not in names:
            raise _refused("a column `id`", header)
        _check_apart(names)
        paths = tuple(names)
        lists: dict[str, dict[int, int]] = {}
        for position, (stem, *rest) in enumerate(paths):
            if rest and isinstance(rest[0], int):
                lists.setdefault(str(stem), {})[rest[0]] = position
        spread = frozenset(path[:-1] for path in paths if path[-2:-1] == ("payload",))
        in_order = {stem: _in_order(stem, places) for stem, places in lists.items()}
        return cls(paths, in_order, spread)

    def row(self, cells: list[Any]) -> dict[str, Any]:
        """The row in a line of cells; a cell that is None is left out."""
        row: dict[str, Any] = {}
        for path in self.payloads:
            _put(row, path, {})
        for path, cell in zip(self.paths, cells, strict=True):
            if len(path) == 1:
                if cell is not None:
                    row[str(path[0])] = cell
            elif path[0] not in self.lists and (cell is not None or path[0] == "answers"):
                _put(row, path, cell)
        for name, positions in self.lists.items():
            values = [cells[position] for position in positions]
            if any(value is not None for value in values):
                row[name] = values
        return row


def are_items(names: Sequence[str]) -> bool:
    """Return whether columns, or members of a row, are those of an item of this service."""
    if "id" not in names:
        return False
    if any(name in _OURS or name.startswith(_OUR_PARTS) for name in names):
        return True
    return all(
        name in _PLAIN
        or name in _PARTS
        or name.startswith(tuple(_TABLED))
        or (name.startswith("answers.") and name.count(".") > 1)
        for name in names
    )


def named(row: dict[str, Any]) -> dict[str, Any]:
    """The row, with a whole number for its id as text."""
    return row | {"id": str(row["id"])} if type(row.get("id")) is int else row


def narrow(row: SheetRow) -> SheetRow:
    """The row, a whole number as its id as text.

    A bad one where it has more members than are worth naming one by one.
    """
    if isinstance(row, BadRow):
        return row
    if len(row) > MAX_MEMBERS:
        return BadRow(f"an object of at most {MAX_MEMBERS} members", f"{len(row)} members")
    return named(row)


def csv_row(layout: Layout, cells: list[str], json_of: JsonReader) -> SheetRow:
    """The row in a line of texts, numbers as numbers; a bad one of another width."""
    if len(cells) != len(layout.paths):
        rule = f"{len(layout.paths)} cells, as in the header"
        return BadRow(rule, f"{len(cells)} cells: {','.join(cells)[:60]}")
    try:
        values = [
            _value(path, cell, json_of) for path, cell in zip(layout.paths, cells, strict=True)
        ]
    except InvalidValue as error:
        return BadRow(str(error.rule), str(error.value))
    return layout.row(values)


def _value(path: Path, cell: str, json_of: JsonReader) -> object:  # noqa: PLR0911 -- a form each
    """The value in a cell of a column; the text itself where a number is none, for the check."""
    name, within = path[-1], len(path) > 1
    if not cell:
        # An empty answer is one, too
        return cell if name == "answer" else None
    if name == "payload":
        return _payload(cell, json_of)
    if path[0] in _LISTS and within:
        return _number(cell)
    if path[0] == "known" and within:
        return _whole(cell) if name == "label" else cell if name == "reason" else _number(cell)
    if "payload" in path[:-1] or path[0] == "groups":
        return cell
    if name == "prediction":
        return _whole(cell)
    return _number(cell) if name in _NUMBERS else cell


def _payload(cell: str, json_of: JsonReader) -> object:
    if not cell.startswith("{"):
        return cell
    try:
        return json_of(cell.encode())
    except InvalidValue:
        raise
    except ValueError:
        return cell


def _number(cell: str) -> object:
    try:
        return cell if "_" in cell else float(cell)
    except ValueError:
        return cell


def _whole(cell: str) -> object:
    digits = cell.removeprefix("-")
    return int(cell) if digits.isascii() and digits.isdigit() and len(digits) < 16 else cell


def _put(row: dict[str, Any], path: Path, value: object) -> None:
    """Set a member of a member."""
    inner: dict[Any, Any] = row
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    inner[path[-1]] = value


def _path_of(name: str) -> Path:
    """The path that the name of a column is; refuses an unknown one."""
    stem, dot, rest = name.partition(".")
    system, _, member = rest.rpartition(".")
    if name in _PLAIN:
        return (name,)
    if name in _PARTS:
        return _PARTS[name]
    if dot and rest and (stem == "payload" or stem in {f"payload_{side}" for side in _SIDES}):
        return (*_PARTS.get(stem, (stem,)), rest)
    if stem == "answers" and system and member in SIDE_FIELDS:
        return ("answers", system, member)
    if dot and stem in _LISTS and _PLACE.fullmatch(rest):
        return (stem, int(rest))
    for begin, whole in _TABLED.items():
        if name.startswith(begin) and name != begin:
            return (whole, name.removeprefix(begin))
    spread = ", ".join(f"{name}.0" for name in _LISTS)
    known = ", ".join(sorted({*FIELDS, *_PARTS}))
    rule = f"one of {known}, {spread}, payload.<name>, answers.<system>.<member>"
    raise _refused(f"{rule}, surrogate_<metric>, known_<metric>, group_<column>", name)


def _check_apart(names: Mapping[Path, str]) -> None:
    """Refuse a column of a field beside columns of its parts, and parts of two kinds."""
    for path in names:
        for length in range(1, len(path)):
            if path[:length] in names:
                whole = names[path[:length]]
                raise _refused(f"either `{whole}` or its parts", whole)
    if len({type(path[-1]) for path in names if path[0] == "surrogates"}) > 1:
        raise _refused("either `surrogates` or its parts", "surrogates")
    known = {path for path in names if path[0] == "known"}
    if len({path in _PARTS.values() for path in known}) > 1:
        raise _refused("losses known by metric, or of a pool of one loss", "known")


def _in_order(stem: str, places: Mapping[int, int]) -> list[int]:
    for place in range(len(places)):
        if place not in places:
            raise _refused(f"{stem}.0 to {stem}.{max(places)} without a gap", f"{stem}.{place}")
    return [places[place] for place in range(len(places))]


def _refused(rule: str, value: object) -> InvalidValue:
    return InvalidValue(
        "The columns of the upload cannot be read.", field="header", rule=rule, value=value
    )

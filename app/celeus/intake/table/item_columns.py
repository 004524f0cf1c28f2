"""Columns of a table whose rows are items already, and its rows.

Lists are spread over columns, `target_probs.0`, `target_probs.1`, and so is a payload,
`payload.question`, and what several systems answered, `answers.NAME.prediction`. Of metrics and
group columns there are `surrogate_NAME`, `known_NAME` and `group_COLUMN`. Parquet may hold them in
one column of lists or structs as well.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from celeus.core.pools.rows.fields import FIELDS, SIDE_FIELDS
from celeus.errors import InvalidValue
from celeus.intake.sources.sheet import BadRow, SheetRow

JsonReader = Callable[[bytes], object]
"""Reads a JSON value; raises ValueError for what is none, InvalidValue for a repeated name."""
MAX_MEMBERS = 32
"""Members of a row; an item has at most sixteen."""
MOST_COLUMNS = 20_000
"""Every batch costs some time for each."""
SIDES = ("a", "b")
_NUMBER = re.compile("0|[1-9][0-9]{0,5}")
FLAT = ("known_loss", "known_label", "known_reason")
"""Columns that together are the field `known`."""
LISTS = ("surrogates", "target_probs", "surrogate_probs")
PAIRED = {f"{name}_{side}": (side, name) for side in SIDES for name in sorted(SIDE_FIELDS)}
"""Columns that together are the fields `a` and `b` of a comparison."""
TEXTS = tuple(f"answer_{side}" for side in SIDES)
ANSWERS = "answers"
PLAIN = frozenset({*FIELDS, *FLAT, *PAIRED, *SIDES, ANSWERS, "groups"})
TABLED = {"surrogate_": "surrogates", "known_": "known", "group_": "groups"}
"""Columns that together are fields by metric or group column, by what their names begin with."""
PARTS = ("plain", "lists", "payloads", "answers", "tabled")
"""Members of a layout that columns go to."""
PAYLOADS = ("payload", *(f"payload_{side}" for side in SIDES))


_OURS = frozenset(
    {
        *("payload", "surrogate", "surrogates", "target_probs", "surrogate_probs", "proxy"),
        *("known_loss", "known_label", "known_reason"),
        *("loss_lower", "loss_upper", "bound_reason", "prediction_a", "prediction_b"),
    }
)
"""Columns that no table but ours has."""
_OUR_PARTS = (
    *("payload.", "payload_a", "payload_b", "surrogates.", "surrogate_a", "surrogate_b"),
    *("target_probs.", "surrogate_probs."),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of a row's fields in a line of cells."""

    width: int
    plain: dict[str, int]
    lists: dict[str, list[int]]
    payloads: dict[str, dict[str, int]]
    answers: dict[tuple[str, str], int]
    tabled: dict[tuple[str, str], int] = field(default_factory=dict)
    texts: frozenset[int] = frozenset()
    """Positions of answers that are texts: an empty one is an answer too."""

    @classmethod
    def of(cls, header: list[str]) -> Self:
        """Layout of a header; refuses columns that are unknown, doubled or missing."""
        if len(header) > MOST_COLUMNS:
            raise _refused(f"at most {MOST_COLUMNS} columns", len(header))
        places: dict[str, dict[Any, int]] = {part: {} for part in PARTS}
        for position, name in enumerate(header):
            part, key = _place(name)
            if key in places[part]:
                raise _refused("every column once", name)
            places[part][key] = position
        plain, answers, tabled = places["plain"], places["answers"], places["tabled"]
        stems = _by_stem(places["lists"])
        lists = {stem: _in_order(stem, columns) for stem, columns in stems.items()}
        payloads = _by_stem(places["payloads"])
        _check_once(plain, lists, payloads, {whole for whole, _ in tabled})
        if ANSWERS in plain and answers:
            raise _refused(f"either `{ANSWERS}` or its parts", ANSWERS)
        texts = {plain[name] for name in TEXTS if name in plain}
        texts |= {position for (_, member), position in answers.items() if member == "answer"}
        return cls(len(header), plain, lists, payloads, answers, tabled, frozenset(texts))

    def row(self, cells: list[Any]) -> dict[str, Any]:
        """The row in a line of cells; a cell that is None is left out."""
        row = {
            name: cells[position]
            for name, position in self.plain.items()
            if cells[position] is not None
        }
        known = {name.removeprefix("known_"): row.pop(name) for name in FLAT if name in row}
        if known:
            row["known"] = known
        for name, positions in self.lists.items():
            values = [cells[position] for position in positions]
            if any(value is not None for value in values):
                row[name] = values
        for stem, places in self.payloads.items():
            row[stem] = {
                name: cells[position]
                for name, position in places.items()
                if cells[position] is not None
            }
        for name in PAIRED.keys() & row.keys():
            side, member = PAIRED[name]
            row.setdefault(side, {})[member] = row.pop(name)
        for (system, member), position in self.answers.items():
            row.setdefault(ANSWERS, {}).setdefault(system, {})[member] = cells[position]
        for (whole, name), position in self.tabled.items():
            if cells[position] is not None:
                row.setdefault(whole, {})[name] = cells[position]
        return row


def are_items(names: Sequence[str]) -> bool:
    """Return whether columns, or members of a row, are those of an item of this service."""
    if "id" not in names:
        return False
    if any(name in _OURS or name.startswith(_OUR_PARTS) for name in names):
        return True
    return all(
        name in PLAIN or name.startswith(tuple(TABLED)) or _of_several(name) for name in names
    )


def _of_several(name: str) -> bool:
    return name.startswith("answers.") and name.count(".") > 1


def _cell_number(cell: str | None) -> object:
    """The number in a cell of text; the text itself where there is none, for the check to name."""
    if cell is None or "_" in cell:
        return cell
    try:
        return float(cell)
    except ValueError:
        return cell


def _cell_whole(cell: str) -> object:
    """The whole number in a cell of text; the text itself where there is none."""
    digits = cell.removeprefix("-")
    return int(cell) if digits.isascii() and digits.isdigit() and len(digits) < 16 else cell


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


def _cell_numbers(cells: list[str | None]) -> list[object]:
    return [_cell_number(cell) for cell in cells]


def _several_numbers(cells: list[str | None] | dict[str, str]) -> object:
    """Surrogates in a list, or by the names of metrics."""
    if isinstance(cells, dict):
        return {name: _cell_number(cell) for name, cell in cells.items()}
    return _cell_numbers(cells)


_NUMBERS = ("surrogate", "proxy", "weight", "loss_lower", "loss_upper")
_READERS: dict[str, Callable[[Any], object]] = {
    **dict.fromkeys(_NUMBERS, _cell_number),
    **dict.fromkeys(("target_probs", "surrogate_probs"), _cell_numbers),
    "surrogates": _several_numbers,
    "prediction": _cell_whole,
}
_SIDE_READERS = {"surrogate": _cell_number, "prediction": _cell_whole}


def csv_row(layout: Layout, cells: list[str], json_of: JsonReader) -> SheetRow:
    """The row in a line of texts, numbers as numbers; a bad one of another width."""
    if len(cells) != layout.width:
        rule = f"{layout.width} cells, as in the header"
        return BadRow(rule, f"{len(cells)} cells: {','.join(cells)[:60]}")
    texts = layout.texts
    row = layout.row(
        [cell or ("" if column in texts else None) for column, cell in enumerate(cells)]
    )
    for name in _READERS.keys() & row:
        row[name] = _READERS[name](row[name])
    if isinstance(row.get("known"), dict):
        row["known"] |= _known_cells(row["known"])
    sides = [row[side] for side in SIDES if isinstance(row.get(side), dict)]
    if layout.answers:
        sides += row[ANSWERS].values()
    for side in sides:
        side |= {
            name: _SIDE_READERS[name](side[name])
            for name in _SIDE_READERS.keys() & side
            if side[name] is not None
        }
    for place in (row, *sides):
        payload = place.get("payload")
        if isinstance(payload, str) and payload.startswith("{"):
            try:
                place["payload"] = json_of(payload.encode())
            except InvalidValue as error:
                return BadRow(str(error.rule), str(error.value))
            except ValueError:
                pass
    return row


def _known_cells(known: dict[str, str]) -> dict[str, object]:
    """Loss and label of a known item as numbers, or the losses known by metric."""
    reads: dict[str, Callable[[str], object]] = {"label": _cell_whole, "reason": str}
    return {name: reads.get(name, _cell_number)(cell) for name, cell in known.items()}


def _place(name: str) -> tuple[str, Any]:
    """Return the part of the layout that a column goes to, and its key there."""
    stem, dot, rest = name.partition(".")
    system, _, member = rest.rpartition(".")
    if name in PLAIN:
        return "plain", name
    if dot and stem in PAYLOADS and rest:
        return "payloads", (stem, rest)
    if stem == ANSWERS and system and member in SIDE_FIELDS:
        return "answers", (system, member)
    if dot and stem in LISTS and _NUMBER.fullmatch(rest):
        return "lists", (stem, int(rest))
    if (part := _tabled(name)) is not None:
        return "tabled", part
    raise _refused(_known(), name)


def _by_stem(places: dict[Any, int]) -> dict[str, dict[Any, int]]:
    """Return the places of spread columns by the name that they share."""
    found: dict[str, dict[Any, int]] = {}
    for (stem, rest), position in places.items():
        found.setdefault(stem, {})[rest] = position
    return found


def _tabled(name: str) -> tuple[str, str] | None:
    """The field, and the metric or group column, that a column is a part of."""
    for begin, whole in TABLED.items():
        if name.startswith(begin) and name != begin:
            return whole, name.removeprefix(begin)
    return None


def _in_order(stem: str, places: dict[int, int]) -> list[int]:
    for position in range(len(places)):
        if position not in places:
            raise _refused(f"{stem}.0 to {stem}.{max(places)} without a gap", f"{stem}.{position}")
    return [places[position] for position in range(len(places))]


def _check_once(
    plain: dict[str, int],
    lists: dict[str, list[int]],
    payloads: dict[str, dict[str, int]],
    tabled: set[str],
) -> None:
    if "id" not in plain:
        raise _refused("a column `id`", list(plain))
    if "known" in plain and any(name in plain for name in FLAT):
        raise _refused("either `known` or its parts", "known")
    for side in SIDES:
        parts = {name for name in PAIRED if PAIRED[name][0] == side}
        if side in plain and not parts.isdisjoint((*plain, *payloads)):
            raise _refused(f"either `{side}` or its parts", side)
    if "known" in tabled and any(name in plain for name in FLAT):
        raise _refused("losses known by metric, or of a pool of one loss", "known")
    for name in sorted(tabled & {*plain, *lists}):
        raise _refused(f"either `{name}` or its parts", name)
    for name in (*lists, *payloads):
        if name in plain:
            raise _refused(f"either `{name}` or its parts", name)


def _known() -> str:
    spread = ", ".join(f"{name}.0" for name in LISTS)
    known = ", ".join(sorted(FIELDS | {*FLAT, *PAIRED}))
    return (
        f"one of {known}, {spread}, payload.<name>,"
        " answers.<system>.<member>, surrogate_<metric>, known_<metric>, group_<column>"
    )


def _refused(rule: str, value: object) -> InvalidValue:
    return InvalidValue(
        "The columns of the upload cannot be read.", field="header", rule=rule, value=value
    )

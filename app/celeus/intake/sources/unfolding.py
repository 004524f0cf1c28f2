"""The rows inside a JSON document: a list, a table of pandas in any orient, a member that is one.

A document that may hold its rows in several places is asked about, so that many rows never become
one item.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from celeus.intake.questions import Choice, Question, asked
from celeus.intake.sources.sheet import BadRow, refused
from celeus.shorten import shortened

WHOLE = "document"
"""The answer that a document is itself the only row."""
_CHAT = frozenset({"role", "content"})
_MOST_NAMED = 6
_MOST_MEMBERS = 40
"""Plain members of one row."""
_COUNTED = r"(?:rows|items|samples|instances|examples|records|questions|documents|docs|entries)"
_COUNT = re.compile(
    rf"(?:n|num|number_of|total|count)_?{_COUNTED}(?:_total)?|{_COUNTED}_(?:count|total)"
    r"|count|total|total_count|total_num"
)


@dataclass(frozen=True, slots=True)
class Table:
    """A place in a document that may hold its rows.

    ``path`` names it, ``form`` says in a phrase how it is written down, if not as a list of
    objects. ``sure`` is False for what may as well be one value.
    """

    path: str
    rows: list[Any]
    form: str = ""
    sure: bool = True

    @property
    def depth(self) -> int:
        """The number of members that lead to it."""
        return self.path.count(".") + 1 if self.path else 0

    def is_meant_by(self, answer: str | None) -> bool:
        """Return True if an answer names this place, perhaps with a kind of rows behind a colon."""
        return bool(self.path) and f"{answer}:".startswith(f"{self.path}:")

    @property
    def choice(self) -> Choice:
        """The table as an answer to where the rows are."""
        first = next((row for row in self.rows if isinstance(row, dict)), {})
        names = ", ".join(list(first)[:_MOST_NAMED])
        more = ", …" if len(first) > _MOST_NAMED else ""
        return Choice(self.path, f"{len(self.rows)} rows with {names}{more}")


def unfolded(document: object, place: str, wanted: str | None) -> tuple[Table, list[str]]:
    """The rows of a document and how they were found.

    ``wanted`` is the place that was chosen. Asks where there are several, and refuses a document
    without any.
    """
    if isinstance(document, list):
        return _of_list(document, place, wanted)
    if not isinstance(document, dict):
        how = "an array of objects"
        raise refused("The JSON holds no rows.", how, type(document).__name__)
    tables = [*_tables(document)] or _within_members(document)
    table = next((table for table in tables if table.is_meant_by(wanted)), None)
    if table is None and wanted != WHOLE:
        table = _only(tables)
    if table is None:
        if wanted != WHOLE and (tables or _is_deep(document)):
            raise _asked(place, tables)
        if any(_is_table_of_cells(value) for value in document.values()):
            raise _nameless()
        return Table("", [document]), []
    read_as = [table.form] if table.form else []
    if table.path and not table.form:
        read_as.append(f"the rows of `{table.path}`")
    return table, read_as + announced(document, len(table.rows))


def announced(document: Mapping[str, Any], rows: int) -> list[str]:
    """Counts that a header announces and that are not those of the rows, a phrase each."""
    members = [*document.items()]
    for value in document.values():
        if isinstance(value, dict):
            members += value.items()
    return [
        f"{name} says {value}, where {rows} rows were read"
        for name, value in members
        if isinstance(value, int)
        and not isinstance(value, bool)
        and value != rows
        and _COUNT.fullmatch(_snake(name))
    ]


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _of_list(document: list[Any], place: str, wanted: str | None) -> tuple[Table, list[str]]:
    if _is_table_of_cells(document):
        raise _nameless()
    if is_chat(document):
        messages = Table("messages", document, sure=False)
        if wanted != WHOLE and not messages.is_meant_by(wanted):
            raise _asked(place, [messages])
        return (Table("", [document]) if wanted == WHOLE else messages), []
    if len(document) == 1 and isinstance(document[0], dict) and wanted != WHOLE:
        inner = [table for table in _tables(document[0]) if table.sure and len(table.rows) > 1]
        table = next((table for table in inner if table.is_meant_by(wanted)), None)
        if table is not None:
            return table, [table.form or f"the rows of `{table.path}`"]
        if inner:
            raise _asked(place, [Table(table.path, table.rows, sure=False) for table in inner])
    return Table("", document), []


def _only(tables: Sequence[Table]) -> Table | None:
    """The one table that the rows must be; None where others may be, too."""
    sure = [table for table in tables if table.sure]
    if not sure:
        return None
    least = min(table.depth for table in sure)
    near = [table for table in sure if table.depth == least]
    most = max(len(table.rows) for table in tables)
    return near[0] if len(near) == 1 and len(near[0].rows) >= most else None


def _asked(place: str, tables: Sequence[Table]) -> Exception:
    choices = [table.choice for table in tables]
    if not any(table.sure for table in tables):
        choices.append(Choice(WHOLE, "the document is one row"))
    text = "The document does not say what its rows are: where do they stand?"
    first = next((row for table in tables for row in table.rows if isinstance(row, dict)), None)
    example = first and {name: shortened(value) for name, value in [*first.items()][:20]}
    return asked(place, [Question("rows", text, tuple(choices), example=example)])


def _nameless() -> Exception:
    return refused(
        "The JSON holds lists of cells without names of columns.",
        "an array of objects, or an object with `columns` and `data`",
    )


def _tables(document: Mapping[str, Any]) -> Iterator[Table]:
    """The tables that a document is or holds, also one member further in."""
    whole = _written(document, "") or _named(document)
    yield from whole
    yield from _lists_of_rows(document)
    if any(table.sure for table in whole):
        return
    alone = _is_row_by_id(document)
    if alone:
        yield _by_name([*document], [*document.values()])
    for name, value in document.items():
        yield from _inside(name, value)
        if isinstance(value, dict) and not _written(value, name):
            for inner, held in value.items():
                found = _inside(f"{name}.{inner}", held)
                # A list in the only row may be a part of it, as the steps of an agent are
                yield from (replace(table, sure=table.sure and not alone) for table in found)


def _within_members(document: Mapping[str, Any]) -> list[Table]:
    """Objects under names within a member, of a document that holds no other rows."""
    return [
        replace(_by_name([*value], [*value.values()]), path=name)
        for name, value in document.items()
        if isinstance(value, dict)
        and len(value) > 1
        and all(isinstance(row, dict) and row for row in value.values())
    ]


def _is_deep(document: Mapping[str, Any]) -> bool:
    """Return True for objects within objects, as in a report: hardly the only row of a file."""
    return any(
        isinstance(inner, dict)
        for value in document.values()
        if isinstance(value, dict)
        for inner in value.values()
    )


def _inside(path: str, value: object) -> list[Table]:
    if isinstance(value, dict):
        return [] if path.count(".") > 1 else _written(value, path)
    if not isinstance(value, list) or not value:
        return []
    if any(isinstance(row, dict) for row in value):
        return [Table(path, value, sure=not is_chat(value))]
    if len(value) > 1 and not any(isinstance(cell, list) for cell in value):
        name = path.rpartition(".")[2]
        return [Table(path, [{name: cell} for cell in value], sure=False)]
    return []


def _written(value: Mapping[str, Any], path: str) -> list[Table]:
    """The table that an object is, in a form in which tools write one down."""
    found = _split(value) or _records(value) or _numbered(value) or _cells(value) or _lists(value)
    if found is None:
        return []
    rows, form, sure = found
    name = f"`{path}`, " if path else ""
    return [Table(path or "columns", rows, f"{name}{form}", sure)]


Written = tuple[list[Any], str, bool] | None


def _split(value: Mapping[str, Any]) -> Written:
    """Names of columns, and lists of cells: pandas' `split`, MLflow."""
    names, data = value.get("columns"), value.get("data")
    if not isinstance(names, list) or not isinstance(data, list) or not names:
        return None
    if not all(isinstance(row, list) for row in data):
        return None
    called = [".".join(map(str, name)) if isinstance(name, list) else str(name) for name in names]
    if len({*called}) < len(called):
        raise refused("Two columns of the table have one name.", "a name for each", called[:20])
    rule = f"{len(called)} cells, as `columns` has names"
    rows = [
        dict(zip(called, row, strict=True))
        if len(row) == len(called)
        else BadRow(rule, f"{len(row)} cells: {shortened(row)}")
        for row in data
    ]
    index = value.get("index")
    if isinstance(index, list) and len(index) == len(rows):
        rows = _indexed(index, rows)
    return rows, "lists of cells under `columns` and `data`", True


def _records(value: Mapping[str, Any]) -> Written:
    """Records beside their schema: pandas' `table`, the server of Hugging Face's datasets."""
    schema, data = value.get("schema"), value.get("data")
    if isinstance(schema, dict) and "fields" in schema and isinstance(data, list):
        return data, "records under `data`, with a schema", True
    rows = value.get("rows")
    if "features" in value and isinstance(rows, list):
        return rows, "the rows of a data set of Hugging Face", True
    return None


def _numbered(value: Mapping[str, Any]) -> Written:
    """Rows under their numbers, perhaps with a few words beside them: pandas' `index`."""
    rows = {name: row for name, row in value.items() if name.isdecimal()}
    others = [inner for name, inner in value.items() if name not in rows]
    if not rows or not all(isinstance(row, dict) for row in rows.values()):
        return None
    if any(isinstance(inner, dict | list) for inner in others):
        return None
    return _indexed([*rows], [*rows.values()]), "rows under their numbers", True


def _cells(value: Mapping[str, Any]) -> Written:
    """Columns, each an object of its cells by their numbers: pandas' default."""
    columns = [*value.values()]
    if not columns or not all(isinstance(column, dict) and column for column in columns):
        return None
    keys = [*columns[0]]
    if not all(key.isdecimal() for key in keys):
        return None
    if any(column.keys() != columns[0].keys() for column in columns):
        return None
    if all(isinstance(cell, dict) for column in columns for cell in column.values()):
        return None
    rows = [{name: column[key] for name, column in value.items()} for key in keys]
    return _indexed(keys, rows), "columns of cells by their numbers", True


def _lists(value: Mapping[str, Any]) -> Written:
    """Columns that are lists of one length; not sure if they hold objects, or others stand by."""
    lists = {name: cells for name, cells in value.items() if isinstance(cells, list)}
    lengths = {len(cells) for cells in lists.values()}
    if len(lengths) != 1 or lengths == {0} or (len(lists) == 1 and len(value) > 1):
        return None
    if any(is_chat(cells) for cells in lists.values()):
        return None
    objects = any(isinstance(cell, dict) for cells in lists.values() for cell in cells)
    if len(lists) == 1 and objects:
        return None
    rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    sure = len(lists) == len(value) and not objects
    return rows, "columns that are lists", sure


def _named(document: Mapping[str, Any]) -> list[Table]:
    """Objects under names: rows by their ids, or columns by theirs; or one value for each id."""
    rows = [*document.values()]
    if _are_values_by_id(document):
        return [_by_name([*document], [{"value": value} for value in rows])]
    if len(rows) < 2 or not all(isinstance(row, dict) and row for row in rows):
        return []
    first = rows[0]
    if all(isinstance(cell, dict) for row in rows for cell in row.values()):
        return []
    if not all(are_alike(row, first) for row in rows):
        return []
    found = [_by_name([*document], rows)]
    if all(row.keys() == first.keys() for row in rows):
        turned = [{name: column[key] for name, column in document.items()} for key in first]
        found.append(
            Table("columns", _indexed([*first], turned), "columns of named cells", sure=False)
        )
    return found


def _is_row_by_id(document: Mapping[str, Any]) -> bool:
    """One object under a name with digits: a row by its id."""
    names = [*document]
    return (
        len(names) == 1 and isinstance(document[names[0]], dict) and any(map(str.isdigit, names[0]))
    )


def _by_name(names: Sequence[str], rows: list[Any]) -> Table:
    return Table("index", _indexed(names, rows), "rows under their names", sure=False)


def _are_values_by_id(document: Mapping[str, Any]) -> bool:
    """Plain values under numbers, or under more names than a row has members."""
    if len(document) < 2 or any(isinstance(value, dict | list) for value in document.values()):
        return False
    return len(document) > _MOST_MEMBERS or all(name.isdecimal() for name in document)


def _lists_of_rows(document: Mapping[str, Any]) -> list[Table]:
    """Lists of rows of one kind under names, such as the samples of every task: all of them."""
    lists = [*document.values()]
    if len(lists) < 2 or any(not isinstance(rows, list) or is_chat(rows) for rows in lists):
        return []
    rows = [row for rows in lists for row in rows]
    if not all(lists) or not all(isinstance(row, dict) and row for row in rows):
        return []
    if not all(are_alike(row, rows[0]) for row in rows):
        return []
    names = [name for name, rows in document.items() for _ in rows]
    return [Table("index", _indexed(names, rows), "the rows of all lists, by name", sure=False)]


def _indexed(index: Sequence[object], rows: list[Any]) -> list[Any]:
    """The rows with their index as a column, unless it only counts them."""
    if [str(key) for key in index] == [str(number) for number in range(len(rows))]:
        return rows
    return [
        {("index" if "index" not in row else "key"): key} | row if isinstance(row, dict) else row
        for key, row in zip(index, rows, strict=True)
    ]


def _is_table_of_cells(value: object) -> bool:
    """Lists of plain cells, without names."""
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(isinstance(row, list) and not is_chat(row) for row in value)
    )


def are_alike(members: Iterable[str], other: Iterable[str]) -> bool:
    """Return True if more than half of the members of the smaller are in the larger, too."""
    first, second = {*members}, {*other}
    least = min(len(first), len(second))
    return least == 0 or 2 * len(first & second) > least


def is_chat(value: object) -> bool:
    """Return True for a list of messages, each with a speaker and a text."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(message, dict) for message in value)
        and (value[0].keys() >= _CHAT or value[0].keys() >= {"from", "value"})
    )

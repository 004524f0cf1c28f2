"""Any table as a log: CSV, JSON Lines, a JSON array, Parquet, or dicts, with a map of its columns.

A column of a nested row is named by its path, as `scores.exact`.
"""

import csv
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from celeus.intake.rows import Columns, Log, Options, Row, digest_of, refused, text_of
from celeus.intake.sources.files import LONGEST_LINE, Source

PARQUET = b"PAR1"
INSTALL = "pip install 'celeus[parquet]'"
WORDS = {"true": 1.0, "yes": 1.0, "pass": 1.0, "false": 0.0, "no": 0.0, "fail": 0.0}
SHOWN = ("question", "reference", "answer")
"""Members of a payload that the judge is shown."""
_NAME_LENGTH = 16
_ABSENT = object()

Cells = Mapping[str, Any]


def read(source: Source, options: Options) -> Log:
    """The rows of a file."""
    return rows_of(_cells(source), options, source.name, source.stem)


def rows_of(
    cells: Iterable[Cells], options: Options, name: str = "the table", model: str = ""
) -> Log:
    """The rows of dicts, one a row of the table; ``model`` is whose they are without a column."""
    columns = options.columns
    if (columns.loss is None) == (columns.score is None):
        how = "--loss COLUMN where less is better, or --score COLUMN"
        raise refused(f"say which column of {name} is the score: {how}", "score")
    if columns.loss is not None and options.higher is True:
        how = f"give --score {columns.loss} in place of --loss {columns.loss}"
        raise refused(f"of a loss less is better: {how}", "loss")
    unknown = columns.payload.keys() - {*SHOWN}
    if unknown:
        listed = ", ".join(SHOWN)
        raise refused(f"a judge is shown {listed}, and no {', '.join(sorted(unknown))}", "payload")
    if columns.id is None and not columns.payload.keys() & {"question", "reference"}:
        how = "--id COLUMN, or --payload question=COLUMN to tell items by their text"
        raise refused(f"say how the items of {name} are told apart: {how}", "id")
    table = list(cells)
    if not table:
        raise refused(f"{name} has no rows", "log")
    for column in _columns(columns):
        if all(_held(row, column) is _ABSENT for row in table):
            listed = ", ".join(map(str, table[0]))[:200]
            raise refused(f"{name} has no column {column!r}, only {listed}", "columns")
    return Log(name, list(_rows(table, options, name, model)))


def _columns(columns: Columns) -> list[str]:
    single = (columns.id, columns.loss, columns.score, columns.model, columns.repeat)
    named = (*single, columns.error, columns.group, *columns.payload.values())
    return [column for column in named if column is not None]


def _rows(cells: Iterable[Cells], options: Options, name: str, model: str) -> Iterator[Row]:
    columns = options.columns
    for number, row in enumerate(cells, 1):
        place = f"row {number} of {name}"
        shown = {name: text_of(_cell(row, column)) for name, column in columns.payload.items()}
        texts = {field: shown.get(field) for field in ("question", "reference")}
        check = digest_of(*texts.values()) if any(texts.values()) else ""
        item = check[:_NAME_LENGTH] if columns.id is None else _name(row, columns.id, place)
        failed = columns.error is not None and bool(_cell(row, columns.error))
        yield Row(
            id=item,
            model=model if columns.model is None else _name(row, columns.model, place),
            loss=None if failed else _loss(row, options, place),
            repeat=1 if columns.repeat is None else _repeat(row, columns, place),
            check=check,
            group=None if columns.group is None else _name(row, columns.group, place),
            question=shown.get("question"),
            reference=shown.get("reference"),
            answer=shown.get("answer"),
        )


def _name(row: Cells, column: str, place: str) -> str:
    """A name as text; whole numbers that a table holds as floats lose their fraction."""
    name = _cell(row, column)
    if name is None or name == "":
        raise refused(f"{place} has no {column}", column)
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)


def _repeat(row: Cells, columns: Columns, place: str) -> int:
    value = _cell(row, str(columns.repeat))
    try:
        return int(value)
    except (TypeError, ValueError):
        raise refused(f"{place} has the repeat {value!r}, which is no whole number") from None


def _loss(row: Cells, options: Options, place: str) -> float | None:
    columns = options.columns
    column = str(columns.loss if columns.loss is not None else columns.score)
    value = _cell(row, column)
    words = isinstance(value, bool)
    if isinstance(value, str):
        word = value.strip().lower()
        words = word in WORDS
        value = WORDS[word] if words else _number(word)
    elif hasattr(value, "item"):
        # What arrays and frames hold in place of Python's own numbers
        value = value.item()
        words = isinstance(value, bool)
    if value is None:
        return None
    if columns.loss is not None:
        return options.loss(value, place, higher=False)
    return options.loss(value, place, higher=options.direction(place, column, said=words or None))


def _number(word: str) -> object:
    """A cell of text as a number; None for an empty one, and itself for one that is none."""
    if not word or word in {"none", "null"}:
        return None
    try:
        return float(word)
    except ValueError:
        return word


def _cell(row: Cells, column: str) -> Any:  # noqa: ANN401 -- whatever a table holds
    """The value in a column, or at a path of a nested row; None if empty or NaN."""
    found = _held(row, column)
    return None if found is _ABSENT or (isinstance(found, float) and math.isnan(found)) else found


def _held(row: Cells, column: str) -> Any:  # noqa: ANN401 -- whatever a table holds
    found: Any = row.get(column, _ABSENT)
    if found is not _ABSENT:
        return found
    found = row
    for name in column.split("."):
        found = found.get(name, _ABSENT) if isinstance(found, Mapping) else _ABSENT
    return found


def _cells(source: Source) -> Iterable[Cells]:
    head = source.head()
    if head.startswith(PARQUET):
        return _parquet(source)
    first = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if first == b"[":
        return _objects(source)
    if first == b"{":
        return (row for _, row in source.lines())
    return _csv(source)


def _objects(source: Source) -> list[Cells]:
    rows = source.document()
    if not all(isinstance(row, dict) for row in rows):
        raise refused(f"{source.name} is no array of objects", "log")
    return list(rows)


def _csv(source: Source) -> Iterator[Cells]:
    csv.field_size_limit(LONGEST_LINE)
    reader = csv.DictReader(source.text(), strict=True)
    try:
        for name, count in Counter(reader.fieldnames or ()).items():
            if count > 1:
                raise refused(f"{source.name} has two columns {name!r}: give each its name")
        for row in reader:
            if None in row or None in row.values():
                width = len(reader.fieldnames or ())
                raise refused(f"line {reader.line_num} of {source.name} has not {width} cells")
            yield row
    except csv.Error as error:
        raise refused(f"line {reader.line_num} of {source.name} is no CSV: {error}") from error


def _parquet(source: Source) -> Iterator[Cells]:
    try:
        from pyarrow import ArrowInvalid, parquet  # noqa: PLC0415 -- an extra that few need
    except ImportError:
        raise refused(f"{source.name} is Parquet; to read it: {INSTALL}", "log") from None
    with source.open() as file:
        try:
            for batch in parquet.ParquetFile(file).iter_batches():
                yield from batch.to_pylist()
        except (ArrowInvalid, OSError) as error:
            raise refused(f"{source.name} is no whole Parquet file: {error}", "log") from error


def is_table(head: bytes) -> bool:
    """Return True if ``head`` may begin a table: Parquet, an array, or a line of several cells."""
    line = head.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0].strip()
    return head.startswith(PARQUET) or line.startswith(b"[") or b"," in line

"""Read uploaded NDJSON and CSV into batches of rows with line numbers (`sheets` reads Parquet).

Only the format is checked here; what a row means is decided in `core.pools.rows`. Memory stays
bounded whatever is sent: lines and rows have a largest length, batches a largest size. A line that
cannot be read stands in its batch as `MalformedRow`, to be reported with the others.

Items that have their form already are read in this process and not by the intake's child: a row of
JSON takes 1.6 µs of processor time here, 3.2 µs by the intake's own reader, and 7.9 µs by way of
the child, which for a pool of a million items is 6 s more. Lines of CSV are bounded here before the
intake makes cells of them: none is longer in memory than a row may be.
"""

import csv
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Self

import orjson

from celeus import strict_json
from celeus.api.pools.sheets import Limits, Look, Reading, Rows, sheet_rows
from celeus.core.pools.rows.validation import DEPTH_RULE, MalformedRow
from celeus.errors import InvalidValue
from celeus.intake.sources.csv_rows import cells_of
from celeus.intake.sources.documents import tool_of
from celeus.intake.sources.sheet import BadRow
from celeus.intake.table.item_columns import Layout, csv_row, narrow

if TYPE_CHECKING:
    # Only a name: what reads files needs no server
    from celeus.api.wire.uploads import Format

MAX_LINE_BYTES = 4 << 20
MAX_CELL_CHARACTERS = 1 << 17
BATCH_BYTES = 4 << 20
BATCH_ROWS = 8192


def read_rows(file: IO[bytes], form: "Format", limits: Limits) -> Generator[Rows, None, None]:
    """Batches of rows in file order; refuses a file that is not of its format.

    ``limits`` are for what is packed: of the others the file itself is the limit.
    """
    if form == "ndjson":
        return _ndjson(file)
    if form == "csv":
        return _csv(file)
    return sheet_rows(file, Reading(items=True), limits, Look())


def _ndjson(file: IO[bytes]) -> Generator[Rows, None, None]:
    numbers: list[int] = []
    lines: list[bytes] = []
    size = 0
    for number, line in _numbered(file):
        if not line.strip():
            continue
        numbers.append(number)
        lines.append(line)
        size += len(line)
        if size >= BATCH_BYTES or len(lines) >= BATCH_ROWS:
            yield numbers, _no_log(_parse(lines))
            numbers, lines, size = [], [], 0
    if lines:
        yield numbers, _no_log(_parse(lines))


def _no_log(rows: list[object]) -> list[object]:
    """The rows; refuses those of a tool's log, of which a reader makes a pool."""
    row = rows[0]
    tool = tool_of(row) if isinstance(row, dict) else None
    if tool is not None:
        raise InvalidValue(
            f"The file is a log of {tool}, and its rows are no items.",
            field="file",
            rule="the pool that `celeus import` makes of it",
        )
    return rows


def _parse(lines: list[bytes]) -> list[object]:
    rows: list[object] | None = None
    with suppress(orjson.JSONDecodeError):
        rows = [orjson.loads(line) for line in lines]
    if rows is None or not _named_once(b"".join(lines), rows):
        rows = [_parse_one(line) for line in lines]
    return [_narrow(row) for row in rows]


def _named_once(text: bytes, value: object) -> bool:
    """No object of the text has a name twice; false where that takes a closer look.

    What was dropped for standing twice had a colon, and written again the value has it no more.
    """
    if b"\\u003" in text:
        return False
    try:
        return text.count(b":") == orjson.dumps(value).count(b":")
    except TypeError:
        return False


def _narrow(row: object) -> object:
    return _malformed(narrow(row)) if isinstance(row, dict) else row


def _malformed(row: object) -> object:
    return MalformedRow(row.rule, row.text) if isinstance(row, BadRow) else row


def _parse_one(line: bytes) -> object:
    try:
        return json_of(line)
    except InvalidValue as error:
        return _faulty(error)
    except orjson.JSONDecodeError as error:
        reason = str(error)
    try:
        # The standard library also reads NaN and Infinity: the check can then name the field.
        return strict_json.json_of(line.decode())
    except InvalidValue as error:
        return _faulty(error)
    except (ValueError, RecursionError):
        return MalformedRow(f"a JSON object on one line ({reason})", _start(line))


def json_of(text: bytes) -> object:
    """The value; refuses a name that stands twice in an object."""
    value = orjson.loads(text)
    if not _named_once(text, value):
        try:
            strict_json.json_of(text)
        except RecursionError:
            raise InvalidValue("JSON is too deep.", rule=DEPTH_RULE, value=_start(text)) from None
    return value


def _faulty(error: InvalidValue) -> MalformedRow:
    return MalformedRow(str(error.rule), str(error.value))


def _numbered(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 1
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise InvalidValue(
                "A line of the upload is too long.",
                field=f"line {number}",
                rule=f"at most {MAX_LINE_BYTES} bytes",
                value=_start(line),
            )
        yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        number += 1


def _csv(file: IO[bytes]) -> Generator[Rows, None, None]:
    lines = _TextLines(file)
    csv.field_size_limit(MAX_CELL_CHARACTERS)
    layout: Layout | None = None
    numbers: list[int] = []
    rows: list[object] = []
    size = 0
    for number, cells in cells_of(lines, ",", "the upload"):
        size, lines.row_bytes = size + lines.row_bytes, 0
        if not cells:
            continue
        if layout is None:
            layout = Layout.of([] if isinstance(cells, BadRow) else cells)
            continue
        row = cells if isinstance(cells, BadRow) else csv_row(layout, cells, json_of)
        numbers.append(number)
        rows.append(_malformed(row))
        if size >= BATCH_BYTES or len(rows) >= BATCH_ROWS:
            yield numbers, rows
            numbers, rows, size = [], [], 0
    if rows:
        yield numbers, rows


class _TextLines:
    """Lines as text, counted by the row: a row with quoted line breaks takes several."""

    def __init__(self, file: IO[bytes]) -> None:
        self._lines = _numbered(file)
        self.row_bytes = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        number, line = next(self._lines)
        self.row_bytes += len(line)
        if self.row_bytes > MAX_LINE_BYTES:
            raise InvalidValue(
                "A row of the upload is too long.",
                field=f"line {number}",
                rule=f"at most {MAX_LINE_BYTES} bytes",
                value=_start(line),
            )
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            raise InvalidValue(
                "The CSV upload is not UTF-8.",
                field=f"line {number}",
                rule="text in UTF-8",
                value=_start(line),
            ) from error


def _start(line: bytes) -> str:
    return line[:60].decode(errors="replace")

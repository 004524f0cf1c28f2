"""Uploaded files to batches of rows with line numbers: NDJSON, CSV and Parquet.

Only the form is looked at here, what a row means is `core.items`. Memory stays bounded whatever is
sent: lines have a greatest length, batches a greatest size. A line that cannot be read stands in
its batch as `Malformed`, so that it is reported with the others.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from typing import IO, Any, Literal

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from app.api.columns import Layout, cell_number, cell_whole
from app.core.faults import Malformed
from app.errors import InvalidValue

Format = Literal["ndjson", "csv", "parquet"]
Rows = tuple[list[int], list[object]]
"""Line numbers, counted from 1, and as many rows."""

MAX_LINE_BYTES = 4 << 20
BATCH_BYTES = 4 << 20
BATCH_ROWS = 8192
PARQUET_ROWS = 2048
MAX_ROW_GROUP_BYTES = 1 << 30


def read_rows(file: IO[bytes], form: Format) -> Iterator[Rows]:
    """Batches of rows in file order; refuses a file that is not of its format."""
    if form == "ndjson":
        return _ndjson(file)
    if form == "csv":
        return _csv(file)
    return _parquet(file)


def _ndjson(file: IO[bytes]) -> Iterator[Rows]:
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
            yield numbers, _parse(lines)
            numbers, lines, size = [], [], 0
    if lines:
        yield numbers, _parse(lines)


def _parse(lines: list[bytes]) -> list[object]:
    try:
        return [orjson.loads(line) for line in lines]
    except orjson.JSONDecodeError:
        return [_parse_one(line) for line in lines]


def _parse_one(line: bytes) -> object:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        reason = str(error)
    try:
        # The standard library also reads NaN and Infinity: the check can then name the field.
        return json.loads(line)
    except (ValueError, RecursionError):
        return Malformed(f"a JSON object on one line ({reason})", _start(line))


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


def _csv(file: IO[bytes]) -> Iterator[Rows]:
    reader = csv.reader(_text_lines(file), strict=True)
    layout: Layout | None = None
    numbers: list[int] = []
    rows: list[object] = []
    size = 0
    for number, cells in _csv_cells(reader):
        if not cells:
            continue
        if layout is None:
            layout = Layout.of(cells)
            continue
        numbers.append(number)
        rows.append(_csv_row(layout, cells))
        size += sum(map(len, cells))
        if size >= BATCH_BYTES or len(rows) >= BATCH_ROWS:
            yield numbers, rows
            numbers, rows, size = [], [], 0
    if rows:
        yield numbers, rows


def _text_lines(file: IO[bytes]) -> Iterator[str]:
    for number, line in _numbered(file):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise InvalidValue(
                "The CSV upload is not UTF-8.",
                field=f"line {number}",
                rule="text in UTF-8",
                value=_start(line),
            ) from error


def _csv_cells(reader: Any) -> Iterator[tuple[int, list[str]]]:  # noqa: ANN401 - csv's type is private
    """Lines with the number they begin at: a quoted cell may span several."""
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InvalidValue(
                "The upload cannot be read as CSV.",
                field=f"line {number}",
                rule=f"CSV with quotes closed and cells of at most {csv.field_size_limit()} "
                "characters",
                value=str(error),
            ) from error
        yield number, cells


def _csv_row(layout: Layout, cells: list[str]) -> object:
    if len(cells) != layout.width:
        rule = f"{layout.width} cells, as in the header"
        return Malformed(rule, f"{len(cells)} cells: {','.join(cells)[:60]}")
    row = layout.row([cell or None for cell in cells])
    for name in ("surrogate", "proxy"):
        if name in row:
            row[name] = cell_number(row[name])
    for name in ("surrogates", "target_probs", "surrogate_probs"):
        if name in row:
            row[name] = [cell_number(cell) for cell in row[name]]
    if "prediction" in row:
        row["prediction"] = cell_whole(row["prediction"])
    payload = row.get("payload")
    if isinstance(payload, str) and payload.startswith("{"):
        row["payload"] = _object_or_text(payload)
    return row


def _object_or_text(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _parquet(file: IO[bytes]) -> Iterator[Rows]:
    try:
        source = pq.ParquetFile(file)
        _check_row_groups(source)
        layout = Layout.of(source.schema_arrow.names)
        number = 1
        for batch in source.iter_batches(batch_size=PARQUET_ROWS):
            cells = [column.to_pylist() for column in batch.columns]
            numbers = list(range(number, number + batch.num_rows))
            number += batch.num_rows
            yield numbers, [layout.row(list(row)) for row in _across(cells)]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidValue(
            "The upload cannot be read as Parquet; it may have been cut off on its way.",
            field="body",
            rule="one complete Parquet file",
            value=str(error),
        ) from error


def _check_row_groups(source: pq.ParquetFile) -> None:
    """A small file may unpack to a huge one; a row group is unpacked as a whole."""
    for group in range(source.metadata.num_row_groups):
        size = source.metadata.row_group(group).total_byte_size
        if size > MAX_ROW_GROUP_BYTES:
            raise InvalidValue(
                "A row group of the Parquet file is too large.",
                field=f"row group {group}",
                rule=f"at most {MAX_ROW_GROUP_BYTES} bytes unpacked",
                value=size,
            )


def _across(columns: list[list[Any]]) -> Iterable[tuple[Any, ...]]:
    return zip(*columns, strict=True)


def _start(line: bytes) -> str:
    return line[:60].decode(errors="replace")

"""The child process that reads any file and answers with what it is and its rows as items.

Started by `celeus.api.pools.sheets`, never imported by the server: what a hostile file makes of it
is no more than a refusal.
"""

import json
import traceback
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from celeus.api.pools.columns import Layout
from celeus.api.pools.parquet import BATCH_BYTES, MAX_ROW_BYTES, Limits
from celeus.api.pools.sheets import Look, Reading, are_items
from celeus.api.pools.upload_rows import csv_row, narrow
from celeus.core.pools.rows.validation import MalformedRow
from celeus.errors import InvalidValue, PoolTooLarge, UploadTooLarge
from celeus.intake.opening import SentFile, opened
from celeus.intake.rows import Options
from celeus.intake.sources.sheet import BadRow, Sheet, SheetRow, refused
from celeus.intake.table.columns import Column, columns_of
from celeus.intake.table.items import Items, checked
from celeus.intake.table.roles import Kind, guessed
from celeus.operations.runtime.workers import Files, Frame, serve

BATCH_ROWS = 4096
_JSON_RULE = "values that JSON has: text, numbers, true and false, lists and objects"
_WHOLE = "a table, or a whole log of a finished run"
Line = tuple[int, SheetRow]


def work(job: Frame, files: Files) -> Iterator[Frame]:
    """Yield the form of the file, then its rows by batches, with empty frames while it is read."""
    reading = Reading(**job.values["reading"])
    limits = Limits(**job.values["limits"])
    try:
        yield from _frames(files[0], reading, limits)
    except InvalidValue as refusal:
        if isinstance(refusal.rule, str) and refusal.field is not None:
            raise
        raise refused(refusal.detail, _WHOLE) from refusal
    except (UploadTooLarge, PoolTooLarge, MemoryError):
        raise
    except Exception as error:
        # Whoever sends it again gets the same: no fault of a moment, which 503 would be
        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
        raise refused("The file cannot be read.", _WHOLE, reason) from error


def _frames(file: IO[bytes], reading: Reading, limits: Limits) -> Iterator[Frame]:
    options = Options(metric=reading.metric, filter=reading.filter)
    given = SentFile(reading.name, reading.csv, options, limits.bytes)
    for sheet in opened(file, given):
        if sheet is None:
            yield Frame({})
            continue
        if sheet.form == "parquet":
            _check_parquet(file, limits)
        look, rows = _seen(sheet, reading)
        yield Frame({"look": {name: getattr(look, name) for name in Look.__slots__}})
        yield from _batches(rows, limits)


def _check_parquet(file: IO[bytes], limits: Limits) -> None:
    from celeus.api.pools.parquet_worker import check_declared  # noqa: PLC0415 -- Arrow, for Parquet only

    check_declared(file, limits)


def _seen(sheet: Sheet, reading: Reading) -> tuple[Look, Iterator[Line | None]]:
    """Return the look at the sheet, and an iterator of its items."""
    kind = Kind(reading.lower, reading.upper, reading.two)
    read_as = [*sheet.read_as]
    if sheet.known is None and reading.mapping is None:
        names = next((list(row) for _, row in sheet.rows() if not isinstance(row, BadRow)), [])
        if are_items(names):
            return Look(sheet.form, read_as), _as_they_are(sheet, names)
    columns = columns_of(sheet)
    if not columns:
        return Look(sheet.form, read_as), _as_they_are(sheet, [])
    mapping, source = _mapping(sheet, columns, reading, kind)
    roles = checked(mapping, columns)
    examples = {column.name: column.examples() for column in columns}
    look = Look(sheet.form, read_as, roles, source, examples)
    return look, Items(sheet, columns, roles, kind).rows()


def _mapping(
    sheet: Sheet, columns: list[Column], reading: Reading, kind: Kind
) -> tuple[dict[str, str], str]:
    """The role of every column, and where that comes from."""
    if reading.mapping is not None:
        return dict(reading.mapping), "given"
    names = {column.name for column in columns}
    for mapping in reading.remembered:
        if mapping.keys() == names:
            return dict(mapping), "remembered"
    if sheet.known is not None:
        return dict(sheet.known.roles), "log"
    return guessed(columns, kind), "guessed"


def _as_they_are(sheet: Sheet, names: list[str]) -> Iterator[Line]:
    """Rows that are items: of a table by its columns, of JSON as they stand."""
    layout = None if not names or sheet.form in {"json", "jsonl"} else Layout.of(names)
    for line, row in sheet.rows():
        if isinstance(row, BadRow):
            yield line, row
            continue
        item: object = row
        if layout is not None and sheet.cells:
            item = csv_row(layout, [row[name] for name in names])
        elif layout is not None:
            item = layout.row([row[name] for name in names])
        item = narrow(item)
        if isinstance(item, MalformedRow):
            yield line, BadRow(item.rule, item.text)
        elif isinstance(item, dict):
            yield line, item


def _batches(rows: Iterator[Line | None], limits: Limits) -> Iterator[Frame]:
    lines: list[int] = []
    texts: list[bytes] = []
    size = total = 0
    refusals: list[InvalidValue] = []
    for numbered in _until_refused(rows, refusals):
        if numbered is None:
            yield Frame({})
            continue
        text = _encoded(numbered[1])
        lines.append(numbered[0])
        texts.append(text)
        size += len(text)
        total += len(text)
        if total > limits.bytes:
            raise UploadTooLarge(
                "The upload is too large once it is unpacked.",
                field="body",
                rule=f"at most {limits.bytes} bytes, unpacked too",
                value=f"more than {limits.bytes}",
            )
        if size >= BATCH_BYTES or len(lines) >= BATCH_ROWS:
            yield _frame(lines, texts)
            lines, texts, size = [], [], 0
    if lines:
        yield _frame(lines, texts)
    if refusals:
        raise refusals[0]


def _until_refused(
    rows: Iterator[Line | None], refusals: list[InvalidValue]
) -> Iterator[Line | None]:
    """The rows; a refusal among them is noted, so that the bad ones before it are sent and told."""
    try:
        yield from rows
    except InvalidValue as refusal:
        refusals.append(refusal)


def _frame(lines: list[int], texts: list[bytes]) -> Frame:
    text = b"[" + b",".join(texts) + b"]"
    return Frame({"lines": lines}, {"rows": np.frombuffer(text, np.uint8)})


def _encoded(row: SheetRow) -> bytes:
    """The row as JSON; a rule and what breaks it in place of one that has no form in it."""
    if isinstance(row, BadRow):
        return _json([row.rule, row.text])
    try:
        text = _json(row)
    except (TypeError, ValueError, RecursionError) as error:
        return _json([_JSON_RULE, str(error)])
    if len(text) > MAX_ROW_BYTES:
        return _json([f"at most {MAX_ROW_BYTES} bytes as JSON", f"{len(text)} bytes"])
    return text


def _json(value: Any) -> bytes:  # noqa: ANN401 -- any JSON
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


if __name__ == "__main__":
    serve(work)

"""The child process that reads any file and answers with what it is and its rows as items.

Started by `celeus.api.pools.sheets`, never imported by the server: what a hostile file makes of it
is no more than a refusal.
"""

import json
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from typing import IO, Any

import numpy as np

from celeus.api.pools.sheets import BATCH_BYTES, MAX_ROW_BYTES, Limits, Look, Reading
from celeus.api.pools.upload_rows import json_of
from celeus.errors import InvalidValue, NeedsAnswer, PoolTooLarge, UploadTooLarge
from celeus.intake.opening import Line, SentFile, SheetItems, as_they_are, items_of
from celeus.intake.questions import named
from celeus.intake.sources import arrow
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import BadRow, SheetRow, refused
from celeus.intake.sources.unpacking import too_large
from celeus.intake.table.answers import answers_of, options_of
from celeus.intake.table.roles import Kind
from celeus.operations.runtime.workers import Files, Frame, serve

BATCH_ROWS = 4096
_JSON_RULE = "values that JSON has: text, numbers, true and false, lists and objects"
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_WHOLE = "a table, or a whole log of a finished run"


def work(job: Frame, files: Files) -> Iterator[Frame]:
    """Yield the form of the file, then its rows by batches, with empty frames while it is read."""
    reading = Reading(**job.values["reading"])
    limits = Limits(**job.values["limits"])
    try:
        yield from _frames(files[0], reading, limits)
    except NeedsAnswer as refusal:
        raise named(refusal) from refusal
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
    options = options_of(reading.answers, reading.mapping)
    given = SentFile(reading.name, reading.csv, options, limits.bytes)
    source = Source.of_file(reading.name, file)
    # From its beginning: the parent shares the place in it
    names = _columns(file, limits) if source.head().startswith(arrow.PARQUET) else None
    if reading.items:
        if names is None:
            raise arrow.unreadable("Parquet", "it does not begin as a Parquet file does")
        rows = as_they_are(arrow.sheet_of(source, limits.bytes), names, json_of)
        yield from _batches(rows, limits)
        return
    kind = Kind(reading.lower, reading.upper, reading.two, reading.preferred)
    for found in items_of(file, given, kind, reading.remembered, json_of=json_of):
        if found is None:
            yield Frame({})
            continue
        yield _look(found)
        yield from _batches(found.rows, limits)


def _columns(file: IO[bytes], limits: Limits) -> list[str]:
    """The columns of a Parquet file; refuses one that says itself that it holds too much."""
    names, rows, size = arrow.declared(file)
    if rows > limits.rows:
        raise PoolTooLarge(
            "The upload has more rows than a pool may have items.",
            field="body",
            rule=f"at most {limits.rows} rows",
            value=rows,
        )
    if size > limits.bytes:
        raise too_large(f"at most {limits.bytes} bytes, unpacked too", size)
    return names


def _look(found: SheetItems) -> Frame:
    sheet, table = found.sheet, found.table
    look = Look(sheet.form, [*sheet.read_as])
    if table is not None:
        look.mapping = {column.name: column.role for column in table.columns}
        look.mapping_source = table.source
        look.columns = [asdict(column) for column in table.columns]
        look.answers = answers_of(table.options)
        look.rows, look.examples = table.facts.rows, table.examples
    return Frame({"look": asdict(look)})


def _batches(rows: Iterator[Line], limits: Limits) -> Iterator[Frame]:
    lines: list[int] = []
    texts: list[bytes] = []
    size = total = 0
    refusals: list[InvalidValue] = []
    for numbered in _until_refused(rows, refusals):
        text = _encoded(numbered[1])
        lines.append(numbered[0])
        texts.append(text)
        size += len(text)
        total += len(text)
        if total > limits.bytes:
            raise too_large(f"at most {limits.bytes} bytes, unpacked too", total)
        if size >= BATCH_BYTES or len(lines) >= BATCH_ROWS:
            yield _frame(lines, texts)
            lines, texts, size = [], [], 0
    if lines:
        yield _frame(lines, texts)
    if refusals:
        raise refusals[0]


def _until_refused(rows: Iterator[Line], refusals: list[InvalidValue]) -> Iterator[Line]:
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
    return _ENCODER.encode(value).encode()


if __name__ == "__main__":
    serve(work)

"""The lines of a run's file: the header, the rows of its items, and its ledger."""

from collections.abc import Iterator
from typing import IO

import orjson

from celeus.core.pools.rows.validation import MalformedRow
from celeus.errors import InvalidValue

LONGEST_LINE = 16 << 20
"""Bytes: of a header with the most claims; a row has a quarter at most."""
BATCH_BYTES = 4 << 20
BATCH_ROWS = 8192

Rows = tuple[list[int], list[object]]


def numbered(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file, without their ends; refuses one that is too long, or not finished."""
    number = 1
    while line := file.readline(LONGEST_LINE + 1):
        if not line.endswith(b"\n"):
            long = len(line) > LONGEST_LINE
            raise InvalidValue(
                "A line of the file is too long." if long else "The file was cut off.",
                field=f"line {number}",
                rule=f"at most {LONGEST_LINE} bytes" if long else "a whole line",
                value=line[:100].decode(errors="replace"),
            )
        yield line[:-1]
        number += 1


def row_batches(lines: Iterator[bytes], items: int) -> Iterator[Rows]:
    """The rows of as many items, which begin in line 2, batch by batch with their line numbers."""
    numbers: list[int] = []
    rows: list[object] = []
    size = 0
    for number in range(2, items + 2):
        line = next(lines, None)
        if line is None:
            raise InvalidValue(
                "The file ends before its items do.",
                field=f"line {number}",
                rule=f"{items} items, as its header says",
                value=number - 2,
            )
        numbers.append(number)
        rows.append(_row(line))
        size += len(line)
        if size >= BATCH_BYTES or len(rows) >= BATCH_ROWS:
            yield numbers, rows
            numbers, rows, size = [], [], 0
    if rows:
        yield numbers, rows


def _row(line: bytes) -> object:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return MalformedRow(
            f"a JSON object on one line ({error})", line[:60].decode(errors="replace")
        )

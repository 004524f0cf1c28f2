"""Parquet to rows, in a child process with bounded memory.

A Parquet file may be a thousandth of what it unpacks to, in more ways than its headers tell:
pages, dictionaries, runs. A process that may only have so much memory and so much time is a bound
on all of them, and a file that brings down the reader brings down nobody else.
"""

import json
import os
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import IO

import orjson

from celeus.core.pools.rows.validation import MalformedRow
from celeus.errors import InvalidValue, Refusal, UploadTooLarge
from celeus.operations.runtime.workers import Bounds, Frame, WorkerFailed, answers

Rows = tuple[list[int], list[object]]

MODULE = "celeus.api.pools.parquet_worker"
MEMORY_BYTES = 768 << 20
"""Bytes of memory that the reader may use beside its own code."""
CPU_SECONDS = 900
LONGEST_SECONDS = 7200
"""By the clock: the reader waits for the database to take its rows."""
MAX_ROW_BYTES = 4 << 20
BATCH_BYTES = 4 << 20
_MAGIC = b"PAR1"
_SLACK = 1 << 20
"""Bytes of answers beside the rows."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an unpacked upload, and of the memory that it may take."""

    bytes: int
    rows: int
    memory: int = MEMORY_BYTES


def parquet_rows(file: IO[bytes], limits: Limits) -> Generator[Rows, None, None]:
    """Batches of rows in file order, with their numbers; refuses what is no Parquet or too much."""
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - len(_MAGIC)))
    if file.read() != _MAGIC:
        raise unreadable("it does not end as a Parquet file does")
    file.seek(0)
    bounds = Bounds(
        LONGEST_SECONDS,
        CPU_SECONDS,
        limits.memory,
        frame=BATCH_BYTES + MAX_ROW_BYTES + _SLACK,
        answer=2 * limits.bytes + _SLACK,
    )
    number = 0
    try:
        with closing(answers(MODULE, Frame(asdict(limits)), bounds, [file])) as frames:
            for frame in frames:
                rows = rows_in(frame)
                yield list(range(number + 1, number + len(rows) + 1)), rows
                number += len(rows)
    except WorkerFailed as failure:
        raise _refused(failure) from failure


def rows_in(frame: Frame) -> list[object]:
    """The rows in an answer of the reader: a list of JSON, not trusted to be one."""
    text = frame.arrays["rows"].tobytes() if "rows" in frame.arrays else b""
    try:
        rows = orjson.loads(text)
    except orjson.JSONDecodeError:
        rows = _with_nan(text)
    if not isinstance(rows, list):
        raise WorkerFailed("answer", None)
    return [MalformedRow(*map(str, row)) if _is_fault(row) else row for row in rows]


def _with_nan(text: bytes) -> object:
    """The same where numbers may be NaN or infinite, which checks of a row then name."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkerFailed("answer", None) from error


def _is_fault(row: object) -> bool:
    """Rule and value stand in place of a row that has no form in JSON."""
    return isinstance(row, list) and len(row) == 2


def _refused(failure: WorkerFailed) -> Refusal:
    if failure.reason == "status":
        return failure.refusal
    if failure.reason == "answer":
        return unreadable("its reader gave no answer that can be used")
    return UploadTooLarge(
        "The Parquet file needs more memory or time to be read than an upload may take.",
        field="body",
        rule="less than some hundred megabytes at any moment; smaller row groups help",
    )


def unreadable(reason: str) -> InvalidValue:
    """The refusal of a file that is not Parquet, or no longer."""
    return InvalidValue(
        "The upload cannot be read as Parquet; it may have been cut off on its way.",
        field="body",
        rule="one complete Parquet file",
        value=reason,
    )

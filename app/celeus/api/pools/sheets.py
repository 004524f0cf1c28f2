"""Any file to rows of items, in a child process with bounded memory.

What people have is no form of ours: packed files, documents of any size, logs. The child finds out
what the file is and what its columns mean, says so, and then sends the items. So it is with items
as Parquet, which may be a thousandth of what it unpacks to, in more ways than its headers tell: a
bound on memory and time is one on all of them, and a file that brings down the reader brings down
nobody else.
"""

import csv
import io
import json
import os
import signal
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Any

import orjson

from celeus.core.pools.rows.validation import MalformedRow
from celeus.errors import InvalidValue, Refusal, UploadTooLarge
from celeus.intake.sources.documents import is_json
from celeus.intake.sources.sheet import refused
from celeus.intake.table.item_columns import are_items
from celeus.operations.runtime.workers import Bounds, Frame, WorkerFailed, answers
from celeus.strict_json import json_of

if TYPE_CHECKING:
    # Only a name: the child process needs no server
    from celeus.api.wire.uploads import Format

Rows = tuple[list[int], list[object]]
"""Line numbers, counted from 1, and as many rows."""

MODULE = "celeus.api.pools.sheet_worker"
MEMORY_BYTES = 768 << 20
"""Bytes of memory that the reader may use beside its own code."""
CPU_SECONDS = 900
LONGEST_SECONDS = 7200
"""By the clock: the reader waits for the database to take its rows."""
MAX_ROW_BYTES = 4 << 20
BATCH_BYTES = 4 << 20
_SLACK = 1 << 20
"""Bytes of answers beside the rows."""
_HEAD_BYTES = 1 << 16
_LEAST_SECONDS = 30
_SECONDS_OF_PLAIN_MB = 5
_SECONDS_OF_MB = 100
_PACKED = (b"\x1f\x8b", b"PK", b"PAR1", b"ARRO", b"\xff\xff\xff\xff")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an unpacked upload, and of the memory that it may take."""

    bytes: int
    rows: int
    memory: int = MEMORY_BYTES


@dataclass(frozen=True, slots=True)
class Reading:
    """The way a file is to be read: its name, and the roles of its columns.

    ``remembered`` are mappings that were used before, the last one first. ``lower`` and ``upper``
    are the ends of the scale of losses, ``two`` says that two systems are compared, and
    ``preferred`` that a judge says only which one is better. ``answers`` are those to questions
    about the file, by their names. ``items``: it is Parquet whose rows are items.
    """

    name: str = ""
    csv: bool = False
    lower: float = 0.0
    upper: float = 1.0
    two: bool = False
    preferred: bool = False
    items: bool = False
    mapping: Mapping[str, str] | None = None
    remembered: Sequence[Mapping[str, str]] = ()
    answers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Look:
    """The form that a file has; empty where its rows are items as this service has them."""

    format: str | None = None
    read_as: list[str] = field(default_factory=list)
    mapping: dict[str, str] = field(default_factory=dict)
    mapping_source: str = "items"
    columns: list[dict[str, str]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    rows: int = 0
    examples: dict[str, list[str]] = field(default_factory=dict)


def holds_items(file: IO[bytes], form: "Format") -> bool:
    """Return whether a file of this form begins with items; rewinds it."""
    file.seek(0)
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    if not head.strip():
        return True
    if form == "csv":
        with suppress(UnicodeDecodeError, csv.Error, StopIteration):
            first = head.split(b"\n", 1)[0].removeprefix(b"\xef\xbb\xbf").decode()
            return are_items(next(csv.reader(io.StringIO(first))))
        return False
    line = head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0].strip()
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        # A line that is damaged is told with the others; a document of several lines is another
        return is_json(head) and line.startswith(b'{"') and b"\n" in head.strip()
    return isinstance(row, dict) and are_items(list(row))


def sheet_rows(
    file: IO[bytes], reading: Reading, limits: Limits, look: Look
) -> Generator[Rows, None, None]:
    """Batches of items in file order, with their lines; ``look`` is filled before the first.

    A batch may be empty: the reader is at work. Refuses a file that is none, or too much.
    """
    bounds = Bounds(
        LONGEST_SECONDS,
        _processor_seconds(file),
        limits.memory,
        frame=BATCH_BYTES + MAX_ROW_BYTES + _SLACK,
        answer=2 * limits.bytes + 2 * _SLACK,
    )
    job = Frame({"reading": asdict(reading), "limits": asdict(limits)})
    try:
        with closing(answers(MODULE, job, bounds, [file])) as frames:
            for frame in frames:
                for name, value in frame.values.get("look", {}).items():
                    setattr(look, name, value)
                yield _rows_in(frame)
    except WorkerFailed as failure:
        raise _refused(failure) from failure


def _rows_in(frame: Frame) -> Rows:
    """The rows in an answer of the reader with their lines: not trusted to be lists."""
    text = frame.arrays["rows"].tobytes() if "rows" in frame.arrays else b"[]"
    lines = frame.values.get("lines", [])
    try:
        rows = orjson.loads(text)
    except orjson.JSONDecodeError:
        rows = _with_nan(text)
    if not isinstance(rows, list) or not isinstance(lines, list) or len(lines) != len(rows):
        raise WorkerFailed("answer", None)
    return lines, [MalformedRow(*map(str, row)) if _is_fault(row) else row for row in rows]


def _with_nan(text: bytes) -> object:
    """The same where numbers may be NaN or infinite, which checks of a row then name."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkerFailed("answer", None) from error


def _is_fault(row: object) -> bool:
    """Rule and value stand in place of a row that has no form in JSON."""
    return isinstance(row, list) and len(row) == 2


def _processor_seconds(file: IO[bytes]) -> float:
    """Seconds that a file of this size may take, some times what it needs."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    most = _SECONDS_OF_MB if file.read(4).startswith(_PACKED) else _SECONDS_OF_PLAIN_MB
    return min(CPU_SECONDS, _LEAST_SECONDS + most * size / (1 << 20))


def _refused(failure: WorkerFailed) -> Refusal:
    # A library that finds no memory aborts
    if failure.reason == "status" and failure.status != -signal.SIGABRT:
        return failure.refusal
    if failure.reason == "answer":
        reason = "its reader gave no answer that can be used"
        return refused("The file cannot be read.", "one complete file", reason)
    return UploadTooLarge(
        "The file needs more memory or time to be read than an upload may take.",
        field="body",
        rule="less than some hundred megabytes at any moment; JSON Lines, CSV, and Parquet in"
        " smaller row groups need less",
    )


def mapping_of(text: str | None) -> dict[str, str] | None:
    """The mapping in a query: JSON, roles by columns; refuses what is none."""
    if text is None:
        return None
    try:
        found: Any = orjson.loads(text)
        json_of(text, "mapping")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(role, str) for role in found.values()):
        raise InvalidValue(
            "The mapping cannot be read.",
            field="mapping",
            rule='a JSON object of roles by columns, such as {"Frage": "question"}',
            value=text,
        )
    return found

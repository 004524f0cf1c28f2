"""Items as they are sent: rows of any table as JSON Lines, a file as it lies there."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from celeus.client.exchange import encoded
from celeus.errors import InvalidValue

PART_BYTES = 1 << 20
IN_MEMORY = 8 << 20
LINES = "application/x-ndjson"
MEDIA = {
    ".jsonl": LINES,
    ".ndjson": LINES,
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
}

ANY = "application/octet-stream"
AS_RUNS = {"repeats": "runs"}
"""Member of every item of `celeus.read_items` that is one of several runs of a task."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A body that can be sent again: its media type, and its bytes from the beginning."""

    media: str
    parts: Callable[[], Iterator[bytes]]


@contextmanager
def upload_of(items: object) -> Iterator[Upload]:
    """Yield the body for a table or the path of a file; raises InvalidValue for anything else."""
    if isinstance(items, str | os.PathLike):
        media, file = _file(Path(items))
        with file:
            yield Upload(media, lambda: _parts(file))
        return
    with lines_of(map(_no_run, rows_of(items))) as lines:
        yield Upload(LINES, lambda: _parts(lines))


def _no_run(row: object) -> object:
    """The row; refuses a run of a task, which a service knows from the file alone."""
    if isinstance(row, Mapping) and row.items() >= AS_RUNS.items():
        rule = "the file that they were read from, with repeats='runs'"
        message = f"items that are runs of tasks must be sent as {rule}"
        raise InvalidValue(message, field="items", rule=rule)
    return row


@contextmanager
def lines_of(rows: Iterable[object]) -> Iterator[IO[bytes]]:
    """A temporary file of JSON Lines with these rows; refuses one that is no mapping."""
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as lines:
        for number, row in enumerate(rows, start=1):
            lines.write(line_of(row, number) + b"\n")
        yield lines


@contextmanager
def run_file(path: str | os.PathLike[str]) -> Iterator[Upload]:
    """Yield the body for a run: its file unchanged."""
    with _opened(Path(path), "file") as file:
        yield Upload(LINES, lambda: _parts(file))


def rows_of(items: Any) -> Iterable[Mapping[str, Any]]:  # noqa: ANN401 -- any table
    """Rows as mappings: of pandas, polars, pyarrow, of a Hugging Face `Dataset`, or of dicts.

    What pandas holds as missing is None.
    """
    for method in ("to_dicts", "to_pylist"):
        if hasattr(items, method):
            rows: list[dict[str, Any]] = getattr(items, method)()
            return rows
    if hasattr(items, "columns") and hasattr(items, "notna"):
        records: list[dict[str, Any]]
        records = items.astype(object).where(items.notna(), None).to_dict("records")
        return records
    if isinstance(items, Iterable) and not isinstance(items, bytes | Mapping):
        return items
    rule = "a frame, a Dataset, dicts, or the path of a file"
    raise InvalidValue(f"items must be {rule}", field="items", rule=rule, value=type(items))


def line_of(row: object, number: int) -> bytes:
    """A row as JSON without members that are None; refuses what is no mapping, or not in JSON."""
    if not isinstance(row, Mapping):
        raise InvalidValue(
            f"row {number} is no mapping", field="items", rule="rows as mappings", value=type(row)
        )
    given = {str(name): value for name, value in row.items() if value is not None}
    name = f", {given['id']!r}," if "id" in given else ""
    return encoded(given, f"row {number}{name}")


def _file(path: Path) -> tuple[str, IO[bytes]]:
    # What another file is, the service finds out
    return MEDIA.get(path.suffix.lower(), ANY), _opened(path, "items")


def _opened(path: Path, field: str) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise InvalidValue(f"{path} cannot be read: {error.strerror}", field=field) from error


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while part := file.read(PART_BYTES):
        yield part


def frame_of(rows: Iterable[Mapping[str, Any]]) -> Any:  # noqa: ANN401 -- pandas has its own types
    """Labels as a DataFrame of pandas, with a column for each of the losses and groups by name."""
    try:
        import pandas as pd  # noqa: PLC0415 -- what only this needs
    except ImportError as error:
        rule = "pip install pandas"
        raise InvalidValue(f"a frame needs pandas: {rule}", field="frame", rule=rule) from error
    frame = pd.DataFrame([_flat(row) for row in rows])
    for name in ("drawn_at", "judged_at", "corrected_at"):
        if name in frame:
            frame[name] = pd.to_datetime(frame[name], format="ISO8601")
    return frame


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    flat = {name: value for name, value in row.items() if name not in {"losses", "groups"}}
    for member in ("losses", "groups"):
        flat |= {f"{member}.{name}": value for name, value in (row.get(member) or {}).items()}
    return flat

"""The process that reads a Parquet file: the file on its standard input, batches on its output.

Started by `app.api.parquet`, never imported by the server, which thereby need not hold Arrow.
"""

import json
import os
import pickle
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from app.api.columns import Layout
from app.api.parquet import CPU_SECONDS, EXHAUSTED, REFUSALS, Limits, Rows, unreadable
from app.errors import InvalidValue, PoolTooLarge, UploadTooLarge

MAX_ROW_BYTES = 4 << 20
BATCH_BYTES = 4 << 20
BATCH_ROWS = 2048
SLICE_ROWS = 64


def main() -> None:
    """Read the Parquet file on the standard input; write batches to the standard output."""
    limits = Limits(**json.loads(sys.argv[1]))
    with os.fdopen(os.dup(0), "rb") as file, os.fdopen(os.dup(1), "wb") as out:
        try:
            for rows in _read(file, limits):
                pickle.dump(("rows", rows), out, protocol=pickle.HIGHEST_PROTOCOL)
            pickle.dump(("end", None), out)
        except REFUSALS as refusal:
            told = {name: getattr(refusal, name) for name in ("detail", "field", "rule", "value")}
            pickle.dump((type(refusal).__name__, told), out)
        except MemoryError:
            # Nothing that needs memory, such as ending in good order
            os._exit(EXHAUSTED)


def _read(file: IO[bytes], limits: Limits) -> Iterator[Rows]:
    _bound_myself(limits.memory)
    try:
        source = pq.ParquetFile(file, buffer_size=1 << 20)
        _check_declared(source.metadata, limits)
        layout = Layout.of(source.schema_arrow.names)
        batch = _Batch(limits.bytes)
        number = 0
        size = _rows_at_once(source.metadata)
        for read in source.iter_batches(batch_size=size, use_threads=False):
            for begin in range(0, read.num_rows, SLICE_ROWS):
                part = read.slice(begin, SLICE_ROWS)
                cells = [column.to_pylist() for column in part.columns]
                for values in zip(*cells, strict=True):
                    number += 1
                    row = layout.row(list(values))
                    batch.add(number, row, _size(row))
                    if batch.full:
                        yield batch.taken()
        if batch.rows:
            yield batch.taken()
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        # Years beyond 9999 are no dates of Python's: an overflow.
        # Arrow's own error for too little memory is Python's, too.
        raise unreadable(str(error)) from error


def _size(row: object) -> int:
    """About how long the row is as JSON."""
    try:
        return len(orjson.dumps(row, default=str))
    except TypeError:
        return len(repr(row))


class _Batch:
    """Rows on their way out, and how much has gone before."""

    def __init__(self, most_bytes: int) -> None:
        self.numbers: list[int] = []
        self.rows: list[object] = []
        self._most_bytes = most_bytes
        self._bytes = 0
        self._total = 0

    def add(self, number: int, row: object, size: int) -> None:
        """Add a row of so many bytes as JSON; refused when it, or all together, are too large."""
        self._total += size
        if size > MAX_ROW_BYTES:
            raise InvalidValue(
                "A row of the upload is too long.",
                field=f"line {number}",
                rule=f"at most {MAX_ROW_BYTES} bytes as JSON",
                value=size,
            )
        if self._total > self._most_bytes:
            raise _too_large(self._most_bytes, f"more than {self._most_bytes}")
        self._bytes += size
        self.numbers.append(number)
        self.rows.append(row)

    @property
    def full(self) -> bool:
        return self._bytes >= BATCH_BYTES or len(self.rows) >= BATCH_ROWS

    def taken(self) -> Rows:
        rows = self.numbers, self.rows
        self.numbers, self.rows, self._bytes = [], [], 0
        return rows


def _check_declared(metadata: Any, limits: Limits) -> None:  # noqa: ANN401 - pyarrow has no types
    """Refuse what the file itself says is too much, before anything of it is unpacked."""
    if metadata.num_rows > limits.rows:
        raise PoolTooLarge(
            "The upload has more rows than a pool may have items.",
            field="body",
            rule=f"at most {limits.rows} rows",
            value=metadata.num_rows,
        )
    groups = range(metadata.num_row_groups)
    declared = sum(metadata.row_group(group).total_byte_size for group in groups)
    if declared > limits.bytes:
        raise _too_large(limits.bytes, declared)


def _too_large(limit_bytes: int, size: object) -> UploadTooLarge:
    """The refusal of a file that unpacks to more than an upload may have."""
    return UploadTooLarge(
        "The upload is too large once it is unpacked.",
        field="body",
        rule=f"at most {limit_bytes} bytes, unpacked too",
        value=size,
    )


def _rows_at_once(metadata: Any) -> int:  # noqa: ANN401 - pyarrow has no types
    """Rows of a batch of about BATCH_BYTES, if the file tells the truth."""
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    most = max((group.total_byte_size / max(1, group.num_rows) for group in groups), default=1)
    return max(SLICE_ROWS, min(BATCH_ROWS, int(BATCH_BYTES / max(1, most))))


def _bound_myself(memory: int) -> None:
    """Take no more memory than this beside what the libraries have, and only so much time."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    except FileNotFoundError:
        # Elsewhere than on Linux only what the file declares is bounded.
        return
    most = int(pages) * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    main()

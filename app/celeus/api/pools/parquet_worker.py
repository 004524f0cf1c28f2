"""The child process that reads a Parquet file and answers with batches of rows as JSON.

Started by `celeus.api.pools.parquet`, never imported by the server, which thereby need not hold
Arrow.
"""

import json
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from celeus.api.pools.parquet import BATCH_BYTES, MAX_ROW_BYTES, Limits, unreadable
from celeus.errors import InvalidValue, PoolTooLarge, UploadTooLarge
from celeus.intake.table.item_columns import Layout, named
from celeus.operations.runtime.workers import Files, Frame, serve

BATCH_ROWS = 2048
SLICE_ROWS = 64
JSON_RULE = "values that JSON has: text, numbers, true and false, lists and structs"


def work(job: Frame, files: Files) -> Iterator[Frame]:
    """The rows of the one file, batch by batch."""
    for lines in read(files[0], Limits(**job.values)):
        text = b"[" + b",".join(lines) + b"]"
        yield Frame({}, {"rows": np.frombuffer(text, np.uint8)})


def read(file: IO[bytes], limits: Limits) -> Iterator[list[bytes]]:
    """Batches of rows, each as JSON; refuses what is no Parquet or too much."""
    try:
        source = pq.ParquetFile(file, buffer_size=1 << 20)
        _check_declared(source.metadata, limits)
        layout = Layout.of(source.schema_arrow.names)
        batch = _Batch(limits.bytes)
        size = _rows_at_once(source.metadata)
        for part in source.iter_batches(batch_size=size, use_threads=False):
            for begin in range(0, part.num_rows, SLICE_ROWS):
                cells = [column.to_pylist() for column in part.slice(begin, SLICE_ROWS).columns]
                for values in zip(*cells, strict=True):
                    batch.add(_encoded(named(layout.row(list(values)))))
                    if batch.full:
                        yield batch.lines
                        batch.clear()
        if batch.lines:
            yield batch.lines
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        # Years beyond 9999 are no dates of Python's: an overflow.
        # Arrow's own error for too little memory is Python's, too.
        raise unreadable(str(error)) from error


def _encoded(row: dict[str, Any]) -> bytes:
    """The row as JSON; a rule and what breaks it where JSON has no such values."""
    try:
        return _json(row)
    except (TypeError, RecursionError) as error:
        return _json([JSON_RULE, str(error)])


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class _Batch:
    """Rows on their way out, and how much has gone before."""

    def __init__(self, most_bytes: int) -> None:
        self.lines: list[bytes] = []
        self._most_bytes = most_bytes
        self._bytes = 0
        self._total = 0
        self._rows = 0

    def add(self, line: bytes) -> None:
        """Add a row; refused when it, or all together, are too large."""
        size = len(line)
        self._rows += 1
        self._total += size
        if size > MAX_ROW_BYTES:
            raise InvalidValue(
                "A row of the upload is too long.",
                field=f"line {self._rows}",
                rule=f"at most {MAX_ROW_BYTES} bytes as JSON",
                value=size,
            )
        if self._total > self._most_bytes:
            raise _too_large(self._most_bytes, f"more than {self._most_bytes}")
        self._bytes += size
        self.lines.append(line)

    @property
    def full(self) -> bool:
        return self._bytes >= BATCH_BYTES or len(self.lines) >= BATCH_ROWS

    def clear(self) -> None:
        """Begin the next batch."""
        self.lines, self._bytes = [], 0


def check_declared(file: IO[bytes], limits: Limits) -> None:
    """Refuse a file that is no Parquet, or says itself that it holds too much."""
    try:
        _check_declared(pq.ParquetFile(file).metadata, limits)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(str(error)) from error


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


if __name__ == "__main__":
    serve(work)

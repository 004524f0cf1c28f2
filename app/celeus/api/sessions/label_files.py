"""Judgements as files: JSON Lines, CSV and Parquet, encoded some at a time in a thread."""

import asyncio
import csv
import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

import orjson

from celeus.api.insights.csv_cells import cell
from celeus.operations.sessions.labelling.labels import Labels

FORMATS = MappingProxyType(
    {
        "csv": "text/csv; charset=utf-8",
        "jsonl": "application/x-ndjson",
        "parquet": "application/vnd.apache.parquet",
    }
)
"""Media types by format."""
CAVEAT = (
    "Judgements of an adaptive session. They are no uniform sample: each item was drawn with its"
    " own probability among those not drawn before, so that the mean of these losses is not the"
    " score. The score is the session's interval. For analyses of your own weight by probability."
)
"""Stands in files that have room for a description."""
ROWS_OF_A_GROUP = 10_000
"""Rows of a row group of Parquet."""
TYPES = MappingProxyType(
    {
        "sequence": "int32",
        "round": "int32",
        "kind": "string",
        "item": "string",
        "index": "int32",
        "loss": "float64",
        "label": "int32",
        "preference": "string",
        "left": "string",
        "grade": "int32",
        "unjudgeable": "string",
        "person": "string",
        "worker": "string",
        "rater": "string",
        "turn": "int32",
        "drawn_at": "time",
        "judged_at": "time",
        "in_interval": "bool",
        "corrections": "int32",
        "corrected_at": "time",
        "corrected_by": "string",
        "correction_reason": "string",
        "comment": "string",
        "probability": "float64",
        "weight": "float64",
    }
)
"""The columns of every table, with their types."""
NESTED = ("losses", "groups")
"""Members that have a column for every name."""


class JsonLines:
    """A judgement a line, as pages have them."""

    head = b""

    async def encoded(self, rows: Sequence[Mapping[str, Any]]) -> bytes:
        """The rows as bytes of the file."""
        return await asyncio.to_thread(_lines, rows)

    async def end(self) -> bytes:
        """Return the bytes behind the last row."""
        return b""


class Csv:
    """A judgement a line (RFC 4180); cells that a spreadsheet would run get an apostrophe."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self.head = _csv(columns, [dict(zip(columns, columns, strict=True))])

    async def encoded(self, rows: Sequence[Mapping[str, Any]]) -> bytes:
        """The rows as bytes of the file."""
        return await asyncio.to_thread(self._encoded, rows)

    def _encoded(self, rows: Sequence[Mapping[str, Any]]) -> bytes:
        return _csv(self._columns, [_flat(row) for row in rows])

    async def end(self) -> bytes:
        """Return the bytes behind the last row."""
        return b""


class Parquet:
    """Row groups of typed columns; the file's metadata have the caveat as ``description``."""

    head = b""

    def __init__(self, columns: Mapping[str, str]) -> None:
        import pyarrow as pa  # noqa: PLC0415 -- takes a moment, and most never ask for it
        from pyarrow import parquet  # noqa: PLC0415

        types = {
            "int32": pa.int32(),
            "float64": pa.float64(),
            "string": pa.string(),
            "bool": pa.bool_(),
            "time": pa.timestamp("us", tz="UTC"),
        }
        fields = [(name, types[kind]) for name, kind in columns.items()]
        self._schema = pa.schema(fields, metadata={"description": CAVEAT})
        self._times = [name for name, kind in columns.items() if kind == "time"]
        self._table = pa.Table.from_pylist
        self._sink = _Sink()
        self._writer = parquet.ParquetWriter(self._sink, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    async def encoded(self, rows: Sequence[Mapping[str, Any]]) -> bytes:
        """Bytes of the file, once there are rows for a group."""
        return await asyncio.to_thread(self._encoded, rows)

    async def end(self) -> bytes:
        """The last group, and where everything is."""
        return await asyncio.to_thread(self._ended)

    def _encoded(self, rows: Sequence[Mapping[str, Any]]) -> bytes:
        self._rows += map(self._timed, rows)
        if len(self._rows) >= ROWS_OF_A_GROUP or "payload" in self._schema.names:
            self._write()
        return self._sink.taken()

    def _ended(self) -> bytes:
        if self._rows:
            self._write()
        self._writer.close()
        return self._sink.taken()

    def _write(self) -> None:
        self._writer.write_table(self._table(self._rows, schema=self._schema))
        self._rows = []

    def _timed(self, row: Mapping[str, Any]) -> dict[str, Any]:
        flat = _flat(row)
        for name in self._times:
            if flat[name] is not None:
                flat[name] = datetime.fromisoformat(flat[name])
        return flat


async def writer_of(form: str, labels: Labels, *, payload: bool) -> JsonLines | Csv | Parquet:
    """Return the encoder for a file of this form."""
    if form == "jsonl":
        return JsonLines()
    columns = dict(TYPES)
    names = labels.names or (("a", "b") if labels.systems else ())
    columns |= {f"losses.{name}": "float64" for name in names}
    columns |= {f"groups.{name}": "string" for name in labels.groups}
    if payload:
        columns["payload"] = "string"
    if form == "csv":
        return Csv(list(columns))
    return await asyncio.to_thread(Parquet, columns)


class _Sink(io.RawIOBase):
    """A file that is read while it is written, from its beginning on."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:  # noqa: ANN401 -- a buffer
        part = bytes(data)
        self._parts.append(part)
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size

    def taken(self) -> bytes:
        """Return the bytes written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore")
    writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue().encode()


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with a member for every name in place of those by name."""
    flat = {name: value for name, value in row.items() if name not in NESTED}
    for member in NESTED:
        flat |= {f"{member}.{name}": value for name, value in (row[member] or {}).items()}
    if flat.get("payload") is not None:
        flat["payload"] = orjson.dumps(flat["payload"]).decode()
    return flat

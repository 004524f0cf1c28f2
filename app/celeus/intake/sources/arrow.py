"""Parquet, and Arrow as a file, as a stream and as Feather."""

from collections.abc import Iterator
from typing import IO, Any

from celeus.errors import InvalidValue
from celeus.intake.sources.documents import row_of
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import Sheet, SheetRow, refused
from celeus.intake.sources.unpacking import too_large

INSTALL = "pip install 'celeus[parquet]'"
PARQUET = b"PAR1"
_FILE = b"ARROW1"
_FEATHER = b"FEA1"
_STREAM = b"\xff\xff\xff\xff"
"""A message follows, in place of the length that older versions began with."""
_BATCH = 256


def is_arrow(head: bytes) -> bool:
    """Return True for a file that begins as Parquet or Arrow do."""
    return head.startswith((PARQUET, _FILE, _FEATHER, _STREAM))


def sheet_of(source: Source, limit_bytes: int) -> Sheet:
    """The rows of a file of Parquet or Arrow; refuses one that is not whole, or holds too much."""
    head = source.head()
    form = "Parquet" if head.startswith(PARQUET) else "Arrow"
    try:
        import pyarrow as pa  # noqa: PLC0415 -- an extra that few need
    except ImportError:
        raise refused(f"{form} needs a library: {INSTALL}", "another format") from None

    def rows() -> Iterator[tuple[int, SheetRow]]:
        number = size = 0
        try:
            with source.open() as file:
                for batch in _batches(file, head):
                    most = batch.num_columns
                    for begin in range(0, batch.num_rows, _BATCH):
                        part = batch.slice(begin, _BATCH)
                        size += _size(part)
                        if size > limit_bytes:
                            raise too_large(f"at most {limit_bytes} bytes, unpacked too", size)
                        for row in part.to_pylist():
                            number += 1
                            yield number, row_of(row, most)
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise unreadable(form, str(error)) from error

    return Sheet(form.lower(), rows)


def declared(file: IO[bytes]) -> tuple[list[str], int, int]:
    """The columns of a Parquet file, and how many rows and bytes it says that it holds."""
    import pyarrow as pa  # noqa: PLC0415 -- as above
    from pyarrow import parquet  # noqa: PLC0415 -- as above

    try:
        table = parquet.ParquetFile(file)
        groups = map(table.metadata.row_group, range(table.metadata.num_row_groups))
        size = sum(group.total_byte_size for group in groups)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable("Parquet", str(error)) from error
    return table.schema_arrow.names, table.metadata.num_rows, size


def unreadable(form: str, reason: str) -> InvalidValue:
    """The refusal of a file that is none of this form, or no longer."""
    return refused(
        f"The upload cannot be read as {form}; it may have been cut off on its way.",
        f"one complete {form} file",
        reason[:100],
    )


def _size(rows: Any) -> int:  # noqa: ANN401 -- pyarrow has no types
    """Bytes of these rows, the values of a dictionary in each row that has one."""
    return sum(
        sum(len(str(value)) for value in column.to_pylist())
        if "dictionary" in str(column.type)
        else column.nbytes
        for column in rows.columns
    )


def _batches(file: IO[bytes], head: bytes) -> Iterator[Any]:
    """Batches of rows, as many at once as the file has in one."""
    import pyarrow as pa  # noqa: PLC0415 -- as above
    from pyarrow import feather, ipc, parquet  # noqa: PLC0415 -- as above

    if head.startswith(PARQUET):
        table = parquet.ParquetFile(file, buffer_size=1 << 20)
        yield from table.iter_batches(batch_size=_BATCH, use_threads=False)
    elif head.startswith(_FEATHER):
        yield from feather.read_table(pa.PythonFile(file, "r"), use_threads=False).to_batches()
    elif head.startswith(_FILE):
        opened = ipc.open_file(file)
        yield from map(opened.get_batch, range(opened.num_record_batches))
    else:
        yield from ipc.open_stream(file)

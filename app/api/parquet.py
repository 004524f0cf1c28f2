"""Parquet to rows, in a process of its own with bounded memory.

A Parquet file may be a thousandth of what it unpacks to, in more ways than its headers tell:
pages, dictionaries, runs. A process that may only have so much memory and so much time is a bound
on all of them, and a file that brings down the reader brings down nobody else.

    python -m app.api.parquetreader '{"bytes": …, "rows": …, "memory": …}' < file
"""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import IO

from app.errors import InvalidValue, PoolTooLarge, UploadTooLarge

Rows = tuple[list[int], list[object]]
Process = subprocess.Popen[bytes]

MEMORY_BYTES = 768 << 20
"""What the reader may use beside its own code."""
CPU_SECONDS = 900
_MAGIC = b"PAR1"
REFUSALS = (InvalidValue, UploadTooLarge, PoolTooLarge)
EXHAUSTED = 3
"""How the process ends that finds no more memory."""
_ONE_THREAD = {
    # Arrow's other allocators, and each thread of others, reserve more memory than they use.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What an upload may hold once it is unpacked, and the memory that may take."""

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
    with _reader(file, limits) as process:
        while (rows := _next(process)) is not None:
            yield rows


@contextmanager
def _reader(file: IO[bytes], limits: Limits) -> Iterator[Process]:
    """The process that reads the file; it is ended on leaving."""
    process = subprocess.Popen(  # noqa: S603 - a module of ours
        [sys.executable, "-m", "app.api.parquetreader", json.dumps(asdict(limits))],
        stdin=file,
        stdout=subprocess.PIPE,
        env=os.environ | _ONE_THREAD,
        # A Ctrl-C is for the server, which then ends this process
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _next(process: Process) -> Rows | None:
    """What the process says next; None at the end."""
    if process.stdout is None:
        return None
    try:
        kind, content = pickle.load(process.stdout)  # noqa: S301 - written by ourselves
    except (EOFError, pickle.UnpicklingError):
        status = process.wait()
        if status >= 0 and status != EXHAUSTED:
            raise
        # Ended by its bounds, or by what it read
        raise UploadTooLarge(
            "The Parquet file needs more memory or time to be read than an upload may take.",
            field="body",
            rule="less than some hundred megabytes at any moment; smaller row groups help",
        ) from None
    if kind == "rows":
        rows: Rows = content
        return rows
    for refusal in REFUSALS:
        if kind == refusal.__name__:
            raise refusal(**content)
    return None


def unreadable(reason: str) -> InvalidValue:
    """The refusal of a file that is not Parquet, or no longer."""
    return InvalidValue(
        "The upload cannot be read as Parquet; it may have been cut off on its way.",
        field="body",
        rule="one complete Parquet file",
        value=reason,
    )

"""Files of any kind, read to their end or refused."""

import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO

from celeus.errors import InvalidValue


def open_file(path: Path, field: str = "file") -> BufferedReader:
    """Open a file to be read; refuses one that cannot be."""
    try:
        return path.open("rb")
    except OSError as error:
        raise InvalidValue(f"{path} cannot be read: {error.strerror}", field=field) from error


def open_file_or_pipe(path: Path, field: str = "file") -> BufferedReader:
    """Open a file or a pipe to be read; refuses a device, and what cannot be read."""
    file = open_file(path, field)
    if stat.S_ISCHR(os.fstat(file.fileno()).st_mode):
        file.close()
        rule = "a file, and no device"
        raise InvalidValue(f"{path} must be {rule}", field=field, rule=rule)
    return file


def content_of(file: IO[bytes], most: int) -> Iterator[bytes]:
    """Yield what a file holds, in parts; refuses one that cannot be read, or holds too much."""
    size = 0
    while part := _part(file):
        size += len(part)
        if size > most:
            rule = f"at most {most} bytes"
            raise InvalidValue(
                f"{file.name} is too large: expected {rule}", field="file", rule=rule
            )
        yield part


def _part(file: IO[bytes]) -> bytes:
    try:
        return file.read(1 << 20)
    except OSError as error:
        message = f"{file.name} cannot be read: {error.strerror}"
        raise InvalidValue(message, field="file") from error

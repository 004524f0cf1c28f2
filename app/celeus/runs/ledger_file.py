"""A session in a file: what it was opened with, its items, and its ledger, to which is only added.

`celeus.core.runs.run_file` says which line is what. Every line is canonical JSON (RFC 8785). A line
that was being written when the process was killed is cut off; a record counts once it is on the
disk.
"""

import errno
import fcntl
import json
import os
import re
import stat
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Self

from celeus.core.canonical import canonical_json
from celeus.core.runs.run_file import FORMAT, KIND, RUNS
from celeus.errors import Busy, DiskFull, InvalidValue, LedgerBroken, Unavailable

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
JUDGED = frozenset({"observation", "unjudgeable"})
"""Kinds of the records that judge a round."""
_BEGINNING = re.compile(rb'\{"created_at":"[-+:.TZ\d]*')
_VERSION = f'","format":"{FORMAT}","items":'.encode()
_OPEN: "weakref.WeakValueDictionary[Path, AppendedFile]" = weakref.WeakValueDictionary()
"""Files that this process has open, by resolved path."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a file: header, rows of items, and lines of the ledger.

    ``records`` are the parsed ``lines``, with every number as a float; ``runs`` those made of draws
    that none of them settles.
    """

    header: Mapping[str, Any]
    rows: Sequence[bytes]
    records: Sequence[Mapping[str, Any]]
    lines: Sequence[bytes]
    runs: Mapping[int, int]


class AppendedFile:
    """A file of JSON lines to which is only added, and which one process at a time has open.

    Opening it again in the same process, as a notebook does, closes the earlier one.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or create it; raises Busy if another process has it open."""
        self.path = path
        place = path.resolve()
        if place in _OPEN:
            _OPEN[place].close()
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise InvalidValue(
                f"{path} cannot be opened: {error.strerror}", field="file", rule="a file's path"
            ) from error
        # Also closed when the object is collected
        self._end = weakref.finalize(self, os.close, self._descriptor)
        # A fork inherits the lock
        self._process = os.getpid()
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            self.close()
            raise InvalidValue(f"{path} is no file", field="file", rule="a file's path")
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise self._busy() from None
        _OPEN[place] = self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, so that others can open it."""
        self._end()

    def whole_lines(self) -> tuple[bytes, bytes]:
        """Return the lines that were written whole, and all that is in the file."""
        data = self.path.read_bytes()
        return data[: data.rfind(b"\n") + 1], data

    def cut(self, size: int) -> None:
        """Cut the file off after ``size`` bytes."""
        os.ftruncate(self._descriptor, size)

    def append(self, lines: Iterable[bytes]) -> None:
        """Write all lines or, if the disk is full, none; they are on the disk when this returns.

        Raises Busy in another process than the one that opened the file.
        """
        self.check_process()
        if not self._end.alive:
            raise InvalidValue(
                f"{self.path} was closed, or opened anew: nothing more is written to it.",
                field="file",
                rule="the session or gate that opened it last",
            )
        size = os.fstat(self._descriptor).st_size
        try:
            data = memoryview(b"".join(line + b"\n" for line in lines))
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, size)
            raise unwritten(self.path, error) from error

    def check_process(self) -> None:
        """Raise Busy in another process than the one that opened the file."""
        if os.getpid() != self._process:
            raise self._busy()

    def _busy(self) -> Busy:
        return Busy(f"{self.path} is in use by another process.")


class LedgerFile(AppendedFile):
    """A ledger's file."""

    def read(self) -> Contents | None:
        """Return the contents, or None for a new file; an unfinished last line is cut off.

        A file whose items were not all written is emptied too: nothing was drawn from it.
        """
        whole, data = self.whole_lines()
        if not whole and not _begins_header(data):
            raise _foreign(self.path)
        lines = whole.splitlines()
        header = self._header(lines[0]) if lines else None
        if header is None or self._unfinished(header, lines):
            self.cut(0)
            return None
        if len(whole) < len(data):
            self.cut(len(whole))
        first = 1 + header["items"]
        kept = [line for line in lines[first:] if not line.startswith(RUNS)]
        made = [self._object(line) for line in lines[first:] if line.startswith(RUNS)]
        records = [self._object(line, parse_int=float) for line in kept]
        runs = {line["round"]: line["runs"] for line in made}
        return Contents(header, lines[1:first], records, kept, runs)

    def parsed(self, rows: Iterable[bytes]) -> list[Mapping[str, Any]]:
        """Parse rows that were read."""
        return [self._object(line) for line in rows]

    def begin(self, header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the header and the rows of a new session."""
        self.append([canonical_json(dict(header)), *spelled(rows)])

    def _header(self, line: bytes) -> Mapping[str, Any]:
        try:
            header = json.loads(line)
        except ValueError:
            header = None
        version = header.get("format") if isinstance(header, dict) else None
        if isinstance(version, str) and version.startswith(KIND) and version != FORMAT:
            raise InvalidValue(
                f"{self.path} was written by another version of Celeus, which goes on with it;"
                " nothing was written to it.",
                field="file",
                rule=f"a file of format {FORMAT}",
                value=version,
            )
        if not isinstance(header, dict) or version != FORMAT:
            raise _foreign(self.path)
        return header

    def _unfinished(self, header: Mapping[str, Any], lines: Sequence[bytes]) -> bool:
        """Return whether items are missing; raises LedgerBroken if the header counts too many."""
        items = header.get("items")
        if not isinstance(items, int):
            raise self._changed(lines[0])
        if len(lines) > items:
            return False
        if len(lines) > 1 and "sequence" in self._object(lines[-1]):
            raise self._changed(lines[0])
        return True

    def _changed(self, line: bytes) -> LedgerBroken:
        return LedgerBroken(
            f"{self.path} was changed: {line[:40]!r} is no line of a session.",
            field="file",
            rule="a file as it was written",
            value=str(self.path),
        )

    def _object(self, line: bytes, **options: Any) -> Mapping[str, Any]:  # noqa: ANN401
        try:
            value = json.loads(line, **options)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise self._changed(line)
        return value


def set_aside(path: Path) -> tuple[Path, int] | None:
    """Move a session's file away; return its new path and its number of judgements, if any."""
    if not path.exists():
        return None
    with LedgerFile(path) as file:
        contents = file.read()
        if contents is None:
            return None
        names = (path.with_name(f"{path.stem}.{number}{path.suffix}") for number in count(1))
        aside = next(name for name in names if not name.exists())
        path.rename(aside)
    judged = {record["round"] for record in contents.records if record["kind"] in JUDGED}
    return aside, len(judged)


def spelled(rows: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Rows as the file holds them."""
    return [canonical_json(dict(row)) for row in rows]


def unwritten(path: Path, error: OSError) -> Unavailable:
    """Return the refusal for a write that the disk does not take."""
    kind, then = (DiskFull, "make room") if error.errno in NO_ROOM else (Unavailable, "mend that")
    return kind(
        f"{path} cannot be written: {error.strerror}. What was acknowledged is kept; {then}, and"
        " call again.",
        field="file",
        rule="a disk with room",
    )


def _begins_header(data: bytes) -> bool:
    """Return whether a header may begin so."""
    begun = _BEGINNING.match(data)
    if begun is None:
        return b'{"created_at":"'.startswith(data)
    rest = data[begun.end() :]
    return rest.startswith(_VERSION) or _VERSION.startswith(rest)


def _foreign(path: Path) -> InvalidValue:
    return InvalidValue(
        f"{path} is no session's file; nothing was written to it.",
        field="file",
        rule=f"a new file, or one that begins with a header of format {FORMAT}",
        value=str(path),
    )

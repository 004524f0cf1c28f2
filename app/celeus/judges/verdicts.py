"""Verdicts that have been given, in a file, so that none is paid for or given twice."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self

from celeus.errors import InvalidValue

JUDGE = "judge of "
"""Beginning of the key that a session's judge is kept under."""


class Verdicts:
    """A file of JSON Lines that grows by a line a verdict; threads and processes may share it.

    The first verdict under a key stays: what was judged twice has one loss. ``option`` is what
    refusals tell to name another file with. ``taken_up`` counts the verdicts of earlier runs that
    were asked for.
    """

    def __init__(self, path: Path, option: str = "--cache") -> None:
        self.path = path
        self._option = option
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}
        self._used: set[str] = set()
        try:
            lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
            for line in lines[:-1]:
                self._read(line)
            self._file: IO[bytes] = path.open("ab", buffering=0)
        except OSError as error:
            raise InvalidValue(
                f"{path} cannot be written: {error.strerror}; name another file with {option}",
                field=option.strip("-"),
            ) from error
        if lines[-1]:
            # Cut short by the end of the process that wrote it
            self._file.write(b"\n")
        self._earlier = frozenset(self._known)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def taken_up(self) -> int:
        """The number of verdicts taken from earlier runs."""
        return len(self._used)

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the verdict kept under a key, None if there is none."""
        if key in self._earlier:
            self._used.add(key)
        return self._known.get(key)

    def __getitem__(self, key: str) -> dict[str, Any]:
        return self._known[key]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from self._known.values()

    def judge_of(self, session: str) -> str | None:
        """Return the fingerprint of the judge that judged a session last from here, if any."""
        judge: str | None = self._known.get(f"{JUDGE}{session}", {}).get("fingerprint")
        return judge

    def set_judge(self, session: str, judge: str) -> None:
        """Keep the fingerprint of the judge that judges a session now."""
        if self.judge_of(session) != judge:
            with self._lock:
                self._write(f"{JUDGE}{session}", {"fingerprint": judge})

    def keep(self, key: str, verdict: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a verdict unless the key has one; return the first verdict under the key."""
        with self._lock:
            if key not in self._known:
                self._write(key, verdict)
            return self._known[key]

    def _write(self, key: str, kept: Mapping[str, Any]) -> None:
        line = json.dumps({"key": key, "said": kept}, ensure_ascii=False)
        self._file.write(line.encode(errors="backslashreplace") + b"\n")
        self._known[key] = dict(kept)

    def _read(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            record = json.loads(line)
            key, kept = str(record["key"]), dict(record["said"])
            # Of a session's judges the last one counts, of verdicts the first
            if key.startswith(JUDGE) or key not in self._known:
                self._known[key] = kept
        except (ValueError, KeyError, TypeError, RecursionError):
            if line.startswith(b'{"key"'):
                return
            raise InvalidValue(
                f"{self.path} is no file of verdicts: name another with {self._option}",
                field=self._option.strip("-"),
            ) from None


def key_of(*parts: object) -> str:
    """The key of what is asked: a hash of the judge, and of all that it is sent."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()

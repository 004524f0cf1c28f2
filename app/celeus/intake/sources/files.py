"""Files: logs, on disk or open, with the files beside them; and those that an import makes."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from celeus.intake.rows import refused
from celeus.strict_json import json_of

HEAD = 1 << 16
LONGEST_LINE = 1 << 26


@dataclass(frozen=True, slots=True)
class Source:
    """A log that can be opened again and again.

    ``name`` may be a path; ``beside`` gives the file of another name in the same folder, or None.
    ``model`` is what its model is to be called, where the log is not to say.
    """

    name: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    beside: Callable[[str], "Source | None"] = lambda _: None
    model: str | None = None

    @classmethod
    def of_path(cls, path: Path) -> Self:
        """A file on disk; refuses one that cannot be read."""
        try:
            whole = path.is_file()
            if not whole and not path.exists():
                raise refused(f"{path}: there is no such file", "log")
        except OSError as error:
            raise refused(f"{path} cannot be read: {error.strerror}", "log") from error
        if not whole:
            raise refused(f"{path} is no file", "log")

        def opened() -> AbstractContextManager[IO[bytes]]:
            try:
                return path.open("rb")
            except OSError as error:
                raise refused(f"{path} cannot be read: {error.strerror}", "log") from error

        def beside(name: str) -> Self | None:
            other = path.parent / name
            return cls.of_path(other) if other.is_file() else None

        return cls(str(path), opened, beside)

    @classmethod
    def of_file(
        cls, name: str, file: IO[bytes], others: Mapping[str, IO[bytes]] | None = None
    ) -> Self:
        """An open file that can be rewound, and ``others`` that came along, by their names."""

        def opened() -> AbstractContextManager[IO[bytes]]:
            file.seek(0)
            return nullcontext(file)

        def beside(other: str) -> Self | None:
            found = (others or {}).get(other)
            return None if found is None else cls.of_file(other, found, others)

        return cls(name, opened, beside)

    @property
    def stem(self) -> str:
        """The name of the file without folder and last ending."""
        return Path(self.name).stem

    def head(self) -> bytes:
        """The first bytes of the file."""
        with self.open() as file:
            return file.read(HEAD)

    def first_line(self) -> bytes:
        """The first line, as far as it is looked at."""
        with self.open() as file:
            return file.readline(LONGEST_LINE).removeprefix(b"\xef\xbb\xbf")

    def document(self) -> Any:  # noqa: ANN401 -- any JSON
        """The file as one JSON document, NaN allowed."""
        with self.open() as file:
            try:
                return _parsed(file.read())
            except (ValueError, RecursionError) as error:
                raise refused(f"{self.name} is no JSON ({error}): is it whole?", "log") from error

    def lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The objects of a file of JSON Lines, with the numbers of their lines."""
        with self.open() as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                place = f"line {number} of {self.name}"
                try:
                    row = _parsed(line)
                except (ValueError, RecursionError) as error:
                    raise refused(f"{place} is no JSON ({error}): is it whole?", "log") from error
                if not isinstance(row, dict):
                    raise refused(f"{place} is no JSON object", "log")
                yield number, row


def _parsed(text: bytes) -> Any:  # noqa: ANN401 -- any JSON
    """The value of a JSON text in any encoding that JSON has had."""
    return json_of(text.decode(json.detect_encoding(text), "surrogatepass"))


def under(source: Source, value: object, *names: str) -> Any:  # noqa: ANN401 -- any JSON
    """The value under these nested names of a document; refuses a document that lacks one."""
    for name in names:
        if not isinstance(value, dict) or name not in value:
            way = ".".join(names)
            raise refused(f"{source.name} has no {way!r}: it is no log this reader knows", "log")
        value = value[name]
    return value


def check_apart(files: Iterable[Path], logs: Iterable[Source]) -> None:
    """Refuse to write a file in the place of a log."""
    names = {os.path.realpath(log.name) for log in logs}
    for path in files:
        if os.path.realpath(path) in names:
            raise refused(f"{path} is one of the logs: name another file for the pool", "out")


def write(files: Mapping[Path, bytes]) -> None:
    """Write all of these files, or none: each beside its place, and then all into their places."""
    made: dict[Path, Path] = {}
    try:
        for path, text in files.items():
            if path.is_dir():
                raise refused(f"{path} cannot be written: it is a folder", "out")
            made[path] = path.with_name(f".{path.name}.{os.getpid()}.part")
            made[path].write_bytes(text)
        for path, part in made.items():
            part.replace(path)
    except OSError as error:
        name = next(reversed(made))
        raise refused(f"{name} cannot be written: {error.strerror}", "out") from error
    finally:
        for part in made.values():
            with suppress(OSError):
                part.unlink()

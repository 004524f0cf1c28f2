"""JSON in the shapes that tables come in, JSON Lines, and Parquet."""

import json
from collections.abc import Iterator
from typing import Any

from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import DEPTH_RULE, BadRow, Sheet, SheetRow, is_deep, refused
from celeus.intake.sources.unpacking import encoding_of, text_of
from celeus.shorten import shortened

PARQUET = b"PAR1"
INSTALL = "pip install 'celeus[parquet]'"
LONGEST_LINE = 4 << 20
_HOLDERS = ("rows", "items", "data", "examples", "records", "samples", "results", "entries")
"""Members of a document that hold its rows, the first of them first."""
_CHAT = frozenset({"role", "content"})


def is_json(head: bytes) -> bool:
    """Return True if a text that begins with ``head`` may be JSON."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["}


def sheet_of(source: Source, member: str | None = None) -> Sheet:
    """The rows of a document, or of JSON Lines; refuses what is neither.

    ``member`` is the one that holds the rows, of a document with several lists.
    """
    encoding = encoding_of(source)
    with text_of(source, encoding) as text:
        first = next((line for line in text if line.strip()), "")
        more = any(line.strip() for line in text)
    value = _parsed(first)
    if more and isinstance(value, dict):
        return Sheet("jsonl", lambda: _lines(source, encoding))
    if more and isinstance(value, list) and _broken(source, encoding):
        return Sheet("jsonl", lambda: _lines(source, encoding))
    found = _document(source, encoding)
    if found is None:
        return Sheet("jsonl", lambda: _lines(source, encoding))
    rows = _rows_in(found[0], member)
    return Sheet("json", lambda: enumerate(map(_row, rows), 1))


def parquet_of(source: Source) -> Sheet:
    """The rows of a Parquet file; refuses one that is not whole."""
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415 -- an extra that few need
    except ImportError:
        raise refused(f"Parquet needs a library: {INSTALL}", "another format") from None

    def rows() -> Iterator[tuple[int, SheetRow]]:
        number = 0
        try:
            with source.open() as file:
                table = parquet.ParquetFile(file, buffer_size=1 << 20)
                for batch in table.iter_batches(batch_size=256, use_threads=False):
                    for row in batch.to_pylist():
                        number += 1
                        yield number, _row(row)
        except (ArrowException, OSError, ValueError, OverflowError) as error:
            how = "one complete Parquet file"
            raise refused(
                "The upload cannot be read as Parquet; it may have been cut off on its way.",
                how,
                str(error)[:100],
            ) from error

    return Sheet("parquet", rows)


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _broken(source: Source, encoding: str) -> bool:
    """The whole is no JSON."""
    return _document(source, encoding) is None


def _document(source: Source, encoding: str) -> tuple[Any] | None:
    """The whole as one document; None where it is none and may be lines. Refuses one cut short."""
    with text_of(source, encoding) as text:
        whole = text.read()
    try:
        return (json.loads(whole),)
    except RecursionError as error:
        raise refused("The JSON is too deep.", "at most some hundred levels") from error
    except ValueError as error:
        lines = [line for line in whole.splitlines() if line.strip()][:3]
        if len(lines) > 1 and any(isinstance(_parsed(line), dict) for line in lines):
            return None
        how = "one complete JSON document, or a row a line"
        raise refused(
            "The upload cannot be read as JSON; it may have been cut off on its way.",
            how,
            str(error),
        ) from error


def _lines(source: Source, encoding: str) -> Iterator[tuple[int, SheetRow]]:
    with text_of(source, encoding) as text:
        for number, line in enumerate(text, 1):
            if line.strip():
                yield number, _line(line)


def _line(line: str) -> SheetRow:
    if len(line) > LONGEST_LINE:
        return BadRow(f"a line of at most {LONGEST_LINE} characters", line[:60])
    try:
        return _row(json.loads(line))
    except (ValueError, RecursionError) as error:
        return BadRow(f"a JSON object on one line ({error})", line[:60])


def _row(value: object) -> SheetRow:
    """A row of whatever stands for one: an object, a chat, a text."""
    if is_deep(value):
        return BadRow(DEPTH_RULE, shortened(value))
    if isinstance(value, dict):
        inner = value.get("row")
        return inner if isinstance(inner, dict) and "row_idx" in value else value
    if isinstance(value, str):
        return {"text": value}
    if is_chat(value):
        return {"messages": value}
    return BadRow("a JSON object", shortened(value))


def _rows_in(found: Any, member: str | None) -> list[Any]:  # noqa: ANN401 -- any JSON
    """The rows of a document: an array, a member that is one, or columns by their names."""
    if isinstance(found, list):
        return [found] if is_chat(found) else found
    if not isinstance(found, dict):
        raise refused("The JSON holds no rows.", "an array of objects", type(found).__name__)
    lists = {name: values for name, values in found.items() if isinstance(values, list)}
    tables = [
        name
        for name, values in lists.items()
        if values and all(isinstance(element, dict) for element in values) and not is_chat(values)
    ]
    if member in tables:
        return lists[member]
    for name in (*(holder for holder in _HOLDERS if holder in tables), *tables):
        return lists[name]
    sizes = {len(values) for values in lists.values()}
    if len(lists) == len(found) > 0 and len(sizes) == 1 and not any(map(is_chat, lists.values())):
        return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    return [found]


def is_chat(value: object) -> bool:
    """Return True for a list of messages, each with a speaker and a text."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(message, dict) for message in value)
        and (value[0].keys() >= _CHAT or value[0].keys() >= {"from", "value"})
    )

"""JSON in the shapes that tables come in, and JSON Lines."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import PurePath
from typing import Any

from celeus.errors import InvalidValue
from celeus.intake.sources.files import Source
from celeus.intake.sources.kinds import Keep, settled
from celeus.intake.sources.sheet import (
    DEPTH_RULE,
    MOST_COLUMNS,
    BadRow,
    Sheet,
    SheetRow,
    is_deep,
    refused,
)
from celeus.intake.sources.unfolding import WHOLE, announced, is_chat, unfolded
from celeus.intake.sources.unpacking import encoding_of, text_of
from celeus.shorten import shortened
from celeus.strict_json import json_of

LONGEST_LINE = 4 << 20
_LINES = frozenset({".jsonl", ".ndjson"})
_LOOKED_AT = 1_000
_LAST_LINES = 20
_LONGEST_LOOKED_AT = 1 << 16
_TOOLS = (
    ("lm-eval", {"doc_id", "resps"}),
    ("promptfoo", {"promptIdx", "testIdx"}),
    ("deepeval", {"testCases"}),
    ("deepeval", {"testRunData"}),
    ("inspect", {"eval", "status"}),
    ("swebench", {"resolved_ids"}),
)
"""Members by which the document of a tool, or a line of one, is known."""


def is_json(head: bytes) -> bool:
    """Return True if a text that begins with ``head`` may be JSON."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["}


def tool_of(value: Mapping[str, object]) -> str | None:
    """The tool whose document, or line, has such members; None for none that is known."""
    return next((name for name, members in _TOOLS if value.keys() >= members), None)


def sheet_of(source: Source, answer: str | None = None) -> Sheet:
    """The rows of a document, or of JSON Lines; refuses what is neither.

    ``answer`` is what was said about its rows: the place where they stand in the document, the
    kind of them that is meant, or both with a colon between them.
    """
    encoding = encoding_of(source)
    first, rest = "", 0
    last: deque[tuple[int, str]] = deque(maxlen=_LAST_LINES)
    with text_of(source, encoding) as text:
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            if not first:
                first = line
            else:
                rest += 1
                last.append((number, line if len(line) < _LONGEST_LOOKED_AT else ""))
    value = _parsed(first)
    lines = PurePath(source.name).suffix.lower() in _LINES or rest > 0
    if (lines and isinstance(value, dict)) or (rest and _is_broken_list(value, source, encoding)):
        return _sheet_of_lines(source, encoding, last, answer)
    found = _document(source, encoding) if value is None or rest else (value,)
    if found is None:
        return _sheet_of_lines(source, encoding, last, answer)
    name = source.name or "the file"
    table, read_as = unfolded(found[0], name, answer)
    count = len(table.rows)
    looked = [*range(min(count, _LOOKED_AT)), *range(max(_LOOKED_AT, count - _LAST_LINES), count)]
    sample = [(place + 1, row_of(table.rows[place])) for place in looked]
    where = f"{table.path}:" if table.is_meant_by(answer) else ""
    kind = None if answer == WHOLE else answer
    if where:
        kind = str(answer).removeprefix(table.path).removeprefix(":") or None
    keep, narrowed = settled(sample, name, kind, where)
    rows = partial(_kept, lambda: enumerate(map(row_of, table.rows), 1), keep)
    return Sheet("json", rows, (*read_as, *narrowed))


def _kept(
    rows: Callable[[], Iterable[tuple[int, SheetRow]]], keep: Keep
) -> Iterator[tuple[int, SheetRow]]:
    for number, whole in rows():
        row = keep(whole)
        if row is not None:
            yield number, row


def _sheet_of_lines(
    source: Source, encoding: str, last: Iterable[tuple[int, str]], answer: str | None
) -> Sheet:
    sample = [*islice(_lines(source, encoding), _LOOKED_AT)]
    seen = {number for number, _ in sample}
    sample += [(number, _line(line)) for number, line in last if number not in seen and line]
    keep, read_as = settled(sample, source.name or "the file", answer)
    left_out = [row for _, row in sample if isinstance(row, dict) and keep(row) is None]
    if any(announced(row, -1) for row in left_out):
        count = sum(keep(row) is not None for _, row in _lines(source, encoding))
        read_as += [phrase for row in left_out for phrase in announced(row, count)]
    rows = partial(_kept, partial(_lines, source, encoding), keep)
    return Sheet("jsonl", rows, tuple(read_as))


def _parsed(line: str) -> object:
    try:
        return json_of(line)
    except (InvalidValue, ValueError, RecursionError):
        return None


def _is_broken_list(value: object, source: Source, encoding: str) -> bool:
    """The first line is a list and the whole is no JSON."""
    return isinstance(value, list) and _document(source, encoding) is None


def _document(source: Source, encoding: str) -> tuple[Any] | None:
    """The whole as one document; None where it is none and may be lines. Refuses one cut short."""
    with text_of(source, encoding) as text:
        whole = text.read()
    try:
        return (json_of(whole),)
    except RecursionError as error:
        raise refused("The JSON is too deep.", "at most some hundred levels") from error
    except (InvalidValue, ValueError) as error:
        lines = [line for line in whole.splitlines() if line.strip()][:3]
        if len(lines) > 1 and any(isinstance(_parsed(line), dict) for line in lines):
            return None
        if isinstance(error, InvalidValue):
            raise
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
        return row_of(json_of(line))
    except InvalidValue as error:
        return BadRow(str(error.rule), str(error.value))
    except (ValueError, RecursionError) as error:
        return BadRow(f"a JSON object on one line ({error})", line[:60])


def row_of(value: object, most: int = MOST_COLUMNS) -> SheetRow:  # noqa: PLR0911 -- a form each
    """A row of whatever stands for one: an object of at most so many members, a chat, a text."""
    if isinstance(value, BadRow):
        return value
    if is_deep(value):
        return BadRow(DEPTH_RULE, shortened(value))
    if isinstance(value, dict):
        if len(value) > most:
            return BadRow(f"at most {most} members", f"{len(value)} members")
        if not value:
            return BadRow("a JSON object with members", "{}")
        inner = value.get("row")
        return inner if isinstance(inner, dict) and "row_idx" in value else value
    if isinstance(value, str):
        return {"text": value}
    if is_chat(value):
        return {"messages": value}
    return BadRow("a JSON object", shortened(value))

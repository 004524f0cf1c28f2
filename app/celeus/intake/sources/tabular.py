"""Any table as a sheet, in any encoding, packed or not."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePath

from celeus.errors import InvalidValue, NeedsAnswer
from celeus.intake.rows import Options
from celeus.intake.sources import arrow, csv_rows, documents, workbooks
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import BadRow, Sheet, SheetRow, bounded
from celeus.intake.sources.unpacking import check_readable, is_packed, unpacked

MOST_BYTES = 1 << 30
"""Largest size of an unpacked file where nobody sets another."""
_ENDINGS = frozenset({".csv", ".tsv", ".tab", ".txt"})


def table_of(source: Source, options: Options | None = None) -> Sheet:
    """The table in a file that is not packed; a refusal names the file."""
    with naming(source):
        return sheet_of(source, options)


def plain(source: Source) -> Source:
    """The source, or its content if it is packed with gzip."""
    if not is_packed(source.head()):
        return source
    content = io.BytesIO()
    with naming(source):
        for _ in unpacked(source, MOST_BYTES, content):
            pass
    name = source.name.removesuffix(".gz")
    return replace(source, name=name, open=Source.of_file(name, content).open)


@contextmanager
def naming(source: Source) -> Iterator[None]:
    """Have refusals name the file: of several it is not known which is meant."""
    try:
        yield
    except NeedsAnswer:
        raise
    except InvalidValue as refusal:
        if source.name in refusal.detail:
            raise
        raise InvalidValue(
            f"{source.name}: {refusal.detail}",
            field=refusal.field,
            rule=refusal.rule,
            value=refusal.value,
        ) from refusal


def whole(sheet: Sheet, name: str) -> Sheet:
    """The sheet, whose rows are refused at the first bad one. ``name`` is of the file."""

    def rows() -> Iterator[tuple[int, SheetRow]]:
        for number, row in sheet.rows():
            if isinstance(row, BadRow):
                detail = f"line {number} of {name} cannot be read"
                raise InvalidValue(detail, field="log", rule=row.rule, value=row.text)
            yield number, row

    return replace(sheet, rows=rows)


def sheet_of(
    source: Source,
    options: Options | None = None,
    *,
    named: bool = False,
    limit_bytes: int = MOST_BYTES,
) -> Sheet:
    """The table in a file that is not packed. ``named``: its type says CSV, as a name may.

    Refuses more than ``limit_bytes`` in its rows: one value may stand in all of them.
    """
    sheet = _sheet_of(source, options, limit_bytes, named=named)
    return replace(sheet, rows=lambda: bounded(sheet.rows()))


def _sheet_of(source: Source, options: Options | None, limit_bytes: int, *, named: bool) -> Sheet:
    head = source.head()
    answer = None if options is None else options.rows
    if arrow.is_arrow(head):
        return arrow.sheet_of(source, limit_bytes)
    if workbooks.is_workbook(source, head):
        return workbooks.sheet_of(source, answer, limit_bytes)
    check_readable(head)
    if documents.is_json(head) or _is_wide_json(head):
        return documents.sheet_of(source, answer)
    named = named or PurePath(source.name).suffix.lower() in _ENDINGS
    return csv_rows.sheet_of(source, named=named)


def _is_wide_json(head: bytes) -> bool:
    """JSON in UTF-16."""
    return head[:2] in {b"\xff\xfe", b"\xfe\xff"} and documents.is_json(
        head[2:].replace(b"\0", b"")
    )

"""A file of any of the forms that tables and logs come in, as a sheet."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import IO

from celeus.intake import outputs
from celeus.intake.formats import exports
from celeus.intake.rows import Options
from celeus.intake.sources import csv_rows, documents
from celeus.intake.sources.files import LONGEST_LINE, Source
from celeus.intake.sources.sheet import Sheet
from celeus.intake.sources.unpacking import HEAD_BYTES, check_readable, unpacked

_TABLES = frozenset({".csv", ".tsv", ".tab", ".txt"})


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file as it was sent: what it is called, whether its type says CSV, and what is asked."""

    name: str
    csv: bool = False
    options: Options = field(default_factory=Options)
    limit_bytes: int = 1 << 30


def opened(file: IO[bytes], given: SentFile) -> Iterator[Sheet | None]:
    """None now and then while the file is unpacked, and then what it holds."""
    path = PurePath(given.name)
    for plain in unpacked(file, given.limit_bytes):
        if plain is None:
            yield None
            continue
        packed = plain is not file
        name = path.stem if packed and path.suffix == ".gz" else given.name
        sheet = _sheet(plain, name, given)
        read_as = ("packed with gzip", *sheet.read_as) if packed else sheet.read_as
        yield Sheet(sheet.form, sheet.rows, read_as, sheet.known, sheet.cells)


def _sheet(file: IO[bytes], name: str, given: SentFile) -> Sheet:
    file.seek(0)
    head = file.read(HEAD_BYTES)
    if head.startswith(documents.PARQUET):
        return exports.recognised(documents.parquet_of(file), given.options)
    source = Source.of_file(name or _called(file), file)
    zipped = head.startswith(b"PK")
    if zipped or documents.is_json(head):
        form = outputs.form_of(source)
        if form is not None:
            return outputs.sheet_of(form, source, given.options)
        document = exports.document_of(source, given.options)
        if document is not None:
            return document
    check_readable(head)
    if documents.is_json(head) or _is_wide_json(head):
        return exports.recognised(documents.sheet_of(file), given.options)
    named = given.csv or PurePath(name).suffix.lower() in _TABLES
    return exports.recognised(csv_rows.sheet_of(file, named=named), given.options)


def _called(file: IO[bytes]) -> str:
    """A file name for a log without one: some readers go by the ending."""
    file.seek(0)
    first = file.readline(LONGEST_LINE).strip()
    lines = first.startswith(b"{") and first.endswith(b"}") and file.read(2).startswith(b"{")
    return "log.jsonl" if lines else "log.json"


def _is_wide_json(head: bytes) -> bool:
    """JSON in UTF-16."""
    return head[:2] in {b"\xff\xfe", b"\xfe\xff"} and documents.is_json(
        head[2:].replace(b"\0", b"")
    )

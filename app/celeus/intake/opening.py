"""A file of any of the forms that tables and logs come in, as a sheet."""

import tempfile
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import IO

from celeus.intake import outputs
from celeus.intake.formats import exports
from celeus.intake.rows import Options
from celeus.intake.sources import documents, tabular
from celeus.intake.sources.files import LONGEST_LINE, Source
from celeus.intake.sources.sheet import Sheet, refused
from celeus.intake.sources.unpacking import is_packed, unpacked


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file as it was sent: what it is called, whether its type says CSV, and what is asked."""

    name: str
    csv: bool = False
    options: Options = field(default_factory=Options)
    limit_bytes: int = tabular.MOST_BYTES


def opened(file: IO[bytes], given: SentFile) -> Generator[Sheet | None, None, None]:
    """None now and then while the file is unpacked, and then what it holds.

    The sheet can be read until the generator is closed.
    """
    source = Source.of_file(given.name, file)
    if not is_packed(source.head()):
        yield _sheet(source, given)
        return
    with tempfile.TemporaryFile() as plain:
        yield from unpacked(source, given.limit_bytes, plain)
        yield tabular.with_gzip(_sheet(tabular.plain_source(given.name, plain), given))


def _sheet(source: Source, given: SentFile) -> Sheet:
    head = source.head()
    if head.startswith(b"PK") or documents.is_json(head):
        called = source if source.name else Source(_called(source), source.open)
        form = outputs.form_of(called)
        if form is not None:
            return outputs.sheet_of(form, called, given.options)
    sheet = exports.sheet_of(
        source,
        given.options,
        lambda options: tabular.sheet_of(
            source, options, named=given.csv, limit_bytes=given.limit_bytes
        ),
    )
    for name in ("metric", "filter"):
        answer = getattr(given.options, name)
        if answer is not None and sheet.known is None:
            how = "left out: a `mapping` says which column is the score"
            raise refused(f"The file is a table, of which no {name} is chosen.", how, answer, name)
    return sheet


def _called(source: Source) -> str:
    """A file name for a log without one: some readers go by the ending."""
    with source.open() as file:
        first = file.readline(LONGEST_LINE).strip()
        more = file.read(2).startswith(b"{")
    lines = first.startswith(b"{") and first.endswith(b"}") and more
    return "log.jsonl" if lines else "log.json"

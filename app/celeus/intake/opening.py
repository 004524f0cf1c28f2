"""Any file as a sheet, in whatever form tables and logs come, and a sheet as items.

A log of an evaluation tool is a sheet with a row for each output, its own score the guess of its
loss.
"""

import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO

from celeus.errors import InvalidValue, NeedsAnswer
from celeus.intake.formats import exports
from celeus.intake.formats.registry import read, sniff
from celeus.intake.joining import each_output, payload_of, rows_of
from celeus.intake.reducers import EACH
from celeus.intake.rows import Log, Options
from celeus.intake.sources import documents, tabular
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import BadRow, Known, Sheet, SheetRow, refused
from celeus.intake.sources.unpacking import is_packed, unpacked
from celeus.intake.table.asking import Table, answered
from celeus.intake.table.columns import columns_of
from celeus.intake.table.item_columns import JsonReader, Layout, are_items, csv_row, narrow
from celeus.intake.table.roles import Kind

Line = tuple[int, SheetRow]
_MEMBERS = ("id", "question", "choices", "reference", "answer", "loss", "group", "model")
"""Columns of a log as a sheet."""


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
        sheet = _sheet(Source.of_file(given.name.removesuffix(".gz"), plain), given)
        yield replace(sheet, read_as=(*sheet.read_as, "packed with gzip"))


def _sheet(source: Source, given: SentFile) -> Sheet:
    head = source.head()
    if head.startswith(b"PK") or documents.is_json(head):
        # Some readers go by the ending
        ending = ".jsonl" if exports.are_lines(source) else ".json"
        called = source if source.name else Source(f"log{ending}", source.open)
        form = _form_of(called)
        if form is not None:
            return _sheet_of_log(form, called, given.options)
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


def _form_of(source: Source) -> str | None:
    """Return the name of the tool that wrote a log; None if it is no log."""
    try:
        found = sniff(source)
    except InvalidValue:
        return None
    return None if found == "table" else found


def _sheet_of_log(form: str, source: Source, options: Options) -> Sheet:
    """The outputs of a log; refuses one that is not whole, or whose metric has to be chosen."""
    logs = _read(form, source, replace(options, reducer=EACH))
    # Options of the command are members of the query here
    notes = (line.replace("--given ", "") for log in logs for line in log.notes)
    read_as = [f"a log of {form}", *notes]
    joined = each_output(rows_of(logs))
    rows = [
        {"id": item.name, **payload_of(item.shown), "answer": item.shown.answer_text}
        | {"loss": item.guess, "group": item.shown.group, "model": item.shown.model}
        for item in joined.items
    ]
    if all(row["answer"] is None for row in rows):
        read_as.append("it holds no answers: a judge sees no more than the id and what was asked")
    names = [name for name in _MEMBERS if any(row.get(name) is not None for row in rows)]
    roles = {name: {"loss": "surrogate", "model": "hidden"}.get(name, name) for name in names}
    kept = [{name: row.get(name) for name in names} for row in rows]
    return Sheet(form, lambda: enumerate(kept, 1), tuple(read_as), Known(roles, scale=(0.0, 1.0)))


def _read(form: str, source: Source, options: Options) -> list[Log]:
    try:
        return read(form, [source], options)
    except NeedsAnswer:
        raise
    except InvalidValue as refusal:
        raise _of_upload(refusal) from refusal


def _of_upload(refusal: InvalidValue) -> InvalidValue:
    """The refusal in the words of an upload: options of the command are members of the query."""
    field = refusal.field if refusal.field in {"metric", "filter"} else "body"
    rule = f"one of its own, as `{field}`" if field != "body" else "a whole log of a finished run"
    return refused(refusal.detail.replace("--given ", "").replace("--", ""), rule, None, field)


@dataclass(frozen=True, slots=True)
class SheetItems:
    """The items of a sheet by line; ``table`` is None where its rows are items already."""

    sheet: Sheet
    rows: Iterator[Line]
    table: Table | None = None


def items_of(
    file: IO[bytes],
    given: SentFile,
    kind: Kind,
    remembered: Sequence[Mapping[str, str]] = (),
    *,
    json_of: JsonReader,
) -> Generator[SheetItems | None, None, None]:
    """None now and then while the file is read, and then its items.

    They can be read until the generator is closed. ``json_of`` reads payloads in cells. Raises
    NeedsAnswer with all questions that are open.
    """
    for sheet in opened(file, given):
        names = None if sheet is None else _item_names(sheet, given.options)
        if sheet is None:
            yield None
        elif names is not None:
            yield SheetItems(sheet, as_they_are(sheet, names, json_of))
        else:
            for table in answered(sheet, kind, given.options, remembered):
                yield None if table is None else SheetItems(sheet, table.items.rows(), table)


def _item_names(sheet: Sheet, options: Options) -> list[str] | None:
    """The columns of a sheet whose rows are items; None where they have to be known."""
    if sheet.known is None and options.roles is None:
        names = next((list(row) for _, row in sheet.rows() if not isinstance(row, BadRow)), [])
        if are_items(names):
            return names
    if columns_of(sheet):
        return None
    if next(sheet.rows(), None) is None:
        raise refused("The file has no rows.", "a row for every item")
    return []


def as_they_are(sheet: Sheet, names: list[str], json_of: JsonReader) -> Iterator[Line]:
    """Rows that are items: of a table by its columns, of JSON as they stand."""
    layout = None if not names or sheet.form in {"json", "jsonl"} else Layout.of(names)
    for line, row in sheet.rows():
        if isinstance(row, BadRow):
            yield line, row
            continue
        item: SheetRow = row
        if layout is not None and sheet.cells:
            item = csv_row(layout, [row[name] for name in names], json_of)
        elif layout is not None:
            item = layout.row([row[name] for name in names])
        yield line, narrow(item)

"""Rows of a sheet as items: those that it has already, or those that its columns make."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from celeus.intake.rows import Options
from celeus.intake.sources.sheet import BadRow, Sheet, SheetRow, refused
from celeus.intake.table.asking import Table, answered
from celeus.intake.table.columns import columns_of
from celeus.intake.table.item_columns import JsonReader, Layout, are_items, csv_row, narrow
from celeus.intake.table.roles import Kind

Line = tuple[int, SheetRow]


@dataclass(frozen=True, slots=True)
class SheetItems:
    """The items of a sheet by line; ``table`` is None where its rows are items already."""

    rows: Iterator[Line]
    table: Table | None = None


def items_of(
    sheet: Sheet,
    kind: Kind,
    options: Options,
    remembered: Sequence[Mapping[str, str]] = (),
    *,
    json_of: JsonReader,
) -> Iterator[SheetItems | None]:
    """None now and then while the sheet is read, and then its items.

    ``json_of`` reads payloads in cells. Raises NeedsAnswer with all questions that are open.
    """
    names = _item_names(sheet, options)
    if names is not None:
        yield SheetItems(as_they_are(sheet, names, json_of))
        return
    for table in answered(sheet, kind, options, remembered):
        yield None if table is None else SheetItems(table.items.rows(), table)


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

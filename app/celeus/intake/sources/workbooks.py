"""Workbooks of Excel and LibreOffice: `.xlsx`, `.xlsb`, `.xls` and `.ods`."""

import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import IO, Any
from xml.parsers.expat import ExpatError, ParserCreate

from celeus.errors import InvalidValue
from celeus.intake.questions import Choice, Question, asked
from celeus.intake.sources.csv_rows import names_of
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import Sheet, SheetRow, refused
from celeus.intake.sources.unpacking import too_large
from celeus.shorten import EXACT

INSTALL = "pip install 'celeus[excel]'"
OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The first bytes of `.xls`, and of other files of old Office."""
_ZIP = b"PK\x03\x04"
_OPEN_DOCUMENT = "content.xml"
_PARTS = frozenset({"xl/workbook.xml", "xl/workbook.bin", _OPEN_DOCUMENT})
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_CELL = re.compile(rb"<c\b([^<>]*)>")
_PLACE = re.compile(rb'\br="([A-Z]{1,3})([0-9]{1,7})"')
_UNCOMPUTED = re.compile(
    rb'<c\b(?![^<>]*\bt="str")[^<>]*><f\b(?:[^<>]*/>|[^<]*</f>)(?:<v\s*/>|<v></v>)?</c>'
)
_HIDDEN_ROW = re.compile(rb'<row\b[^<>]*\bhidden="(?:1|true)"')
_HIDDEN = "hidden rows like the others"
_SHARED = "xl/sharedStrings.xml"
_TEXT = re.compile(rb"<si\b")
_OF_SHARED = re.compile(rb'<c\b[^<>]*\bt="s"[^<>]*>\s*<v>([0-9]{1,9})</v>')
_PART_BYTES = 1 << 20
_LONGEST_CELL = 1 << 16
_MOST_CELLS = 20_000_000
"""Most cells between the first and the last of a sheet: empty ones take memory, too."""
_MOST_TITLES = 20
_MOST_NAMED = 6
Cells = list[Any]


@dataclass(frozen=True, slots=True)
class _Grid:
    """A sheet of a workbook: its name, the place of its first cell, and its cells."""

    name: str
    line: int
    column: int
    rows: Sequence[Cells]
    merged: Sequence[tuple[tuple[int, int], tuple[int, int]]]


def is_workbook(source: Source, head: bytes) -> bool:
    """Return True for a file that begins with ``head`` and is a workbook."""
    if not head.startswith(_ZIP):
        return head.startswith(OLD)
    try:
        with source.open() as file:
            return not _PARTS.isdisjoint(zipfile.ZipFile(file).namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def sheet_of(source: Source, answer: str | None, limit_bytes: int) -> Sheet:
    """The table in a workbook; ``answer`` is the name of its sheet, which is asked if several.

    Dates are text as of ISO 8601, whole numbers are whole, formulas have the values that were
    computed when the workbook was saved. Refuses a workbook whose formulas have none, or
    with more than ``limit_bytes`` of text in its cells.
    """
    with source.open() as file:
        hides = _check(file, limit_bytes)
        grids = _grids(file)
    if not grids:
        raise refused("The workbook has no rows.", "a sheet with a table")
    # No sheet has a colon in its name: behind it stands which rows are items
    name = (answer or "").partition(":")[0]
    chosen = next((grid for grid in grids if grid.name == name), None)
    if chosen is None and len(grids) > 1:
        raise asked(source.name or "the workbook", [_which(grids)])
    table = _table(chosen or grids[0])
    return replace(table, read_as=(*table.read_as, _HIDDEN)) if hides else table


def _which(grids: Sequence[_Grid]) -> Question:
    choices = []
    for grid in grids:
        names = [str(cell) for cell in grid.rows[0] if cell != ""]
        more = ", …" if len(names) > _MOST_NAMED else ""
        listed = ", ".join(names[:_MOST_NAMED])
        choices.append(Choice(grid.name, f"{len(grid.rows)} rows, the first with {listed}{more}"))
    text = "The workbook has several sheets: which of them is the table?"
    return Question("rows", text, tuple(choices))


def _check(file: IO[bytes], limit_bytes: int) -> bool:
    """Return True if rows of `.xlsx` are hidden, by hand or by a filter.

    Refuses cells too far apart or with too much text, and formulas that nobody has computed.
    """
    file.seek(0)
    if file.read(len(_ZIP)) != _ZIP:
        return False
    archive = zipfile.ZipFile(file)
    size, hides = 0, False
    try:
        lengths = _lengths(archive, limit_bytes)
        for name in archive.namelist():
            with archive.open(name) as part:
                if _SHEET.fullmatch(name):
                    of_part, hidden = _checked(part, lengths)
                    size, hides = size + of_part, hides or hidden
                elif name == _OPEN_DOCUMENT:
                    _check_xml(part)
            if size > limit_bytes:
                raise too_large(f"at most {limit_bytes} bytes, unpacked too", size)
    except (zipfile.BadZipFile, zlib.error, OSError, ExpatError, ValueError) as error:
        raise _unreadable(error) from error
    return hides


def _lengths(archive: zipfile.ZipFile, limit_bytes: int) -> list[int]:
    """Bytes of every text that cells share."""
    if _SHARED not in archive.namelist():
        return []
    with archive.open(_SHARED) as part:
        text = part.read(limit_bytes + 1)
    if len(text) > limit_bytes:
        raise too_large(f"at most {limit_bytes} bytes, unpacked too", len(text))
    places = [found.start() for found in _TEXT.finditer(text)]
    return [end - begin for begin, end in pairwise([*places, len(text)])]


def _check_xml(part: IO[bytes]) -> None:
    """Refuse XML that is not whole: the library never comes to its end."""
    parser = ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.ParseFile(part)


def _refuse_doctype(*_: object) -> None:
    message = "a document type of its own"
    raise ValueError(message)


def _unreadable(error: Exception) -> InvalidValue:
    how = "one complete workbook"
    return refused("The workbook cannot be read.", how, str(error)[:100])


def _checked(part: IO[bytes], lengths: Sequence[int]) -> tuple[int, bool]:
    """Bytes of the shared texts in the cells of a sheet that can be read; and if rows are hidden.

    Refuses a sheet that cannot be read.
    """
    size, hides = 0, False
    rows: list[int] = []
    columns: list[int] = []
    kept = b""
    while more := part.read(_PART_BYTES):
        text = kept + more
        uncomputed = _UNCOMPUTED.search(text)
        if uncomputed is not None:
            how = "a workbook that a spreadsheet program has opened and saved"
            raise refused(
                "The workbook has formulas without their values.",
                how,
                uncomputed[0][:60].decode(errors="replace"),
            )
        hides = hides or _HIDDEN_ROW.search(text) is not None
        for members in _CELL.findall(text):
            place = None if members.endswith(b"/") else _PLACE.search(members)
            if place is not None:
                rows.append(int(place[2]))
                columns.append(_column(place[1]))
        if rows:
            rows, columns = [min(rows), max(rows)], [min(columns), max(columns)]
            cells = (rows[1] - rows[0] + 1) * (columns[1] - columns[0] + 1)
            if cells > _MOST_CELLS:
                raise refused(
                    "The cells of the sheet are too far apart.",
                    f"a rectangle of at most {_MOST_CELLS} cells",
                    cells,
                )
        counted = 0
        for shared in _OF_SHARED.finditer(text):
            counted = shared.end()
            number = int(shared[1])
            size += lengths[number] if number < len(lengths) else 0
        kept = text[max(counted, len(text) - _LONGEST_CELL) :]
    return size, hides


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _grids(file: IO[bytes]) -> list[_Grid]:
    """The sheets that are shown and hold anything."""
    try:
        import python_calamine as calamine  # noqa: PLC0415 -- an extra that few need
    except ImportError:
        raise refused(f"A workbook needs a library: {INSTALL}", "another format") from None
    file.seek(0)
    grids = []
    try:
        workbook = calamine.CalamineWorkbook.from_filelike(file)
        for metadata in workbook.sheets_metadata:
            if (metadata.typ, metadata.visible) != (
                calamine.SheetTypeEnum.WorkSheet,
                calamine.SheetVisibleEnum.Visible,
            ):
                continue
            sheet = workbook.get_sheet_by_name(metadata.name)
            rows = sheet.to_python()
            if sheet.start is not None and any(cell != "" for row in rows for cell in row):
                line, column = sheet.start
                merged = sheet.merged_cell_ranges or ()
                grids.append(_Grid(metadata.name, line, column, rows, merged))
    except calamine.PasswordError as error:
        raise refused("The workbook has a password.", "one without") from error
    except (calamine.CalamineError, OSError, ValueError) as error:
        raise _unreadable(error) from error
    return grids


def _table(grid: _Grid) -> Sheet:
    """The rows below the header, which stands below titles of one cell."""
    header = _header(grid.rows)
    if any(
        first[0] <= grid.line + header <= last[0] and first[1] < last[1]
        for first, last in grid.merged
    ):
        how = "one row with a name for each column"
        raise refused("Cells of the header are merged.", how, grid.line + header + 1)
    filled = _filled(grid)
    named = [str(_plain(cell)) if cell != "" else "" for cell in filled[header]]
    held = [any(row[place] != "" for row in filled[header:]) for place in range(len(named))]
    given = sum(name != "" for name in named)
    if 2 * given < sum(held):
        raise refused(
            f"Row {grid.line + header + 1} of the sheet {grid.name} is no header.",
            f"a row with names for its {sum(held)} columns first",
            f"{given} names",
        )
    names = names_of(named)
    kept = [name for name, holds in zip(names, held, strict=True) if holds]
    read_as = [f"the sheet {grid.name}"]
    if header:
        read_as.append(f"the header in row {grid.line + header + 1}, below a title")
    if any(first[0] > grid.line + header for first, _ in grid.merged):
        read_as.append("merged cells that have one value each")

    def rows() -> Iterator[tuple[int, SheetRow]]:
        for number, cells in enumerate(filled[header + 1 :], grid.line + header + 2):
            if any(cell != "" for cell in cells):
                values = dict(zip(names, map(_plain, cells), strict=True))
                yield number, {name: values[name] for name in kept}

    return Sheet("workbook", rows, tuple(read_as))


def _header(rows: Sequence[Cells]) -> int:
    """The place of the first row with several cells, if all above it have one at most; else 0."""
    for number, cells in enumerate(rows[:_MOST_TITLES]):
        if sum(cell != "" for cell in cells) > 1:
            return number
    return 0


def _filled(grid: _Grid) -> list[Cells]:
    """The rows, every part of merged cells with their value."""
    rows = [list(cells) for cells in grid.rows]
    for (top, left), (bottom, right) in grid.merged:
        above, beside = top - grid.line, left - grid.column
        if not (0 <= above < len(rows) and 0 <= beside < len(rows[0])):
            continue
        for row in rows[above : bottom - grid.line + 1]:
            for column in range(beside, min(right - grid.column + 1, len(row))):
                row[column] = rows[above][beside]
    return rows


def _plain(cell: object) -> object:
    """A cell as JSON has it; None for an empty one, and for an error of a formula."""
    if cell == "":
        return None
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < EXACT:
        return int(cell)
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    return str(cell) if isinstance(cell, timedelta) else cell

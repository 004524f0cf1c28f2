"""CSV as people have it: any separator, Excel's first, whatever encoding."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from itertools import count, takewhile

from celeus.errors import InvalidValue
from celeus.intake.sources.files import HEAD, Source
from celeus.intake.sources.sheet import MOST_COLUMNS, BadRow, Sheet, SheetRow, refused
from celeus.intake.sources.unpacking import TABLES, encoding_of, text_of
from celeus.shorten import shortened

_RULE = re.compile(r"\s*(?::?-{3,}:?\s*)?")
"""A cell of the line below the header of a table in Markdown."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
LONGEST_CELL = 4 << 20
_LONGEST_FAULT = 100
"""Lines of a row that cannot be read; in more of them a quote is open."""
_ENDLESS = ("unexpected end of data", "field larger than field limit")
_LOOKED_AT = 50
_REMOVED = "the names of the columns first: remove the lines above them"
_EVEN = 0.5
"""Share of the first rows that have the width of the header, in what is a table."""
_ENCODINGS = {"cp1252": "Windows-1252", "utf-16": "UTF-16", "utf-32": "UTF-32"}


def sheet_of(source: Source, *, named: bool) -> Sheet:
    """The table; refuses what is none. ``named``: its name or type says CSV."""
    encoding = encoding_of(source)
    with text_of(source, encoding) as text:
        begin = text.read(HEAD)
    first, _, rest = begin.partition("\n")
    announced = first.rstrip("\r").lower()
    csv.field_size_limit(LONGEST_CELL)
    comments: list[str] = []
    if announced.startswith("sep=") and len(announced) == len("sep=;"):
        separator, skip, begin = announced[-1], 1, rest
    else:
        comments = _comments(begin, source.name, named=named)
        skip, begin = len(comments), begin[sum(map(len, comments)) :]
        separator = _separator(begin, named=named)
    names = names_of(_header(begin, separator, source.name))
    read_as = [f"separated by {SEPARATORS.get(separator, 'a sign')}"]
    read_as += [f"without the comment {shortened(line.strip())}" for line in comments]
    read_as += [name for begin, name in _ENCODINGS.items() if encoding.startswith(begin)]

    def rows() -> Iterator[tuple[int, SheetRow]]:
        return _rows(source, encoding, separator, names, skip=skip)

    return Sheet("csv", rows, tuple(read_as), cells=True)


def _header(begin: str, separator: str, name: str) -> list[str]:
    """The first row that holds anything; refuses a title or a comment above the names."""
    rows = (
        cells
        for _, cells in cells_of(io.StringIO(begin, newline=""), separator, name)
        if isinstance(cells, list) and any(map(str.strip, cells))
    )
    header = next(rows, None)
    if header is None:
        raise refused("The file has no header.", "a row with the names of the columns first")
    is_title = _filled(header) == 1 and _filled(_next(rows)) > 1
    if is_title or header[0].startswith("# "):
        raise refused("The first line is no header of the rows below.", _REMOVED, header[0][:60])
    return header


def _comments(begin: str, name: str, *, named: bool) -> list[str]:
    """The lines of comment above the header: they begin with `#`, and are no row of the table.

    None is taken for one where the row below them cannot be the header, which then may be theirs.
    """
    lines = io.StringIO(begin, newline="")
    marked = [*takewhile(lambda line: line.startswith("#"), lines)]
    for comments in (marked, marked[:-1]):
        rest = begin[sum(map(len, comments)) :]
        if not comments or not rest.strip():
            continue
        separator = _separator(rest, named=named)
        header = _header(rest, separator, name)
        if not all(any(map(str.isalpha, cell)) for cell in header[not header[0].strip() :]):
            continue
        widths = [len(cells) for cells in csv.reader(comments, delimiter=separator)]
        if widths[0] != len(header):
            return comments[: [*widths, len(header)].index(len(header))]
    return []


def _filled(cells: list[str]) -> int:
    return sum(cell.strip() != "" for cell in cells)


def _next(rows: Iterator[list[str]]) -> list[str]:
    """The next row; none where it is cut off, or cannot be read."""
    try:
        return next(rows, [])
    except InvalidValue:
        return []


def _separator(begin: str, *, named: bool) -> str:
    """The sign that parts the first rows into as many cells as the header has."""
    whole = len(begin) < HEAD
    begin = begin.lstrip("\r\n")
    found = {}
    for separator in SEPARATORS:
        try:
            rows = [
                cells
                for number, cells in zip(
                    range(_LOOKED_AT),
                    csv.reader(io.StringIO(begin, newline=""), delimiter=separator),
                    strict=False,
                )
                if cells or not number
            ]
        except csv.Error:
            continue
        if not whole and len(rows) < _LOOKED_AT:
            rows = rows[:-1] or rows
        width = len(rows[0]) if rows else 0
        even = sum(len(cells) == width for cells in rows[1:]) / max(1, len(rows) - 1)
        if width > 1 and even >= _EVEN:
            found[separator] = even, width
    if found:
        return max(found, key=found.__getitem__)
    if not named or not begin.strip() or begin.lstrip()[:1] in {"<", "{", "["}:
        raise refused(
            "The file is no table that is known.",
            f"{TABLES}; {_REMOVED}" if named else TABLES,
            begin[:60],
        )
    if _is_parted_by_blanks(begin):
        rule = f"a {', a '.join(SEPARATORS.values())} between the cells"
        raise refused("Blanks stand between the numbers of a row.", rule, begin[:60])
    return ","


def _is_parted_by_blanks(begin: str) -> bool:
    """Every row below the first has as many numbers as that has words, and several."""
    header, *rows = [line.split() for line in begin.splitlines()[:_LOOKED_AT] if line.strip()]
    return len(header) > 1 < len(rows) and all(
        len(row) == len(header) and all(map(_NUMBER.fullmatch, row)) for row in rows
    )


def names_of(header: list[str]) -> list[str]:
    """A name for each column: those without one, or with one that was there, get their number."""
    if len(header) > MOST_COLUMNS:
        raise refused("The file has too many columns.", f"at most {MOST_COLUMNS}", len(header))
    given = [name.strip() or f"column {column}" for column, name in enumerate(header, 1)]
    names: dict[str, None] = {}
    for column, name in enumerate(given, 1):
        numbered = (f"{name} ({number})" for number in count(column))
        free = (label for label in numbered if label not in names and label not in given)
        names[name if name not in names else next(free)] = None
    return list(names)


def _rows(
    source: Source, encoding: str, separator: str, names: list[str], *, skip: int
) -> Iterator[tuple[int, SheetRow]]:
    with text_of(source, encoding) as text:
        for _ in range(skip):
            text.readline()
        header = True
        for line, cells in cells_of(text, separator, source.name):
            number = line + skip
            if isinstance(cells, BadRow):
                yield number, cells
            elif not any(map(str.strip, cells)):
                continue
            elif header:
                header = False
            elif separator == "|" and all(map(_RULE.fullmatch, cells)):
                continue
            elif len(cells) != len(names):
                held = f"{len(cells)} cells: {separator.join(cells)[:60]}"
                way = ": remove the line if it is a comment" if cells[0].startswith("#") else ""
                yield number, BadRow(f"{len(names)} cells, as in the header{way}", held)
            else:
                yield number, dict(zip(names, cells, strict=True))


def cells_of(
    text: Iterable[str], separator: str, name: str
) -> Iterator[tuple[int, list[str] | BadRow]]:
    """The rows of a text in lines, with the number of the line that each begins at."""
    reader = csv.reader(text, delimiter=separator, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            yield number, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            lines = reader.line_num - number
            if lines > _LONGEST_FAULT or str(error).startswith(_ENDLESS):
                raise _unclosed(f"line {number}", lines, error, name) from error
            yield number, BadRow("cells with their quotes closed", str(error))


def _unclosed(line: str, lines: int, error: csv.Error, name: str) -> InvalidValue:
    """The refusal of a file in which a cell does not end: what follows is not known to be rows."""
    ends = str(error).startswith(_ENDLESS[0])
    what = "A quote is opened and not closed" if lines or ends else "A cell is too long"
    rule = f"cells with their quotes closed, of at most {csv.field_size_limit()} characters"
    return refused(f"{what}: {line} of {name or 'the file'}.", rule, str(error), line)

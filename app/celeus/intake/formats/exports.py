"""Files that other tools export: which tool's a file is, and what its format settles.

A file is taken for one of a tool by its marks only; a file that holds only a part of the results
is refused by name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from celeus.errors import InvalidValue, NeedsAnswer
from celeus.intake.formats import export_rows
from celeus.intake.formats.export_formats import (
    DOCUMENTS,
    EXPORTS,
    FAILURES,
    NAMED,
    PARTS,
    Export,
)
from celeus.intake.rows import Options
from celeus.intake.sources.files import LONGEST_LINE, Source
from celeus.intake.sources.sheet import BadRow, Known, Score, Sheet, SheetRow, refused
from celeus.intake.table.columns import Column, columns_of, flat, number_of
from celeus.intake.table.guessing import guessed
from celeus.intake.table.roles import MANY, SEEN, SHOWN, SIDES, Kind

LOOKED_AT = 50
"""Rows by which a tool is known."""
_BFCL = frozenset({"id", "model_name", "test_category", "valid", "error"})


def sheet_of(source: Source, options: Options, table: Callable[[Options], Sheet]) -> Sheet:
    """The rows of a file that is no log: as those of the tool that is known by its marks, if any.

    ``table`` reads the file as a table. Refuses by name a file that holds a part of the results.
    """
    document = document_of(source, options)
    if document is not None:
        return document
    try:
        return recognised(table(options), options)
    except NeedsAnswer:
        # Rows of several kinds, which a tool that writes events has
        if options.rows is not None:
            raise
        sheet = _of_all_rows(table, options)
        if sheet is None:
            raise
        return sheet


def _of_all_rows(table: Callable[[Options], Sheet], options: Options) -> Sheet | None:
    """The sheet of all rows, of whatever kinds, if a tool is known by them."""
    try:
        sheet = recognised(table(replace(options, rows="all")), options)
    except NeedsAnswer:
        return None
    return None if sheet.known is None else sheet


def recognised(sheet: Sheet, options: Options) -> Sheet:
    """The sheet as that of the tool whose marks it has; as it is where it has those of none.

    Refuses by name a file that holds only a part of the results.
    """
    if sheet.known is not None:
        return sheet
    rows = [row for _, row in islice(sheet.rows(), LOOKED_AT) if not isinstance(row, BadRow)]
    for row in rows:
        check_whole(row)
    names = {name for row in rows for name in (*row, *(path for path, _ in flat(row)))}
    if names >= _BFCL and not any(_is_valid(row) for _, row in sheet.rows()):
        raise FAILURES.refusal
    export = next(
        (export for export in EXPORTS if fits(export, names) and _holds_texts(export, rows)), None
    )
    return sheet if export is None else _settled(export, sheet, options)


def fits(export: Export, names: set[str]) -> bool:
    """Return True if a file with these columns is one of the tool."""
    return any(_has(names, marks.split()) for marks in export.marks)


def _holds_texts(export: Export, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Texts or chats stand where the tool has them."""
    values = [row.get(name) for row in rows for name in export.texts]
    return all(
        isinstance(value, list) or (isinstance(value, str) and not is_whole(value))
        for value in values
    )


def _has(names: set[str], marks: Sequence[str]) -> bool:
    """All marks are among the names; those with `*` are looked for last, one name at a time."""
    exact = {mark for mark in marks if "*" not in mark and "[" not in mark}
    return names >= exact and all(
        any(fnmatchcase(name, mark) for name in names) for mark in marks if mark not in exact
    )


def is_whole(value: object) -> bool:
    """Return True for a whole number, also as text."""
    try:
        return float(str(value)).is_integer()
    except ValueError:
        return False


def _is_valid(row: SheetRow) -> bool:
    """A case of BFCL passed, so that somebody has joined the verdicts to all cases."""
    return isinstance(row, dict) and number_of(row.get("valid")) == 1


def check_whole(value: Mapping[str, Any]) -> None:
    """Refuse by name a document, or a line of one, that holds a part of the results, or none."""
    part = next((part for part in PARTS if part.fits(value)), None)
    if part is not None:
        raise part.refusal


def document_of(source: Source, options: Options) -> Sheet | None:
    """The rows of a JSON document that is known as a tool's; None for any other file."""
    head = source.head()
    named = any(f'"{name}"'.encode() in head for name in NAMED)
    if not named or not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") or are_lines(source):
        return None
    try:
        document = source.document()
    except InvalidValue:
        return None
    check_whole(document)
    found = next((found for found in DOCUMENTS if found.fits(document)), None)
    if found is None:
        return None
    try:
        rows = found.rows(document)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        rule = f"{found.export.called} as the tool writes them"
        what = f"{type(error).__name__}: {error}"
        raise refused("The file lacks members that its tool writes.", rule, what) from error
    numbered = [*enumerate(rows, 1)]
    sheet = Sheet("json", lambda: iter(numbered))
    if "correct" in found.export.scores:
        name = "accuracy"
        notes = export_rows.agreement(numbered, "correct", document.get(name), f"the file's {name}")
        sheet = replace(sheet, read_as=tuple(notes))
    return _settled(found.export, sheet, options)


def are_lines(source: Source) -> bool:
    """Return True if the second line begins an object, as in JSON Lines."""
    with source.open() as file:
        file.readline(LONGEST_LINE)
        return file.read(2).startswith(b"{")


def _settled(export: Export, sheet: Sheet, options: Options) -> Sheet:
    """The sheet with what the format settles; refuses a metric that it has not."""
    notes: tuple[str, ...] = ()
    if export.unfold is not None:
        rows, notes = export.unfold(sheet)
        sheet = replace(sheet, rows=rows)
    columns = columns_of(sheet)
    names = [column.name for column in columns]
    roles = _roles(export, columns)
    if export.shown is not None and SEEN.isdisjoint(roles.values()):
        # Nobody knows what people were shown: asked, as of any table
        read_as = (export.called, *sheet.read_as, *notes)
        return replace(sheet, form=export.form, read_as=read_as, roles=roles)
    metrics = _metrics(export.scores, columns)
    metric = _chosen(metrics, options, pair=not set(SIDES).isdisjoint(roles.values()))
    if metric is not None:
        roles[metric] = "score"
    elif len(metrics) > 1:
        notes += (f"scores {', '.join(metrics)}: none is a guess unless `metric` names it",)
    score = metrics.get(metric or "", Score())
    repeats = tuple(name for name in export.repeats if name in names)
    known = Known(roles, score.higher, score.scale, score.missing, metrics, repeats, export.calls)
    return replace(
        sheet, form=export.form, read_as=(export.called, *sheet.read_as, *notes), known=known
    )


def _roles(export: Export, columns: Sequence[Column]) -> dict[str, str]:
    names = [column.name for column in columns]
    roles: dict[str, str] = {}
    for role, candidates in export.roles.items():
        found = [name for name in candidates.split() if name in names]
        roles |= dict.fromkeys(found if role in MANY else found[:1], role)
    if export.shown is not None:
        inner = set(export.shown(names))
        guess = guessed([column for column in columns if column.name in inner], Kind())
        kept = {*SHOWN, "payload"}
        roles |= {column.name: column.role for column in guess if column.role in kept}
    return roles


def _metrics(scores: Mapping[str, Score], columns: Sequence[Column]) -> dict[str, Score]:
    """The columns with numbers that are scores, by the first name that fits."""
    found = {}
    for column in columns:
        fitting = [
            score
            for names, score in scores.items()
            if any(fnmatchcase(column.name, name) for name in names.split())
        ]
        numbers = (column.number(value) for value in column.values)
        if fitting and any(isinstance(number, int | float) for number in numbers):
            found[column.name] = fitting[0]
    return found


def _chosen(metrics: Mapping[str, Score], options: Options, *, pair: bool) -> str | None:
    """The metric asked for, or the only one of items with one answer."""
    if options.columns.score in metrics:
        return options.columns.score
    wanted = options.metric
    if wanted is None or not metrics:
        return next(iter(metrics)) if len(metrics) == 1 and not pair else None
    for name in metrics:
        if wanted in {name, name.rpartition(".")[2], name.partition("/")[0]}:
            return name
    listed = ", ".join(metrics)
    raise refused("The file has no such metric.", f"one of {listed}", wanted, "metric")

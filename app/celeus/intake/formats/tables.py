"""Any table as a log, with a map of its columns; what its format settles has not to be said.

A column of a nested row is named by its path, as `scores.exact`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from celeus.intake.formats import exports
from celeus.intake.formats.inspect_logs import GRADES
from celeus.intake.questions import Choice, Question, asked
from celeus.intake.rows import Columns, Log, Options, Row, digest_of, refused, text_of
from celeus.intake.sources import arrow, tabular
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import Known
from celeus.intake.table.asking import of_numbers
from celeus.intake.table.columns import Column, columns_of, is_missing, is_share
from celeus.intake.table.items import is_total
from celeus.intake.table.numbers import Measure, Numbers, measures
from celeus.intake.table.roles import Kind, Placed, guessed, is_ambiguous, rivals

NO_ERROR = frozenset({"", "false", "none", "null", "nan", "no", "0", "0.0"})
"""Texts in a column of errors that stand for none, as frames write them."""
SHOWN = ("question", "reference", "answer")
"""Members of a payload that the judge is shown."""
WHOLE = (0.0, 1.0)
INSPECT = frozenset({"sample_id", "eval_id"})
"""Columns of the table that Inspect makes of the samples of its logs."""
_NAME_LENGTH = 16
_ABSENT = object()

Cells = Mapping[str, Any]


def read(source: Source, options: Options) -> Log:
    """The rows of a file."""
    with tabular.naming(source):
        return _read(source, options)


def _read(source: Source, options: Options) -> Log:
    sheet = exports.sheet_of(source, options, lambda given: tabular.table_of(source, given))
    columns = columns_of(sheet)
    commas = frozenset(column.name for column in columns if column.comma)
    rows = [row for _, row in tabular.rows_of(sheet, source.name)]
    if sheet.known is None:
        rows = _without_totals(source.name, rows, options)
    known = sheet.known or _by_name(columns, options)
    options = _with_known(options, known, columns)
    for name in {*_columns(options.columns)} & {*(rows[0] if rows else ())}:
        if any(re.fullmatch(rf"{re.escape(name)} \(\d+\)", other) for other in rows[0]):
            raise refused(f"{source.name} has two columns {name!r}: give each its name", "columns")
    _check_repeats(source.name, known, rows, options)
    log = rows_of(rows, options, source.name, source.stem, commas)
    log = replace(log, rows=[*_repeated(log.rows, options)])
    read_as = [*sheet.read_as]
    if sheet.known is None:
        used = {*_columns(options.columns)}
        read_as += [f"{role}: {name}" for name, role in known.roles.items() if name in used]
    said = "is" if sheet.known is not None else "was read as a table:"
    return replace(log, told=(f"{source.stem} {said} {'; '.join(read_as)}",) if read_as else ())


def _without_totals(name: str, rows: list[Cells], options: Options) -> list[Cells]:
    """The rows without the last ones that sum up the others, of which it is asked."""
    count = sum(1 for _ in takewhile(is_total, reversed(rows)))
    if not 0 < count < len(rows) or options.items == "all":
        return rows
    if options.items is None:
        before = "" if options.rows is None else f"{options.rows}:"
        others = f"no, only the other {len(rows) - count} rows are"
        ways = Choice(f"{before}with_id", others), Choice(f"{before}all", "yes, like the others")
        text = f"{count} of {len(rows)} rows sum up the others: are they items?"
        raise asked(name, [Question("rows", text, ways)])
    return rows[:-count]


def _by_name(found: Sequence[Column], options: Options) -> Known:
    """The roles of columns that no option names, as in an upload, where they are beyond doubt.

    No group that rows lack, and no id where a question is named, which tells items apart.
    """
    columns = options.columns
    placed = guessed(found, Kind(*options.scale))
    left_out = {*_columns(columns), *rivals(found, placed)}
    lacking = {("group", column.name) for column in found if column.missing}
    if columns.id is None and columns.payload.keys() & {"question", "reference"}:
        lacking |= {("id", column.name) for column in found}
    return Known(
        {
            column.name: column.role
            for column in reversed(placed)
            if not (column.name in left_out or is_ambiguous(column))
            and (column.role, column.name) not in lacking
        }
    )


def _check_repeats(name: str, known: Known, rows: Sequence[Cells], options: Options) -> None:
    """Ask what rows are that share the id of an item, where another column is taken for it."""
    columns = options.columns
    shared = next((column for column, role in known.roles.items() if role == "id"), None)
    if columns.id in {None, shared} or shared is None or columns.repeat is not None:
        return
    model = columns.model
    keys = [
        (str(_cell(row, shared)), None if model is None else str(_cell(row, model)))
        for row in rows
        if _cell(row, shared) is not None
    ]
    ids = len({*keys})
    if ids == len(keys) or options.repeats == "items":
        return
    text = f"{len(keys)} rows have {ids} values of `{shared}`: what are rows that share one?"
    mean = Choice("mean", f"with --id {shared}, one item, its loss the mean of theirs")
    items = Choice("items", "items of their own, every one")
    counted = f"with --id {shared} --repeat COLUMN their runs are told apart"
    question = Question("repeats", text, (items, mean), shared)
    raise asked(name, [question], f"{name}: {question.line}; {counted}")


def _repeated(rows: Iterable[Row], options: Options) -> Iterator[Row]:
    """The rows, those of one id and model counted, left out or named, as is wanted of them."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        counts[row.id, row.model] += 1
        count = counts[row.id, row.model]
        if count == 1 or options.repeats is None:
            yield row
        elif options.repeats == "items":
            yield replace(row, id=f"{row.id} ({count})")
        elif options.repeats == "mean":
            yield replace(row, repeat=count)


def _with_known(options: Options, known: Known, found: Sequence[Column]) -> Options:
    """The options, with what is known of the columns where nothing else is asked for."""
    columns = options.columns
    names = {role: name for name, role in known.roles.items()}
    if columns.loss is None and columns.score is None:
        columns = replace(columns, loss=names.get("surrogate"), score=names.get("score"))
    columns = replace(
        columns,
        id=columns.id or names.get("id"),
        group=columns.group or names.get("group"),
        repeat=columns.repeat or _running_number(known, found),
        payload=columns.payload or {role: names[role] for role in SHOWN if role in names},
    )
    of_format = columns.score is not None and columns.score == names.get("score")
    higher = known.higher
    if higher is not None and "answer_b" in names:
        # A log is of one model: of a pair the second, which loses where the first one gains
        higher = not higher
    scale = known.scale if of_format and options.scale == WHOLE else options.scale
    return replace(
        options,
        columns=columns,
        higher=higher if of_format and options.higher is None else options.higher,
        scale=scale or WHOLE,
        missing=options.missing or tuple(map(str, known.missing)),
    )


def _running_number(known: Known, columns: Sequence[Column]) -> str | None:
    """The column of numbers in which rows of one id differ, as the format says."""
    names = (column.name for column in columns if all(map(exports.is_whole, column.values)))
    return next((name for name in names if name in known.repeats), None)


def rows_of(
    cells: Iterable[Cells],
    options: Options,
    name: str = "the table",
    model: str = "",
    commas: frozenset[str] = frozenset(),
) -> Log:
    """The rows of dicts, one a row of the table; ``model`` is whose they are without a column.

    ``commas`` are the columns whose numbers have a decimal comma.
    """
    columns = options.columns
    if (columns.loss is None) == (columns.score is None):
        how = "--loss COLUMN where less is better, or --score COLUMN"
        raise refused(f"say which column of {name} is the score: {how}", "score")
    if columns.loss is not None and options.higher is True:
        how = f"give --score {columns.loss} in place of --loss {columns.loss}"
        raise refused(f"of a loss less is better: {how}", "loss")
    unknown = columns.payload.keys() - {*SHOWN}
    if unknown:
        listed = ", ".join(SHOWN)
        raise refused(f"a judge is shown {listed}, and no {', '.join(sorted(unknown))}", "payload")
    if columns.id is None and not columns.payload.keys() & {"question", "reference"}:
        how = "--id COLUMN, or --payload question=COLUMN to tell items by their text"
        raise refused(f"say how the items of {name} are told apart: {how}", "id")
    table = list(cells)
    if not table:
        raise refused(f"{name} has no rows", "log")
    for column in _columns(columns):
        if all(_held(row, column) is _ABSENT for row in table):
            listed = ", ".join(map(str, table[0]))[:200]
            raise refused(f"{name} has no column {column!r}, only {listed}", "columns")
    meant = _measures(table, options, name, commas)
    return Log(name, list(_rows(table, options, name, model, meant)))


def _measures(
    table: Sequence[Cells], options: Options, place: str, commas: frozenset[str]
) -> list[Measure]:
    """What the numbers of the score, and of earlier verdicts, mean; asks what is open of them."""
    columns = options.columns
    score = columns.loss or str(columns.score)
    placed = [Placed(score, "score" if columns.loss is None else "surrogate", "", "given")]
    if columns.known is not None:
        placed.append(Placed(columns.known, "known", "", "given"))
    counted = [row for row in table if not _has_failed(row, columns)]
    found = []
    for column in placed:
        cells = (_value(row, column.name) for row in (table if column.role == "known" else counted))
        values = [one for one in cells if not (is_missing(one) or options.is_missing(one))]
        found.append(Column(column.name, values, comma=column.name in commas))
    higher = options.higher
    if higher is None and any(_value(row, score) != _cell(row, score) for row in counted):
        higher = True
    scaled = [one.name for one in found if not all(map(is_share, one.values))]
    given = replace(
        options,
        directions={} if higher is None else {score: higher},
        scales={} if options.scale == WHOLE else dict.fromkeys(scaled, options.scale),
    )
    meant = measures(found, placed, given, Kind(), None)
    questions = []
    for measured, measure in zip(found, meant, strict=True):
        numbers = Numbers()
        for value in measured.values:
            numbers.note(measure, value)
        questions += of_numbers(measure, numbers, alone=True)
    if questions:
        raise asked(place, questions)
    return meant


def _columns(columns: Columns) -> list[str]:
    single = (columns.id, columns.loss, columns.score, columns.model, columns.repeat)
    named = (*single, columns.error, columns.group, columns.known, *columns.payload.values())
    return [column for column in named if column is not None]


def _rows(
    table: Sequence[Cells], options: Options, name: str, model: str, meant: Sequence[Measure]
) -> Iterator[Row]:
    columns = options.columns
    for number, row in enumerate(table, 1):
        place = f"row {number} of {name}"
        shown = {name: text_of(_cell(row, column)) for name, column in columns.payload.items()}
        texts = {field: shown.get(field) for field in ("question", "reference")}
        check = digest_of(*texts.values()) if any(texts.values()) else ""
        item = check[:_NAME_LENGTH] if columns.id is None else _name(row, columns.id, place)
        yield Row(
            id=item,
            model=model if columns.model is None else _name(row, columns.model, place),
            loss=None if _has_failed(row, columns) else _loss(row, meant[0], options, place),
            repeat=1 if columns.repeat is None else _repeat(row, columns, place),
            check=check,
            group=None if columns.group is None else _name(row, columns.group, place),
            known=None if columns.known is None else _loss(row, meant[1], options, place),
            question=shown.get("question"),
            reference=shown.get("reference"),
            answer=shown.get("answer"),
        )


def _name(row: Cells, column: str, place: str) -> str:
    """A name as text; whole numbers that a table holds as floats lose their fraction."""
    name = _cell(row, column)
    if name is None or name == "":
        raise refused(f"{place} has no {column}", column)
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)


def _repeat(row: Cells, columns: Columns, place: str) -> int:
    value = _cell(row, str(columns.repeat))
    try:
        return int(value)
    except (TypeError, ValueError):
        raise refused(f"{place} has the repeat {value!r}, which is no whole number") from None


def _has_failed(row: Cells, columns: Columns) -> bool:
    """The column of errors holds one."""
    value = None if columns.error is None else _cell(row, columns.error)
    return value.strip().lower() not in NO_ERROR if isinstance(value, str) else bool(value)


def _loss(row: Cells, measure: Measure, options: Options, place: str) -> float | None:
    """The loss of a row; refuses what is no number of the scale."""
    value = _value(row, measure.column)
    loss = measure.loss(value)
    if loss is None or (type(loss) is float and math.isfinite(loss)):
        return loss
    of_column = replace(options, scale=(measure.low, measure.high))
    return of_column.loss(loss, place, higher=measure.higher is not False)


def _value(row: Cells, column: str) -> Any:  # noqa: ANN401 -- whatever a table holds
    """The value of a score; of a letter in a table of Inspect's samples its number."""
    value = _cell(row, column)
    of_inspect = row.keys() >= INSPECT and column.startswith("score_") and isinstance(value, str)
    return GRADES.get(value, value) if of_inspect else value


def _cell(row: Cells, column: str) -> Any:  # noqa: ANN401 -- whatever a table holds
    """The value in a column, or at a path of a nested row; None if empty or NaN."""
    found = _held(row, column)
    return None if found is _ABSENT or (isinstance(found, float) and math.isnan(found)) else found


def _held(row: Cells, column: str) -> Any:  # noqa: ANN401 -- whatever a table holds
    found: Any = row.get(column, _ABSENT)
    if found is not _ABSENT:
        return found
    found = row
    for name in column.split("."):
        found = found.get(name, _ABSENT) if isinstance(found, Mapping) else _ABSENT
    return found


def is_table(head: bytes) -> bool:
    """Return True if ``head`` may begin a table: Parquet, an array, or a line of several cells."""
    line = head.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0].strip()
    return arrow.is_arrow(head) or line.startswith(b"[") or b"," in line

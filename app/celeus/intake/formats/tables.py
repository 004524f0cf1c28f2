"""Any table of outputs as a log: its columns are known, named or asked about as in an upload."""

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from celeus.intake.formats import exports
from celeus.intake.formats.export_rows import each
from celeus.intake.formats.inspect_logs import GRADES
from celeus.intake.questions import Choice, Question, asked
from celeus.intake.reducers import EACH
from celeus.intake.rows import Log, Options, Row, digest_of, refused
from celeus.intake.sources import arrow, tabular
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import BadRow, Sheet
from celeus.intake.table.asking import Table, answered
from celeus.intake.table.column_names import MARKS, is_foreseen, names_verdicts, tokens_of
from celeus.intake.table.columns import Column, columns_of, is_missing, judges, shown, stands_twice
from celeus.intake.table.items import Taken
from celeus.intake.table.numbers import NO_SCORE
from celeus.intake.table.roles import GUESSES, HIDDEN, SIDES, Kind

INSPECT = frozenset({"sample_id", "eval_id"})
"""Columns of the table that Inspect makes of the samples of its logs."""
_EACH = "where people are yet to judge the outputs, --each-output makes items of them"


def read(source: Source, options: Options) -> Log:
    """The rows of a file."""
    with tabular.naming(source):
        sheet = exports.sheet_of(source, options, lambda given: tabular.table_of(source, given))
        sheet, options = _of_one_model(sheet, options)
        sheet = tabular.whole(sheet, source.name)
        names = [column.name for column in columns_of(sheet, options.columns.whole)]
        if not names:
            raise refused(f"{source.name} has no rows", "log")
        for name in options.columns.named:
            if stands_twice(name, names):
                raise refused(f"{source.name} has two columns {name!r}: name them apart", "columns")
        (table,) = filter(None, answered(sheet, Kind(), options, log=source.name))
        outputs = _Outputs(table, source)
        notes = _how_read(sheet, outputs) + _unscored(sheet, table, source.name)
        return Log(source.name, [*outputs.rows()], notes=notes)


def _unscored(sheet: Sheet, table: Table, place: str) -> tuple[str, ...]:
    """The columns that may be the score, where none is.

    Asked, unless every output is an item of its own, whose score nothing needs.
    """
    hidden = {column.name for column in table.columns if column.role == HIDDEN}
    if any(column.role in GUESSES for column in table.columns):
        return ()
    metrics = () if sheet.known is None else sheet.known.metrics
    possible = [
        column
        for column in columns_of(sheet, table.options.columns.whole)
        if column.name in hidden and (column.name in metrics or not metrics) and _scores(column)
        if not tokens_of(column.name) & {*MARKS, "id", "annotator"}
    ]
    if table.options.reducer != EACH:
        if not possible:
            raise _scoreless(sheet, hidden, place)
        choices = tuple(
            Choice(column.name, f"such as {column.examples()[0]}") for column in possible
        )
        text = f"Which column is the score? {_EACH[0].upper()}{_EACH[1:]}."
        raise asked(place, [Question("score", text, choices)])
    names = ", ".join(column.name for column in possible)
    named = "which --mapping COLUMN=score names"
    return (f"no column is the score, {named}: {names or 'none'} may be one",)


def _scoreless(sheet: Sheet, hidden: Collection[str], place: str) -> Exception:
    """The refusal of outputs no column of which can be their score; names those of labels."""
    words = [
        f"`{column.name}` holds words ({', '.join(column.examples())})"
        for column in columns_of(sheet)
        if column.name in hidden
        and names_verdicts([column.name])
        and not _scores(column)
        and all(len(shown(value).split()) == 1 for value in column.values)
    ]
    held = words[0] if words else "none holds numbers, or words such as correct and wrong"
    how = "write a number for each, such as 1 for the best and 0 for the worst"
    what = f"{place} has no column that may be the score: {held}"
    return refused("; ".join([what, *([how] if words else []), _EACH]), "score")


def _scores(column: Column) -> bool:
    """Numbers, or words for verdicts, beside words for none."""
    values = [value for value in column.values if shown(value).strip().lower() not in NO_SCORE]
    numbers = map(column.number, values)
    return bool(values) and (
        judges(values) or all(isinstance(number, float | int) for number in numbers)
    )


def _how_read(sheet: Sheet, outputs: "_Outputs") -> tuple[str, ...]:
    """The sentence on what the file is, and which columns nobody named."""
    source, hidden = outputs.source, outputs.unseen
    roles = [
        f"{column.role}: {column.name}"
        for column in outputs.table.columns
        if column.source in {"name", "value"}
        and column.role != HIDDEN
        and column.name not in hidden
    ]
    parts = [*sheet.read_as, *roles]
    what = "was read as a table:" if sheet.known is None else "is"
    return (f"{source.stem} {what} {'; '.join(parts)}",) if parts else ()


def _of_one_model(sheet: Sheet, options: Options) -> tuple[Sheet, Options]:
    """The sheet as one of outputs: of pairs the second ones, grades of Inspect as numbers.

    The id of a call tells an output, and joins none of other runs to it.
    """
    known, columns = sheet.known, {column.name: column for column in columns_of(sheet)}
    if known is None:
        return _graded(sheet, options) if columns.keys() >= INSPECT else (sheet, options)
    if options.reducer != EACH:
        roles = {name: role for name, role in known.roles.items() if name not in known.calls}
        known = replace(known, roles=roles)
        sheet = replace(sheet, known=known)
    if not {*SIDES}.isdisjoint(known.roles.values()):
        second = dict(zip(SIDES, (HIDDEN, "answer"), strict=True))
        roles = {name: second.get(role, role) for name, role in known.roles.items()}
        # The second one loses where the first one gains
        higher = None if known.higher is None else not known.higher
        sheet = replace(sheet, known=replace(known, roles=roles, higher=higher))
    if options.repeats is None:
        counts = (
            name for name, column in columns.items() if all(map(exports.is_whole, column.values))
        )
        run = next((name for name in counts if name in known.repeats), None)
        options = replace(options, repeats=run)
    return sheet, options


def _graded(sheet: Sheet, options: Options) -> tuple[Sheet, Options]:
    """The sheet with the letters of a score as numbers, of which a higher one is better."""
    score = options.columns.score or ""
    values = {str(row.get(score)) for _, row in sheet.rows() if not isinstance(row, BadRow)}
    if not score.startswith("score_") or values.isdisjoint(GRADES):
        return sheet, options
    rows, _ = each(lambda row: {**row, score: GRADES.get(str(row.get(score)), row.get(score))})(
        sheet
    )
    if options.higher is None:
        options = replace(options, directions={score: True, **options.directions})
    return replace(sheet, rows=rows), options


@dataclass(frozen=True, slots=True)
class _Outputs:
    """The rows of a table that leaves nothing open, each an output of a model."""

    table: Table
    source: Source

    @property
    def unseen(self) -> dict[str, str]:
        """Members by columns that nobody named: of this model, whose answers are not judged."""
        return {
            column.name: "text" if column.role == "text" else column.name
            for column in self.table.columns
            if column.role in {"text", "payload"} and column.source != "given"
            if not self.table.options.judged
        }

    def rows(self) -> Iterator[Row]:
        """The rows; refuses a table that says too little of them, or too much."""
        name, roles = self.source.name, Counter(column.role for column in self.table.columns)
        self._check_seen()
        if roles.keys().isdisjoint({"id", "question"}):
            how = "--mapping COLUMN=id, or COLUMN=question to tell them by their text"
            raise refused(f"say how the items of {name} are told apart: {how}", "id")
        if roles["group"] > 1 or not roles.keys().isdisjoint({"prediction", *SIDES}):
            raise refused(f"a row of {name} is one output of a model, of one group", "mapping")
        for row in self.table.items.taken():
            again = row.times > 1 and self.table.items.rule == "first"
            if not again and not isinstance(row.cells, BadRow):
                yield self._row(row, row.cells, f"row {row.number} of {name}")

    def _check_seen(self) -> None:
        """Refuse a guess for what outputs lost, unless people are yet to say that of each."""
        if self.table.options.reducer == EACH:
            return
        guess = next(column for column in self.table.columns if column.role in GUESSES)
        if guess.source != "given" and is_foreseen(guess.name):
            what = f"{self.source.name} has {guess.name}, a guess, which is no score of an output"
            raise refused(f"{what}: say which column is one with --mapping COLUMN=score", "score")

    def _row(self, row: Taken, cells: dict[str, Any], place: str) -> Row:
        items, columns = self.table.items, self.table.options.columns
        item = items.shown(cells)
        payload = item.get("payload", {})
        groups = [column.name for column in self.table.columns if column.role == "group"]
        chat, answer = payload.pop("messages", None), payload.pop("answer", None)
        answer = shown(chat) if answer is None and chat is not None else answer
        for name in self.unseen.values():
            payload.pop(name, None)
        question, reference = payload.pop("question", None), payload.pop("reference", None)
        check = digest_of(question, reference) if question or reference else ""
        losses = {
            measure.role == "known": measure.read(cells.get(name), place)
            for name, measure in items.measures.items()
            if measure.role == "known" or not items.has_failed(cells)
        }
        return Row(
            id=items.id_of(row, cells),
            model=self.source.stem if columns.model is None else _name(cells, columns.model, place),
            loss=losses.get(False),
            repeat=1 if items.rule == "items" else max(row.times, 1),
            question=question,
            reference=reference,
            answer=answer,
            check=check,
            group=_name(cells, groups[0], place) if groups else None,
            known=losses.get(True),
            weight=_weight(item.get("weight", 1.0), place),
            more=payload,
        )


def _name(cells: dict[str, Any], column: str, place: str) -> str:
    if is_missing(cells.get(column)):
        raise refused(f"{place} has no {column}", column)
    return shown(cells[column]).strip()


def _weight(weight: object, place: str) -> float:
    if isinstance(weight, float | int) and 0 < weight < math.inf:
        return float(weight)
    raise refused(f"{place} has the weight {weight!r}, which is no number above 0", "mapping")


def is_table(head: bytes) -> bool:
    """Return True if ``head`` may begin a table: Parquet, an array, or a line of several cells."""
    line = head.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0].strip()
    return arrow.is_arrow(head) or line.startswith(b"[") or b"," in line

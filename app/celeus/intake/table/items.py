"""Rows of a sheet as items of a pool, by the roles of its columns.

A guess that is 0 or 1 in every row says that an item is certain, which no guess is: it becomes

    g = (v + p) / 2    where all are at an end of the scale
    g = v              else

with p the mean over the rows that have one, and p where a row has none; as of the logs of several
models (`celeus.intake.joining`). A verdict that people have given already (`known`) is no guess:
it is the known loss of its item.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from celeus.intake.rows import Options, digest_of
from celeus.intake.sources.sheet import BadRow, Sheet, refused
from celeus.intake.table.chats import messages_of
from celeus.intake.table.column_names import is_of_models, is_run
from celeus.intake.table.columns import Column, flat, is_missing, kept, number_of, picture_of, shown
from celeus.intake.table.guessing import is_of_errors
from celeus.intake.table.numbers import (
    ANY,
    Measure,
    Numbers,
    Outside,
    column_of,
    is_nothing,
    missing_by_column,
)
from celeus.intake.table.roles import ASKS, GUESSES, HIDDEN, SHOWN, SIDES, Placed

HEARTBEAT_ROWS = 20_000
LABELLED = "labelled before"
"""The reason in a certificate why the loss of an item with an earlier verdict is known."""
RULES = ("items", "runs", "first", "mean")
"""Ways with rows of one id."""
APART = frozenset({"items", "runs"})
"""Those by which every row is an item of its own."""
JOINT = "; "
"""Separator of the rows that are wanted and the way with those that still share an id."""
_TOTAL = re.compile(
    r"(?:grand |sub-?)?(?:totals?|sum|average|avg|mean|median|overall|gesamt|summe|mittelwert"
    r"|durchschnitt|insgesamt)(?: score)?[.: ]*",
    re.IGNORECASE,
)
"""The first cell of a row that sums up those above it."""
OF_ITEM = ("question", "reference")
"""Roles of texts that tell the items of outputs without an id apart, of which a question is one."""
_NAME_LENGTH = 16
_MOST_TOTALS = 8
_MOST_VALUES = 8
_EXAMPLE_CELLS = 12
_EXAMPLE_LENGTH = 120
_UNFORESEEN = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)


@dataclass(frozen=True, slots=True)
class Guess:
    """The facts of a surrogate before it is used: its mean, and whether it is hard."""

    mean: float
    hard: bool

    def of(self, value: float | None) -> float:
        """The surrogate of a row."""
        if value is None:
            return self.mean
        return (value + self.mean) / 2 if self.hard else value


class _Unfit(Exception):
    """The row cannot be an item."""

    def __init__(self, row: BadRow) -> None:
        super().__init__(row.rule)
        self.row = row


@dataclass(slots=True)
class _Mean:
    """Losses of the rows of one item."""

    total: float = 0.0
    count: int = 0

    def value(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass(slots=True)
class Facts:
    """The facts of a whole table that a few of its rows do not show.

    ``rows`` counts all rows, ``lacking`` those without an id, ``repeated`` those whose id an
    earlier row has, ``totals`` the last ones that sum up the others. ``each`` is how many rows
    every id has, None where they differ. ``runs`` are values of
    columns by which rows of one item differ, ``failed`` counts the rows with a score in which a
    column of errors says something.
    """

    rows: int = 0
    ids: int = 0
    repeated: int = 0
    lacking: int = 0
    totals: int = 0
    each: int | None = None
    numbers: dict[str, Numbers] = field(default_factory=dict)
    runs: dict[str, dict[str, int]] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    first_repeated: dict[str, str] | None = None
    first_lacking: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """A row that is wanted: its line and number in the file, and its cells or what is wrong.

    ``times`` counts the rows so far that share its id, and its model in a table of outputs.
    """

    line: int
    number: int
    cells: dict[str, Any] | BadRow
    times: int = 0


class Items:
    """The rows of a sheet as the service takes items; `look` before the `rows`."""

    def __init__(  # noqa: PLR0913 -- all that says it
        self,
        sheet: Sheet,
        columns: Sequence[Column],
        placed: Sequence[Placed],
        measures: Sequence[Measure],
        options: Options,
        *,
        outputs: bool = False,
    ) -> None:
        """Take columns that have a role each; ``outputs`` are told apart by id, question, model."""
        self.facts = Facts()
        self._sheet = sheet
        self._whole = options.columns.whole
        self._roles = {column.name: column.role for column in placed if column.role != HIDDEN}
        self._comma = {column.name: column.comma for column in columns}
        self._groups = [name for name, role in self._roles.items() if role == "group"]
        self._id = next((name for name, role in self._roles.items() if role == "id"), None)
        repeats = sheet.known.repeats if sheet.known is not None else ()
        names = [column.name for column in columns]
        runs = [name for name in names if name in repeats or is_run(name)]
        models = [
            column.name
            for column in columns
            if is_of_models(column.name) and len({*map(shown, column.values)}) > 1
        ]
        self._runs = runs + [name for name in models if name not in runs]
        same = {*SHOWN, *SIDES} if runs else ASKS if models else ()
        texts = [name for name, role in self._roles.items() if role in same]
        if outputs:
            by_role = {role: name for name, role in self._roles.items()}
            texts = [by_role.get(role, "") for role in OF_ITEM] if "question" in by_role else []
        self._outputs = outputs
        self._texts = texts if self._id is None and any(texts) else []
        self.rule, self._only, run = _repeats(options, names, outputs=outputs)
        self._model = options.columns.model
        self._apart = [name for name in (self._model, run) if name is not None]
        self.measures = {
            measure.column: replace(measure, several=self.rule) for measure in measures
        }
        self._failures = {
            name: {*values}
            for name, values in missing_by_column(options, names).items()
            if name and name not in self.measures
        }
        self._errors = [
            column.name
            for column in columns
            if is_of_errors(column) and column.name not in self.measures
        ]
        self._with_id = options.items == "with_id"
        self._every = options.items == "all" or sheet.known is not None
        self._guess: Guess | None = None
        self._means: dict[str, dict[str, _Mean]] = {}

    def look(self) -> Iterator[None]:
        """Read all rows for the facts of the table; None now and then on the way."""
        facts = self.facts
        facts.numbers = {name: Numbers() for name in self.measures}
        seen: Counter[tuple[str, ...]] = Counter()
        taken = 0
        last: list[dict[str, Any]] = []
        for number, (_, row) in enumerate(self._sheet.rows()):
            if number % HEARTBEAT_ROWS == HEARTBEAT_ROWS - 1:
                yield None
            facts.rows += 1
            cells = {} if isinstance(row, BadRow) else dict(flat(row, self._whole))
            last.append(cells)
            if self._every or len(last) > _MOST_TOTALS or not _is_total(cells):
                taken += self._noted(last, seen)
                last.clear()
        if len(last) == facts.rows:
            taken += self._noted(last, seen)
        elif last:
            facts.totals, facts.first_lacking = len(last), _example(last[0])
        if self._only and taken == 0:
            column, value = self._only[-1]
            raise refused("No row is among those.", f"a value of {column}", value, "repeats")
        self._count_runs(seen)
        self._settle()

    def rows(self) -> Iterator[tuple[int, dict[str, Any] | BadRow]]:
        """Line or row number and item, or what is wrong with it."""
        for row in self.taken():
            if isinstance(row.cells, BadRow):
                yield row.line, row.cells
            elif row.times <= 1 or self.rule not in {"first", "mean"}:
                yield row.line, self._made(row, row.cells)

    def taken(self) -> Iterator[Taken]:
        """The rows that are wanted, and those that cannot be read."""
        seen: Counter[tuple[str, ...]] = Counter()
        for number, (line, row) in enumerate(self._sheet.rows(), 1):
            if isinstance(row, BadRow):
                yield Taken(line, number, row)
                continue
            cells = dict(flat(row, self._whole))
            sums_up = self._with_id and number > self.facts.rows - self.facts.totals
            if sums_up or not self._takes(cells):
                continue
            counted = self.rule is not None or self._apart
            key = self._key(cells, self._apart[: self._model is not None]) if counted else None
            if key is not None:
                seen[key] += 1
            yield Taken(line, number, cells, 0 if key is None else seen[key])

    def _takes(self, cells: Mapping[str, Any]) -> bool:
        """The row is one of those that were asked for."""
        if any(shown(cells.get(name, "")).strip() != value for name, value in self._only):
            return False
        return not (self._with_id and self._id is not None and self._name(cells) is None)

    def _name(self, cells: Mapping[str, Any]) -> str | None:
        """The name of an item: its id, or a digest of its texts where runs tell its rows apart."""
        if self._texts:
            texts = (cells.get(name) for name in self._texts)
            return digest_of(*(None if is_missing(text) else shown(text) for text in texts))
        value = None if self._id is None else cells.get(self._id)
        return None if is_missing(value) else shown(value).strip()

    def _key(self, cells: Mapping[str, Any], apart: Sequence[str]) -> tuple[str, ...] | None:
        """The key that rows of one item share, with the columns that tell them apart."""
        name = self._name(cells)
        return None if name is None else (name, *(shown(cells.get(column, "")) for column in apart))

    def has_failed(self, cells: Mapping[str, Any]) -> bool:
        """Return True if a column says that there is no score."""
        return any(
            self._says(cells.get(column), values)
            for name, values in self._failures.items()
            for column in cells
            if column == name or column.startswith(f"{name}.")
        )

    def _says(self, value: object, values: Collection[str]) -> bool:
        return shown(value).strip() in values or (ANY in values and not is_nothing(value))

    def _count_runs(self, seen: Counter[tuple[str, ...]]) -> None:
        """Find how many rows each id has; refuses runs that are more of some items than of others.

        The mean over these would count those items for more.
        """
        facts, counts = self.facts, {*seen.values()}
        facts.each = counts.pop() if len(counts) == 1 and not facts.lacking else None
        if self.rule == "runs" and facts.each is None:
            few, many = (f(seen, key=seen.__getitem__)[0] for f in (min, max))
            raise refused(
                f"Item {few} has fewer runs than {many}, which would count for more.",
                "as many rows of every id, or first, mean or items",
                "runs",
                "repeats",
            )

    def _noted(self, rows: Sequence[dict[str, Any]], seen: Counter[tuple[str, ...]]) -> int:
        """The count of those rows that are taken, which are noted."""
        wanted = [cells for cells in rows if cells and self._takes(cells)]
        for cells in wanted:
            self._note(cells, seen)
        return len(wanted)

    def _note(self, cells: dict[str, Any], seen: Counter[tuple[str, ...]]) -> None:
        facts = self.facts
        name, key = self._name(cells), self._key(cells, self._apart)
        if self._id is not None and name is None:
            facts.lacking += 1
            facts.first_lacking = facts.first_lacking or _example(cells)
        elif key in seen:
            facts.repeated += 1
            facts.first_repeated = facts.first_repeated or _example(cells)
        elif key is not None:
            facts.ids += 1
        if key is not None:
            seen[key] += 1
        for column in self._runs:
            values = facts.runs.setdefault(column, {})
            value = shown(cells.get(column, "")).strip()
            if value in values or len(values) <= _MOST_VALUES:
                values[value] = values.get(value, 0) + 1
        for measure in self.measures.values():
            if measure.role not in GUESSES:
                self._measured(measure, name, cells)
            elif not self.has_failed(cells):
                self._measured(measure, name, cells)
                self._failed(measure, cells)

    def _measured(self, measure: Measure, name: str | None, cells: Mapping[str, Any]) -> None:
        """Note the number of a row, which belongs to the item of this name."""
        value = cells.get(measure.column)
        self.facts.numbers[measure.column].note(measure, value)
        if self.rule == "mean" and name is not None:
            loss = measure.loss(value)
            mean = self._means.setdefault(measure.column, {}).setdefault(name, _Mean())
            if type(loss) is float:
                mean.total, mean.count = mean.total + loss, mean.count + 1

    def _failed(self, measure: Measure, cells: Mapping[str, Any]) -> None:
        """Note the columns in which an error stands beside a score."""
        errors = [name for name in self._errors if not is_nothing(cells.get(name))]
        if errors and measure.loss(cells.get(measure.column)) is not None:
            for name in errors:
                self.facts.failed[name] = self.facts.failed.get(name, 0) + 1

    def _settle(self) -> None:
        """Find the mean of the guess, and whether all of it is at the ends of the scale."""
        for name, measure in self.measures.items():
            numbers = self.facts.numbers[name]
            if numbers.count + numbers.outside + numbers.several == 0:
                column, holds = "known verdicts", "none"
                if measure.role in GUESSES:
                    column, holds = "surrogate", "no guess of a loss"
                raise refused(
                    f"The column of the {column} holds {holds}.",
                    f"a number from {measure.low:g} to {measure.high:g} in place of each word",
                    ", ".join(numbers.others) or None,
                    f"mapping.{name}",
                )
            if measure.role in GUESSES:
                mean = numbers.total / max(numbers.count, 1)
                self._guess = Guess(mean, numbers.ends)

    def _made(self, row: Taken, cells: dict[str, Any]) -> dict[str, Any] | BadRow:
        """The item of a row; of one that none can be made of, what stands in the way."""
        try:
            return self._item(row, cells)
        except _Unfit as unfit:
            return unfit.row
        except _UNFORESEEN as error:
            return BadRow("a row of which an item can be made", f"{type(error).__name__}: {error}")

    def id_of(self, row: Taken, cells: Mapping[str, Any]) -> str:
        """The id of a row: what tells it apart, or else its number."""
        if self._id is None and not self._outputs:
            return str(row.number)
        name = self._name(cells) or f"row {row.number}"
        name = name if self._id is not None else name[:_NAME_LENGTH]
        return f"{name} ({row.times})" if row.times > 1 and self.rule in APART else name

    def _item(self, row: Taken, cells: dict[str, Any]) -> dict[str, Any]:
        item = {"id": self.id_of(row, cells), **self.shown(cells)}
        for name, role in self._roles.items():
            if role in GUESSES:
                item["surrogate"] = self._surrogate(name, cells)
            elif role == "known":
                self._know(item, name, cells)
        return item

    def shown(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        """The members of an item that say no loss of it: payload, answers, groups, weight."""
        item: dict[str, Any] = {}
        payload: dict[str, Any] = {}
        for name, role in self._roles.items():
            value = cells.get(name)
            if role in SIDES:
                item[role[-1]] = {"answer": "" if is_missing(value) else shown(value)}
            elif role not in {"id", "known", *GUESSES} and not is_missing(value):
                self._set(item, payload, name, value)
        if payload:
            item["payload"] = payload
        return item

    def _set(self, item: dict[str, Any], payload: dict[str, Any], name: str, value: object) -> None:
        """Put what may be missing into its place."""
        role = self._roles[name]
        if role in {"weight", "prediction"}:
            number = number_of(value, comma=self._comma.get(name, False))
            item[role] = _whole(number) if role == "prediction" else number
        elif role == "group" and len(self._groups) == 1:
            item["group"] = shown(value)
        elif role == "group":
            item.setdefault("groups", {})[name] = shown(value)
        elif role == "payload":
            payload[name] = kept(value)
        else:
            payload[role] = _SHOWN.get(role, shown)(value)

    def _loss(self, name: str, cells: Mapping[str, Any]) -> object:
        """The loss of a row, or the mean of the rows of its item."""
        item = self._name(cells)
        if self.rule == "mean" and item is not None:
            return self._means[name][item].value()
        measure, value = self.measures[name], cells.get(name)
        if measure.role in GUESSES and self.has_failed(cells):
            return None
        loss = measure.loss(value)
        if not isinstance(loss, Outside):
            return loss
        if (measure.low, measure.high) != (measure.kind.lower, measure.kind.upper):
            # By its own scale it is none, whatever the pool's would make of it
            ends = f"a number from {measure.low:g} to {measure.high:g}"
            raise _Unfit(BadRow(f"{name}: {ends}", shown(value)))
        return float(loss)

    def _surrogate(self, name: str, cells: Mapping[str, Any]) -> object:
        found = self._loss(name, cells)
        if found is not None:
            scale = self.measures[name].kind
            if not isinstance(found, float) or not scale.lower <= found <= scale.upper:
                return found
        return found if self._guess is None else self._guess.of(found)

    def _know(self, item: dict[str, Any], name: str, cells: Mapping[str, Any]) -> None:
        loss = self._loss(name, cells)
        if loss is not None:
            item["known"] = {"loss": loss, "reason": LABELLED}


def _is_total(cells: Mapping[str, Any]) -> bool:
    """Return True if the first value is the word for a total, and all others are numbers."""
    first, *others = [value for value in cells.values() if not is_missing(value)] or [None]
    return (
        len(cells) > 1
        and isinstance(first, str)
        and _TOTAL.fullmatch(first.strip()) is not None
        and all(isinstance(number_of(value, comma=True), float | int) for value in others)
    )


def _repeats(
    options: Options, names: Sequence[str], *, outputs: bool
) -> tuple[str | None, list[tuple[str, str]], str | None]:
    """The rule for rows of one id, and the only rows that are wanted, by column and value.

    Of ``outputs`` also the column that tells the runs of an item apart.
    """
    if options.repeats is None:
        return None, [], None
    rule, only, run = None, [], None
    first, *others = options.repeats.split(JOINT)
    parts = [first]
    for part in others:
        if column_of(part, names) is not None or part in {*RULES, *(names if outputs else ())}:
            parts.append(part)
        else:
            parts[-1] += f"{JOINT}{part}"
    for part in parts:
        column = column_of(part, names)
        if column is not None:
            only.append((column, part[len(column) + 1 :].strip()))
        elif part in RULES and rule is None:
            rule = part
        elif outputs and part in names:
            run = part
        else:
            ways = f"items, runs, first, mean, or COLUMN=VALUE with one of {', '.join(names)[:400]}"
            raise refused("There is no such way with rows of one id.", ways, part, "repeats")
    return rule, only, run


def _example(cells: Mapping[str, Any]) -> dict[str, str]:
    """A row as it is told: a few cells, cut."""
    some = list(cells.items())[:_EXAMPLE_CELLS]
    return {name: shown(value)[:_EXAMPLE_LENGTH] for name, value in some if not is_missing(value)}


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _chat(value: object) -> Any:  # noqa: ANN401 -- any JSON
    found = messages_of(value)
    return kept(value) if found is None else kept(found)


def _choices(value: object) -> Any:  # noqa: ANN401 -- any JSON
    return [shown(choice) for choice in value] if isinstance(value, list) else shown(value)


_SHOWN: Mapping[str, Callable[[Any], Any]] = {
    "image": picture_of,
    "messages": _chat,
    "choices": _choices,
}

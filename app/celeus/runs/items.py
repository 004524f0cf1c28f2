"""Items of a session in process: as they are given, or read from any table or log."""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Literal

from celeus.client.calls import file_answers
from celeus.client.fingerprint import LOG
from celeus.client.label_loop import finite
from celeus.client.rows import AS_RUNS, line_of, lines_of, rows_of
from celeus.core.plans.claim import Target, check_sample
from celeus.core.pools.losses import LossScale
from celeus.core.pools.rows.fields import FIELDS
from celeus.core.pools.rows.validation import is_number, is_text, row_faults
from celeus.errors import InvalidValue, NeedsAnswer
from celeus.intake.opening import SentFile, items_of
from celeus.intake.questions import in_python, question_lines
from celeus.intake.rows import Options
from celeus.intake.sources import tabular
from celeus.intake.sources.files import Source
from celeus.intake.sources.sheet import BadRow
from celeus.intake.table.answers import options_of
from celeus.intake.table.asking import Table
from celeus.intake.table.item_columns import are_items
from celeus.intake.table.roles import GUESSES, HIDDEN, Kind
from celeus.shorten import shortened
from celeus.strict_json import json_of

_MOST_NAMED = 12
_COMMON = frozenset({"id", "payload", "surrogate"})
_PARTS = ("payload", "surrogate", "known", "id", "group", "weight", "prediction", HIDDEN)
"""Members of an item that columns make, and those that make none."""
_WAYS = {"surrogate": "; scale gives other ends, and missing a value that stands for none"}
"""Ways on from a member that columns make and a pool refuses."""
_MALFORMED = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)

Row = Mapping[str, Any]
Ends = tuple[float, float]


def read_items(  # noqa: PLR0913 -- the answers, each by its name
    source: object,
    *,
    mapping: Mapping[str, str] | None = None,
    answer: str | None = None,
    better: str | Sequence[str] | Mapping[str, str] | None = None,
    scale: str | Ends | Mapping[str, Ends] | None = None,
    missing: object = None,
    repeats: str | None = None,
    rows: str | None = None,
    metric: str | None = None,
    filter: str | None = None,  # noqa: A002 -- as `create_pool` has it
    groups: Sequence[str] = (),
    loss: str | tuple[float, float] = "zero_one",
) -> list[dict[str, Any]]:
    """Return the items in a table or a log: dicts with `id`, `payload` and more, for `certify`.

    ``source`` is the path of a file (CSV, TSV, JSON, JSON Lines, Excel, Parquet, Arrow, also packed
    with gzip, or the log of a tool), a DataFrame, a Dataset, or dicts with members of any names.
    The judge sees `payload`; a guess of the loss is `surrogate`, an earlier verdict of people is
    `known` and its item is never drawn. Rows that have these members already stay as they are.

    ``mapping`` are roles by columns, such as `{"Frage": "question"}`, and a column that it leaves
    out is hidden; without it they follow from names and values. ``answer`` is the column that is
    judged. ``better`` is the direction of a score, `higher` or `lower`, ``scale`` its ends, such as
    `(1, 5)`, each also by column; ``missing`` are values that stand for no score. ``repeats``
    (`items`, `runs`, of which ``target`` `runs` gives the mean, `first`, `mean` or `COLUMN=VALUE`)
    says what rows of one id are, and items that are `runs` have it as a member. ``rows``
    (`with_id`, `all`) says whether those without an id are items, or which table of a file is
    meant. ``metric`` and ``filter`` choose among those of a log. ``groups`` are columns that nobody
    sees and that stand in an item's `groups`, such as the verdicts that `judge_check` checks.
    ``loss`` is that of the session: surrogates are on its scale.

    Raises `celeus.NeedsAnswer`, with all questions that are open and the arguments that answer
    them, where the file does not say what a number means or what the judge is to see; and
    `celeus.Refusal` for a file or a row that cannot be read.
    """
    answers = {"answer": answer, "better": better, "scale": scale, "missing": missing}
    answers |= {"repeats": repeats, "rows": rows, "metric": metric, "filter": filter}
    _check_answers(answers, mapping)
    options = replace(options_of(file_answers(answers), mapping), groups=tuple(groups))
    items = _read(source, scale_of(loss), options)
    return [item | AS_RUNS for item in items] if repeats == "runs" else items


def item_rows(
    items: object, scale: LossScale, groups: tuple[str, ...] = (), target: Target = "pool"
) -> Sequence[Row]:
    """Return items for a pool of this scale: as they stand, or what their columns make of them.

    ``groups`` are columns that are groups whatever they look like; rows made of columns have them
    among their `groups`, by name. Refuses runs of the same tasks where ``target`` is a population.
    """
    table: object = items
    if not isinstance(items, str | os.PathLike):
        table, runs = _without_mark(rows_of(items))
        check_sample(target, runs=runs)
        if not table or not isinstance(table[0], Mapping) or _are_items(table[0]):
            return plain_rows(table)
    return _read(table, scale, Options(groups=groups))


def _without_mark(rows: Iterable[object]) -> tuple[list[object], bool]:
    """The rows without the mark of runs, and whether one of them had it."""
    plain: list[object] = []
    runs = False
    for row in rows:
        if isinstance(row, Mapping) and row.items() >= AS_RUNS.items():
            runs = True
            plain.append({name: value for name, value in row.items() if name not in AS_RUNS})
        else:
            plain.append(row)
    return plain, runs


def plain_rows(items: object) -> list[Row]:
    """Return rows as JSON values: NumPy's numbers as numbers, without members that are None.

    ``items`` may be the path of any table.
    """
    if isinstance(items, str | os.PathLike):
        path = Path(items)
        _file(path).close()
        sheet = tabular.whole(tabular.table_of(tabular.plain(Source.of_path(path))), str(path))
        items = [row for _, row in sheet.rows()]
    table: Iterable[object] = rows_of(items)
    return [json.loads(line_of(row, number)) for number, row in enumerate(table, start=1)]


def scale_of(loss: object) -> LossScale:
    """Return the scale of a loss: `zero_one`, or the ends of a bounded one."""
    if loss == "zero_one":
        return LossScale.of("zero_one", None, None)
    return LossScale.of(*bounded(loss))


def bounded(loss: object) -> tuple[Literal["bounded"], float, float]:
    """Return the kind and the ends of a bounded loss; refuses what is none."""
    rule = "zero_one, or the two ends of a bounded loss"
    if not isinstance(loss, tuple | list) or len(loss) != len(("lower", "upper")):
        raise InvalidValue(f"loss must be {rule}", field="loss", rule=rule, value=loss)
    lower, upper = (finite(end, "an end of the loss", "loss") for end in loss)
    return "bounded", lower, upper


def _check_answers(answers: Mapping[str, object], mapping: object) -> None:
    """Refuse answers of another type, which only the intake of files would meet."""
    for name in ("answer", "repeats", "rows", "metric", "filter"):
        if not isinstance(answers[name], str | None):
            raise InvalidValue(f"{name} must be text", field=name, rule="text", value=answers[name])
    if mapping is not None and not _is_mapping(mapping):
        rule = 'roles by columns, such as {"Frage": "question"}'
        raise InvalidValue(f"mapping must be {rule}", field="mapping", rule=rule, value=mapping)


def _is_mapping(mapping: object) -> bool:
    return isinstance(mapping, Mapping) and all(
        isinstance(text, str) for pair in mapping.items() for text in pair
    )


def _are_items(row: Mapping[Any, Any]) -> bool:
    return are_items([str(name) for name in row])


def _read(source: object, scale: LossScale, options: Options) -> list[dict[str, Any]]:
    """The items in a table or log; those made of columns have its groups by name."""
    path = str(Path(source)) if isinstance(source, str | os.PathLike) else None
    name = path or "the table"
    with _opened(source) as file:
        called = "" if path is None else Path(path).name
        try:
            rows, made = _items(file, SentFile(called, options=options), scale, name)
        except NeedsAnswer as refusal:
            raise _asked(refusal, path, scale, options.groups) from None
        except InvalidValue as refusal:
            raise _of_source(refusal, name) from None
        except _MALFORMED as error:
            detail = f"{name} cannot be read: {type(error).__name__}: {error}"
            rule = "a table, or a whole log of a finished run"
            raise InvalidValue(detail, field="items", rule=rule) from error
    for row in rows if made and options.groups else ():
        if "group" in row:
            row["groups"] = {options.groups[0]: row.pop("group")}
    return rows


def _of_source(refusal: InvalidValue, name: str) -> InvalidValue:
    """The refusal with the name of the source, the rule and the value in its text."""
    if refusal.field == "system_a":
        rule = "items of one system; `celeus.compare` takes the answers of each of two"
        detail = f"{name} holds pairs of answers: expected {rule}"
        return InvalidValue(detail, field="items", rule=rule)
    field = refusal.field
    if field is not None and (field in {"body", "items"} or field.startswith("line ")):
        field = None
    line = InvalidValue(refusal.detail, field=field, rule=refusal.rule, value=refusal.value).line
    detail = line if name in line else f"{name}: {line}"
    return InvalidValue(detail, field=field, rule=refusal.rule, value=refusal.value)


@contextmanager
def _opened(source: object) -> Iterator[IO[bytes]]:
    if isinstance(source, str | os.PathLike):
        with _file(Path(source)) as file:
            yield file
        return
    with lines_of(map(_without_nan, rows_of(source))) as lines:
        if not lines.tell():
            raise InvalidValue("there are no items", field="items", rule="at least one item")
        yield lines


def _file(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise InvalidValue(f"{path} cannot be read: {error.strerror}", field="items") from error


def _without_nan(row: object) -> object:
    """The row without members that are NaN, which stands for a missing value in a table."""
    if not isinstance(row, Mapping):
        return row
    return {
        name: value
        for name, value in row.items()
        if not (isinstance(value, float) and math.isnan(value))
    }


def _items(
    file: IO[bytes], given: SentFile, scale: LossScale, name: str
) -> tuple[list[dict[str, Any]], bool]:
    kind = Kind(scale.lower, scale.upper)
    with closing(items_of(file, given, kind, json_of=json_of)) as read:
        found = next(items for items in read if items is not None)
        if found.table is not None and found.table.source != "given":
            LOG.warning("celeus: %s: %s", name, _roles(found.table))
        lines = [*found.rows]
    rows, bad = [], []
    for line, row in lines:
        item = row if isinstance(row, BadRow) else _checked(row, scale)
        if isinstance(item, BadRow):
            bad.append((line, item))
        else:
            rows.append(item)
    if bad:
        way = "" if found.table is None else _WAYS.get(bad[0][1].rule.partition(":")[0], "")
        raise _bad_rows(bad, name, way)
    return rows, found.table is not None


def _checked(row: dict[str, Any], scale: LossScale) -> dict[str, Any] | BadRow:
    """Return the item without members that are None; a bad row if a pool would refuse it.

    Payloads, which take as long again, are left to the pool. Items of an id, a payload and a
    surrogate alone take a short way.
    """
    item = row
    if None in row.values():
        item = {name: value for name, value in row.items() if value is not None}
    if item.keys() <= _COMMON and is_text(item.get("id")):
        surrogate = item.get("surrogate", scale.lower)
        if is_number(surrogate, scale.lower, scale.upper):
            return item
    beside = {name: value for name, value in item.items() if name != "payload"}
    # Items of several metrics or systems are checked where these are known
    faults = row_faults(beside, scale, None) if beside.keys() <= FIELDS else []
    if not faults:
        return item
    field, rule, value = faults[0]
    return BadRow(f"{field}: {rule}", value if isinstance(value, str) else shortened(value))


def _bad_rows(bad: Sequence[tuple[int, BadRow]], name: str, way: str) -> InvalidValue:
    (line, row), more = bad[0], len(bad) - 1
    detail = f"line {line} of {name} cannot be read"
    if more:
        detail += f", nor can {more} other{'s' if more > 1 else ''}"
    return InvalidValue(detail, field="items", rule=f"{row.rule}{way}", value=row.text)


def _roles(table: Table) -> str:
    """The members that items have, with the columns they are from, and the columns hidden."""
    parts: dict[str, list[str]] = {part: [] for part in _PARTS}
    for column in table.columns:
        name, role = column.name, column.role
        if role in GUESSES:
            parts["surrogate"].append(name)
        elif role in parts and role != "payload":
            parts[role].append(name)
        else:
            shown = name if role in {"payload", name} else f"{role} ({name})"
            parts["payload"].append(shown)
    return "; ".join(
        f"{part}: {', '.join(names[:_MOST_NAMED])}{', …' if len(names) > _MOST_NAMED else ''}"
        for part, names in parts.items()
        if names
    )


def _asked(
    refusal: NeedsAnswer, path: str | None, scale: LossScale, groups: Sequence[str]
) -> NeedsAnswer:
    """The same questions, with the call that answers them."""
    names = dict.fromkeys(question["name"] for question in refusal.questions)
    answers = [f"{name}=…" for name in names]
    if scale.kind != "zero_one":
        answers.append(f"loss=({scale.lower:g}, {scale.upper:g})")
    if groups:
        answers.append(f"groups={json.dumps([*groups], ensure_ascii=False)}")
    source = "items" if path is None else json.dumps(path, ensure_ascii=False)
    call = f"celeus.read_items({source}, {', '.join(answers)})"
    head = f"{path or 'the table'} leaves questions open; {call} takes the answers:"
    lines = [head, *question_lines(refusal.questions, in_python)]
    renamed = NeedsAnswer("\n".join(lines), field=refusal.field)
    renamed.more.update(refusal.more)
    return renamed

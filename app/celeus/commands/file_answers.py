"""Answers to what a file leaves open, as they are typed: `--mapping` and `--given`."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from celeus.errors import InvalidValue

if TYPE_CHECKING:
    # Not even for annotations at run time: --help has to answer at once.
    from celeus.intake.rows import Options

Typed = Sequence[str] | None

SEVERAL = frozenset({"better", "scale", "missing"})
"""Names that are given once for a file, or once for each of several columns."""
_SCORE = ("metric", "better", "scale")
NAMES: dict[str, tuple[str, ...]] = {
    "lm-eval": ("task", *_SCORE, "filter", "missing"),
    "inspect": (*_SCORE, "repeats"),
    "promptfoo": (*_SCORE, "id"),
    "deepeval": (*_SCORE, "id"),
    "helm": _SCORE,
    "swebench": ("missing",),
    "table": ("better", "scale", "missing", "answer", "repeats", "rows"),
}
"""Answers that may be given of a log, by the tool that wrote it."""


def roles_of(mapping: Typed) -> dict[str, str]:
    """Return the roles of columns that are written as COLUMN=ROLE; refuses a column twice."""
    return {name: value for name, (value,) in _values(mapping, "mapping", ()).items()}


def answers_of(given: Typed, names: Sequence[str]) -> dict[str, Any]:
    """Return answers written as NAME=VALUE: a list where there may be several, else a text.

    Refuses a name that is none of ``names``, and one that is given twice but for `SEVERAL`.
    """
    found = _values(given, "given", SEVERAL)
    for name in found.keys() - {*names}:
        rule = f"one of {', '.join(names)}, each as NAME=VALUE"
        raise InvalidValue(f"given must be {rule}", field="given", rule=rule, value=name)
    return {name: values if name in SEVERAL else values[0] for name, values in found.items()}


def options_of(form: str, mapping: Typed, given: Typed, forms: Sequence[str] = ()) -> "Options":
    """Return the options by which logs of this form are read; refuses what none leaves open.

    Columns of a table have roles as in an upload, and besides `model`, whose output a row is.
    ``forms`` are those of logs that are read beside, which may leave more open.
    """
    from celeus.intake.rows import Columns
    from celeus.intake.table.answers import options_of as answered

    forms = forms or (form,)
    known = dict.fromkeys(name for each in forms for name in NAMES[each])
    roles, answers = roles_of(mapping), answers_of(given, [*known])
    answers = {name: answer for name, answer in answers.items() if name in NAMES[form]}
    if roles and "table" not in forms:
        rule = "left out: a log has no columns; --format table reads its rows as they are"
        raise InvalidValue(f"mapping must be {rule}", field="mapping", rule=rule)
    if form != "table":
        roles = {}
    # The runs of an item that Inspect logs, and the rows of an item of a table
    reducer = answers.pop("repeats", None) if form == "inspect" else None
    task, key = answers.pop("task", None), answers.pop("id", None)
    model = next((name for name, role in roles.items() if role == "model"), None)
    roles.pop(model or "", None)
    return replace(
        answered(answers),
        tasks=() if task is None else tuple(task.split(",")),
        key=key,
        reducer=reducer,
        columns=Columns(roles, model),
    )


def _values(written: Typed, field: str, several: Collection[str]) -> dict[str, list[str]]:
    """Return what is written as NAME=VALUE, by name; refuses other texts, and a name twice."""
    form = "COLUMN=ROLE" if field == "mapping" else "NAME=VALUE"
    values: dict[str, list[str]] = {}
    for name, value in _pairs(written, field):
        if not (name and value) or (name in values and name not in several):
            rule = f"{form}, each name once"
            text = f"{name}={value}" if value else name
            raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=text)
        values.setdefault(name, []).append(value)
    return values


def _pairs(written: Typed, field: str) -> Iterator[tuple[str, str]]:
    for text in written or ():
        # A column may have the sign in its name, and a value too
        name, sign, value = text.rpartition("=") if field == "mapping" else text.partition("=")
        yield (name, value) if sign else (text, "")

"""Rows of two or several systems, turned into rows of a pool.

Of two a row is `{id, payload?, a, b, surrogate? | surrogates?, proxy?, group?, weight?, known?}`,
and becomes a row of the difference of their losses; of several, among which the best is sought, it
is `{id, payload?, answers?, group?}` with `answers` by the name of every system, and all items have
them or none. What a system answered is `{prediction? | answer?, payload?, surrogate?}`, and the
first good row fixes which of these all have. What a judge is to see, shared payload, answers and
payloads of all, becomes the item's payload, so that the items digest binds it; classes, surrogates
and which texts are the same are columns. Items to which all gave the same answer are known, and
never drawn: their difference is 0, and they do not tell which is best.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.pools.comparison import surrogate_columns
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import dtype_of
from celeus.core.pools.rows.assembly import (
    Assembly,
    Batch,
    Row,
    assemble_form,
    without_nulls,
)
from celeus.core.pools.rows.fields import SIDE_FIELDS
from celeus.core.pools.rows.validation import (
    MAX_INT,
    PAYLOAD_RULE,
    Shape,
    Violation,
    encode_payload,
    is_number,
    stated_faults,
    strange_members,
)
from celeus.core.pools.systems import SAME_ANSWER, SIDES, Lineup, OneLoss, Systems

OF_PAIRS = frozenset(
    {"id", "payload", "surrogate", "surrogates", "proxy", "group", "known", "weight", *SIDES},
)
OF_LINEUPS = frozenset({"id", "payload", "group", "answers"})
ANSWERS = ("prediction", "answer")
SHOWN = ("answer", "payload")
"""The fields of a system that a judge may be shown."""


def assemble_pairs(
    lines: Sequence[int], rows: Sequence[object], systems: Systems, shape: Shape | None
) -> Assembly:
    """Columns of the good rows and the faults of the others, by line, as ``assemble``."""
    return assemble_form(lines, rows, _Pairs(systems), shape)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Rows of two systems, which become rows of the difference of their losses."""

    systems: Systems

    @property
    def scale(self) -> LossScale:
        return self.systems.scale

    def present(self, row: Row) -> Row:
        """The row without its nulls, those of its systems included."""
        present = {name: value for name, value in row.items() if value is not None}
        return present | {side: without_nulls(present[side]) for side in SIDES if side in present}

    def faults(self, row: Row, carried: frozenset[str] | None) -> list[Violation]:
        """Violations in the row; its known difference is checked only if all else is good."""
        violations = list(_pair_faults(row, self.systems, carried))
        return violations or list(_difference_faults(row, self.systems))

    def carried(self, row: Row) -> frozenset[str]:
        """The fields of each system that all items must have: payloads may be left out."""
        return frozenset(row["a"]) - {"payload"}

    def plain(self, row: Row) -> Row:
        return _difference(row, self.systems)

    def place(self, field: str, row: Row) -> str:
        return _place(field, row)

    def completed(self, batch: Batch, rows: list[Row], carried: frozenset[str]) -> Batch:
        """The batch with classes and surrogates of both systems, and which answers are the same."""
        columns = _pair_columns(rows, self.systems, carried)
        if carried & {*ANSWERS}:
            # No other reason begins like this: `_known_faults`
            columns["same"] = np.zeros(len(rows), dtype=dtype_of("same"))
            for item, reason in enumerate(batch.reasons):
                columns["same"][item] = reason.startswith(SAME_ANSWER)
        return replace(batch, columns=batch.columns | columns)


def composed(row: Mapping[str, Any]) -> Row | None:
    """The payload of an item: shared payload, answers and payloads of both systems."""
    return _whole(row, {side: _shown(row.get(side) or {}) for side in SIDES})


def composed_of_all(row: Mapping[str, Any]) -> Row | None:
    """The payload of an item: shared payload, answers and payloads of all systems."""
    answers = {name: _shown(inner) for name, inner in (row.get("answers") or {}).items()}
    return _whole(row, {"answers": {name: shown for name, shown in answers.items() if shown}})


def _shown(inner: Mapping[str, Any]) -> Row:
    return {name: inner[name] for name in SHOWN if inner.get(name) is not None}


def _whole(row: Mapping[str, Any], parts: Mapping[str, Row]) -> Row | None:
    whole: Row = {name: part for name, part in parts.items() if part}
    if row.get("payload") is not None:
        whole["payload"] = row["payload"]
    return whole or None


def _pair_faults(
    row: Row, systems: Systems, expected: frozenset[str] | None
) -> Iterator[Violation]:
    yield from _member_faults(row, OF_PAIRS)
    sides = [row.get(side) for side in SIDES]
    for side, inner in zip(SIDES, sides, strict=True):
        if isinstance(inner, dict):
            yield from _side_faults(side, inner, systems.loss)
        else:
            yield side, f"an object of what system {side} answered, as every item has it", inner
    if all(isinstance(inner, dict) for inner in sides):
        yield from _unequal(row, expected)
        yield from _known_faults(row, systems)


def _unequal(row: Row, expected: frozenset[str] | None) -> Iterator[Violation]:
    """Violations where the two systems, or this item and those before, differ in their fields."""
    carried = {side: row[side].keys() - {"payload"} for side in SIDES}
    for side, other_side in (SIDES, SIDES[::-1]):
        for name in sorted(carried[other_side] - carried[side]):
            yield f"{side}.{name}", f"given, as in {other_side}: both answer in one kind", None
    if carried["a"] == carried["b"] and expected is not None:
        for name in sorted(carried["a"] ^ expected):
            rule = "given, as in the items before"
            yield (
                f"a.{name}",
                rule if name in expected else "left out, as in the items before",
                None,
            )
    for name in ("surrogate", "surrogates"):
        if name in row and "surrogate" in carried["a"]:
            yield name, "left out where a and b have their own", row[name]


def _member_faults(row: Row, fields: frozenset[str], place: str = "") -> Iterator[Violation]:
    yield from strange_members(row, fields, place)
    if "payload" in row and not isinstance(row["payload"], dict | str):
        yield f"{place}payload", PAYLOAD_RULE, row["payload"]


def _side_faults(side: str, inner: Row, loss: OneLoss | LossScale) -> Iterator[Violation]:
    """Violations in the fields of a system; ``loss`` says which losses it may have."""
    yield from _member_faults(inner, SIDE_FIELDS, f"{side}.")
    if "prediction" in inner:
        prediction = inner["prediction"]
        if loss.kind != "zero_one":
            rule = "left out: only a zero_one loss follows from it; an answer goes into `answer`"
            yield f"{side}.prediction", rule, prediction
        elif not _is_class(prediction):
            yield f"{side}.prediction", f"a whole number from 0 to {MAX_INT}", prediction
        if "answer" in inner:
            yield f"{side}.answer", "left out where there is a prediction", inner["answer"]
    if "answer" in inner and not isinstance(inner["answer"], str):
        yield f"{side}.answer", "a text; a class goes into `prediction`", inner["answer"]
    if "surrogate" in inner and not is_number(inner["surrogate"], loss.lower, loss.upper):
        rule = f"a number from {loss.lower:g} to {loss.upper:g}"
        yield f"{side}.surrogate", rule, inner["surrogate"]


def _known_faults(row: Row, systems: Systems) -> Iterator[Violation]:
    """Violations in the form of a known difference."""
    known = row.get("known")
    if isinstance(known, dict):
        if str(known.get("reason")).startswith(SAME_ANSWER):
            rule = f"another reason: which items have the {SAME_ANSWER} is found out here"
            yield "known.reason", rule, known["reason"]
        if "label" in known and any("prediction" not in row[side] for side in SIDES):
            rule = "left out, with `loss` in its place: nothing follows from a label"
            yield "known.label", rule, known["label"]
            return
        if "label" in known and not _is_class(known["label"]):
            yield "known.label", f"a whole number from 0 to {MAX_INT}", known["label"]
            return
    if known is not None:
        known = _known(row)
        yield from stated_faults({"known": known}, systems.scale)


def _difference_faults(row: Row, systems: Systems) -> Iterator[Violation]:
    """Violations of a known difference that the answers, or their judges, could not give."""
    known = _known(row) if "known" in row else None
    loss = known.get("loss", 0) if isinstance(known, dict) else 0
    if loss != 0 and same_answer(row, systems):
        yield "known.loss", "0, or left out: both systems gave the same answer", loss
    elif systems.loss.kind != "bounded" and is_number(loss, -math.inf) and loss % 1 != 0:
        yield "known.loss", "a whole number: judges say no other difference here", loss


def _known(row: Row) -> object:
    """The known difference of a row; a label is replaced by the difference that follows from it."""
    known = row["known"]
    if not isinstance(known, dict) or "label" not in known or "loss" in known:
        return known
    losses = [float(known["label"] != row[side]["prediction"]) for side in SIDES]
    rest = {name: known[name] for name in known if name != "label"}
    return rest | {"loss": losses[0] - losses[1]}


def _is_class(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_INT


def same_answer(row: Mapping[str, Any], systems: Systems) -> bool:
    """Both systems gave the same class, or the same text after the pool's normalisation."""
    first, other = row["a"], row["b"]
    if "prediction" in first and "prediction" in other:
        return bool(first["prediction"] == other["prediction"])
    texts = [side.get("answer") for side in (first, other)]
    return all(isinstance(text, str) for text in texts) and systems.same(*texts)


def _difference(row: Row, systems: Systems) -> Row:
    """The row of the difference: an ordinary one, but for the columns of the two."""
    names = row.keys() - {*SIDES, "payload", "known"}
    difference = {name: row[name] for name in names}
    payload = composed(row)
    if payload is not None:
        difference["payload"] = payload
    if same_answer(row, systems):
        reason = systems.reason(classes="prediction" in row["a"])
        difference["known"] = {"loss": 0.0, "reason": reason}
    elif "known" in row:
        difference["known"] = _known(row)
    return difference


def _pair_columns(
    rows: list[Row], systems: Systems, fields: frozenset[str]
) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    if "prediction" in fields:
        for side in SIDES:
            columns[f"prediction_{side}"] = np.array([row[side]["prediction"] for row in rows])
    if "surrogate" in fields:
        a, b = (np.array([float(row[side]["surrogate"]) for row in rows]) for side in SIDES)
        limits = Interval(systems.loss.lower, systems.loss.upper)
        # Of two texts both may be right, of two classes one at most.
        columns |= surrogate_columns(a, b, limits, exclusive="prediction" in fields)
    return {name: column.astype(dtype_of(name)) for name, column in columns.items()}


def _place(field: str, row: Row) -> str:
    """The field of the row that a faulty field of the composed payload comes from."""
    if field == "payload":
        places = [(side, name) for side in SIDES for name in ("answer", "payload")]
        whole = {f"{side}.{name}": row[side].get(name) for side, name in places}
        bad = (name for name, part in whole.items() if part is not None and not _encodes(part))
        return next(bad, field)
    inner = field.removeprefix("payload.")
    return inner if inner.split(".")[0].split("[")[0] in {*SIDES, "payload"} else field


def _encodes(part: object) -> bool:
    return encode_payload(part) is not None


def assemble_lineup(
    lines: Sequence[int], rows: Sequence[object], lineup: Lineup, shape: Shape | None
) -> Assembly:
    """Columns of the good rows and the faults of the others, by line, as ``assemble``."""
    return assemble_form(lines, rows, _Answers(lineup), shape)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Rows of several systems, which become rows of what a judge is to see."""

    lineup: Lineup

    @property
    def scale(self) -> LossScale:
        return self.lineup.loss

    def present(self, row: Row) -> Row:
        """The row without its nulls, those of its systems included."""
        present = {name: value for name, value in row.items() if value is not None}
        answers = present.get("answers")
        if isinstance(answers, dict):
            present["answers"] = {name: without_nulls(inner) for name, inner in answers.items()}
        return present

    def faults(self, row: Row, carried: frozenset[str] | None) -> Iterator[Violation]:
        return _lineup_faults(row, self.lineup, carried)

    def carried(self, row: Row) -> frozenset[str]:
        """The fields of every system that all items must have: payloads may be left out."""
        return frozenset(row.get("answers", {}).get(self.lineup.names[0], ())) - {"payload"}

    def plain(self, row: Row) -> Row:
        """The row with the composed payload in the place of the answers."""
        plain: Row = {name: row[name] for name in ("id", "group") if name in row}
        payload = composed_of_all(row)
        return plain if payload is None else plain | {"payload": payload}

    def place(self, field: str, _row: Row) -> str:
        """The field of the row that a field of the composed payload comes from."""
        return field.removeprefix("payload.")

    def completed(self, batch: Batch, rows: list[Row], carried: frozenset[str]) -> Batch:
        """The batch with classes, surrogates and codes of the answers; known where all agree."""
        columns = _lineup_columns(rows, self.lineup, carried)
        reasons = [""] * len(rows)
        code = columns.get("predictions", columns.get("answers"))
        if code is not None:
            reason = self.lineup.reason(classes="predictions" in columns)
            reasons = [reason if same else "" for same in all_same(code)]
        return replace(batch, columns=batch.columns | columns, reasons=reasons)


def all_same(code: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return whether all systems gave the same answer, by their answers' codes of shape [N, k]."""
    return np.asarray((code == code[:, :1]).all(axis=1))


def _lineup_faults(
    row: Row, lineup: Lineup, expected: frozenset[str] | None
) -> Iterator[Violation]:
    yield from _member_faults(row, OF_LINEUPS)
    answers = row.get("answers", {})
    if not isinstance(answers, dict):
        yield "answers", "an object with what every system answered, by its name", answers
        return
    for name in answers.keys() - set(lineup.names):
        yield f"answers.{name}", "a system of the pool", answers[name]
    if not answers and not expected:
        return
    carried = expected if expected is not None else _carried_by_first(answers, lineup)
    for name in lineup.names:
        inner = answers.get(name)
        if not isinstance(inner, dict):
            yield f"answers.{name}", f"an object of {', '.join(sorted(SIDE_FIELDS))}", inner
            continue
        where = f"answers.{name}"
        yield from _side_faults(where, inner, lineup.loss)
        for field in sorted((inner.keys() & SIDE_FIELDS) - {"payload"} ^ carried):
            rule = "given, as of the others" if field in carried else "left out, as of the others"
            yield f"{where}.{field}", rule, inner.get(field)


def _carried_by_first(answers: Row, lineup: Lineup) -> frozenset[str]:
    first = answers.get(lineup.names[0])
    return (
        (frozenset(first) & SIDE_FIELDS) - {"payload"} if isinstance(first, dict) else frozenset()
    )


def _lineup_columns(
    rows: list[Row], lineup: Lineup, fields: frozenset[str]
) -> dict[str, NDArray[Any]]:
    def table(field: str) -> list[list[Any]]:
        return [[row["answers"][name][field] for name in lineup.names] for row in rows]

    columns: dict[str, NDArray[Any]] = {}
    if "prediction" in fields:
        columns["predictions"] = np.array(table("prediction"))
    if "answer" in fields:
        columns["answers"] = np.array([lineup.codes(texts) for texts in table("answer")])
    if "surrogate" in fields:
        columns["surrogates"] = np.array(table("surrogate"), dtype=np.float64)
    return {name: column.astype(dtype_of(name)) for name, column in columns.items()}

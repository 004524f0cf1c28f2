"""Rows of two systems, turned into rows of the difference of their losses.

A row is `{id, payload?, a, b, surrogate? | surrogates?, proxy?, group?, weight?, known?}`, and each
of `a` and `b` is `{prediction? | answer?, payload?, surrogate?}`. The first good row fixes what
both have. What a judge is to see, shared payload, answers and payloads of both, becomes the item's
payload, so that the items digest binds it; the classes are columns. Items to which both gave the
same answer have a known difference of 0.
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
)
from celeus.core.pools.systems import SAME_ANSWER, SIDES, OneLoss, Systems

FIELDS = frozenset(
    {"id", "payload", "surrogate", "surrogates", "proxy", "group", "known", "weight", *SIDES},
)
ANSWERS = ("prediction", "answer")


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
        violations = list(_faults(row, self.systems, carried))
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
        columns = _columns(rows, self.systems, carried)
        if carried & {*ANSWERS}:
            # No other reason begins like this: `_known_faults`
            columns["same"] = np.zeros(len(rows), dtype=dtype_of("same"))
            for item, reason in enumerate(batch.reasons):
                columns["same"][item] = reason.startswith(SAME_ANSWER)
        return replace(batch, columns=batch.columns | columns)


def composed(row: Mapping[str, Any]) -> Row | None:
    """The payload of an item: shared payload, answers and payloads of both systems."""
    whole: Row = {}
    for side in SIDES:
        inner = row.get(side) or {}
        shown = {name: inner[name] for name in ("answer", "payload") if inner.get(name) is not None}
        if shown:
            whole[side] = shown
    if row.get("payload") is not None:
        whole["payload"] = row["payload"]
    return whole or None


def _faults(row: Row, systems: Systems, own: frozenset[str] | None) -> Iterator[Violation]:
    for name in row.keys() - FIELDS:
        yield name, "one of " + ", ".join(sorted(FIELDS)), row[name]
    if "payload" in row and not isinstance(row["payload"], dict | str):
        yield "payload", PAYLOAD_RULE, row["payload"]
    sides = [row.get(side) for side in SIDES]
    for side, inner in zip(SIDES, sides, strict=True):
        if isinstance(inner, dict):
            yield from side_faults(side, inner, systems.loss)
        else:
            yield side, f"an object of what system {side} answered, as every item has it", inner
    if all(isinstance(inner, dict) for inner in sides):
        yield from _unequal(row, own)
        yield from _known_faults(row, systems)


def _unequal(row: Row, own: frozenset[str] | None) -> Iterator[Violation]:
    """Violations where the two systems, or this item and those before, differ in their fields."""
    carried = {side: row[side].keys() - {"payload"} for side in SIDES}
    for side, other_side in (SIDES, SIDES[::-1]):
        for name in sorted(carried[other_side] - carried[side]):
            yield f"{side}.{name}", f"given, as in {other_side}: both answer in one kind", None
    if carried["a"] == carried["b"] and own is not None:
        for name in sorted(carried["a"] ^ own):
            rule = "given, as in the items before"
            yield f"a.{name}", rule if name in own else "left out, as in the items before", None
    for name in ("surrogate", "surrogates"):
        if name in row and "surrogate" in carried["a"]:
            yield name, "left out where a and b have their own", row[name]


def side_faults(side: str, inner: Row, loss: OneLoss | LossScale) -> Iterator[Violation]:
    """Violations in the fields of a system; ``loss`` says which losses it may have."""
    for name, value in inner.items():
        if name not in SIDE_FIELDS:
            yield f"{side}.{name}", "one of " + ", ".join(sorted(SIDE_FIELDS)), value
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
    if "payload" in inner and not isinstance(inner["payload"], dict | str):
        yield f"{side}.payload", PAYLOAD_RULE, inner["payload"]
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
    one, other = row["a"], row["b"]
    if "prediction" in one and "prediction" in other:
        return bool(one["prediction"] == other["prediction"])
    texts = [side.get("answer") for side in (one, other)]
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


def _columns(rows: list[Row], systems: Systems, own: frozenset[str]) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    if "prediction" in own:
        for side in SIDES:
            columns[f"prediction_{side}"] = np.array([row[side]["prediction"] for row in rows])
    if "surrogate" in own:
        a, b = (np.array([float(row[side]["surrogate"]) for row in rows]) for side in SIDES)
        limits = Interval(systems.loss.lower, systems.loss.upper)
        # Of two texts both may be right, of two classes one at most.
        columns |= surrogate_columns(a, b, limits, exclusive="prediction" in own)
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

"""Rows of several systems among which the best is sought, turned into rows of a pool.

A row is `{id, payload?, answers?, group?}`, and `answers` holds by the name of every system what it
answered, `{prediction? | answer?, payload?, surrogate?}`; all items have it or none. The first good
row fixes what every system has. What a judge is to see becomes the item's payload, as of two
systems; classes, surrogates and which texts are the same are columns. Items to which all gave the
same answer do not tell which is best: they are known, and never drawn.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from celeus.core.pools.rows.pairs import side_faults
from celeus.core.pools.rows.validation import PAYLOAD_RULE, Shape, Violation
from celeus.core.pools.systems import Lineup

FIELDS = frozenset({"id", "payload", "group", "answers"})
SHOWN = ("answer", "payload")
"""What a judge may be shown of a system."""


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
            present["answers"] = {name: without_nulls(one) for name, one in answers.items()}
        return present

    def faults(self, row: Row, carried: frozenset[str] | None) -> Iterator[Violation]:
        return _faults(row, self.lineup, carried)

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
        columns = _columns(rows, self.lineup, carried)
        reasons = [""] * len(rows)
        code = columns.get("predictions", columns.get("answers"))
        if code is not None:
            reason = self.lineup.reason(classes="predictions" in columns)
            reasons = [reason if same else "" for same in all_same(code)]
        return replace(batch, columns=batch.columns | columns, reasons=reasons)


def all_same(code: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether all systems gave the same answer, by the codes of their answers of shape [N, k]."""
    return np.asarray((code == code[:, :1]).all(axis=1))


def composed_of_all(row: Mapping[str, Any]) -> Row | None:
    """The payload of an item: shared payload, answers and payloads of all systems."""
    whole: Row = {}
    answers = {}
    for name, inner in (row.get("answers") or {}).items():
        shown = {one: inner[one] for one in SHOWN if inner.get(one) is not None}
        if shown:
            answers[name] = shown
    if answers:
        whole["answers"] = answers
    if row.get("payload") is not None:
        whole["payload"] = row["payload"]
    return whole or None


def _faults(row: Row, lineup: Lineup, own: frozenset[str] | None) -> Iterator[Violation]:
    for name in row.keys() - FIELDS:
        yield name, "one of " + ", ".join(sorted(FIELDS)), row[name]
    if "payload" in row and not isinstance(row["payload"], dict | str):
        yield "payload", PAYLOAD_RULE, row["payload"]
    answers = row.get("answers", {})
    if not isinstance(answers, dict):
        yield "answers", "an object with what every system answered, by its name", answers
        return
    for name in answers.keys() - set(lineup.names):
        yield f"answers.{name}", "a system of the pool", answers[name]
    if not answers and not own:
        return
    carried = own if own is not None else _carried_by_first(answers, lineup)
    for name in lineup.names:
        inner = answers.get(name)
        if not isinstance(inner, dict):
            yield f"answers.{name}", f"an object of {', '.join(sorted(SIDE_FIELDS))}", inner
            continue
        where = f"answers.{name}"
        yield from side_faults(where, inner, lineup.loss)
        for field in sorted((inner.keys() & SIDE_FIELDS) - {"payload"} ^ carried):
            rule = "given, as of the others" if field in carried else "left out, as of the others"
            yield f"{where}.{field}", rule, inner.get(field)


def _carried_by_first(answers: Row, lineup: Lineup) -> frozenset[str]:
    first = answers.get(lineup.names[0])
    return (
        (frozenset(first) & SIDE_FIELDS) - {"payload"} if isinstance(first, dict) else frozenset()
    )


def _columns(rows: list[Row], lineup: Lineup, own: frozenset[str]) -> dict[str, NDArray[Any]]:
    def table(field: str) -> list[list[Any]]:
        return [[row["answers"][name][field] for name in lineup.names] for row in rows]

    columns: dict[str, NDArray[Any]] = {}
    if "prediction" in own:
        columns["predictions"] = np.array(table("prediction"))
    if "answer" in own:
        columns["answers"] = np.array([lineup.codes(texts) for texts in table("answer")])
    if "surrogate" in own:
        columns["surrogates"] = np.array(table("surrogate"), dtype=np.float64)
    return {name: column.astype(dtype_of(name)) for name, column in columns.items()}

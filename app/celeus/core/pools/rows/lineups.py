"""Rows of several systems among which the best is sought, turned into rows of a pool.

A row is `{id, payload?, answers?, group?}`, and `answers` holds by the name of every system what it
answered, `{prediction? | answer?, payload?, surrogate?}`; all items have it or none. The first good
row fixes what every system has. What a judge is to see becomes the item's payload, as of two
systems; classes, surrogates and which texts are the same are columns. Items to which all gave the
same answer do not tell which is best: they are known, and never drawn.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.pool import dtype_of
from celeus.core.pools.rows.assembly import Assembly, Row, assemble
from celeus.core.pools.rows.pairs import OWN, side_faults, without_nulls
from celeus.core.pools.rows.validation import PAYLOAD_RULE, Fault, Shape, Violation, not_an_object
from celeus.core.pools.systems import Lineup

FIELDS = frozenset({"id", "payload", "group", "answers"})
SHOWN = ("answer", "payload")
"""What a judge may be shown of a system."""


def assemble_lineup(
    lines: Sequence[int], rows: Sequence[object], lineup: Lineup, shape: Shape | None
) -> Assembly:
    """Columns of the good rows and the faults of the others, by line, as ``assemble``."""
    faults: list[Fault] = []
    kept: dict[int, Row] = {}
    own = None if shape is None else shape.of_systems
    for line, row in zip(lines, rows, strict=True):
        if not isinstance(row, dict):
            faults.append(Fault.of(line, *not_an_object(row)))
            continue
        present = _present(row)
        violations = list(_faults(present, lineup, own))
        if not violations:
            own = _carried(present, lineup) if own is None else own
            kept[line] = present
        faults += [Fault.of(line, *one) for one in violations]
    plain = [_plain(row) for row in kept.values()]
    done = assemble(list(kept), plain, lineup.scale, shape)
    faults += [replace(one, field=one.field.removeprefix("payload.")) for one in done.faults]
    good = [kept[line] for line in done.batch.lines]
    own = own or frozenset()
    columns = _columns(good, lineup, own) if good else {}
    reasons = [""] * len(good)
    code = columns.get("predictions", columns.get("answers"))
    if code is not None:
        reason, same = lineup.reason(classes="predictions" in columns), all_same(code)
        reasons = [reason if one else "" for one in same]
    batch = replace(done.batch, columns=done.batch.columns | columns, reasons=reasons)
    known = done.shape if done.shape is None else replace(done.shape, of_systems=own)
    return Assembly(batch, sorted(faults, key=lambda one: one.line), known)


def all_same(code: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether all systems gave the same answer, by the codes of their answers of shape [N, k]."""
    return np.asarray((code == code[:, :1]).all(axis=1))


def composed_of_all(row: Mapping[str, Any]) -> Row | None:
    """What is kept as the payload of an item: shared payload, answers and payloads of all."""
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


def _present(row: Row) -> Row:
    present = {name: value for name, value in row.items() if value is not None}
    answers = present.get("answers")
    if isinstance(answers, dict):
        present["answers"] = {name: without_nulls(one) for name, one in answers.items()}
    return present


def _carried(row: Row, lineup: Lineup) -> frozenset[str]:
    """What every system carries that all items must have: payloads may be left out."""
    return frozenset(row.get("answers", {}).get(lineup.names[0], ())) - {"payload"}


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
            yield f"answers.{name}", f"an object of {', '.join(sorted(OWN))}", inner
            continue
        where = f"answers.{name}"
        yield from side_faults(where, inner, lineup.scale)
        for field in sorted((inner.keys() & OWN) - {"payload"} ^ carried):
            rule = "given, as of the others" if field in carried else "left out, as of the others"
            yield f"{where}.{field}", rule, inner.get(field)


def _carried_by_first(answers: Row, lineup: Lineup) -> frozenset[str]:
    first = answers.get(lineup.names[0])
    return (frozenset(first) & OWN) - {"payload"} if isinstance(first, dict) else frozenset()


def _plain(row: Row) -> Row:
    plain: Row = {name: row[name] for name in ("id", "group") if name in row}
    payload = composed_of_all(row)
    return plain if payload is None else plain | {"payload": payload}


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

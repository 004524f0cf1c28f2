"""What rows carry of several metrics and of group columns, turned into columns of a pool.

A row of any pool may have `groups`, an object with its value in every group column; all rows have
the same columns or none. In a pool of metrics it is `{id, payload?, surrogates?, known?, groups?}`:
`surrogates` holds by the name of a metric a guess of its loss, for the same metrics in all rows,
and `known` the losses that are known. The first good row fixes what all have.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import dtype_of
from celeus.core.pools.rows.assembly import Assembly, Row, assemble
from celeus.core.pools.rows.validation import (
    TEXT_RULE,
    Fault,
    Shape,
    Violation,
    is_number,
    is_text,
    not_an_object,
)
from celeus.core.pools.table import MOST_METRICS

GROUPS, SURROGATES, KNOWN = "groups", "surrogates", "known"
OF_METRICS = frozenset({"id", "payload", GROUPS, SURROGATES, KNOWN})


def assemble_table(
    lines: Sequence[int],
    rows: Sequence[object],
    scale: LossScale,
    metrics: Sequence[Metric],
    shape: Shape | None,
) -> Assembly:
    """Columns of the good rows and the faults of the others, by line, as ``assemble``."""
    if not metrics and not _grouped(rows, shape):
        return assemble(lines, rows, scale, shape)
    faults: list[Fault] = []
    kept: dict[int, Row] = {}
    carried = frozenset() if shape is None else shape.of_table
    fixed = shape is not None
    by_name = {one.name: one for one in metrics}
    for line, row in zip(lines, rows, strict=True):
        if not isinstance(row, dict):
            faults.append(Fault.of(line, *not_an_object(row)))
            continue
        present = _present(row)
        own = frozenset(_carried(present, metrics=bool(metrics)))
        violations = list(_faults(present, by_name))
        if not violations and fixed:
            violations = [_missing(one, own) for one in sorted(own ^ carried)]
        if violations:
            faults += [Fault.of(line, *one) for one in violations]
        else:
            kept[line] = present
            carried, fixed = (carried if fixed else own), True
    aside = {GROUPS, SURROGATES, KNOWN} if metrics else {GROUPS}
    plain = [{name: row[name] for name in row if name not in aside} for row in kept.values()]
    done = assemble(list(kept), plain, scale, shape)
    good = [kept[line] for line in done.batch.lines]
    columns, values = _columns(good, carried, metrics)
    batch = replace(done.batch, columns=done.batch.columns | columns, values=values)
    known = done.shape if done.shape is None else replace(done.shape, of_table=carried)
    faults = sorted([*faults, *done.faults], key=lambda one: one.line)
    return Assembly(batch, faults, known)


def _grouped(rows: Sequence[object], shape: Shape | None) -> bool:
    named = shape is not None and bool(shape.of_table)
    return named or any(isinstance(row, dict) and row.get(GROUPS) is not None for row in rows)


def _present(row: Row) -> Row:
    """The row without nulls, also within what it says by metric; groups may be whole numbers."""
    present = {name: value for name, value in row.items() if value is not None}
    for name in (SURROGATES, KNOWN, GROUPS):
        inner = present.get(name)
        if isinstance(inner, dict):
            present[name] = {one: value for one, value in inner.items() if value is not None}
    groups = present.get(GROUPS)
    if isinstance(groups, dict):
        present[GROUPS] = {
            name: str(value) if type(value) is int else value for name, value in groups.items()
        }
    return present


def _carried(row: Row, *, metrics: bool) -> Iterator[str]:
    """What all rows must have, by the names of the columns that it becomes."""
    for field, stem in ((GROUPS, "group_"), (SURROGATES, "surrogate_")):
        inner = row.get(field)
        if isinstance(inner, dict) and (metrics or field == GROUPS):
            yield from (stem + name for name in inner)


def _missing(column: str, own: frozenset[str]) -> Violation:
    stem, _, name = column.partition("_")
    rule = "left out" if column in own else "given"
    return f"{stem}s.{name}", f"{rule}, as in the items before", None


def _faults(row: Row, metrics: Mapping[str, Metric]) -> Iterator[Violation]:
    yield from _group_faults(row.get(GROUPS, {}))
    if not metrics:
        return
    for name in row.keys() - OF_METRICS:
        yield name, "one of " + ", ".join(sorted(OF_METRICS)) + " in a pool of metrics", row[name]
    for field in (SURROGATES, KNOWN):
        inner = row.get(field, {})
        if not isinstance(inner, dict):
            yield field, "an object of numbers, by metric", inner
            continue
        for name, value in inner.items():
            rule = _rule(metrics.get(name), value, known=field == KNOWN)
            if rule is not None:
                yield f"{field}.{name}", rule or "one of " + ", ".join(metrics), value


def _rule(metric: Metric | None, value: object, *, known: bool) -> str | None:
    """The rule that a loss or a guess of it breaks, empty for that of no metric; None: none."""
    if metric is None:
        return ""
    scale = metric.scale
    whole = known and scale.kind == "zero_one"
    within = is_number(value, scale.lower, scale.upper)
    if within and not (whole and value not in {0, 1}):
        return None
    return "exactly 0 or 1" if whole else f"a number from {scale.lower:g} to {scale.upper:g}"


def _group_faults(groups: object) -> Iterator[Violation]:
    if not isinstance(groups, dict) or len(groups) > MOST_METRICS:
        yield GROUPS, f"an object of at most {MOST_METRICS} values, by group column", groups
        return
    for name, value in groups.items():
        if not is_text(name):
            yield GROUPS, f"names that are {TEXT_RULE}", name
        elif not is_text(value):
            yield f"groups.{name}", f"{TEXT_RULE}, or a whole number", value


def _columns(
    rows: list[Row], carried: frozenset[str], metrics: Sequence[Metric]
) -> tuple[dict[str, NDArray[Any]], dict[str, list[str]]]:
    """Numbers of the rows, and their values in the group columns."""
    if not rows:
        return {}, {}
    columns = {}
    for metric in metrics:
        name = metric.name
        if f"surrogate_{name}" in carried:
            columns[f"surrogate_{name}"] = [row[SURROGATES][name] for row in rows]
        columns[f"known_{name}"] = [row.get(KNOWN, {}).get(name, np.nan) for row in rows]
    values = {name: [row[GROUPS][name] for row in rows] for name in rows[0].get(GROUPS, {})}
    numbers = {name: np.array(it, dtype=dtype_of(name)) for name, it in columns.items()}
    return numbers, values

"""Turn metrics and group columns of rows into columns of a pool.

A row of any pool may have `groups`, an object with its value in every group column; all rows have
the same columns or none. In a pool of metrics it is `{id, payload?, surrogates?, known?, groups?}`:
`surrogates` holds by the name of a metric a guess of its loss, for the same metrics in all rows,
and `known` the losses that are known. The first good row fixes what all have.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import dtype_of
from celeus.core.pools.rows.assembly import Assembly, Batch, Row, assemble, assemble_form
from celeus.core.pools.rows.validation import (
    TEXT_RULE,
    Shape,
    Violation,
    is_number,
    is_text,
    strange_members,
)
from celeus.core.pools.table_pool import MOST_METRICS

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
    form = _Table(scale, {metric.name: metric for metric in metrics})
    return assemble_form(lines, rows, form, shape)


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows of metrics (none: of one loss) and of group columns."""

    scale: LossScale
    metrics: Mapping[str, Metric]

    def present(self, row: Row) -> Row:
        """The row without nulls, also within what it says by metric; groups become texts."""
        return _present(row)

    def faults(self, row: Row, carried: frozenset[str] | None) -> list[Violation]:
        """Violations in the row; if none, the columns it lacks or has beyond the others'."""
        violations = list(_faults(row, self.metrics))
        if violations or carried is None:
            return violations
        columns = self.carried(row)
        return [_missing(column, columns) for column in sorted(columns ^ carried)]

    def carried(self, row: Row) -> frozenset[str]:
        """The columns, by name, that the row becomes and all rows must have."""
        stems = {GROUPS: "group_"} | ({SURROGATES: "surrogate_"} if self.metrics else {})
        return frozenset(stems[field] + name for field in stems for name in row.get(field, ()))

    def plain(self, row: Row) -> Row:
        """The row without its groups, and in a pool of metrics without what it says of them."""
        aside = {GROUPS, SURROGATES, KNOWN} if self.metrics else {GROUPS}
        return {name: row[name] for name in row if name not in aside}

    def place(self, field: str, _row: Row) -> str:
        return field

    def completed(self, batch: Batch, rows: list[Row], carried: frozenset[str]) -> Batch:
        """The batch with surrogates and known losses of every metric, and values of groups."""
        columns: dict[str, list[float]] = {}
        for name in self.metrics:
            if f"surrogate_{name}" in carried:
                columns[f"surrogate_{name}"] = [row[SURROGATES][name] for row in rows]
            columns[f"known_{name}"] = [row.get(KNOWN, {}).get(name, np.nan) for row in rows]
        made = {name: np.array(values, dtype_of(name)) for name, values in columns.items()}
        groups = {name: [row[GROUPS][name] for row in rows] for name in rows[0].get(GROUPS, {})}
        return replace(batch, columns=batch.columns | made, values=groups)


def _grouped(rows: Sequence[object], shape: Shape | None) -> bool:
    named = shape is not None and bool(shape.carried)
    return named or any(isinstance(row, dict) and row.get(GROUPS) is not None for row in rows)


def _present(row: Row) -> Row:
    """The row without nulls, also within what it says by metric; groups may be whole numbers."""
    present = {name: value for name, value in row.items() if value is not None}
    for name in (SURROGATES, KNOWN, GROUPS):
        inner = present.get(name)
        if isinstance(inner, dict):
            present[name] = {member: value for member, value in inner.items() if value is not None}
    groups = present.get(GROUPS)
    if isinstance(groups, dict):
        present[GROUPS] = {
            name: str(value) if type(value) is int else value for name, value in groups.items()
        }
    return present


def _missing(column: str, columns: frozenset[str]) -> Violation:
    stem, _, name = column.partition("_")
    rule = "left out" if column in columns else "given"
    return f"{stem}s.{name}", f"{rule}, as in the items before", None


def _faults(row: Row, metrics: Mapping[str, Metric]) -> Iterator[Violation]:
    yield from _group_faults(row.get(GROUPS, {}))
    if not metrics:
        return
    yield from strange_members(row, OF_METRICS, where=" in a pool of metrics")
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

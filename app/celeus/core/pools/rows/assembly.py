"""From uploaded rows to columns: what a row must mean before it becomes an item.

A row is `{id, payload?, surrogate? | surrogates?, proxy?, target_probs?, surrogate_probs?,
prediction?, group?, weight?, known?, loss_lower?, loss_upper?, bound_reason?}`. The first good row
fixes the shape of the pool: which optional fields its items carry and how long the lists are; every
later row must have the same. Only what is stated of single losses (`known`, or bounds and their
reason)
stands in some rows and not in others. A field that is null counts as left out.

Rows are checked in batches with array operations; only a batch with a fault is gone through row
by row, to say which line, which field and which rule.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain as flatten
from itertools import compress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from celeus.core.canonical import canonical_json
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, Pool, dtype_of
from celeus.core.pools.rows.validation import (
    MAX_INT,
    MAX_SURROGATES,
    MAX_TEXT,
    STATED,
    SUM_TOLERANCE,
    WITHOUT_CLASSES,
    Fault,
    Shape,
    Violation,
    encode_payload,
    not_an_object,
    row_faults,
    stated_faults,
)
from celeus.core.pools.surrogates import from_probabilities
from celeus.core.pools.weights import LARGEST_WEIGHT, LEAST_WEIGHT

Row = dict[str, Any]
Floats = NDArray[np.float64]


class _Irregular(ValueError):
    """A batch breaks a rule somewhere; which one is found out row by row."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Good rows of one batch: parallel lists and columns, in upload order.

    ``reasons`` are why losses are known or have bounds, empty texts where nothing is said; the list
    is empty, and there are no columns of bounds, where nothing is stated of any loss. ``values``
    has the values in every group column.
    """

    lines: list[int]
    ids: list[str]
    payloads: list[bytes | None]
    columns: dict[str, NDArray[Any]]
    groups: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    values: dict[str, list[str]] = field(default_factory=dict)

    def records(self) -> Iterable[bytes]:
        """The records the items digest is chained over."""
        for name, payload in zip(self.ids, self.payloads, strict=True):
            yield b"[" + canonical_json(name) + b"," + (payload or b"null") + b"]"

    def without(self, dropped: set[str]) -> "Batch":
        """The same batch without the items of these ids."""
        keep = np.array([name not in dropped for name in self.ids], dtype=bool)
        return Batch(
            lines=list(compress(self.lines, keep)),
            ids=list(compress(self.ids, keep)),
            payloads=list(compress(self.payloads, keep)),
            columns={name: column[keep] for name, column in self.columns.items()},
            groups=list(compress(self.groups, keep)),
            reasons=list(compress(self.reasons, keep)),
            values={name: list(compress(values, keep)) for name, values in self.values.items()},
        )


@dataclass(frozen=True, slots=True)
class Assembly:
    """The result of assembling rows; ``shape`` is None while no row was good."""

    batch: Batch
    faults: list[Fault]
    shape: Shape | None


def assemble(
    lines: Sequence[int], rows: Sequence[object], scale: LossScale, shape: Shape | None
) -> Assembly:
    """Columns of the good rows and the faults of the others, by line.

    ``shape`` is that of the rows already in the pool, None before the first. Duplicates are found
    within these rows only.
    """
    if not rows:
        return Assembly(_empty(), [], shape)
    try:
        return _assemble_regular(lines, rows, scale, shape)
    except _Irregular:
        present = [without_nulls(row) for row in rows]
    try:
        return _assemble_regular(lines, present, scale, shape)
    except _Irregular:
        return _assemble_one_by_one(lines, present, scale, shape)


class RowForm(Protocol):
    """Rows that carry more than those of a plain pool: answers of systems, metrics, group columns.

    All items carry the same, as the first good row does; ``carried`` is None before it.
    """

    @property
    def scale(self) -> LossScale:
        """The loss scale of the plain rows."""

    def present(self, row: Row) -> Row:
        """The row without its nulls."""

    def faults(self, row: Row, carried: frozenset[str] | None) -> Iterable[Violation]:
        """Violations of the form's rules."""

    def carried(self, row: Row) -> frozenset[str]:
        """The fields of a good row that all items must have."""

    def plain(self, row: Row) -> Row:
        """The row of a plain pool that a good row becomes."""

    def place(self, field: str, row: Row) -> str:
        """The field of the row in which a faulty field of its plain row stands."""

    def completed(self, batch: Batch, rows: list[Row], carried: frozenset[str]) -> Batch:
        """The batch of plain rows with the columns of the form, made from ``rows``."""


def assemble_form(
    lines: Sequence[int], rows: Sequence[object], form: RowForm, shape: Shape | None
) -> Assembly:
    """Columns of the good rows of a form and the faults of the others, by line, as ``assemble``.

    1. Rows that break a rule of the form are set aside; the first good row fixes what all carry.
    2. The others are assembled as rows of a plain pool.
    3. The form's own columns are made from the rows that are good in both.
    """
    carried = None if shape is None else shape.carried
    faults: list[Fault] = []
    kept: dict[int, Row] = {}
    plain: list[object] = []
    for line, row in zip(lines, rows, strict=True):
        if not isinstance(row, dict):
            faults.append(Fault.of(line, *not_an_object(row)))
            continue
        present = form.present(row)
        violations = [Fault.of(line, *fault) for fault in form.faults(present, carried)]
        faults += violations
        if violations:
            continue
        kept[line] = present
        plain.append(form.plain(present))
        if carried is None and not row_faults(plain[-1], form.scale, None):
            carried = form.carried(present)
    done = assemble(list(kept), plain, form.scale, shape)
    faults += [
        replace(fault, field=form.place(fault.field, kept[fault.line])) for fault in done.faults
    ]
    faults.sort(key=lambda fault: fault.line)
    if done.shape is None or carried is None:
        return Assembly(done.batch, faults, done.shape)
    good = [kept[line] for line in done.batch.lines]
    batch = form.completed(done.batch, good, carried) if good else done.batch
    return Assembly(batch, faults, replace(done.shape, carried=carried))


def encode_groups(names: Sequence[str], existing: Mapping[str, int]) -> dict[str, int]:
    """Codes of all names, new ones after the known ones in order of appearance."""
    codes = dict(existing)
    for name in names:
        codes.setdefault(name, len(codes))
    return codes


def _assemble_regular(
    lines: Sequence[int], rows: Sequence[object], scale: LossScale, shape: Shape | None
) -> Assembly:
    """All rows at once; _Irregular when any of them breaks any rule."""
    if set(map(type, rows)) != {dict}:
        raise _Irregular
    items: Sequence[Row] = rows  # type: ignore[assignment]  # just checked
    expected = Shape.of_row(items[0]) if shape is None else shape
    _check_fields(items, expected, scale)
    ids = _texts([row["id"] for row in items])
    if len(set(ids)) != len(ids):
        raise _Irregular
    columns = _columns(items, scale, expected)
    reasons: list[str] = []
    if not all(map(STATED.isdisjoint, items)):
        bounds, reasons = _stated(items, scale, columns)
        columns |= bounds
    batch = Batch(
        lines=list(lines),
        ids=ids,
        payloads=_payloads(items),
        columns=columns,
        groups=_texts([row["group"] for row in items]) if expected.group else [],
        reasons=reasons,
    )
    return Assembly(batch, [], expected)


def _stated(
    rows: Sequence[Row], scale: LossScale, columns: Mapping[str, NDArray[Any]]
) -> tuple[dict[str, Floats], list[str]]:
    """Bounds of the rows' losses, and the reasons given for them."""
    lower, upper = np.full(len(rows), scale.lower), np.full(len(rows), scale.upper)
    reasons = [""] * len(rows)
    pool = Pool(len(rows), scale, columns, (), CHAIN_START)
    for place, row in enumerate(rows):
        if STATED.isdisjoint(row):
            continue
        if next(stated_faults(row, scale), None) is not None:
            raise _Irregular
        lower[place] = row.get("loss_lower", scale.lower)
        upper[place] = row.get("loss_upper", scale.upper)
        reasons[place] = row.get("bound_reason", "")
        if "known" in row:
            known = row["known"]
            loss = known.get("loss")
            if loss is None:
                loss = pool.loss_of_label(place, known["label"])
            lower[place] = upper[place] = loss
            reasons[place] = known["reason"]
    return {"loss_lower": lower, "loss_upper": upper}, reasons


def _assemble_one_by_one(
    lines: Sequence[int], rows: Sequence[object], scale: LossScale, shape: Shape | None
) -> Assembly:
    faults: list[Fault] = []
    good: list[Row] = []
    good_lines: list[int] = []
    ids: set[str] = set()
    for line, row in zip(lines, rows, strict=True):
        violations = row_faults(row, scale, shape)
        if not violations and isinstance(row, dict):
            if row["id"] in ids:
                violations = [("id", "an id no other item has", row["id"])]
            else:
                shape = shape or Shape.of_row(row)
                ids.add(row["id"])
                good.append(_with_surrogates(row))
                good_lines.append(line)
        faults += [Fault.of(line, *violation) for violation in violations]
    if not good:
        return Assembly(_empty(), faults, shape)
    return replace(_assemble_regular(good_lines, good, scale, shape), faults=faults)


def _check_fields(rows: Sequence[Row], shape: Shape, scale: LossScale) -> None:
    expected = shape.fields() | {"id"}
    if shape.surrogates:
        expected |= {"surrogate" if "surrogate" in rows[0] else "surrogates"}
    for layout in {tuple(row) for row in rows}:
        if frozenset(layout) - {"payload"} - STATED != expected:
            raise _Irregular
    probabilities = shape.target_probs or shape.surrogate_probs
    if (
        shape.surrogates > MAX_SURROGATES
        or (probabilities and scale.kind in WITHOUT_CLASSES)
        or (shape.surrogate_probs and not shape.target_probs)
        or (shape.target_probs and (shape.classes is None or shape.classes < 2))
        or (shape.prediction and scale.kind != "zero_one")
    ):
        raise _Irregular


def _columns(rows: Sequence[Row], scale: LossScale, shape: Shape) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    if shape.surrogates:
        columns |= _surrogates(rows, scale, shape)
    if shape.proxy:
        columns["proxy"] = _numbers([row["proxy"] for row in rows], scale.lower, scale.upper)
    if shape.weight:
        columns["weight"] = _numbers([row["weight"] for row in rows], LEAST_WEIGHT, LARGEST_WEIGHT)
    if shape.target_probs:
        target = _probabilities([row["target_probs"] for row in rows], shape.classes)
        other = None
        if shape.surrogate_probs:
            other = _probabilities([row["surrogate_probs"] for row in rows], shape.classes)
        columns |= from_probabilities(scale, target, other)
        columns["target_probs"] = target
    if shape.prediction:
        columns["prediction"] = _predictions([row["prediction"] for row in rows], shape.classes)
    return {
        name: np.ascontiguousarray(column, dtype=dtype_of(name)) for name, column in columns.items()
    }


def _surrogates(rows: Sequence[Row], scale: LossScale, shape: Shape) -> dict[str, Floats]:
    if "surrogate" in rows[0]:
        if shape.surrogates != 1:
            raise _Irregular
        single = [row["surrogate"] for row in rows]
        return {"surrogate.0": _numbers(single, scale.lower, scale.upper)}
    table = _table([row["surrogates"] for row in rows], shape.surrogates, scale.lower, scale.upper)
    return {f"surrogate.{column}": table[:, column] for column in range(shape.surrogates)}


def _numbers(values: list[object], lower: float, upper: float) -> Floats:
    if not set(map(type, values)) <= {int, float}:
        raise _Irregular
    try:
        numbers = np.array(values, dtype=np.float64)
    except OverflowError:
        raise _Irregular from None
    # NaN fails both comparisons.
    if not ((numbers >= lower) & (numbers <= upper)).all():
        raise _Irregular
    return numbers


def _table(values: list[Any], width: int | None, lower: float, upper: float) -> Floats:
    if set(map(type, values)) != {list} or set(map(len, values)) != {width}:
        raise _Irregular
    return _numbers(list(flatten.from_iterable(values)), lower, upper).reshape(len(values), -1)


def _probabilities(values: list[Any], classes: int | None) -> Floats:
    table = _table(values, classes, 0.0, 1.0)
    sums = table.sum(axis=1, keepdims=True)
    if (np.abs(sums - 1.0) > SUM_TOLERANCE).any():
        raise _Irregular
    # What models print is rounded: the rest of the work wants a distribution.
    normal: Floats = table / sums
    return normal


def _predictions(values: list[Any], classes: int | None) -> NDArray[np.int32]:
    last = MAX_INT if classes is None else classes - 1
    if set(map(type, values)) != {int} or min(values) < 0 or max(values) > last:
        raise _Irregular
    return np.array(values, dtype=np.int32)


def _texts(values: list[Any]) -> list[str]:
    if set(map(type, values)) != {str}:
        raise _Irregular
    joined = "".join(values)
    if "\0" in joined or min(map(len, values)) == 0 or max(map(len, values)) > MAX_TEXT:
        raise _Irregular
    try:
        joined.encode()
    except UnicodeEncodeError:
        raise _Irregular from None
    return values


def _payloads(rows: Sequence[Row]) -> list[bytes | None]:
    payloads: list[bytes | None] = []
    for row in rows:
        payload = row.get("payload")
        if payload is None:
            payloads.append(None)
            continue
        encoded = encode_payload(payload)
        if encoded is None:
            raise _Irregular
        payloads.append(encoded)
    return payloads


def without_nulls(row: object) -> object:
    """An object without its null members; whatever is no object, as it is."""
    if not isinstance(row, dict):
        return row
    return {name: value for name, value in row.items() if value is not None}


def _empty() -> Batch:
    return Batch([], [], [], {})


def _with_surrogates(row: Row) -> Row:
    """The row with a list for its one surrogate, so that rows of both spellings are alike."""
    if "surrogate" not in row:
        return row
    rest = {name: value for name, value in row.items() if name != "surrogate"}
    return rest | {"surrogates": [row["surrogate"]]}

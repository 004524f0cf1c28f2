"""A pool while rows are added to it: its columns so far, its names, and the faults of its rows."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.canonical import canonical_json
from celeus.core.interval import Interval
from celeus.core.pools.loss_bounds import Bounds
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import CHAIN_START, Pool, chain, dtype_of
from celeus.core.pools.rows.answers import assemble_lineup, assemble_pairs
from celeus.core.pools.rows.assembly import Assembly, Batch, encode_groups
from celeus.core.pools.rows.earlier import Earlier, OldItem
from celeus.core.pools.rows.tables import assemble_table
from celeus.core.pools.rows.validation import MAX_INT, Fault, Shape
from celeus.core.pools.score import Score
from celeus.core.pools.systems import AnySystems, Lineup
from celeus.core.pools.table_pool import MOST_VALUES
from celeus.core.pools.weights import LARGEST_RATIO
from celeus.errors import BadRows, InvalidValue, PoolTooLarge

FAULTS_TOLD = 100
"""Faults an answer lists; the others are only counted."""
MAX_GROUPS = 1_000
MAX_GROUP_BYTES = 96 << 10
"""Bytes of a pool's group names as JSON, which answers about it and its certificates hold."""
MAX_REASONS = 100
MOST_BYTES = 4 << 30
"""Bytes of a pool's columns: a worker that serves it holds them all in memory."""
ROWS_AT_ONCE = 10_000
"""Rows of a pool that are made into columns together."""

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements about single losses, and the items' weights.

    ``reasons`` counts known ones by reason, in the order of the reasons' numbers, those of bounds
    included; ``bounded`` is how many others have bounds of their own, ``bounds`` counts those by
    reason. ``weights`` are the least and the largest.
    """

    reasons: Mapping[str, int] = field(default_factory=dict)
    bounded: int = 0
    bounds: Mapping[str, int] = field(default_factory=dict)
    weights: tuple[float, float] | None = None

    @property
    def known(self) -> int:
        """Number of items whose loss is known."""
        return sum(self.reasons.values())

    def __bool__(self) -> bool:
        """Return whether anything is stated about losses."""
        return bool(self.reasons or self.bounded)

    @classmethod
    def of(cls, value: dict[str, Any]) -> Self:
        """Read what ``to_dict`` gave; nothing is stated in an empty object."""
        counts = (dict(value.get(name, ())) for name in ("reasons", "bounds"))
        least, largest = value.get("weights", (None, None))
        weights = None if least is None else (float(least), float(largest))
        return cls(next(counts), value.get("bounded", 0), next(counts), weights)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the database keeps no order of members."""
        values: dict[str, Any] = {}
        if self.weights is not None:
            values["weights"] = list(self.weights)
        if not self:
            return values
        reasons, bounds = ([*map(list, counts.items())] for counts in (self.reasons, self.bounds))
        values |= {"reasons": reasons, "bounded": self.bounded}
        return values | ({"bounds": bounds} if bounds else {})


class Piece(NamedTuple):
    """Parts of columns that begin at item ``start``."""

    start: int
    columns: Columns


@dataclass(slots=True)
class PoolBuilder:
    """A pool while rows are added: its size so far, and the faults of its rows.

    ``earlier`` is the judged session it is based on, if it is. ``waiting`` are the columns of items
    not yet taken away by ``pieces``; ``unstated`` items were taken away without columns of bounds,
    which came with a later one.
    """

    scale: LossScale
    named: AnySystems | None = None
    items: int = 0
    items_digest: bytes = CHAIN_START
    shape: Shape | None = None
    groups: dict[str, int] = field(default_factory=dict)
    metrics: tuple[Metric, ...] = ()
    group_columns: dict[str, dict[str, int]] = field(default_factory=dict)
    stated: Statements = field(default_factory=Statements)
    columns: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    faulty: int = 0
    most_items: int = MAX_INT
    waiting: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    waiting_from: int = 0
    unstated: int = 0
    earlier: Earlier | None = None

    def assemble(self, lines: Sequence[int], rows: Sequence[object]) -> Assembly:
        """Return rows made into items, and the faults of the others."""
        if isinstance(self.named, Lineup):
            return assemble_lineup(lines, rows, self.named, self.shape)
        if self.named is not None:
            return assemble_pairs(lines, rows, self.named, self.shape)
        return assemble_table(lines, rows, self.scale, self.metrics, self.shape)

    def compare(
        self, earlier: Earlier, lines: list[int], rows: list[object], old: Mapping[str, OldItem]
    ) -> Assembly:
        """Return the same of rows with what is carried over to them."""
        carried = earlier.carry(lines, rows, old)
        made = self.assemble(carried.lines, carried.rows)
        faults = sorted([*carried.faults, *made.faults], key=lambda fault: fault.line)
        columns = made.batch.columns | carried.columns(made.batch.lines)
        return replace(made, batch=replace(made.batch, columns=columns), faults=faults)

    def blame(self, faults: list[Fault]) -> None:
        """Count faulty lines and keep the first faults for the answer."""
        self.faulty += len({fault.line for fault in faults})
        self.faults += faults[: max(0, FAULTS_TOLD - len(self.faults))]

    def check_count(self, items: int) -> None:
        """Refuse more items than the pool may have."""
        if items > self.most_items:
            raise PoolTooLarge(
                "The pool would have too many items.",
                field="items",
                rule=f"at most {self.most_items} items, skipped rows included",
                value=items,
            )

    def check_bytes(self, batch: Batch) -> None:
        """Refuse a pool whose columns would exceed MOST_BYTES."""
        numbers = sum(column.nbytes for column in batch.columns.values()) / max(1, len(batch.ids))
        size = int(numbers * (self.items + len(batch.ids)))
        if size > MOST_BYTES:
            raise PoolTooLarge(
                "The pool would have too many numbers.",
                field="items",
                rule=f"at most {MOST_BYTES} bytes of scores and probabilities",
                value=size,
            )

    def append(self, batch: Batch) -> None:
        """Add the items of a batch; refuses too many groups and reasons, and weights far apart."""
        columns = dict(batch.columns)
        if batch.groups:
            self.groups = encode_groups(batch.groups, self.groups)
            _check_groups(self.groups)
            codes = [self.groups[name] for name in batch.groups]
            columns["group"] = np.array(codes, dtype=dtype_of("group"))
        columns |= self._codes(batch.values)
        if batch.reasons:
            columns["known"] = self._reasons(batch)
        if "loss_lower" in columns:
            if "known" not in self.columns:
                # Of the items before nothing is stated, whether they wait or are written.
                self.unstated = self.waiting_from
                waiting = _nothing_stated(self.items - self.waiting_from, self.scale)
                for name, column in waiting.items():
                    self.waiting[name] = [column]
        elif "loss_lower" in self.columns:
            columns |= _nothing_stated(len(batch.ids), self.scale)
        if "weight" in columns:
            self._check_weights(columns["weight"])
        self.columns = sorted(columns)
        for name, column in columns.items():
            self.waiting.setdefault(name, []).append(column)
        self.items_digest = chain(self.items_digest, batch.records())
        self.items += len(batch.ids)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the largest column that waits."""
        sizes = (sum(part.nbytes for part in parts) for parts in self.waiting.values())
        return max(sizes, default=0)

    def pieces(self) -> list[Piece]:
        """Parts of columns not taken away before; nothing waits afterwards."""
        pieces = []
        if self.unstated:
            pieces.append(Piece(0, _nothing_stated(self.unstated, self.scale)))
            self.unstated = 0
        columns = {name: np.concatenate(parts) for name, parts in self.waiting.items()}
        pieces.append(Piece(self.waiting_from, columns))
        self.waiting_from = self.items
        self.waiting = {}
        return pieces

    def _codes(self, values: Mapping[str, list[str]]) -> dict[str, NDArray[Any]]:
        """The columns of codes of the values in the group columns; notes values that are new."""
        columns = {}
        for name, texts in values.items():
            codes_of = encode_groups(texts, self.group_columns.get(name, {}))
            if len(codes_of) > MOST_VALUES:
                raise InvalidValue(
                    f"The group column {name} has too many different values; what tells items apart"
                    " belongs in their payload.",
                    field=f"groups.{name}",
                    rule=f"at most {MOST_VALUES} different values",
                    value=len(codes_of),
                )
            self.group_columns[name] = codes_of
            column = f"group_{name}"
            columns[column] = np.array([codes_of[text] for text in texts], dtype=dtype_of(column))
        names = [[name, list(values)] for name, values in self.group_columns.items()]
        if values and (size := len(canonical_json(names))) > MAX_GROUP_BYTES:
            raise InvalidValue(
                "The group columns have too many and too long values.",
                field="groups",
                rule=f"together at most {MAX_GROUP_BYTES} bytes of JSON",
                value=size,
            )
        return columns

    def _check_weights(self, weight: NDArray[np.float64]) -> None:
        """Refuse weights that are too far apart for a float to hold their sums."""
        least, largest = self.stated.weights or (np.inf, 0.0)
        least, largest = min(least, float(weight.min())), max(largest, float(weight.max()))
        if largest > LARGEST_RATIO * least:
            raise InvalidValue(
                f"The weights of the items go from {least:g} to {largest:g}: that is too far"
                " apart.",
                field="weight",
                rule=f"at most {LARGEST_RATIO:g} times the least weight of the pool",
                value=largest,
            )
        self.stated = replace(self.stated, weights=(least, largest))

    def _reasons(self, batch: Batch) -> NDArray[np.int32]:
        """The numbers of the reasons, 0 where there is none; counts them."""
        known, bounded = np.array(batch.reasons) != "", np.zeros(len(batch.ids), dtype=np.bool_)
        if "loss_lower" in batch.columns:
            bounds = Bounds(batch.columns["loss_lower"], batch.columns["loss_upper"])
            known = bounds.known
            scale = Interval(self.scale.lower, self.scale.upper)
            bounded = ~known & ~bounds.of_scale(scale)
        # Bounds as wide as the scale state nothing, whatever their reason.
        reasons = [
            reason if stated else ""
            for reason, stated in zip(batch.reasons, known | bounded, strict=True)
        ]
        counts, of_bounds = dict(self.stated.reasons), Counter(self.stated.bounds)
        for reason, is_known in zip(reasons, known.tolist(), strict=True):
            if reason:
                counts[reason] = counts.get(reason, 0) + is_known
                of_bounds[reason] += not is_known
        if len(counts) > MAX_REASONS:
            raise InvalidValue(
                "The items name too many reasons why losses are known or have bounds.",
                field="known.reason",
                rule=f"at most {MAX_REASONS} different texts",
                value=len(counts),
            )
        total = self.stated.bounded + int(bounded.sum())
        self.stated = replace(self.stated, reasons=counts, bounded=total, bounds=+of_bounds)
        numbers = {reason: number for number, reason in enumerate(("", *counts))}
        return np.array([numbers[reason] for reason in reasons], dtype=dtype_of("known"))


@dataclass(frozen=True, slots=True)
class Upload:
    """A pool made of rows in memory, with ids and payloads (canonical JSON) of its items."""

    pool: Pool
    ids: list[str]
    payloads: list[bytes | None]


def pool_of_rows(rows: Sequence[object], growth: PoolBuilder, score: Score | None = None) -> Upload:
    """The pool of all rows, each as an upload has it; refuses bad rows, all of them by line."""
    growth.check_count(len(rows))
    parts = (
        (start, rows[start : start + ROWS_AT_ONCE]) for start in range(0, len(rows), ROWS_AT_ONCE)
    )
    batches = ((range(start + 1, start + len(part) + 1), part) for start, part in parts)
    return pool_of_batches(batches, growth, score)


def pool_of_batches(
    batches: Iterable[tuple[Sequence[int], Sequence[object]]],
    growth: PoolBuilder,
    score: Score | None = None,
) -> Upload:
    """The same of rows that come batch by batch, with the numbers of their lines."""
    ids: dict[str, None] = {}
    payloads: list[bytes | None] = []
    for lines, rows in batches:
        growth.check_count(growth.items + len(rows))
        made = growth.assemble(lines, rows)
        growth.shape = made.shape
        rule = "an id no other item has"
        twice = [
            Fault.of(line, "id", rule, name)
            for line, name in zip(made.batch.lines, made.batch.ids, strict=True)
            if name in ids
        ]
        growth.blame(made.faults + twice)
        if growth.faulty:
            continue
        growth.check_bytes(made.batch)
        growth.append(made.batch)
        ids |= dict.fromkeys(made.batch.ids)
        payloads += made.batch.payloads
    if growth.faulty:
        raise BadRows(
            f"{growth.faulty} of the rows cannot become items; nothing was kept.",
            errors=[fault.members() for fault in growth.faults],
            total_errors=growth.faulty,
        )
    columns: dict[str, list[NDArray[Any]]] = {}
    for piece in growth.pieces():
        for name, column in piece.columns.items():
            column.flags.writeable = False
            columns.setdefault(name, []).append(column)
    pool = Pool(
        items=growth.items,
        scale=growth.scale,
        columns={name: parts[0] for name, parts in columns.items()},
        groups=tuple(growth.groups),
        items_digest=growth.items_digest,
        reasons=tuple(growth.stated.reasons),
        named=growth.named,
        score=score,
        metrics=growth.metrics,
        group_columns={name: tuple(values) for name, values in growth.group_columns.items()},
    )
    return Upload(pool, list(ids), payloads)


def _check_groups(names: Collection[str]) -> None:
    """Refuse more names than an answer about the pool can hold."""
    if len(names) <= MAX_GROUPS and len(canonical_json(list(names))) <= MAX_GROUP_BYTES:
        return
    raise InvalidValue(
        "The items name too many groups, or too long ones; what tells items apart belongs in"
        " their payload.",
        field="group",
        rule=f"at most {MAX_GROUPS} different names, together at most {MAX_GROUP_BYTES} bytes of"
        " JSON",
        value=len(names),
    )


def _nothing_stated(items: int, scale: LossScale) -> dict[str, NDArray[Any]]:
    """Columns of items of whose losses nothing is stated."""
    return {
        "loss_lower": np.full(items, scale.lower),
        "loss_upper": np.full(items, scale.upper),
        "known": np.zeros(items, dtype=dtype_of("known")),
    }

"""The table: items whose judgement is a vector of losses, and the columns that group them.

See docs/evidence/method.md#17-several-metrics-on-one-stream. All of it is known
before the first label.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import Pool
from celeus.core.pools.score import Score
from celeus.core.pools.strata import MOST_PROXIES, UNKNOWN
from celeus.core.pools.surrogates import Scores, scores
from celeus.errors import InvalidValue

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

MOST_METRICS = 20
MOST_VALUES = 200
MOST_ATOMS = 1000
LEAST_GROUP = 30
"""Least number of items of a group that gets bets; smaller ones are nearly judged whole anyway."""
OTHER = "other"
GROUP = "group"
"""Name of the group column of items that have `group` alone."""
LOSS = "loss"
"""Name of the one metric of a pool whose loss has no name."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A categorical column: the names of its values, and the value of every item by number."""

    name: str
    values: tuple[str, ...]
    code: Codes

    @classmethod
    def of(cls, name: str, value: Sequence[object] | NDArray[np.str_]) -> Self:
        """Return a column from one value per item; raises InvalidValue above MOST_VALUES values."""
        text = np.asarray(value).astype(np.str_)
        values, code = np.unique(text, return_inverse=True)
        if not 1 <= values.size <= MOST_VALUES:
            raise InvalidValue(
                f"The column {name} has {values.size} values: too many to be groups.",
                field=f"groups.{name}",
                rule=f"1 to {MOST_VALUES} different values",
                value=int(values.size),
            )
        return cls(name, tuple(values.tolist()), code.astype(np.int32))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of items of every value."""
        return np.bincount(self.code, minlength=len(self.values))

    def merged(self) -> "Column":
        """Return the column with all values of fewer than 30 items merged into one, called other.

        A single value that small is not changed.
        """
        small = self.sizes < LEAST_GROUP
        if small.sum() < 2:
            return self
        name = OTHER
        while name in self.values:
            name += "_"
        kept = [value for value, rare in zip(self.values, small, strict=True) if not rare]
        number = np.cumsum(~small) - 1
        number[small] = len(kept)
        return Column(self.name, (*kept, name), number[self.code].astype(np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Items, their metrics and columns, surrogates and known losses; shapes [N, C].

    ``surrogate`` is on the unit scale of each metric; ``known`` holds the losses that are known, on
    the unit scale, and NaN for the others. ``scores`` are those that strata are cut by.
    """

    metrics: tuple[Metric, ...]
    surrogate: Floats
    known: Floats
    scores: Scores
    columns: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        names = [metric.name for metric in self.metrics]
        _check_names("metrics", names, MOST_METRICS)
        _check_names("groups", [column.name for column in self.columns], MOST_METRICS, least=0)

    @classmethod
    def of(
        cls,
        metrics: Sequence[Metric],
        scores: Sequence[Scores],
        columns: Sequence[Column] = (),
        known: Floats | None = None,
    ) -> Self:
        """Return a table from the scores of every metric; ``known`` are losses on their scales."""
        items = scores[0].surrogate.size
        lower, width = (
            np.array([getattr(metric.scale, name) for metric in metrics])
            for name in ("lower", "width")
        )
        unit = (np.stack([score.surrogate for score in scores], axis=1) - lower) / width
        unit = np.clip(unit, 0.0, 1.0)
        unit[:, np.ptp(unit, axis=0) == 0.0] = UNKNOWN
        losses = np.full(unit.shape, np.nan) if known is None else (known - lower) / width
        proxies = (score.proxy for score in scores if score.proxy is not None)
        proxy = next((values for values in proxies if np.unique(values).size <= MOST_PROXIES), None)
        if len(metrics) == 1:
            # An ordinary session makes its strata from the same scores.
            columns_of = scores[0].columns
            on_unit_scale = None if columns_of is None else (columns_of - lower) / width
            both = replace(
                scores[0], surrogate=unit[:, 0], columns=on_unit_scale, lower=None, upper=None
            )
        else:
            both = Scores(unit.mean(axis=1), np.zeros(items), proxy, unit)
        return cls(tuple(metrics), unit, losses, both, tuple(columns))

    @property
    def items(self) -> int:
        """Number of items, N."""
        return int(self.surrogate.shape[0])

    @property
    def drawable(self) -> Mask:
        """Mask of the items with a loss that is not known, shape [N]."""
        return np.asarray(np.isnan(self.known).any(axis=1))

    @property
    def atoms(self) -> Indices:
        """Number of every item's combination of values, shape [N]."""
        if not self.columns:
            return np.zeros(self.items, dtype=np.intp)
        codes = np.stack([column.code for column in self.columns], axis=1)
        return np.unique(codes, axis=0, return_inverse=True)[1].ravel()

    def check_atoms(self) -> None:
        """Raise InvalidValue for columns with too many combinations of values."""
        count = int(self.atoms.max()) + 1
        if count > MOST_ATOMS:
            raise InvalidValue(
                f"The columns have {count} different combinations of values.",
                field="groups",
                rule=f"columns that occur in at most {MOST_ATOMS} combinations; name fewer of them",
                value=count,
            )

    def merged(self, kept: str | None = None) -> "Table":
        """Return the table with small groups merged in every column but the one ``kept``."""
        columns = (column if column.name == kept else column.merged() for column in self.columns)
        return replace(self, columns=tuple(columns))

    def with_surrogate(self, surrogate: Floats) -> "Table":
        """Return the table with this surrogate of its one metric, on the unit scale."""
        scores = replace(self.scores, surrogate=surrogate)
        return replace(self, surrogate=surrogate[:, None], scores=scores)


def metrics_of(pool: Pool) -> tuple[Metric, ...]:
    """Return the metrics of a pool; an ordinary pool has its loss as the only one."""
    return pool.metrics or (sole_metric(pool.scale, pool.score),)


def sole_metric(scale: LossScale, score: Score | None) -> Metric:
    """Return the loss of a pool without metrics, named by its score."""
    return Metric(LOSS if score is None else score.name, scale, score)


def table_of(pool: Pool, columns: Sequence[str] = ()) -> Table:
    """Return the table of a pool with some of its group columns.

    Raises InvalidValue for unknown columns and for pools that tables do not support.
    """
    _check_pool(pool)
    groups = [_column(pool, name) for name in columns]
    metrics = metrics_of(pool)
    if not pool.metrics:
        known = np.full((pool.items, 1), np.nan)
        if pool.bounds is not None:
            known[:, 0] = np.where(pool.bounds.known, pool.bounds.lower, np.nan)
        return Table.of(metrics, [scores(pool)], groups, known)
    given, none = [], np.zeros(pool.items)
    nothing = np.full(pool.items, np.nan)
    for metric in metrics:
        lowest = np.full(pool.items, metric.scale.lower)
        given.append(Scores(pool.columns.get(f"surrogate_{metric.name}", lowest), none))
    known = np.stack(
        [pool.columns.get(f"known_{metric.name}", nothing) for metric in metrics], axis=1
    )
    return Table.of(metrics, given, groups, known)


def _check_pool(pool: Pool) -> None:
    """Raise InvalidValue for a pool with features that claims about groups do not support."""
    bounds = pool.bounds
    loose = bounds is not None and not (bounds.known | bounds.of_scale(pool.scale.interval)).all()
    reasons = {
        "several systems": pool.named is not None,
        "weights": pool.weights is not None,
        "a session it is based on": pool.based_on is not None,
        "bounds of losses that are not known": loose,
    }
    for feature, holds in reasons.items():
        if holds:
            raise InvalidValue(
                f"Claims about groups and metrics are made on pools without {feature}.",
                field="pool_id",
                rule=f"a pool without {feature}, or a session without `groups`",
                value=feature,
            )


def _column(pool: Pool, name: str) -> Column:
    values, code = pool.group_columns.get(name), pool.columns.get(f"group_{name}")
    if values is None and name == GROUP and "group" in pool.columns:
        values, code = pool.groups, pool.columns["group"]
    if values is None or code is None:
        available = [*pool.group_columns, *([GROUP] if "group" in pool.columns else [])]
        raise InvalidValue(
            f"The items have no group column {name}.",
            field="groups",
            rule="of " + ", ".join(available)
            if available
            else "left out: the items have no groups",
            value=name,
        )
    return Column.of(name, np.array(values)[code])


def _check_names(field: str, names: list[str], most: int, least: int = 1) -> None:
    if not least <= len(names) <= most:
        raise InvalidValue(
            f"There are {len(names)} {field}.",
            field=field,
            rule=f"{least} to {most}",
            value=len(names),
        )
    if len(set(names)) != len(names) or not all(names):
        raise InvalidValue(
            f"Two of the {field} have one name, or one has none.",
            field=field,
            rule="a name of its own for each",
            value=names,
        )

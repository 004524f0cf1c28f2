"""The table: items whose judgement is a vector of losses, and the columns that group them.

See docs/method.md#17-several-metrics-on-one-stream. All of it is known before the first label.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.losses import LossScale
from celeus.core.pools.strata import MOST_PROXIES, UNKNOWN
from celeus.core.pools.surrogates import Scores
from celeus.errors import InvalidValue

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

MOST_METRICS = 20
MOST_VALUES = 200
MOST_ATOMS = 1000
LEAST_GROUP = 30
"""Items a group needs to be worth bets: below, an interval takes most of the group anyway."""
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Metric:
    """A loss by its name, and its scale."""

    name: str
    scale: LossScale


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A categorical column: the names of its values, and the value of every item by number."""

    name: str
    values: tuple[str, ...]
    code: Codes

    @classmethod
    def of(cls, name: str, value: Sequence[object] | NDArray[np.str_]) -> Self:
        """A column from one value an item, as text; refuses more values than anybody reads."""
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
        """Items of every value."""
        return np.bincount(self.code, minlength=len(self.values))

    def merged(self) -> "Column":
        """The column with all values of fewer than 30 items as one, called other.

        A value that alone is so small stays what it is.
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
    """Items, their metrics and columns, and what is known of every loss; shapes [N, C].

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
        """A table from the scores of every metric; ``known`` are losses on their own scales."""
        items = scores[0].surrogate.size
        lower, width = (
            np.array([getattr(metric.scale, name) for metric in metrics])
            for name in ("lower", "width")
        )
        unit = (np.stack([one.surrogate for one in scores], axis=1) - lower) / width
        unit = np.clip(unit, 0.0, 1.0)
        unit[:, np.ptp(unit, axis=0) == 0.0] = UNKNOWN
        losses = np.full(unit.shape, np.nan) if known is None else (known - lower) / width
        proxies = (one.proxy for one in scores if one.proxy is not None)
        proxy = next((one for one in proxies if np.unique(one).size <= MOST_PROXIES), None)
        if len(metrics) == 1:
            # What an ordinary session cuts its strata by.
            columns_of = scores[0].columns
            own = None if columns_of is None else (columns_of - lower) / width
            both = replace(scores[0], surrogate=unit[:, 0], columns=own, lower=None, upper=None)
        else:
            both = Scores(unit.mean(axis=1), np.zeros(items), proxy, unit)
        return cls(tuple(metrics), unit, losses, both, tuple(columns))

    @property
    def items(self) -> int:
        """Number of items, N."""
        return int(self.surrogate.shape[0])

    @property
    def drawable(self) -> Mask:
        """The items of which any loss is not known, shape [N]."""
        return np.asarray(np.isnan(self.known).any(axis=1))

    @property
    def atoms(self) -> Indices:
        """The number of every item's combination of values, shape [N]."""
        if not self.columns:
            return np.zeros(self.items, dtype=np.intp)
        codes = np.stack([column.code for column in self.columns], axis=1)
        return np.unique(codes, axis=0, return_inverse=True)[1].ravel()

    def check_atoms(self) -> None:
        """Refuse columns that occur in too many combinations."""
        count = int(self.atoms.max()) + 1
        if count > MOST_ATOMS:
            raise InvalidValue(
                f"The columns have {count} different combinations of values.",
                field="groups",
                rule=f"columns that occur in at most {MOST_ATOMS} combinations; name fewer of them",
                value=count,
            )

    def merged(self) -> "Table":
        """The table with small groups merged in every column."""
        return replace(self, columns=tuple(column.merged() for column in self.columns))


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

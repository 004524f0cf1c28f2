"""The record of a pool."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from sqlalchemy import Row

from celeus.core.pools.loss_bounds import Basis
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.named_levels import Level
from celeus.core.pools.pool import Pool
from celeus.core.pools.rows.growth import Statements
from celeus.core.pools.score import Score, default_score
from celeus.core.pools.systems import AnySystems, Systems, systems_from
from celeus.operations.pools.columns import Columns


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """A pool as stored, without its items."""

    project_id: UUID
    pool_id: UUID
    name: str
    scale: LossScale
    sealed: bool
    items: int
    classes: int | None
    columns: tuple[str, ...]
    groups: tuple[str, ...]
    stated: Statements
    named: AnySystems | None
    based_on: Basis | None
    declared: Score | None
    metrics: tuple[Metric, ...]
    levels: tuple[Level, ...]
    group_columns: Mapping[str, tuple[str, ...]]
    intake: Mapping[str, Any] | None
    items_digest: bytes
    digest: str | None
    created_at: datetime
    sealed_at: datetime | None
    archived: bool

    @property
    def systems(self) -> Systems | None:
        """The two systems that are compared."""
        return self.named if isinstance(self.named, Systems) else None

    @property
    def score(self) -> Score:
        """Name and direction of the mean of its losses."""
        return self.declared or default_score(self.scale, self.named)

    @property
    def single_scale(self) -> LossScale | None:
        """Scale of the one loss that a judgement gives; None where there are metrics."""
        return None if self.metrics else self.scale

    @property
    def single_score(self) -> Score | None:
        """Name of the mean of that one loss; None where there are metrics."""
        return None if self.metrics else self.score

    @classmethod
    def of(cls, row: Row[Any]) -> Self:
        """The record in a row of `pools`."""
        return cls(
            project_id=row.project_id,
            pool_id=row.pool_id,
            name=row.name,
            scale=LossScale(row.loss_kind, row.loss_lower, row.loss_upper),
            sealed=row.sealed,
            items=row.items,
            classes=row.classes,
            columns=tuple(row.columns),
            groups=tuple(row.groups),
            stated=Statements.of(row.stated),
            named=None if row.systems is None else systems_from(row.systems),
            based_on=None if row.based_on is None else Basis(**row.based_on),
            declared=None if row.score is None else Score(**row.score),
            metrics=tuple(map(Metric.from_dict, row.metrics or ())),
            levels=tuple(map(Level.from_dict, row.levels or ())),
            group_columns={name: tuple(values) for name, values in row.group_columns or ()},
            intake=row.intake,
            items_digest=bytes(row.items_digest),
            digest=None if row.digest is None else bytes(row.digest).hex(),
            created_at=row.created_at,
            sealed_at=row.sealed_at,
            archived=row.archived_at is not None,
        )

    def pool(self, columns: Columns) -> Pool:
        """The pool with all its numbers."""
        return Pool(
            items=self.items,
            scale=self.scale,
            columns=columns,
            groups=self.groups,
            items_digest=self.items_digest,
            reasons=tuple(self.stated.reasons),
            named=self.named,
            based_on=self.based_on,
            score=self.declared,
            metrics=self.metrics,
            group_columns=self.group_columns,
        )

"""The record of a pool."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from sqlalchemy import Row

from celeus.core.pools.losses import LossScale


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
    items_digest: bytes
    digest: str | None
    created_at: datetime
    sealed_at: datetime | None

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
            items_digest=bytes(row.items_digest),
            digest=None if row.digest is None else bytes(row.digest).hex(),
            created_at=row.created_at,
            sealed_at=row.sealed_at,
        )

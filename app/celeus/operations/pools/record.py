"""The record of a pool."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from sqlalchemy import Row

from celeus.core.pools.losses import LossScale
from celeus.core.pools.systems import Systems


@dataclass(frozen=True, slots=True)
class Stated:
    """What is stated of single losses, and of how much the items count.

    ``reasons`` counts known ones by reason, in the order of the reasons' numbers; ``bounded`` is
    how many others have bounds of their own. ``weights`` are the least and the largest.
    """

    reasons: Mapping[str, int] = field(default_factory=dict)
    bounded: int = 0
    weights: tuple[float, float] | None = None

    @property
    def known(self) -> int:
        """Number of items whose loss is known."""
        return sum(self.reasons.values())

    @classmethod
    def of(cls, value: dict[str, Any]) -> Self:
        """What ``to_dict`` gave; nothing is stated in an empty object."""
        least, largest = value.get("weights", (None, None))
        weights = None if least is None else (float(least), float(largest))
        return cls(dict(value.get("reasons", ())), value.get("bounded", 0), weights)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the database keeps no order of members."""
        values = {} if self.weights is None else {"weights": list(self.weights)}
        if not self.reasons and not self.bounded:
            return values
        reasons = [list(pair) for pair in self.reasons.items()]
        return values | {"reasons": reasons, "bounded": self.bounded}


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
    stated: Stated
    systems: Systems | None
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
            stated=Stated.of(row.stated),
            systems=None if row.systems is None else Systems.from_dict(row.systems),
            items_digest=bytes(row.items_digest),
            digest=None if row.digest is None else bytes(row.digest).hex(),
            created_at=row.created_at,
            sealed_at=row.sealed_at,
        )

"""The record of a pool, and its numeric columns, stored as little-endian bytes beside its items.

One row of `chunks` holds some hundred thousand items of one column, so that a million scores come
back in one read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Self
from uuid import UUID

import numpy as np
from anyio import to_thread
from numpy.typing import NDArray
from sqlalchemy import Row, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.pools.loss_bounds import Basis
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.pool import MATRICES, Pool
from celeus.core.pools.rows.growth import Statements
from celeus.core.pools.score import Level, Score, default_score
from celeus.core.pools.systems import AnySystems, Systems, systems_from
from celeus.store.database import raw_connection
from celeus.store.tables import chunks

CHUNK_BYTES = 1 << 20
SMALL_CHUNK_ITEMS = 4096

Columns = Mapping[str, NDArray[Any]]


async def write_chunks(
    db: AsyncConnection, project_id: UUID, pool_id: UUID, columns: Columns, *, start: int
) -> None:
    """Write parts of columns that begin at item ``start``."""
    raw = raw_connection(db)
    async with raw.cursor() as cursor:
        for name, column in columns.items():
            for offset, part in _pieces(column):
                place = (project_id, pool_id, name, start + offset)
                await cursor.execute(
                    'INSERT INTO chunks (project_id, pool_id, "column", start, count, dtype, data) '
                    "VALUES (%s, %s, %s, %s, %s, %s, %b)",
                    (*place, len(part), part.dtype.str, part.tobytes()),
                )


async def read_chunks(db: AsyncConnection, pool_id: UUID, items: int) -> Columns:
    """All columns of the pool, whole and read-only; matrices have a row for every item."""
    raw = raw_connection(db)
    # Binary results: as text every byte would travel as two.
    async with raw.cursor(binary=True) as cursor:
        await cursor.execute(
            'SELECT "column", dtype, data FROM chunks WHERE pool_id = %s ORDER BY "column", start',
            (pool_id,),
        )
        rows = await cursor.fetchall()
    return await to_thread.run_sync(_join, rows, items)


async def gather_small_chunks(
    db: AsyncConnection, project_id: UUID, pool_id: UUID, columns: Columns, items: int
) -> None:
    """Rewrite the columns where many small uploads have left many small chunks."""
    count = select(func.count()).select_from(chunks).where(chunks.c.pool_id == pool_id)
    pieces = (await db.execute(count)).scalar_one() / max(1, len(columns))
    if pieces <= 1 or items / pieces >= SMALL_CHUNK_ITEMS:
        return
    await db.execute(delete(chunks).where(chunks.c.pool_id == pool_id))
    await write_chunks(db, project_id, pool_id, columns, start=0)


def _pieces(column: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Parts of a column of at most about CHUNK_BYTES, with the index each begins at."""
    step = max(1, CHUNK_BYTES * len(column) // column.nbytes)
    for start in range(0, len(column), step):
        yield start, column[start : start + step]


def _join(rows: Sequence[tuple[str, str, bytes]], items: int) -> Columns:
    parts: dict[str, list[bytes]] = {}
    dtypes: dict[str, str] = {}
    for name, dtype, data in rows:
        parts.setdefault(name, []).append(data)
        dtypes[name] = dtype
    # An array over bytes is read-only by itself.
    flat = {
        name: np.frombuffer(b"".join(pieces), dtype=dtypes[name]) for name, pieces in parts.items()
    }
    return MappingProxyType(
        {
            name: array.reshape(items, -1) if name in MATRICES else array
            for name, array in flat.items()
        }
    )


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

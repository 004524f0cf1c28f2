"""Numeric columns of a pool, stored as little-endian bytes beside its items.

One row of `chunks` holds some hundred thousand items of one column, so that a million scores come
back in one read.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

import numpy as np
from anyio import to_thread
from numpy.typing import NDArray
from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.pools.pool import MATRICES
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

"""Mappings of columns to roles: what a project said of a file's columns holds for the next one."""

import hashlib
from collections.abc import Mapping

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from celeus.core.canonical import canonical_json
from celeus.operations.runtime.context import Context
from celeus.store.tables import mappings

MOST_REMEMBERED = 50
"""Most mappings of a project; those used longest ago are forgotten."""
MOST_BYTES = 1 << 15


async def remembered(context: Context) -> list[dict[str, str]]:
    """Mappings of the project, the one used last first."""
    query = select(mappings.c.mapping)
    query = query.where(mappings.c.project_id == context.project_id)
    async with context.transaction() as db:
        found = await db.execute(query.order_by(mappings.c.used_at.desc()))
        return [dict(mapping) for mapping in found.scalars()]


async def remember(context: Context, mapping: Mapping[str, str]) -> None:
    """Keep the roles of these columns for the next file that has the same."""
    if len(canonical_json(dict(mapping))) > MOST_BYTES:
        return
    digest = hashlib.sha256(canonical_json(sorted(mapping))).digest()
    row = {"project_id": context.project_id, "columns_digest": digest, "mapping": dict(mapping)}
    kept = insert(mappings).values(row)
    kept = kept.on_conflict_do_update(
        index_elements=["project_id", "columns_digest"],
        set_={"mapping": kept.excluded.mapping, "used_at": func.now()},
    )
    of_project = mappings.c.project_id == context.project_id
    newest = (
        select(mappings.c.columns_digest)
        .where(of_project)
        .order_by(mappings.c.used_at.desc())
        .limit(MOST_REMEMBERED)
    )
    async with context.transaction() as db:
        await db.execute(kept)
        await db.execute(
            delete(mappings).where(of_project, mappings.c.columns_digest.not_in(newest))
        )

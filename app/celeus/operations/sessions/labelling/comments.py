"""Comments on judgements: kept beside the ledger, so that they can be changed and erased.

One of each key on a round, of a panel one of each rater of it; the last one counts.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.session.outcome import Judgement
from celeus.operations.runtime.context import Context, one_snapshot
from celeus.operations.sessions.history import check_session, document_of
from celeus.operations.sessions.journal import Journal
from celeus.operations.sessions.ledger import with_kinds


async def keep_comments(
    db: AsyncConnection,
    journal: Journal,
    judgements: Iterable[Judgement],
    worker: str,
    rater: str | None,
) -> None:
    """Keep what the caller's key adds to its judgements, in place of what it added before.

    An empty comment erases that. ``rater`` is that of a panel for whom ``worker`` judged.
    """
    rows = [
        {
            "project_id": journal.project_id,
            "session_id": journal.session_id,
            "round": judgement.round,
            "key_id": journal.key,
            "rater": rater or "",
            "worker": worker,
            "comment": judgement.comment,
        }
        for judgement in judgements
        if judgement.comment is not None
    ]
    if kept := [row for row in rows if row["comment"]]:
        await db.execute(_KEEP, kept)
    if erased := [row for row in rows if not row["comment"]]:
        await db.execute(_UNSAY, erased)


async def list_comments(
    context: Context, session_id: UUID, after: int, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    """The comments on rounds after ``after``, by round, and the last one's if more may follow.

    All of a round come together: a page may have more than ``limit``.
    """
    async with context.transaction() as db:
        await one_snapshot(db)
        await document_of(db, context.project_id, session_id)
        params = {"session_id": session_id, "after": after, "limit": limit}
        rows = [dict(row) for row in (await db.execute(_LIST, params)).mappings()]
    return rows, rows[-1]["round"] if len(rows) >= limit else None


async def erase_comments(
    context: Context, session_id: UUID, round_: int | None, key_id: str | None
) -> int:
    """Erase comments for good, on a round, of a key, or both; how many there were."""
    async with context.transaction() as db:
        # Whoever judges meanwhile waits for this lock, or is seen
        await check_session(db, context.project_id, session_id, "FOR UPDATE")
        chosen = {"session_id": session_id, "round": round_, "key_id": key_id}
        return len((await db.execute(_ERASE, chosen)).all())


_KEEP = text(
    """
    INSERT INTO comments (project_id, session_id, round, key_id, rater, worker, comment)
    VALUES (:project_id, :session_id, :round, :key_id, :rater, :worker, :comment)
    ON CONFLICT (session_id, round, key_id, rater)
    DO UPDATE SET worker = excluded.worker, comment = excluded.comment, at = excluded.at
    WHERE comments.comment <> excluded.comment
    """
)
_UNSAY = text(
    """
    DELETE FROM comments WHERE session_id = :session_id AND round = :round AND key_id = :key_id
        AND rater = :rater
    """
)
# Draws and items are sought one by one: a join may read a whole pool that statistics do not know
_LIST = with_kinds(
    """
    SELECT comments.round, comments.comment, comments.key_id AS key, keys.name AS author,
        comments.worker, nullif(comments.rater, '') AS rater, comments.at,
        (SELECT id FROM items WHERE pool_id = sessions.pool_id AND index = (
            SELECT item FROM events WHERE session_id = comments.session_id
                AND round = comments.round AND kind = :draw)) AS item
    FROM comments JOIN sessions USING (session_id) LEFT JOIN keys ON keys.key_id = comments.key_id
    WHERE comments.session_id = :session_id AND comments.round > :after
    ORDER BY comments.round FETCH FIRST :limit ROWS WITH TIES
    """
)
_ERASE = text(
    """
    DELETE FROM comments WHERE session_id = :session_id
        AND (CAST(:round AS int) IS NULL OR round = :round)
        AND (CAST(:key_id AS text) IS NULL OR key_id = :key_id)
    RETURNING round
    """
)

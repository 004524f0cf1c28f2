"""Instructions for those who judge: of a pool, or of a session in their place.

They are no part of plan or digest. Every version is kept with its time, so that a report can say
whether judgements were given under several of them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from celeus.errors import PoolNotFound, SessionNotFound
from celeus.operations.runtime.context import Context
from celeus.operations.sessions.ledger import with_kinds

LONGEST_BEGINNING = 160
_BLOCK = re.compile(r"^(?:\s|#{1,6}\s|>|[-*+]\s|\d+[.)]\s|\|)*")
"""Marks that begin a heading, a quotation, or a row of a list or a table in Markdown."""
_INLINE = re.compile(
    r"!?\[(?P<words>[^\[\]]*)\]\([^()]*\)|[`|]+|\*+(?=\S)|(?<=\S)\*+|(?<!\w)_+|_+(?!\w)"
)
"""Links, of which the words stay, and marks within a line; each is found or not without going back
over the line, which may be long."""


@dataclass(frozen=True, slots=True)
class Version:
    """Instructions as they were from ``at`` on; of the session, or of its pool.

    ``text`` None: there are none any more, and a session has those of its pool.
    """

    of_session: bool
    text: str | None
    key_id: str | None
    at: datetime

    @property
    def of(self) -> Literal["pool", "session"]:
        """The kind of object they belong to."""
        return "session" if self.of_session else "pool"


@dataclass(frozen=True, slots=True)
class Instructions:
    """The versions, oldest first, and when the first and last judgements came, if any."""

    versions: tuple[Version, ...]
    first_judgement: datetime | None = None
    last_judgement: datetime | None = None

    @property
    def now(self) -> Version | None:
        """The version that is shown, None for none."""
        of_session = [version for version in self.versions if version.of_session][-1:]
        of_pool = [version for version in self.versions if not version.of_session][-1:]
        return next((version for version in of_session + of_pool if version.text is not None), None)

    @property
    def text(self) -> str | None:
        """The Markdown that is shown, None for none."""
        return None if self.now is None else self.now.text

    @property
    def of(self) -> Literal["pool", "session"] | None:
        """The kind of object whose instructions are shown; None if there are none."""
        return None if self.now is None else self.now.of

    @property
    def late_changes(self) -> list[datetime]:
        """The times between two judgements at which the text shown was replaced by another."""
        first, last = self.first_judgement, self.last_judgement
        if first is None or last is None:
            return []
        return [time for time in _changes(self.versions) if first < time < last]


def _changes(versions: Iterable[Version]) -> Iterable[datetime]:
    of_session: str | None = None
    of_pool: str | None = None
    for version in versions:
        before = of_pool if of_session is None else of_session
        if version.of_session:
            of_session = version.text
        else:
            of_pool = version.text
        after = of_pool if of_session is None else of_session
        if after != before:
            yield version.at


def beginning(markdown: str) -> str | None:
    """The first line with words, without its Markdown marks; None where there is none."""
    for line in markdown.splitlines():
        words = _INLINE.sub(lambda mark: mark["words"] or "", _BLOCK.sub("", line)).strip()
        if any(character.isalnum() for character in words):
            short = words[:LONGEST_BEGINNING].rsplit(" ", 1)[0]
            return words if len(words) <= LONGEST_BEGINNING else f"{short}…"
    return None


async def keep_instructions(
    db: AsyncConnection,
    context: Context,
    pool_id: UUID,
    session_id: UUID | None,
    markdown: str | None,
) -> None:
    """Keep a version of the instructions of a pool, or of a session of it; the same is none."""
    params = {
        "instructions_id": uuid7(),
        "project_id": context.project_id,
        "pool_id": pool_id,
        "session_id": session_id,
        "text": markdown or None,
        "key_id": context.key_id,
    }
    await db.execute(_KEEP, params)


async def change_pool_instructions(context: Context, pool_id: UUID, markdown: str | None) -> None:
    """Give a pool other instructions, or none; sealed or not."""
    async with context.transaction() as db:
        params = {"pool_id": pool_id, "project_id": context.project_id}
        if (await db.execute(_LOCK, params)).one_or_none() is None:
            raise PoolNotFound.of(pool_id)
        await keep_instructions(db, context, pool_id, None, markdown)


async def pool_instructions(context: Context, pool_id: UUID) -> Instructions:
    """The instructions of a pool of the caller's project."""
    async with context.transaction() as db:
        params = {"pool_id": pool_id, "project_id": context.project_id}
        if (await db.execute(_POOL, params)).one_or_none() is None:
            raise PoolNotFound.of(pool_id)
        return Instructions(await _versions(db, pool_id, None))


async def session_instructions(context: Context, session_id: UUID) -> Instructions:
    """The instructions that judges of a session of the caller's project are shown."""
    async with context.transaction() as db:
        params: dict[str, Any] = {"session_id": session_id, "project_id": context.project_id}
        pool_id = (await db.execute(_SESSION, params)).scalar_one_or_none()
        if pool_id is None:
            raise SessionNotFound.of(session_id)
        return await instructions_of(db, pool_id, session_id)


async def instructions_of(db: AsyncConnection, pool_id: UUID, session_id: UUID) -> Instructions:
    """Return the instructions of a session in a transaction; if closed, those of its end."""
    versions = await _versions(db, pool_id, session_id)
    row = (await db.execute(_JUDGED, {"session_id": session_id})).one()
    if row.lifecycle == "closed":
        # Nobody has judged by what came after its last event
        versions = tuple(version for version in versions if version.at <= row.ended)
    return Instructions(versions, row.first, row.last)


async def _versions(
    db: AsyncConnection, pool_id: UUID, session_id: UUID | None
) -> tuple[Version, ...]:
    rows = await db.execute(_VERSIONS, {"pool_id": pool_id, "session_id": session_id})
    return tuple(Version(row.session_id is not None, row.text, row.key_id, row.at) for row in rows)


_POOL = text("SELECT true FROM pools WHERE pool_id = :pool_id AND project_id = :project_id")
# What others kept while the lock was waited for is seen by the statement after it. An import of
# items, which holds the pool's row for long, lets its key be shared: nobody deletes the pool now.
_LOCK = text(
    """
    SELECT true FROM pools CROSS JOIN LATERAL (
        SELECT pg_advisory_xact_lock(hashtextextended(CAST(pool_id AS text), 15))
    ) AS alone
    WHERE pool_id = :pool_id AND project_id = :project_id FOR KEY SHARE OF pools
    """
)
_SESSION = text(
    "SELECT pool_id FROM sessions WHERE session_id = :session_id AND project_id = :project_id"
)
_KEEP = text(
    """
    INSERT INTO instructions (instructions_id, project_id, pool_id, session_id, text, key_id)
    SELECT :instructions_id, :project_id, :pool_id, :session_id, CAST(:text AS text), :key_id
    WHERE CAST(:text AS text) IS DISTINCT FROM (
        SELECT text FROM instructions
        WHERE pool_id = :pool_id AND session_id IS NOT DISTINCT FROM CAST(:session_id AS uuid)
        ORDER BY at DESC, instructions_id DESC LIMIT 1
    )
    """
)
_VERSIONS = text(
    """
    SELECT session_id, text, key_id, at FROM instructions
    WHERE pool_id = :pool_id AND (session_id IS NULL OR session_id = CAST(:session_id AS uuid))
    ORDER BY at, instructions_id
    """
)
_JUDGED = with_kinds(
    """
    SELECT lifecycle,
        (SELECT at FROM events WHERE session_id = :session_id
            AND kind IN (:observation, :unjudgeable, :rating) ORDER BY sequence LIMIT 1) AS first,
        (SELECT at FROM events WHERE session_id = :session_id
            AND kind IN (:observation, :unjudgeable, :rating, :amendment)
            ORDER BY sequence DESC LIMIT 1) AS last,
        coalesce((SELECT at FROM events WHERE session_id = :session_id
            ORDER BY sequence DESC LIMIT 1), created_at) AS ended
    FROM sessions WHERE session_id = :session_id
    """
)

"""Links by which anybody reads one session's report, without signing in.

A link carries a secret of 256 random bits, of which only the SHA-256 is kept. It opens the report
of its session and a badge of it, and nothing else.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

from sqlalchemy import RowMapping, text
from uuid_utils.compat import uuid7

from celeus.core.insights.badges import Badge, badge_of
from celeus.errors import ShareNotFound, TooManyShares
from celeus.operations.access.keys import new_secret, secret_hash
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.status import version_of
from celeus.operations.sessions.history import check_session

MOST_SHARES = 100
"""Most links of a session, expired ones not counted."""


@dataclass(frozen=True, slots=True)
class Share:
    """A link; ``token`` is its secret, shown when it is made and stored nowhere."""

    share_id: UUID
    session_id: UUID
    created_at: datetime
    expires_at: datetime | None
    # Never shown by accident, in a log or a traceback
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, row: RowMapping, token: str | None = None) -> Self:
        """The link in a row of `shares`."""
        fields = {name: row[name] for name in cls.__dataclass_fields__ if name != "token"}
        return cls(**fields, token=token)


@dataclass(frozen=True, slots=True)
class BadgeState:
    """The badge that a link shows, with the session's sentence and the version of its state."""

    badge: Badge
    sentence: str
    version: str


async def create_share(context: Context, session_id: UUID, life: timedelta | None) -> Share:
    """Make a link to a session's report; ``life`` None: until it is revoked."""
    token, digest = new_secret()
    params: dict[str, Any] = {"session_id": session_id, "project_id": context.project_id}
    async with context.transaction() as db:
        # The lock has several at once count one after the other
        await check_session(db, context.project_id, session_id, "FOR NO KEY UPDATE")
        await db.execute(_CLEAR, params)
        if (await db.execute(_COUNT, params)).scalar_one() >= MOST_SHARES:
            raise TooManyShares(
                f"The session has {MOST_SHARES} links already: revoke some.",
                rule=f"at most {MOST_SHARES} links to a session",
            )
        share_id = uuid7()
        made = params | {"share_id": share_id, "hash": digest, "life": life}
        row = (await db.execute(_INSERT, made)).mappings().one()
    return Share.of(row, token)


async def list_shares(context: Context, session_id: UUID) -> list[Share]:
    """The links to a session that work, oldest first."""
    params = {"session_id": session_id, "project_id": context.project_id}
    async with context.transaction() as db:
        await check_session(db, context.project_id, session_id)
        return [Share.of(row) for row in (await db.execute(_LIST, params)).mappings()]


async def revoke_share(context: Context, session_id: UUID, share_id: UUID) -> None:
    """Have a link lead nowhere, for good."""
    params = {
        "session_id": session_id,
        "project_id": context.project_id,
        "share_id": share_id,
    }
    async with context.transaction() as db:
        await check_session(db, context.project_id, session_id)
        if (await db.execute(_REVOKE, params)).rowcount == 0:
            raise ShareNotFound(
                "The session has no such link.",
                field="share_id",
                value=f"share_{share_id.hex}",
            )


async def shared(context: Context, token: str) -> tuple[Context, UUID]:
    """The session that a link leads to, and the context of its project.

    Links that are unknown, revoked and expired are refused alike.
    """
    async with context.transaction() as db:
        row = (await db.execute(_OPEN, {"hash": secret_hash(token)})).one_or_none()
    if row is None:
        raise _no_link()
    return replace(context, project_id=row.project_id), row.session_id


async def shared_badge(context: Context, token: str) -> BadgeState:
    """The badge of the session that a link leads to."""
    inner, session_id = await shared(context, token)
    params = {"session_id": session_id, "project_id": inner.project_id}
    async with context.transaction() as db:
        row = (await db.execute(_BADGE, params)).one_or_none()
    if row is None:
        raise _no_link()
    status = row.status
    single = status["best"] is None and status["table"] is None
    names = None
    if single and row.loss_kind == "difference":
        names = (row.systems["a"], row.systems["b"]) if row.systems else ("A", "B")
    labels = status["words"]["in_interval"]
    badge = badge_of(status, labels=labels, names=names)
    return BadgeState(badge, status["sentence"], version_of(status))


def _no_link() -> ShareNotFound:
    return ShareNotFound("This link leads nowhere: it is unknown, revoked or expired.")


_CLEAR = text("DELETE FROM shares WHERE session_id = :session_id AND expires_at <= now()")
_COUNT = text("SELECT count(*) FROM shares WHERE session_id = :session_id")
_INSERT = text(
    """
    INSERT INTO shares (share_id, token_hash, project_id, session_id, expires_at)
    VALUES (:share_id, :hash, :project_id, :session_id, now() + CAST(:life AS interval))
    RETURNING *
    """
)
_LIST = text(
    """
    SELECT * FROM shares
    WHERE session_id = :session_id AND (expires_at IS NULL OR expires_at > now())
    ORDER BY created_at, share_id
    """
)
_REVOKE = text("DELETE FROM shares WHERE session_id = :session_id AND share_id = :share_id")
_OPEN = text(
    """
    SELECT session_id, project_id FROM shares
    WHERE token_hash = :hash AND (expires_at IS NULL OR expires_at > now())
    """
)
_BADGE = text(
    """
    SELECT s.status, p.loss_kind, p.systems
    FROM sessions s JOIN pools p USING (pool_id)
    WHERE s.session_id = :session_id AND s.project_id = :project_id
    """
)

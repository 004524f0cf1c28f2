"""Delete sessions for good, and tell which were deleted.

Of a session that is gone a tombstone stays: it counts among the sessions of its pool in every later
certificate, and has the digests by which a certificate issued before can be recognised. It holds
nothing of a judgement, a name or a seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self
from uuid import UUID

from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.errors import (
    InvalidValue,
    SessionCertified,
    SessionInUse,
    SessionNotArchived,
    SessionNotFound,
)
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.idempotency import forget
from celeus.operations.runtime.process_cache import CertificateRecord

MOST_CERTIFICATES = 100
"""Most digests that a tombstone lists, the latest ones."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The record kept of a deleted session.

    ``deleted_by`` is the id of a key; None where no request came over the wire. ``certificates``
    are the latest of those ``issued``.
    """

    session_id: UUID
    pool_id: UUID
    pool_digest: str
    plan_digest: str
    commitment: str
    ledger_head: str
    sequence: int
    revision: int
    lifecycle: str
    pushed: bool
    opened_at: datetime
    deleted_at: datetime
    deleted_by: str | None
    issued: int
    certificates: Sequence[CertificateRecord]

    @classmethod
    def of(cls, row: RowMapping) -> Self:
        """The tombstone in a row."""
        values = {name: row[name] for name in cls.__dataclass_fields__}
        for name in ("pool_digest", "plan_digest", "commitment", "ledger_head"):
            values[name] = bytes(row[name]).hex()
        values["certificates"] = [
            CertificateRecord(
                certificate["digest"],
                certificate["final"],
                datetime.fromisoformat(certificate["issued_at"]),
            )
            for certificate in row["certificates"]
        ]
        return cls(**values)


async def delete_session(context: Context, session_id: UUID, purge: str | None) -> Tombstone:
    """Delete an archived session; what is left of it.

    One with certificates is deleted only where ``purge`` says its name or its id. All of it is out
    of sight at once, in one transaction, and what is long of it goes afterwards. Refuses a session
    that a pool is based on.
    """
    # What is under way with the session ends first, and its state is forgotten
    async with context.states.hold(session_id) as slot, context.transaction() as db:
        params = {"session_id": session_id, "project_id": context.project_id}
        row = (await db.execute(_LOCK, params)).one_or_none()
        if row is None:
            raise SessionNotFound.of(session_id)
        wire = f"ses_{session_id.hex}"
        if not row.archived:
            raise SessionNotArchived(
                "The session is not archived.",
                field="session_id",
                rule="an archived session; PATCH it with `archived: true`",
                value=wire,
            )
        issued = (await db.execute(_ISSUED, params)).scalar_one()
        _check_named(purge, row.name, wire, issued)
        await _check_unused(db, context, wire)
        await db.execute(_BURY, params | {"key_id": context.key_id})
        for statement in _CLEAR:
            await db.execute(statement, params)
        await forget(db, context, wire)
        stone = Tombstone.of((await db.execute(_STONE, params)).mappings().one())
        slot.session = None
    await context.cache.forget_status(session_id.hex)
    context.leftovers.ask()
    return stone


def _check_named(purge: str | None, name: str | None, wire: str, issued: int) -> None:
    """Refuse to delete what certificates rest on unless the session is named, and rightly."""
    rule = f"purge={wire}" if name is None else f"purge={wire}, or the session's name"
    if purge is None and issued:
        count = "A certificate was" if issued == 1 else f"{issued} certificates were"
        rests = "it rests" if issued == 1 else "they rest"
        raise SessionCertified(
            f"{count} issued for the session, and what {rests} on would be gone. Name the session"
            " to delete it all the same.",
            field="purge",
            rule=rule,
        )
    if purge is not None and purge not in {wire, name}:
        raise InvalidValue(
            "That is not the name of this session.", field="purge", rule=rule, value=purge
        )


async def _check_unused(db: AsyncConnection, context: Context, wire: str) -> None:
    params = {"project_id": context.project_id, "session": wire}
    based = (await db.execute(_BASED, params)).all()
    if based:
        named = ", ".join(f"pool_{pool.pool_id.hex}" for pool in based)
        raise SessionInUse(
            f"Judgements of the session were carried over to {named}. Delete that first.",
            field="session_id",
            rule="a session that no pool is based on",
            value=wire,
        )


async def list_tombstones(
    context: Context, pool_id: UUID | None, limit: int, after: UUID | None
) -> list[Tombstone]:
    """The deleted sessions of the project, those opened last first; behind ``after``, if given."""
    params = {
        "project_id": context.project_id,
        "pool_id": pool_id,
        "after": after,
        "limit": limit,
    }
    async with context.transaction() as db:
        return [Tombstone.of(row) for row in (await db.execute(_LIST, params)).mappings()]


async def get_tombstone(context: Context, session_id: UUID) -> Tombstone:
    """The tombstone of a deleted session; refuses one that exists, or never did."""
    params = {"session_id": session_id, "project_id": context.project_id}
    async with context.transaction() as db:
        row = (await db.execute(_STONE, params)).mappings().one_or_none()
    if row is None:
        raise SessionNotFound(
            "No session of this id was deleted.",
            field="session_id",
            rule="the id of a deleted session",
            value=f"ses_{session_id.hex}",
        )
    return Tombstone.of(row)


_LOCK = text(
    """
    SELECT name, archived_at IS NOT NULL AS archived FROM sessions
    WHERE session_id = :session_id AND project_id = :project_id FOR UPDATE
    """
)
# In a statement of its own: it sees what was issued while the lock was waited for
_ISSUED = text("SELECT count(*) FROM certificates WHERE session_id = :session_id")
_BASED = text(
    """
    SELECT pool_id FROM pools
    WHERE project_id = :project_id AND based_on ->> 'session' = :session
    ORDER BY pool_id LIMIT 3
    """
)
_BURY = text(
    """
    INSERT INTO tombstones (session_id, project_id, pool_id, pool_digest, plan_digest, commitment,
        ledger_head, sequence, revision, lifecycle, pushed, opened_at, deleted_by)
    SELECT s.session_id, s.project_id, s.pool_id, p.digest, s.plan_digest, s.commitment,
        s.ledger_head, s.sequence, s.revision, s.lifecycle, s.origin IS NOT NULL, s.created_at,
        :key_id
    FROM sessions s JOIN pools p USING (pool_id) WHERE s.session_id = :session_id
    """
)
# By the webhooks of the project, which the index of deliveries leads with
_ABOUT_SESSION = """d.webhook_id = w.webhook_id AND w.project_id = :project_id
            AND d.data ->> 'session' = 'ses_' || replace(CAST(:session_id AS text), '-', '')"""
# The digests of certificates stay. What was to be told is not told any more, and what was told
# keeps which session it was, its state, and when. An open link of an invitation that led to the
# session leads to the start page.
_CLEAR = [
    text("UPDATE certificates SET body = NULL WHERE session_id = :session_id"),
    text("DELETE FROM leases WHERE session_id = :session_id"),
    text("DELETE FROM labellers WHERE session_id = :session_id"),
    text(
        """
        UPDATE invitations SET path = '/'
        WHERE project_id = :project_id AND used_at IS NULL
          AND strpos(path, 'ses_' || replace(CAST(:session_id AS text), '-', '')) > 0
        """
    ),
    text(
        f"""
        DELETE FROM deliveries d USING webhooks w
        WHERE {_ABOUT_SESSION} AND d.state = 'pending'
        """  # noqa: S608 -- our words
    ),
    text(
        f"""
        UPDATE deliveries d SET answer = NULL, note = NULL,
            data = jsonb_build_object('session', d.data -> 'session', 'state', d.data -> 'state',
                'stop_reason', d.data -> 'stop_reason', 'sentence', 'The session was deleted.')
        FROM webhooks w WHERE {_ABOUT_SESSION}
        """  # noqa: S608 -- our words
    ),
    text("DELETE FROM sessions WHERE session_id = :session_id"),
]
_TOLD = f"""
    SELECT t.*, coalesce(c.issued, 0) AS issued, coalesce(c.latest, '[]') AS certificates
    FROM tombstones t LEFT JOIN LATERAL (
        SELECT max(one.issued) AS issued, json_agg(json_build_object(
                'digest', encode(one.digest, 'hex'), 'final', one.final,
                'issued_at', one.issued_at) ORDER BY one.issued_at DESC, one.digest) AS latest
        FROM (
            SELECT *, count(*) OVER () AS issued FROM certificates
            WHERE session_id = t.session_id ORDER BY issued_at DESC, digest
            LIMIT {MOST_CERTIFICATES}
        ) AS one
    ) AS c ON true
    """  # noqa: S608 -- our words
_STONE = text(f"{_TOLD} WHERE t.session_id = :session_id AND t.project_id = :project_id")
_LIST = text(
    f"""
    {_TOLD} WHERE t.project_id = :project_id
        AND (CAST(:pool_id AS uuid) IS NULL OR t.pool_id = :pool_id)
        AND (CAST(:after AS uuid) IS NULL OR t.session_id < :after)
    ORDER BY t.session_id DESC LIMIT :limit
    """
)

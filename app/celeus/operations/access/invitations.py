"""Invitations: links that sign a browser in, once.

A link carries a secret of 256 random bits behind its `#`, where no server and no log sees it; only
its SHA-256 is kept. The secret of its key need not be known to anybody: `invite_anew` makes a key
that is shown to nobody.
"""

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.errors import InvalidValue, KeyRetired, SessionNotFound, Unauthenticated
from celeus.operations.access.browsers import SignedIn, begin, longest_seconds, require_schema
from celeus.operations.access.keys import (
    LONGEST_LIFE,
    USABLE,
    NewKey,
    add_key,
    key_record,
    secret_hash,
)
from celeus.operations.runtime.context import Context
from celeus.store.tables import DEFAULT_PROJECT, keys, sessions

MOST_CLEARED = 1_000


@dataclass(frozen=True, slots=True)
class LinkRequest:
    """Where a link leads, and how long it works; the key must belong to the session's project."""

    path: str
    life: timedelta
    session_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Invitation:
    """A link for one person; ``token`` is stored nowhere."""

    key_id: str
    name: str
    expires_at: datetime
    # Never told by accident, in a log or a traceback
    token: str = field(repr=False)

    def link(self, address: str) -> str:
        """The link for a service at this address."""
        return f"{address.rstrip('/')}/login#invite={self.token}"


async def invite(context: Context, key_id: str, request: LinkRequest) -> Invitation:
    """Create a link for an existing key; refuses a revoked or expired one."""
    _check(request)
    async with context.transaction() as db:
        await key_record(db, key_id)
        return await _insert(db, key_id, request)


async def invite_anew(context: Context, key: NewKey, request: LinkRequest) -> Invitation:
    """Create a link together with a new key, whose secret is shown to nobody."""
    _check(request)
    async with context.transaction() as db:
        created = await add_key(db, key)
        return await _insert(db, created.record.key_id, request)


async def invite_operator(context: Context, life: timedelta) -> Invitation | None:
    """Create a link for the default project's oldest admin key.

    None where no such key works. It is for whoever starts the service on its own database, and
    could make any key.
    """
    oldest = select(keys.c.key_id).where(
        keys.c.project_id == DEFAULT_PROJECT,
        keys.c.scopes.contains(["admin"]),
        USABLE,
    )
    async with context.transaction() as db:
        key_id = await db.scalar(oldest.order_by(keys.c.created_at, keys.c.key_id).limit(1))
        return None if key_id is None else await _insert(db, key_id, LinkRequest("/", life))


async def accept(context: Context, token: str) -> SignedIn:
    """Sign a browser in with a link; of several attempts at once only one succeeds.

    Unknown, used and expired links, and those of a key that works no longer, are refused alike.
    """
    with require_schema("signing in"):
        async with context.transaction() as db:
            result = await db.execute(_USE, {"hash": secret_hash(token)})
            row = result.one_or_none()
            if row is None:
                raise Unauthenticated(
                    "this link works no longer: each works once, and for a time only",
                    rule="a new link, or a key",
                )
            cookie = await begin(context, db, row.key_id)
            return SignedIn(row.path, longest_seconds(context), cookie)


def _check(request: LinkRequest) -> None:
    if not timedelta(0) < request.life <= LONGEST_LIFE:
        raise InvalidValue(
            "a link must work for a time above 0 and for at most 100 years",
            field="link_expires_in",
            rule="above 0, at most 36500 days",
            value=str(request.life),
        )


async def _insert(db: AsyncConnection, key_id: str, request: LinkRequest) -> Invitation:
    key = (
        await db.execute(select(keys, USABLE.label("usable")).where(keys.c.key_id == key_id))
    ).one()
    if not key.usable:
        raise KeyRetired(f"key {key_id!r} is revoked or expired", field="key_id", value=key_id)
    if request.session_id is not None:
        there = select(sessions.c.session_id).where(
            sessions.c.session_id == request.session_id, sessions.c.project_id == key.project_id
        )
        if await db.scalar(there) is None:
            raise SessionNotFound(
                "there is no such session in the project of the key",
                field="session",
                value=request.session_id,
            )
    await db.execute(_CLEAR, {"most": MOST_CLEARED})
    token = secrets.token_urlsafe(32)
    params = {
        "hash": secret_hash(token),
        "key_id": key_id,
        "project_id": key.project_id,
        "path": request.path,
        "life": request.life,
    }
    expires_at = await db.scalar(_KEEP, params)
    return Invitation(key_id, key.name, expires_at, token)


_KEEP = text(
    """
    INSERT INTO invitations (token_hash, key_id, project_id, path, expires_at)
    VALUES (:hash, :key_id, :project_id, :path, now() + CAST(:life AS interval))
    RETURNING expires_at
    """
)
# Who comes second waits for the first to commit, and then finds it used
_USE = text(
    """
    UPDATE invitations i SET used_at = now() FROM keys k
    WHERE i.token_hash = :hash AND i.used_at IS NULL AND i.expires_at > now()
      AND k.key_id = i.key_id AND k.revoked_at IS NULL
      AND (k.expires_at IS NULL OR k.expires_at > now())
    RETURNING i.key_id, i.path
    """
)
_CLEAR = text(
    """
    DELETE FROM invitations WHERE token_hash IN (
        SELECT token_hash FROM invitations
        WHERE expires_at <= now() OR used_at IS NOT NULL
        LIMIT :most FOR UPDATE SKIP LOCKED
    )
    """
)

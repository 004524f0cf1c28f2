"""Invitations: links that sign a browser in, once.

A link carries a secret of 256 random bits behind its `#`, where no server and no log sees it; only
its SHA-256 is kept. The secret of its key need not be known to anybody: `invite_anew` makes a key
that is shown to nobody.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, and_, exists, select, text
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from celeus.errors import InvalidValue, KeyRetired, SessionNotFound, Unauthenticated
from celeus.operations.access.browsers import SignedIn, begin, longest_seconds, require_schema
from celeus.operations.access.keys import (
    LONGEST_LIFE,
    USABLE,
    NewKey,
    add_key,
    key_record,
    lock_starts,
    new_secret,
    secret_hash,
)
from celeus.operations.runtime.context import Context
from celeus.store.tables import DEFAULT_PROJECT, invitations, keys, sessions

MOST_CLEARED = 1_000
KEPT_DAYS = 30
"""Days an ended link is kept, to tell whoever opens it why it no longer works."""


@dataclass(frozen=True, slots=True)
class LinkRequest:
    """A link to make: its path and lifetime; the key must belong to the session's project."""

    path: str
    life: timedelta
    session_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Invitation:
    """A link for one person; ``token`` is stored nowhere."""

    invitation_id: UUID
    key_id: str
    name: str
    expires_at: datetime
    # Never shown by accident, in a log or a traceback
    token: str = field(repr=False)

    def link(self, address: str) -> str:
        """The link for a service at this address."""
        return f"{address.rstrip('/')}/login#invite={self.token}"


async def invite(context: Context, key_id: str, request: LinkRequest) -> Invitation:
    """Create a link for an existing key; refuses a revoked or expired one."""
    async with context.transaction() as db:
        return await add_link(db, key_id, request)


async def invite_anew(context: Context, key: NewKey, request: LinkRequest) -> Invitation:
    """Create a link together with a new key, whose secret is shown to nobody."""
    async with context.transaction() as db:
        created = await add_key(db, replace(key, person=True))
        return await add_link(db, created.record.key_id, request, made_key=True)


async def invite_operator(context: Context, life: timedelta) -> Invitation | None:
    """Create a link for the default project's oldest admin key; earlier starts' links end.

    None where no such key works. It is for whoever starts the service on its own database, and
    could make any key.
    """
    oldest = select(keys.c.key_id).where(
        keys.c.project_id == DEFAULT_PROJECT,
        keys.c.scopes.contains(["admin"]),
        USABLE,
    )
    async with context.transaction() as db:
        await lock_starts(db)
        key_id = await db.scalar(oldest.order_by(keys.c.created_at, keys.c.key_id).limit(1))
        return None if key_id is None else await _link_of_start(db, key_id, life)


async def invite_first(context: Context, life: timedelta) -> Invitation | None:
    """Create a link for a first admin; earlier starts' links end.

    None where a key works, but for the one made here before, while nobody has signed in with it.
    Of several links by starts at once only the last one works.
    """
    async with context.transaction() as db:
        await lock_starts(db)
        rows = (await db.execute(_WORKING)).all()
        if any(not row.unopened for row in rows):
            return None
        if rows:
            return await _link_of_start(db, rows[0].key_id, life)
        created = await add_key(db, NewKey("first", ("admin",), person=True))
        return await _link_of_start(db, created.record.key_id, life)


async def _link_of_start(db: AsyncConnection, key_id: str, life: timedelta) -> Invitation:
    await db.execute(_END_STARTS)
    return await add_link(db, key_id, LinkRequest("/", life), at_start=True)


async def accept(context: Context, token: str) -> SignedIn:
    """Sign a browser in with a link; of several attempts at once only one succeeds.

    Refuses links that were used, have expired or were withdrawn, and says which it is: whoever
    has the secret was meant to know.
    """
    with require_schema("signing in"):
        async with context.transaction() as db:
            digest = {"hash": secret_hash(token)}
            row = (await db.execute(_USE, digest)).one_or_none()
            if row is None:
                raise _ended((await db.execute(_WHY, digest)).one_or_none())
            cookie = await begin(context, db, row.key_id)
            return SignedIn(row.path, longest_seconds(context), cookie)


def _ended(row: Row[Any] | None) -> Unauthenticated:
    """The refusal of a link that does not work: why, and what helps."""
    if row is None:
        why = "this link no longer works: each works once, and for a time only"
    elif row.used:
        why = "this link no longer works: it was used, and each signs in one browser, once"
    elif row.withdrawn:
        why = "this invitation no longer works: it was withdrawn"
    else:
        why = "this link no longer works: it has expired"
    return Unauthenticated(
        f"{why}; whoever sent it can send you a new one", rule="a new link, or a key"
    )


def led_to(session_id: UUID | None, scopes: Collection[str]) -> str:
    """The page where a link leads to: of the session, to label or to look at it, else the start."""
    if session_id is None:
        return "/"
    return f"/{'label' if 'label' in scopes else 'sessions'}/ses_{session_id.hex}"


def _check(request: LinkRequest) -> None:
    if not timedelta(0) < request.life <= LONGEST_LIFE:
        raise InvalidValue(
            "a link must work for a time above 0 and for at most 100 years",
            field="link_expires_in",
            rule="above 0, at most 36500 days",
            value=str(request.life),
        )


async def add_link(
    db: AsyncConnection,
    key_id: str,
    request: LinkRequest,
    *,
    made_key: bool = False,
    at_start: bool = False,
) -> Invitation:
    """Create a link for an existing key in the caller's transaction.

    ``made_key``: the key was made for it. ``at_start``: a start of the service shows it.
    """
    _check(request)
    await key_record(db, key_id)
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
    await db.execute(_CLEAR, {"most": MOST_CLEARED, "days": KEPT_DAYS})
    token, digest = new_secret()
    invitation_id = uuid7()
    params = {
        "invitation_id": invitation_id,
        "made_key": made_key,
        "at_start": at_start,
        "hash": digest,
        "key_id": key_id,
        "project_id": key.project_id,
        "path": request.path,
        "life": request.life,
    }
    expires_at = await db.scalar(_KEEP, params)
    return Invitation(invitation_id, key_id, key.name, expires_at, token)


_KEEP = text(
    """
    INSERT INTO invitations (
        token_hash, key_id, project_id, path, expires_at, invitation_id, made_key, at_start
    )
    VALUES (
        :hash, :key_id, :project_id, :path, now() + CAST(:life AS interval), :invitation_id,
        :made_key, :at_start
    )
    RETURNING expires_at
    """
)
# Who comes second waits for the first to commit, and then finds it used
_USE = text(
    """
    UPDATE invitations i SET used_at = now() FROM keys k
    WHERE i.token_hash = :hash AND i.used_at IS NULL AND i.revoked_at IS NULL
      AND i.expires_at > now()
      AND k.key_id = i.key_id AND k.revoked_at IS NULL
      AND (k.expires_at IS NULL OR k.expires_at > now())
    RETURNING i.key_id, i.path
    """
)
_WHY = text(
    """
    SELECT i.used_at IS NOT NULL AS used,
           i.revoked_at IS NOT NULL OR k.revoked_at IS NOT NULL AS withdrawn
    FROM invitations i JOIN keys k ON k.key_id = i.key_id WHERE i.token_hash = :hash
    """
)
# Keys that work, and whether a start made them and nobody has signed in with them
_WORKING = select(
    keys.c.key_id,
    and_(
        keys.c.person,
        keys.c.last_used_at.is_(None),
        exists().where(invitations.c.key_id == keys.c.key_id, invitations.c.at_start),
    ).label("unopened"),
).where(USABLE)
_END_STARTS = text(
    """
    UPDATE invitations SET revoked_at = now()
    WHERE at_start AND used_at IS NULL AND revoked_at IS NULL
    """
)
_CLEAR = text(
    """
    DELETE FROM invitations WHERE token_hash IN (
        SELECT token_hash FROM invitations
        WHERE least(expires_at, used_at, revoked_at) <= now() - make_interval(days => :days)
          -- That an invitation made it is part of what a key is, as long as it works
          AND NOT (made_key AND EXISTS (
              SELECT FROM keys WHERE keys.key_id = invitations.key_id AND revoked_at IS NULL
              AND (keys.expires_at IS NULL OR keys.expires_at > now())
          ))
        LIMIT :most FOR UPDATE SKIP LOCKED
    )
    """
)

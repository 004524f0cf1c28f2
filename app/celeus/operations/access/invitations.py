"""Links that sign a browser in, once.

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

from app.errors import InvalidValue, KeyRetired, SessionNotFound, Unauthenticated
from app.operations.browsers import SignedIn, begin, longest_seconds, schema_known
from app.operations.keys import LONGEST_LIFE, USABLE, NewKey, key_record, made_key, secret_hash
from app.operations.rooms import Rooms
from app.store.tables import DEFAULT_PROJECT, keys, sessions

MOST_CLEARED = 1_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where a link leads, and for how long; the key has to be one of the session's project."""

    path: str
    life: timedelta
    session_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Invitation:
    """A link to be given to one person; ``token`` exists nowhere else."""

    key_id: str
    name: str
    expires_at: datetime
    # Never told by accident, in a log or a traceback
    token: str = field(repr=False)

    def link(self, address: str) -> str:
        """The link, where people reach the service at this address."""
        return f"{address.rstrip('/')}/login#invite={self.token}"


async def invite(rooms: Rooms, key_id: str, wanted: Wanted) -> Invitation:
    """A link that signs in by a key which exists; refuses one that works no longer."""
    _check(wanted)
    async with rooms.transaction() as db:
        await key_record(db, key_id)
        return await _insert(db, key_id, wanted)


async def invite_anew(rooms: Rooms, key: NewKey, wanted: Wanted) -> Invitation:
    """A link that signs in by a new key, made with it, whose secret nobody is told."""
    _check(wanted)
    async with rooms.transaction() as db:
        made = await made_key(db, key)
        return await _insert(db, made.record.key_id, wanted)


async def invite_operator(rooms: Rooms, life: timedelta) -> Invitation | None:
    """A link that signs in by the default project's oldest key that may do everything.

    None where no such key works. It is for whoever starts the service on its own database, and
    could make any key.
    """
    oldest = select(keys.c.key_id).where(
        keys.c.project_id == DEFAULT_PROJECT,
        keys.c.scopes.contains(["admin"]),
        USABLE,
    )
    async with rooms.transaction() as db:
        found = await db.scalar(oldest.order_by(keys.c.created_at, keys.c.key_id).limit(1))
        return None if found is None else await _insert(db, found, Wanted("/", life))


async def accept(rooms: Rooms, token: str) -> SignedIn:
    """Have a browser go on as the one a link was made for; of several at once only one.

    Unknown, used and expired links, and those of a key that works no longer, are refused alike.
    """
    with schema_known("signing in"):
        async with rooms.transaction() as db:
            used = await db.execute(_USE, {"hash": secret_hash(token)})
            row = used.one_or_none()
            if row is None:
                raise Unauthenticated(
                    "this link works no longer: each works once, and for a time only",
                    rule="a new link, or a key",
                )
            cookie = await begin(rooms, db, row.key_id)
            return SignedIn(row.path, longest_seconds(rooms), cookie)


def _check(wanted: Wanted) -> None:
    if not timedelta(0) < wanted.life <= LONGEST_LIFE:
        raise InvalidValue(
            "a link works longer than no time and at most a hundred years",
            field="link_expires_in",
            rule="above 0, at most 36500 days",
            value=str(wanted.life),
        )


async def _insert(db: AsyncConnection, key_id: str, wanted: Wanted) -> Invitation:
    key = (
        await db.execute(select(keys, USABLE.label("usable")).where(keys.c.key_id == key_id))
    ).one()
    if not key.usable:
        raise KeyRetired(f"key {key_id!r} is revoked or expired", field="key_id", value=key_id)
    if wanted.session_id is not None:
        there = select(sessions.c.session_id).where(
            sessions.c.session_id == wanted.session_id, sessions.c.project_id == key.project_id
        )
        if await db.scalar(there) is None:
            raise SessionNotFound(
                "there is no such session in the project of the key",
                field="session",
                value=wanted.session_id,
            )
    await db.execute(_CLEAR, {"most": MOST_CLEARED})
    token = secrets.token_urlsafe(32)
    kept = {
        "hash": secret_hash(token),
        "key_id": key_id,
        "project_id": key.project_id,
        "path": wanted.path,
        "life": wanted.life,
    }
    expires_at = await db.scalar(_KEEP, kept)
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

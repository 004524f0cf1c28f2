"""Keys: who may come in, to which project, and what for.

A key travels as `ce_<id>_<secret>`. The id is no secret: it names the key in lists and ledgers.
Of the secret only its SHA-256 is kept. A secret of 256 random bits leaves nothing to guess, so
that a slow hash would protect nothing and cost every request.

These are the operator's functions: they see the keys of every project.
"""

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

import uuid_utils
from sqlalchemy import RowMapping, and_, delete, exists, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.errors import (
    InvalidValue,
    KeyNotFound,
    KeyRetired,
    ProjectExists,
    ProjectNotFound,
)
from app.operations.callers import SCOPES
from app.operations.rooms import Rooms
from app.quoting import shortened
from app.store.tables import browser_sessions, keys, projects

DEFAULT_PROJECT_NAME = "default"
LONGEST_LIFE = timedelta(days=36_500)
LONGEST_NAME = 200
# Any number that nothing else in this database locks
_FIRST_KEY_LOCK = 7_306_513_218


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key as it is kept, without its secret."""

    key_id: str
    name: str
    project: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    replaced_by: str | None

    @classmethod
    def of(cls, row: RowMapping) -> Self:
        """The record in a row of `keys` with its project's name."""
        fields = {name: row[name] for name in cls.__dataclass_fields__}
        return cls(**fields | {"scopes": tuple(row["scopes"])})


@dataclass(frozen=True, slots=True)
class NewKey:
    """What a key is made with; ``expires_in`` None: it lives until it is revoked."""

    name: str
    scopes: tuple[str, ...]
    project: str = DEFAULT_PROJECT_NAME
    new_project: bool = False
    expires_in: timedelta | None = None


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A new key; ``token`` is what its holder sends, and exists nowhere else."""

    record: KeyRecord
    # Never told by accident, in a log or a traceback
    token: str = field(repr=False)


async def create_key(rooms: Rooms, wanted: NewKey) -> MadeKey:
    """A new key in a project that exists, or in a new one if so asked.

    Refuses unknown scopes, names that cannot be told in a list, and lives that are not positive.
    """
    async with rooms.transaction() as db:
        return await made_key(db, wanted)


async def made_key(db: AsyncConnection, wanted: NewKey) -> MadeKey:
    """The same in the caller's transaction."""
    _check(wanted)
    return await _insert(db, await _project(db, wanted), wanted)


async def list_keys(rooms: Rooms) -> list[KeyRecord]:
    """Every key that ever was, oldest first."""
    async with rooms.transaction() as db:
        found = await db.execute(_TOLD.order_by(keys.c.created_at, keys.c.key_id))
        return [KeyRecord.of(row) for row in found.mappings()]


async def revoke_key(rooms: Rooms, key_id: str) -> KeyRecord:
    """End a key for good, and with it every browser signed in by it; again changes nothing.

    A process that saw it used may let it in for `key_cache_seconds` more.
    """
    standing = update(keys).where(keys.c.key_id == key_id, keys.c.revoked_at.is_(None))
    async with rooms.transaction() as db:
        await db.execute(standing.values(revoked_at=func.now()))
        await db.execute(delete(browser_sessions).where(browser_sessions.c.key_id == key_id))
        return await key_record(db, key_id)


async def rotate_key(rooms: Rooms, key_id: str, grace: timedelta) -> MadeKey:
    """A new key with the name, scopes, project and length of life of this one.

    The old one goes on for ``grace`` at most. Refuses one that is revoked, expired or rotated.
    """
    if not timedelta(0) <= grace <= LONGEST_LIFE:
        raise InvalidValue(
            "the grace period cannot be negative or longer than a hundred years",
            field="grace",
            rule="0 to 36500 days",
            value=str(grace),
        )
    life = (keys.c.expires_at - keys.c.created_at).label("life")
    query = select(keys, life, USABLE.label("usable")).where(keys.c.key_id == key_id)
    async with rooms.transaction() as db:
        old = (await db.execute(query.with_for_update())).one_or_none()
        if old is None:
            raise _not_found(key_id)
        if not old.usable or old.replaced_by is not None:
            raise KeyRetired(
                f"key {key_id!r} is revoked, expired or rotated already",
                field="key_id",
                value=key_id,
            )
        again = NewKey(old.name, tuple(old.scopes), expires_in=old.life)
        made = await _insert(db, old.project_id, again)
        ending = func.least(keys.c.expires_at, func.now() + grace)
        replaced = {"expires_at": ending, "replaced_by": made.record.key_id}
        await db.execute(update(keys).where(keys.c.key_id == key_id).values(**replaced))
        return made


async def first_key(rooms: Rooms) -> MadeKey | None:
    """A key that may do everything, if the database has none that works; else None.

    Of several callers at once only one gets a key.
    """
    async with rooms.transaction() as db:
        await db.execute(text("SELECT pg_advisory_xact_lock(:it)"), {"it": _FIRST_KEY_LOCK})
        if (await db.execute(_ANY)).scalar_one():
            return None
        wanted = NewKey("first", ("admin",))
        return await _insert(db, await _project(db, wanted), wanted)


async def any_key(rooms: Rooms) -> bool:
    """Whether anybody could come in."""
    async with rooms.transaction() as db:
        return bool((await db.execute(_ANY)).scalar_one())


def secret_hash(secret: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).digest()


def _check(wanted: NewKey) -> None:
    for place, name in (("name", wanted.name), ("project", wanted.project)):
        if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
            rule = f"1 to {LONGEST_NAME} characters that can be printed"
            raise InvalidValue(f"{place} must have {rule}", field=place, rule=rule, value=name)
    unknown = [scope for scope in wanted.scopes if scope not in SCOPES]
    if unknown or not wanted.scopes:
        rule = "some of " + ", ".join(SCOPES)
        raise InvalidValue(
            f"scopes must be {rule}", field="scope", rule=rule, value=", ".join(unknown)
        )
    if wanted.expires_in is not None and not timedelta(0) < wanted.expires_in <= LONGEST_LIFE:
        raise InvalidValue(
            "a key lives longer than no time and at most a hundred years",
            field="expires_in",
            rule="above 0, at most 36500 days",
            value=str(wanted.expires_in),
        )


async def _project(db: AsyncConnection, wanted: NewKey) -> UUID:
    name = wanted.project
    if wanted.new_project:
        project_id = UUID(bytes=uuid_utils.uuid7().bytes)
        adding = insert(projects).values(project_id=project_id, name=name)
        added = adding.on_conflict_do_nothing().returning(projects.c.project_id)
        if await db.scalar(added) is None:
            raise ProjectExists(f"there is a project {name!r} already", field="project", value=name)
        return project_id
    found: UUID | None = await db.scalar(
        select(projects.c.project_id).where(projects.c.name == name)
    )
    if found is None:
        raise ProjectNotFound(f"there is no project {name!r}", field="project", value=name)
    return found


async def _insert(db: AsyncConnection, project_id: UUID, wanted: NewKey) -> MadeKey:
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    life = wanted.expires_in
    await db.execute(
        insert(keys).values(
            key_id=key_id,
            project_id=project_id,
            name=wanted.name,
            scopes=[scope for scope in SCOPES if scope in wanted.scopes],
            secret_hash=secret_hash(secret),
            expires_at=None if life is None else func.now() + life,
        )
    )
    return MadeKey(await key_record(db, key_id), f"ce_{key_id}_{secret}")


def _not_found(key_id: str) -> KeyNotFound:
    return KeyNotFound(f"there is no key {shortened(key_id)}", field="key_id", value=key_id)


async def key_record(db: AsyncConnection, key_id: str) -> KeyRecord:
    """The record of a key; refuses an id that no key has."""
    row = (await db.execute(_TOLD.where(keys.c.key_id == key_id))).mappings().one_or_none()
    if row is None:
        raise _not_found(key_id)
    return KeyRecord.of(row)


USABLE = and_(
    keys.c.revoked_at.is_(None),
    or_(keys.c.expires_at.is_(None), keys.c.expires_at > func.now()),
)
_ANY = select(exists().where(USABLE))
_TOLD = select(
    keys.c.key_id,
    keys.c.name,
    projects.c.name.label("project"),
    keys.c.scopes,
    keys.c.created_at,
    keys.c.expires_at,
    keys.c.last_used_at,
    keys.c.revoked_at,
    keys.c.replaced_by,
).join(projects)

"""API keys: create, list, revoke and rotate them.

A key travels as `ce_<id>_<secret>`. The id is no secret: it names the key in lists and ledgers.
Of the secret only its SHA-256 is kept. A secret of 256 random bits leaves nothing to guess, so
that a slow hash would protect nothing and cost every request.

These are the operator's functions: they see the keys of every project.
"""

import hashlib
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from sqlalchemy import RowMapping, and_, delete, exists, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from celeus.errors import InvalidValue, KeyNotFound, KeyRetired, ProjectExists, ProjectNotFound
from celeus.operations.runtime.caller_cache import SCOPES
from celeus.operations.runtime.context import Context
from celeus.shorten import shortened
from celeus.store.tables import browser_sessions, keys, projects

DEFAULT_PROJECT_NAME = "default"
DEFAULT_LEVEL, LEAST_LEVEL, LARGEST_LEVEL = 0.05, 1e-4, 0.5
LONGEST_LIFE = timedelta(days=36_500)
LONGEST_NAME = 200
# Any number that nothing else in this database locks
_FIRST_KEY_LOCK = 7_306_513_218


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key as stored, without its secret."""

    key_id: str
    name: str
    project: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    replaced_by: str | None
    person: bool
    """True if a person was invited with it, or has signed in with it."""

    @classmethod
    def of(cls, row: RowMapping) -> Self:
        """The record in a row of `keys` with its project's name."""
        fields = {name: row[name] for name in cls.__dataclass_fields__}
        return cls(**fields | {"scopes": tuple(row["scopes"])})


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key to create; ``expires_in`` None: valid until revoked.

    ``level`` of a new project: the share of false ones among its sessions shown, at most; None is
    0.05. It is fixed for good before anything of the project can be looked at.
    ``person``: it is made for an invitation, and its secret shown to nobody.
    """

    name: str
    scopes: tuple[str, ...]
    project: str = DEFAULT_PROJECT_NAME
    new_project: bool = False
    level: float | None = None
    expires_in: timedelta | None = None
    person: bool = False


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A new key; ``token`` is what its holder sends and is stored nowhere."""

    record: KeyRecord
    # Never shown by accident, in a log or a traceback
    token: str = field(repr=False)


async def create_key(context: Context, new: NewKey) -> MadeKey:
    """Create a key in an existing project, or in a new one on request.

    Refuses unknown scopes, names that cannot be printed, and lifetimes that are not positive.
    """
    async with context.transaction() as db:
        return await add_key(db, new)


async def add_key(db: AsyncConnection, new: NewKey) -> MadeKey:
    """Create a key, as `create_key`, in the caller's transaction."""
    _check(new)
    return await insert_key(db, await _project(db, new), new)


async def list_keys(context: Context) -> list[KeyRecord]:
    """All keys, revoked and expired ones included, oldest first."""
    async with context.transaction() as db:
        result = await db.execute(TOLD.order_by(keys.c.created_at, keys.c.key_id))
        return [KeyRecord.of(row) for row in result.mappings()]


async def revoke_key(context: Context, key_id: str) -> KeyRecord:
    """Revoke a key for good and sign out its browsers; repeating it changes nothing.

    A process that saw it used may let it in for `key_cache_seconds` more.
    """
    async with context.transaction() as db:
        await end_key(db, key_id)
        return await key_record(db, key_id)


async def end_key(db: AsyncConnection, key_id: str) -> None:
    """Revoke a key and sign out its browsers in the caller's transaction."""
    standing = update(keys).where(keys.c.key_id == key_id, keys.c.revoked_at.is_(None))
    await db.execute(standing.values(revoked_at=func.now()))
    await db.execute(delete(browser_sessions).where(browser_sessions.c.key_id == key_id))


async def rotate_key(context: Context, key_id: str, grace: timedelta) -> MadeKey:
    """Create a successor with the name, scopes, project and lifetime of this key.

    The old one goes on for ``grace`` at most. Refuses one that is revoked, expired or rotated.
    """
    if not timedelta(0) <= grace <= LONGEST_LIFE:
        raise InvalidValue(
            "the grace period must be from 0 to 100 years",
            field="grace",
            rule="0 to 36500 days",
            value=str(grace),
        )
    life = (keys.c.expires_at - keys.c.created_at).label("life")
    query = select(keys, life, USABLE.label("usable")).where(keys.c.key_id == key_id)
    async with context.transaction() as db:
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
        successor = await insert_key(db, old.project_id, again)
        ending = func.least(keys.c.expires_at, func.now() + grace)
        changes = {"expires_at": ending, "replaced_by": successor.record.key_id}
        await db.execute(update(keys).where(keys.c.key_id == key_id).values(**changes))
        return successor


async def first_key(context: Context) -> MadeKey | None:
    """Create an admin key if the database has no valid key; else None.

    Of several callers at once only one gets a key.
    """
    async with context.transaction() as db:
        await lock_starts(db)
        if (await db.execute(_ANY)).scalar_one():
            return None
        new = NewKey("first", ("admin",))
        return await add_key(db, new)


async def lock_starts(db: AsyncConnection) -> None:
    """Have starts of services on this database take turns until the transaction ends."""
    await db.execute(text("SELECT pg_advisory_xact_lock(:it)"), {"it": _FIRST_KEY_LOCK})


def new_secret() -> tuple[str, bytes]:
    """A secret of 256 random bits for a key, a cookie or a link, and its hash."""
    secret = secrets.token_urlsafe(32)
    return secret, secret_hash(secret)


def secret_hash(secret: str) -> bytes:
    """The SHA-256 of a secret, which is all that is stored of it."""
    return hashlib.sha256(secret.encode()).digest()


def check_scopes(scopes: Sequence[str]) -> None:
    """Refuse scopes that there are not, and none at all."""
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        rule = "some of " + ", ".join(SCOPES)
        raise InvalidValue(
            f"scopes must be {rule}", field="scope", rule=rule, value=", ".join(unknown)
        )


def _check(new: NewKey) -> None:
    for place, name in (("name", new.name), ("project", new.project)):
        if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
            rule = f"1 to {LONGEST_NAME} characters that can be printed"
            raise InvalidValue(f"{place} must have {rule}", field=place, rule=rule, value=name)
    check_scopes(new.scopes)
    if new.level is not None and not (
        new.new_project and LEAST_LEVEL <= new.level <= LARGEST_LEVEL
    ):
        rule = f"{LEAST_LEVEL:g} to {LARGEST_LEVEL:g}, of a new project alone"
        message = f"the level must be {rule}: it is fixed when a project is made"
        raise InvalidValue(message, field="level", rule=rule, value=new.level)
    if new.expires_in is not None and not timedelta(0) < new.expires_in <= LONGEST_LIFE:
        raise InvalidValue(
            "a key must work for a time above 0 and for at most 100 years",
            field="expires_in",
            rule="above 0, at most 36500 days",
            value=str(new.expires_in),
        )


async def _project(db: AsyncConnection, new: NewKey) -> UUID:
    name = new.project
    if new.new_project:
        project_id = uuid7()
        insertion = (
            insert(projects)
            .values(project_id=project_id, name=name, level=new.level or DEFAULT_LEVEL)
            .on_conflict_do_nothing()
        )
        if await db.scalar(insertion.returning(projects.c.project_id)) is None:
            raise ProjectExists(f"there is a project {name!r} already", field="project", value=name)
        return project_id
    existing: UUID | None = await db.scalar(
        select(projects.c.project_id).where(projects.c.name == name)
    )
    if existing is None:
        raise ProjectNotFound(f"there is no project {name!r}", field="project", value=name)
    return existing


async def insert_key(db: AsyncConnection, project_id: UUID, new: NewKey) -> MadeKey:
    """Create a key of a project by its id, in the caller's transaction."""
    _check(new)
    key_id = secrets.token_hex(8)
    secret, digest = new_secret()
    life = new.expires_in
    await db.execute(
        insert(keys).values(
            key_id=key_id,
            project_id=project_id,
            name=new.name,
            scopes=in_order(new.scopes),
            person=new.person,
            secret_hash=digest,
            expires_at=None if life is None else func.now() + life,
        )
    )
    return MadeKey(await key_record(db, key_id), f"ce_{key_id}_{secret}")


def in_order(scopes: Collection[str]) -> list[str]:
    """Scopes as they are kept: each once, the widest first."""
    return [scope for scope in SCOPES if scope in scopes]


def _not_found(key_id: str) -> KeyNotFound:
    return KeyNotFound(f"there is no key {shortened(key_id)}", field="key_id", value=key_id)


async def key_name(db: AsyncConnection, key_id: str | None) -> str | None:
    """Return the name of a key; None for one that is not there."""
    statement = text("SELECT name FROM keys WHERE key_id = :key_id")
    name: str | None = await db.scalar(statement, {"key_id": key_id})
    return name


async def key_record(db: AsyncConnection, key_id: str, project_id: UUID | None = None) -> KeyRecord:
    """The record of a key, of this project if one is named; refuses an id that no key has."""
    query = TOLD.where(keys.c.key_id == key_id)
    if project_id is not None:
        query = query.where(keys.c.project_id == project_id)
    row = (await db.execute(query)).mappings().one_or_none()
    if row is None:
        raise _not_found(key_id)
    return KeyRecord.of(row)


USABLE = and_(
    keys.c.revoked_at.is_(None),
    or_(keys.c.expires_at.is_(None), keys.c.expires_at > func.now()),
)
_ANY = select(exists().where(USABLE))
TOLD = select(
    keys.c.key_id,
    keys.c.name,
    projects.c.name.label("project"),
    keys.c.scopes,
    keys.c.created_at,
    keys.c.expires_at,
    keys.c.last_used_at,
    keys.c.revoked_at,
    keys.c.replaced_by,
    keys.c.person,
).join(projects)

"""Keys and invitations of one project, as an admin of it sees and changes them.

Every change has the project's admins take turns, and looks at the caller's own key again: what
another admin has just taken away grants nothing any more. A change that would leave the project
without an admin is refused; the operator's commands are not bound by that.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.errors import InvalidValue, InvitationNotFound, LastAdmin, ScopeMissing
from celeus.operations.access.authentication import unauthenticated
from celeus.operations.access.invitations import LinkRequest, add_link, led_to
from celeus.operations.access.keys import (
    TOLD,
    USABLE,
    KeyRecord,
    MadeKey,
    NewKey,
    check_scopes,
    end_key,
    in_order,
    insert_key,
    key_record,
)
from celeus.operations.runtime.caller_cache import SCOPES, Caller
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.idempotency import IdempotentRequest, keep, transaction_of
from celeus.store.tables import browser_sessions, invitations, keys, projects

_logger = logging.getLogger(__name__)


LASTING = timedelta(days=1)
"""Least time an admin's key must still work to count as one that is left."""


@dataclass(frozen=True, slots=True)
class InvitationRecord:
    """A link as kept, without its secret; ``state``: open, used, withdrawn or expired."""

    invitation_id: UUID
    key_id: str
    name: str
    scopes: tuple[str, ...]
    path: str
    state: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """An invitation to make: of a new person by ``name`` and ``scopes``, or of a key's holder.

    The link works for ``life``, a new key for ``key_life`` (None: until it is revoked).
    """

    life: timedelta
    name: str | None = None
    scopes: tuple[str, ...] = ("label",)
    key_id: str | None = None
    key_life: timedelta | None = None
    session_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class MadeInvitation:
    """A new link; ``path`` is where it signs in, with its secret, and is stored nowhere."""

    record: InvitationRecord
    # Never shown by accident, in a log or a traceback
    path: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Conditions that listed keys meet; None sets no condition.

    ``person``: of a person, not a program. ``usable``: it works. ``pending``: nobody has signed in
    yet, and a link for it is open.
    """

    person: bool | None = None
    usable: bool | None = None
    pending: bool | None = None

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        """The SQL conditions that a key has to meet."""
        chosen: list[ColumnElement[bool]] = []
        if self.person is not None:
            chosen.append(keys.c.person.is_(self.person))
        if self.usable is not None:
            # Neither is ever null
            chosen.append(USABLE if self.usable else ~USABLE)
        if self.pending is not None:
            pending = and_(keys.c.last_used_at.is_(None), _INVITED)
            chosen.append(pending if self.pending else ~pending)
        return chosen


async def page_of_keys(
    context: Context, limit: int, after: str | None, chosen: KeyFilter
) -> tuple[list[KeyRecord], str | None]:
    """Keys of the project, the newest first, and the ``after`` of the next page if there is one."""
    query = TOLD.where(keys.c.project_id == context.project_id, *chosen.conditions)
    place = tuple_(keys.c.created_at, keys.c.key_id)
    async with context.transaction() as db:
        if after is not None:
            here = select(keys.c.created_at).where(
                keys.c.key_id == after, keys.c.project_id == context.project_id
            )
            created_at = await db.scalar(here)
            if created_at is None:
                raise InvalidValue(
                    "The cursor of the page is not one of ours.",
                    field="after",
                    rule="`next` of the page before",
                    value=after,
                )
            query = query.where(place < tuple_(literal(created_at), literal(after)))
        ordered = query.order_by(keys.c.created_at.desc(), keys.c.key_id.desc())
        rows = (await db.execute(ordered.limit(limit + 1))).mappings().all()
    found = [KeyRecord.of(row) for row in rows[:limit]]
    return found, found[-1].key_id if len(rows) > limit else None


async def get_key(context: Context, key_id: str) -> KeyRecord:
    """A key of the project."""
    async with context.transaction() as db:
        return await key_record(db, key_id, context.project_id)


async def make_key(
    context: Context, new: NewKey, once: IdempotentRequest[MadeKey] | None = None
) -> MadeKey:
    """Create a key of the caller's project, with scopes that the caller has."""
    check_scopes(new.scopes)
    async with transaction_of(context, once) as db:
        await _act(db, context, new.scopes)
        made = await insert_key(db, context.project_id, new)
        await keep(db, context, once, made)
    scopes = " ".join(made.record.scopes)
    _log(context, "key %s was made with %s", made.record.key_id, scopes)
    return made


async def change_scopes(context: Context, key_id: str, scopes: Sequence[str]) -> KeyRecord:
    """Give a key these scopes in place of those it has, and its browsers with it.

    Refuses scopes that the caller lacks. Another process that saw the key used may go by its
    former scopes for `key_cache_seconds` more; so it is with `remove_key`.
    """
    check_scopes(scopes)
    async with context.transaction() as db:
        await _act(db, context, scopes)
        before = await key_record(db, key_id, context.project_id)
        changed = update(keys).where(keys.c.key_id == key_id).values(scopes=in_order(scopes))
        await db.execute(changed)
        await _keep_an_admin(db, context, before)
        record = await key_record(db, key_id)
    context.callers.forget_key(key_id)
    logged = " ".join(before.scopes), " ".join(record.scopes)
    _log(context, "key %s had its scopes changed from %s to %s", key_id, *logged)
    return record


async def remove_key(context: Context, key_id: str) -> KeyRecord:
    """Revoke a key of the project for good and sign out its browsers; again changes nothing."""
    async with context.transaction() as db:
        await _act(db, context, ())
        before = await key_record(db, key_id, context.project_id)
        await end_key(db, key_id)
        await _keep_an_admin(db, context, before)
        record = await key_record(db, key_id)
    context.callers.forget_key(key_id)
    if before.revoked_at is None:
        _log(context, "key %s was revoked", key_id)
    return record


async def page_of_invitations(
    context: Context, limit: int, after: UUID | None, state: str | None
) -> tuple[list[InvitationRecord], UUID | None]:
    """Links of the last weeks, the newest first, and the ``after`` of the next page if any."""
    query = _invitations(context)
    if state is not None:
        query = query.where(_STATE.in_([state]))
    if after is not None:
        query = query.where(invitations.c.invitation_id < after)
    query = query.order_by(invitations.c.invitation_id.desc()).limit(limit + 1)
    async with context.transaction() as db:
        rows = (await db.execute(query)).mappings().all()
    found = [_record(row) for row in rows[:limit]]
    return found, found[-1].invitation_id if len(rows) > limit else None


async def get_invitation(context: Context, invitation_id: UUID) -> InvitationRecord:
    """A link of the project."""
    async with context.transaction() as db:
        return await _invitation(db, context, invitation_id)


async def invite_person(
    context: Context, new: NewInvitation, once: IdempotentRequest[MadeInvitation] | None = None
) -> MadeInvitation:
    """Create a link, and for somebody new the key behind it, whose secret nobody is shown.

    Refuses scopes that the caller lacks: those asked for, or those of the existing key.
    """
    async with transaction_of(context, once) as db:
        if new.key_id is None:
            check_scopes(new.scopes)
            await _act(db, context, new.scopes)
            key = NewKey(new.name or "", new.scopes, expires_in=new.key_life, person=True)
            record = (await insert_key(db, context.project_id, key)).record
        else:
            record = await key_record(db, new.key_id, context.project_id)
            await _act(db, context, record.scopes)
        path = led_to(new.session_id, record.scopes)
        made = await add_link(
            db,
            record.key_id,
            LinkRequest(path, new.life, new.session_id),
            made_key=new.key_id is None,
        )
        invitation = MadeInvitation(
            await _invitation(db, context, made.invitation_id), made.link("")
        )
        await keep(db, context, once, invitation)
    logged = made.invitation_id.hex, record.key_id, " ".join(record.scopes)
    _log(context, "invitation inv_%s was made for key %s with %s", *logged)
    return invitation


async def withdraw(context: Context, invitation_id: UUID) -> InvitationRecord:
    """End a link that is open; one that was used or is over stays as it is.

    A key made for it ends with it, if nobody has signed in and no other link is open.
    """
    async with context.transaction() as db:
        await _act(db, context, ())
        await _invitation(db, context, invitation_id)
        # Who comes second, whoever opens the link or whoever withdraws it, waits for the first
        ending = update(invitations).where(
            invitations.c.invitation_id == invitation_id,
            invitations.c.used_at.is_(None),
            invitations.c.revoked_at.is_(None),
            invitations.c.expires_at > func.now(),
        )
        ended = ending.values(revoked_at=func.now()).returning(
            invitations.c.key_id, invitations.c.made_key
        )
        row = (await db.execute(ended)).one_or_none()
        if row is not None and row.made_key and not await db.scalar(_wanted(row.key_id)):
            await end_key(db, row.key_id)
        record = await _invitation(db, context, invitation_id)
    if row is not None:
        _log(context, "invitation inv_%s was withdrawn", invitation_id.hex)
    return record


async def _act(db: AsyncConnection, context: Context, granted: Collection[str]) -> None:
    """Let the caller change people and keys of the project, one at a time, and grant scopes.

    Refuses whose key ended or was lowered since the request came, and scopes it lacks.
    """
    turn = select(projects.c.project_id).where(projects.c.project_id == context.project_id)
    await db.execute(turn.with_for_update(key_share=True))
    if context.key_id is None:
        return
    caller_scopes = select(keys.c.scopes).where(keys.c.key_id == context.key_id, USABLE)
    held = await db.scalar(caller_scopes)
    if held is None:
        context.callers.forget_key(context.key_id)
        raise unauthenticated()
    caller = Caller.of(context.key_id, context.project_id, held)
    caller.require("admin")
    for scope in SCOPES:
        if scope in granted and scope not in caller.scopes:
            raise ScopeMissing(
                f"you cannot grant a scope that you do not have, such as {scope}",
                field="scopes",
                rule=f"a key with scope {scope}",
            )


async def _keep_an_admin(db: AsyncConnection, context: Context, before: KeyRecord) -> None:
    """Refuse what has left the project without an admin who can sign in or has the key."""
    if "admin" not in before.scopes or await db.scalar(_admins(context.project_id)):
        return
    raise LastAdmin(
        "this is the last key that administers the project",
        field="key_id",
        rule="another admin first, who is signed in or has a key that works for a day at least",
        value=before.key_id,
    )


def _admins(project_id: UUID) -> Select[tuple[bool]]:
    """Select whether an admin is left who gets in, by a key that still works tomorrow.

    Nobody knows the secret of a key that an invitation made: its holder has to be signed in, or
    to have come before and hold a link.
    """
    lasting = or_(keys.c.expires_at.is_(None), keys.c.expires_at > func.now() + LASTING)
    signed_in = exists().where(
        browser_sessions.c.key_id == keys.c.key_id, browser_sessions.c.expires_at > func.now()
    )
    of_key = invitations.c.key_id == keys.c.key_id
    known = ~exists().where(of_key, invitations.c.made_key)
    came_back = and_(keys.c.last_used_at.is_not(None), or_(_INVITED, known))
    return select(
        exists().where(
            keys.c.project_id == project_id,
            keys.c.scopes.contains(["admin"]),
            USABLE,
            lasting,
            or_(~keys.c.person, signed_in, came_back),
        )
    )


def _wanted(key_id: str) -> Select[tuple[bool]]:
    """Select whether somebody signs in with a key, or may do so by another link."""
    used = exists().where(keys.c.key_id == key_id, keys.c.last_used_at.is_not(None))
    return select(or_(used, exists().where(keys.c.key_id == key_id, _INVITED)))


def _invitations(context: Context) -> Select[Any]:
    names = list(InvitationRecord.__dataclass_fields__)
    columns = [_STATE.label("state") if name == "state" else _COLUMNS[name] for name in names]
    return (
        select(*columns)
        .join(keys, keys.c.key_id == invitations.c.key_id)
        .where(invitations.c.project_id == context.project_id)
    )


async def _invitation(
    db: AsyncConnection, context: Context, invitation_id: UUID
) -> InvitationRecord:
    query = _invitations(context).where(invitations.c.invitation_id == invitation_id)
    row = (await db.execute(query)).mappings().one_or_none()
    if row is None:
        wire = f"inv_{invitation_id.hex}"
        raise InvitationNotFound(f"no invitation {wire}", field="invitation_id", value=wire)
    return _record(row)


def _record(row: Any) -> InvitationRecord:  # noqa: ANN401 -- a row of the query above
    return replace(InvitationRecord(**row), scopes=tuple(row["scopes"]))


def _log(context: Context, what: str, *of: object) -> None:
    """A line for whoever runs the service: ids and scopes, and never a secret or a name."""
    _logger.info("%s, by key %s", what % of, context.key_id)


_COLUMNS: dict[str, ColumnElement[Any]] = {
    **{name: keys.c[name] for name in ("name", "scopes")},
    **{
        name: invitations.c[name]
        for name in ("invitation_id", "key_id", "path", "created_at", "expires_at")
    },
}
_STATE = case(
    (invitations.c.used_at.is_not(None), "used"),
    (or_(invitations.c.revoked_at.is_not(None), keys.c.revoked_at.is_not(None)), "withdrawn"),
    (
        and_(
            invitations.c.expires_at > func.now(),
            or_(keys.c.expires_at.is_(None), keys.c.expires_at > func.now()),
        ),
        "open",
    ),
    else_="expired",
)
_INVITED = exists().where(invitations.c.key_id == keys.c.key_id, _STATE == "open")
"""True if a link for the key is open."""

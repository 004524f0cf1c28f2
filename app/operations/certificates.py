"""Issue certificates: an interim one of a session as it stands, the final one of a closed session.

The position is taken under the session's row lock; the ledger up to it never changes, so all the
rest is read, made and signed without one. What was issued is written down under the lock again, if
no correction came in between: hence all certificates of a revision supersede the same earlier one.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.certificate import Account, Position, certificate, digest_of, position_of
from app.core.chain import chain_head, chain_start
from app.core.pool import Pool
from app.core.signing import public_of
from app.errors import Busy, LedgerBroken, SigningKeyMissing
from app.operations.journal import Journal, locked
from app.operations.ledger import moment, records_of
from app.operations.rooms import Rooms

ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate's bytes and their digest in hexadecimal."""

    body: bytes
    digest: str
    final: bool


@dataclass(frozen=True, slots=True)
class _Moment:
    """A session as it stood under the lock."""

    position: Position
    pool: Pool
    sequence: int
    revision: int
    head: bytes | None
    final: bool
    issued_at: datetime
    supersedes: bytes | None


def public_key(rooms: Rooms) -> bytes:
    """The public key certificates are signed with; refused when there is none."""
    return public_of(_signing_key(rooms))


async def issue(rooms: Rooms, session_id: UUID) -> Issued:
    """The certificate of the session as it stands; the same as before while nothing happened.

    Of a closed session it is the final one, with the seed: the same bytes for ever.
    """
    async with rooms.transaction() as db:
        kept = await _final(db, rooms.project_id, session_id)
    if kept is not None:
        return kept
    key = _signing_key(rooms)
    for _ in range(ATTEMPTS):
        stood = await _stand(rooms, session_id)
        issued = await _made(rooms, session_id, stood, key)
        told = await _write(rooms, session_id, stood, issued)
        if told is not None:
            return told
    raise Busy("the session is being corrected again and again; try again")


def _signing_key(rooms: Rooms) -> Ed25519PrivateKey:
    if rooms.signing_key is None:
        raise SigningKeyMissing(
            "There is no key to sign certificates with. `celeus signing-key FILE` makes one; name"
            " the file in CELEUS_SIGNING_KEY_FILE and start the service again.",
            field="CELEUS_SIGNING_KEY_FILE",
            rule="a file with an Ed25519 private key in PEM",
        )
    return rooms.signing_key


async def _stand(rooms: Rooms, session_id: UUID) -> _Moment:
    """Where the session stands, and what was said of this place before."""
    async with locked(rooms, session_id) as (journal, db):
        known = (await db.execute(_KNOWN, _place(journal))).mappings().one()
        return _Moment(
            position=position_of(journal.plan, journal.state, amended=journal.revision > 1),
            pool=journal.warm.pool,
            sequence=journal.state.sequence,
            revision=journal.revision,
            head=journal.head,
            final=journal.lifecycle == "closed",
            issued_at=known["issued_at"] or journal.now,
            supersedes=known["supersedes"],
        )


async def _made(rooms: Rooms, session_id: UUID, stood: _Moment, key: Ed25519PrivateKey) -> Issued:
    async with rooms.transaction() as db:
        records = await records_of(db, session_id, stood.sequence)
        seed = (await db.execute(_SEED, {"session_id": session_id})).scalar_one()

    def make() -> Issued:
        plan = stood.position.plan
        head = chain_head(chain_start(session_id.bytes, bytes.fromhex(plan.digest)), records)
        if stood.head is not None and head != stood.head:
            name = f"ses_{session_id.hex}"
            raise LedgerBroken(
                f"the ledger of {name} does not lead to the head of its chain: it was changed"
                " behind the service, and nothing is certified from it",
                field="session_id",
                rule="a ledger as it was written",
                value=name,
            )
        account = Account(
            session=session_id.bytes,
            header=stood.pool.header(),
            position=stood.position,
            records=records,
            seed=bytes(seed) if stood.final else None,
            issued_at=moment(stood.issued_at),
            supersedes=None if stood.supersedes is None else stood.supersedes.hex(),
        )
        body = certificate(account, key)
        return Issued(body, digest_of(body), stood.final)

    return await asyncio.to_thread(make)


async def _write(rooms: Rooms, session_id: UUID, stood: _Moment, issued: Issued) -> Issued | None:
    """Note what was issued; None when it has to be made again.

    The first of several at the same place counts: the others are made again, for its moment.
    """
    async with rooms.transaction() as db:
        row = (await db.execute(_LOCK, {"session_id": session_id})).mappings().one()
        if row["revision"] != stood.revision:
            return None
        kept = await _final(db, rooms.project_id, session_id)
        if kept is not None:
            return kept
        asked = {
            "session_id": session_id,
            "sequence": stood.sequence,
            "revision": stood.revision,
        }
        known = (await db.execute(_KNOWN, asked)).mappings().one()
        if known["issued_at"] not in {None, stood.issued_at}:
            return None
        await db.execute(
            _INSERT,
            asked
            | {
                "project_id": rooms.project_id,
                "digest": bytes.fromhex(issued.digest),
                "final": issued.final,
                "issued_at": stood.issued_at,
                "body": issued.body if issued.final else None,
            },
        )
    return issued


async def _final(db: AsyncConnection, project_id: UUID, session_id: UUID) -> Issued | None:
    """The final certificate, once it was issued."""
    asked = {"project_id": project_id, "session_id": session_id}
    row = (await db.execute(_FINAL, asked)).one_or_none()
    return None if row is None else Issued(bytes(row.body), bytes(row.digest).hex(), final=True)


def _place(journal: Journal) -> Mapping[str, Any]:
    return {
        "session_id": journal.session_id,
        "sequence": journal.state.sequence,
        "revision": journal.revision,
    }


_FINAL = text(
    """
    SELECT body, digest FROM certificates
    WHERE session_id = :session_id AND project_id = :project_id AND final
    """
)
_KNOWN = text(
    """
    SELECT
        (SELECT min(issued_at) FROM certificates
         WHERE session_id = :session_id AND sequence = :sequence) AS issued_at,
        (SELECT digest FROM certificates
         WHERE session_id = :session_id AND revision < :revision
         ORDER BY sequence DESC, issued_at DESC, digest LIMIT 1) AS supersedes
    """
)
_SEED = text("SELECT seed FROM sessions WHERE session_id = :session_id")
_LOCK = text("SELECT revision FROM sessions WHERE session_id = :session_id FOR UPDATE")
_INSERT = text(
    """
    INSERT INTO certificates
        (session_id, digest, project_id, sequence, revision, final, issued_at, body)
    VALUES (:session_id, :digest, :project_id, :sequence, :revision, :final, :issued_at, :body)
    ON CONFLICT DO NOTHING
    """
)

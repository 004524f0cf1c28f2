"""Certificates of a session: made for whoever reads, and issued, that is made and kept.

A certificate is a function of the ledger up to a position, of the certificates issued before a
correction, of the time stamp of its opening, and of the signing key. Its time is that of the
ledger's last event. Whoever makes it at the same position therefore gets the same bytes, and
reading that of an open session keeps and locks nothing. The position is seen in one snapshot; the
ledger up to it never changes, so the rest is read afterwards. Only the count of the pool's other
sessions, and whether the stamp has come, are of the moment they are read, so that the first who
reads the final one has it kept.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.certificate.chain import chain_on, chain_start
from celeus.core.certificate.document import (
    Position,
    SessionFacts,
    certificate,
    digest_of,
    position_of,
)
from celeus.core.certificate.ed25519 import public_of
from celeus.core.pools.pool import Pool
from celeus.errors import Busy, LedgerBroken, SessionNotFound, SigningKeyMissing
from celeus.operations.runtime.concurrency import in_thread, paused_collections
from celeus.operations.runtime.context import Context, one_snapshot
from celeus.operations.runtime.process_cache import IssuedCertificate, Place
from celeus.operations.sessions.event_rows import moment
from celeus.operations.sessions.history import document_of
from celeus.operations.sessions.journal import unlocked
from celeus.operations.sessions.ledger import records_of
from celeus.operations.webhooks.outbox import Message, enqueue
from celeus.store.database import raw_connection

ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class _Version:
    """The version of a session's present certificate; ``digest`` of the final one, once issued."""

    version: str
    digest: str | None


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A session as read in one snapshot."""

    place: Place
    position: Position
    pool: Pool
    head: bytes
    final: bool
    created_at: datetime


def public_key(context: Context) -> bytes:
    """The public key certificates are signed with; refused when there is none."""
    return public_of(_signing_key(context))


async def current(context: Context, session_id: UUID) -> IssuedCertificate:
    """The certificate of the session as it is now.

    Of a closed session it is the final one, with the seed, issued now if it was not before; of an
    open one nothing is kept. This process makes or reads it once for as long as nothing happens in
    the session.
    """
    made = await _known(context, session_id)
    if made is None:
        async with context.gates.certificates:
            made = await _known(context, session_id)
            if made is None:
                made = await _made(context, session_id, _signing_key(context))
                if made.final:
                    made = await _keep(context, session_id, made) or made
                _remember(context, session_id, made)
    return made


async def _known(context: Context, session_id: UUID) -> IssuedCertificate | None:
    """Return the present certificate if this process made it or, the final one, if any did."""
    async with context.transaction() as db:
        present = await _present(db, context.project_id, session_id)
        made = context.certificates.known(session_id, present.version)
        if made is None and present.digest is not None:
            made = await _final(db, session_id, present.version)
            _remember(context, session_id, made)
    return made


def _remember(context: Context, session_id: UUID, made: IssuedCertificate) -> None:
    context.certificates.keep(session_id, made.version, made, len(made.body))
    context.digests.keep(session_id, made.version, made.digest)


async def present_digest(context: Context, session_id: UUID) -> str | None:
    """The digest of what ``current`` would give, where it is known without making it."""
    async with context.transaction() as db:
        present = await _present(db, context.project_id, session_id)
    return present.digest or context.digests.known(session_id, present.version)


async def issue(context: Context, session_id: UUID) -> IssuedCertificate:
    """Make the certificate of the session as it is now and keep it; once kept it is returned again.

    The final one is kept with its bytes, for ever. Of an interim one the digest is kept:
    certificates after the next correction name it as the one they supersede.
    """
    for _ in range(ATTEMPTS):
        kept = await _keep(context, session_id, await current(context, session_id))
        if kept is not None:
            return kept
    raise Busy("The session is being corrected again and again; try again.")


def _signing_key(context: Context) -> Ed25519PrivateKey:
    if context.signing_key is None:
        raise SigningKeyMissing(
            "There is no key to sign certificates with. `celeus admin signing-key FILE` makes one;"
            " name the file in CELEUS_SIGNING_KEY_FILE and start the service again.",
            field="CELEUS_SIGNING_KEY_FILE",
            rule="a file with an Ed25519 private key in PEM",
        )
    return context.signing_key


async def _made(context: Context, session_id: UUID, key: Ed25519PrivateKey) -> IssuedCertificate:
    async with unlocked(context, session_id) as (session, row):
        # In a thread, as what holds of claims picked after looking takes a fold; nobody else has
        # the state meanwhile
        position = await in_thread(position_of, session.state)
        snapshot = _Snapshot(
            place=Place(row["sequence"], row["revision"]),
            position=position,
            pool=session.pool,
            head=row["ledger_head"],
            final=row["lifecycle"] == "closed",
            created_at=row["created_at"],
        )
    with paused_collections:
        return await _signed(context, session_id, snapshot, key)


async def _signed(
    context: Context, session_id: UUID, snapshot: _Snapshot, key: Ed25519PrivateKey
) -> IssuedCertificate:
    async with context.transaction() as db:
        await one_snapshot(db)
        opened = (await db.execute(_OPENED, {"session_id": session_id})).one_or_none()
        if opened is None:
            raise SessionNotFound.of(session_id)
        records, last = await records_of(db, session_id, snapshot.place.sequence)
        params = _params(session_id, snapshot.place)
        superseded = (await db.execute(_SUPERSEDED, params)).scalar_one_or_none()
        # Of a session that ran elsewhere nobody counted those that were thrown away
        siblings = None if opened.origin else await pool_sessions(db, session_id)

    def make() -> IssuedCertificate:
        _check_chain(session_id, snapshot, records)
        issued_at = last or moment(snapshot.created_at)
        if opened.origin is not None:
            # The times in its ledger are by another clock
            issued_at = opened.origin["at"]
        account = SessionFacts(
            session=session_id.bytes,
            header=snapshot.pool.header(),
            position=snapshot.position,
            records=records,
            seed=bytes(opened.seed) if snapshot.final else None,
            issued_at=issued_at,
            supersedes=None if superseded is None else bytes(superseded).hex(),
            pool_sessions=siblings,
            stamp=None if opened.stamp is None else bytes(opened.stamp),
            origin=opened.origin,
        )
        body = certificate(account, key)
        time = datetime.fromisoformat(issued_at)
        stamped = opened.stamp is not None
        version = _version(snapshot.place, snapshot.head, siblings or {}, stamped=stamped)
        return IssuedCertificate(
            body, digest_of(body), snapshot.final, snapshot.place, version, time
        )

    return await asyncio.to_thread(make)


async def pool_sessions(db: AsyncConnection, session_id: UUID) -> dict[str, int]:
    """Return this session's number among the project's on the same pool, and the others' fates.

    Pools are the same where their digests are. ``number`` counts from 1 in order of opening.
    Deleted ones count, too; how many is left out where there are none.
    """
    row = (await db.execute(_POOL_SESSIONS, {"session_id": session_id})).mappings().one()
    if row["total"] == 0:
        raise SessionNotFound.of(session_id)
    return {name: n for name, n in row.items() if n or name != "others_deleted"}


def _check_chain(session_id: UUID, snapshot: _Snapshot, records: Sequence[bytes]) -> None:
    plan = snapshot.position.plan
    head = chain_on(chain_start(session_id.bytes, bytes.fromhex(plan.digest)), records)
    if head != snapshot.head:
        name = f"ses_{session_id.hex}"
        raise LedgerBroken(
            f"The ledger of {name} does not lead to the head of its chain: it was changed behind"
            " the service, and nothing is certified from it.",
            field="session_id",
            rule="a ledger as it was written",
            value=name,
        )


async def _keep(
    context: Context, session_id: UUID, issued: IssuedCertificate
) -> IssuedCertificate | None:
    """Keep a certificate; None when a correction came in between, and it has to be made again."""
    async with context.transaction() as db:
        revision = (await db.execute(_LOCK, {"session_id": session_id})).scalar_one_or_none()
        if revision is None:
            raise SessionNotFound.of(session_id)
        if revision != issued.place.revision:
            return None
        present = await _present(db, context.project_id, session_id)
        if present.digest is not None:
            kept = issued.digest == present.digest
            return issued if kept else await _final(db, session_id, present.version)
        inserted = await db.execute(
            _INSERT,
            {
                **_params(session_id, issued.place),
                "project_id": context.project_id,
                "digest": bytes.fromhex(issued.digest),
                "final": issued.final,
                "issued_at": issued.issued_at,
                "body": issued.body if issued.final else None,
            },
        )
        if inserted.rowcount:
            certificate_news = {"digest": issued.digest, "final": issued.final}
            document = await document_of(db, context.project_id, session_id)
            news: list[Message] = [("certificate.issued", {"certificate": certificate_news})]
            await enqueue(db, context.project_id, session_id, news, document)
    return issued


async def _present(db: AsyncConnection, project_id: UUID, session_id: UUID) -> _Version:
    params = {"project_id": project_id, "session_id": session_id}
    row = (await db.execute(_STANDING, params)).one_or_none()
    if row is None:
        raise SessionNotFound.of(session_id)
    digest = None if row.digest is None else bytes(row.digest).hex()
    counted = digest is None and row.origin is None
    counts = await pool_sessions(db, session_id) if counted else {}
    place = Place(row.sequence, row.revision)
    return _Version(_version(place, row.ledger_head, counts, stamped=row.stamped), digest)


def _version(place: Place, head: bytes, counts: Mapping[str, int], *, stamped: bool) -> str:
    # Of two ledgers, one of them restored from a backup, place and head are not the same.
    parts = (place.sequence, place.revision, head.hex(), *counts.values(), int(stamped))
    return ".".join(map(str, parts))


async def _final(db: AsyncConnection, session_id: UUID, version: str) -> IssuedCertificate:
    """The final certificate of a session that has one."""
    raw = raw_connection(db)
    # Binary results: as text every byte would travel as two.
    cursor = await raw.cursor(binary=True).execute(_FINAL, {"session_id": session_id})
    row = await cursor.fetchone()
    if row is None or row[0] is None:
        # Deleted since
        raise SessionNotFound.of(session_id)
    body, digest, *place, time = row
    return IssuedCertificate(body, digest.hex(), True, Place(*place), version, time)


def _params(session_id: UUID, place: Place) -> Mapping[str, Any]:
    return {"session_id": session_id, "sequence": place.sequence, "revision": place.revision}


_STANDING = text(
    """
    SELECT sessions.sequence, sessions.revision, sessions.ledger_head,
           sessions.stamp IS NOT NULL AS stamped, sessions.origin,
           (SELECT digest FROM certificates
            WHERE certificates.session_id = sessions.session_id AND final) AS digest
    FROM sessions WHERE session_id = :session_id AND project_id = :project_id
    """
)
_FINAL = """
    SELECT body, digest, sequence, revision, issued_at FROM certificates
    WHERE session_id = %(session_id)s AND final
    """
_SUPERSEDED = text(
    """
    SELECT digest FROM certificates
    WHERE session_id = :session_id AND revision < :revision
    ORDER BY sequence DESC, issued_at DESC, digest LIMIT 1
    """
)
_POOL_SESSIONS = text(
    """
    WITH own AS (
        SELECT s.session_id, s.project_id, s.created_at, p.digest
        FROM sessions s JOIN pools p USING (pool_id) WHERE s.session_id = :session_id
    ), opened AS (
        SELECT s.session_id, s.created_at,
            CASE WHEN s.lifecycle <> 'closed' THEN 'open'
                WHEN c.session_id IS NULL THEN 'uncertified' ELSE 'certified' END AS fate
        FROM own
            JOIN pools p ON p.project_id = own.project_id AND p.digest = own.digest
            JOIN sessions s ON s.pool_id = p.pool_id
            LEFT JOIN certificates c ON c.session_id = s.session_id AND c.final
        UNION ALL
        SELECT t.session_id, t.opened_at, 'deleted'
        FROM own JOIN tombstones t
            ON t.project_id = own.project_id AND t.pool_digest = own.digest
    )
    SELECT count(*) FILTER (WHERE (one.created_at, one.session_id)
            <= (own.created_at, own.session_id)) AS number,
        count(*) AS total,
        count(*) FILTER (WHERE fate = 'open' AND one.session_id <> own.session_id) AS others_open,
        count(*) FILTER (WHERE fate = 'certified' AND one.session_id <> own.session_id)
            AS others_certified,
        count(*) FILTER (WHERE fate = 'uncertified' AND one.session_id <> own.session_id)
            AS others_closed_without_certificate,
        count(*) FILTER (WHERE fate = 'deleted') AS others_deleted
    FROM own CROSS JOIN opened AS one
    """
)
_OPENED = text("SELECT seed, stamp, origin FROM sessions WHERE session_id = :session_id")
_LOCK = text("SELECT revision FROM sessions WHERE session_id = :session_id FOR UPDATE")
_INSERT = text(
    """
    INSERT INTO certificates
        (session_id, digest, project_id, sequence, revision, final, issued_at, body)
    VALUES (:session_id, :digest, :project_id, :sequence, :revision, :final, :issued_at, :body)
    ON CONFLICT DO NOTHING
    """
)

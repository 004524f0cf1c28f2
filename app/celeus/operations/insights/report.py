"""A session as reports show it: its document, its plan, its course, and its certificate.

All of it is read at one moment, so that no figure contradicts another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.certificate.ed25519 import public_of
from celeus.core.session.question import AnyPlan
from celeus.core.session.session import plan_from_values
from celeus.errors import Busy
from celeus.operations.certificates.issue import current, pool_sessions
from celeus.operations.insights.table import table_claims
from celeus.operations.pools.pools import get_pool
from celeus.operations.pools.record import PoolRecord
from celeus.operations.runtime.context import Context, one_snapshot
from celeus.operations.runtime.process_cache import CertificateRecord, Place
from celeus.operations.sessions.history import Course, course_of, document_of
from celeus.operations.sessions.labelling.instructions import instructions_of
from celeus.operations.sessions.ledger import with_kinds

ATTEMPTS = 3
MOST_EVENTS_INTERIM = 20_000
"""An interim certificate is outdated by the next label; one of a longer ledger is not worth the
seconds that making it takes."""


@dataclass(frozen=True, slots=True)
class ReportedSession:
    """A session at the time ``now``. ``document`` is the one that GET shows.

    ``unjudgeable`` counts folded rounds. ``certified`` is None where ``uncertified`` says why.
    ``claims`` are those of a table.
    ``late_instructions``: when the instructions were changed after the first judgement.
    """

    document: dict[str, Any]
    plan: AnyPlan
    pool_id: UUID
    closed: bool
    course: Course
    unjudgeable: int
    amendments: int
    pool_sessions: Mapping[str, int] | None
    stamped: bool
    certified: CertificateRecord | None
    uncertified: str | None
    public_key: str | None
    now: datetime
    claims: Sequence[Mapping[str, Any]] = ()
    late_instructions: Sequence[datetime] = ()

    @property
    def place(self) -> Place:
        """The position in its history at which the session was read."""
        return Place(self.document["sequence"], self.document["revision"])

    @property
    def origin(self) -> Mapping[str, str] | None:
        """The origin of a session that was pushed; None for one that ran here."""
        origin: Mapping[str, str] | None = self.document["origin"]
        return origin

    @property
    def assumptions(self) -> list[str]:
        """The assumptions of the claim beside the draws, in sentences."""
        stated = [assumption["text"] for assumption in self.document["assumptions"]]
        return stated + self._instructions_changed

    @property
    def _instructions_changed(self) -> list[str]:
        """A sentence where the instructions were changed between judgements."""
        times = [f"{time.astimezone(UTC):%Y-%m-%d %H:%M}" for time in self.late_instructions]
        if not times:
            return []
        often = "" if len(times) == 1 else f"{len(times)} times, last "
        sentence = (
            "The instructions for those who judge were changed between judgements,"
            f" {often}at {times[-1]} UTC: judgements given before and after may not mean the same."
        )
        return [sentence]


async def report(
    context: Context, session_id: UUID, points: int
) -> tuple[ReportedSession, PoolRecord]:
    """The session as it is now and its pool, with its certificate where one can be had.

    Nothing is written: a certificate that was not issued is made to learn its digest, the interim
    one unless the ledger is long.
    """
    account = await _look(context, session_id, points)
    for _ in range(ATTEMPTS):
        if account.certified is not None or not _worth_making(context, account):
            break
        try:
            made = await current(context, session_id)
        except Busy:
            break
        if made.place == account.place:
            certified = CertificateRecord(made.digest, made.final, made.issued_at)
            account = replace(account, certified=certified, uncertified=None)
        else:
            account = await _look(context, session_id, points)
    # A sealed pool never changes, so it needs no part in the snapshot.
    return account, await get_pool(context, account.pool_id)


async def _look(context: Context, session_id: UUID, points: int) -> ReportedSession:
    """The session as it is now, a table with its claims of the same moment."""
    account = await _read(context, session_id, points)
    if account.document["table"] is None:
        return account
    for _ in range(ATTEMPTS):
        found = await table_claims(context, session_id)
        if found["sequence"] == account.document["sequence"]:
            return replace(account, claims=found["data"])
        account = await _read(context, session_id, points)
    raise Busy("The session goes on faster than its report can be made: try again.")


def _worth_making(context: Context, account: ReportedSession) -> bool:
    short = account.document["sequence"] <= MOST_EVENTS_INTERIM
    return context.signing_key is not None and (account.closed or short)


async def _read(context: Context, session_id: UUID, points: int) -> ReportedSession:
    async with context.transaction() as db:
        await one_snapshot(db)
        document = await document_of(db, context.project_id, session_id)
        params = {
            "session_id": session_id,
            "sequence": document["sequence"],
            "revision": document["revision"],
            "last": document["round"],
        }
        row = (await db.execute(_SESSION, params)).one()
        counted = (await db.execute(_COUNTED, params)).one()
        instructions = await instructions_of(db, row.pool_id, session_id)
        closed = row.lifecycle == "closed"
        certified = await _certified(db, params) if closed else None
        return ReportedSession(
            document=document,
            plan=plan_from_values(row.plan),
            pool_id=row.pool_id,
            closed=closed,
            course=await course_of(db, session_id, document, points),
            unjudgeable=counted.unjudgeable,
            amendments=counted.amendments,
            pool_sessions=None if document["origin"] else await pool_sessions(db, session_id),
            stamped=row.stamped,
            certified=certified,
            uncertified=None if certified is not None else _why_not(context, document),
            public_key=None
            if context.signing_key is None
            else public_of(context.signing_key).hex(),
            now=row.now,
            late_instructions=instructions.late_changes,
        )


async def _certified(db: AsyncConnection, params: dict[str, Any]) -> CertificateRecord | None:
    """The final certificate, once issued: only its bytes are kept."""
    row = (await db.execute(_CERTIFIED, params)).one_or_none()
    return None if row is None else CertificateRecord(bytes(row.digest).hex(), True, row.issued_at)


def _why_not(context: Context, document: dict[str, Any]) -> str:
    if context.signing_key is None:
        return "The service has no key to sign certificates with."
    if document["sequence"] > MOST_EVENTS_INTERIM:
        return "The report of a long open session names no certificate: making one takes seconds."
    return "The session went on while the certificate was being made."


_SESSION = text(
    """
    SELECT pool_id, plan, lifecycle, stamp IS NOT NULL AS stamped, now() AS now
    FROM sessions WHERE session_id = :session_id
    """
)
_COUNTED = with_kinds(
    """
    SELECT
        (SELECT count(*) FROM (
            SELECT DISTINCT ON (round) coalesce(loss, losses[1]) AS loss FROM events
            WHERE session_id = :session_id AND round <= :last
              AND kind IN (:observation, :unjudgeable, :amendment)
            ORDER BY round, sequence DESC
        ) AS latest WHERE loss IS NULL) AS unjudgeable,
        (SELECT count(*) FROM events
         WHERE session_id = :session_id AND kind = :amendment) AS amendments
    """
)
_CERTIFIED = text(
    """
    SELECT digest, issued_at FROM certificates
    WHERE session_id = :session_id AND sequence = :sequence AND revision = :revision
      AND final
    LIMIT 1
    """
)

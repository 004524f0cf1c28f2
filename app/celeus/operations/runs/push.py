"""Make a session of a run's file: checked in a child process, kept in one transaction."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any
from uuid import UUID

import orjson
from anyio import to_thread
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.certificate.chain import chain_start
from celeus.core.runs.run_file import PoolForm
from celeus.core.session.session import plan_from_values
from celeus.errors import (
    LedgerBroken,
    RunTooCostly,
    SessionDeleted,
    SessionDiffers,
    VerificationBusy,
)
from celeus.operations.access.keys import key_name
from celeus.operations.insights.session_lists import words_of
from celeus.operations.pools.imports import Rows
from celeus.operations.pools.pools import NewPool, create_sealed_pool
from celeus.operations.runs.lines import numbered, row_batches
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.gathering import only_answer
from celeus.operations.runtime.verifications import bounds_of
from celeus.operations.runtime.workers import Frame, WorkerFailed
from celeus.operations.sessions.event_rows import moment
from celeus.operations.sessions.history import document_of
from celeus.operations.sessions.journal import minute
from celeus.operations.sessions.ledger import head_of
from celeus.operations.sessions.sessions import take_place, uncertified
from celeus.store.database import raw_connection

MODULE = "celeus.operations.runs.push_worker"
COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PushResult:
    """The session's document, and whether it was made just now."""

    document: dict[str, Any]
    created: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """The contents of a checked file: the values of its session, and its rows for the database."""

    values: dict[str, Any]
    file: IO[bytes]
    events: IO[bytes]
    trajectory: IO[bytes]

    @property
    def session_id(self) -> UUID:
        return UUID(hex=self.values["session"])


async def push(context: Context, file: IO[bytes]) -> PushResult:
    """The session of a run's file, closed, with its pool; the same once it is there.

    Refuses by its line a file that does not lead to what it says, one whose session is open,
    another ledger of a session that is there, and one that was deleted. Nothing is kept of what is
    refused.
    """
    async with context.transaction() as db:
        now: datetime = (await db.execute(text("SELECT clock_timestamp()"))).scalar_one()
    with ExitStack() as stack:
        events, trajectory = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        async with context.process(VerificationBusy):
            values = await _checked(context, now, [file, events, trajectory])
        run = _Run(values, file, events, trajectory)
        async with context.gates.importing(context.key_id or ""), context.transaction() as db:
            known = await _known(db, context.project_id, run)
            document = known or await _keep(context, db, run, now)
    # Also of one that was there: whoever kept it may have been killed before
    warnings = await uncertified(context, run.session_id)
    document |= {"warnings": document["warnings"] + warnings}
    return PushResult(document, created=known is None)


async def _checked(context: Context, now: datetime, files: list[IO[bytes]]) -> dict[str, Any]:
    """Return what the child found in the first of the files; it writes the rows into the others."""
    job = Frame(
        {
            "project": str(context.project_id),
            "at": moment(now),
            "max_items": context.settings.max_items,
            "lease_seconds": context.settings.lease_seconds_default,
        }
    )
    bounds = bounds_of(context.settings.verification_seconds)
    try:
        return await only_answer(MODULE, job, bounds, files)
    except WorkerFailed as failure:
        raise RunTooCostly(
            "The run takes more time or memory to compute again than this service gives it.",
            field="body",
            rule=f"computed within {bounds.processor_seconds:g} s of processor time and"
            f" {bounds.memory >> 30} GiB of memory",
            value=failure.reason,
        ) from failure


async def _known(db: AsyncConnection, project_id: UUID, run: _Run) -> dict[str, Any] | None:
    """The document of the session where it is there; refuses another ledger of the same id."""
    # Two who push the same file at once do it one after the other
    high, low = divmod(run.session_id.int & (1 << 62) - 1, 1 << 31)
    await db.execute(_TURN, {"high": high, "low": low})
    params = {"session_id": run.session_id}
    there = (await db.execute(_THERE, params)).scalar_one_or_none()
    name = f"ses_{run.session_id.hex}"
    if there is None and (await db.execute(_DELETED, params)).one_or_none() is not None:
        raise SessionDeleted(
            f"There was a session {name}, and it was deleted for good.",
            field="session",
            rule="the id of a session that was never deleted",
            value=name,
        )
    if there is None:
        return None
    if bytes(there).hex() != run.values["head"]:
        raise SessionDiffers(
            f"There is a session {name} already, and its ledger is another one.",
            field="session",
            rule="the ledger that was pushed first: it is closed for good",
            value=name,
        )
    return await document_of(db, project_id, run.session_id)


async def _keep(context: Context, db: AsyncConnection, run: _Run, now: datetime) -> dict[str, Any]:
    """Pool, session, ledger and trajectory, in the transaction of ``db``."""
    values = run.values
    pool_id = await _pool_id(context, db, run)
    owner = await key_name(db, context.key_id)
    document: dict[str, Any] = values["status"] | {
        "pool_id": f"pool_{pool_id.hex}",
        "owner": owner,
        "active_at": moment(minute(now)),
    }
    digest = bytes.fromhex(values["plan_digest"])
    await db.execute(
        _INSERT,
        {
            "session_id": run.session_id,
            "project_id": context.project_id,
            "pool_id": pool_id,
            "plan": orjson.dumps(values["plan"]).decode(),
            "plan_digest": digest,
            "seed": bytes.fromhex(values["seed"]),
            "commitment": bytes.fromhex(values["commitment"]),
            "lease_seconds": context.settings.lease_seconds_default,
            "state": document["state"],
            "precision": values["precision"],
            "budget": values["budget"],
            "sequence": values["sequence"],
            "revision": values["revision"],
            "drawn": values["drawn"],
            "status": orjson.dumps(document).decode(),
            "head": bytes.fromhex(values["head"]),
            "origin": orjson.dumps(document["origin"]).decode(),
            "now": now,
            "owner": owner,
            "active_at": minute(now),
            "words": words_of(None, owner, ()),
        },
    )
    await _copy(db, _EVENTS, run.events)
    await _copy(db, _TRAJECTORY, run.trajectory)
    start = chain_start(run.session_id.bytes, digest)
    found = await head_of(db, run.session_id, start)
    if found.hex() != values["head"]:
        # What a database would not give back as it came is not kept
        raise LedgerBroken(
            "The ledger of the run is not the same once it is stored; nothing was kept.",
            field="body",
            rule="a ledger as it was written",
        )
    plan = plan_from_values(values["plan"])
    await take_place(db, context.project_id, run.session_id, plan)
    return document


async def _pool_id(context: Context, db: AsyncConnection, run: _Run) -> UUID:
    """The project's pool of these items, made of the file's rows where there is none."""
    digest = run.values["pool_digest"]
    params = {"project_id": context.project_id, "digest": bytes.fromhex(digest)}
    there: UUID | None = (await db.execute(_POOL, params)).scalar_one_or_none()
    if there is not None:
        return there
    form = PoolForm.from_dict(run.values["pool"])
    new = NewPool(form.name, form.loss, named=form.systems, score=form.score, metrics=form.metrics)
    record = await create_sealed_pool(context, db, new, _rows(run.file))
    if record.digest != digest:
        raise LedgerBroken(
            "The items of the run are not the same once they are stored; nothing was kept.",
            field="body",
            rule=f"the pool {digest}",
            value=record.digest,
        )
    return record.pool_id


def _rows(file: IO[bytes]) -> Iterator[Rows]:
    _rewind(file)
    lines = numbered(file)
    yield from row_batches(lines, int(orjson.loads(next(lines))["items"]))


async def _copy(db: AsyncConnection, statement: str, file: IO[bytes]) -> None:
    _rewind(file)
    raw = raw_connection(db)
    async with raw.cursor() as cursor, cursor.copy(statement) as copy:
        while part := await to_thread.run_sync(file.read, COPY_BYTES):
            await copy.write(part)


def _rewind(file: IO[bytes]) -> None:
    """To the beginning, from wherever the child has left the descriptor that it shares."""
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    file.seek(0)


_TURN = text("SELECT pg_advisory_xact_lock(CAST(:high AS int), CAST(:low AS int))")
_THERE = text("SELECT ledger_head FROM sessions WHERE session_id = :session_id")
_DELETED = text("SELECT session_id FROM tombstones WHERE session_id = :session_id")
_POOL = text(
    """
    SELECT pool_id FROM pools WHERE project_id = :project_id AND digest = :digest
    ORDER BY pool_id LIMIT 1 FOR KEY SHARE
    """
)
_INSERT = text(
    """
    INSERT INTO sessions (session_id, project_id, pool_id, plan, plan_digest, seed, commitment,
        lease_seconds, lifecycle, state, precision, budget, sequence, revision, drawn, status,
        ledger_head, origin, created_at, updated_at, owner, words, active_at)
    VALUES (:session_id, :project_id, :pool_id, CAST(:plan AS jsonb), :plan_digest, :seed,
        :commitment, :lease_seconds, 'closed', :state, :precision, :budget, :sequence, :revision,
        :drawn, CAST(:status AS jsonb), :head, CAST(:origin AS jsonb), :now, :now, :owner,
        array_to_tsvector(CAST(:words AS text[])), :active_at)
    """
)
_EVENTS = """
    COPY events (project_id, session_id, sequence, kind, round, item, q, strata_q, seen, loss,
        losses, detail, at) FROM STDIN
    """
_TRAJECTORY = """
    COPY trajectory (project_id, session_id, round, sequence, estimate, lower, upper) FROM STDIN
    """

"""Open, read, list and change sessions."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import orjson
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from celeus import seeds
from celeus.core.certificate.chain import chain_start
from celeus.core.ledger import Change
from celeus.core.plans.claim import check_sample
from celeus.core.plans.plan import (
    Claim,
    Plan,
    check_budget,
    check_precision,
    check_stop_when_decided,
)
from celeus.core.plans.plan_request import ENDLESS, SessionRequest, is_endless, plan_of, policy_of
from celeus.core.pools.pool import Pool
from celeus.core.randomness import commitment
from celeus.core.session.question import AnyPlan
from celeus.core.session.session import begin_session
from celeus.errors import (
    InvalidValue,
    PoolNotFound,
    PreconditionFailed,
    Refusal,
    SessionFixed,
    require,
)
from celeus.operations.certificates.issue import issue
from celeus.operations.insights.session_lists import words_of
from celeus.operations.pools.pools import load_pool
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.idempotency import IdempotentRequest, keep, peek, transaction_of
from celeus.operations.runtime.session_record import SessionRecord, status_document
from celeus.operations.runtime.state_cache import CachedSession
from celeus.operations.runtime.status import announce, cached, version_of
from celeus.operations.sessions.append import write
from celeus.operations.sessions.history import document_of
from celeus.operations.sessions.journal import Journal, locked, minute, must_be_open
from celeus.operations.sessions.labelling.instructions import keep_instructions
from celeus.operations.webhooks.outbox import ReportedState, enqueue


class Unchanged(Enum):
    """The value of a field that a change leaves as it is; None and texts have other meanings."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True)
class Opening:
    """The request to open a session on a pool; None selects the default."""

    pool_id: UUID
    request: SessionRequest
    lease_seconds: int | None = None
    name: str | None = None
    tags: Sequence[str] = ()
    instructions: str | None = None
    planned_labels: dict[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """A requested change; None leaves all but precision and instructions as it is.

    ``instructions`` None are those of the pool again.
    """

    precision: float | Literal["unchanged"] | None = "unchanged"
    budget: int | None = None
    stop_when_decided: bool | None = None
    lifecycle: Literal["active", "paused", "closed"] | None = None
    instructions: str | Unchanged | None = UNCHANGED
    archived: bool | None = None
    tags: Sequence[str] | None = None


async def open_session(
    context: Context, opening: Opening, once: IdempotentRequest[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Freeze a plan on a sealed pool, with a fresh secret seed whose commitment is published.

    Refuses what cannot be certified: an unsealed pool, policies that are unknown or guarantee
    nothing, values outside their ranges, a precision no pool risk could reach.
    """
    await peek(context, once)
    _check_planned(opening.planned_labels)
    if not opening.request.best and opening.request.table is None:
        policy_of(opening.request)
    pool = await pool_for(context, opening.pool_id, opening.request.claim)
    seed = seeds.new_seed()
    plan = await asyncio.to_thread(plan_of, opening.request, pool, commitment(seed))
    state = await asyncio.to_thread(begin_session, plan, pool, seed)
    state.question.check_budget(plan.budget)
    session_id = uuid7()
    lease_seconds = opening.lease_seconds or context.settings.lease_seconds_default
    async with context.states.hold(session_id) as slot:
        async with transaction_of(context, once) as db:
            opener = (await db.execute(_OPENER, {"key_id": context.key_id})).one()
            now: datetime = opener.now
            record = SessionRecord(
                project_id=context.project_id,
                session_id=session_id,
                pool_id=opening.pool_id,
                lifecycle="active",
                revision=1,
                lease_seconds=lease_seconds,
                created_at=now,
                ledger_head=chain_start(session_id.bytes, bytes.fromhex(plan.digest)),
                name=opening.name,
                owner=opener.name,
                tags=opening.tags,
                active_at=minute(now),
                planned_labels=opening.planned_labels,
            )
            document = status_document(record, state, pool)
            await _insert(db, record, plan, seed, document)
            if opening.instructions:
                markdown = opening.instructions
                await keep_instructions(db, context, opening.pool_id, session_id, markdown)
            # What is known beforehand may decide it
            news = ReportedState.of("active", state).since(ReportedState())
            await enqueue(db, context.project_id, session_id, news, document)
            if is_endless(plan):
                document = document | {"warnings": [*document["warnings"], ENDLESS]}
            await keep(db, context, once, document)
            # Last, since other openings of the project wait from here on
            await take_place(db, context.project_id, session_id, plan)
        slot.session = CachedSession(plan, pool, state, seed)
    context.stamps.ask(session_id, bytes.fromhex(plan.digest))
    return document


async def take_place(
    db: AsyncConnection, project_id: UUID, session_id: UUID, plan: AnyPlan
) -> None:
    """Give a session that asks something the next place of its project, for good.

    Sessions of the project take turns until the transaction ends.
    """
    if isinstance(plan, Plan) and plan.asks:
        await db.execute(_PLACE, {"project_id": project_id, "session_id": session_id})


async def get_session(context: Context, session_id: UUID) -> tuple[bytes, str]:
    """The status document as JSON, and its version.

    From the cache, else from the session's row; never computed.
    """
    cached_status = await cached(context.cache, context.project_id, session_id)
    if cached_status is not None:
        return cached_status
    async with context.transaction() as db:
        document = await document_of(db, context.project_id, session_id)
    await announce(context.cache, context.project_id, session_id, document)
    return orjson.dumps(document), version_of(document)


async def change_session(
    context: Context,
    session_id: UUID,
    changes: Settings,
    meant: Callable[[str], bool] | None = None,
) -> dict[str, Any]:
    """Change precision, budget, stop or lifecycle, file or archive; repeating it has no effect.

    ``meant`` says whether the change is meant for a version of the status document; if not for the
    present one, it is refused as `PreconditionFailed`.
    A precision or budget binds from the first draw made after it. ``closed`` is irrevocable; the
    final certificate is issued with it, and where that fails the answer's warnings say why.
    """
    others = replace(changes, archived=None, tags=None) != Settings()
    if not others and meant is None:
        async with context.transaction() as db:
            document, filed = await _file(db, context.project_id, session_id, changes)
        if filed:
            await announce(context.cache, context.project_id, session_id, document)
        return document
    async with locked(context, session_id) as (journal, db):
        if meant is not None:
            _check_meant(meant, journal, changes)
        if not isinstance(changes.instructions, Unchanged):
            must_be_open(journal)
            markdown, pool_id = changes.instructions, journal.pool_id
            await keep_instructions(db, context, pool_id, session_id, markdown)
        if others:
            _change(journal, changes)
        document = journal.status()
        if journal.changed:
            await write(db, journal, document)
        stored, filed = await _file(db, context.project_id, session_id, changes)
        document |= stored
    if journal.changed or filed:
        await announce(context.cache, context.project_id, session_id, document)
    if not others or journal.lifecycle != "closed":
        return document
    return document | {"warnings": document["warnings"] + await uncertified(context, session_id)}


def _check_meant(meant: Callable[[str], bool], journal: Journal, changes: Settings) -> None:
    """Refuse a change that is meant for another version than the present one."""
    if not isinstance(changes.instructions, Unchanged):
        raise InvalidValue(
            "The ETag of a session says nothing of its instructions.",
            field="If-Match",
            rule="no instructions beside it",
        )
    if not meant(version_of(journal.status())):
        raise PreconditionFailed("The session has changed since; nothing was changed.")


async def _file(
    db: AsyncConnection, project_id: UUID, session_id: UUID, changes: Settings
) -> tuple[dict[str, Any], bool]:
    """Tag and archive a session as asked; its status document, and whether that is another now.

    No certificate says how a session is filed: the ledger has no event of it, and nothing is
    folded.
    """
    params: dict[str, Any] = {"project_id": project_id, "session_id": session_id}
    row = (await db.execute(_FILED, params)).one_or_none()
    document = await document_of(db, project_id, session_id)
    filed = False
    if changes.tags is not None and row is not None:
        words = words_of(row.name, row.owner, changes.tags)
        filing = params | {"tags": json.dumps(list(changes.tags)), "words": words}
        document |= (await db.execute(_FILE, filing)).scalar_one()
        filed = True
    if changes.archived not in {None, document["archived"]}:
        archiving = params | {"archived": changes.archived}
        document |= (await db.execute(_ARCHIVE, archiving)).scalar_one()
        filed = True
    return document, filed


async def uncertified(context: Context, session_id: UUID) -> list[str]:
    """Issue the final certificate of a session that is closed already, or say why there is none."""
    try:
        await issue(context, session_id)
    except Refusal as refusal:
        return [f"The final certificate was not issued. {refusal.detail}"]
    return []


def _change(journal: Journal, changes: Settings) -> None:
    if changes.lifecycle == journal.lifecycle and changes.lifecycle == "closed":
        return
    must_be_open(journal)
    now = journal.state.stopping
    asks = isinstance(journal.plan, Plan) and journal.plan.asks
    precision, budget, stop = now.precision, now.budget, now.stop_when_decided
    if not isinstance(changes.precision, str) and changes.precision != precision:
        if not isinstance(journal.plan, Plan):
            raise InvalidValue(
                "What precision a session asks for can be changed where it has one interval. Open"
                " another session on the pool.",
                field="precision",
                rule="left out",
                value=changes.precision,
            )
        check_precision(journal.plan, changes.precision)
        precision = changes.precision
    if changes.budget is not None and changes.budget != budget:
        _check_budget(journal, changes.budget)
        budget = changes.budget
    if changes.stop_when_decided is not None:
        check_stop_when_decided(asked=asks, stop=changes.stop_when_decided)
        stop = changes.stop_when_decided
    lifecycle = changes.lifecycle or journal.lifecycle
    rule = replace(now, precision=precision, budget=budget, stop_when_decided=stop)
    if journal.plan.fixed and rule != now:
        raise SessionFixed(
            "This session was opened with fixed settings: precision, budget and stop stay as they"
            " are. Open another session to change them.",
            field="fixed",
            rule="a session that was opened without it",
            value=True,
        )
    if (rule, lifecycle) == (now, journal.lifecycle):
        return
    journal.lifecycle = lifecycle
    detail: dict[str, Any] = {"precision": precision, "budget": budget, "state": lifecycle}
    if asks:
        detail["stop_when_decided"] = stop
    journal.append(Change(precision, budget, stop if asks else None), detail)


def _check_budget(journal: Journal, budget: int) -> None:
    """Refuse a budget that the session cannot go on with."""
    check_budget(budget, journal.plan.most_draws, repeats=journal.plan.repeats)
    journal.state.question.check_budget(budget)
    if budget < journal.state.drawn:
        raise InvalidValue(
            f"budget {budget} is below the {journal.state.drawn} draws already made",
            field="budget",
            rule=f"at least {journal.state.drawn}",
            value=budget,
        )


def _check_planned(labels: dict[str, int] | None) -> None:
    """Refuse a range of labels that is none."""
    ordered = labels is None or labels["low"] <= labels["median"] <= labels["high"]
    require("planned_labels", "low, median and high in this order", labels, holds=ordered)


async def sealed_pool(context: Context, pool_id: UUID) -> Pool:
    """Load a sealed pool into the cache; refuses one that is not sealed."""
    cached_pool = context.states.pool(context.project_id, pool_id)
    if cached_pool is not None:
        return cached_pool
    async with context.transaction() as db:
        pool = await load_pool(db, context.project_id, pool_id)
    context.states.keep_pool(context.project_id, pool_id, pool)
    return pool


async def pool_for(context: Context, pool_id: UUID, claim: Claim) -> Pool:
    """Return a sealed pool for this claim; refuses a population of which it is no sample."""
    pool = await sealed_pool(context, pool_id)
    if claim.target == "population":
        async with context.transaction() as db:
            params = {"pool_id": pool_id, "project_id": context.project_id}
            runs = bool((await db.execute(_READ_AS_RUNS, params)).scalar())
        check_sample(claim.target, runs=runs)
    return pool


async def _insert(
    db: AsyncConnection, record: SessionRecord, plan: AnyPlan, seed: bytes, document: dict[str, Any]
) -> None:
    params = {
        "session_id": record.session_id,
        "project_id": record.project_id,
        "pool_id": record.pool_id,
        "name": record.name,
        "owner": record.owner,
        "tags": json.dumps(list(record.tags)),
        "words": words_of(record.name, record.owner, record.tags),
        "planned_labels": None
        if record.planned_labels is None
        else json.dumps(record.planned_labels),
        "plan": json.dumps(plan.to_dict()),
        "plan_digest": bytes.fromhex(plan.digest),
        "seed": seed,
        "commitment": bytes.fromhex(plan.commitment),
        "ledger_head": record.ledger_head,
        "lease_seconds": record.lease_seconds,
        "state": document["state"],
        "precision": plan.stopping.precision,
        "budget": plan.budget,
        "status": json.dumps(document),
        "now": record.created_at,
        "active_at": record.active_at,
    }
    try:
        await db.execute(_INSERT, params)
    except IntegrityError as error:
        # Deleted since it was read, by this process or another
        raise PoolNotFound.of(record.pool_id) from error


_OPENER = text("SELECT now() AS now, (SELECT name FROM keys WHERE key_id = :key_id) AS name")
_INSERT = text(
    """
    INSERT INTO sessions (session_id, project_id, pool_id, name, plan, plan_digest, seed,
        commitment, lease_seconds, lifecycle, state, precision, budget, sequence, revision, drawn,
        status, planned_labels, ledger_head, created_at, updated_at, owner, tags, words, active_at)
    VALUES (:session_id, :project_id, :pool_id, :name, CAST(:plan AS jsonb), :plan_digest, :seed,
        :commitment, :lease_seconds, 'active', :state, :precision, :budget, 0, 1, 0,
        CAST(:status AS jsonb), CAST(:planned_labels AS jsonb), :ledger_head, :now, :now, :owner,
        CAST(:tags AS jsonb), array_to_tsvector(CAST(:words AS text[])),
        :active_at)
    """
)
_READ_AS_RUNS = text(
    """
    SELECT intake #>> '{answers,repeats}' = 'runs' FROM pools
    WHERE pool_id = :pool_id AND project_id = :project_id
    """
)
_PLACE = text(
    """
    WITH project AS (
        UPDATE projects SET asked = asked + 1 WHERE project_id = :project_id RETURNING asked
    )
    UPDATE sessions SET place = project.asked FROM project WHERE session_id = :session_id
    """
)
_FILED = text(
    """
    SELECT name, owner FROM sessions
    WHERE session_id = :session_id AND project_id = :project_id FOR UPDATE
    """
)
_FILE = text(
    """
    UPDATE sessions SET tags = CAST(:tags AS jsonb),
        status = jsonb_set(status, '{tags}', CAST(:tags AS jsonb)),
        words = array_to_tsvector(CAST(:words AS text[]))
    WHERE session_id = :session_id AND project_id = :project_id
    RETURNING status
    """
)
_ARCHIVE = text(
    """
    UPDATE sessions SET archived_at = CASE WHEN :archived THEN now() END,
        status = jsonb_set(status, '{archived}', to_jsonb(CAST(:archived AS boolean)))
    WHERE session_id = :session_id RETURNING status
    """
)

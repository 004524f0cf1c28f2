"""Open, read, list and change sessions."""

import asyncio
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import orjson
import uuid_utils
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.chain import chain_start
from app.core.ledger import Change
from app.core.plan import (
    Claim,
    Plan,
    PoolFacts,
    check_budget,
    check_precision,
    check_stop_when_decided,
    make_plan,
)
from app.core.policies import DEFAULT_POLICY, SIMULATION_ONLY, policy_named
from app.core.pool import Pool
from app.core.randomness import commitment
from app.core.session import State, begin
from app.core.surrogates import Strategy, scores, strategies
from app.errors import InvalidValue, SessionClosed
from app.operations.history import document_of
from app.operations.hot import Warm
from app.operations.idempotency import Once, keep, peek, transaction_of
from app.operations.journal import Journal, locked
from app.operations.pools import load_pool
from app.operations.rooms import Rooms
from app.operations.status import Known, announce, cached, status_document, version_of
from app.operations.writing import write

SEED_BYTES = 32


@dataclass(frozen=True, slots=True)
class Opening:
    """What a session is opened with; None where the default is wanted."""

    pool_id: UUID
    claim: Claim
    policy: str | None = None
    strategy: Strategy | None = None
    lease_seconds: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """A change asked for; None leaves budget, stop and lifecycle as they are."""

    precision: float | Literal["unchanged"] | None = "unchanged"
    budget: int | None = None
    stop_when_decided: bool | None = None
    lifecycle: Literal["active", "paused", "closed"] | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which sessions a list holds, and where its page starts (before this session, if any)."""

    pool_id: UUID | None = None
    state: str | None = None
    before: UUID | None = None
    limit: int = 50


async def open_session(
    rooms: Rooms, opening: Opening, once: Once[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Freeze a plan on a sealed pool, with a fresh secret seed whose commitment is published.

    Refuses what cannot be certified: an unsealed pool, unknown policies, values outside their
    ranges, a precision no pool risk could reach.
    """
    await peek(rooms, once)
    policy_name = opening.policy or DEFAULT_POLICY
    if policy_name in SIMULATION_ONLY:
        raise InvalidValue(
            f"policy {policy_name} needs the true losses and exists in simulation only",
            field="policy",
            rule="a policy that does not know the losses",
            value=policy_name,
        )
    policy = policy_named(policy_name, **opening.parameters)
    pool = await sealed_pool(rooms, opening.pool_id)
    seed = secrets.token_bytes(SEED_BYTES)
    strategy = opening.strategy or default_strategy(pool)
    plan = make_plan(opening.claim, facts_of(pool), policy, commitment(seed), strategy)

    def start() -> State:
        return begin(plan, scores(pool, strategy), seed)

    state = await asyncio.to_thread(start)
    session_id = UUID(bytes=uuid_utils.uuid7().bytes)
    lease_seconds = opening.lease_seconds or rooms.settings.lease_seconds_default
    async with rooms.hot.hold(session_id) as slot:
        async with transaction_of(rooms, once) as db:
            now: datetime = (await db.execute(text("SELECT now()"))).scalar_one()
            known = Known(
                project_id=rooms.project_id,
                session_id=session_id,
                pool_id=opening.pool_id,
                lifecycle="active",
                revision=1,
                lease_seconds=lease_seconds,
                forecast=None,
                created_at=now,
                ledger_head=chain_start(session_id.bytes, bytes.fromhex(plan.digest)),
                name=opening.name,
            )
            document = status_document(known, plan, state)
            await _insert(db, known, plan, seed, document)
            await keep(db, rooms, once, document)
        slot.warm = Warm(plan, pool, state)
    return document


async def get_session(rooms: Rooms, session_id: UUID) -> tuple[bytes, str]:
    """Where the session stands, as JSON, and the version of that document.

    From the cache, else from the session's row; never computed.
    """
    known = await cached(rooms.cache, rooms.project_id, session_id)
    if known is not None:
        return known
    async with rooms.transaction() as db:
        document = await document_of(db, rooms.project_id, session_id)
    await announce(rooms.cache, rooms.project_id, session_id, document)
    return orjson.dumps(document), version_of(document)


async def get_version(rooms: Rooms, session_id: UUID) -> str:
    """The version of the session's document, for those who wait for another one."""
    _, version = await get_session(rooms, session_id)
    return version


async def list_sessions(rooms: Rooms, wanted: Filter) -> list[dict[str, Any]]:
    """Sessions, newest first, at most ``wanted.limit``."""
    async with rooms.transaction() as db:
        rows = await db.execute(
            _LIST,
            {
                "project_id": rooms.project_id,
                "pool_id": wanted.pool_id,
                "state": wanted.state,
                "before": wanted.before,
                "limit": wanted.limit,
            },
        )
        return [row.status for row in rows]


async def change_session(rooms: Rooms, session_id: UUID, wanted: Settings) -> dict[str, Any]:
    """Change precision, budget, stop or lifecycle; asking for what is so already changes nothing.

    A precision or budget binds from the first draw made after it. ``closed`` is irrevocable.
    """
    async with locked(rooms, session_id) as (journal, db):
        _change(journal, wanted)
        document = journal.status()
        if journal.changed:
            await write(db, journal, document)
    if journal.changed:
        await announce(rooms.cache, rooms.project_id, session_id, document)
    return document


def _change(journal: Journal, wanted: Settings) -> None:
    if wanted.lifecycle == journal.lifecycle and wanted.lifecycle == "closed":
        return
    if journal.lifecycle == "closed":
        raise SessionClosed(
            "the session is closed for good",
            field="session_id",
            rule="a session that is not closed",
            value=f"ses_{journal.session_id.hex}",
        )
    now = journal.state.stopping
    precision, budget, stop = now.precision, now.budget, now.stop_when_decided
    if not isinstance(wanted.precision, str) and wanted.precision != precision:
        check_precision(journal.plan, wanted.precision)
        precision = wanted.precision
    if wanted.budget is not None and wanted.budget != budget:
        check_budget(wanted.budget, journal.plan.items)
        if wanted.budget < journal.state.drawn:
            raise InvalidValue(
                f"budget {wanted.budget} is below the {journal.state.drawn} draws already made",
                field="budget",
                rule=f"at least {journal.state.drawn}",
                value=wanted.budget,
            )
        budget = wanted.budget
    if wanted.stop_when_decided is not None:
        check_stop_when_decided(journal.plan.questions, stop=wanted.stop_when_decided)
        stop = wanted.stop_when_decided
    lifecycle = wanted.lifecycle or journal.lifecycle
    rule = replace(now, precision=precision, budget=budget, stop_when_decided=stop)
    if (rule, lifecycle) == (now, journal.lifecycle):
        return
    journal.lifecycle = lifecycle
    detail: dict[str, Any] = {"precision": precision, "budget": budget, "state": lifecycle}
    if journal.plan.questions:
        detail["stop_when_decided"] = stop
    journal.append(Change(precision, budget, stop if journal.plan.questions else None), detail)


def facts_of(pool: Pool) -> PoolFacts:
    """What a plan states about the pool."""
    return PoolFacts(
        digest=pool.digest,
        items=pool.items,
        lower=pool.scale.lower,
        upper=pool.scale.upper,
        whole_losses=pool.scale.kind == "zero_one",
    )


def default_strategy(pool: Pool) -> Strategy | None:
    """A where the items have probabilities and no surrogate of their own."""
    return "A" if not pool.surrogates and "A" in strategies(pool) else None


async def sealed_pool(rooms: Rooms, pool_id: UUID) -> Pool:
    """The numbers of a sealed pool, kept warm; refuses one that may still grow."""
    known = rooms.hot.pool(rooms.project_id, pool_id)
    if known is not None:
        return known
    async with rooms.transaction() as db:
        pool = await load_pool(db, rooms.project_id, pool_id)
    rooms.hot.keep_pool(rooms.project_id, pool_id, pool)
    return pool


async def _insert(
    db: AsyncConnection, known: Known, plan: Plan, seed: bytes, document: dict[str, Any]
) -> None:
    await db.execute(
        _INSERT,
        {
            "session_id": known.session_id,
            "project_id": known.project_id,
            "pool_id": known.pool_id,
            "name": known.name,
            "plan": json.dumps(plan.to_dict()),
            "plan_digest": bytes.fromhex(plan.digest),
            "seed": seed,
            "commitment": bytes.fromhex(plan.commitment),
            "ledger_head": known.ledger_head,
            "lease_seconds": known.lease_seconds,
            "state": document["state"],
            "precision": plan.precision,
            "budget": plan.budget,
            "status": json.dumps(document),
            "now": known.created_at,
        },
    )


_INSERT = text(
    """
    INSERT INTO sessions (session_id, project_id, pool_id, name, plan, plan_digest, seed,
        commitment, lease_seconds, lifecycle, state, precision, budget, sequence, revision, drawn,
        status, ledger_head, created_at, updated_at)
    VALUES (:session_id, :project_id, :pool_id, :name, CAST(:plan AS jsonb), :plan_digest, :seed,
        :commitment, :lease_seconds, 'active', :state, :precision, :budget, 0, 1, 0,
        CAST(:status AS jsonb), :ledger_head, :now, :now)
    """
)
_LIST = text(
    """
    SELECT status FROM sessions
    WHERE project_id = :project_id
      AND (CAST(:pool_id AS uuid) IS NULL OR pool_id = :pool_id)
      AND (CAST(:state AS text) IS NULL OR state = :state)
      AND (CAST(:before AS uuid) IS NULL OR session_id < :before)
    ORDER BY session_id DESC LIMIT :limit
    """
)

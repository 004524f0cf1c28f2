"""Open, read, list and change sessions."""

import asyncio
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import orjson
import uuid_utils
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.certificates.chain import chain_start
from celeus.core.ledger import Change
from celeus.core.plans.best import BestPlan, make_best
from celeus.core.plans.plan import (
    Claim,
    Plan,
    PoolFacts,
    check_budget,
    check_precision,
    check_stop_when_decided,
    make_plan,
)
from celeus.core.plans.policies import DEFAULT_POLICY, SIMULATION_ONLY, Policy, policy_named
from celeus.core.plans.stopping import Question
from celeus.core.plans.table import (
    BETA,
    Account,
    SmallGroups,
    TablePlan,
    TableWish,
    plan_table,
)
from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import Strategy, strategies
from celeus.core.pools.table import table_of
from celeus.core.randomness import commitment
from celeus.core.sessions.either import AnyPlan, begin
from celeus.errors import InvalidValue, Refusal, SessionFixed
from celeus.operations.certificates.issue import issue
from celeus.operations.pools.pools import load_pool
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.idempotency import Once, keep, peek, transaction_of
from celeus.operations.runtime.state_cache import CachedSession
from celeus.operations.runtime.status import (
    SessionRecord,
    announce,
    cached,
    status_document,
    version_of,
)
from celeus.operations.sessions.append import write
from celeus.operations.sessions.history import document_of
from celeus.operations.sessions.journal import Journal, locked
from celeus.operations.sessions.rounds import must_be_open

SEED_BYTES = 32
ENDLESS = (
    "The session has neither a precision nor a question: it goes on until its budget is spent, by"
    " default until every item of the pool is judged."
)


@dataclass(frozen=True, slots=True)
class TableRequest:
    """What is asked of a table; what is said of no metric, by the name None, is said of all.

    ``groups`` are group columns, each of whose values gets claims; the rest is as in ``TableWish``.
    """

    groups: Sequence[str] = ()
    precision: Mapping[str | None, float | None] = field(default_factory=dict)
    group_precision: Mapping[str | None, float | None] = field(default_factory=dict)
    questions: Sequence[tuple[str | None, Question]] = ()
    group_questions: Sequence[tuple[str | None, Question]] = ()
    account: Account = "each"
    small_groups: SmallGroups = "merge"
    reserve: float = 0.0
    levels: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """The request to open a session; None selects the default.

    ``best``: seek the best of the pool's systems. ``table``: make claims of groups or metrics; on a
    pool of metrics a session always does.
    """

    pool_id: UUID
    claim: Claim
    policy: str | None = None
    strategy: Strategy | None = None
    lease_seconds: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None
    best: bool = False
    table: TableRequest | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """A requested change; None leaves budget, stop and lifecycle as they are."""

    precision: float | Literal["unchanged"] | None = "unchanged"
    budget: int | None = None
    stop_when_decided: bool | None = None
    lifecycle: Literal["active", "paused", "closed"] | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter and cursor of a list of sessions: those before this session, if any."""

    pool_id: UUID | None = None
    state: str | None = None
    before: UUID | None = None
    limit: int = 50


async def open_session(
    context: Context, opening: Opening, once: Once[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Freeze a plan on a sealed pool, with a fresh secret seed whose commitment is published.

    Refuses what cannot be certified: an unsealed pool, policies that are unknown or guarantee
    nothing, values outside their ranges, a precision no pool risk could reach.
    """
    await peek(context, once)
    if not opening.best and opening.table is None:
        _policy_of(opening)
    pool = await sealed_pool(context, opening.pool_id)
    seed = secrets.token_bytes(SEED_BYTES)
    plan = await asyncio.to_thread(_plan, opening, pool, commitment(seed))
    state = await asyncio.to_thread(begin, plan, pool, seed)
    session_id = UUID(bytes=uuid_utils.uuid7().bytes)
    lease_seconds = opening.lease_seconds or context.settings.lease_seconds_default
    async with context.states.hold(session_id) as slot:
        async with transaction_of(context, once) as db:
            now: datetime = (await db.execute(text("SELECT now()"))).scalar_one()
            record = SessionRecord(
                project_id=context.project_id,
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
            document = status_document(record, plan, state, pool)
            await _insert(db, record, plan, seed, document)
            if is_endless(plan):
                document = document | {"warnings": [*document["warnings"], ENDLESS]}
            await keep(db, context, once, document)
        slot.session = CachedSession(plan, pool, state, seed)
    context.stamps.ask(session_id, bytes.fromhex(plan.digest))
    return document


def is_endless(plan: AnyPlan) -> bool:
    """Nothing was asked for whose answer would end the session."""
    if isinstance(plan, TablePlan):
        return not any(claim.wants for claim in plan.claims)
    return isinstance(plan, Plan) and plan.precision is None and not plan.asks


def _plan(opening: Opening, pool: Pool, commitment: str) -> AnyPlan:
    """The plan of a session on the pool."""
    if opening.best:
        return _best_plan(opening, pool, commitment)
    if opening.table is not None or pool.metrics:
        return table_plan(opening, pool, commitment)
    if pool.lineup is not None:
        raise InvalidValue(
            "The pool has several systems, each with a loss of its own.",
            field="best",
            rule="true: seek the best of them; to measure one of them, or to compare two, upload"
            " them as a pool of their own",
            value=False,
        )
    strategy = opening.strategy or default_strategy(pool)
    return make_plan(opening.claim, facts_of(pool), _policy_of(opening), commitment, strategy)


def _best_plan(opening: Opening, pool: Pool, commitment: str) -> BestPlan:
    """The plan of a session that seeks the best; its only parameter is beta."""
    asked = {"policy": opening.policy, "strategy": opening.strategy, **opening.parameters}
    for name, value in asked.items():
        if name != "beta" and value is not None:
            raise InvalidValue(
                "A session that seeks the best of several systems has one way to draw and bet.",
                field=name,
                rule="left out where `best` is true",
                value=value,
            )
    if pool.weights is not None:
        raise InvalidValue(
            "The best is sought among systems whose items all count the same.",
            field="pool_id",
            rule="a pool without weights",
        )
    return make_best(pool, opening.claim, commitment, asked.get("beta"))


def table_plan(opening: Opening, pool: Pool, commitment: str) -> TablePlan:
    """The plan of a session that makes a table of claims; its only parameter is beta."""
    claim, request = opening.claim, opening.table or TableRequest()
    asked: dict[str, Any] = {
        one.name: getattr(claim, one.name)
        for one in fields(Claim)
        if one.name not in {"alpha", "budget", "fixed", "precision", "questions"}
        and getattr(claim, one.name) != one.default
    }
    asked |= {"policy": opening.policy, "strategy": opening.strategy, **opening.parameters}
    for name, value in asked.items():
        if name != "beta" and value is not None:
            raise InvalidValue(
                "A session that makes a table of claims has one way to draw and bet, and is about"
                " its pool.",
                field=name,
                rule="left out in a session with `groups` or on a pool of `metrics`",
                value=value,
            )
    table = table_of(pool, request.groups)
    names = [metric.name for metric in table.metrics]
    precision = {None: claim.precision} | dict(request.precision)
    questions = [*request.questions, *((None, one) for one in claim.questions)]
    beta = asked.get("beta")
    wish = TableWish(
        alpha=claim.alpha,
        account=request.account,
        precision=_by_metric(precision, names),
        group_precision=_by_metric(request.group_precision, names),
        questions=_questions("questions", questions, names),
        group_questions=_questions("group_questions", request.group_questions, names),
        small_groups=request.small_groups,
        levels=request.levels,
        reserve=request.reserve,
        budget=claim.budget,
        beta=BETA if beta is None else beta,
        fixed=claim.fixed,
    )
    return plan_table(wish, table, pool.digest, commitment)


def _by_metric(
    given: Mapping[str | None, float | None], names: Sequence[str]
) -> dict[str, float | None]:
    of_all = given.get(None)
    every = {} if of_all is None else dict.fromkeys(names, of_all)
    return every | {name: value for name, value in given.items() if name is not None}


def _questions(
    field: str, given: Sequence[tuple[str | None, Question]], names: Sequence[str]
) -> dict[str, tuple[Question, ...]]:
    """The questions by metric; one asked of no metric is refused where there are several."""
    by_metric: dict[str, tuple[Question, ...]] = {}
    for metric, question in given:
        if metric is None and len(names) > 1:
            raise InvalidValue(
                "A question is asked of one metric.",
                field=f"{field}.metric",
                rule="one of " + ", ".join(names),
                value=None,
            )
        name = metric or names[0]
        by_metric[name] = (*by_metric.get(name, ()), question)
    return by_metric


def _policy_of(opening: Opening) -> Policy:
    """The policy asked for; refuses those that are unknown or guarantee nothing."""
    policy_name = opening.policy or DEFAULT_POLICY
    if policy_name in SIMULATION_ONLY:
        raise InvalidValue(
            f"policy {policy_name} needs the true losses and exists in simulation only",
            field="policy",
            rule="a policy that does not know the losses",
            value=policy_name,
        )
    policy = policy_named(policy_name, **opening.parameters)
    if not policy.recentred:
        raise InvalidValue(
            "recentred false ignores that items are drawn without replacement: its interval"
            " guarantees nothing, and it exists in simulation only",
            field="recentred",
            rule="true, or left out",
            value=False,
        )
    return policy


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


async def get_version(context: Context, session_id: UUID) -> str:
    """The version of the status document."""
    _, version = await get_session(context, session_id)
    return version


async def list_sessions(context: Context, page: Filter) -> list[dict[str, Any]]:
    """Sessions, newest first, at most ``wanted.limit``."""
    async with context.transaction() as db:
        rows = await db.execute(
            _LIST,
            {
                "project_id": context.project_id,
                "pool_id": page.pool_id,
                "state": page.state,
                "before": page.before,
                "limit": page.limit,
            },
        )
        return [row.status for row in rows]


async def change_session(context: Context, session_id: UUID, changes: Settings) -> dict[str, Any]:
    """Change precision, budget, stop or lifecycle; repeating a change has no effect.

    A precision or budget binds from the first draw made after it. ``closed`` is irrevocable; the
    final certificate is issued with it, and where that fails the answer's warnings say why.
    """
    async with locked(context, session_id) as (journal, db):
        _change(journal, changes)
        document = journal.status()
        if journal.changed:
            await write(db, journal, document)
    if journal.changed:
        await announce(context.cache, context.project_id, session_id, document)
    if journal.lifecycle != "closed":
        return document
    return document | {"warnings": document["warnings"] + await _uncertified(context, session_id)}


async def _uncertified(context: Context, session_id: UUID) -> list[str]:
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
        check_budget(changes.budget, journal.plan.drawable)
        if changes.budget < journal.state.drawn:
            raise InvalidValue(
                f"budget {changes.budget} is below the {journal.state.drawn} draws already made",
                field="budget",
                rule=f"at least {journal.state.drawn}",
                value=changes.budget,
            )
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


def facts_of(pool: Pool) -> PoolFacts:
    """What a plan states about the pool."""
    return PoolFacts(
        digest=pool.digest,
        items=pool.items,
        lower=pool.scale.lower,
        upper=pool.scale.upper,
        whole_losses=pool.scale.kind == "zero_one",
        known=pool.known,
        difference=pool.scale.kind == "difference",
        systems=None if pool.systems is None else (pool.systems.a, pool.systems.b),
        based_on=pool.based_on,
        weights=pool.weights,
        score=pool.score,
    )


def default_strategy(pool: Pool) -> Strategy | None:
    """A where the items have probabilities and no surrogate of their own."""
    return "A" if not pool.surrogates and "A" in strategies(pool) else None


async def sealed_pool(context: Context, pool_id: UUID) -> Pool:
    """Load a sealed pool into the cache; refuses one that is not sealed."""
    cached_pool = context.states.pool(context.project_id, pool_id)
    if cached_pool is not None:
        return cached_pool
    async with context.transaction() as db:
        pool = await load_pool(db, context.project_id, pool_id)
    context.states.keep_pool(context.project_id, pool_id, pool)
    return pool


async def _insert(
    db: AsyncConnection, record: SessionRecord, plan: AnyPlan, seed: bytes, document: dict[str, Any]
) -> None:
    await db.execute(
        _INSERT,
        {
            "session_id": record.session_id,
            "project_id": record.project_id,
            "pool_id": record.pool_id,
            "name": record.name,
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

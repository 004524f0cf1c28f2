"""Diagnostics of a running session: its surrogate and its workers."""

import asyncio
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

import numpy as np
import orjson
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.insights.sentences import Contrast
from celeus.core.insights.surrogate import JudgedRounds, diagnose
from celeus.core.plans.plan import Plan
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import Pool
from celeus.core.pools.score import Score, default_score
from celeus.core.pools.surrogates import scores
from celeus.core.pools.systems import AnySystems, Systems, systems_from
from celeus.errors import InvalidValue
from celeus.operations.pools.pools import load_pool
from celeus.operations.runtime.context import Context, one_snapshot
from celeus.operations.sessions.history import document_of
from celeus.operations.sessions.ledger import with_kinds
from celeus.operations.sessions.sessions import get_session

MOST_EVENTS = 200_000
"""Events of the last hour that are counted; of more, the latest."""

_ROUND = np.dtype([("round", ">i4"), ("item", ">i4"), ("q", ">f8"), ("loss", ">f8")])


async def surrogate(context: Context, session_id: UUID) -> tuple[dict[str, Any], str]:
    """Surrogate diagnostics after the folded rounds, and their version.

    Read from the ledger by one statement and computed in a thread; takes no lock on the session.
    """
    body, _ = await get_session(context, session_id)
    document = orjson.loads(body)
    if document["estimate"] is None:
        raise InvalidValue(
            "A session that seeks the best of several systems, or makes a table of claims, has no"
            " surrogate of one loss.",
            field="session_id",
            rule="a session that measures a risk or a difference",
            value=document["id"],
        )
    if document["repeats"]:
        raise InvalidValue(
            "A session that runs its items again learns from the runs of every item: how good the"
            " surrogate alone is, is not counted.",
            field="session_id",
            rule="a session without `repeats`",
            value=document["id"],
        )
    version = _version(document)
    result = context.worths.known(session_id, version)
    if result is not None:
        return result, version
    async with context.gates.surrogates:
        result = context.worths.known(session_id, version)
        if result is None:
            result, version = await _compute(context, session_id)
            context.worths.keep(session_id, version, result)
    return result, version


async def surrogate_version(context: Context, session_id: UUID) -> str:
    """The version of the surrogate diagnostics, without computing them."""
    body, _ = await get_session(context, session_id)
    return _version(orjson.loads(body))


async def workers(
    context: Context, session_id: UUID, after: str | None, limit: int
) -> dict[str, Any]:
    """Labels of the last minute and hour by worker, with the draws each holds.

    Sorted by name, from the one after ``after``.
    """
    async with context.transaction() as db:
        await one_snapshot(db)
        document = await document_of(db, context.project_id, session_id)
        params = {
            "session_id": session_id,
            "sequence": document["sequence"],
            "most": MOST_EVENTS,
            "after": after,
            "limit": limit,
        }
        row = (await db.execute(_WORKERS, params)).mappings().one()
    return dict(row)


@dataclass(frozen=True, slots=True)
class Opening:
    """A session's plan with its digest, and its pool's measure, as fixed at the opening.

    ``intake``: how the file was read that the pool was made of; None where it was made of none.
    """

    plan: dict[str, Any]
    digest: str
    pool: str
    scale: LossScale
    systems: AnySystems | None
    declared: Score | None
    intake: dict[str, Any] | None

    @property
    def score(self) -> Score:
        """Name and direction of the mean of its losses."""
        return self.declared or default_score(self.scale, self.systems)

    @property
    def contrast(self) -> Contrast | None:
        """The two systems as they are called; None of other sessions."""
        systems = self.systems if isinstance(self.systems, Systems) else None
        return Contrast.of(self.scale, systems, self.declared)


async def get_opening(context: Context, session_id: UUID) -> Opening:
    """The session's frozen plan, and its pool."""
    async with context.transaction() as db:
        await one_snapshot(db)
        await document_of(db, context.project_id, session_id)
        row = (await db.execute(_OPENING, {"session_id": session_id})).one()
    scale = LossScale(row.loss_kind, row.loss_lower, row.loss_upper)
    systems = None if row.systems is None else systems_from(row.systems)
    score = None if row.score is None else Score(**row.score)
    digest = bytes(row.plan_digest).hex()
    return Opening(row.plan, digest, row.pool, scale, systems, score, row.intake)


async def _compute(context: Context, session_id: UUID) -> tuple[dict[str, Any], str]:
    async with context.transaction() as db:
        await one_snapshot(db)
        document = await document_of(db, context.project_id, session_id)
        row = (await db.execute(_PLAN, {"session_id": session_id})).one()
        plan = Plan.from_dict(row.plan)
        pool = context.states.pool(context.project_id, row.pool_id)
        if pool is None:
            pool = await load_pool(db, context.project_id, row.pool_id)
            context.states.keep_pool(context.project_id, row.pool_id, pool)
        judgements = await _judgements(db, session_id, plan, document["round"])
    return await asyncio.to_thread(_diagnostics, document, plan, pool, judgements), _version(
        document
    )


def _diagnostics(
    document: dict[str, Any], plan: Plan, pool: Pool, judgements: JudgedRounds
) -> dict[str, Any]:
    diagnostics = asdict(diagnose(plan, scores(pool, plan.strategy), judgements))
    names = ("policy", "strategy", "round", "revision", "width")
    uses = {"used": plan.policy.uses_scores}
    return {name: document[name] for name in names} | uses | diagnostics


async def _judgements(
    db: AsyncConnection, session_id: UUID, plan: Plan, folded: int
) -> JudgedRounds:
    params = {"session_id": session_id, "folded": folded}
    rows = (await db.execute(_JUDGEMENTS, params)).scalar_one_or_none()
    every = np.frombuffer(rows or b"", dtype=_ROUND)
    rounds = every[~np.isnan(every["loss"])]
    return JudgedRounds(
        items=plan.drawable,
        folded=folded,
        round=rounds["round"].astype(np.int64),
        item=rounds["item"].astype(np.int64),
        q=rounds["q"].astype(np.float64),
        loss=(rounds["loss"].astype(np.float64) - plan.lower) / plan.scale.width,
        drawn=every["item"].astype(np.int64),
    )


def _version(document: dict[str, Any]) -> str:
    return f"{document['round']}.{document['revision']}"


_OPENING = text(
    """
    SELECT plan, plan_digest, pools.name AS pool, loss_kind, loss_lower, loss_upper, systems, score,
        intake
    FROM sessions JOIN pools USING (pool_id)
    WHERE session_id = :session_id
    """
)
_PLAN = text("SELECT plan, pool_id FROM sessions WHERE session_id = :session_id")
# Packed, because a hundred thousand rows would cost more to read than to compute with. One pass
# without a join: of a young session the database knows no sizes, and would go through all rounds
# for every round.
_JUDGEMENTS = with_kinds(
    """
    WITH judged AS (
        SELECT round,
               max(item) FILTER (WHERE kind = :draw) AS item,
               max(q) FILTER (WHERE kind = :draw) AS q,
               (array_agg(loss ORDER BY sequence DESC) FILTER (WHERE kind <> :draw))[1] AS loss
        FROM events
        WHERE session_id = :session_id AND round <= :folded
          AND kind IN (:draw, :observation, :unjudgeable, :amendment)
        GROUP BY round
    )
    SELECT string_agg(
        int4send(round) || int4send(item) || float8send(q) || float8send(coalesce(loss, 'NaN')),
        ''::bytea ORDER BY round)
    FROM judged
    """
)
# Times grow with the sequence, which has no gaps: where the hour begins is found by halving.
_WORKERS = with_kinds(
    """
    WITH RECURSIVE clock AS MATERIALIZED (
        SELECT clock_timestamp() AS at
    ), halved AS (
        SELECT greatest(0, CAST(:sequence AS int) - :most) AS before,
               CAST(:sequence AS int) + 1 AS within
        UNION ALL
        SELECT CASE WHEN event.at <= clock.at - interval '1 hour'
                    THEN event.sequence ELSE before END,
               CASE WHEN event.at <= clock.at - interval '1 hour'
                    THEN within ELSE event.sequence END
        FROM halved CROSS JOIN clock JOIN events AS event
            ON event.session_id = :session_id AND event.sequence = (before + within) / 2
        WHERE within - before > 1
    ), counted AS (
        SELECT max(before) AS before FROM halved
    ), recent AS (
        SELECT detail->>'worker' COLLATE "C" AS worker,
               count(*) FILTER (WHERE event.at > clock.at - interval '1 minute') AS minute,
               count(*) AS hour,
               max(event.at) AS last
        FROM events AS event CROSS JOIN clock CROSS JOIN counted
        WHERE session_id = :session_id AND sequence > counted.before
          AND kind = ANY(CASE WHEN (SELECT jsonb_exists(plan, 'panel') FROM sessions
                                    WHERE session_id = :session_id)
                         THEN ARRAY[:rating] ELSE ARRAY[:observation, :unjudgeable] END)
          AND (kind <> :rating OR NOT jsonb_exists(detail, 'author'))
        GROUP BY 1
    ), holds AS MATERIALIZED (
        SELECT round, hold.worker, hold.expires_at
        FROM leases CROSS JOIN clock CROSS JOIN LATERAL (VALUES
            (worker, expires_at), (beside->>1, CAST(beside->>2 AS timestamptz))
        ) AS hold(worker, expires_at)
        WHERE session_id = :session_id AND hold.expires_at > clock.at
    ), held AS (
        SELECT worker COLLATE "C" AS worker,
               json_agg(json_build_object('round', round, 'expires_at',
                    to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'))
                    ORDER BY round) AS draws
        FROM holds GROUP BY 1
    ), page AS (
        SELECT worker, coalesce(minute, 0) AS labels_minute, coalesce(hour, 0) AS labels_hour,
               to_char(last AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')
                   AS last_label_at,
               coalesce(draws, '[]') AS draws
        FROM recent FULL JOIN held USING (worker)
        WHERE CAST(:after AS text) IS NULL OR worker > CAST(:after AS text)
        ORDER BY worker LIMIT :limit
    )
    SELECT clock.at,
           greatest(clock.at - interval '1 hour',
                    (SELECT min(event.at) FROM events AS event
                     WHERE session_id = :session_id AND sequence = counted.before + 1
                       AND counted.before > 0)) AS since,
           (SELECT coalesce(sum(minute), 0)::int FROM recent) AS labels_minute,
           (SELECT coalesce(sum(hour), 0)::int FROM recent) AS labels_hour,
           (SELECT count(DISTINCT round) FROM holds) AS draws,
           (SELECT coalesce(json_agg(page), '[]') FROM page) AS data
    FROM clock CROSS JOIN counted
    """
)

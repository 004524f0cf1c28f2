"""What people want to see of a running session beside its interval: its surrogate, its workers."""

import asyncio
from dataclasses import asdict
from typing import Any
from uuid import UUID

import numpy as np
import orjson
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.hindsight import Judged
from app.core.plan import Plan, plan_from
from app.core.pool import Pool
from app.core.surrogates import scores
from app.core.worth import worth
from app.operations.history import document_of, one_snapshot
from app.operations.pools import load_pool
from app.operations.rooms import Rooms
from app.operations.sessions import get_session

MOST_EVENTS = 200_000
"""Events of the last hour that are counted; of more, the latest."""

_ROUND = np.dtype([("round", ">i4"), ("item", ">i4"), ("q", ">f8"), ("loss", ">f8")])


async def surrogate(rooms: Rooms, session_id: UUID) -> tuple[dict[str, Any], str]:
    """What the session's surrogate is worth after its folded rounds, and the version of that.

    Read from the ledger by one statement and computed in a thread; takes no lock on the session.
    """
    body, _ = await get_session(rooms, session_id)
    version = _version(orjson.loads(body))
    told = rooms.worths.known(session_id, version)
    if told is not None:
        return told, version
    async with rooms.worths.turn():
        told = rooms.worths.known(session_id, version)
        if told is None:
            told, version = await _told(rooms, session_id)
            rooms.worths.keep(session_id, version, told)
    return told, version


async def surrogate_version(rooms: Rooms, session_id: UUID) -> str:
    """The version alone, for those who may have it already."""
    body, _ = await get_session(rooms, session_id)
    return _version(orjson.loads(body))


async def workers(rooms: Rooms, session_id: UUID, after: str | None, limit: int) -> dict[str, Any]:
    """Labels of the last minute and hour by worker, with the draws each holds.

    Sorted by name, from the one after ``after``.
    """
    async with rooms.transaction() as db:
        await one_snapshot(db)
        document = await document_of(db, rooms.project_id, session_id)
        asked = {
            "session_id": session_id,
            "sequence": document["sequence"],
            "most": MOST_EVENTS,
            "after": after,
            "limit": limit,
        }
        row = (await db.execute(_WORKERS, asked)).mappings().one()
    return dict(row)


async def opened(rooms: Rooms, session_id: UUID) -> dict[str, Any]:
    """What the session's opening fixed: its plan with its digest, and the pool's name."""
    async with rooms.transaction() as db:
        await document_of(db, rooms.project_id, session_id)
        row = (await db.execute(_OPENED, {"session_id": session_id})).one()
    return {"plan": row.plan, "plan_digest": bytes(row.plan_digest).hex(), "pool": row.pool}


async def _told(rooms: Rooms, session_id: UUID) -> tuple[dict[str, Any], str]:
    async with rooms.transaction() as db:
        await one_snapshot(db)
        document = await document_of(db, rooms.project_id, session_id)
        row = (await db.execute(_PLAN, {"session_id": session_id})).one()
        plan = plan_from(row.plan)
        pool = rooms.hot.pool(rooms.project_id, row.pool_id)
        if pool is None:
            pool = await load_pool(db, rooms.project_id, row.pool_id)
            rooms.hot.keep_pool(rooms.project_id, row.pool_id, pool)
        judged = await _judged(db, session_id, plan, document["round"])
    return await asyncio.to_thread(_computed, document, plan, pool, judged), _version(document)


def _computed(document: dict[str, Any], plan: Plan, pool: Pool, judged: Judged) -> dict[str, Any]:
    width = document["precision"] or document["width"]
    found = asdict(worth(plan, scores(pool, plan.strategy), judged, width))
    named = ("policy", "strategy", "round", "revision", "width")
    used = {"used": plan.policy.uses_scores}
    return {name: document[name] for name in named} | used | found


async def _judged(db: AsyncConnection, session_id: UUID, plan: Plan, folded: int) -> Judged:
    asked = {"session_id": session_id, "folded": folded}
    packed = (await db.execute(_JUDGED, asked)).scalar_one_or_none()
    rounds = np.frombuffer(packed or b"", dtype=_ROUND)
    return Judged(
        items=plan.items,
        folded=folded,
        round=rounds["round"].astype(np.int64),
        item=rounds["item"].astype(np.int64),
        q=rounds["q"].astype(np.float64),
        loss=(rounds["loss"].astype(np.float64) - plan.lower) / plan.scale.width,
    )


def _version(document: dict[str, Any]) -> str:
    return f"{document['round']}.{document['revision']}.{document['precision']}"


_OPENED = text(
    """
    SELECT plan, plan_digest, pools.name AS pool FROM sessions JOIN pools USING (pool_id)
    WHERE session_id = :session_id
    """
)
_PLAN = text("SELECT plan, pool_id FROM sessions WHERE session_id = :session_id")
# Packed, because a hundred thousand rows would cost more to read than to compute with.
_JUDGED = text(
    """
    WITH judged AS (
        SELECT DISTINCT ON (round) round, loss FROM events
        WHERE session_id = :session_id AND kind IN (2, 3, 4) AND round <= :folded
        ORDER BY round, sequence DESC
    )
    SELECT string_agg(
        int4send(draw.round) || int4send(draw.item) || float8send(draw.q)
            || float8send(judged.loss),
        ''::bytea ORDER BY draw.round)
    FROM judged JOIN events AS draw
        ON draw.session_id = :session_id AND draw.kind = 1 AND draw.round = judged.round
    WHERE judged.loss IS NOT NULL
    """
)
# Times grow with the sequence, which has no gaps: where the hour begins is found by halving.
_WORKERS = text(
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
        WHERE session_id = :session_id AND sequence > counted.before AND kind IN (2, 3)
        GROUP BY 1
    ), held AS (
        SELECT worker COLLATE "C" AS worker,
               json_agg(json_build_object('round', round, 'expires_at', expires_at)
                        ORDER BY round) AS draws
        FROM leases WHERE session_id = :session_id GROUP BY 1
    ), page AS (
        SELECT worker, coalesce(minute, 0) AS labels_minute, coalesce(hour, 0) AS labels_hour,
               last AS last_label_at, coalesce(draws, '[]') AS draws
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
           (SELECT count(*) FROM leases WHERE session_id = :session_id) AS draws,
           (SELECT coalesce(json_agg(page), '[]') FROM page) AS data
    FROM clock CROSS JOIN counted
    """
)

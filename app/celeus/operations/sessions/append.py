"""Appending to a session's ledger: everything an operation did, in one statement.

It goes past SQLAlchemy, straight to the driver: an observation is mostly the price of sending
statements.
"""

import asyncio
import re
from typing import Any

import orjson
from psycopg.rows import class_row, scalar_row
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.insights.forecast import MOST_TIMES, TOGETHER, pace
from celeus.core.ledger import Observation, Unjudgeable
from celeus.core.pools.item import Item
from celeus.core.session.points import Points
from celeus.operations.pools.pools import PAGE_BYTES
from celeus.operations.sessions.event_rows import KINDS, row_of
from celeus.operations.sessions.journal import Journal
from celeus.operations.webhooks.outbox import POST, ReportedState, posted
from celeus.store.database import raw_connection

POINTS_AT_ONCE = 500


async def write(db: AsyncConnection, journal: Journal, status: dict[str, Any]) -> dict[int, Item]:
    """Append what the operation did, ``status`` being the document after it; webhooks are notified.

    Whether there is anything to tell changes nothing about the statements sent: who only labels
    may not know what is decided, and could time one more.

    Returns the wanted items by index, in the order of each caller until PAGE_BYTES are full: one at
    least.
    """
    journal.settle()
    state = journal.state
    points = state.question.points[journal.folded_before :]
    if len(points) > POINTS_AT_ONCE:
        rows = await asyncio.to_thread(_points, points)
    else:
        rows = _points(points)
    news = ReportedState.of(journal.lifecycle, state).since(journal.reported)
    raw = raw_connection(db)
    cursor = await raw.cursor(row_factory=class_row(Item)).execute(
        _APPEND,
        {
            "project_id": journal.project_id,
            "session_id": journal.session_id,
            "pool_id": journal.pool_id,
            "now": journal.now,
            "sequence": state.sequence,
            "revision": journal.revision,
            "lifecycle": journal.lifecycle,
            "state": status["state"],
            "precision": state.stopping.precision,
            "budget": state.stopping.budget,
            "drawn": state.drawn,
            "head": journal.head,
            "status": _json(status),
            "active_at": status["active_at"],
            "seconds_per_label": journal.seconds_per_label,
            "entries": _json([row_of(entry) for entry in journal.entries]),
            "points": rows,
            "leases": _json(journal.standing_leases),
            "judged": journal.judged,
            "wanted": _json(_wanted(journal)),
            "page_bytes": PAGE_BYTES,
            "messages": posted(news, status),
            "tallies": _json(_tallies(journal)),
        },
    )
    return {item.index: item for item in await cursor.fetchall()}


async def finish(db: AsyncConnection, journal: Journal) -> tuple[dict[str, Any], dict[int, Item]]:
    """Write what was appended; the status document after it, and the wanted items by index.

    Both are taken while the session is held: a moment later the state may already be ahead, by
    what another request has yet to commit.
    """
    if _pace_is_due(journal):
        cursor = raw_connection(db).cursor(row_factory=scalar_row)
        await cursor.execute(_TIMES, {"session_id": journal.session_id, "most": MOST_TIMES})
        journal.seconds_per_label = pace(await cursor.fetchall())
    journal.settle()
    document = journal.status()
    writes = journal.changed or bool(journal.wanted)
    return document, await write(db, journal, document) if writes else {}


def _pace_is_due(journal: Journal) -> bool:
    """The judgements of this transaction complete another ``TOGETHER``."""
    after = journal.state.observed
    return after // TOGETHER > (after - len(journal.judged)) // TOGETHER


def _points(points: Points) -> str:
    """Trajectory rows as JSON, encoded in parts to keep other requests going."""
    parts = []
    for start in range(0, len(points), POINTS_AT_ONCE):
        rows = [
            {
                "round": point.round,
                "estimate": point.estimate,
                "lower": point.interval.lower,
                "upper": point.interval.upper,
            }
            for point in points[start : start + POINTS_AT_ONCE]
        ]
        parts.append(_json(rows).strip("[]"))
    return f"[{','.join(parts)}]"


def _tallies(journal: Journal) -> list[dict[str, Any]]:
    """Labels given with each key and the last one's round; only that may be undone."""
    return [
        {"key_id": key_id, "labels": labels, "last_round": last}
        for key_id, (labels, last) in journal.tallies.items()
    ]


def _wanted(journal: Journal) -> list[dict[str, int]]:
    """The items that each caller is to be sent, in their order."""
    return [
        {"caller": caller, "place": place, "index": index}
        for caller, indices in enumerate(journal.wanted)
        for place, index in enumerate(dict.fromkeys(indices), start=1)
    ]


def _short(statement: str) -> str:
    """The statement without its indentation: the driver keeps what it has read of 4 096 bytes."""
    return re.sub(r"\n\s+", "\n", statement)


def _json(value: object) -> str:
    """JSON for a statement: floats keep every digit on the way there."""
    return orjson.dumps(value).decode()


# Lists come as JSON: what PostgreSQL sees the length of it plans anew each time, which takes it as
# long as to execute it
_APPEND = _short(
    f"""
    WITH RECURSIVE appended AS (
        INSERT INTO events
            (project_id, session_id, sequence, kind, round, item, q, strata_q, seen, loss, losses,
             detail, at)
        SELECT %(project_id)s, %(session_id)s, entry.*
        FROM json_to_recordset(%(entries)s::json) AS entry(
            sequence int, kind smallint, round int, item int, q float8, strata_q bytea, seen int,
            loss float8, losses float8[], detail jsonb, at timestamptz)
    ), folded AS (
        INSERT INTO trajectory
            (project_id, session_id, round, sequence, estimate, lower, upper)
        SELECT %(project_id)s, %(session_id)s, point.round, %(sequence)s,
               point.estimate, point.lower, point.upper
        FROM json_to_recordset(%(points)s::json)
             AS point(round int, estimate float8, lower float8, upper float8)
        ON CONFLICT (session_id, round)
        DO UPDATE SET sequence = excluded.sequence, estimate = excluded.estimate,
            lower = excluded.lower, upper = excluded.upper
    ), returned AS (
        DELETE FROM leases WHERE session_id = %(session_id)s AND round = ANY(%(judged)s::int[])
    ), granted AS (
        INSERT INTO leases
            (project_id, session_id, round, worker, expires_at, since, keys, passed, beside, runs)
        SELECT %(project_id)s, %(session_id)s, lease.* FROM json_to_recordset(%(leases)s::json)
            AS lease(round int, worker text, expires_at timestamptz, since timestamptz, keys jsonb,
                     passed jsonb, beside jsonb, runs smallint)
        ON CONFLICT (session_id, round)
        DO UPDATE SET worker = excluded.worker, expires_at = excluded.expires_at,
            since = excluded.since, keys = excluded.keys, passed = excluded.passed,
            beside = excluded.beside, runs = excluded.runs
    ), tallied AS (
        INSERT INTO labellers (project_id, session_id, key_id, labels, last_round)
        SELECT %(project_id)s, %(session_id)s, tally.*
        FROM json_to_recordset(%(tallies)s::json)
            AS tally(key_id text, labels int, last_round int)
        ON CONFLICT (session_id, key_id)
        DO UPDATE SET labels = labellers.labels + excluded.labels,
            last_round = excluded.last_round
    ), kept AS (
        UPDATE sessions SET sequence = %(sequence)s, revision = %(revision)s,
            lifecycle = %(lifecycle)s, state = %(state)s, precision = %(precision)s,
            budget = %(budget)s, drawn = %(drawn)s, status = %(status)s::jsonb,
            ledger_head = %(head)s, updated_at = %(now)s,
            active_at = %(active_at)s, seconds_per_label = %(seconds_per_label)s::float8
        WHERE session_id = %(session_id)s
    ), posted AS ({POST}
    ), wanted AS (
        SELECT * FROM json_to_recordset(%(wanted)s::json) AS one(caller int, place int, index int)
    ), page AS (
        SELECT caller, 0 AS place, NULL::int AS index, NULL::text AS id, NULL::text AS payload,
               0::bigint AS bytes
        FROM wanted WHERE place = 1
        UNION ALL
        SELECT wanted.caller, wanted.place, item.*,
               page.bytes + coalesce(octet_length(item.payload), 0)
        FROM page JOIN wanted ON wanted.caller = page.caller AND wanted.place = page.place + 1
        CROSS JOIN LATERAL (
            SELECT index, id, payload::text AS payload FROM items
            WHERE pool_id = %(pool_id)s AND items.index = wanted.index OFFSET 0
        ) AS item
        WHERE page.bytes < %(page_bytes)s
    )
    SELECT index, id, payload FROM page WHERE place > 0
    """  # noqa: S608 -- our own words
)


_TIMES = f"""
    SELECT extract(epoch FROM at)::float8 FROM events
    WHERE session_id = %(session_id)s AND kind IN ({KINDS[Observation]}, {KINDS[Unjudgeable]})
    ORDER BY sequence DESC LIMIT %(most)s
    """  # noqa: S608 -- our own words

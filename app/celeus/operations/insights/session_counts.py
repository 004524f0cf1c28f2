"""Count sessions and what they wait for, without reading all of them."""

from dataclasses import dataclass

from sqlalchemy import text

from celeus.core.plans.stopping import StopReason
from celeus.operations.runtime.context import Context
from celeus.operations.sessions.ledger import with_kinds

STATES = ("active", "paused", "closed", *StopReason)
MOST_OF_A_STATE = 100_000
MOST_RECENT = 1_000
MOST_MILLISECONDS = 2_000


@dataclass(frozen=True, slots=True)
class Census:
    """Sessions by state, of all projects, up to ``MOST_OF_A_STATE`` each.

    All else is of the sessions with an event within a day, up to ``MOST_RECENT``: how many they
    are, their draws that are out, their judgements that no interval has yet, and the seconds since
    the oldest draw that is out.
    """

    states: dict[str, int]
    recent: int
    draws_out: int
    waiting: int
    oldest_draw_seconds: float


async def take_census(context: Context) -> Census:
    """The census as of now; refuses if it takes longer than ``MOST_MILLISECONDS``."""
    async with context.transaction() as db:
        await db.execute(text(f"SET LOCAL statement_timeout = {MOST_MILLISECONDS}"))
        by_state = await db.execute(_STATES, {"states": list(STATES), "most": MOST_OF_A_STATE})
        states = {row.state: row.sessions for row in by_state}
        recent = (await db.execute(_RECENT, {"most": MOST_RECENT})).one()
    return Census(states, *recent)


_STATES = text(
    """
    SELECT state.name AS state, count(found.session_id) AS sessions
    FROM unnest(CAST(:states AS text[])) AS state(name)
    LEFT JOIN LATERAL (
        SELECT one.session_id FROM projects CROSS JOIN LATERAL (
            SELECT session_id FROM sessions
            WHERE sessions.project_id = projects.project_id AND sessions.state = state.name
            LIMIT :most
        ) AS one
        LIMIT :most
    ) AS found ON true
    GROUP BY state.name
    """
)
"""Reads `sessions_by_state_idx` alone."""
_RECENT = with_kinds(
    """
    WITH recent AS MATERIALIZED (
        SELECT one.* FROM projects CROSS JOIN LATERAL (
            SELECT session_id, state, status -> 'rounds' AS rounds FROM sessions
            WHERE sessions.project_id = projects.project_id
                AND active_at > now() - interval '1 day'
            ORDER BY active_at DESC
            LIMIT :most
        ) AS one
        LIMIT :most
    )
    SELECT count(*),
           coalesce(sum(CAST(rounds ->> 'pending' AS int)) FILTER (WHERE state = 'active'), 0),
           coalesce(sum(CAST(rounds ->> 'waiting' AS int)), 0),
           CAST(coalesce(max(extract(epoch FROM now() - oldest.at)), 0) AS float8)
    FROM recent LEFT JOIN LATERAL (
        SELECT events.at FROM leases JOIN events USING (session_id, round)
        WHERE leases.session_id = recent.session_id AND events.kind = :draw
            AND recent.state = 'active'
        ORDER BY leases.round
        LIMIT 1
    ) AS oldest ON true
    """
)
"""The draw of the lowest round is the oldest: one look at two indexes for each session."""

"""A project's sessions: listed in an order, filtered, a page at a time; and counted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import UUID

from sqlalchemy import TextClause, text

from celeus.core.plans.stopping import StopReason
from celeus.errors import InvalidValue
from celeus.operations.runtime.context import Context
from celeus.operations.sessions.ledger import with_kinds
from celeus.store.database import planned_rows

MOST_BYTES: Final = 1000
"""Most bytes of a word; PostgreSQL takes lexemes of up to 2 046."""
Order = Literal[
    "opened",
    "-opened",
    "name",
    "-name",
    "owner",
    "-owner",
    "state",
    "-state",
    "active",
    "-active",
    "score",
    "-score",
    "progress",
    "-progress",
]
"""A minus turns an order round: ``-opened`` is the newest first. Sessions without a score, or a
precision to come to, stand last either way."""
NEWEST: Final[Order] = "-opened"
_KEYS: Final = {
    "opened": "session_id",
    "name": "lower(coalesce(name, ''))",
    "owner": "lower(coalesce(owner, ''))",
    "state": "state",
    "active": "active_at",
}
"""Each is the one after the project in an index, and the id follows."""
_FIGURES: Final = {
    # The figure that is shown once there are labels, of two systems that of their difference
    "score": """
        (SELECT CASE WHEN CAST(rounds->>'in_interval' AS int) > 0 THEN CAST(
            CASE WHEN systems IS NOT NULL THEN estimate
            ELSE coalesce(score->>'estimate', estimate) END AS float8) END
        FROM jsonb_to_record(status)
            AS one(rounds jsonb, systems jsonb, score jsonb, estimate text))""",
    "progress": "(CAST(status->'words'->>'share' AS float8))",
}
"""Each changes with every label, and an index of it would be written with every label: all sessions
that fit are read instead, each document once."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter, order and cursor of a list of sessions: those behind this one, if any.

    ``query`` holds the beginnings of words of name, owner and tags, all of which are wanted;
    ``tag`` is a whole one. Without ``archived`` those that are archived are left out.
    """

    pool_id: UUID | None = None
    state: str | None = None
    archived: bool = False
    query: str | None = None
    tag: str | None = None
    order: Order = NEWEST
    after: UUID | None = None
    limit: int = 50


async def list_sessions(context: Context, page: Filter) -> list[dict[str, Any]]:
    """Status documents in their order, at most ``page.limit``.

    A page costs the same however many sessions there are; that of a search, or by score or
    progress, grows with those found.
    """
    params = {
        "project_id": context.project_id,
        "pool_id": page.pool_id,
        "state": page.state,
        "words": _tsquery(page.query, page.tag),
        "after": page.after,
        "limit": page.limit,
    }
    statement = _statement(page, words=params["words"] is not None)
    known = {name: value for name, value in params.items() if value is not None}
    async with context.transaction() as db:
        if page.after is not None and page.order.removeprefix("-") != "opened":
            found = await db.execute(_OWN, {"own": page.after, "project_id": context.project_id})
            if found.one_or_none() is None:
                raise InvalidValue(
                    "The session that the page follows is not there any more.",
                    field="after",
                    rule="`next` of a page; begin with the first one again",
                    value=f"ses_{page.after.hex}",
                )
        return [row.status for row in await planned_rows(db, statement.bindparams(**known))]


def words_of(name: str | None, owner: str | None, tags: Sequence[str]) -> list[str]:
    """The words of name, owner and tags, each once, with the tags themselves, each after a `#`."""
    found = _words(" ".join([name or "", owner or "", *tags]))
    return sorted({*found, *(f"#{tag}" for tag in tags)})


def _words(written: str) -> list[str]:
    words = re.findall(r"\w+", written.lower().replace("_", " "))
    return [word for word in words if len(word.encode()) < MOST_BYTES]


def _tsquery(query: str | None, tag: str | None) -> str | None:
    """Words and tag as PostgreSQL seeks them; None where neither is given."""
    parts = [f"'{word}':*" for word in _words(query or "")]
    if tag is not None:
        escaped = tag.replace("\\", "\\\\").replace("'", "''")
        parts.append(f"'#{escaped}'")
    return " & ".join(parts) or None


def _statement(page: Filter, *, words: bool) -> TextClause:
    """Only the conditions that there are: each of these shapes has a plan of its own."""
    name, backwards = page.order.removeprefix("-"), page.order.startswith("-")
    if name in _FIGURES:
        # Turned round by its sign, so that what is unknown is last and the id follows either way
        sign = "-" if backwards else ""
        key, backwards = f"coalesce({sign}({_FIGURES[name]}), 'Infinity')", False
    else:
        key = _KEYS[name]
    ordered = [key] if key == "session_id" else [key, "session_id"]
    conditions = ["project_id = :project_id"]
    if page.pool_id is not None:
        conditions.append("pool_id = :pool_id")
    if page.state is not None:
        conditions.append("state = :state")
    if not page.archived:
        conditions.append("archived_at IS NULL")
    if words:
        conditions.append("words @@ CAST(:words AS tsquery)")
    if page.after is not None:
        # Of the one it follows the key as it is now
        last_key = (
            f"(SELECT {key} FROM sessions"  # noqa: S608
            " WHERE session_id = :after AND project_id = :project_id)"
        )
        last = [last_key, ":after"]
        beyond = ", ".join(last[-len(ordered) :])
        sign = "<" if backwards else ">"
        conditions.append(f"({', '.join(ordered)}) {sign} ({beyond})")
    direction = " DESC" if backwards else ""
    return text(
        f"SELECT status FROM sessions WHERE {' AND '.join(conditions)}"  # noqa: S608 -- our words
        f" ORDER BY {', '.join(column + direction for column in ordered)} LIMIT :limit"
    )


_OWN = text("SELECT 1 FROM sessions WHERE session_id = :own AND project_id = :project_id")


STATES = ("active", "paused", "closed", *StopReason)
MOST_OF_A_STATE = 100_000
MOST_RECENT = 1_000
MOST_MILLISECONDS = 2_000


@dataclass(frozen=True, slots=True)
class SessionCounts:
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


async def take_census(context: Context) -> SessionCounts:
    """The census as of now; refuses if it takes longer than ``MOST_MILLISECONDS``."""
    async with context.transaction() as db:
        await db.execute(text(f"SET LOCAL statement_timeout = {MOST_MILLISECONDS}"))
        by_state = await db.execute(_STATES, {"states": list(STATES), "most": MOST_OF_A_STATE})
        states = {row.state: row.sessions for row in by_state}
        recent = (await db.execute(_RECENT, {"most": MOST_RECENT})).one()
    return SessionCounts(states, *recent)


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

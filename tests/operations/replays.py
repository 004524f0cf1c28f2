"""What the ledger alone says of a session, folded anew in this process."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from celeus.core.plans.plan import Plan
from celeus.core.pools.surrogates import scores
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session, begin_mean
from celeus.operations.pools.pools import load_pool
from celeus.operations.sessions.event_rows import event_from
from celeus.store.database import Database


@dataclass(frozen=True)
class Kept:
    """Everything the database keeps of a session."""

    session: dict[str, Any]
    events: list[dict[str, Any]]
    trajectory: list[dict[str, Any]]
    leases: list[dict[str, Any]]


def kept(database_url: str, session: str) -> Kept:
    """Read a session's rows."""
    key = UUID(session.removeprefix("ses_"))

    def rows(query: str) -> list[dict[str, Any]]:
        return db.execute(query.encode(), (key,)).fetchall()

    with psycopg.connect(database_url, row_factory=dict_row) as db:
        return Kept(
            session=rows("SELECT * FROM sessions WHERE session_id = %s")[0],
            events=rows("SELECT * FROM events WHERE session_id = %s ORDER BY sequence"),
            trajectory=rows("SELECT * FROM trajectory WHERE session_id = %s ORDER BY round"),
            leases=rows("SELECT * FROM leases WHERE session_id = %s ORDER BY round"),
        )


async def replayed(database: Database, found: Kept) -> Session[Mean]:
    """The state of a fresh fold of the ledger, by nobody who served it."""
    plan = Plan.from_dict(found.session["plan"])
    async with database.transaction() as db:
        pool = await load_pool(db, found.session["project_id"], found.session["pool_id"])
    state = begin_mean(plan, scores(pool, plan.strategy), bytes(found.session["seed"]))
    return state.replay([event_from(row) for row in found.events])


async def assert_whole(database: Database, found: Kept) -> Session[Mean]:
    """The ledger has no gap, no round twice, and what is served equals its replay exactly."""
    sequences = [row["sequence"] for row in found.events]
    assert sequences == list(range(1, len(sequences) + 1))
    assert found.session["sequence"] == len(sequences)
    draws = [row for row in found.events if row["kind"] == 1]
    assert [row["round"] for row in draws] == list(range(1, len(draws) + 1))
    assert len({row["item"] for row in draws}) == len(draws)
    judged = [row["round"] for row in found.events if row["kind"] in {2, 3}]
    assert len(set(judged)) == len(judged)
    assert [row["round"] for row in found.leases] == sorted(
        {row["round"] for row in draws} - set(judged)
    )
    state = await replayed(database, found)
    served = found.session["status"]
    assert (served["estimate"], served["lower"], served["upper"]) == (
        state.question.estimate,
        state.question.interval.lower,
        state.question.interval.upper,
    )
    assert [(decision["answer"], decision["round"]) for decision in served["decisions"]] == [
        (decision.answer, decision.round) for decision in state.question.decisions
    ]
    assert served["rounds"] == {
        "drawn": state.drawn,
        "judged": state.observed,
        "in_interval": state.folded,
        "pending": state.pending,
        "waiting": state.waiting,
    }
    assert [
        (row["round"], row["estimate"], row["lower"], row["upper"]) for row in found.trajectory
    ] == [
        (point.round, point.estimate, point.interval.lower, point.interval.upper)
        for point in state.question.points
    ]
    return state

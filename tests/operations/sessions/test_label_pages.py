"""Rows that a page of judgements reads: as many of a long session as of a short one."""

from collections.abc import AsyncIterator, Awaitable
from uuid import UUID

import pytest
from sqlalchemy import text

from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.sessions.labelling.comments import list_comments
from celeus.operations.sessions.labelling.labels import LabelFilter, label_page, labels_of
from celeus.settings import Settings
from tests.conftest import Execute
from tests.operations.opened import opened

SHORT, LONG = 300, 4_000
PAGE = 20
MOST_READ = 40
"""Rows and entries read for a row of the page, at most."""
READ = text(
    """
    SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)
        + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables)
    """
)
FILL = (
    """
    INSERT INTO events (session_id, sequence, project_id, kind, round, item, q, seen, loss, detail)
    SELECT session_id, 2 * round - 2 + kind, project_id, kind, round,
           CASE WHEN kind = 1 THEN round - 1 END, CASE WHEN kind = 1 THEN 0.5 END,
           CASE WHEN kind = 1 THEN 0 END, CASE WHEN kind = 2 THEN round %% 2 END,
           '{"worker": "ada"}'
    FROM sessions CROSS JOIN generate_series(1, %(rounds)s::int) AS round
        CROSS JOIN generate_series(1, 2) AS kind
    WHERE session_id = %(session)s
    """,
    """
    INSERT INTO comments (session_id, round, key_id, rater, worker, comment, project_id)
    SELECT session_id, round, 'k', '', 'ada', 'odd', project_id
    FROM sessions CROSS JOIN generate_series(1, %(rounds)s::int) AS round
    WHERE session_id = %(session)s
    """,
    "UPDATE sessions SET sequence = 2 * %(rounds)s::int WHERE session_id = %(session)s",
)


@pytest.fixture
async def context(database_url: str) -> AsyncIterator[Context]:
    """A context with one connection, whose counts are those of all it did."""
    settings = Settings(database_url=database_url, database_pool_size=1)
    async with open_context(settings) as context:
        await context.deliveries.close()
        yield context


async def total_read(context: Context) -> int:
    """Rows and entries of indexes that the context has had PostgreSQL read."""
    async with context.transaction() as db:
        await db.execute(text("SELECT pg_stat_force_next_flush()"))
    async with context.transaction() as db:
        return int((await db.execute(READ)).scalar_one())


async def rows_read(context: Context, work: Awaitable[object]) -> int:
    """How many of them some work takes."""
    before = await total_read(context)
    await work
    return await total_read(context) - before


async def filled(context: Context, execute: Execute, rounds: int) -> UUID:
    """A session with so many judged rounds, written past the service."""
    session = await opened(context, SessionRequest(Claim(precision=0.1)), rounds)
    for statement in FILL:
        execute(statement.encode(), {"session": session, "rounds": rounds})
    return session


@pytest.mark.parametrize("statistics", ["none", "of another session", "up to date"])
async def test_a_page_reads_as_much_of_a_long_session_as_of_a_short_one(
    context: Context, execute: Execute, statistics: str
) -> None:
    if statistics == "of another session":
        await filled(context, execute, 20)
        execute(b"ANALYZE")
    sessions = [await filled(context, execute, rounds) for rounds in (SHORT, LONG)]
    if statistics == "up to date":
        execute(b"ANALYZE")
    filters = LabelFilter(newest=True), LabelFilter(above=0.0), LabelFilter(commented=True)
    for wanted in filters:
        reads = []
        for session in sessions:
            labels = await labels_of(context, session)
            page = label_page(context, labels, wanted, PAGE, None)
            reads.append(await rows_read(context, page))
        assert reads[1] <= 1.2 * reads[0] <= MOST_READ * PAGE, (wanted, reads)
    comments = await rows_read(context, list_comments(context, sessions[1], 0, PAGE))
    assert comments <= LONG + MOST_READ * PAGE, "each comment is read once at most"


async def test_a_pool_that_came_after_the_statistics_passes_for_no_single_item(
    context: Context, execute: Execute
) -> None:
    await filled(context, execute, LONG)
    execute(b"ANALYZE")
    await filled(context, execute, LONG)
    newest = "(SELECT pool_id FROM pools ORDER BY pool_id DESC LIMIT 1)"
    [[pool]] = execute(f"SELECT pool_id FROM pools WHERE pool_id = {newest}".encode())
    items = f"SELECT FROM items WHERE pool_id = '{pool}'"
    [[plan]] = execute(f"EXPLAIN (FORMAT JSON) {items}".encode())
    assert plan[0]["Plan"]["Plan Rows"] > 1

"""A list costs what it shows, whatever else is in the database."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from sqlalchemy import text
from uuid_utils.compat import uuid7

from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.operations.insights.session_lists import Filter, list_sessions
from celeus.operations.pools import pools
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.sessions.labelling.task import list_tasks
from celeus.operations.sessions.sessions import Opening, open_session
from celeus.settings import Settings
from tests.operations.opened import sealed

OTHERS = 3_000
OFTEN = 12
"""More than the driver takes to prepare a statement, and PostgreSQL to settle on a plan for it."""


@pytest.fixture
async def context(database_url: str) -> AsyncIterator[Context]:
    """A context with one connection, so that what it prepares is seen."""
    settings = Settings(database_url=database_url, database_pool_size=1)
    async with open_context(settings) as context:
        await context.deliveries.close()
        yield context


async def test_a_small_project_is_listed_without_reading_a_large_one(context: Context) -> None:
    """Its sessions are the oldest: a plan by the newest first would meet all others before them."""
    small, large = await sealed(context, 10), uuid7()
    session = await open_session(context, Opening(small, SessionRequest(Claim(precision=0.2))))
    async with context.transaction() as db:
        await db.execute(text("INSERT INTO projects VALUES (:large, 'large')"), {"large": large})
        await db.execute(_COPIES, {"large": large, "others": OTHERS})
        await db.execute(text("ANALYZE sessions"))
    for caller in (replace(context, project_id=large), context):
        for _ in range(OFTEN):
            found = await list_sessions(caller, Filter(limit=3))
            await list_sessions(caller, Filter(limit=3, state="closed", order="name"))
            await pools.list_pools(caller, 3, None)
            await list_tasks(caller, 3)
    assert [listed["id"] for listed in found] == [session["id"]]
    async with context.transaction() as db:
        prepared = (await db.execute(_PREPARED)).scalars().all()
    assert not prepared


_COPIES = text(
    """
    INSERT INTO sessions SELECT made.* FROM generate_series(1, :others) AS number, sessions,
        jsonb_populate_record(sessions, jsonb_build_object(
            'session_id', 'f' || substr(md5(number::text), 2), 'project_id', CAST(:large AS uuid)
        )) AS made
    """
)
_PREPARED = text(
    "SELECT statement FROM pg_prepared_statements WHERE statement ~ 'FROM (sessions|pools|found)'"
)

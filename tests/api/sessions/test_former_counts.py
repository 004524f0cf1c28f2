"""A status stored under the former names of its counts is shown under the present ones."""

import asyncio

import psycopg
import pytest
from alembic import command
from alembic.util import CommandError
from httpx import AsyncClient

from celeus.store import migrations
from tests.factories import drawn, known_pool, labelled, opened

BEFORE = "b31d7fa05c86"
FORMER_METHOD = """UPDATE sessions SET plan = plan || '{"method_version": "celeus-1"}'"""


async def test_a_status_stored_before_has_its_counts_renamed(
    client: AsyncClient, database_url: str
) -> None:
    pool = await known_pool(client, 30)
    session = await opened(client, pool)
    await labelled(client, session, pool, 5)
    await drawn(client, session, count=3)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    configuration = migrations.configuration(database_url)
    with psycopg.connect(database_url) as db:
        db.execute(FORMER_METHOD.encode())
    await asyncio.to_thread(command.downgrade, configuration, BEFORE)
    with psycopg.connect(database_url) as db:
        row = db.execute("SELECT status -> 'rounds' FROM sessions").fetchone()
    assert row is not None
    assert (row[0]["observed"], row[0]["folded"]) == (5, 5)
    assert not {"judged", "in_interval"} & set(row[0])
    await asyncio.to_thread(command.upgrade, configuration, "head")
    assert (await client.get(f"/v1/sessions/{session}")).json() == status


async def test_a_way_back_that_would_lose_something_is_refused_by_name(
    client: AsyncClient, database_url: str
) -> None:
    session = await opened(client, await known_pool(client, 5), name="mine")
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    configuration = migrations.configuration(database_url)
    for lost, without in (
        ("the method of sessions", FORMER_METHOD),
        ("final certificates", "DELETE FROM certificates"),
        ("names of sessions", "UPDATE sessions SET name = NULL"),
        ("keys", "SELECT"),
    ):
        with pytest.raises(CommandError, match=f"would lose {lost};"):
            await asyncio.to_thread(command.downgrade, configuration, "base")
        assert (await client.get(f"/v1/sessions/{session}")).json() == shown
        with psycopg.connect(database_url) as db:
            db.execute(without.encode())
        shown = (await client.get(f"/v1/sessions/{session}")).json()

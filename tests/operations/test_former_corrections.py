"""What was kept when a correction rewrote every round, and every worker had a last label."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import UUID

import psycopg
from alembic import command

from celeus.core.plans.opening import SessionRequest
from celeus.core.plans.plan import Claim
from celeus.core.pools.losses import LossScale
from celeus.core.session.outcome import Judgement
from celeus.operations.certificates.audit import audit
from celeus.operations.pools import pools
from celeus.operations.pools.pools import NewPool
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.sessions import rounds, sessions
from celeus.operations.sessions.amendments import Correction, amend
from celeus.operations.sessions.sessions import Opening
from celeus.settings import Settings
from celeus.store import migrations
from tests.operations.replays import kept

BEFORE = "2e90c1a4d7b6"


@asynccontextmanager
async def context_of(database_url: str) -> AsyncIterator[Context]:
    async with open_context(Settings(database_url=database_url)) as context:
        yield replace(context, key_id="a key")


async def labelled(context: Context, session: UUID, worker: str) -> int:
    [draw] = (await rounds.next_draws(context, session, worker, 1)).draws
    told = [Judgement(draw["round"], loss=1.0)]
    await rounds.observe(context, session, told, worker, 0)
    return int(draw["round"])


async def test_trajectory_and_last_labels_go_back_and_forth_without_a_loss(
    database_url: str,
) -> None:
    rows = [{"id": f"i{number}", "surrogate": number / 20} for number in range(20)]
    scale = LossScale("zero_one", 0.0, 1.0)
    wanted = NewPool("p", scale, (list(range(1, 21)), list(rows)), sealed=True)
    async with context_of(database_url) as context:
        pool = await pools.create_pool(context, wanted)
        document = await sessions.open_session(
            context, Opening(pool.pool_id, SessionRequest(Claim()))
        )
        session = UUID(document["id"].removeprefix("ses_"))
        for worker in ("left", "right", "left", "right", "right", "left"):
            last = await labelled(context, session, worker)
        await amend(context, session, Correction(Judgement(3, loss=0.0), "ada", "misread"))
    now = kept(database_url, document["id"])
    configuration = migrations.configuration(database_url)
    await asyncio.to_thread(command.downgrade, configuration, BEFORE)
    former = kept(database_url, document["id"]).trajectory
    assert [row.pop("revision") for row in former] == [2] * 6
    assert former == now.trajectory
    assert _labellers(database_url, "worker, labels, last_round") == [
        ("left", 3, 6),
        ("right", 3, 5),
    ]
    await asyncio.to_thread(command.upgrade, configuration, "head")
    again = kept(database_url, document["id"])
    for one in (again, now):
        # What a session says in words is told anew with its next event
        for name in ("score", "sentence", "words"):
            one.session["status"].pop(name, None)
    assert again == now
    assert _labellers(database_url, "labels, last_round") == [(6, last)]
    async with context_of(database_url) as context:
        assert not (await audit(context.database)).findings


def _labellers(database_url: str, columns: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database_url) as db:
        return db.execute(f"SELECT {columns} FROM labellers ORDER BY 1".encode()).fetchall()

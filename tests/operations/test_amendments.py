"""Corrections of long sessions, and processes that fell behind: folded while nothing is locked."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

import pytest

from app.core.correcting import Refold, refold
from app.core.ledger import Amendment
from app.core.losses import LossScale
from app.core.plan import Claim, Plan
from app.core.session import State, replay
from app.main import open_rooms
from app.operations import amendments, journal, pools, rounds, sessions
from app.operations.amendments import Correction, amend
from app.operations.pools import NewPool
from app.operations.rooms import Rooms
from app.operations.rounds import Judgement
from app.operations.sessions import Opening
from app.settings import Settings
from app.store.database import Database
from tests.operations.replays import assert_whole, kept

SCALE = LossScale("zero_one", 0.0, 1.0)


@pytest.fixture
async def two(database_url: str) -> AsyncIterator[list[Rooms]]:
    """Two processes, as far as sessions go; a transaction may stand still for 2 s."""
    settings = Settings(database_url=database_url, database_pool_size=4, statement_timeout_ms=2000)
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(open_rooms(settings)) for _ in range(2)]


async def opened(rooms: Rooms) -> UUID:
    rows = [{"id": f"i{number}", "surrogate": number % 10 / 10} for number in range(300)]
    wanted = NewPool("p", SCALE, (list(range(1, 301)), list(rows)), sealed=True)
    pool = await pools.create_pool(rooms, wanted)
    document = await sessions.open_session(rooms, Opening(pool.pool_id, Claim(precision=0.01)))
    return UUID(document["id"].removeprefix("ses_"))


async def judged(rooms: Rooms, session: UUID, count: int) -> None:
    offer = await rounds.next_draws(rooms, session, "ada", 1)
    for _ in range(count):
        told = [
            Judgement(draw["round"], loss=float(draw["round"] % 3 == 0)) for draw in offer.draws
        ]
        offer = (await rounds.observe(rooms, session, told, "ada", 1)).offer


def correction(round_: int, loss: float) -> Correction:
    return Correction(Judgement(round_, loss=loss), "ada", "misread")


async def test_a_long_fold_keeps_no_transaction_standing(
    two: list[Rooms],
    database: Database,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Folding takes longer here than the database lets a transaction stand still."""
    session = await opened(two[0])
    await judged(two[0], session, 30)
    monkeypatch.setattr(amendments, "ROUNDS_FOLDED_INLINE", 10)
    began, go_on = threading.Event(), threading.Event()
    folds = 0

    def slowly(plan: Plan, state: State, event: Amendment) -> Refold:
        nonlocal folds
        folds += 1
        began.set()
        go_on.wait(30)
        time.sleep(2.5)
        return refold(plan, state, event)

    monkeypatch.setattr(amendments, "refold", slowly)
    amending = asyncio.create_task(amend(two[0], session, correction(3, 0.0)))
    await asyncio.to_thread(began.wait, 10)
    # Another process goes on judging meanwhile.
    await judged(two[1], session, 5)
    go_on.set()
    answer = await amending
    assert (answer.session["revision"], answer.session["rounds"]["folded"]) == (2, 35)
    again = await amend(two[1], session, correction(3, 0.0))
    assert (again.receipts[0].replayed, folds) == (True, 1)
    await assert_whole(database, kept(database_url, f"ses_{session.hex}"))


async def test_two_corrections_at_once_are_both_kept(
    two: list[Rooms],
    database: Database,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await opened(two[0])
    await judged(two[0], session, 30)
    monkeypatch.setattr(amendments, "ROUNDS_FOLDED_INLINE", 10)
    await asyncio.gather(
        *(amend(two[at % 2], session, correction(at + 1, 1.0 - at % 2)) for at in range(6))
    )
    found = kept(database_url, f"ses_{session.hex}")
    assert sum(row["kind"] == 4 for row in found.events) == 6
    await assert_whole(database, found)


async def test_a_process_far_behind_catches_up_before_it_locks(
    two: list[Rooms],
    database: Database,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await opened(two[0])
    await judged(two[0], session, 3)
    await judged(two[1], session, 60)
    monkeypatch.setattr(journal, "ROUNDS_FOLDED_LOCKED", 5)
    folded: list[Any] = []

    def noted(plan: Plan, state: State, events: list[Any]) -> State:
        folded.append(len(events))
        return replay(plan, state, events)

    monkeypatch.setattr(journal, "replay", noted)
    await judged(two[0], session, 1)
    assert folded == [sum(folded)], "all at once, before the lock, and none under it"
    assert folded[0] > 100
    await assert_whole(database, kept(database_url, f"ses_{session.hex}"))

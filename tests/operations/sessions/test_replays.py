"""Judgements after which all rounds so far are bet on again: others of the session go on."""

import asyncio
import threading
from uuid import UUID

import pytest

from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.core.session.correction import FoldAhead
from celeus.errors import Busy
from celeus.operations.runtime.context import Context
from celeus.operations.sessions import amendments, journal, rounds, sessions
from celeus.operations.sessions.amendments import Correction
from tests.operations.opened import judged, judgement, opened
from tests.operations.sessions.conftest import Whole

ITEMS, FINE, COARSE = 1_000, 0.1, 0.3


class Long:
    """Folds beside a session that wait until they may go on; eleven rounds count as many."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.go_on, self.folds = threading.Event(), threading.Event(), 0
        follow = FoldAhead.follow

        def waiting(ahead: FoldAhead) -> None:
            self.folds += 1
            self.began.set()
            assert self.go_on.wait(30)
            follow(ahead)

        monkeypatch.setattr(journal, "ROUNDS_FOLDED_LOCKED", 10)
        monkeypatch.setattr(rounds, "REPLAY_SECONDS", 0.05)
        monkeypatch.setattr(FoldAhead, "follow", waiting)


async def given_up(context: Context) -> UUID:
    """A session whose fine precision was given up before its pairs started."""
    claim = Claim("population", precision=FINE)
    session = await opened(context, SessionRequest(claim), ITEMS)
    await judged(context, session, 15)
    await sessions.change_session(context, session, sessions.Settings(precision=COARSE))
    return session


async def test_others_go_on_while_all_rounds_are_bet_on_again(
    two: list[Context],
    whole: Whole,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One judgement after the change held its session for 19 s."""
    session = await given_up(two[0])
    long = Long(monkeypatch)
    for worker in ("ada", "bob"):
        await rounds.next_draws(two[0], session, worker, 1)
    with pytest.raises(Busy, match="bet on again"):
        await rounds.observe(two[0], session, [judgement(16)], "ada", 1)
    async with asyncio.timeout(5):
        bobs = await rounds.observe(two[0], session, [judgement(17)], "bob", 1)
        with pytest.raises(Busy):
            await rounds.observe(two[0], session, [judgement(16, 1.0)], "ada", 1)
    assert bobs.session["rounds"]["in_interval"] == 15
    assert [draw["round"] for draw in bobs.offer.draws] == [18]
    long.go_on.set()
    answer = await again(two[0], session, 16)
    assert answer.receipts[0].replayed is False
    assert answer.session["rounds"]["in_interval"] == 17
    await whole(session)


async def again(context: Context, session: UUID, round_: int) -> rounds.Answer:
    """Send a judgement until it is taken."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await rounds.observe(context, session, [judgement(round_)], "ada", 0)
            except Busy:
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("corrected", [False, True])
async def test_what_was_folded_beside_counts_for_the_same_rounds_only(
    two: list[Context],
    whole: Whole,
    monkeypatch: pytest.MonkeyPatch,
    *,
    corrected: bool,
) -> None:
    session = await given_up(two[0])
    long = Long(monkeypatch)
    await rounds.next_draws(two[0], session, "ada", 1)
    with pytest.raises(Busy):
        await rounds.observe(two[0], session, [judgement(16, 1.0)], "ada", 0)
    if corrected:
        correction = Correction(judgement(3, 0.0), "ada", "misread")
        await amendments.amend(two[0], session, correction)
    long.go_on.set()
    await again(two[0], session, 16)
    assert long.folds == 2
    await whole(session)


async def test_another_process_folds_them_without_the_sessions_lock(
    two: list[Context],
    whole: Whole,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await given_up(two[0])
    await rounds.next_draws(two[1], session, "ada", 1)
    long = Long(monkeypatch)
    long.go_on.set()
    await again(two[0], session, 16)
    await rounds.next_draws(two[1], session, "bob", 1)
    await rounds.observe(two[1], session, [judgement(17)], "bob", 0)
    _, state = await whole(session)
    assert state.folded == 17

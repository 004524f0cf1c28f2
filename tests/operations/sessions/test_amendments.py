"""Corrections of long sessions, and processes that fell behind: folded while nothing is locked."""

import asyncio
import threading
import time
from dataclasses import replace
from typing import Any
from uuid import UUID

import psycopg
import pytest

from celeus.core.plans.plan import Claim, Plan
from celeus.core.plans.plan_request import SessionRequest, TableRequest
from celeus.core.plans.stopping import Question
from celeus.core.session import correction as refolding
from celeus.core.session.correction import Checkpoints, Refold, catch_up
from celeus.core.session.fold import Fold, OpenRound
from celeus.core.session.mean import Mean
from celeus.core.session.outcome import Judgement
from celeus.core.session.points import Points
from celeus.core.session.rounds import Rounds
from celeus.core.session.session import Session
from celeus.errors import Busy
from celeus.operations.insights.table import table_claims
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.sessions import amendments, journal, ledger, rounds
from celeus.operations.sessions.amendments import Correction, amend
from celeus.settings import Settings
from celeus.store.database import plain_url
from tests.conftest import Execute
from tests.operations.opened import judged, opened
from tests.operations.sessions.conftest import Whole

ASKED = SessionRequest(Claim(precision=0.01))


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A transaction may stand still for 2 s."""
    return settings.model_copy(update={"statement_timeout_ms": 2000})


async def begun(context: Context, count: int) -> UUID:
    """A session of which so many rounds are judged, and one is held."""
    session = await opened(context, ASKED)
    await judged(context, session, count, held=1)
    return session


def correction(round_: int, loss: float) -> Correction:
    return Correction(Judgement(round_, loss=loss), "ada", "misread")


async def test_a_long_fold_keeps_no_transaction_standing(
    two: list[Context],
    whole: Whole,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Folding takes longer here than the database lets a transaction stand still."""
    session = await begun(two[0], 30)
    monkeypatch.setattr(amendments, "ROUNDS_FOLDED_INLINE", 10)
    began, go_on = threading.Event(), threading.Event()
    folds = 0

    follow = Refold.follow

    def slowly(self: Refold, part: Rounds) -> None:
        nonlocal folds
        folds += 1
        began.set()
        go_on.wait(30)
        time.sleep(2.5)
        follow(self, part)

    monkeypatch.setattr(Refold, "follow", slowly)
    amending = asyncio.create_task(amend(two[0], session, correction(3, 0.0)))
    await asyncio.to_thread(began.wait, 10)
    # Another process goes on judging meanwhile.
    await judged(two[1], session, 5, held=1)
    go_on.set()
    answer = await amending
    assert (answer.session["revision"], answer.session["rounds"]["in_interval"]) == (2, 35)
    again = await amend(two[1], session, correction(3, 0.0))
    assert (again.receipts[0].replayed, folds) == (True, 1)
    await whole(session)


class Held:
    """A fold beside a session that waits in the middle until it may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.go_on = threading.Event(), threading.Event()
        follow = Refold.follow

        def waiting(refold: Refold, part: Rounds) -> None:
            self.began.set()
            assert self.go_on.wait(30)
            follow(refold, part)

        monkeypatch.setattr(amendments, "ROUNDS_FOLDED_INLINE", 10)
        monkeypatch.setattr(amendments, "ROUNDS_AT_ONCE", 12)
        monkeypatch.setattr(Refold, "follow", waiting)


async def test_labels_go_on_while_their_session_is_corrected(
    two: list[Context],
    whole: Whole,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await begun(two[0], 30)
    held = Held(monkeypatch)
    amending = asyncio.create_task(amend(two[0], session, correction(3, 0.0)))
    await asyncio.to_thread(held.began.wait, 10)
    await judged(two[0], session, 25, held=1)
    held.go_on.set()
    answer = await amending
    assert (answer.session["revision"], answer.session["rounds"]["in_interval"]) == (2, 55)
    await judged(two[0], session, 3, held=1)
    await whole(session)


async def test_a_key_has_one_long_correction_folded_at_a_time(
    two: list[Context], database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever labels in many sessions may correct an early round in each of them."""
    first, second, short = [await begun(two[0], count) for count in (30, 30, 5)]
    settings = Settings(database_url=database_url, lock_timeout_ms=100)
    held = Held(monkeypatch)
    async with open_context(settings) as context:
        mine, theirs = (replace(context, key_id=name) for name in ("mine", "theirs"))
        amending = asyncio.create_task(amend(mine, first, correction(3, 0.0)))
        await asyncio.to_thread(held.began.wait, 10)
        with pytest.raises(Busy, match="this key"):
            await amend(mine, second, correction(3, 0.0))
        await amend(mine, short, correction(3, 0.0))
        other = asyncio.create_task(amend(theirs, second, correction(3, 0.0)))
        held.go_on.set()
        assert (await amending).session["revision"] == 2
        assert (await other).session["revision"] == 2


async def test_a_correction_given_up_in_the_middle_changes_nothing(
    two: list[Context],
    whole: Whole,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await begun(two[0], 30)
    held = Held(monkeypatch)
    amending = asyncio.create_task(amend(two[0], session, correction(3, 0.0)))
    await asyncio.to_thread(held.began.wait, 10)
    amending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await amending
    held.go_on.set()
    await judged(two[0], session, 3, held=1)
    found, _ = await whole(session)
    assert found.session["revision"] == 1
    again = await amend(two[0], session, correction(3, 0.0))
    assert not again.receipts[0].replayed
    await whole(session)


@pytest.mark.parametrize(
    ("claim", "at_once", "aside"),
    [
        (Claim(precision=0.01), 1, False),
        (Claim(precision=0.01), 40, True),
        (Claim(target="population", precision=0.2), 1, True),
    ],
    ids=["one label", "many labels", "a label that may have pairs start"],
)
async def test_what_takes_long_is_folded_beside_the_event_loop(
    two: list[Context],
    monkeypatch: pytest.MonkeyPatch,
    claim: Claim,
    at_once: int,
    aside: bool,  # noqa: FBT001 - a parameter
) -> None:
    session = await opened(two[0], SessionRequest(claim))
    await judged(two[0], session, 30, held=1)
    offer = await rounds.next_draws(two[0], session, "ada", at_once)
    threads: list[int] = []

    fold_round = Fold.fold_round

    def noted(self: Fold, plan: Plan, coming: OpenRound, loss: float | None) -> None:
        threads.append(threading.get_ident())
        fold_round(self, plan, coming, loss)

    monkeypatch.setattr(Fold, "fold_round", noted)
    judgements = [Judgement(draw["round"], loss=0.0) for draw in offer.draws]
    await rounds.observe(two[0], session, judgements, "ada", 0)
    assert len(threads) == at_once
    assert (threading.get_ident() not in threads) == aside


async def test_two_corrections_at_once_are_both_kept(
    two: list[Context],
    whole: Whole,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await begun(two[0], 30)
    monkeypatch.setattr(amendments, "ROUNDS_FOLDED_INLINE", 10)
    await asyncio.gather(
        *(
            amend(two[number % 2], session, correction(number + 1, 1.0 - number % 2))
            for number in range(6)
        )
    )
    found, _ = await whole(session)
    assert sum(row["kind"] == 4 for row in found.events) == 6


async def test_what_waits_behind_an_open_draw_is_taken_in_again_beside_the_event_loop(
    two: list[Context],
    whole: Whole,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is folded yet, since the first draw is open; what was judged is learned again."""
    session = await opened(two[0], ASKED)
    offer = await rounds.next_draws(two[0], session, "ada", 40)
    judgements = [Judgement(draw["round"], loss=0.0) for draw in offer.draws[1:]]
    await rounds.observe(two[0], session, judgements, "ada", 0)
    threads: list[int] = []
    judge = Fold.judge

    def noted(self: Fold, round_: int, loss: float | None, corrected: int) -> None:
        threads.append(threading.get_ident())
        judge(self, round_, loss, corrected)

    monkeypatch.setattr(Fold, "judge", noted)
    answer = await amend(two[0], session, correction(judgements[-1].round, 1.0))
    assert answer.session["rounds"]["in_interval"] == 0
    assert len(threads) == len(judgements)
    assert threading.get_ident() not in threads
    await whole(session)


async def test_a_correction_costs_what_it_changed_in_every_process(
    two: list[Context],
    whole: Whole,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refolding, "ROUNDS_BETWEEN_COPIES", 10)
    session = await begun(two[0], 1)
    await judged(two[1], session, 64, held=1)
    folded: list[int] = []

    fold_round = Fold.fold_round

    def noted(self: Fold, plan: Plan, coming: OpenRound, loss: float | None) -> None:
        folded.append(coming.draw.round)
        fold_round(self, plan, coming, loss)

    monkeypatch.setattr(Fold, "fold_round", noted)
    for loss in (1.0, 0.0):
        await amend(two[1], session, correction(65, loss))
    assert folded == [*range(61, 66)] * 2
    # The same loss in other words: none of them is folded anew
    for round_ in (3, 60):
        same = Judgement(round_, loss=float(round_ % 3 == 0))
        await amend(two[1], session, Correction(same, "ada", f"looked at {round_} again"))
    assert folded == [*range(61, 66)] * 2
    # Far behind, it folds the rounds it missed, and the corrected one with them.
    folded.clear()
    await amend(two[0], session, correction(64, 1.0))
    assert folded == [*range(2, 66), *range(62, 66)]
    folded.clear()
    await amend(two[0], session, correction(65, 0.0))
    assert len(folded) <= 10
    # It had them copied while it folded them.
    folded.clear()
    await judged(two[1], session, 1, held=1)
    assert len(folded) <= 10
    await whole(session)


async def test_a_correction_writes_the_rounds_from_the_corrected_one_on_and_no_others(
    two: list[Context], execute: Execute
) -> None:
    session = await begun(two[0], 40)

    def versions() -> dict[int, str]:
        rows = execute("SELECT round, ctid::text FROM trajectory ORDER BY round").fetchall()
        assert [round_ for round_, _ in rows] == list(range(1, 41))
        return dict(rows)

    before = versions()
    await amend(two[0], session, Correction(Judgement(3, loss=1.0), "ada", "looked again"))
    assert versions() == before
    for round_ in (40, 39, 3):
        before = versions()
        await amend(two[0], session, correction(round_, 1.0 - (round_ % 3 == 0)))
        written = [round_ for round_, place in versions().items() if before[round_] != place]
        assert written == list(range(round_, 41))


async def test_nothing_that_grows_with_a_session_is_copied_on_the_event_loop_to_correct_it(
    two: list[Context], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refolding, "ROUNDS_BETWEEN_COPIES", 10)
    monkeypatch.setattr(amendments, "ROUNDS_AT_ONCE", 12)
    session = await begun(two[0], 64)
    here = threading.get_ident()
    copies: list[int] = []
    for kind in (Rounds, Points):
        part = kind.__getitem__

        def noted(self: Any, index: Any, part: Any = part) -> Any:  # noqa: ANN401 - any index
            if isinstance(index, slice) and threading.get_ident() == here:
                copies.append(len(range(*index.indices(len(self)))))
            return part(self, index)

        monkeypatch.setattr(kind, "__getitem__", noted)
    for round_ in (64, 60, 40):
        copies.clear()
        await amend(two[0], session, correction(round_, 1.0 - (round_ % 3 == 0)))
        assert copies
        assert max(copies) <= max(12, 65 - round_)


async def test_a_process_far_behind_catches_up_before_it_locks(
    two: list[Context],
    whole: Whole,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await begun(two[0], 3)
    await judged(two[1], session, 60, held=1)
    monkeypatch.setattr(journal, "ROUNDS_FOLDED_LOCKED", 5)
    folded: list[Any] = []

    def noted(state: Session[Mean], events: list[Any], checkpoints: Checkpoints) -> Session[Mean]:
        folded.append(len(events))
        return catch_up(state, events, checkpoints)

    monkeypatch.setattr(journal, "catch_up", noted)
    await judged(two[0], session, 1, held=1)
    assert max(folded) == 5, "a part at a time, and no more of them read at once"
    assert sum(folded) > 100
    await whole(session)


@pytest.mark.parametrize("page", [1, 7, 21, 500])
async def test_a_ledger_read_in_pages_is_whole(
    two: list[Context], monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    session = await begun(two[0], 10)
    monkeypatch.setattr(ledger, "PAGE", page)
    async with two[1].transaction() as db:
        events = await ledger.events_of(db, session)
        assert (await ledger.records_of(db, session, 14))[0] == (
            await ledger.records_of(db, session, 21)
        )[0][:14]
    assert len(events) == 21
    rebuilt = await journal.rebuild(two[1], session)
    async with two[0].states.hold(session) as slot:
        assert slot.session is not None
        assert slot.session.state.rounds == rebuilt.state.rounds
        assert slot.session.state.question.points == rebuilt.state.question.points


BEHIND = 25


TABLE = TableRequest(account="closed", questions=[(None, Question("at_most", 0.9))])
"""One claim about answers yes that hold at once."""


async def test_a_table_is_folded_while_nobody_waits_for_its_row(
    two: list[Context], database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds of hundreds of claims take so long that two thousand events kept others waiting."""
    monkeypatch.setattr(journal, "BETS_LOCKED", BEHIND)
    session = await opened(two[0], SessionRequest(Claim(precision=0.05), table=TABLE), 200)
    free = list[bool]()
    await table_claims(two[1], session)
    await judged(two[0], session, BEHIND)

    def looking(*parts: Any) -> Any:  # noqa: ANN401 -- what it is given, and what that gives
        with psycopg.connect(plain_url(database_url)) as other:
            asked = "SELECT 1 FROM sessions WHERE session_id = %s FOR UPDATE SKIP LOCKED"
            free.append(other.execute(asked, [session]).fetchone() is not None)
        return catch_up(*parts)

    monkeypatch.setattr(journal, "catch_up", looking)
    await judged(two[1], session, 1)
    assert free == [True]
    first, second = [await table_claims(context, session) for context in two]
    assert first == second

"""Requests that wait for one session: one transaction for all, each answered as if alone."""

import asyncio
from dataclasses import replace
from time import perf_counter
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.core.pools.losses import LossScale
from celeus.core.session.outcome import Judgement
from celeus.errors import Overloaded, SessionNotFound
from celeus.operations.pools import pools
from celeus.operations.pools.pools import PAGE_BYTES, NewPool
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.groups import Groups
from celeus.operations.sessions import rounds, sessions
from celeus.operations.sessions.batching import TURN_SECONDS, Answering, together
from celeus.operations.sessions.journal import Journal
from celeus.operations.sessions.sessions import Opening
from tests.operations.opened import opened
from tests.operations.wire import Wire

ITEMS = 400
MANY = 40


@pytest.fixture
async def session(context: Context) -> UUID:
    """A session of which nobody has asked for anything."""
    return await opened(context, SessionRequest(Claim(precision=0.1)), ITEMS)


async def held(context: Context, session: UUID, count: int = MANY) -> list[int]:
    """Rounds in the hands of as many judges."""
    offers = await asyncio.gather(
        *(rounds.next_draws(context, session, f"judge-{number}", 1) for number in range(count))
    )
    found = [offer.draws[0]["round"] for offer in offers]
    assert len({offer.draws[0]["item"].id for offer in offers}) == count
    return found


async def judged(
    context: Context, session: UUID, number: int, round_: int, loss: float = 0.0
) -> rounds.Answer:
    return await rounds.observe(
        context, session, [Judgement(round_, loss=loss)], f"judge-{number}", 1
    )


async def test_many_judges_at_once_share_a_transaction(
    context: Context, session: UUID, wire: Wire
) -> None:
    wire.commits()
    drawn = await held(context, session)
    assert sorted(drawn) == list(range(1, MANY + 1))
    # The first alone, the rest together; the pool and the state before
    assert 1 <= wire.commits() <= 4
    answers = await asyncio.gather(
        *(judged(context, session, number, round_) for number, round_ in enumerate(drawn))
    )
    assert 1 <= wire.commits() <= 3
    receipts = [answer.receipts[0] for answer in answers]
    assert [receipt.round for receipt in receipts] == drawn
    assert len({receipt.sequence for receipt in receipts}) == MANY
    assert not any(receipt.replayed for receipt in receipts)
    following = [answer.offer.draws[0]["round"] for answer in answers]
    assert sorted(following) == list(range(MANY + 1, 2 * MANY + 1))
    assert {answer.session["rounds"]["in_interval"] for answer in answers} <= {1, MANY}


async def test_a_draw_that_is_judged_late_is_not_left_to_who_got_it_meanwhile(
    context: Context, session: UUID, wire: Wire
) -> None:
    """A lease that ended, given to another judge and judged by the first: all in one group."""
    drawn = await held(context, session, 8)
    async with context.transaction() as db:
        await db.execute(text("UPDATE leases SET expires_at = now() - interval '1 second'"))
    others = [rounds.next_draws(context, session, f"other-{number}", 1) for number in range(9)]
    late = [judged(context, session, number, round_) for number, round_ in enumerate(drawn)]
    offers = await asyncio.gather(*others)
    assert {offer.draws[0]["round"] for offer in offers} == {*drawn, len(drawn) + 1}
    async with context.transaction() as db:
        await db.execute(text("UPDATE leases SET expires_at = now() - interval '1 second'"))
    wire.commits()
    again = [rounds.next_draws(context, session, f"third-{number}", 1) for number in range(9)]
    await asyncio.gather(*again, *late)
    assert 1 <= wire.commits() <= 2
    async with context.transaction() as db:
        left = await db.scalars(
            text("SELECT round FROM leases JOIN events USING (session_id, round) WHERE kind = 2")
        )
    assert left.all() == []


async def test_raters_of_a_panel_ask_the_database_no_more_the_more_they_are(
    context: Context, wire: Wire
) -> None:
    many = 24
    raters = tuple(f"judge-{number}" for number in range(many))
    claim = Claim(precision=0.1, raters="assigned", protocol="two_then_third", panel=raters)
    session = await opened(context, SessionRequest(claim), ITEMS)
    offers = [await rounds.next_draws(context, session, rater, 1) for rater in raters]
    wire.statements()
    answers = await asyncio.gather(
        *(
            judged(context, session, number, offer.draws[0]["round"])
            for number, offer in enumerate(offers)
        )
    )
    assert not any(answer.receipts[0].replayed for answer in answers)
    assert many <= wire.statements() <= 8 * many


async def test_what_spoils_a_group_is_tried_alone(context: Context, session: UUID) -> None:
    drawn = await held(context, session, 6)

    async def spoils(journal: Journal, _db: AsyncConnection) -> Answering[Any]:
        journal.lease(drawn[0], "somebody")
        raise SessionNotFound("after all")

    answers = await asyncio.gather(
        *(judged(context, session, number, round_) for number, round_ in enumerate(drawn)),
        together(context, session, spoils),
        return_exceptions=True,
    )
    assert isinstance(answers.pop(), SessionNotFound)
    assert all(isinstance(answer, rounds.Answer) for answer in answers)
    offer = await rounds.next_draws(context, session, "somebody", 1)
    assert offer.draws[0]["round"] not in drawn


async def test_whoever_leaves_is_not_waited_for(context: Context, session: UUID) -> None:
    drawn = await held(context, session, 6)
    asked = [
        asyncio.create_task(judged(context, session, number, round_))
        for number, round_ in enumerate(drawn)
    ]
    await asyncio.sleep(0)
    asked[3].cancel()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(answers[3], asyncio.CancelledError)
    assert sum(isinstance(answer, rounds.Answer) for answer in answers) == 5
    assert context.groups._queues == {}


async def test_more_than_may_wait_for_a_session_are_refused_at_once(
    context: Context, session: UUID
) -> None:
    narrow = replace(context, groups=Groups(patience_seconds=30.0, most=4))
    drawn = await held(context, session, 8)
    answers = await asyncio.gather(
        *(judged(narrow, session, number, round_) for number, round_ in enumerate(drawn)),
        return_exceptions=True,
    )
    refused = [number for number, answer in enumerate(answers) if isinstance(answer, Overloaded)]
    assert refused == [4, 5, 6, 7]
    assert all(isinstance(answer, rounds.Answer) for answer in answers[:4])
    for number in refused:
        again = await judged(narrow, session, number, drawn[number])
        assert not again.receipts[0].replayed


async def test_each_of_a_group_gets_an_item_however_large_they_are(context: Context) -> None:
    """As many as fill an answer are sent to each of them, and not to all of them together."""
    scale = LossScale.of("zero_one", None, None)
    payload = {"text": "x" * (PAGE_BYTES // 8)}
    items: list[object] = [{"id": f"item-{i}", "payload": payload} for i in range(MANY)]
    pool = await pools.create_pool(
        context, NewPool("large", scale, (list(range(1, MANY + 1)), items), sealed=True)
    )
    asked = Opening(pool.pool_id, SessionRequest(Claim(precision=0.1)))
    session = UUID((await sessions.open_session(context, asked))["id"].removeprefix("ses_"))
    assert sorted(await held(context, session, 24)) == list(range(1, 25))


async def test_others_have_their_turn_between_the_requests_of_a_group(
    context: Context, session: UUID
) -> None:
    turns = 0

    async def takes_long(_journal: Journal, _db: AsyncConnection) -> Answering[int]:
        began = perf_counter()
        while perf_counter() - began < TURN_SECONDS:
            pass
        before = turns
        return lambda _document, _items: before

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    await rounds.next_draws(context, session, "judge-0", 1)
    beside = asyncio.create_task(others())
    answers = await asyncio.gather(*(together(context, session, takes_long) for _ in range(MANY)))
    beside.cancel()
    assert len(set(answers)) == MANY

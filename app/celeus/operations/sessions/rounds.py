"""Draw the next items of a session, and observe their judgements."""

import asyncio
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Self
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.insights.status import session_state
from celeus.core.pools.item import Item
from celeus.core.session.correction import Ahead, mean_session
from celeus.core.session.outcome import (
    Judgement,
    Loss,
    Said,
    check_blind,
    detail_of,
    event_of,
    in_order,
    words_of,
)
from celeus.core.session.question import View
from celeus.core.session.rounds import PENDING
from celeus.core.session.session import AnySession
from celeus.errors import Busy, ObservationConflict, RoundNotHeld
from celeus.operations.runtime.concurrency import in_thread
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.status import announce
from celeus.operations.sessions.batching import AfterOthers, Answering, together
from celeus.operations.sessions.blinding import judged_by, predecessors
from celeus.operations.sessions.contradictions import keeping_contradictions
from celeus.operations.sessions.event_rows import moment
from celeus.operations.sessions.journal import (
    Journal,
    Receipt,
    is_replay,
    must_not_be_archived,
    must_take_labels,
)
from celeus.operations.sessions.labelling.comments import keep_comments
from celeus.operations.sessions.ledger import Lease
from celeus.operations.sessions.panel import ratings as panel
from celeus.settings import Settings

BLIND_WAIT_SECONDS = 10.0
"""When a blind key may ask again: the ends of the others' leases are not its business. When a
rater may: turns have no end."""
LEFT_TO_OTHERS = 8
"""One of so many draws that may be out is left to keys that are not blind."""
LEAST_SHARE = 2
"""Draws that any key may hold: the labelling page shows one and has the next at hand."""

REPLAY_SECONDS = 0.5
"""How long a judgement waits until all rounds so far are bet on again."""
REPLAY_RETRY_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Offer:
    """Draws a worker holds, with their items, or the reason why there are none.

    Where payloads fill an answer, the rest of what the worker holds comes when these are judged.
    """

    state: str
    draws: list[dict[str, Any]]
    retry_after: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """Receipts, the session after them, and the next draws."""

    receipts: list[Receipt]
    session: dict[str, Any]
    offer: Offer


async def next_draws(context: Context, session_id: UUID, worker: str, count: int) -> Offer:
    """Lease draws to ``worker``: its own, then expired ones, then new ones.

    Asking again gives the same draws and renews their lease. Refuses a session that is archived.
    """

    async def work(journal: Journal, db: AsyncConnection) -> Answering[Offer]:
        must_not_be_archived(journal)
        rater = await _rater(db, journal, worker)
        leases = await journal.step(
            count, lambda: lease_draws(journal, worker, count, context.settings, rater)
        )
        hand = Hand.of(journal, leases)
        return lambda _, items: offer_of(journal, hand, items, want_draws=True)

    return await together(context, session_id, work)


async def observe(
    context: Context, session_id: UUID, judgements: Sequence[Judgement], worker: str, count: int
) -> Answer:
    """Append judgements, all or none, and lease ``count`` next draws in the same transaction.

    The same judgement again gets the receipt of the first, and its comment stands. Refuses rounds
    never drawn, another judgement than the first, losses outside scale or bounds, a closed or
    archived session, and to a blind key rounds that it was not handed, in one way. Where all rounds
    so far are bet on again, which takes long, it refuses until that is done, and others go on
    meanwhile.
    """
    async with keeping_contradictions(context, session_id):
        asked = judgements, worker, count
        answer = await _observed(context, session_id, *asked)
        if isinstance(answer, asyncio.Task):
            await asyncio.wait({answer}, timeout=REPLAY_SECONDS)
            if answer.done():
                answer = await _observed(context, session_id, *asked)
    if isinstance(answer, asyncio.Task):
        raise Busy(
            "All rounds so far are being bet on again; send the judgement again.",
            retry_after=REPLAY_RETRY_SECONDS,
        )
    return answer


async def _observed(
    context: Context, session_id: UUID, judgements: Sequence[Judgement], worker: str, count: int
) -> Answer | asyncio.Task[None]:
    """The answer; or who folds beside the session what takes long, and nothing is appended."""

    async def work(journal: Journal, db: AsyncConnection) -> Answering[Answer | asyncio.Task[None]]:
        said = judgements
        if journal.blind:
            said = [replace(it, round=journal.round_of(it.round)) for it in said]
            if journal.session.pool.named is not None:
                check_blind(said)
        if journal.entries and _reads_what_is_new(journal, said):
            raise AfterOthers
        rater = await _rater(db, journal, worker)
        rated, fresh = await _looked_at(db, journal, said, rater)
        ready = None
        if is_replay(journal.state, fresh):
            ready, folding = await _beside(journal, fresh)
            if not folding.done():
                return lambda _document, _items: folding
            folding.result()
            journal.session.beside = None
        rounds = journal.state.rounds_to_fold(fresh) + count

        def step() -> tuple[list[Receipt], list[Lease]]:
            if rated is None:
                receipts = _take(journal, said, fresh, worker, ready)
            else:
                receipts = panel.take(journal, rated, worker, ready)
            if not count:
                return receipts, []
            return receipts, lease_draws(journal, worker, count, context.settings, rater)

        receipts, leases = await journal.step(rounds, step)
        await keep_comments(db, journal, said, worker, rater)
        hand = Hand.of(journal, leases)
        return lambda document, items: Answer(
            receipts, document, offer_of(journal, hand, items, want_draws=count > 0)
        )

    return await together(context, session_id, work)


def _reads_what_is_new(journal: Journal, judgements: Sequence[Judgement]) -> bool:
    """Return whether the ledger is asked for what others of this transaction appended to it.

    Of a panel for ratings, else by blind keys for who judged a round.
    """
    new = set(journal.judged)
    blind = journal.blind and any(it.round in new for it in judgements)
    return blind or panel.ratings_in(journal) is not None


async def _looked_at(
    db: AsyncConnection, journal: Journal, judgements: Sequence[Judgement], rater: str | None
) -> tuple[list[panel.RaterJudgement] | None, dict[int, Loss]]:
    """What a rater of a panel says, and the losses of rounds not judged before; all is checked."""
    ratings = panel.ratings_in(journal)
    if ratings is not None and rater is not None:
        return await panel.check_ratings(db, journal, ratings, judgements, rater)
    said: dict[int, Said] | None = None
    if journal.blind:
        said = await _said_before(db, journal, {it.round for it in judgements})
    unshown = await _unshown(db, journal, judgements)
    return None, _fresh(journal, judgements, said, unshown)


async def _rater(db: AsyncConnection, journal: Journal, worker: str) -> str | None:
    """The rater who asks, in a session with a panel."""
    ratings = panel.ratings_in(journal)
    return None if ratings is None else await panel.rater_of(db, journal, ratings, worker)


async def _beside(journal: Journal, fresh: Mapping[int, Loss]) -> tuple[Ahead, asyncio.Task[None]]:
    """A fold with these losses beside the session, and who makes it; one of a session at a time."""
    session, state = journal.session, mean_session(journal.state)
    if state is None:
        raise TypeError(journal.plan)
    losses = {round_: loss for round_, loss in fresh.items() if not isinstance(loss, tuple)}
    if session.beside is not None:
        ahead, folding = session.beside
        failed = folding.done() and (folding.cancelled() or folding.exception() is not None)
        if not folding.done() or (not failed and ahead.fits(state, losses)):
            return session.beside
    ahead = await in_thread(Ahead, state, losses)
    folding = asyncio.create_task(in_thread(ahead.follow))
    session.beside = ahead, folding
    return session.beside


async def _said_before(
    db: AsyncConnection, journal: Journal, rounds: Collection[int]
) -> dict[int, Said]:
    """What the caller's key has said of those of the rounds that it judged.

    Refuses, all in one way, rounds that neither it nor a predecessor of it was ever handed, and
    those that somebody else has judged.
    """
    held_by = {lease.round: lease.keys for lease in journal.leases.values()}
    missing = {it for it in rounds if journal.key not in held_by.get(it, ())}
    if not missing:
        return {}
    judged = await judged_by(db, journal.session_id, journal.key_id, sorted(missing))
    earlier = await predecessors(db, journal.key_id)
    for round_ in missing - judged.keys():
        if earlier.isdisjoint(held_by.get(round_, ())):
            raise RoundNotHeld(
                f"round {journal.shown(round_)} is not this key's to judge: it was not handed to"
                " the key, or somebody else has judged it",
                field="round",
                rule="a round that `next` handed to this key",
                value=journal.shown(round_),
            )
    return {
        round_: words_of(
            row["detail"], row["loss"] if row["losses"] is None else tuple(row["losses"])
        )
        for round_, row in judged.items()
    }


async def _unshown(
    db: AsyncConnection, journal: Journal, judgements: Sequence[Judgement]
) -> Collection[int]:
    """Rounds of judgements said in the order shown in which nothing of any answer is shown."""
    state, question = journal.state, journal.state.question
    if not question.orders_answers or "answers" in journal.session.pool.columns:
        return ()
    said = {it.round for it in judgements if in_order(it) and 1 <= it.round <= state.drawn}
    if not said:
        return ()
    items = {state.item(round_): round_ for round_ in said}
    params = {"pool_id": journal.pool_id, "items": list(items)}
    return [items[index] for index in (await db.execute(_BARE, params)).scalars()]


def _fresh(
    journal: Journal,
    judgements: Sequence[Judgement],
    said: dict[int, Said] | None,
    unshown: Collection[int],
) -> dict[int, Loss]:
    """The losses of rounds not judged before; every judgement is checked.

    Those who see the session may say a judgement in another way, by the loss that follows from a
    label. With ``said`` the words are compared: what follows from a label is hidden.
    """
    losses = [
        journal.state.outcome(
            journal.session.pool,
            judgement,
            View(shown=judgement.round not in unshown, blind=journal.blind),
        )
        for judgement in judgements
    ]
    fresh: dict[int, Loss] = {}
    for judgement, loss in zip(judgements, losses, strict=True):
        round_ = judgement.round
        answer = journal.state.answer(round_)
        if answer is PENDING and round_ not in fresh:
            must_take_labels(journal)
            fresh[round_] = loss
            if said is not None:
                said[round_] = words_of(detail_of(judgement), loss)
            continue
        if said is None:
            same = loss == (fresh[round_] if answer is PENDING else answer)
        else:
            same = words_of(detail_of(judgement), loss) == said[round_]
        if not same:
            raise ObservationConflict(
                f"round {journal.shown(round_)} already has another judgement; correct it with an"
                " amendment",
                field="round",
                rule="one judgement per round",
                value=journal.shown(round_),
            )
    return fresh


def _take(
    journal: Journal,
    judgements: Sequence[Judgement],
    fresh: Mapping[int, Loss],
    worker: str,
    ready: Ahead | None = None,
) -> list[Receipt]:
    """Append the judgements of rounds in ``fresh``, each once."""
    receipts = []
    remaining = dict(fresh)
    for judgement in judgements:
        replayed = judgement.round not in remaining
        if not replayed:
            loss = remaining.pop(judgement.round)
            detail = detail_of(judgement) | {"worker": worker}
            journal.append(event_of(judgement, loss), detail, ready)
        answered_at = journal.state.answered_at(judgement.round)
        receipts.append(Receipt(journal.shown(judgement.round), answered_at, replayed=replayed))
    return receipts


def lease_draws(
    journal: Journal, worker: str, count: int, settings: Settings, rater: str | None = None
) -> list[Lease]:
    """Lease up to ``count`` draws to ``worker`` of the caller's key, in order of their rounds.

    1. A ``rater`` of a panel gets the rounds in which it is their turn, which nobody else can take
       over; with a blind key no more than the key's share.
    2. Others keep the draws they hold, then get expired ones, then new ones. A blind key gets
       rounds it has not seen only while its share is not used up.
    3. Draws that the worker passed on are left to others unless there is nothing else.
    """
    if rater is not None:
        if journal.blind:
            count = min(count, _share(journal.state, settings))
        return panel.hand_out(journal, rater, worker, count, settings)
    if journal.record.archived or session_state(journal.lifecycle, journal.state) != "active":
        return []
    count = min(count, settings.max_draws_per_worker)
    held, expired, passed = _leases_by_use(journal, worker)
    held = held[:count]
    seen = _seen_by(journal) if journal.blind else {lease.round for lease in held}
    unseen = max(0, _share(journal.state, settings) - len(seen)) if journal.blind else count
    leases: list[Lease] = []
    for lease in held + expired:
        if len(leases) < count and (unseen or lease.round in seen):
            unseen -= lease.round not in seen
            leases.append(journal.lease(lease.round, worker))
    leases += _draw(journal, worker, min(count - len(leases), unseen), settings)
    if not leases:
        leases = [journal.lease(lease.round, worker) for lease in passed[:count]]
    leases.sort(key=lambda lease: lease.round)
    journal.item_indices = [journal.state.item(lease.round) for lease in leases]
    return leases


def _leases_by_use(journal: Journal, worker: str) -> tuple[list[Lease], list[Lease], list[Lease]]:
    """Return the worker's own leases, others' expired ones, and those the worker passed on.

    Each list is in order of the rounds.
    """
    held: list[Lease] = []
    expired: list[Lease] = []
    passed: list[Lease] = []
    for lease in sorted(journal.leases.values(), key=lambda lease: lease.round):
        if lease.expires_at > journal.now:
            if lease.holder == (journal.key, worker):
                held.append(lease)
        elif _is_passed(journal, lease, worker):
            passed.append(lease)
        else:
            expired.append(lease)
    return held, expired, passed


def _draw(journal: Journal, worker: str, count: int, settings: Settings) -> list[Lease]:
    """Draw up to ``count`` new items, as long as no more are pending than may be.

    Blind keys together leave some of the pending draws to the other keys.
    """
    most = settings.max_draws_out
    if journal.blind:
        most -= most // LEFT_TO_OTHERS
    leases: list[Lease] = []
    while len(leases) < count and journal.state.pending < most and journal.state.can_draw:
        draw = journal.state.propose()
        placed = journal.state.question.arrangement(draw.round, draw.item)
        journal.append(draw, {"worker": worker} | placed)
        leases.append(journal.lease(draw.round, worker))
    return leases


def _seen_by(journal: Journal) -> set[int]:
    """Rounds that the key holds, or passed on and may still judge."""
    return {
        lease.round
        for lease in journal.leases.values()
        if (lease.expires_at > journal.now and lease.holder[0] == journal.key)
        or any(key == journal.key for key, _ in lease.passed)
    }


def _is_passed(journal: Journal, lease: Lease, worker: str) -> bool:
    """Return whether the caller passed the draw on, and others may still come for it.

    A blind key is one person's, whatever they call their windows.
    """
    waits = journal.now - lease.expires_at < timedelta(seconds=journal.record.lease_seconds)
    return waits and any(
        key == journal.key and (journal.blind or by == worker) for key, by in lease.passed
    )


def _share(state: AnySession, settings: Settings) -> int:
    """Draws of a session that one blind key may hold.

    It does not depend on how many are left, which it would tell.
    """
    draws = min(settings.max_draws_out, state.drawable, state.stopping.budget)
    return max(LEAST_SHARE, math.ceil(settings.max_share_per_key * draws))


async def publish(context: Context, journal: Journal, document: dict[str, Any]) -> None:
    """Publish the status document to the cache and the streams, if anything was appended."""
    if journal.entries:
        await announce(context.cache, context.project_id, journal.session_id, document)


@dataclass(frozen=True, slots=True)
class Hand:
    """Draws in the hands of one caller, by the numbers that the caller knows them by."""

    leases: list[Lease]
    numbers: list[int]
    indices: list[int]
    turns: dict[int, int]
    blind: bool

    @classmethod
    def of(cls, journal: Journal, leases: list[Lease]) -> Self:
        """Those of the journal's present caller."""
        numbers = [journal.shown(lease.round) for lease in leases]
        return cls(leases, numbers, journal.item_indices, journal.turns, journal.blind)


def offer_of(journal: Journal, hand: Hand, items: Mapping[int, Item], *, want_draws: bool) -> Offer:
    """The draws with those of their items that there are, or why there are none."""
    state, pool = session_state(journal.lifecycle, journal.state), journal.session.pool
    draws = [
        {
            "round": number,
            **journal.state.presented(pool, items[index], lease.round),
            "expires_at": moment(lease.expires_at),
            **({"turn": hand.turns[lease.round]} if hand.turns else {}),
        }
        for index, lease, number in zip(hand.indices, hand.leases, hand.numbers, strict=False)
        if index in items
    ]
    if draws or state != "active" or not want_draws:
        return Offer(state, draws, None)
    if hand.blind or panel.ratings_in(journal) is not None:
        return Offer("all_leased", [], min(BLIND_WAIT_SECONDS, float(journal.record.lease_seconds)))
    waits = [(it.expires_at - journal.now).total_seconds() for it in journal.leases.values()]
    return Offer("all_leased", [], max(1.0, math.ceil(min(waits, default=1.0))))


_BARE = text(
    """
    SELECT index FROM items
    WHERE pool_id = :pool_id AND index = ANY(:items) AND payload -> 'answers' IS NULL
    """
)

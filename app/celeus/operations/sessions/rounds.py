"""Draw the next items of a session, observe their judgements, and give draws back."""

import asyncio
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Self
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.ledger import JointObservation, Observation, Unjudgeable
from celeus.core.plans.success import check_open
from celeus.core.pools.item import Item
from celeus.core.session.correction import FoldAhead, mean_session
from celeus.core.session.handout import SLOW_TIMES, OpenDraw, hand_out
from celeus.core.session.outcome import (
    Judgement,
    JudgementWords,
    Loss,
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
from celeus.operations.sessions import panel
from celeus.operations.sessions.append import finish
from celeus.operations.sessions.batching import AfterOthers, Answering, together
from celeus.operations.sessions.blinding import judged_by, predecessors
from celeus.operations.sessions.contradictions import keeping_contradictions
from celeus.operations.sessions.event_rows import moment
from celeus.operations.sessions.journal import (
    BESIDE,
    Journal,
    Receipt,
    hands_out,
    is_replay,
    locked,
    must_not_be_archived,
    must_take_labels,
)
from celeus.operations.sessions.labelling.comments import keep_comments
from celeus.operations.sessions.ledger import Lease, with_kinds
from celeus.settings import Settings
from celeus.stalls import LEAST_BEHIND

BLIND_WAIT_SECONDS = 10.0
"""Seconds until a blind key asks again, which must not learn when others' leases end, or a rater,
whose turns have no end."""
LEFT_TO_OTHERS = 8
"""One of so many draws that may be out is left to keys that are not blind."""
LEAST_SHARE = 2
"""Draws that any key may hold: the labelling page shows one and has the next at hand."""

REPLAY_SECONDS = 0.5
"""Longest time, in seconds, a judgement waits until all rounds so far are bet on again."""
REPLAY_RETRY_SECONDS = 2


LONGEST_PROGRAM_LEASE = 30.0
"""Longest lease of a program, in seconds; the holder of a longer one may be a person."""

NO_RUNS: Mapping[int, int] = MappingProxyType({})

_Asked = tuple[str, int, int | None]
"""A worker, how many draws it wants to hold, and for how many seconds."""


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Number of draws ``worker`` wants to hold, and for how long; ``rater`` is its name in a panel.

    With ``front_first`` it may be handed the oldest open draw while somebody else holds it.
    """

    worker: str
    count: int
    lease_seconds: int | None
    settings: Settings
    rater: str | None = None
    front_first: bool = True


@dataclass(frozen=True, slots=True)
class NextDraws:
    """Draws a worker holds, with their items, or the reason why there are none.

    Where payloads fill an answer, the rest of what the worker holds comes when these are judged.
    """

    state: str
    draws: list[dict[str, Any]]
    retry_after: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """Receipts, the session after them, and the next draws.

    ``judged`` has the losses of rounds that were not judged before.
    """

    receipts: list[Receipt]
    session: dict[str, Any]
    offer: NextDraws
    judged: Mapping[int, Loss] = field(default_factory=dict)


async def next_draws(  # noqa: PLR0913 -- what a worker asks for, each by its name
    context: Context,
    session_id: UUID,
    worker: str,
    count: int,
    lease_seconds: int | None = None,
    *,
    runs: Mapping[int, int] = NO_RUNS,
) -> NextDraws:
    """Lease draws to ``worker``, as `handout` says; with a ``count`` of 0 those it has already.

    Asking again gives the same draws and renews their lease. A program asks for a lease of
    ``lease_seconds``, and renews it; without them it is the session's. ``runs`` are those made of
    rounds that it holds, of several a draw, none of which settles its round: who goes on with such
    a round makes none of them again. Refuses a session that is archived.
    """

    async def work(journal: Journal, db: AsyncConnection) -> Answering[NextDraws]:
        must_not_be_archived(journal)
        _keep_runs(journal, worker, runs)
        request = await _lease_request(
            db, journal, (worker, count, lease_seconds), context.settings
        )
        leases = await journal.step(count, lambda: lease_draws(journal, request))
        leased = LeasedDraws.of(journal, leases)
        return lambda document, items: offer_of(journal, leased, document, items)

    return await together(context, session_id, work)


def _keep_runs(journal: Journal, worker: str, runs: Mapping[int, int]) -> None:
    """Keep how many runs were made of rounds that the caller holds; others are not counted."""
    success = getattr(journal.plan, "success", None)
    for shown, made in runs.items():
        check_open(success, made)
        lease = journal.leases.get(journal.round_of(shown))
        if lease is not None and (journal.key, worker) in lease.ends and made > lease.runs:
            lease.runs = made
            journal.new_leases.append(lease)


async def observe(  # noqa: PLR0913 -- what a judge says and asks for, each by its name
    context: Context,
    session_id: UUID,
    judgements: Sequence[Judgement],
    worker: str,
    count: int,
    *,
    lease_seconds: int | None = None,
) -> Answer:
    """Append judgements, all or none, and lease ``count`` next draws in the same transaction.

    The same judgement again gets the receipt of the first, and its comment is kept. Of two who held
    a draw at once the first answer counts, and the second changes nothing. Refuses rounds
    never drawn, another judgement than the first, losses outside scale or bounds, a closed or
    archived session, and to a blind key rounds that it was not handed, in one way. Where all rounds
    so far are bet on again, which takes long, it refuses until that is done, and others go on
    meanwhile.
    """
    async with keeping_contradictions(context, session_id):
        asked = worker, count, lease_seconds
        answer = await _observed(context, session_id, judgements, asked)
        if isinstance(answer, asyncio.Task):
            await asyncio.wait({answer}, timeout=REPLAY_SECONDS)
            if answer.done():
                answer = await _observed(context, session_id, judgements, asked)
    if isinstance(answer, asyncio.Task):
        raise Busy(
            "All rounds so far are being bet on again; send the judgement again.",
            retry_after=REPLAY_RETRY_SECONDS,
        )
    return answer


async def _observed(
    context: Context, session_id: UUID, judgements: Sequence[Judgement], asked: _Asked
) -> Answer | asyncio.Task[None]:
    """The answer; or who folds beside the session what takes long, and nothing is appended."""
    worker, count, _ = asked

    async def work(journal: Journal, db: AsyncConnection) -> Answering[Answer | asyncio.Task[None]]:
        resolved = judgements
        if journal.blind:
            resolved = [replace(given, round=journal.round_of(given.round)) for given in judgements]
            if journal.session.pool.named is not None:
                check_blind(resolved)
        if journal.entries and _reads_what_is_new(journal, resolved):
            raise AfterOthers
        request = await _lease_request(db, journal, asked, context.settings, resolved)
        duplicates = await _duplicates(db, journal, resolved, worker)
        new = [judgement for judgement in resolved if judgement.round not in duplicates]
        rated, fresh = await _looked_at(db, journal, new, request.rater)
        ready, rounds = None, journal.state.rounds_to_fold(fresh)
        if is_replay(journal.state, fresh, rounds):
            ready, folding = await _beside(journal, fresh)
            if not folding.done():
                return lambda _document, _items: folding
            folding.result()
            journal.session.beside = None
            rounds = journal.state.rounds_to_fold(fresh)

        def step() -> tuple[list[Receipt], list[Lease]]:
            if rated is None:
                taken = iter(_take(journal, new, fresh, worker, ready))
            else:
                taken = iter(panel.take(journal, rated, worker, ready))
            receipts = [duplicates.get(judgement.round) or next(taken) for judgement in resolved]
            return receipts, lease_draws(journal, request) if count else []

        receipts, leases = await journal.step(rounds + count, step)
        await keep_comments(db, journal, new, worker, request.rater)
        leased = LeasedDraws.of(journal, leases)
        return lambda document, items: Answer(
            receipts,
            document,
            offer_of(journal, leased, document, items, want_draws=count > 0),
            fresh,
        )

    return await together(context, session_id, work)


def _reads_what_is_new(journal: Journal, judgements: Sequence[Judgement]) -> bool:
    """Return whether the ledger is asked for what others of this transaction appended to it.

    Of a panel for ratings, else by blind keys for who judged a round.
    """
    new = set(journal.judged)
    blind = journal.blind and any(judgement.round in new for judgement in judgements)
    return blind or journal.ratings is not None


async def _looked_at(
    db: AsyncConnection, journal: Journal, judgements: Sequence[Judgement], rater: str | None
) -> tuple[list[panel.RaterJudgement] | None, dict[int, Loss]]:
    """Check the judgements; return a rater's, and the losses of rounds not judged before."""
    ratings = journal.ratings
    if ratings is not None and rater is not None:
        return await panel.check_ratings(db, journal, ratings, judgements, rater)
    earlier_words: dict[int, JudgementWords] | None = None
    if journal.blind:
        earlier_words = await _earlier_words(
            db, journal, {judgement.round for judgement in judgements}
        )
    unshown = await _unshown(db, journal, judgements)
    return None, _fresh(journal, judgements, earlier_words, unshown)


async def _lease_request(
    db: AsyncConnection,
    journal: Journal,
    asked: _Asked,
    settings: Settings,
    judgements: Sequence[Judgement] = (),
) -> LeaseRequest:
    """Return the draws the caller asks for; its ``judgements`` may free the oldest open one."""
    worker, count, seconds = asked
    ratings = journal.ratings
    if ratings is not None:
        rater = await panel.rater_of(db, journal, ratings, worker)
        return LeaseRequest(worker, count, seconds, settings, rater, front_first=False)
    again = not journal.state.fixes_raters and await _may_go_again(db, journal, seconds, judgements)
    return LeaseRequest(worker, count, seconds, settings, front_first=again)


async def _may_go_again(
    db: AsyncConnection, journal: Journal, seconds: int | None, judgements: Sequence[Judgement]
) -> bool:
    """Return whether the holder of the oldest open draw has had it for too long.

    Where only programs are concerned it always is: the draws judged behind it say enough. People
    may take their time: several times as long as half of the latest judgements took. For a blind
    key the ledger is asked however many rounds wait, which could be timed otherwise.
    """
    judged = {judgement.round for judgement in judgements}
    front = min(journal.leases.keys() - judged, default=None)
    median = await _median(db, journal) if journal.blind else None
    if front is None or journal.state.observed + len(judged) - front + 1 < LEAST_BEHIND:
        return True
    lease = journal.leases[front]
    left = (lease.expires_at - journal.now).total_seconds()
    if seconds is not None and left <= LONGEST_PROGRAM_LEASE:
        return True
    if not journal.blind:
        median = await _median(db, journal)
    age = (journal.now - lease.since).total_seconds()
    return median is not None and age >= SLOW_TIMES * median


async def _median(db: AsyncConnection, journal: Journal) -> float | None:
    """Return the median time of the latest judgements since their draws, in seconds."""
    params = {"session_id": journal.session_id}
    median: float | None = (await db.execute(_MEDIAN, params)).scalar_one()
    return median


async def _duplicates(
    db: AsyncConnection, journal: Journal, judgements: Sequence[Judgement], worker: str
) -> dict[int, Receipt]:
    """Receipts for judgements of rounds that another holder of the same draw has judged first.

    They name the judgement that counts. A blind key is one person's; for it the ledger is asked
    whether or not a round is judged, which could be timed otherwise.
    """
    state, blind = journal.state, journal.blind
    rounds = {judgement.round for judgement in judgements if 1 <= judgement.round <= state.drawn}
    judged = {round_ for round_ in rounds if state.answer(round_) is not PENDING}
    if not judged and not blind:
        return {}
    details = {
        entry.event.round: entry.detail or {}
        for entry in journal.entries
        if isinstance(entry.event, Observation | JointObservation | Unjudgeable)
    }
    params = {"session_id": journal.session_id, "rounds": sorted(rounds)}
    for row in await db.execute(_BESIDE, params):
        details[row.round] = row.detail
    return {
        round_: Receipt(
            journal.shown(round_), state.answered_at(round_), replayed=False, duplicate=True
        )
        for round_, detail in details.items()
        if round_ in judged
        and any(
            key == journal.key and (blind or beside == worker)
            for key, beside in json.loads(detail.get(BESIDE, "[]"))
        )
    }


async def _beside(
    journal: Journal, fresh: Mapping[int, Loss]
) -> tuple[FoldAhead, asyncio.Task[None]]:
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
    ahead = await in_thread(FoldAhead, state, losses)
    folding = asyncio.create_task(in_thread(ahead.follow))
    session.beside = ahead, folding
    return session.beside


async def _earlier_words(
    db: AsyncConnection, journal: Journal, rounds: Collection[int]
) -> dict[int, JudgementWords]:
    """Return the words of the caller's key for those of the rounds that it judged.

    Refuses, all in one way, rounds that neither it nor a predecessor of it was ever handed, and
    those that somebody else has judged.
    """
    held_by = {lease.round: lease.keys for lease in journal.leases.values()}
    missing = {round_ for round_ in rounds if journal.key not in held_by.get(round_, ())}
    if not missing:
        return {}
    judged = await judged_by(db, journal.session_id, journal.key_id, sorted(missing))
    earlier = await predecessors(db, journal.key_id)
    for round_ in missing - judged.keys():
        if earlier.isdisjoint(held_by.get(round_, ())):
            raise journal.refusal(
                RoundNotHeld,
                round_,
                "is not this key's to judge: it was not handed to the key, or somebody else has"
                " judged it",
                "a round that `next` handed to this key",
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
    ordered = {
        judgement.round
        for judgement in judgements
        if in_order(judgement) and 1 <= judgement.round <= state.drawn
    }
    if not ordered:
        return ()
    items = {state.item(round_): round_ for round_ in ordered}
    params = {"pool_id": journal.pool_id, "items": list(items)}
    return [items[index] for index in (await db.execute(_BARE, params)).scalars()]


def _fresh(
    journal: Journal,
    judgements: Sequence[Judgement],
    earlier_words: dict[int, JudgementWords] | None,
    unshown: Collection[int],
) -> dict[int, Loss]:
    """The losses of rounds not judged before; every judgement is checked.

    Those who see the session may say a judgement in another way, by the loss that follows from a
    label. With ``earlier_words`` the words are compared: what follows from a label is hidden.
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
    runs: dict[int, int | None] = {}
    for judgement, loss in zip(judgements, losses, strict=True):
        round_ = judgement.round
        answer = journal.state.answer(round_)
        if answer is PENDING and round_ not in fresh:
            must_take_labels(journal)
            lease = journal.leases.get(round_)
            if judgement.runs is not None and lease is not None and judgement.runs <= lease.runs:
                raise journal.refusal(
                    ObservationConflict,
                    round_,
                    f"has {lease.runs} runs already, none of which settles it",
                    "a judgement with a later run",
                )
            fresh[round_], runs[round_] = loss, judgement.runs
            if earlier_words is not None:
                earlier_words[round_] = words_of(detail_of(judgement), loss)
            continue
        if earlier_words is None:
            same = loss == (fresh[round_] if answer is PENDING else answer)
        else:
            same = words_of(detail_of(judgement), loss) == earlier_words[round_]
        made = runs[round_] if answer is PENDING else journal.state.runs_made.get(round_)
        if not same or judgement.runs != made:
            raise journal.refusal(
                ObservationConflict,
                round_,
                "already has another judgement; correct it with an amendment",
                "one judgement per round",
            )
    return fresh


def _take(
    journal: Journal,
    judgements: Sequence[Judgement],
    fresh: Mapping[int, Loss],
    worker: str,
    ready: FoldAhead | None = None,
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


async def release(
    context: Context,
    session_id: UUID,
    worker: str | None,
    rounds: Collection[int] | None,
    *,
    passed: bool = False,
) -> list[int]:
    """End leases early; the rounds whose leases ended, in order.

    Of what ``worker`` of the caller's key holds, or, without a worker, of whoever holds it; only of
    ``rounds`` where these are given. Its holder may still judge it until somebody else has.
    A rater's turn in a panel is nobody else's, so of these there is nothing to release. What is
    ``passed`` on comes back to its holder after a lease's time without a judgement, or as soon as
    there is nothing else for them.
    """
    async with locked(context, session_id) as (journal, db):
        chosen = None if rounds is None else {journal.round_of(round_) for round_ in rounds}
        released = []
        for round_, lease in sorted(journal.leases.items()):
            holders = lease.holders(journal.now)
            if worker is not None:
                holders = [holder for holder in holders if holder == (journal.key, worker)]
            if holders and (chosen is None or round_ in chosen):
                journal.release(round_, holders, passed=passed)
                released.append(round_)
        await finish(db, journal)
        return [journal.shown(round_) for round_ in released]


def lease_draws(journal: Journal, request: LeaseRequest) -> list[Lease]:
    """Lease to the caller the draws it wishes to hold, in order of their rounds.

    A rater of a panel gets the rounds in which it is their turn, which nobody else can take over;
    all others what `handout` says. A blind key gets rounds it has not seen only while its share is
    not used up.
    """
    settings = request.settings
    if request.rater is not None:
        count = request.count
        if journal.blind:
            count = min(count, _share(journal.state, settings))
        return panel.hand_out(journal, request.rater, request.worker, count, settings)
    if not hands_out(journal, request.count):
        return []
    draws = _open_draws(journal, request.worker)
    unseen = None
    if journal.blind:
        seen = sum(draw.seen for draw in draws)
        unseen = max(0, _share(journal.state, settings) - seen)
    handout = hand_out(
        draws,
        (journal.key, request.worker),
        min(request.count, settings.max_draws_per_worker),
        judged=journal.state.observed,
        room=_room(journal, settings),
        unseen=unseen,
        front_first=request.front_first,
    )
    journal.wait = handout.wait
    rounds = [*handout.rounds, *_draw(journal, request.worker, handout.new)]
    leases = [journal.lease(round_, request.worker, request.lease_seconds) for round_ in rounds]
    journal.item_indices = [journal.state.item(lease.round) for lease in leases]
    return leases


def _open_draws(journal: Journal, worker: str) -> list[OpenDraw]:
    """The draws that nobody has judged, as the caller is to be handed them."""
    seen = _seen_by(journal) if journal.blind else set()
    draws = []
    for round_, lease in sorted(journal.leases.items()):
        running = lease.holders(journal.now)
        ended = [] if running else [end for end in lease.ends if [*end] not in lease.passed]
        passed = _is_passed(journal, lease, worker)
        draws.append(OpenDraw(round_, running, ended=ended, seen=round_ in seen, passed=passed))
    if draws:
        left = max(journal.leases[draws[0].round].ends.values()) - journal.now
        draws[0] = draws[0]._replace(left=max(0.0, left.total_seconds()))
    return draws


def _room(journal: Journal, settings: Settings) -> int:
    """Return the number of new draws that may be made within the limit on pending ones.

    Blind keys together leave some of the pending draws to the other keys.
    """
    most = settings.max_draws_out
    if journal.blind:
        most -= most // LEFT_TO_OTHERS
    return most - journal.state.pending if journal.state.can_draw else 0


def _draw(journal: Journal, worker: str, count: int) -> list[int]:
    """Draw up to ``count`` new items, and return their rounds."""
    rounds: list[int] = []
    while len(rounds) < count and journal.state.can_draw:
        draw = journal.state.propose()
        placed = journal.state.question.arrangement(draw.round, draw.item)
        journal.append(draw, {"worker": worker} | placed)
        rounds.append(draw.round)
    return rounds


def _seen_by(journal: Journal) -> set[int]:
    """Rounds that the key holds, or passed on and may still judge."""
    return {
        lease.round
        for lease in journal.leases.values()
        if any(key == journal.key for key, _ in lease.holders(journal.now))
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
    draws = min(settings.max_draws_out, state.most_draws, state.stopping.budget)
    return max(LEAST_SHARE, math.ceil(settings.max_share_per_key * draws))


async def publish(context: Context, journal: Journal, document: dict[str, Any]) -> None:
    """Publish the status document to the cache and the streams, if anything was appended."""
    if journal.entries:
        await announce(context.cache, context.project_id, journal.session_id, document)


@dataclass(frozen=True, slots=True)
class LeasedDraws:
    """Draws leased to one caller, by the numbers that the caller knows them by."""

    leases: list[Lease]
    numbers: list[int]
    indices: list[int]
    turns: dict[int, int]
    blind: bool
    wait: float | None

    @classmethod
    def of(cls, journal: Journal, leases: list[Lease]) -> Self:
        """Return the draws of the journal's present caller."""
        numbers = [journal.shown(lease.round) for lease in leases]
        indices, turns = journal.item_indices, journal.turns
        return cls(leases, numbers, indices, turns, journal.blind, journal.wait)


def offer_of(
    journal: Journal,
    leased: LeasedDraws,
    document: Mapping[str, Any],
    items: Mapping[int, Item],
    *,
    want_draws: bool = True,
) -> NextDraws:
    """The draws with those of their items that there are, or why there are none by the status.

    They are in the order of the numbers that the caller knows their rounds by: to a blind key no
    order shows which were drawn before others, and so which are a panel's third votes.
    """
    state, pool = document["state"], journal.session.pool
    draws = [
        {
            "round": number,
            **journal.state.presented(pool, items[index], lease.round),
            "expires_at": moment(lease.expires_at),
            **({"turn": leased.turns[lease.round]} if leased.turns else {}),
            **({"runs": lease.runs} if lease.runs else {}),
        }
        for index, lease, number in zip(leased.indices, leased.leases, leased.numbers, strict=False)
        if index in items
    ]
    draws.sort(key=itemgetter("round"))
    if draws or state != "active" or not want_draws:
        return NextDraws(state, draws, None)
    if leased.blind or journal.ratings is not None:
        return NextDraws(
            "all_leased", [], min(BLIND_WAIT_SECONDS, float(journal.record.lease_seconds))
        )
    if leased.wait is not None:
        return NextDraws("waiting", [], max(1.0, math.ceil(leased.wait)))
    waits = [
        (max(lease.ends.values()) - journal.now).total_seconds()
        for lease in journal.leases.values()
    ]
    return NextDraws("all_leased", [], max(1.0, math.ceil(min(waits, default=1.0))))


_MEDIAN = with_kinds(
    """
    WITH latest AS (
        SELECT round, at FROM events
        WHERE session_id = :session_id AND kind IN (:observation, :unjudgeable)
        ORDER BY sequence DESC LIMIT 60
    )
    SELECT percentile_cont(0.5) WITHIN GROUP (
        ORDER BY extract(epoch FROM latest.at - drawn.at)::float8)
    FROM latest JOIN events AS drawn
        ON drawn.session_id = :session_id AND drawn.kind = :draw AND drawn.round = latest.round
    """
)
_BESIDE = with_kinds(
    """
    SELECT round, detail FROM events
    WHERE session_id = :session_id AND kind IN (:observation, :unjudgeable)
      AND round = ANY(:rounds) AND detail->>'beside' IS NOT NULL
    """
)
_BARE = text(
    """
    SELECT index FROM items
    WHERE pool_id = :pool_id AND index = ANY(:items) AND payload -> 'answers' IS NULL
    """
)

"""Draw the next items of a session, and observe their judgements."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.ledger import JointObservation, Observation, Unjudgeable
from celeus.core.pools.comparison import WORDS, loss_said, losses_said
from celeus.core.pools.pool import Pool
from celeus.core.pools.systems import PLACES, SIDES
from celeus.core.sessions.best.state import BestState
from celeus.core.sessions.either import (
    AnyState,
    can_draw,
    propose,
    risk_plan,
    rounds_to_fold,
)
from celeus.core.sessions.rounds import PENDING
from celeus.errors import (
    InvalidValue,
    ObservationConflict,
    RoundNotDrawn,
    RoundNotHeld,
    SessionClosed,
)
from celeus.operations.pools.pools import Item
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.state_cache import CachedSession
from celeus.operations.runtime.status import announce, session_state
from celeus.operations.sessions.append import write
from celeus.operations.sessions.blinding import judged_by, predecessors
from celeus.operations.sessions.contradictions import keeping_contradictions
from celeus.operations.sessions.journal import Journal, locked
from celeus.operations.sessions.ledger import Lease, moment
from celeus.settings import Settings

BLIND_WAIT_SECONDS = 10.0
"""When a blind key may ask again: the ends of the others' leases are not its business."""
LEFT_TO_OTHERS = 8
"""One of so many draws that may be out is left to keys that are not blind."""
LEAST_SHARE = 2
"""Draws that any key may hold: the labelling page shows one and has the next at hand."""


Loss = float | tuple[float, ...] | None
"""The loss of a round, those of several systems, or None: nobody can tell."""
Said = tuple[tuple[Any, ...], bool, Loss]
"""A judgement in its judge's words: label and so on, whether unjudgeable, loss."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judgement of a round: a loss, a true label, or a reason why there is none.

    Of two systems: the true label, ``losses`` of ``a`` and ``b`` or of ``left`` and ``right``, or a
    ``preference`` for one of these, by how many grades. Of several: the true label, or ``losses``
    by name or of the answers in the order shown.
    """

    round: int
    loss: float | None = None
    label: int | None = None
    unjudgeable: str | None = None
    losses: Mapping[str, float] | Sequence[float] | None = None
    preference: str | None = None
    grade: int | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The judgement's place in the ledger; ``replayed`` if it was there before."""

    round: int
    sequence: int
    replayed: bool


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

    Asking again gives the same draws and renews their lease.
    """
    async with locked(context, session_id) as (journal, db):
        leases = await journal.step(
            count, lambda: _hand_out(journal, worker, count, context.settings)
        )
        document, offer = await finish(db, journal, leases, want_draws=True)
    await publish(context, journal, document)
    return offer


async def observe(
    context: Context, session_id: UUID, judgements: Sequence[Judgement], worker: str, count: int
) -> Answer:
    """Append judgements, all or none, and lease ``count`` next draws in the same transaction.

    The same judgement again gets the receipt of the first. Refuses rounds never drawn, another
    judgement than the first, losses outside scale or bounds, a closed session, and to a blind key
    rounds that it was not handed, in one way.
    """
    async with (
        keeping_contradictions(context, session_id),
        locked(context, session_id) as (journal, db),
    ):
        said: dict[int, Said] | None = None
        if journal.blind:
            judgements = [replace(it, round=journal.round_of(it.round)) for it in judgements]
            check_blind(judgements)
            said = await _said_before(db, journal, {it.round for it in judgements})
        fresh = _fresh(journal, judgements, said)
        rounds = rounds_to_fold(journal.state, fresh) + count

        def step() -> tuple[list[Receipt], list[Lease]]:
            receipts = _take(journal, judgements, fresh, worker)
            return receipts, _hand_out(journal, worker, count, context.settings) if count else []

        receipts, leases = await journal.step(rounds, step)
        document, offer = await finish(db, journal, leases, want_draws=count > 0)
    # Nothing was awaited since the slot was left: the state is still as committed.
    context.forecasts.consider(session_id, journal.session, journal.forecast)
    await publish(context, journal, document)
    return Answer(receipts, document, offer)


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
        round_: _words(
            row["detail"], row["loss"] if row["losses"] is None else tuple(row["losses"])
        )
        for round_, row in judged.items()
    }


def _fresh(
    journal: Journal, judgements: Sequence[Judgement], said: dict[int, Said] | None
) -> dict[int, Loss]:
    """The losses of rounds not judged before; every judgement is checked.

    Those who see the session may say a judgement in another way, by the loss that follows from a
    label. With ``said`` the words are compared: what follows from a label is hidden.
    """
    losses = [loss_of(journal.session, judgement) for judgement in judgements]
    fresh: dict[int, Loss] = {}
    for judgement, loss in zip(judgements, losses, strict=True):
        round_ = judgement.round
        answer = journal.state.answer(round_)
        if answer is PENDING and round_ not in fresh:
            must_be_open(journal)
            fresh[round_] = loss
            if said is not None:
                said[round_] = _words(detail_of(judgement), loss)
            continue
        if said is None:
            same = loss == (fresh[round_] if answer is PENDING else answer)
        else:
            same = _words(detail_of(judgement), loss) == said[round_]
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
) -> list[Receipt]:
    """Append the judgements of rounds in ``fresh``, each once."""
    receipts = []
    remaining = dict(fresh)
    for judgement in judgements:
        replayed = judgement.round not in remaining
        if not replayed:
            loss = remaining.pop(judgement.round)
            detail = detail_of(judgement) | {"worker": worker}
            journal.append(_event(judgement.round, loss), detail)
        answered_at = journal.state.answered_at(judgement.round)
        receipts.append(Receipt(journal.shown(judgement.round), answered_at, replayed=replayed))
    return receipts


def _words(detail: Mapping[str, Any], loss: Loss) -> Said:
    return (tuple(detail.get(name) for name in WORDS), "unjudgeable" in detail, loss)


def check_blind(judgements: Sequence[Judgement]) -> None:
    """Refuse what a key that is not told which answer is whose says of systems by name."""
    for judgement in judgements:
        losses = judgement.losses
        named = isinstance(losses, Mapping) and not losses.keys() <= {*PLACES}
        if judgement.preference in SIDES or named:
            field = "preference" if judgement.preference in SIDES else "losses"
            raise InvalidValue(
                "This key is not told which answer is whose.",
                field=field,
                rule="said of left and right, as `next` shows the two answers, or of several in"
                " the order shown",
                value=judgement.preference or list(losses or ()),
            )


def _event(round_: int, loss: Loss) -> Observation | JointObservation | Unjudgeable:
    if isinstance(loss, tuple):
        return JointObservation(round_, loss)
    return Unjudgeable(round_) if loss is None else Observation(round_, loss)


def loss_of(session: CachedSession, judgement: Judgement) -> Loss:
    """The loss a judgement states or implies, checked against the scale; None: unjudgeable."""
    drawn = session.state.drawn
    if not 1 <= judgement.round <= drawn:
        raise RoundNotDrawn(
            f"round {judgement.round} is not drawn; {drawn} rounds are",
            field="round",
            rule=f"a round from 1 to {drawn}" if drawn else "a round that was drawn",
            value=judgement.round,
        )
    pool, state, item = session.pool, session.state, session.state.item(judgement.round)
    if isinstance(state, BestState):
        return _losses_of(state, pool, judgement)
    if judgement.unjudgeable is not None:
        return None
    said = detail_of(judgement)
    if judgement.loss is not None:
        said["loss"] = judgement.loss
    if not said:
        rule = "exactly one of loss, label, losses, preference and unjudgeable"
        raise InvalidValue(f"a judgement has {rule}", field="loss", rule=rule)
    sides = state.sides
    loss = loss_said(pool, item, said, None if sides is None else sides.left(judgement.round))
    if pool.bounds is not None and risk_plan(session.plan).believed is not None:
        pool.bounds.check(item, loss)
    return loss


def _losses_of(state: BestState, pool: Pool, judgement: Judgement) -> tuple[float, ...]:
    """The losses of all systems that a judgement states or implies."""
    if pool.lineup is None:
        message = "the best is sought in a pool of several systems"
        raise TypeError(message)
    if judgement.unjudgeable is not None:
        raise InvalidValue(
            "Where the best of several systems is sought, every round that is drawn is judged: what"
            " a round nobody can judge means for the others is not worked out.",
            field="unjudgeable",
            rule="a judgement; an item that nobody can judge belongs into no such pool",
            value=judgement.unjudgeable,
        )
    item = state.item(judgement.round)
    given = {
        name: getattr(judgement, name)
        for name in ("label", "losses", "loss", "preference")
        if getattr(judgement, name) is not None
    }
    losses = losses_said(pool, pool.lineup, item, given, _answers_shown(state, pool, judgement))
    state.check(item, losses)
    return losses


def _answers_shown(
    state: BestState, pool: Pool, judgement: Judgement | Lease
) -> list[tuple[int, ...]] | None:
    """Whose answers the judge of a round sees, in this order; None where only the item is shown."""
    if "predictions" in pool.columns:
        return None
    codes = pool.codes
    item = state.item(judgement.round)
    return state.order.shown(judgement.round, None if codes is None else codes[item].tolist())


def detail_of(judgement: Judgement) -> dict[str, Any]:
    """The ledger's detail of a judgement, besides its loss."""
    detail: dict[str, Any] = {}
    if judgement.label is not None:
        detail["label"] = judgement.label
    if isinstance(judgement.losses, Mapping) and judgement.losses.keys() <= {*SIDES, *PLACES}:
        detail |= {f"loss_{name}": loss for name, loss in judgement.losses.items()}
    if judgement.preference is not None:
        detail["preference"] = judgement.preference
    if judgement.grade not in {None, 1}:
        detail["grade"] = judgement.grade
    if judgement.unjudgeable is not None:
        detail["unjudgeable"] = judgement.unjudgeable
    return detail


def must_be_open(journal: Journal) -> None:
    """Refuse a session that is closed."""
    if journal.lifecycle == "closed":
        raise SessionClosed(
            "the session is closed for good",
            field="session_id",
            rule="an open session",
            value=f"ses_{journal.session_id.hex}",
        )


def _hand_out(journal: Journal, worker: str, count: int, settings: Settings) -> list[Lease]:
    """Lease up to ``count`` draws to ``worker`` of the caller's key, in order of their rounds.

    A blind key gets new ones, and expired ones of others, while its share is not used up; blind
    keys together leave some to the others.
    """
    count = min(count, settings.max_draws_per_worker)
    if session_state(journal.lifecycle, journal.state) != "active":
        return []
    standing = sorted(journal.leases.values(), key=lambda lease: lease.round)
    live = [it for it in standing if it.expires_at > journal.now]
    own = [it for it in live if it.holder == (journal.key, worker)][:count]
    if journal.blind:
        held = sum(it.holder[0] == journal.key for it in live)
        most = _share(journal.state, settings) - held
        count = min(count, len(own) + max(0, most))
    out = settings.max_draws_out - (
        settings.max_draws_out // LEFT_TO_OTHERS if journal.blind else 0
    )
    expired = [it for it in standing if it.expires_at <= journal.now]
    leases = [journal.lease(it.round, worker) for it in (own + expired)[:count]]
    while (
        len(leases) < count
        and journal.state.pending < out
        and can_draw(journal.plan, journal.state)
    ):
        draw = propose(journal.plan, journal.state)
        sides = journal.state.sides
        shown = {} if sides is None else {"left": sides.left(draw.round)}
        journal.append(draw, {"worker": worker} | shown)
        leases.append(journal.lease(draw.round, worker))
    leases.sort(key=lambda lease: lease.round)
    journal.item_indices = [journal.state.item(it.round) for it in leases]
    return leases


def _share(state: AnyState, settings: Settings) -> int:
    """Draws of a session that one blind key may hold.

    It does not depend on how many are left, which it would tell.
    """
    draws = min(settings.max_draws_out, state.drawable, state.stopping.budget)
    return max(LEAST_SHARE, math.ceil(settings.max_share_per_key * draws))


async def finish(
    db: AsyncConnection, journal: Journal, leases: list[Lease], *, want_draws: bool
) -> tuple[dict[str, Any], Offer]:
    """Write what the operation appended; returns the status document and the offer.

    Both are taken while the session is held: a moment later the state may already be ahead, by
    what another request has yet to commit.
    """
    document = journal.status()
    items = await write(db, journal, document) if journal.changed else {}
    return document, _offer(journal, leases, items, want_draws=want_draws)


async def publish(context: Context, journal: Journal, document: dict[str, Any]) -> None:
    """Publish the status document to the cache and the streams, if anything was appended."""
    if journal.entries:
        await announce(context.cache, context.project_id, journal.session_id, document)


def _shown(journal: Journal, item: Item, lease: Lease) -> dict[str, Any]:
    """The item as its judge sees it: of systems without a word on which answer is whose."""
    state, pool = journal.state, journal.session.pool
    if pool.named is None:
        return {"item": item}
    item = item.split(pool.named)
    if isinstance(state, BestState):
        shown = _answers_shown(state, pool, lease)
        if shown is None:
            return {"item": item}
        names = state.plan.systems
        return {"item": item, "answers": [(item.sides or {})[names[one[0]]] for one in shown]}
    sides = state.sides
    if sides is None:
        return {"item": item}
    answers = [(item.sides or {})[side] for side in SIDES]
    if sides.left(lease.round) != SIDES[0]:
        answers.reverse()
    return {"item": item, **dict(zip(PLACES, answers, strict=True))}


def _offer(
    journal: Journal, leases: list[Lease], items: dict[int, Item], *, want_draws: bool
) -> Offer:
    state = session_state(journal.lifecycle, journal.state)
    draws = [
        {
            "round": journal.shown(lease.round),
            **_shown(journal, items[index], lease),
            "expires_at": moment(lease.expires_at),
        }
        for index, lease in zip(journal.item_indices, leases, strict=False)
        if index in items
    ]
    if draws or state != "active" or not want_draws:
        return Offer(state, draws, None)
    if journal.blind:
        return Offer("all_leased", [], min(BLIND_WAIT_SECONDS, float(journal.lease_seconds)))
    waits = [(it.expires_at - journal.now).total_seconds() for it in journal.leases.values()]
    return Offer("all_leased", [], max(1.0, math.ceil(min(waits, default=1.0))))

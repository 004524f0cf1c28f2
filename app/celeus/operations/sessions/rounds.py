"""The two verbs of a session: next (what to judge) and observe (what the judge said)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.ledger import Observation, Unjudgeable
from app.core.session import PENDING, can_draw, propose
from app.errors import (
    InvalidValue,
    ObservationConflict,
    RoundNotDrawn,
    SessionClosed,
)
from app.operations.hot import Warm
from app.operations.journal import Journal, locked
from app.operations.ledger import Lease
from app.operations.rooms import Rooms
from app.operations.status import announce, session_state
from app.operations.writing import write
from app.settings import Settings


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge says of a round: a loss, a true label, or a reason why neither can be told."""

    round: int
    loss: float | None = None
    label: int | None = None
    unjudgeable: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """A judgement is in the ledger at ``sequence``; ``replayed`` when it was there before."""

    round: int
    sequence: int
    replayed: bool


@dataclass(frozen=True, slots=True)
class Offer:
    """What a worker may judge now: draws it holds, with their items, or why there are none."""

    state: str
    draws: list[dict[str, Any]]
    retry_after: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """Receipts, the session after them, and the next draws."""

    receipts: list[Receipt]
    session: dict[str, Any]
    offer: Offer


async def next_draws(rooms: Rooms, session_id: UUID, worker: str, count: int) -> Offer:
    """Draws for ``worker`` to hold: its own, then expired ones, then new ones.

    Asking again gives the same draws and renews their lease.
    """
    async with locked(rooms, session_id) as (journal, db):
        held = _hand_out(journal, worker, count, rooms.settings)
        document, offer = await settled(db, journal, held, asked=True)
    await announced(rooms, journal, document)
    return offer


async def observe(
    rooms: Rooms, session_id: UUID, judgements: Sequence[Judgement], worker: str, count: int
) -> Answer:
    """Take judgements, all or none, and hand out ``count`` next draws in the same transaction.

    The same judgement again gets the receipt of the first. Refuses rounds never drawn, another
    judgement than the first, losses outside the scale, and a closed session.
    """
    async with locked(rooms, session_id) as (journal, db):
        receipts = _take(journal, judgements, worker)
        held = _hand_out(journal, worker, count, rooms.settings) if count else []
        document, offer = await settled(db, journal, held, asked=count > 0)
    # Nothing was awaited since the slot was left: the state is still as committed.
    rooms.forecasts.consider(session_id, journal.warm, journal.forecast)
    await announced(rooms, journal, document)
    return Answer(receipts, document, offer)


def _take(journal: Journal, judgements: Sequence[Judgement], worker: str) -> list[Receipt]:
    """Append what is new; everything is checked before anything is appended."""
    checked = [loss_of(journal.warm, judgement) for judgement in judgements]
    fresh: dict[int, float | None] = {}
    for judgement, loss in zip(judgements, checked, strict=True):
        known = journal.state.rounds[judgement.round - 1].answer
        earlier = fresh.get(judgement.round, PENDING) if known is PENDING else known
        if earlier is PENDING:
            must_be_open(journal)
            fresh[judgement.round] = loss
        elif earlier != loss:
            raise ObservationConflict(
                f"round {judgement.round} already has another judgement; correct it with an"
                " amendment",
                field="round",
                rule="one judgement per round",
                value=judgement.round,
            )
    receipts = []
    for judgement, loss in zip(judgements, checked, strict=True):
        replayed = judgement.round not in fresh
        if not replayed:
            del fresh[judgement.round]
            detail = detail_of(judgement) | {"worker": worker}
            journal.append(_event(judgement.round, loss), detail)
        answered_at = journal.state.rounds[judgement.round - 1].answered_at
        receipts.append(Receipt(judgement.round, answered_at, replayed=replayed))
    return receipts


def _event(round_: int, loss: float | None) -> Observation | Unjudgeable:
    return Unjudgeable(round_) if loss is None else Observation(round_, loss)


def loss_of(warm: Warm, judgement: Judgement) -> float | None:
    """The loss a judgement states or implies, checked against the scale; None: unjudgeable."""
    drawn = warm.state.drawn
    if not 1 <= judgement.round <= drawn:
        raise RoundNotDrawn(
            f"round {judgement.round} was not drawn; {drawn} rounds were",
            field="round",
            rule=f"1 to {drawn}",
            value=judgement.round,
        )
    if judgement.unjudgeable is not None:
        return None
    pool = warm.pool
    if judgement.label is not None:
        item = warm.state.rounds[judgement.round - 1].draw.item
        return pool.loss_of_label(item, judgement.label)
    if judgement.loss is None:
        rule = "exactly one of loss, label and unjudgeable"
        raise InvalidValue(f"a judgement has {rule}", field="loss", rule=rule)
    return pool.scale.check(judgement.loss)


def detail_of(judgement: Judgement) -> dict[str, Any]:
    """What the ledger keeps of a judgement beside its loss."""
    detail: dict[str, Any] = {}
    if judgement.label is not None:
        detail["label"] = judgement.label
    if judgement.unjudgeable is not None:
        detail["unjudgeable"] = judgement.unjudgeable
    return detail


def must_be_open(journal: Journal) -> None:
    """Refuse a session that is closed."""
    if journal.lifecycle == "closed":
        raise SessionClosed(
            "the session is closed for good",
            field="session_id",
            rule="a session that is not closed",
            value=f"ses_{journal.session_id.hex}",
        )


def _hand_out(journal: Journal, worker: str, count: int, settings: Settings) -> list[Lease]:
    """Up to ``count`` draws for ``worker`` to hold, in order of their rounds."""
    count = min(count, settings.max_draws_per_worker)
    if session_state(journal.lifecycle, journal.state) != "active":
        return []
    standing = sorted(journal.leases.values(), key=lambda lease: lease.round)
    own = [it for it in standing if it.worker == worker and it.expires_at > journal.now]
    expired = [it for it in standing if it.expires_at <= journal.now]
    held = [journal.lease(it.round, worker) for it in (own + expired)[:count]]
    while (
        len(held) < count
        and journal.state.pending < settings.max_draws_out
        and can_draw(journal.plan, journal.state)
    ):
        draw = propose(journal.plan, journal.state)
        journal.append(draw, {"worker": worker})
        held.append(journal.lease(draw.round, worker))
    held.sort(key=lambda lease: lease.round)
    journal.wanted = [journal.state.rounds[it.round - 1].draw.item for it in held]
    return held


async def settled(
    db: AsyncConnection, journal: Journal, held: list[Lease], *, asked: bool
) -> tuple[dict[str, Any], Offer]:
    """Write what the operation did; returns the session's document and what is offered.

    Both are taken while the session is held: a moment later the state may already be ahead, by
    what another request has yet to commit.
    """
    document = journal.status()
    items = await write(db, journal, document) if journal.changed else {}
    return document, _offer(journal, held, items, asked=asked)


async def announced(rooms: Rooms, journal: Journal, document: dict[str, Any]) -> None:
    """Tell the cache and the streams; both may be gone."""
    if journal.entries:
        await announce(rooms.cache, rooms.project_id, journal.session_id, document)


def _offer(
    journal: Journal, held: list[Lease], items: dict[int, dict[str, Any]], *, asked: bool
) -> Offer:
    state = session_state(journal.lifecycle, journal.state)
    draws = [
        {
            "round": lease.round,
            "item": items[journal.state.rounds[lease.round - 1].draw.item],
            "expires_at": lease.expires_at.isoformat(),
        }
        for lease in held
    ]
    if draws or state != "active" or not asked:
        return Offer(state, draws, None)
    waits = [(it.expires_at - journal.now).total_seconds() for it in journal.leases.values()]
    return Offer("all_leased", [], max(1.0, math.ceil(min(waits, default=1.0))))

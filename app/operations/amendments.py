"""The third verb of a session: correct a judgement, and fold anew."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.correcting import Refold, refold
from app.core.ledger import Amendment
from app.core.session import PENDING
from app.errors import InvalidValue, NotLastLabel, RoundNotJudged, SessionStopped
from app.operations.journal import ROUNDS_FOLDED_INLINE, Journal, locked, rebuild
from app.operations.rooms import Rooms
from app.operations.rounds import (
    Answer,
    Judgement,
    Receipt,
    announced,
    detail_of,
    loss_of,
    must_be_open,
    settled,
)

STOPPED_BY_LOSSES = frozenset({"target_reached", "decided"})
"""Reasons to stop that depend on what was judged: one seen tells a blind judge of the losses."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A judgement that replaces an earlier one, with who says so and why.

    ``author`` None: the holder of the key, by the key's name.
    """

    judgement: Judgement
    author: str | None
    reason: str

    @property
    def detail(self) -> dict[str, Any]:
        """What the ledger keeps beside the loss."""
        return detail_of(self.judgement) | {"author": self.author, "reason": self.reason}


async def amend(
    rooms: Rooms, session_id: UUID, correction: Correction, *, own_only: bool = False
) -> Answer:
    """Replace the judgement of a round by appending a correction, and fold again from the start.

    The same correction again gets the receipt of the first. With ``own_only`` the round must be
    the last one that a worker of this key has judged, and corrected by no other key since; the
    author is the key's name, and a session that its losses have stopped is refused.
    """
    last = await _last_rounds(rooms, session_id) if own_only else frozenset()
    correction = await _signed(rooms, correction, own_only=own_only)
    refused = own_only and correction.judgement.round not in last
    # Nothing long is begun for what the lock will show to be refused.
    ready = None if refused else await _foreseen(rooms, session_id, correction)
    async with locked(rooms, session_id) as (journal, db):
        judgement = correction.judgement
        must_be_open(journal)
        loss = loss_of(journal.warm, judgement)
        _must_be_judged(journal, judgement.round)
        latest = await _latest_amendment(db, session_id, judgement.round)
        if latest is not None and _said(latest) == (loss, correction.detail):
            receipt = Receipt(judgement.round, latest["sequence"], replayed=True)
        else:
            if own_only:
                await _must_be_own(db, journal, judgement.round, latest)
            event = Amendment(judgement.round, loss)
            # Said before the thread starts: it goes on changing the state if we are cancelled.
            journal.slot.ahead = True
            entry = await asyncio.to_thread(journal.append, event, correction.detail, ready)
            receipt = Receipt(judgement.round, entry.sequence, replayed=False)
        document, offer = await settled(db, journal, [], asked=False)
    await announced(rooms, journal, document)
    return Answer([receipt], document, offer)


async def _signed(rooms: Rooms, correction: Correction, *, own_only: bool) -> Correction:
    """The correction with its author; who only judges signs with the name of the key."""
    if correction.author is not None and not own_only:
        return correction
    async with rooms.transaction() as db:
        name = (await db.execute(_NAME, {"key_id": rooms.key_id})).scalar_one_or_none()
    if name is None or correction.author not in {None, name}:
        raise InvalidValue(
            "a key that only judges signs with its own name",
            field="author",
            rule="left out, or the name of the key",
            value=correction.author,
        )
    return replace(correction, author=name)


async def _last_rounds(rooms: Rooms, session_id: UUID) -> frozenset[int]:
    """The rounds that the workers of this key have judged last, one each."""
    asked = {"session_id": session_id, "key_id": rooms.key_id}
    async with rooms.transaction() as db:
        return frozenset((await db.execute(_LAST, asked)).scalars())


async def _must_be_own(
    db: AsyncConnection, journal: Journal, round_: int, latest: RowMapping | None
) -> None:
    """Refuse to correct another round than a worker's last one, or when losses have spoken.

    A blind judge is told nothing that depends on the losses but such a stop. A correction made
    before it cannot depend on where the session stands; one made after it could, also while the
    session is paused. What somebody else has corrected is their word, and no longer the judge's.
    """
    asked = {"session_id": journal.session_id, "key_id": journal.key_id}
    others = latest is not None and latest["detail"].get("key") != journal.key_id
    if others or round_ not in (await db.execute(_LAST, asked)).scalars().all():
        raise NotLastLabel(
            f"what was last said of round {round_} is not the last label of this key; others are"
            " corrected by a key with scope manage",
            field="round",
            rule="the last round judged with this key",
            value=round_,
        )
    if journal.state.stop_reason in STOPPED_BY_LOSSES:
        raise SessionStopped(
            "the session has stopped; labels are corrected by a key with scope manage now",
            field="session_id",
            rule="a session that its losses have not stopped",
            value=f"ses_{journal.session_id.hex}",
        )


async def _foreseen(rooms: Rooms, session_id: UUID, correction: Correction) -> Refold | None:
    """The fold after the correction, made while no lock and no connection is held.

    Fifty thousand rounds take half a minute: longer than others wait for a lock, and nearly as long
    as the database lets a transaction stand still. None where the fold is short, or not needed.
    """
    judgement = correction.judgement
    asked = {"session_id": session_id, "project_id": rooms.project_id}
    async with rooms.transaction() as db:
        if (await db.execute(_OPEN, asked)).scalar_one_or_none() is None:
            return None
        latest = await _latest_amendment(db, session_id, judgement.round)
    if latest is not None:
        loss, detail = _said(latest)
        if detail == correction.detail and judgement.loss in {None, loss}:
            return None
    async with rooms.hot.hold(session_id) as slot:
        if slot.warm is None:
            slot.warm = await rebuild(rooms, session_id)
        plan, state = slot.warm.plan, slot.warm.state
        if state.folded <= ROUNDS_FOLDED_INLINE or judgement.round > state.folded:
            return None
        event = Amendment(judgement.round, loss_of(slot.warm, judgement))
        return await asyncio.to_thread(refold, plan, state, event)


def _must_be_judged(journal: Journal, round_: int) -> None:
    if journal.state.rounds[round_ - 1].answer is PENDING:
        raise RoundNotJudged(
            f"round {round_} has no judgement to correct",
            field="round",
            rule="a judged round",
            value=round_,
        )


def _said(amendment: RowMapping) -> tuple[float | None, dict[str, Any]]:
    """Loss and detail, whichever key it came by: a retry may come by another."""
    detail = {name: told for name, told in amendment["detail"].items() if name != "key"}
    return amendment["loss"], detail


async def _latest_amendment(
    db: AsyncConnection, session_id: UUID, round_: int
) -> RowMapping | None:
    asked = {"session_id": session_id, "round": round_}
    return (await db.execute(_LATEST, asked)).mappings().one_or_none()


_OPEN = text(
    """
    SELECT true FROM sessions
    WHERE session_id = :session_id AND project_id = :project_id AND lifecycle <> 'closed'
    """
)
_NAME = text("SELECT name FROM keys WHERE key_id = :key_id")
_LAST = text("SELECT last_round FROM labellers WHERE session_id = :session_id AND key_id = :key_id")
_LATEST = text(
    """
    SELECT sequence, loss, detail FROM events
    WHERE session_id = :session_id AND kind = 4 AND round = :round
    ORDER BY sequence DESC LIMIT 1
    """
)

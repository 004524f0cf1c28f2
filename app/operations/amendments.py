"""The third verb of a session: correct a judgement, and fold anew."""

import asyncio
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.correcting import Refold, refold
from app.core.ledger import Amendment
from app.core.session import PENDING
from app.errors import RoundNotJudged
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


@dataclass(frozen=True, slots=True)
class Correction:
    """A judgement that replaces an earlier one, with who says so and why."""

    judgement: Judgement
    author: str
    reason: str

    @property
    def detail(self) -> dict[str, Any]:
        """What the ledger keeps beside the loss."""
        return detail_of(self.judgement) | {"author": self.author, "reason": self.reason}


async def amend(rooms: Rooms, session_id: UUID, correction: Correction) -> Answer:
    """Replace the judgement of a round by appending a correction, and fold again from the start.

    The same correction again gets the receipt of the first.
    """
    ready = await _foreseen(rooms, session_id, correction)
    async with locked(rooms, session_id) as (journal, db):
        judgement = correction.judgement
        must_be_open(journal)
        loss = loss_of(journal.warm, judgement)
        _must_be_judged(journal, judgement.round)
        latest = await _latest_amendment(db, session_id, judgement.round)
        if latest is not None and _said(latest) == (loss, correction.detail):
            receipt = Receipt(judgement.round, latest["sequence"], replayed=True)
        else:
            event = Amendment(judgement.round, loss)
            # Said before the thread starts: it goes on changing the state if we are cancelled.
            journal.slot.ahead = True
            entry = await asyncio.to_thread(journal.append, event, correction.detail, ready)
            receipt = Receipt(judgement.round, entry.sequence, replayed=False)
        document, offer = await settled(db, journal, [], asked=False)
    await announced(rooms, journal, document)
    return Answer([receipt], document, offer)


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
_LATEST = text(
    """
    SELECT sequence, loss, detail FROM events
    WHERE session_id = :session_id AND kind = 4 AND round = :round
    ORDER BY sequence DESC LIMIT 1
    """
)

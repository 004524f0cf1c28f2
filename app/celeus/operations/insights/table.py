"""The claims of a session that makes a table of them, one by one, and those added later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from celeus.core.insights.claim_rows import (
    EVERY_CLAIM,
    ClaimQuery,
    check_name,
    claim_rows,
    claims_document,
    table_of,
)
from celeus.core.ledger import Addition
from celeus.core.plans.table_plan import TableClaim
from celeus.core.pools.item import Item
from celeus.core.pools.table_pool import Mask
from celeus.core.session.session import Session
from celeus.core.session.table.table_question import Table
from celeus.errors import InvalidValue, SessionFixed
from celeus.operations.pools.pools import items_at
from celeus.operations.runtime.concurrency import in_thread
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.idempotency import IdempotentRequest, claim, keep, peek
from celeus.operations.runtime.status import announce
from celeus.operations.sessions.append import write
from celeus.operations.sessions.journal import Journal, locked, must_be_open, unlocked


async def table_claims(
    context: Context, session_id: UUID, query: ClaimQuery = EVERY_CLAIM
) -> dict[str, Any]:
    """Return the ``claims_document`` of a session; takes no lock."""
    async with unlocked(context, session_id) as (session, _):
        return await in_thread(claims_document, session.state, f"ses_{session_id.hex}", query)


@dataclass(frozen=True, slots=True)
class Part:
    """The items that claims speak of: all, or those with this ``value`` in ``column``.

    ``judged`` keeps those that are judged, or the others; None keeps both.
    """

    column: str | None = None
    value: str | None = None
    judged: bool | None = None


@dataclass(frozen=True, slots=True)
class PartItem:
    """An item of a part, with the ``losses`` a judge gave it in ``round``, by metric.

    Both are None of one that is not judged. ``known`` are the metrics whose loss was known before.
    """

    item: Item
    round: int | None
    losses: Mapping[str, float | None] | None
    known: Sequence[str]


async def part_items(
    context: Context, session_id: UUID, part: Part, limit: int, after: int | None
) -> tuple[list[PartItem], int | None]:
    """The items of a part in upload order until PAGE_BYTES are full, and the next ``after``.

    ``after`` is the last index already seen; no lock is taken. Refuses sessions of another kind,
    and a column or value of none.
    """
    async with unlocked(context, session_id) as (session, row):
        state = table_of(session.state, f"ses_{session_id.hex}")
        found = await in_thread(_found, state, part, limit + 1, -1 if after is None else after)
    async with context.transaction() as db:
        page = await items_at(db, row["pool_id"], [losses.place for losses in found[:limit]])
    items = [PartItem(item, *losses[1:]) for item, losses in zip(page, found, strict=False)]
    return items, page[-1].index if len(page) < len(found) else None


class _ItemLosses(NamedTuple):
    place: int
    round: int | None
    losses: Mapping[str, float | None] | None
    known: Sequence[str]


def _found(state: Session[Table], part: Part, most: int, after: int) -> list[_ItemLosses]:
    """Return the losses of at most ``most`` items of a part after item ``after``."""
    wanted = _wanted(state, part)
    wanted[: after + 1] = False
    indices = np.flatnonzero(wanted)[:most].tolist()
    names = [metric.name for metric in state.question.plan.metrics]
    known = state.question.table.known
    nothing: tuple[int | None, Mapping[str, float | None] | None] = None, None
    rounds = dict.fromkeys(indices, nothing)
    for place, item in enumerate(state.rounds.item):
        if item in rounds and state.rounds.is_judged(place):
            losses = state.rounds.losses(place)
            rounds[item] = place + 1, dict(zip(names, losses, strict=True))
    return [
        _ItemLosses(
            place,
            *rounds[place],
            [name for name, loss in zip(names, known[place], strict=True) if not np.isnan(loss)],
        )
        for place in indices
    ]


def _wanted(state: Session[Table], part: Part) -> Mask:
    table = state.question.table
    wanted = np.ones(table.items, dtype=np.bool_)
    check_name("column", part.column, [column.name for column in table.columns])
    if (part.column is None) != (part.value is None):
        raise InvalidValue(
            "A group is a column and one of its values.",
            field="column" if part.column is None else "value",
            rule="both, or neither for all items",
        )
    for column in table.columns:
        if column.name == part.column and part.value is not None:
            check_name("value", part.value, column.values)
            wanted &= column.code == column.values.index(part.value)
    if part.judged is not None:
        judged = np.zeros(table.items, dtype=np.bool_)
        judged[np.array(state.rounds.item, dtype=np.intp)[state.rounds.judged]] = True
        wanted &= judged == part.judged
    return wanted


async def add_claim(
    context: Context,
    session_id: UUID,
    addition: Addition,
    once: IdempotentRequest[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Add a claim at a level from the reserve of alpha; it bets on draws made from now on.

    Returns the claim as it is now. Refuses, by name, what the core refuses: a level that the
    reserve has not, a claim that is there, and any while a draw is out, whose item somebody may
    have seen.
    """
    await peek(context, once)
    async with locked(context, session_id) as (journal, db):
        await claim(db, context, once)
        _check_addable(journal)
        state = table_of(journal.state, f"ses_{session_id.hex}")
        # A refusal leaves the state as it was: nothing is entered before all is checked.
        state.question.check_addition(TableClaim.asked(addition))
        await journal.step(0, lambda: journal.append(addition, addition.to_dict()))
        document = journal.status()
        await write(db, journal, document)
        [added] = claim_rows(state, [len(state.question.claims) - 1])
        await keep(db, context, once, added)
    await announce(context.cache, context.project_id, session_id, document)
    return added


def _check_addable(journal: Journal) -> None:
    must_be_open(journal)
    if journal.plan.fixed:
        raise SessionFixed(
            "This session was opened with fixed settings: no claim is added to it.",
            field="fixed",
            rule="a session that was opened without it",
            value=True,
        )

"""The judgements of a session as they stand now: pages of them, all of them, or all of a round.

They are read from the ledger in parts, each in a transaction of its own. A read sees the ledger up
to the event at which it began, so that all parts belong together.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.insights.label_rows import LabelContext, groups_of, label_row, said_of
from celeus.core.plans.judge_check import positive_loss
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.item import Item
from celeus.core.session.question import AnyPlan
from celeus.core.session.session import plan_from_values
from celeus.errors import InvalidValue, RoundNotDrawn, SessionNotFound
from celeus.operations.pools.pools import items_at
from celeus.operations.runtime.context import Context, one_snapshot
from celeus.operations.sessions.event_rows import KIND_NAMES, moment
from celeus.operations.sessions.history import document_of
from celeus.operations.sessions.ledger import with_kinds
from celeus.operations.sessions.sessions import sealed_pool

EVENTS_AT_ONCE = 2_000
"""Events of the ledger looked at in one transaction."""
PARTS_OF_A_PAGE = 50
"""After so many a page ends, though it may hold fewer than were asked for."""


@dataclass(frozen=True, slots=True)
class LabelFilter:
    """Conditions that exported judgements meet; None and False set no condition.

    ``above``: a loss above this one. ``person``: the name of a key, worker or rater.
    ``column`` and ``value`` are those of a group; without a column it is the pool's one group.
    ``differs``: people say otherwise than the judge that the session checks.
    """

    above: float | None = None
    person: str | None = None
    column: str | None = None
    value: str | None = None
    commented: bool = False
    amended: bool = False
    unjudgeable: bool = False
    differs: bool = False
    newest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels(LabelContext):
    """The facts shared by the judgements of a session, up to event ``until`` of its ledger.

    ``verdict_loss`` is the loss of every item by the judge that the session checks, if any.
    """

    session_id: UUID
    pool_id: UUID
    until: int
    verdict_loss: NDArray[np.float64] | None = None

    def check_filter(self, wanted: LabelFilter) -> None:
        """Refuse a group that there is not, and differences from a judge where none is checked."""
        self.in_group(wanted)
        if wanted.differs and self.verdict_loss is None:
            raise InvalidValue(
                "This session checks no judge.",
                field="differs",
                rule="left out, but for sessions that check a judge",
            )

    def keeps(self, wanted: LabelFilter, row: Mapping[str, Any]) -> bool:
        """Return whether a judgement differs from the judge's verdict, if that is asked for."""
        if not wanted.differs or self.verdict_loss is None:
            return True
        return row["loss"] is not None and row["loss"] != self.verdict_loss[row["index"]]

    def in_group(self, wanted: LabelFilter) -> NDArray[np.bool_] | None:
        """Return whether each item is of the group that is asked for; None where none is."""
        if wanted.value is None:
            if wanted.column is None:
                return None
            raise _no_group("value", "given with `column`", None)
        column = wanted.column or next(iter(self.groups), "group")
        if column not in self.groups:
            rule = "a group column of the pool: " + (", ".join(self.groups) or "it has none")
            raise _no_group("column", rule, wanted.column)
        if wanted.value not in self.groups[column]:
            raise _no_group("value", f"a value of the group column {column}", wanted.value)
        mask: NDArray[np.bool_] = self.codes(column) == self.groups[column].index(wanted.value)
        return mask


async def labels_of(context: Context, session_id: UUID) -> Labels:
    """Return the facts shared by all judgements of a session, without the judgements."""
    params = {"session_id": session_id, "project_id": context.project_id}
    async with context.transaction() as db:
        row = (await db.execute(_SESSION, params)).one_or_none()
    if row is None:
        raise SessionNotFound.of(session_id)
    pool, plan = await sealed_pool(context, row.pool_id), plan_from_values(row.plan)
    common = LabelContext.of(plan, pool, row.folded)
    return Labels(
        **{field.name: getattr(common, field.name) for field in fields(common)},
        session_id=session_id,
        pool_id=row.pool_id,
        until=row.sequence,
        verdict_loss=_verdict_loss(plan, common),
    )


def _verdict_loss(plan: AnyPlan, labels: LabelContext) -> NDArray[np.float64] | None:
    if not isinstance(plan, TablePlan) or plan.check is None:
        return None
    column, positive = plan.check.column, positive_loss(plan.metrics[0])
    flagged = labels.codes(column) == labels.groups[column].index(plan.check.positive)
    return np.where(flagged, positive, 1.0 - positive)


async def label_page(
    context: Context, labels: Labels, wanted: LabelFilter, limit: int, after: int | None
) -> tuple[list[dict[str, Any]], int | None]:
    """At most ``limit`` judgements behind the one of event ``after``, and the next page's.

    In the order of their events, or the other way round; few where few fit the filter.
    """
    found: list[dict[str, Any]] = []
    parts = 0
    async for rows, reached in _parts(context, labels, wanted, after, limit):
        found += rows
        parts += 1
        if len(found) >= limit:
            full = len(found) > limit or reached is not None
            return found[:limit], found[limit - 1]["sequence"] if full else None
        if parts == PARTS_OF_A_PAGE:
            return found, reached
    return found, None


async def all_labels(
    context: Context, labels: Labels, wanted: LabelFilter
) -> AsyncIterator[list[dict[str, Any]]]:
    """All judgements that fit the filter, some at a time, none of these lists empty."""
    async for rows, _ in _parts(context, labels, wanted, None, EVENTS_AT_ONCE):
        if rows:
            yield rows


async def payloads(
    context: Context, labels: Labels, rows: Sequence[Mapping[str, Any]]
) -> AsyncIterator[list[Item]]:
    """The items of these judgements with their payloads, in order, as many at a time as fit."""
    indices = [row["index"] for row in rows]
    while indices:
        async with context.transaction() as db:
            items = await items_at(db, labels.pool_id, indices)
        if not items:
            return
        named = labels.pool.named
        yield items if named is None else [item.split(named) for item in items]
        indices = indices[len(items) :]


async def round_history(context: Context, session_id: UUID, round_: int) -> dict[str, Any]:
    """Return a round's item, its draw, and all its events with their comments."""
    labels = await labels_of(context, session_id)
    params = {"session_id": session_id, "round": round_}
    async with context.transaction() as db:
        await one_snapshot(db)
        await document_of(db, context.project_id, session_id)
        events = [dict(row) for row in (await db.execute(_EVENTS, params)).mappings()]
        if not events:
            raise RoundNotDrawn(
                f"round {round_} is not drawn",
                field="round",
                rule="a round that was drawn",
                value=round_,
            )
        comments = [dict(row) for row in (await db.execute(_COMMENTS, params)).mappings()]
        draw = events[0]
        left = (draw["detail"] or {}).get("left")
        items = await items_at(db, labels.pool_id, [draw["item"]])
    item, named = items[0], labels.pool.named
    return {
        "round": round_,
        "item": item if named is None else item.split(named),
        "probability": draw["q"],
        "groups": groups_of(labels, draw["item"]),
        "in_interval": round_ <= labels.folded,
        "left": left,
        "events": [_event(labels, row, left) for row in events],
        "comments": [row | {"at": moment(row["at"])} for row in comments],
    }


def _event(labels: Labels, row: Mapping[str, Any], left: str | None) -> dict[str, Any]:
    detail = row["detail"] or {}
    return {
        "sequence": row["sequence"],
        "kind": KIND_NAMES[row["kind"]],
        "at": moment(row["at"]),
        **said_of(labels, row["loss"], row["losses"], detail, left),
        "person": row["person"] or detail.get("rater") or detail.get("worker"),
        "worker": detail.get("worker"),
        "rater": detail.get("rater"),
        "turn": detail.get("turn"),
        "author": detail.get("author"),
        "reason": detail.get("reason"),
    }


async def _parts(
    context: Context, labels: Labels, wanted: LabelFilter, after: int | None, most: int
) -> AsyncIterator[tuple[list[dict[str, Any]], int | None]]:
    """Judgements part by part, and the event up to which the ledger was looked at: None at its end.

    A part has at most ``most`` of them, and one more where there are more.
    """
    mask = labels.in_group(wanted)
    statement = _statement(wanted)
    # The database knows neither groups nor verdicts: of what they leave out it reads all
    read = most + 1 if mask is None and not wanted.differs else EVENTS_AT_ONCE
    first, last = 0, labels.until
    if after is not None:
        first, last = (first, min(last, after - 1)) if wanted.newest else (after, last)
    while first < last:
        if wanted.newest:
            start, end = max(first, last - EVENTS_AT_ONCE), last
            last = start
        else:
            start, end = first, min(last, first + EVENTS_AT_ONCE)
            first = end
        async with context.transaction() as db:
            await one_snapshot(db)
            # Of a session that is deleted meanwhile nobody gets a part and takes it for all
            await document_of(db, context.project_id, labels.session_id)
            window = {"after": start, "last": end, "most": read}
            rows = await _window(db, labels, wanted, statement, window)
        if mask is not None:
            rows = [row for row in rows if mask[row["item"]]]
        reached = start + 1 if wanted.newest else end
        found = (_row(labels, row) for row in rows)
        kept = (row for row in found if labels.keeps(wanted, row))
        yield list(islice(kept, most + 1)), reached if first < last else None


async def _window(
    db: AsyncConnection,
    labels: Labels,
    wanted: LabelFilter,
    statement: TextClause,
    window: Mapping[str, int],
) -> list[dict[str, Any]]:
    params: dict[str, Any] = {
        "session_id": labels.session_id,
        "pool_id": labels.pool_id,
        "until": labels.until,
        **window,
    }
    if wanted.above is not None:
        params["above"] = wanted.above
    if wanted.person is not None:
        params["person"] = wanted.person
    return [dict(row) for row in (await db.execute(statement, params)).mappings()]


def _row(labels: Labels, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a judgement after its corrections, from a row of `_LABELS`."""
    names = ("at", "drawn_at", "last_at")
    times = {name: None if row[name] is None else moment(row[name]) for name in names}
    return label_row(labels, {**row, **times, "is_rating": row["kind"] == _RATING})


def _no_group(field: str, rule: str, value: object) -> InvalidValue:
    return InvalidValue("There is no such group.", field=field, rule=rule, value=value)


_RATING = next(number for number, name in KIND_NAMES.items() if name == "rating")
_SESSION = text(
    """
    SELECT pool_id, plan, sequence, CAST(status->>'round' AS int) AS folded
    FROM sessions WHERE session_id = :session_id AND project_id = :project_id
    """
)
_FILTERS = {
    "above": "(loss > :above OR (SELECT max(one) FROM unnest(losses) AS one) > :above)",
    "person": ":person IN (person, detail->>'worker', detail->>'rater')",
    "commented": "comment IS NOT NULL",
    "amended": "corrections > 0",
    "unjudgeable": "loss IS NULL AND (losses IS NULL OR losses = ARRAY[NULL]::float8[])",
}


def _statement(wanted: LabelFilter) -> TextClause:
    """The statement that reads a part of the ledger."""
    filters = [clause for name, clause in _FILTERS.items() if _asks(getattr(wanted, name))]
    where = f" WHERE {' AND '.join(filters)}" if filters else ""
    order = "DESC" if wanted.newest else "ASC"
    return with_kinds(f"{_LABELS}{where} ORDER BY sequence {order} LIMIT :most")


def _asks(value: object) -> bool:
    return value is not None and value is not False


# The limit has each draw sought by its round, and the subquery each item by its index, where the
# planner knows nothing of a new ledger or pool yet: a join read the whole pool.
# Of a judgement the last correction: of a round the last amendment, of a rating in a panel the last
# of its rater and turn. A rating that corrects an earlier one is no judgement of its own.
_LABELS = """
    WITH judged AS (
        SELECT one.sequence, one.kind, one.round, one.detail, one.at, one.losses,
            CASE WHEN fixed.at IS NULL THEN one.loss ELSE fixed.loss END AS loss,
            fixed.detail AS last_detail, fixed.at AS last_at, fixed.corrections,
            draw.item, draw.q, draw.at AS drawn_at, draw.detail->>'left' AS left_system,
            keys.name AS person, said.comment
        FROM events AS one
        CROSS JOIN LATERAL (
            SELECT item, q, at, detail FROM events
            WHERE session_id = one.session_id AND round = one.round AND kind = :draw LIMIT 1
        ) AS draw
        LEFT JOIN LATERAL (
            SELECT sequence, loss, detail, at, count(*) OVER () AS corrections
            FROM events AS later
            WHERE one.kind <> :rating AND later.session_id = one.session_id
                AND later.round = one.round AND later.kind = :amendment
                AND later.sequence <= :until
            UNION ALL
            SELECT sequence, loss, detail, at, count(*) OVER () AS corrections
            FROM events AS later
            WHERE one.kind = :rating AND later.session_id = one.session_id
                AND later.round = one.round AND later.kind = :rating
                AND later.sequence > one.sequence AND later.sequence <= :until
                AND later.detail->>'rater' = one.detail->>'rater'
                AND later.detail->>'turn' IS NOT DISTINCT FROM one.detail->>'turn'
            ORDER BY sequence DESC LIMIT 1
        ) AS fixed ON true
        LEFT JOIN keys ON keys.key_id = one.detail->>'key' AND keys.project_id = one.project_id
        LEFT JOIN LATERAL (
            SELECT string_agg(comment, E'\n' ORDER BY at) AS comment FROM comments
            WHERE comments.session_id = one.session_id AND comments.round = one.round
                AND comments.rater = coalesce(one.detail->>'rater', '')
        ) AS said ON true
        WHERE one.session_id = :session_id AND one.sequence > :after AND one.sequence <= :last
            AND one.kind IN (:observation, :unjudgeable, :rating)
            AND (one.kind <> :rating OR NOT EXISTS (
                SELECT FROM events AS earlier
                WHERE earlier.session_id = one.session_id AND earlier.round = one.round
                    AND earlier.kind = :rating AND earlier.sequence < one.sequence
                    AND earlier.detail->>'rater' = one.detail->>'rater'
                    AND earlier.detail->>'turn' IS NOT DISTINCT FROM one.detail->>'turn'))
    )
    SELECT judged.*,
        (SELECT id FROM items WHERE pool_id = :pool_id AND index = judged.item) AS id
    FROM judged
    """
# One part for each index on the rounds of some kinds
_EVENTS = with_kinds(
    """
    WITH own AS (
        SELECT * FROM events WHERE session_id = :session_id AND round = :round AND kind = :draw
        UNION ALL
        SELECT * FROM events WHERE session_id = :session_id AND round = :round
            AND kind IN (:observation, :unjudgeable)
        UNION ALL
        SELECT * FROM events WHERE session_id = :session_id AND round = :round AND kind = :rating
        UNION ALL
        SELECT * FROM events
        WHERE session_id = :session_id AND round = :round AND kind = :amendment
    )
    SELECT sequence, kind, item, q, loss, losses, detail, at, keys.name AS person
    FROM own LEFT JOIN keys
        ON keys.key_id = own.detail->>'key' AND keys.project_id = own.project_id
    ORDER BY sequence
    """
)
_COMMENTS = text(
    """
    SELECT comment, keys.name AS person, worker, nullif(rater, '') AS rater, at
    FROM comments LEFT JOIN keys
        ON keys.key_id = comments.key_id AND keys.project_id = comments.project_id
    WHERE session_id = :session_id AND round = :round ORDER BY at
    """
)

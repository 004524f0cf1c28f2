"""The judged session that a pool of a new version is based on: checked, kept, and read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import orjson
from anyio import to_thread
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.plans.plan import Plan
from celeus.core.pools.loss_bounds import Basis, LabelsSeen, foreign
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import Pool
from celeus.core.pools.rows.earlier import Earlier, EarlierRound, OldItem, loss_of, version_of
from celeus.core.pools.rows.validation import is_text
from celeus.core.pools.systems import SIDES, Lineup, OneLoss, Side, Systems
from celeus.errors import InvalidValue, SessionNotClosed, SessionNotFound
from celeus.operations.pools.record import PoolRecord, read_chunks
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.memory_limits import nbytes
from celeus.operations.sessions.ledger import with_kinds
from celeus.store.tables import pools

BYTES_OF_A_ROUND = 256
"""Bytes a judged round takes in memory, beside the arrays."""


@dataclass(frozen=True, slots=True)
class BasedOn:
    """The request to base a pool on a session; ``answer`` as in ``Basis``.

    ``system`` is the name of the earlier version where the session compared two.
    """

    session_id: UUID
    labels_seen: LabelsSeen
    answer: str | None = None
    system: str | None = None


@dataclass(frozen=True, slots=True)
class LastJudgement:
    """The last judgement of a round, as the ledger has it; of two systems, who was ``left``."""

    round: int
    item: int
    loss: float
    detail: Mapping[str, Any]
    left: str | None


async def basis_of(
    db: AsyncConnection,
    project_id: UUID,
    wanted: BasedOn,
    scale: LossScale,
    systems: Systems | None,
) -> Basis:
    """Return the basis of a new pool; refuses a session with nothing to carry over to it."""
    name = f"ses_{wanted.session_id.hex}"
    # The lock lets nobody delete the session before the pool is there
    params = {"project_id": project_id, "session_id": wanted.session_id}
    await db.execute(_LOCK, params)
    session = await _session(db, project_id, wanted.session_id)
    if session is None:
        raise SessionNotFound(
            "There is no session of this id.",
            field="based_on.session",
            rule="the id of a session",
            value=name,
        )
    if session.lifecycle != "closed":
        raise SessionNotClosed(
            "The session is not closed: its judgements may still change. Close it first (PATCH"
            ' with `{"state": "closed"}`).',
            field="based_on.session",
            rule="a closed session",
            value=name,
        )
    if session.origin is not None:
        raise InvalidValue(
            "The session was pushed: its losses are the word of whoever pushed it, and no"
            " session of this service goes on from them.",
            field="based_on.session",
            rule="a session that ran on this service",
            value=name,
        )
    if session.plan.get("target") == "runs":
        raise InvalidValue(
            "The session is about all runs of a system: what one of them came to is chance, and is"
            " not known of another.",
            field="based_on.session",
            rule="a session about the pool or its population",
            value=name,
        )
    old = await pool_record(db, session.pool_id)
    side = _side_of(old, wanted.system)
    _check_loss(old.systems.loss if old.systems else old.scale, systems.loss if systems else scale)
    _check_seen(old, wanted.labels_seen, systems)
    classes = {"prediction", "target_probs", "prediction_a"} & {*old.columns}
    if wanted.answer is None and not classes and (side is None or systems is None):
        raise InvalidValue(
            "The items of the session's pool carry neither a prediction nor probabilities: whether"
            " an answer is unchanged can only be seen in their payload.",
            field="based_on.answer",
            rule="the name of the payload's member that holds what a version answered",
            value=None,
        )
    if (await db.execute(_ANY, {"session_id": wanted.session_id})).first() is None:
        raise InvalidValue(
            "Nothing was judged in the session.",
            field="based_on.session",
            rule="a session with at least one judged item",
            value=name,
        )
    return Basis(
        session=name,
        pool=str(old.digest),
        ledger=bytes(session.ledger_head).hex(),
        certificate=_hex(session.certificate),
        labels_seen=wanted.labels_seen,
        answer=wanted.answer,
        system=side,
    )


async def basis_now(db: AsyncConnection, record: PoolRecord) -> Basis:
    """Return the pool's basis as of now: its certificate may have been issued since."""
    basis, session = await _based_on(db, record)
    old = await pool_record(db, session.pool_id)
    certificate = None if basis.certificate is None else _hex(session.certificate)
    ledger = bytes(session.ledger_head).hex()
    return replace(basis, pool=str(old.digest), ledger=ledger, certificate=certificate)


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else bytes(digest).hex()


def _side_of(old: PoolRecord, system: str | None) -> Side | None:
    """Return which of a session's two systems is the earlier version; None if it has no systems."""
    if isinstance(old.named, Lineup):
        raise InvalidValue(
            "The session sought the best of several systems, and leaves nothing to one version.",
            field="based_on.session",
            rule="a session on one system, or on two with names",
            value=old.name,
        )
    if old.systems is None:
        if old.scale.kind == "difference":
            raise InvalidValue(
                "The session judged differences and no losses of one version.",
                field="based_on.session",
                rule="a session on a pool of one system, or of two with names",
                value=old.name,
            )
        if system is not None:
            raise InvalidValue(
                "The session was on one system.",
                field="based_on.system",
                rule="left out",
                value=system,
            )
        return None
    names = old.systems.names
    found = [side for side in SIDES if names[side] == system]
    if not found or old.systems.loss.kind == "preference":
        preferred = old.systems.loss.kind == "preference"
        raise InvalidValue(
            "The session judged preferences and no losses of one version."
            if preferred
            else "The session compared two systems, one of which is the earlier version.",
            field="based_on.session" if preferred else "based_on.system",
            rule="another session" if preferred else f"{names['a']} or {names['b']}",
            value=system,
        )
    return found[0]


def _check_loss(old: LossScale | OneLoss, new: LossScale | OneLoss) -> None:
    """The loss of a version, of each of two systems too, is that of the session's pool."""
    if new.kind != "preference" and (new.kind, new.lower, new.upper) != (
        old.kind,
        old.lower,
        old.upper,
    ):
        raise InvalidValue(
            "The session judged another loss.",
            field="loss",
            rule=f"{old.kind} from {old.lower:g} to {old.upper:g}, as in the session's pool",
            value=f"{new.kind} from {new.lower:g} to {new.upper:g}",
        )


def _check_seen(old: PoolRecord, seen: LabelsSeen, systems: Systems | None) -> None:
    """Refuse `no` where makers of the old version, which is compared too, may have seen labels."""
    if systems is None or old.based_on is None:
        return
    if seen == "no" != old.based_on.labels_seen:
        raise InvalidValue(
            "The new version is compared with one whose makers saw labels of this pool, or may have"
            f" seen them: with the session's pool it was said {old.based_on.labels_seen}.",
            field="based_on.labels_seen",
            rule="yes or unknown",
            value=seen,
        )


async def kept_earlier(context: Context, db: AsyncConnection, record: PoolRecord) -> Earlier:
    """Return ``earlier_of``, made once: the session is closed, and nothing of it changes."""
    key = record.project_id, record.based_on, record.systems
    earlier = context.earlier.known(key, "")
    if earlier is None:
        earlier = await earlier_of(db, record)
        size = nbytes(earlier) + BYTES_OF_A_ROUND * len(earlier.judged)
        context.earlier.keep(key, "", earlier, size)
    return earlier


async def earlier_of(db: AsyncConnection, record: PoolRecord) -> Earlier:
    """Return what is carried over from the session that the pool is based on."""
    basis, session = await _based_on(db, record)
    old = await pool_record(db, session.pool_id)
    pool = old.pool(await read_chunks(db, old.pool_id, old.items))
    rows = (await db.execute(_SAID, {"session_id": session.session_id})).scalar_one()
    left = Earlier(basis, pool, [], record.systems, believed=not Plan.from_dict(session.plan).audit)
    return await to_thread.run_sync(_with_judged, left, rows)


def _with_judged(earlier: Earlier, rows: str) -> Earlier:
    """Add the judged rounds at the ledger's end, without those that nobody could judge."""
    basis, pool = earlier.basis, earlier.pool
    judgements = [LastJudgement(*row) for row in orjson.loads(rows)]
    side = next((side for side in SIDES if side == basis.system), None)
    if side is not None:
        pool = version_of(pool, side)
        judgements = [
            judgement for row in judgements if (judgement := _of_side(row, side, pool)) is not None
        ]
    judged = [
        EarlierRound(judgement.round, judgement.item, judgement.loss, judgement.detail.get("label"))
        for judgement in judgements
    ]
    return replace(earlier, pool=pool, judged=judged)


async def old_items(
    db: AsyncConnection, earlier: Earlier, rows: Sequence[object]
) -> Mapping[str, OldItem]:
    """Return the items of the session's pool that have the ids of these rows."""
    ids = [row["id"] for row in rows if isinstance(row, dict) and is_text(row.get("id"))]
    session_id = UUID(earlier.basis.session.removeprefix("ses_"))
    found = await db.execute(_OLD, {"session_id": session_id, "ids": ids})
    return {
        name: OldItem.of(index, None if payload is None else orjson.loads(payload), earlier.basis)
        for name, index, payload in found
    }


def _of_side(judgement: LastJudgement, side: Side, pool: Pool) -> LastJudgement | None:
    """Return the judgement of one of two systems, None if it says nothing of its loss."""
    prediction = (
        int(pool.columns["prediction"][judgement.item]) if "prediction" in pool.columns else -1
    )
    loss = loss_of(judgement.detail, side, judgement.left, prediction)
    return None if loss is None else replace(judgement, loss=loss)


def check_carried(pool: Pool) -> None:
    """Refuse a pool to which its session leaves nothing, or which claims what another left."""
    other = foreign(pool.reasons, pool.based_on)
    if other is not None:
        raise InvalidValue(
            "A loss is said to be known from a session that the pool is not based on.",
            field="known.reason",
            rule="another reason, or a pool with `based_on`",
            value=other,
        )
    if pool.based_on is None:
        return
    known = pool.based_on.reasons & set(pool.reasons)
    if not known and not pool.columns["round"].any() and "same" not in pool.columns:
        raise InvalidValue(
            f"No item that {pool.based_on.session} judged is in this pool with the question it had"
            " there.",
            field="based_on.session",
            rule="a session on items with these ids and payloads",
            value=pool.based_on.session,
        )


async def _based_on(db: AsyncConnection, record: PoolRecord) -> tuple[Basis, Row[Any]]:
    """Return the pool's basis, and the row of that session."""
    if record.based_on is None:
        message = f"pool {record.pool_id} is based on nothing"
        raise ValueError(message)
    session_id = UUID(record.based_on.session.removeprefix("ses_"))
    session = await _session(db, record.project_id, session_id)
    if session is None:
        message = f"{record.based_on.session} is gone"
        raise ValueError(message)
    return record.based_on, session


async def _session(db: AsyncConnection, project_id: UUID, session_id: UUID) -> Row[Any] | None:
    params = {"project_id": project_id, "session_id": session_id}
    return (await db.execute(_SESSION, params)).one_or_none()


async def pool_record(db: AsyncConnection, pool_id: UUID) -> PoolRecord:
    """A pool that is there, of whatever project."""
    return PoolRecord.of((await db.execute(select(pools).where(pools.c.pool_id == pool_id))).one())


_SESSION = text(
    """
    SELECT session_id, pool_id, plan, lifecycle, ledger_head, origin,
           (SELECT digest FROM certificates
            WHERE certificates.session_id = sessions.session_id AND final) AS certificate
    FROM sessions WHERE session_id = :session_id AND project_id = :project_id
    """
)
_LOCK = text(
    """
    SELECT FROM sessions WHERE session_id = :session_id AND project_id = :project_id FOR KEY SHARE
    """
)
# The last judgement of a round counts; an amendment without a loss leaves none. All as one text, to
# be read in a thread: there may be a hundred thousand.
_SAID = with_kinds(
    """
    WITH said AS (
        SELECT DISTINCT ON (round) round, loss, detail FROM events
        WHERE session_id = :session_id AND kind IN (:observation, :unjudgeable, :amendment)
        ORDER BY round, sequence DESC
    )
    SELECT coalesce(json_agg(json_build_array(
        said.round, draw.item, said.loss, coalesce(said.detail, '{}'), draw.detail ->> 'left'
    ) ORDER BY said.round), '[]')::text
    FROM said JOIN events draw
        ON draw.session_id = :session_id AND draw.kind = :draw AND draw.round = said.round
    WHERE said.loss IS NOT NULL
    """
)
# One is enough: nothing was said after it of its round.
_ANY = with_kinds(
    """
    SELECT 1 FROM events one
    WHERE session_id = :session_id AND kind IN (:observation, :amendment) AND loss IS NOT NULL
      AND NOT EXISTS (
          SELECT FROM events later
          WHERE later.session_id = :session_id AND later.kind = :amendment
            AND later.round = one.round AND later.sequence > one.sequence)
    LIMIT 1
    """
)
_OLD = text(
    """
    SELECT id, index, payload::text AS payload FROM items
    WHERE pool_id = (SELECT pool_id FROM sessions WHERE session_id = :session_id)
      AND id = ANY(CAST(:ids AS text[]))
    """
)

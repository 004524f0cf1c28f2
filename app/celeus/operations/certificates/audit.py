"""Audit a database: recompute ledgers, states, trajectories, certificates and digests of items.

For use after restoring a backup or moving a database. Pools and sessions are read one by one,
each at one moment, and folded anew; nothing is locked and nothing is changed. What pools have from
an earlier session is compared with its ledger. What deleted sessions left is that of deleted ones.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
import orjson
from sqlalchemy import RowMapping, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.canonical import canonical_json
from celeus.core.certificate.chain import chain_head, chain_start, record_of
from celeus.core.certificate.document import digest_of
from celeus.core.certificate.report import compared
from celeus.core.ledger import Draw
from celeus.core.pools.item import Item
from celeus.core.pools.loss_bounds import Basis
from celeus.core.pools.pool import CHAIN_START, Pool, chain
from celeus.core.pools.rows.earlier import OldItem
from celeus.core.randomness import commitment
from celeus.core.session.correction import Checkpoints, catch_up
from celeus.core.session.session import AnySession, begin_session, plan_from_values
from celeus.errors import Refusal
from celeus.operations.deletion.tombstones import TABLES
from celeus.operations.pools.earlier import basis_now, earlier_of, pool_record
from celeus.operations.pools.pools import load_pool, read_items
from celeus.operations.pools.record import PoolRecord, read_chunks
from celeus.operations.runtime.context import one_snapshot
from celeus.operations.runtime.session_record import SessionRecord, status_document
from celeus.operations.sessions.event_rows import KINDS, event_from, moment
from celeus.operations.sessions.ledger import RECORD
from celeus.store.database import Database

CLOSE = 1e-9
"""Tolerance: logarithms and exponentials differ between processors."""
ITEMS_AT_ONCE = 10_000
"""Items read at a time, fewer where their payloads are long."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A stored value of a session or pool that does not follow from what else is stored of it.

    ``name`` is the id on the wire, `ses_…` or `pool_…`.
    """

    name: str
    where: str
    actual: object
    expected: object

    @property
    def line(self) -> str:
        """The finding in one line."""
        return f"{self.name}: {self.where} {compared(self.actual, self.expected)}"


@dataclass(slots=True)
class Audit:
    """Counts and findings of an audit."""

    sessions: int = 0
    deleted: int = 0
    events: int = 0
    certificates: int = 0
    pools: int = 0
    items: int = 0
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Record:
    """Everything the database stores about a session."""

    row: RowMapping
    events: list[RowMapping]
    trajectory: list[RowMapping]
    certificates: list[RowMapping]
    pool: Pool


class _Differs(Exception):
    def __init__(self, where: str, actual: object, expected: object) -> None:
        super().__init__(where)
        self.where, self.actual, self.expected = where, actual, expected


async def audit(database: Database) -> Audit:
    """Audit every session and pool of every project; reports the first finding of each."""
    result = Audit()
    await _audit_sessions(database, result)
    await _audit_pools(database, result)
    await _audit_deleted(database, result)
    return result


async def _audit_sessions(database: Database, result: Audit) -> None:
    async for session_id, record in _sessions(database):
        name = f"ses_{session_id.hex}"
        result.sessions += 1
        if isinstance(record, Refusal):
            result.findings.append(Finding(name, "pool", record.detail, "a pool that is whole"))
            continue
        result.events += len(record.events)
        result.certificates += len(record.certificates)
        try:
            await asyncio.to_thread(_check, record)
        except _Differs as error:
            result.findings.append(Finding(name, error.where, error.actual, error.expected))
        except (Refusal, ArithmeticError, ValueError, LookupError, TypeError) as error:
            # What was put there from outside can break the fold in any way.
            result.findings.append(Finding(name, "ledger", repr(error), "one that can be folded"))


async def _audit_deleted(database: Database, result: Audit) -> None:
    """No session is there and deleted, and no row is left of one that is neither."""
    async with database.transaction() as db:
        await one_snapshot(db)
        result.deleted = (await db.execute(_DELETED)).scalar_one()
        for session_id in await db.scalars(_RISEN):
            rule = "one that is deleted"
            result.findings.append(Finding(f"ses_{session_id.hex}", "session", "there", rule))
        for table, query in _LEFT.items():
            for session_id in await db.scalars(query):
                rule = "rows of a session that is there"
                result.findings.append(Finding(f"ses_{session_id.hex}", table, "left", rule))


async def _audit_pools(database: Database, result: Audit) -> None:
    async with database.transaction() as db:
        pool_ids = list(await db.scalars(_POOLS))
    for pool_id in pool_ids:
        try:
            async with database.transaction() as db:
                await one_snapshot(db)
                if (await db.execute(_THERE, {"pool_id": pool_id})).one_or_none() is None:
                    # Deleted since
                    continue
                result.pools += 1
                result.items += await _check_items(db, pool_id)
                await _check_columns(db, pool_id)
        except _Differs as error:
            name = f"pool_{pool_id.hex}"
            result.findings.append(Finding(name, error.where, error.actual, error.expected))
        except (Refusal, ArithmeticError, ValueError, LookupError, TypeError) as error:
            # What was put there from outside can be anything.
            name, rule = f"pool_{pool_id.hex}", "what its session leaves"
            result.findings.append(Finding(name, "based_on", repr(error), rule))


async def _check_items(db: AsyncConnection, pool_id: UUID) -> int:
    """The number of items of the pool, which lead to its items digest."""
    expected = (await db.execute(_POOL, {"pool_id": pool_id})).one()
    _same("items", expected.stored, expected.items)
    digest, last = CHAIN_START, -1
    while page := await read_items(db, pool_id, ITEMS_AT_ONCE, last):
        last = page[-1].index
        try:
            digest = await asyncio.to_thread(_chained, digest, page)
        except (ValueError, RecursionError) as error:
            # What was put there from outside may be more than a digest can be taken over.
            raise _Differs("items", repr(error), "ones with a digest") from error
    _same("items", last + 1, expected.items)
    _same("items_digest", bytes(expected.items_digest).hex(), digest.hex())
    return last + 1


async def _check_columns(db: AsyncConnection, pool_id: UUID) -> None:
    """The digest that a sealed pool has got, and what it has from an earlier session."""
    record = await pool_record(db, pool_id)
    if not record.items:
        return
    try:
        pool = record.pool(await read_chunks(db, pool_id, record.items))
        digest = await asyncio.to_thread(lambda: pool.digest)
    except (Refusal, ArithmeticError, ValueError, LookupError, TypeError) as error:
        raise _Differs("columns", repr(error), "ones that can be read") from error
    if record.based_on is not None:
        await _check_carried(db, record, record.based_on, pool)
    if record.sealed:
        _same("digest", record.digest, digest)


async def _check_carried(
    db: AsyncConnection, record: PoolRecord, based_on: Basis, pool: Pool
) -> None:
    """Check that what a pool has from an earlier session agrees with that session's ledger."""
    earlier = await earlier_of(db, record)
    basis = await basis_now(db, record)
    for name, value in based_on.to_dict().items():
        _same(f"based_on.{name}", value, getattr(basis, name))
    reasons = np.array(["", *pool.reasons])
    nothing = np.zeros(pool.items, dtype=np.int32)
    reason = reasons[pool.columns.get("known", nothing)]
    rounds, labels = pool.columns["round"], pool.columns["label"]
    carried = (rounds != 0) | (labels != -1) | np.isin(reason, list(basis.reasons))
    params = {"pool_id": record.pool_id, "session_id": UUID(basis.session.removeprefix("ses_"))}
    indices = np.flatnonzero(carried).tolist()
    for first in range(0, len(indices), ITEMS_AT_ONCE):
        page = {"indices": indices[first : first + ITEMS_AT_ONCE]}
        for index, payload, old, was in await db.execute(_CARRIED, params | page):
            where = f"item {index}, "
            _same(f"{where}the session's item", old is None, expected=False)
            losses = {basis.unchanged: earlier.loss, basis.known_before: earlier.known}
            item, answer = OldItem.of(old, orjson.loads(was), basis), reason[index] in losses
            same = earlier.carries(orjson.loads(payload), item, answer=answer)
            _same(f"{where}payload", same, expected=True)
            round_ = int(earlier.round[old]) if rounds[index] else 0
            _same(f"{where}round", int(rounds[index]), round_)
            if labels[index] != -1:
                _same(f"{where}label", int(labels[index]), int(earlier.label[old]))
            if reason[index] in losses:
                loss = float(losses[reason[index]][old])
                _same(f"{where}known loss", float(pool.columns["loss_lower"][index]), loss)
            if reason[index] == basis.true_label:
                loss = pool.loss_of_label(index, int(labels[index]))
                _same(f"{where}known loss", float(pool.columns["loss_lower"][index]), loss)


def _chained(digest: bytes, items: list[Item]) -> bytes:
    """The items digest after these items, from the one before them."""
    records = (canonical_json([item.id, orjson.loads(item.payload or "null")]) for item in items)
    return chain(digest, records)


async def _sessions(database: Database) -> AsyncIterator[tuple[UUID, "_Record | Refusal"]]:
    """Sessions in the order of their pools, so that each pool is loaded once."""
    async with database.transaction() as db:
        names = [(row.pool_id, row.session_id) for row in await db.execute(_NAMES)]
    pool: tuple[UUID, Pool] | None = None
    for pool_id, session_id in names:
        async with database.transaction() as db:
            await one_snapshot(db)
            found = await db.execute(_SESSION, {"session_id": session_id})
            row = found.mappings().one_or_none()
            if row is None:
                # Deleted since
                continue
            try:
                if pool is None or pool[0] != pool_id:
                    pool = pool_id, await load_pool(db, row["project_id"], pool_id)
            except (Refusal, ValueError) as error:
                refusal = error if isinstance(error, Refusal) else Refusal(str(error))
                yield session_id, refusal
                continue
            params = {"session_id": session_id, "revision": row["revision"]}
            record = _Record(
                row=row,
                events=await _rows(db, _EVENTS, params),
                trajectory=await _rows(db, _TRAJECTORY, params),
                certificates=await _rows(db, _FINAL, params),
                pool=pool[1],
            )
        yield session_id, record


async def _rows(
    db: AsyncConnection, query: TextClause, params: Mapping[str, Any]
) -> list[RowMapping]:
    return list((await db.execute(query, params)).mappings())


def _check(record: _Record) -> None:
    row = record.row
    plan = plan_from_values(row["plan"])
    _same("plan_digest", bytes(row["plan_digest"]).hex(), plan.digest)
    _same("pool", plan.pool_digest, record.pool.digest)
    seed = bytes(row["seed"])
    for promised in (plan.commitment, bytes(row["commitment"]).hex()):
        _same("commitment", promised, commitment(seed))
    _same("events", [event["sequence"] for event in record.events], range(1, row["sequence"] + 1))
    _chain(record, plan.digest)
    state = begin_session(plan, record.pool, seed)
    catch_up(state, [event_from(event) for event in record.events], Checkpoints())
    _sides(record, state)
    _status(record, state)
    _trajectory(record, state)
    for certificate in record.certificates:
        _same(
            "certificate", bytes(certificate["digest"]).hex(), digest_of(bytes(certificate["body"]))
        )


def _chain(record: _Record, plan_digest: str) -> None:
    start = chain_start(record.row["session_id"].bytes, bytes.fromhex(plan_digest))
    records = (
        record_of(event["sequence"], event_from(event), event["detail"], moment(event["at"]))
        for event in record.events
    )
    _same("ledger_head", bytes(record.row["ledger_head"]).hex(), chain_head(start, records).hex())


def _sides(record: _Record, state: AnySession) -> None:
    """Check that the order in which a judge saw several answers follows from the seed."""
    for event in record.events:
        if event["kind"] == KINDS[Draw]:
            detail = event["detail"] or {}
            for name, due in state.question.arrangement(event["round"], event["item"]).items():
                _same(f"the {name} of round {event['round']}", detail.get(name), due)


def _status(record: _Record, state: AnySession) -> None:
    """Compare the status document with a recomputed one, for the members stored then."""
    row, document = record.row, record.row["status"]
    expected = orjson.loads(
        orjson.dumps(status_document(SessionRecord.of(row), state, record.pool))
    )
    for name, value in document.items():
        # Wording and forecast are a version's own, and claim nothing
        if name not in {"sentence", "words", "forecast"}:
            _same(f"status.{name}", value, expected.get(name))
    for name in ("sequence", "state"):
        _same(name, row[name], document[name])
    _same("drawn", row["drawn"], state.drawn)


def _trajectory(record: _Record, state: AnySession) -> None:
    _same("trajectory", len(record.trajectory), len(state.question.points))
    for row, point in zip(record.trajectory, state.question.points, strict=True):
        expected = (point.round, point.estimate, point.interval.lower, point.interval.upper)
        _same(f"trajectory, round {point.round}", list(row.values()), list(expected))


def _same(where: str, actual: object, expected: object) -> None:
    if not _equal(actual, expected):
        raise _Differs(where, actual, expected)


def _equal(left: object, right: object) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list | range):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=CLOSE, abs_tol=CLOSE)
    return left == right


_POOLS = text("SELECT pool_id FROM pools ORDER BY pool_id")
_THERE = text("SELECT true FROM pools WHERE pool_id = :pool_id")
_POOL = text(
    """
    SELECT items, items_digest,
           (SELECT count(*) FROM items WHERE items.pool_id = :pool_id) AS stored
    FROM pools WHERE pool_id = :pool_id
    """
)
_CARRIED = text(
    """
    SELECT own.index, coalesce(own.payload, 'null')::text,
           old.index, coalesce(old.payload, 'null')::text
    FROM items own LEFT JOIN items old ON old.id = own.id
        AND old.pool_id = (SELECT pool_id FROM sessions WHERE session_id = :session_id)
    WHERE own.pool_id = :pool_id AND own.index = ANY(CAST(:indices AS integer[]))
    ORDER BY own.index
    """
)
_DELETED = text("SELECT count(*) FROM tombstones")
_RISEN = text("SELECT session_id FROM sessions JOIN tombstones USING (session_id) ORDER BY 1")
# What was deleted may still have rows until they are all gone; certificates are there for good.
# From one session to the next by the key: there are millions of rows.
_LEFT = {
    table: text(
        f"""
        WITH RECURSIVE one AS (
            (SELECT session_id FROM {table} ORDER BY session_id LIMIT 1)
            UNION ALL
            SELECT (SELECT t.session_id FROM {table} t WHERE t.session_id > one.session_id
                    ORDER BY t.session_id LIMIT 1)
            FROM one WHERE one.session_id IS NOT NULL
        )
        SELECT session_id FROM one
        WHERE session_id IS NOT NULL
          AND NOT EXISTS (SELECT FROM sessions s WHERE s.session_id = one.session_id)
          AND NOT EXISTS (SELECT FROM tombstones d
                          WHERE d.session_id = one.session_id AND {buried})
        """  # noqa: S608 -- our words
    )
    for table, buried in [*dict.fromkeys(TABLES, "d.remains").items(), ("certificates", "true")]
}
_NAMES = text("SELECT pool_id, session_id FROM sessions ORDER BY pool_id, session_id")
_SESSION = text(
    f"""
    SELECT plan, plan_digest, seed, commitment, state, sequence, drawn, status, {RECORD}
    FROM sessions WHERE session_id = :session_id
    """  # noqa: S608 -- our own words
)
_EVENTS = text(
    """
    SELECT kind, sequence, round, item, q, strata_q, seen, loss, losses, detail, at
    FROM events WHERE session_id = :session_id ORDER BY sequence
    """
)
_TRAJECTORY = text(
    """
    SELECT round, estimate, lower, upper FROM trajectory
    WHERE session_id = :session_id ORDER BY round
    """
)
_FINAL = text(
    """
    SELECT digest, body FROM certificates
    WHERE session_id = :session_id AND body IS NOT NULL
    """
)

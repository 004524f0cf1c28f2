"""Whether a database still says what was written: every ledger, its chain, and what follows.

For whoever restores a backup, moves a database, or wonders. Pools and sessions are read one by one,
each at one moment, and folded anew; nothing is locked and nothing is changed.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import RowMapping, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.certificate import digest_of
from app.core.chain import chain_head, chain_start, record_of
from app.core.plan import plan_from
from app.core.pool import Pool
from app.core.randomness import commitment
from app.core.session import State, begin, replay
from app.core.surrogates import scores
from app.errors import Refusal
from app.operations.history import one_snapshot
from app.operations.ledger import event_from, moment
from app.operations.pools import load_pool
from app.operations.status import Known, status_document
from app.store.database import Database

CLOSE = 1e-9
"""Logarithms and exponentials are not the same on all processors."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something kept in a session that does not follow from its plan, pool and ledger."""

    session_id: UUID
    where: str
    kept: object
    found: object

    @property
    def line(self) -> str:
        """The finding in one line."""
        return f"ses_{self.session_id.hex}: {self.where} is {self.kept!r}, should be {self.found!r}"


@dataclass(slots=True)
class Audit:
    """What was looked at, and what does not hold; ``unchained`` sessions are older than chains."""

    sessions: int = 0
    events: int = 0
    unchained: int = 0
    certificates: int = 0
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Everything the database keeps of a session."""

    row: RowMapping
    events: list[RowMapping]
    trajectory: list[RowMapping]
    certificates: list[RowMapping]
    pool: Pool


class _Differs(Exception):
    def __init__(self, where: str, kept: object, found: object) -> None:
        super().__init__(where)
        self.where, self.kept, self.found = where, kept, found


async def audit(database: Database) -> Audit:
    """Look at every session of every project; of each the first thing that does not hold."""
    done = Audit()
    async for session_id, kept in _sessions(database):
        done.sessions += 1
        if isinstance(kept, Refusal):
            done.findings.append(Finding(session_id, "pool", kept.detail, "a pool that is whole"))
            continue
        done.events += len(kept.events)
        done.unchained += kept.row["ledger_head"] is None
        done.certificates += len(kept.certificates)
        try:
            await asyncio.to_thread(_check, kept)
        except _Differs as found:
            finding = Finding(session_id, found.where, found.kept, found.found)
            done.findings.append(finding)
        except (ArithmeticError, ValueError, KeyError, TypeError) as error:
            # What was put there from outside can break the fold in any way.
            done.findings.append(
                Finding(session_id, "ledger", repr(error), "one that can be folded")
            )
    return done


async def _sessions(database: Database) -> AsyncIterator[tuple[UUID, "_Kept | Refusal"]]:
    """Session by session in the order of their pools, each of which is loaded once."""
    async with database.transaction() as db:
        names = [(row.pool_id, row.session_id) for row in await db.execute(_NAMES)]
    pool: tuple[UUID, Pool] | None = None
    for pool_id, session_id in names:
        async with database.transaction() as db:
            await one_snapshot(db)
            row = (await db.execute(_SESSION, {"session_id": session_id})).mappings().one()
            try:
                if pool is None or pool[0] != pool_id:
                    pool = pool_id, await load_pool(db, row["project_id"], pool_id)
            except (Refusal, ValueError) as error:
                refusal = error if isinstance(error, Refusal) else Refusal(str(error))
                yield session_id, refusal
                continue
            asked = {"session_id": session_id, "revision": row["revision"]}
            kept = _Kept(
                row=row,
                events=await _rows(db, _EVENTS, asked),
                trajectory=await _rows(db, _TRAJECTORY, asked),
                certificates=await _rows(db, _FINAL, asked),
                pool=pool[1],
            )
        yield session_id, kept


async def _rows(
    db: AsyncConnection, query: TextClause, asked: Mapping[str, Any]
) -> list[RowMapping]:
    return list((await db.execute(query, asked)).mappings())


def _check(kept: _Kept) -> None:
    row = kept.row
    plan = plan_from(row["plan"])
    _same("plan_digest", bytes(row["plan_digest"]).hex(), plan.digest)
    _same("pool", plan.pool_digest, kept.pool.digest)
    seed = bytes(row["seed"])
    for promised in (plan.commitment, bytes(row["commitment"]).hex()):
        _same("commitment", promised, commitment(seed))
    _same("events", [one["sequence"] for one in kept.events], range(1, row["sequence"] + 1))
    _chain(kept, plan.digest)
    state = begin(plan, scores(kept.pool, plan.strategy), seed)
    state = replay(plan, state, map(event_from, kept.events))
    _status(kept, state)
    _trajectory(kept, state)
    for issued in kept.certificates:
        _same("certificate", bytes(issued["digest"]).hex(), digest_of(bytes(issued["body"])))


def _chain(kept: _Kept, plan_digest: str) -> None:
    head = kept.row["ledger_head"]
    if head is None:
        return
    start = chain_start(kept.row["session_id"].bytes, bytes.fromhex(plan_digest))
    records = (
        record_of(one["sequence"], event_from(one), one["detail"], moment(one["at"]))
        for one in kept.events
    )
    _same("ledger_head", bytes(head).hex(), chain_head(start, records).hex())


def _status(kept: _Kept, state: State) -> None:
    """The document as it would be written now, as far as it was written then."""
    row, document = kept.row, kept.row["status"]
    known = Known(
        **{name: row[name] for name in Known.__dataclass_fields__ if name != "ledger_head"},
        ledger_head=None if row["ledger_head"] is None else bytes(row["ledger_head"]),
    )
    found = orjson.loads(orjson.dumps(status_document(known, plan_from(row["plan"]), state)))
    for name, value in document.items():
        _same(f"status.{name}", value, found.get(name))
    for name in ("sequence", "state"):
        _same(name, row[name], document[name])
    _same("drawn", row["drawn"], state.drawn)


def _trajectory(kept: _Kept, state: State) -> None:
    _same("trajectory", len(kept.trajectory), len(state.points))
    for row, point in zip(kept.trajectory, state.points, strict=True):
        found = (point.round, point.estimate, point.interval.lower, point.interval.upper)
        _same(f"trajectory, round {point.round}", list(row.values()), list(found))


def _same(where: str, kept: object, found: object) -> None:
    if not _equal(kept, found):
        raise _Differs(where, kept, found)


def _equal(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list | range):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
    return one == other


_NAMES = text("SELECT pool_id, session_id FROM sessions ORDER BY pool_id, session_id")
_SESSION = text(
    """
    SELECT session_id, project_id, pool_id, plan, plan_digest, seed, commitment, lifecycle, state,
           sequence, revision, drawn, lease_seconds, forecast, created_at, ledger_head, name, status
    FROM sessions WHERE session_id = :session_id
    """
)
_EVENTS = text(
    """
    SELECT kind, sequence, round, item, q, strata_q, seen, loss, detail, at
    FROM events WHERE session_id = :session_id ORDER BY sequence
    """
)
_TRAJECTORY = text(
    """
    SELECT round, estimate, lower, upper FROM trajectory
    WHERE session_id = :session_id AND revision = :revision ORDER BY round
    """
)
_FINAL = text(
    """
    SELECT digest, body FROM certificates
    WHERE session_id = :session_id AND body IS NOT NULL
    """
)

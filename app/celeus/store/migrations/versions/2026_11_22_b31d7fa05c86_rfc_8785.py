"""Digests over RFC 8785, where they were taken over a canonical JSON of our own.

The two differ in numbers with an exponent and in names beyond the BMP: most pools and sessions
keep the digests they have. Those that do not get new ones, from the items on to the head of the
ledger. Whole numbers in payloads that the standard has no spelling for become text, digit by digit.

Revision: b31d7fa05c86
Follows: 2f8e5ac06d91
Written: 2026-11-22 04:00:12.351804
"""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC
from typing import Any

import rfc8785
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from celeus.store.migrations import refuse_to_lose

revision = "b31d7fa05c86"
down_revision = "2f8e5ac06d91"
branch_labels = None
depends_on = None

EXACT = 2**53
ITEMS_AT_ONCE = 10_000
KINDS = {1: "draw", 2: "observation", 3: "unjudgeable", 4: "amendment", 5: "change"}


def upgrade() -> None:
    # A statement that waits for a table makes everyone behind it wait too: give up early, try again
    op.execute("SET LOCAL lock_timeout = '4s'")
    op.execute("SET LOCAL statement_timeout = '30min'")
    # A server of before that is still running would write in the old form what was just rewritten
    op.execute("LOCK TABLE pools, sessions, events IN SHARE ROW EXCLUSIVE MODE")
    db = op.get_bind()
    digests = {pool.pool_id: _pool(db, pool) for pool in db.execute(_POOLS).all()}
    for session in db.execute(_SESSIONS, {"pools": list(digests)}).all():
        _session(db, session, digests.get(session.pool_id))
    # Of the earlier format, which no verifier reads; they are issued anew when they are asked for.
    op.execute("DELETE FROM certificates WHERE final")


def downgrade() -> None:
    # Digests do not hold what they were taken over: there is no way back, and none is needed. But
    # the way here drops certificates, which are not issued to the same byte again.
    present = "position('\"celeus-certificate-2\"'::bytea IN body) > 0"
    refuse_to_lose("final certificates", f"certificates WHERE final AND {present}")


def _pool(db: sa.Connection, pool: sa.Row[Any]) -> bytes | None:
    """Write the pool's digests; gives that of the header, None while it is not sealed."""
    items = bytes(32)
    for record in _records(db, pool):
        items = hashlib.sha256(items + record).digest()
    digest = None
    if pool.digest is not None:
        header = {
            "items": pool.items,
            "loss": {"kind": pool.loss_kind, "lower": pool.loss_lower, "upper": pool.loss_upper},
            "groups": pool.groups,
            "columns": _columns(db, pool),
            "items_digest": items.hex(),
        }
        digest = hashlib.sha256(rfc8785.dumps(header)).digest()
    db.execute(_SET_POOL, {"pool_id": pool.pool_id, "items_digest": items, "digest": digest})
    return digest


def _records(db: sa.Connection, pool: sa.Row[Any]) -> Iterator[bytes]:
    for start in range(0, pool.items, ITEMS_AT_ONCE):
        place = {"pool_id": pool.pool_id, "start": start, "stop": start + ITEMS_AT_ONCE}
        for item in db.execute(_ITEMS, place).all():
            payload = None if item.payload is None else _payload(item.payload)
            if item.payload is not None and payload != json.loads(item.payload):
                written = {"pool_id": pool.pool_id, "index": item.index, "payload": payload}
                db.execute(_SET_PAYLOAD, written)
            yield rfc8785.dumps([item.id, payload])


def _payload(text: str) -> Any:  # noqa: ANN401 -- JSON
    return json.loads(text, parse_int=lambda digits: _whole(digits, digits))


def _plan(text: str) -> Any:  # noqa: ANN401 -- JSON
    # The database writes 1e300 as a whole number.
    return json.loads(text, parse_int=lambda digits: _whole(digits, float(digits)))


def _whole(digits: str, otherwise: str | float) -> int | str | float:
    short = len(digits) < len(str(EXACT)) or abs(int(digits)) < EXACT
    return int(digits) if short else otherwise


def _columns(db: sa.Connection, pool: sa.Row[Any]) -> list[dict[str, str]]:
    hashes: dict[str, Any] = {}
    types: dict[str, str] = {}
    place = {"pool_id": pool.pool_id}
    for chunk in db.execute(_CHUNKS, place).all():
        types[chunk.column] = chunk.dtype
        data = db.execute(_CHUNK, place | {"column": chunk.column, "start": chunk.start})
        hashes.setdefault(chunk.column, hashlib.sha256()).update(data.scalar_one())
    return [
        {"name": name, "dtype": types[name], "sha256": hashes[name].hexdigest()}
        for name in sorted(hashes)
    ]


def _session(db: sa.Connection, session: sa.Row[Any], pool: bytes | None) -> None:
    plan = _plan(session.plan)
    if pool is not None:
        plan["pool_digest"] = pool.hex()
    digest = hashlib.sha256(rfc8785.dumps(plan)).digest()
    head = session.ledger_head
    if head is not None:
        before = _start(session, bytes(session.plan_digest))
        after = _start(session, digest)
        for event in db.execute(_EVENTS, {"session_id": session.session_id}).mappings():
            record = rfc8785.dumps(_record(event))
            before = hashlib.sha256(before + record).digest()
            after = hashlib.sha256(after + record).digest()
        # A ledger that did not lead to its head must not do so now.
        head = after if before == bytes(head) else bytes(head)
    db.execute(
        _SET_SESSION,
        {
            "session_id": session.session_id,
            "plan": plan,
            "plan_digest": digest,
            "ledger_head": head,
            "told": None if head is None else head.hex(),
        },
    )


def _start(session: sa.Row[Any], plan_digest: bytes) -> bytes:
    return hashlib.sha256(b"celeus-ledger-1" + session.session_id.bytes + plan_digest).digest()


def _record(event: sa.RowMapping) -> dict[str, Any]:
    record = dict(event)
    record["kind"] = KINDS[event["kind"]]
    record["at"] = event["at"].astimezone(UTC).isoformat(timespec="microseconds")
    if event["strata_q"] is not None:
        record["strata_q"] = bytes(event["strata_q"]).hex()
    return {name: value for name, value in record.items() if value is not None}


# Both may find more than differs: a text may hold what looks like a number.
_POOLS = sa.text(
    r"""
    SELECT pool_id, loss_kind, loss_lower, loss_upper, items, groups, digest
    FROM pools
    WHERE (loss_lower <> 0 AND abs(loss_lower) < 1e-4)
       OR (loss_upper <> 0 AND abs(loss_upper) < 1e-4)
       OR pool_id IN (
            SELECT pool_id FROM items
            WHERE payload::text ~ '0\.0000|[0-9]{16}|[\U00010000-\U0010ffff]'
       )
    """
)
_ITEMS = sa.text(
    """
    SELECT index, id, payload::text AS payload FROM items
    WHERE pool_id = :pool_id AND index >= :start AND index < :stop ORDER BY index
    """
)
_CHUNKS = sa.text(
    'SELECT "column", start, dtype FROM chunks WHERE pool_id = :pool_id ORDER BY "column", start'
)
_CHUNK = sa.text(
    'SELECT data FROM chunks WHERE pool_id = :pool_id AND "column" = :column AND start = :start'
)
_SESSIONS = sa.text(
    r"""
    SELECT session_id, pool_id, plan::text AS plan, plan_digest, ledger_head FROM sessions
    WHERE pool_id = ANY(:pools) OR plan::text ~ '0\.0000|[0-9]{22}[,}]'
    """
)
_EVENTS = sa.text(
    """
    SELECT sequence, kind, round, item, q, strata_q, seen, loss, detail, at FROM events
    WHERE session_id = :session_id ORDER BY sequence
    """
)
_JSON = postgresql.JSONB()
_SET_PAYLOAD = sa.text(
    "UPDATE items SET payload = :payload WHERE pool_id = :pool_id AND index = :index"
).bindparams(sa.bindparam("payload", type_=_JSON))
_SET_POOL = sa.text(
    "UPDATE pools SET items_digest = :items_digest, digest = :digest WHERE pool_id = :pool_id"
)
_SET_SESSION = sa.text(
    """
    UPDATE sessions SET plan = :plan, plan_digest = :plan_digest, ledger_head = :ledger_head,
        status = jsonb_set(
            status, '{ledger_head}', coalesce(to_jsonb(CAST(:told AS text)), 'null')
        )
    WHERE session_id = :session_id
    """
).bindparams(sa.bindparam("plan", type_=_JSON))

"""Let in whoever shows a key that works."""

import hmac
import time

from sqlalchemy import RowMapping, text

from app.errors import Unauthenticated, Unavailable
from app.operations.browsers import browser_still_admitted, schema_known
from app.operations.callers import Caller
from app.operations.keys import secret_hash
from app.operations.rooms import Rooms

_NOBODYS = bytes(32)


async def admit(rooms: Rooms, key_id: str, secret: str) -> Caller:
    """The caller of this key.

    An unknown key, a wrong secret, an expired and a revoked key are refused in the same words,
    after the same work.
    """
    shown = secret_hash(secret)
    known = rooms.callers.get(key_id, shown)
    if known is not None:
        return known
    asked_at = time.monotonic()
    try:
        row = await _looked_up(rooms, key_id, shown)
    except Unavailable:
        # Looked up before its time was over: what was known a moment ago is known still
        known = rooms.callers.get(key_id, shown)
        if known is None:
            raise
        return known
    right = hmac.compare_digest(_NOBODYS if row is None else bytes(row["secret_hash"]), shown)
    if row is None or not row["usable"]:
        rooms.callers.forget(key_id)
        raise unauthenticated()
    if not right:
        # Whoever remembers the right secret is not forgotten for somebody's guess
        raise unauthenticated()
    caller = Caller.of(key_id, row["project_id"], row["scopes"])
    rooms.callers.keep(caller, shown, asked_at, row["life"])
    return caller


async def still_admitted(rooms: Rooms) -> bool:
    """Whether what came with a long request works still; looked up as often as any."""
    if rooms.browser is not None:
        return await browser_still_admitted(rooms, rooms.browser)
    key_id = rooms.key_id
    if key_id is None or rooms.callers.remembers(key_id):
        return True
    asked_at = time.monotonic()
    row = await _looked_up(rooms, key_id, None)
    if row is None or not row["usable"]:
        rooms.callers.forget(key_id)
        return False
    caller = Caller.of(key_id, row["project_id"], row["scopes"])
    rooms.callers.keep(caller, bytes(row["secret_hash"]), asked_at, row["life"])
    return True


async def _looked_up(rooms: Rooms, key_id: str, shown: bytes | None) -> RowMapping | None:
    with schema_known("keys"):
        async with rooms.transaction() as db:
            found = await db.execute(_LOOKUP, {"key_id": key_id, "shown": shown})
            return found.mappings().one_or_none()


def unauthenticated() -> Unauthenticated:
    """The one refusal of every key that does not work."""
    return Unauthenticated(
        "this needs a key that works",
        rule="one header `Authorization: Bearer ce_…`, neither expired nor revoked",
    )


# Whether the secret is right is decided outside, in constant time; here it only decides whether
# the key was used. Use is noted to the minute, and never waited for.
_LOOKUP = text(
    """
    WITH used AS (
        UPDATE keys SET last_used_at = now() WHERE key_id = (
            SELECT key_id FROM keys
            WHERE key_id = :key_id AND secret_hash = :shown AND revoked_at IS NULL
              AND (expires_at IS NULL OR expires_at > now())
              AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
            FOR UPDATE SKIP LOCKED
        )
    )
    SELECT project_id, scopes, secret_hash,
           revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()) AS usable,
           extract(epoch FROM expires_at - now())::float8 AS life
    FROM keys WHERE key_id = :key_id
    """
)

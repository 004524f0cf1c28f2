"""Authenticate callers by their key."""

import hmac
import time

from sqlalchemy import text

from celeus.errors import Unauthenticated
from celeus.operations.access.browsers import browser_still_admitted, remembered, require_schema
from celeus.operations.access.keys import secret_hash
from celeus.operations.runtime.caller_cache import Caller
from celeus.operations.runtime.context import Context

_NOBODYS = bytes(32)


async def admit(context: Context, key_id: str, secret: str) -> Caller:
    """Authenticate a key and its secret.

    An unknown key, a wrong secret, an expired and a revoked key are refused in the same words,
    after the same work.
    """
    digest = secret_hash(secret)
    caller = await remembered(context, key_id, digest, lambda: _look_up(context, key_id, digest))
    if caller is None:
        raise unauthenticated()
    return caller


async def still_admitted(context: Context) -> bool:
    """Return True if the caller of a long request is still authenticated."""
    if context.browser is not None:
        return await browser_still_admitted(context, context.browser)
    key_id = context.key_id
    if key_id is None or context.callers.remembers(key_id):
        return True
    return await _look_up(context, key_id, None) is not None


async def _look_up(context: Context, key_id: str, shown: bytes | None) -> Caller | None:
    """The caller of a key that works, if the hash shown (None: no matter which) is that of it."""
    asked_at = time.monotonic()
    with require_schema("keys"):
        async with context.transaction() as db:
            result = await db.execute(_LOOKUP, {"key_id": key_id, "shown": shown})
            row = result.mappings().one_or_none()
    stored = _NOBODYS if row is None else bytes(row["secret_hash"])
    right = shown is None or hmac.compare_digest(stored, shown)
    if row is None or not row["usable"]:
        context.callers.forget(key_id)
        return None
    if not right:
        # Whoever remembers the right secret is not forgotten for somebody's guess
        return None
    caller = Caller.of(key_id, row["project_id"], row["scopes"])
    context.callers.keep(caller, stored, asked_at, row["life"])
    return caller


def unauthenticated() -> Unauthenticated:
    """The refusal of every invalid key."""
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

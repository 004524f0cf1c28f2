"""Browser sessions: a person signs in once with a key or a link, the browser sends a cookie.

A cookie is a secret of 256 random bits, as that of a key is; only its SHA-256 is kept. It opens
what its key opens, for as long as the key works. What its pages have to show with every write
follows from the cookie by a keyed hash, so that it need not be kept.
"""

import base64
import hashlib
import hmac
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from psycopg.errors import UndefinedTable
from sqlalchemy import RowMapping, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.errors import SchemaBehind, Unauthenticated, Unavailable
from celeus.operations.access.keys import new_secret, secret_hash
from celeus.operations.runtime.caller_cache import Browser, Caller
from celeus.operations.runtime.context import Context

MOST_BROWSERS = 100
"""Browsers signed in with one key at a time; the oldest is signed out."""
MOST_CLEARED = 1_000


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A new browser session; ``token`` is its cookie and is stored nowhere."""

    path: str
    seconds: int
    # Never shown by accident, in a log or a traceback
    token: str = field(repr=False)


async def sign_in(context: Context, caller: Caller, path: str) -> SignedIn:
    """Sign a browser in as this caller, whose key is valid."""
    with require_schema("signing in"):
        async with context.transaction() as db:
            token = await begin(context, db, caller.key_id)
    return SignedIn(path, longest_seconds(context), token)


async def begin(context: Context, db: AsyncConnection, key_id: str) -> str:
    """Insert a browser session in the caller's transaction; returns its cookie.

    What has expired is cleared away, and of too many browsers of one key those signed in first.
    """
    token, digest = new_secret()
    await db.execute(_CLEAR, {"idle": _idle(context), "most": MOST_CLEARED})
    await db.execute(_CROWDED_OUT, {"key_id": key_id, "most": MOST_BROWSERS - 1})
    life = timedelta(seconds=longest_seconds(context))
    await db.execute(_BEGIN, {"hash": digest, "key_id": key_id, "life": life})
    await db.execute(_SEEN, {"key_id": key_id})
    return token


async def sign_out(context: Context, token: str) -> None:
    """End a browser's session; other processes may let it in for `key_cache_seconds` more."""
    digest = secret_hash(token)
    async with context.transaction() as db:
        await db.execute(_END, {"hash": digest})
    context.callers.forget(_name(digest))


async def admit_browser(context: Context, token: str) -> Caller:
    """Authenticate a browser by its cookie.

    Unknown, expired, too long unused, and one whose key works no longer are refused alike.
    """
    digest = secret_hash(token)
    caller = await remembered(
        context, _name(digest), digest, lambda: _look_up(context, digest, csrf_of(token))
    )
    if caller is None:
        raise signed_out()
    return caller


async def browser_still_admitted(context: Context, browser: Browser) -> bool:
    """Return True if the browser is still signed in; looked up as often as any caller."""
    if context.callers.remembers(browser.cache_name):
        return True
    return await _look_up(context, browser.token_hash, browser.csrf) is not None


async def remembered(
    context: Context, name: str, digest: bytes, look_up: Callable[[], Awaitable[Caller | None]]
) -> Caller | None:
    """The caller as this process remembers it, else as it is looked up; None if not valid."""
    caller = context.callers.get(name, digest)
    if caller is not None:
        return caller
    try:
        return await look_up()
    except Unavailable:
        # Looked up before its time was over: what was known a moment ago is known still
        caller = context.callers.get(name, digest)
        if caller is None:
            raise
        return caller


def csrf_of(token: str) -> str:
    """The CSRF token that pages send with every write.

    It reveals nothing of the cookie, and only a holder of the cookie can make it.
    """
    digest = hmac.digest(token.encode(), b"celeus: written by a page", hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def signed_out() -> Unauthenticated:
    """The refusal of every invalid cookie."""
    return Unauthenticated(
        "this browser is not signed in", rule="sign in at /login, with a key or a link"
    )


@contextmanager
def require_schema(what: str) -> Iterator[None]:
    """Refuse with `SchemaBehind` where the database lacks a table."""
    try:
        yield
    except ProgrammingError as error:
        if isinstance(error.orig, UndefinedTable):
            raise SchemaBehind(f"the schema of the database is older than {what}") from error
        raise


async def _look_up(context: Context, digest: bytes, csrf: str) -> Caller | None:
    asked_at = time.monotonic()
    with require_schema("signing in"):
        async with context.transaction() as db:
            result = await db.execute(_LOOKUP, {"shown": digest, "idle": _idle(context)})
            row: RowMapping | None = result.mappings().one_or_none()
    if row is None or not row["usable"]:
        context.callers.forget(_name(digest))
        return None
    browser = Browser(digest, row["key_name"], row["project"], csrf)
    caller = Caller.of(row["key_id"], row["project_id"], row["scopes"], browser)
    context.callers.keep(caller, digest, asked_at, row["life"])
    return caller


def _name(token_hash: bytes) -> str:
    return Browser(token_hash, "", "", "").cache_name


def _idle(context: Context) -> timedelta:
    return timedelta(hours=context.settings.browser_idle_hours)


def longest_seconds(context: Context) -> int:
    """The longest time, in seconds, that a browser stays signed in."""
    return max(1, round(context.settings.browser_hours * 3600))


# Use is noted to the minute, of the browser and of its key, and never waited for.
_LOOKUP = text(
    """
    WITH found AS (
        SELECT b.key_id, k.project_id, k.scopes, k.name AS key_name, p.name AS project,
               b.expires_at > now() AND b.last_seen_at > now() - CAST(:idle AS interval)
               AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())
               AS usable,
               extract(epoch FROM least(
                   b.expires_at, b.last_seen_at + CAST(:idle AS interval), k.expires_at
               ) - now())::float8 AS life
        FROM browser_sessions b
        JOIN keys k ON k.key_id = b.key_id
        JOIN projects p ON p.project_id = k.project_id
        WHERE b.token_hash = :shown
    ), seen AS (
        UPDATE browser_sessions SET last_seen_at = now() WHERE token_hash = (
            SELECT token_hash FROM browser_sessions
            WHERE token_hash = :shown AND last_seen_at < now() - interval '1 minute'
              AND (SELECT usable FROM found)
            FOR UPDATE SKIP LOCKED
        )
    ), used AS (
        UPDATE keys SET last_used_at = now() WHERE key_id = (
            SELECT key_id FROM keys
            WHERE key_id = (SELECT key_id FROM found WHERE usable)
              AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
            FOR UPDATE SKIP LOCKED
        )
    )
    SELECT * FROM found
    """
)
_BEGIN = text(
    """
    INSERT INTO browser_sessions (token_hash, key_id, project_id, expires_at)
    SELECT :hash, key_id, project_id, now() + CAST(:life AS interval)
    FROM keys WHERE key_id = :key_id
    """
)
# Whoever signs in is a person, and has used the key from that moment
_SEEN = text("UPDATE keys SET person = true, last_used_at = now() WHERE key_id = :key_id")
_END = text("DELETE FROM browser_sessions WHERE token_hash = :hash")
# A bounded number at a time, and never one that another clears at the moment
_CLEAR = text(
    """
    DELETE FROM browser_sessions WHERE token_hash IN (
        SELECT token_hash FROM browser_sessions
        WHERE expires_at <= now() OR last_seen_at <= now() - CAST(:idle AS interval)
        LIMIT :most FOR UPDATE SKIP LOCKED
    )
    """
)
_CROWDED_OUT = text(
    """
    DELETE FROM browser_sessions WHERE token_hash IN (
        SELECT token_hash FROM browser_sessions WHERE key_id = :key_id
        ORDER BY created_at DESC OFFSET :most
    )
    """
)

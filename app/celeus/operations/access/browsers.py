"""Browsers that are signed in: a person shows a key once, or a link, and the browser a cookie.

A cookie is a secret of 256 random bits, as that of a key is; only its SHA-256 is kept. It opens
what its key opens, for as long as the key works. What its pages have to show with every write
follows from the cookie by a keyed hash, so that it need not be kept.
"""

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from psycopg.errors import UndefinedTable
from sqlalchemy import RowMapping, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.errors import SchemaBehind, Unauthenticated, Unavailable
from app.operations.callers import Browser, Caller
from app.operations.keys import secret_hash
from app.operations.rooms import Rooms

MOST_BROWSERS = 100
"""Signed in by one key at once; the one signed in first gives way."""
MOST_CLEARED = 1_000


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A browser just signed in; ``token`` is its cookie, and exists nowhere else."""

    path: str
    seconds: int
    # Never told by accident, in a log or a traceback
    token: str = field(repr=False)


async def sign_in(rooms: Rooms, caller: Caller, path: str) -> SignedIn:
    """Have a browser go on as this caller, who has shown a key that works."""
    with schema_known("signing in"):
        async with rooms.transaction() as db:
            token = await begin(rooms, db, caller.key_id)
    return SignedIn(path, longest_seconds(rooms), token)


async def begin(rooms: Rooms, db: AsyncConnection, key_id: str) -> str:
    """The cookie of one more browser, kept in the caller's transaction.

    What has expired is cleared away, and of too many browsers of one key those signed in first.
    """
    token = secrets.token_urlsafe(32)
    await db.execute(_CLEAR, {"idle": _idle(rooms), "most": MOST_CLEARED})
    await db.execute(_CROWDED_OUT, {"key_id": key_id, "most": MOST_BROWSERS - 1})
    life = timedelta(seconds=longest_seconds(rooms))
    kept = {"hash": secret_hash(token), "key_id": key_id, "life": life}
    await db.execute(_BEGIN, kept)
    return token


async def sign_out(rooms: Rooms, token: str) -> None:
    """End a browser's session; other processes may let it in for `key_cache_seconds` more."""
    ended = secret_hash(token)
    async with rooms.transaction() as db:
        await db.execute(_END, {"hash": ended})
    rooms.callers.forget(_name(ended))


async def admit_browser(rooms: Rooms, token: str) -> Caller:
    """The caller whose browser has this cookie.

    Unknown, expired, too long unused, and one whose key works no longer are refused alike.
    """
    shown = secret_hash(token)
    known = rooms.callers.get(_name(shown), shown)
    if known is not None:
        return known
    try:
        caller = await _looked_up(rooms, shown, csrf_of(token))
    except Unavailable:
        # Looked up before its time was over: what was known a moment ago is known still
        known = rooms.callers.get(_name(shown), shown)
        if known is None:
            raise
        return known
    if caller is None:
        raise signed_out()
    return caller


async def browser_still_admitted(rooms: Rooms, browser: Browser) -> bool:
    """Whether a browser is signed in still; looked up as often as any caller."""
    if rooms.callers.remembers(browser.known_as):
        return True
    return await _looked_up(rooms, browser.token_hash, browser.csrf) is not None


def csrf_of(token: str) -> str:
    """What the pages of a browser with this cookie show with every write.

    It tells nothing of the cookie, and nobody without the cookie can make it.
    """
    made = hmac.digest(token.encode(), b"celeus: written by a page", hashlib.sha256)
    return base64.urlsafe_b64encode(made).rstrip(b"=").decode()


def signed_out() -> Unauthenticated:
    """The one refusal of every cookie that does not work."""
    return Unauthenticated(
        "this browser is not signed in", rule="sign in at /login, with a key or a link"
    )


@contextmanager
def schema_known(what: str) -> Iterator[None]:
    """Refuse by name where the database is older than what it is asked for."""
    try:
        yield
    except ProgrammingError as error:
        if isinstance(error.orig, UndefinedTable):
            raise SchemaBehind(f"the schema of the database is older than {what}") from error
        raise


async def _looked_up(rooms: Rooms, shown: bytes, csrf: str) -> Caller | None:
    asked_at = time.monotonic()
    with schema_known("signing in"):
        async with rooms.transaction() as db:
            found = await db.execute(_LOOKUP, {"shown": shown, "idle": _idle(rooms)})
            row: RowMapping | None = found.mappings().one_or_none()
    if row is None or not row["usable"]:
        rooms.callers.forget(_name(shown))
        return None
    browser = Browser(shown, row["key_name"], row["project"], csrf)
    caller = Caller.of(row["key_id"], row["project_id"], row["scopes"], browser)
    rooms.callers.keep(caller, shown, asked_at, row["life"])
    return caller


def _name(token_hash: bytes) -> str:
    return Browser(token_hash, "", "", "").known_as


def _idle(rooms: Rooms) -> timedelta:
    return timedelta(hours=rooms.settings.browser_idle_hours)


def longest_seconds(rooms: Rooms) -> int:
    """How long a browser stays signed in at most."""
    return max(1, round(rooms.settings.browser_hours * 3600))


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

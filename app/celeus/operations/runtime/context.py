"""The context of every operation: database, caches, limits, caller and settings."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.operations.certificates.stamps import Stamps
from celeus.operations.runtime.callers import Browser, CallerCache
from celeus.operations.runtime.concurrency import Gates
from celeus.operations.runtime.forecasts import Forecasts
from celeus.operations.runtime.memo import Issued, Memo, News
from celeus.operations.runtime.state_cache import StateCache
from celeus.settings import Settings
from celeus.store.cache import Cache, Wakes
from celeus.store.database import Database
from celeus.store.rates import Rates
from celeus.store.tables import DEFAULT_PROJECT

CERTIFICATE_BYTES = 64 << 20
"""Of the certificates a process keeps, but for the last one."""
NEWS_BYTES = 16 << 20
"""Of the news a process keeps for its streams."""


@dataclass(frozen=True, slots=True)
class Context:
    """Created once in `create_app`, bound to the caller, and the first argument of every operation.

    An operation sees only what belongs to ``project_id``.
    ``key_id`` is the caller's key; None where no request came over the wire. ``blind``: it may not
    see where a session stands. ``browser`` is where its holder is signed in; None where the key
    itself came along. ``signing_key`` is None
    where certificates cannot be issued. ``gates`` bound what is done at once in this process.
    """

    database: Database
    cache: Cache
    wakes: Wakes
    states: StateCache
    forecasts: Forecasts
    settings: Settings
    callers: CallerCache
    rates: Rates
    gates: Gates
    stamps: Stamps
    project_id: UUID = DEFAULT_PROJECT
    key_id: str | None = None
    blind: bool = False
    browser: Browser | None = None
    signing_key: Ed25519PrivateKey | None = None
    worths: Memo[dict[str, Any]] = field(
        default_factory=lambda: Memo("other surrogates are being analysed")
    )
    certificates: Memo[Issued] = field(
        default_factory=lambda: Memo("other certificates are being made", CERTIFICATE_BYTES)
    )
    news: Memo[News] = field(default_factory=lambda: Memo("other news are being read", NEWS_BYTES))
    digests: Memo[str] = field(default_factory=lambda: Memo("other certificates are being made"))

    def transaction(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a transaction: committed on leaving, rolled back on an error."""
        return self.database.transaction()


async def one_snapshot(db: AsyncConnection) -> None:
    """Let all statements of this transaction see one snapshot of the database."""
    await db.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))

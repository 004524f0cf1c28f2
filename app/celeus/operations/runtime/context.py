"""The context of every operation: database, caches, limits, caller and settings."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from celeus.core.pools.rows.earlier import Earlier
from celeus.errors import InvalidValue, Overloaded, Unavailable
from celeus.operations.certificates.signing_keys import read_key
from celeus.operations.certificates.stamps import Stamps
from celeus.operations.deletion.tombstones import LeftoverDeletion
from celeus.operations.runtime.admission import Admission, Background
from celeus.operations.runtime.caller_cache import Browser, CallerCache
from celeus.operations.runtime.concurrency import Gates
from celeus.operations.runtime.groups import Groups
from celeus.operations.runtime.process_cache import IssuedCertificate, LatestByKey, StreamMessage
from celeus.operations.runtime.state_cache import StateCache
from celeus.operations.webhooks.deliveries import Deliveries
from celeus.settings import Settings
from celeus.store.cache import Cache, Waiters
from celeus.store.database import Database
from celeus.store.rates import Rates
from celeus.store.tables import DEFAULT_PROJECT

CERTIFICATE_BYTES = 64 << 20
"""Most bytes of the certificates a process keeps, the last one not counted."""
EARLIER_BYTES = 256 << 20
"""Most bytes of what is carried over from judged sessions, the last one not counted."""
NEWS_BYTES = 16 << 20
"""Most bytes of the news a process keeps for its streams."""


@dataclass(frozen=True, slots=True)
class Context:
    """Made by `open_context`, bound to the caller, and the first argument of every operation.

    An operation sees only what belongs to ``project_id``.
    ``key_id`` is the caller's key; None where no request came over the wire. ``blind``: it may not
    see where a session stands. ``browser`` is where its holder is signed in; None where the key
    itself came along. ``signing_key`` is None
    where certificates cannot be issued. ``gates`` bound what is done at once in this process.
    """

    database: Database
    cache: Cache
    waiters: Waiters
    states: StateCache
    settings: Settings
    callers: CallerCache
    rates: Rates
    admission: Admission
    background: Background
    gates: Gates
    groups: Groups
    stamps: Stamps
    deliveries: Deliveries
    leftovers: LeftoverDeletion
    project_id: UUID = DEFAULT_PROJECT
    key_id: str | None = None
    blind: bool = False
    browser: Browser | None = None
    signing_key: Ed25519PrivateKey | None = None
    worths: LatestByKey[dict[str, Any]] = field(default_factory=LatestByKey)
    certificates: LatestByKey[IssuedCertificate] = field(
        default_factory=lambda: LatestByKey(CERTIFICATE_BYTES)
    )
    earlier: LatestByKey[Earlier] = field(default_factory=lambda: LatestByKey(EARLIER_BYTES))
    news: LatestByKey[StreamMessage] = field(default_factory=lambda: LatestByKey(NEWS_BYTES))
    claims: LatestByKey[Any] = field(default_factory=LatestByKey)
    digests: LatestByKey[str] = field(default_factory=LatestByKey)
    provisional: LatestByKey[dict[str, Any]] = field(default_factory=LatestByKey)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Open a transaction: committed on leaving, rolled back on an error.

        Refuses as `Overloaded` where too many requests wait for one. The projects take turns;
        callers whose key is not known yet have a turn of their own.
        """
        flow = None if self.key_id is None else self.project_id
        async with self.admission.of(flow), self.database.transaction() as db:
            yield db

    def process(
        self, refusal: type[Unavailable] = Overloaded, *, of_file: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """A place for a child process, for this caller; refused if its turn does not come in time.

        ``of_file``: it reads a file that somebody sent, which may take minutes.
        """
        kinds = ["blind"] * self.blind + ["files"] * of_file
        return self.background.of(self.project_id, self.key_id or "", kinds, refusal)


@asynccontextmanager
async def open_context(settings: Settings) -> AsyncIterator[Context]:
    """Open the context of an application; closes its connections on leaving."""
    if settings.database_url is None:
        raise InvalidValue(
            "No database is named; `celeus serve` alone starts a private one.",
            field="CELEUS_DATABASE_URL",
            rule="an address of the form postgresql://…",
        )
    signing_key = None
    if settings.signing_key_file is not None:
        signing_key = read_key(settings.signing_key_file)
    database = Database.connect(
        settings.database_url,
        pool_size=settings.database_pool_size,
        lock_timeout_ms=settings.lock_timeout_ms,
        statement_timeout_ms=settings.statement_timeout_ms,
        pooler=settings.database_pooler,
    )
    cache = Cache.connect(settings.redis_url, status_ttl_seconds=settings.status_ttl_seconds)
    states = StateCache(
        settings.hot_sessions,
        settings.hot_pools,
        state_bytes=settings.hot_bytes,
        patience_seconds=settings.lock_timeout_ms / 1000,
    )
    rates = Rates.connect(settings.redis_url)
    stamps = Stamps(database, settings.timestamp_url)
    deliveries = Deliveries.of(database, settings)
    leftovers = LeftoverDeletion(database)
    try:
        async with cache.listen() as waiters:
            context = Context(
                database,
                cache,
                waiters,
                states,
                settings,
                CallerCache(settings.key_cache_seconds),
                rates,
                Admission(
                    settings.database_pool_size,
                    settings.queue_limit,
                    settings.lock_timeout_ms / 1000,
                ),
                Background(settings.background_processes),
                Gates(settings),
                Groups(settings.lock_timeout_ms / 1000, settings.queue_limit),
                stamps,
                deliveries,
                leftovers,
            )
            yield replace(context, signing_key=signing_key)
    finally:
        await leftovers.close()
        await deliveries.close()
        await stamps.close()
        await rates.close()
        await cache.close()
        await database.close()


async def one_snapshot(db: AsyncConnection) -> None:
    """Let all statements of this transaction see one snapshot of the database."""
    await db.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))

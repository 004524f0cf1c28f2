"""Rate counters over the last minute: in Redis for all processes, else in memory.

A process takes a six-hundredth of what a name may at a time, and asks again when that is used
up: hardly any request of a large limit asks, and a small limit is exact. The window is the one of
two counters: a list of the times, `limits`' moving window, is 60 000 numbers for each key. A Redis
that does not answer in time is not asked for a while; meanwhile this process counts for itself.
Counting therefore never fails and never takes long.
"""

import asyncio
import logging
import time
from math import ceil
from typing import TYPE_CHECKING, Self

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter as Window

from celeus.store.cache import patience

if TYPE_CHECKING:
    # At run time `redis_clients` imports it, for those who have a Redis.
    from redis.asyncio import ConnectionPool

MOST_NAMES = 10_000
"""Names counted in memory: every count scans all of them to drop the outdated ones."""
SHARES = 600
"""Parts of a minute's count that are taken one by one."""
_KEPT_SECONDS = 60.0
_PATIENCE_SECONDS = 0.05
_PAUSE_SECONDS = 1.0

_logger = logging.getLogger(__name__)


class Rates:
    """Counts of the last minute, by name; made by `connect`, ended by `close`."""

    def __init__(
        self,
        connections: "ConnectionPool | None" = None,
        failures: tuple[type[Exception], ...] = (),
    ) -> None:
        """Hold connections to Redis, and their failures; callers use `connect`."""
        self._connections = connections
        self._failures = failures
        self._shared = None if connections is None else Window(_storage(connections))
        self._memory = MemoryStorage()
        self._own = Window(self._memory)
        self._shares: dict[str, tuple[int, float]] = {}
        self._next_attempt = 0.0

    @classmethod
    def connect(cls, url: str | None) -> Self:
        """Counters in the Redis at `url`; without one, in this process."""
        if url is None:
            return cls()
        from celeus.store import redis_clients

        # `patience` is all there is
        return cls(redis_clients.connections(url), redis_clients.FAILURES)

    async def close(self) -> None:
        """Close every connection."""
        if self._memory.timer is not None:
            self._memory.timer.cancel()
            await asyncio.wait([self._memory.timer])
        if self._connections is not None:
            await self._connections.disconnect()

    async def count(self, name: str, per_minute: int) -> int | None:
        """Count one more of `name`; the seconds to wait when that is too many, else None.

        What is too many is not counted.
        """
        now = asyncio.get_running_loop().time()
        remaining, until = self._shares.get(name, (0, 0.0))
        if remaining > 0 and now < until:
            self._shares[name] = (remaining - 1, until)
            return None
        share = max(1, per_minute // SHARES)
        wait = await self._take(name, per_minute, share)
        if wait is None and share > 1:
            if len(self._shares) >= MOST_NAMES:
                self._shares.clear()
            self._shares[name] = (share - 1, now + _KEPT_SECONDS)
        return wait

    async def _take(self, name: str, per_minute: int, share: int) -> int | None:
        """Count so many at once; the seconds to wait when that is too many, else None."""
        limit = RateLimitItemPerMinute(per_minute)
        now = asyncio.get_running_loop().time()
        if self._shared is not None and now >= self._next_attempt:
            try:
                async with patience(_PATIENCE_SECONDS):
                    return await _wait(self._shared, limit, name, share)
            except self._failures as error:
                if self._next_attempt <= now:
                    _logger.warning("redis: rates are counted by each process: %r", error)
                self._next_attempt = now + _PAUSE_SECONDS
        if len(self._memory.storage) > MOST_NAMES:
            await self._memory.reset()
        return await _wait(self._own, limit, name, share)


def _storage(connections: "ConnectionPool") -> RedisStorage:
    return RedisStorage(
        "redis://",
        implementation="redispy",
        key_prefix="celeus:rate",
        connection_pool=connections,  # type: ignore[arg-type] # as its documentation says
    )


async def _wait(window: Window, limit: RateLimitItemPerMinute, name: str, cost: int) -> int | None:
    """Seconds until ``cost`` more may be counted; None when it was counted now."""
    if await window.hit(limit, name, cost=cost):
        return None
    stats = await window.get_window_stats(limit, name)
    return max(1, ceil(stats.reset_time - time.time()))

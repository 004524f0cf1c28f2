"""How often something happened during the last minute: in Redis for all processes, else in memory.

A process takes a six-hundredth of what a name may at a time, and asks again when that is used
up: of a large limit hardly any request asks, a small one is exact. A Redis that does not answer in
time, or answers nonsense, is not asked for a while; meanwhile this process counts for itself.
Counting therefore never fails and never takes long.
"""

import asyncio
import logging
import math
from dataclasses import dataclass
from typing import Self

from limits import RateLimitItem, RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter
from redis.asyncio import ConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

MOST_NAMES = 10_000
"""Names counted in memory: every count looks at all of them to forget the outdated ones."""
SHARES = 600
"""Parts of a minute's count that are taken one by one."""
_KEPT_SECONDS = 60.0
_PATIENCE_SECONDS = 0.05
_PAUSE_SECONDS = 1.0
_FAILURES = (RedisError, OSError, TimeoutError, ValueError)

_logger = logging.getLogger(__name__)


class Rates:
    """Counts of the last minute, by name; made by `connect`, ended by `close`."""

    def __init__(self, shared: RedisStorage | None, connections: ConnectionPool | None) -> None:
        """Hold the counters; callers use `connect`."""
        self._connections = connections
        self._shared = None if shared is None else _Window(shared)
        self._memory = MemoryStorage()
        self._own = _Window(self._memory)
        self._taken: dict[str, _Share] = {}
        self._next_attempt = 0.0

    @classmethod
    def connect(cls, url: str | None) -> Self:
        """Counters in the Redis at `url`; without one, in this process."""
        if url is None:
            return cls(None, None)
        pool = ConnectionPool.from_url(
            url,
            socket_connect_timeout=_PATIENCE_SECONDS,
            socket_timeout=_PATIENCE_SECONDS,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        shared = RedisStorage(
            "redis://",
            implementation="redispy",
            key_prefix="celeus:rate",
            connection_pool=pool,  # type: ignore[arg-type] # as its documentation says
        )
        return cls(shared, pool)

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
        taken = self._taken.get(name)
        if taken is not None and taken.left > 0 and now < taken.until:
            taken.left -= 1
            return None
        share = max(1, per_minute // SHARES)
        wait = await self._take(name, per_minute, share)
        if wait is not None and share > 1:
            # Less than a whole share is left.
            share = 1
            wait = await self._take(name, per_minute, share)
        if wait is None and share > 1:
            if len(self._taken) >= MOST_NAMES:
                self._taken.clear()
            self._taken[name] = _Share(share - 1, now + _KEPT_SECONDS)
        return wait

    async def _take(self, name: str, per_minute: int, share: int) -> int | None:
        """Count so many at once; the seconds to wait when that is too many, else None."""
        limit = RateLimitItemPerMinute(per_minute)
        now = asyncio.get_running_loop().time()
        if self._shared is not None and now >= self._next_attempt:
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    return await self._shared.count_anew(limit, name, share)
            except _FAILURES as error:
                if self._next_attempt <= now:
                    _logger.warning("redis: rates are counted by each process: %r", error)
                self._next_attempt = now + _PAUSE_SECONDS
        if len(self._memory.storage) > MOST_NAMES:
            await self._memory.reset()
        return await self._own.count(limit, name, share)


@dataclass(slots=True)
class _Share:
    """What may go on without asking, and until when."""

    left: int
    until: float


class _Window(SlidingWindowCounterRateLimiter):
    """A minute that slides along, from two counters."""

    def __init__(self, storage: MemoryStorage | RedisStorage) -> None:
        super().__init__(storage)
        self._counters = storage

    async def count_anew(self, limit: RateLimitItem, name: str, cost: int) -> int | None:
        """Count; where what is kept is no count, begin again."""
        try:
            return await self.count(limit, name, cost)
        except (ResponseError, ValueError):
            await self._counters.clear_sliding_window(limit.key_for(name), limit.get_expiry())
            return await self.count(limit, name, cost)

    async def count(self, limit: RateLimitItem, name: str, cost: int) -> int | None:
        """Count; the seconds to wait when that is too many, else None."""
        if await self.hit(limit, name, cost=cost):
            return None
        key, minute = limit.key_for(name), limit.get_expiry()
        before, before_left, since, since_left = await self._counters.get_sliding_window(
            key, minute
        )
        if max(before, since) > limit.amount or not 0 < since_left <= 2 * minute + 1:
            # Somebody else wrote this: it would keep everybody out, perhaps for ever.
            await self._counters.clear_sliding_window(key, minute)
            return None
        return _seconds_until_less(limit, (before, before_left, since, since_left))


def _seconds_until_less(limit: RateLimitItem, window: tuple[int, float, int, float]) -> int:
    """When the count will be below the limit again, if nobody counts meanwhile."""
    before, before_left, since, since_left = window
    minute = limit.get_expiry()
    if since < limit.amount and before > 0:
        # The minute before weighs less and less.
        needed = before_left - minute * (limit.amount - since - 1) / before
    else:
        needed = since_left - minute + minute / max(1, since)
    return max(1, math.ceil(min(needed, minute)))

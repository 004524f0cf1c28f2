"""Redis cache of the latest status of each session, with wakes for those who wait for news.

Everything here may be lost at any moment. A Redis that does not answer costs `_PATIENCE_SECONDS`
once in `_PAUSE_SECONDS` and is otherwise not asked; whoever reads the cache gets a miss and
reads PostgreSQL, and waiters look for themselves.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self, TypeVar

PARTS = 5


@asynccontextmanager
async def patience(seconds: float) -> AsyncIterator[None]:
    """Raise TimeoutError in the block once an answer has had its ``seconds``.

    They are counted in ``PARTS``, each begun once the one before is over and what has arrived is
    read. A process that stood still meanwhile, in a fold or since others had the processor, so
    loses a part at most, and does not take an answer that came in time for one that did not come.
    """
    loop = asyncio.get_running_loop()
    part = seconds / PARTS
    async with asyncio.timeout(None) as limit:

        def count(left: int) -> None:
            if left:
                timers[0] = loop.call_later(part, count, left - 1)
            else:
                limit.reschedule(loop.time())

        timers = [loop.call_later(part, count, PARTS - 1)]
        try:
            yield
        finally:
            timers[0].cancel()


if TYPE_CHECKING:
    # At run time `redis_clients` imports it, for those who have a Redis.
    from redis.asyncio import Redis
    from redis.asyncio.client import PubSub

_PATIENCE_SECONDS = 0.25
_PAUSE_SECONDS = 1.0
_LISTENER_PATIENCE_SECONDS = 2.0
# Statuses live for seconds: beyond this many, they end before their turn comes
_MOST_OUTDATED = 10_000
_CHANNEL = "celeus:wake:"
_STATUS_FORM = 1
"""Part of the key: releases whose statuses have different forms never read each other's."""
# Behind every sequence
_LAST = 2**53

# An older sequence never replaces a newer one, whoever comes last. The same sequence under the
# same version only lives longer: a reader that fills the cache again has nothing to tell. A key
# of another type is somebody else's: it is replaced.
_PUT = """
local kept = redis.pcall('HMGET', KEYS[1], 'sequence', 'version')
if kept.err then
  redis.call('DEL', KEYS[1])
  kept = {}
end
if (tonumber(kept[1] or '') or -1) > tonumber(ARGV[1]) then
  return 0
end
local news = kept[1] ~= ARGV[1] or kept[2] ~= ARGV[2]
if news then
  redis.call('HSET', KEYS[1], 'sequence', ARGV[1], 'version', ARGV[2], 'body', ARGV[3])
end
redis.call('EXPIRE', KEYS[1], ARGV[4])
if news then
  redis.call('PUBLISH', ARGV[5], ARGV[1])
end
return 1
"""

_T = TypeVar("_T")

_logger = logging.getLogger(__name__)


class Waiters:
    """Waiters of this process, by session."""

    def __init__(self) -> None:
        """Start without waiters."""
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._others = asyncio.Event()

    @property
    def sessions(self) -> set[str]:
        """The sessions that somebody waits for."""
        return set(self._waiting)

    async def other_sessions(self) -> None:
        """Wait until these may be others than when this was last waited for."""
        await self._others.wait()
        self._others.clear()

    @asynccontextmanager
    async def subscribe(self, session_id: str) -> AsyncIterator[asyncio.Event]:
        """An event set at every news of the session; clear it, then read, then wait again.

        A wake may be lost with Redis and may come without news: wait with a timeout, and read.
        """
        event = asyncio.Event()
        waiting = self._waiting.setdefault(session_id, set())
        waiting.add(event)
        self._others.set()
        try:
            yield event
        finally:
            waiting.discard(event)
            if not waiting and self._waiting.get(session_id) is waiting:
                del self._waiting[session_id]
                self._others.set()

    def wake(self, session_id: str) -> None:
        """Wake those who wait for this session."""
        for event in self._waiting.get(session_id, ()):
            event.set()


class Cache:
    """Forgettable copies of session documents; made by `connect`, ended by `close`.

    Session ids are taken as they travel on the wire, and never interpreted.
    """

    def __init__(self, url: str | None, *, status_ttl_seconds: int) -> None:
        """Hold the address; callers use `connect`."""
        self.waiters = Waiters()
        self._ttl = status_ttl_seconds
        self._redis = None
        self._listener = None
        self._put = None
        self._failures: tuple[type[Exception], ...] = ()
        if url is not None:
            from celeus.store import redis_clients

            self._failures = redis_clients.FAILURES
            self._redis = redis_clients.client(url)
            self._listener = redis_clients.client(url, _LISTENER_PATIENCE_SECONDS)
            self._put = self._redis.register_script(_PUT)
        self._failed = False
        self._next_attempt = 0.0
        self._outdated: set[str] = set()
        self._forgetting: asyncio.Task[None] | None = None

    @classmethod
    def connect(cls, url: str | None, *, status_ttl_seconds: int = 10) -> Self:
        """A cache in the Redis at `url`; without one, a cache that always misses."""
        return cls(url, status_ttl_seconds=status_ttl_seconds)

    async def close(self) -> None:
        """Close every connection."""
        if self._forgetting is not None:
            self._forgetting.cancel()
            await asyncio.wait([self._forgetting])
        for client in (self._redis, self._listener):
            if client is not None:
                await client.aclose()

    async def get_status(self, session_id: str) -> bytes | None:
        """The newest status kept for the session, or nothing.

        When another process could not put a newer one, it may be behind PostgreSQL until that
        process reaches Redis again, at most by the status's time to live.
        """
        key = _status_key(session_id)
        if self._redis is None or key in self._outdated or not self._may_ask():
            return None
        body = await self._ask(self._redis.hget(key, "body"))
        return body if isinstance(body, bytes) and body else None

    async def put_status(self, session_id: str, sequence: int, version: str, body: bytes) -> None:
        """Keep the status as of `sequence`, unless a newer one is kept, and wake the waiters.

        `version` tells apart two documents of the same sequence (its ETag, say).
        """
        key = _status_key(session_id)
        if self._put is None or not self._may_ask():
            self.waiters.wake(session_id)
            self._forget_later(key)
            return
        reply = await self._ask(
            self._put(keys=[key], args=[sequence, version, body, self._ttl, _CHANNEL + session_id])
        )
        if reply is not None:
            self._outdated.discard(key)
        else:
            self.waiters.wake(session_id)
            self._forget_later(key)

    async def drop_status(self, session_id: str) -> None:
        """Drop what is kept, so that the present status can take its place."""
        if self._redis is not None and self._may_ask():
            await self._ask(self._redis.unlink(_status_key(session_id)))

    async def forget_status(self, session_id: str) -> None:
        """Keep no status of a deleted session, nor one that comes late, and wake the waiters."""
        await self.put_status(session_id, _LAST, "deleted", b"")

    def _forget_later(self, key: str) -> None:
        """Delete the status under a key as soon as Redis answers again.

        A newer one could not be put there, and other processes would go on reading the old one.
        """
        if self._redis is None or len(self._outdated) >= _MOST_OUTDATED:
            return
        self._outdated.add(key)
        if self._forgetting is None or self._forgetting.done():
            self._forgetting = asyncio.create_task(self._forget(self._redis), name="celeus-forget")

    async def _forget(self, redis: "Redis") -> None:
        while self._outdated:
            await asyncio.sleep(_PAUSE_SECONDS)
            keys = list(self._outdated)
            if await self._ask(redis.unlink(*keys)) is not None:
                self._outdated.difference_update(keys)

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[Waiters]:
        """Pass on the wakes of every process, over one connection, while the block runs.

        Without Redis only the wakes of this process are passed on.
        """
        if self._listener is None:
            yield self.waiters
            return
        task = asyncio.create_task(self._pass_on(self._listener), name="celeus-wakes")
        try:
            yield self.waiters
        finally:
            # The client may take a cancellation that meets its connecting for a failure to connect
            while not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=_PATIENCE_SECONDS)

    async def _pass_on(self, client: "Redis") -> None:
        """Listen until cancelled; when Redis is lost, retry after a pause."""
        while True:
            try:
                async with client.pubsub() as channels, asyncio.TaskGroup() as both:
                    # One that nobody speaks on: without any, there is nothing to listen to
                    await channels.subscribe(_CHANNEL)
                    both.create_task(self._dispatch_all(channels))
                    both.create_task(self._follow(channels))
            except* self._failures as errors:
                _logger.warning("redis: wakes are not heard: %s", errors.exceptions[0])
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _follow(self, channels: "PubSub") -> None:
        """Subscribe to the sessions that callers of this process wait for, and to no others."""
        heard: set[str] = set()
        while True:
            wanted = self.waiters.sessions
            if more := wanted - heard:
                await channels.subscribe(*(_CHANNEL + session for session in more))
            if less := heard - wanted:
                await channels.unsubscribe(*(_CHANNEL + session for session in less))
            heard = wanted
            # Python 3.11's `wait_for`, by which the client sends, may swallow a cancellation
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError
            await self.waiters.other_sessions()

    async def _dispatch_all(self, channels: "PubSub") -> None:
        async for message in channels.listen():
            self._dispatch(message)

    def _dispatch(self, message: dict[str, object]) -> None:
        """Wake whom the message concerns."""
        channel = message["channel"]
        # Whatever was said while nobody listened is no less news
        if message["type"] in {"subscribe", "message"} and isinstance(channel, bytes):
            self.waiters.wake(channel.decode().removeprefix(_CHANNEL))

    def _may_ask(self) -> bool:
        """Return True if Redis may be asked now; after a failure, one caller in each pause may."""
        if not self._failed:
            return True
        now = asyncio.get_running_loop().time()
        if now < self._next_attempt:
            return False
        self._next_attempt = now + _PAUSE_SECONDS
        return True

    async def _ask(self, answer: Awaitable[_T]) -> _T | None:
        """The answer, or nothing when Redis does not give it in time, or refuses."""
        try:
            async with patience(_PATIENCE_SECONDS):
                value = await answer
        except self._failures as error:
            if str(error).startswith("WRONGTYPE"):
                # A miss of this key alone: Redis answers
                return None
            if not self._failed:
                _logger.warning("redis: not asked until it answers again: %r", error)
            self._failed = True
            self._next_attempt = asyncio.get_running_loop().time() + _PAUSE_SECONDS
            return None
        self._failed = False
        return value


def _status_key(session_id: str) -> str:
    return f"celeus:status:{_STATUS_FORM}:{session_id}"

"""Clients of Redis, imported where there is one: the library takes a while, and many have none."""

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

FAILURES = (RedisError, OSError, TimeoutError)
"""Errors of a Redis that does not answer, or refuses."""


def connections(url: str, timeout: float | None = None) -> ConnectionPool:
    """Make connections that do not retry; the next caller tries again.

    Without a ``timeout`` in seconds they wait for as long as their caller does.
    """
    return ConnectionPool.from_url(
        url,
        socket_connect_timeout=timeout,
        socket_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        # The newer protocol adds questions to every opening and answers nothing asked here
        protocol=2,
    )


def client(url: str, timeout: float | None = None) -> Redis:
    """Make a client of such connections, which it closes."""
    return Redis.from_pool(connections(url, timeout))

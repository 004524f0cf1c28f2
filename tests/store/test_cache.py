"""The cache never goes back, wakes every process, and costs nothing when Redis is dead."""

import asyncio
import itertools
import signal
import time
from collections.abc import AsyncIterator

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from celeus.store import cache as cache_module
from celeus.store.cache import Cache, Waiters
from tests.servers import free_port, running_redis

SESSION = "ses_0190000000007000800000000000000a"
OTHER = "ses_0190000000007000800000000000000b"


@pytest.fixture
async def elsewhere(redis_url: str) -> AsyncIterator[Cache]:
    """The cache of another process."""
    cache = Cache.connect(redis_url)
    yield cache
    await cache.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a Redis keeps is no matter of time: it may be slow where the machine is busy."""
    monkeypatch.setattr(cache_module, "_PATIENCE_SECONDS", 30.0)


async def _listening(event: asyncio.Event) -> None:
    """Wait for the wake that says the subscription stands."""
    await asyncio.wait_for(event.wait(), 5)
    event.clear()


async def test_nothing_is_kept_at_first(cache: Cache) -> None:
    assert await cache.get_status(SESSION) is None


async def test_an_answer_that_came_while_the_process_stood_still_is_taken(cache: Cache) -> None:
    loop = asyncio.get_running_loop()

    def stand_still(turns: int) -> None:
        if turns:
            loop.call_soon(stand_still, turns - 1)
        else:
            time.sleep(1.5 * cache_module._PATIENCE_SECONDS)

    await _found_again(cache, b"one")
    for turns in range(6):
        loop.call_soon(stand_still, turns)
        assert await cache.get_status(SESSION) == b"one", turns


@pytest.mark.usefixtures("patient")
async def test_a_status_is_read_as_it_was_put(cache: Cache, elsewhere: Cache) -> None:
    await cache.put_status(SESSION, 3, "3-0", b'{"round": 1}')
    assert await elsewhere.get_status(SESSION) == b'{"round": 1}'
    assert await elsewhere.get_status(OTHER) is None


@pytest.mark.usefixtures("patient")
async def test_an_older_sequence_never_wins(cache: Cache, elsewhere: Cache) -> None:
    await cache.put_status(SESSION, 10, "v", b"ten")
    await elsewhere.put_status(SESSION, 9, "v", b"nine")
    assert await cache.get_status(SESSION) == b"ten"


@pytest.mark.usefixtures("patient")
async def test_the_same_sequence_under_a_new_version_wins(cache: Cache) -> None:
    await cache.put_status(SESSION, 10, "10", b"before the forecast")
    await cache.put_status(SESSION, 10, "10-forecast", b"with the forecast")
    assert await cache.get_status(SESSION) == b"with the forecast"


@pytest.mark.usefixtures("patient")
@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=8))
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_in_any_order_the_newest_is_kept(shared_redis_url: str, sequences: list[int]) -> None:
    async def put_all() -> bytes | None:
        cache = Cache.connect(shared_redis_url)
        session = f"ses_{next(_numbers)}"
        try:
            for sequence in sequences:
                await cache.put_status(session, sequence, "v", str(sequence).encode())
            return await cache.get_status(session)
        finally:
            await cache.close()

    assert asyncio.run(put_all()) == str(max(sequences)).encode()


_numbers = itertools.count()


@pytest.mark.usefixtures("patient")
async def test_a_key_of_another_type_is_a_miss_that_is_replaced(
    cache: Cache, elsewhere: Cache, redis_url: str
) -> None:
    await cache.put_status(OTHER, 1, "v", b"other")
    with redis.Redis.from_url(redis_url) as client:
        client.rpush(cache_module._status_key(SESSION), "of somebody else")
    assert await cache.get_status(SESSION) is None
    # No other session pays for it
    assert await cache.get_status(OTHER) == b"other"
    await cache.put_status(SESSION, 3, "v", b"three")
    assert await elsewhere.get_status(SESSION) == b"three"


@pytest.mark.usefixtures("patient")
async def test_a_status_is_forgotten_after_its_time(redis_url: str) -> None:
    cache = Cache.connect(redis_url, status_ttl_seconds=100)
    await cache.put_status(SESSION, 1, "v", b"one")
    with redis.Redis.from_url(redis_url) as client:
        assert 0 < client.ttl(cache_module._status_key(SESSION)) <= 100
    await cache.close()


@pytest.mark.usefixtures("patient")
async def test_a_put_wakes_the_waiters_of_its_session_in_every_process(
    cache: Cache, elsewhere: Cache
) -> None:
    async with (
        cache.listen() as waiters,
        waiters.subscribe(SESSION) as mine,
        waiters.subscribe(OTHER) as other,
    ):
        await _listening(mine)
        await _listening(other)
        await elsewhere.put_status(SESSION, 1, "v", b"one")
        await asyncio.wait_for(mine.wait(), 5)
        assert not other.is_set()


async def test_a_process_hears_only_of_sessions_that_somebody_waits_for_there(
    cache: Cache, redis_url: str
) -> None:
    """Else each process would have to take in the news of all the others."""
    with redis.Redis.from_url(redis_url) as client:

        def heard(session: str) -> int:
            count = client.publish(f"celeus:wake:{session}", "1")
            assert isinstance(count, int)
            return count

        async with cache.listen() as waiters:
            async with waiters.subscribe(OTHER) as other:
                await _listening(other)
                assert (heard(SESSION), heard(OTHER)) == (0, 1)
                async with waiters.subscribe(SESSION) as mine, waiters.subscribe(SESSION) as again:
                    await _listening(mine)
                    await _listening(again)
                    assert (heard(SESSION), heard(OTHER)) == (1, 1)
            async with waiters.subscribe(SESSION) as mine:
                await _listening(mine)
                async with asyncio.timeout(5):
                    while heard(OTHER):  # noqa: ASYNC110 - nobody tells that somebody has left
                        await asyncio.sleep(0.01)
                assert heard(SESSION) == 1


@pytest.mark.usefixtures("patient")
async def test_putting_the_same_again_wakes_nobody(cache: Cache, elsewhere: Cache) -> None:
    async with cache.listen() as waiters, waiters.subscribe(SESSION) as mine:
        await _listening(mine)
        await elsewhere.put_status(SESSION, 2, "v", b"two")
        await asyncio.wait_for(mine.wait(), 5)
        mine.clear()
        await elsewhere.put_status(SESSION, 2, "v", b"two")
        await elsewhere.put_status(SESSION, 1, "v", b"one")
        await asyncio.sleep(0.1)
        assert not mine.is_set()


async def test_without_redis_the_cache_misses_and_wakes_its_own_process() -> None:
    cache = Cache.connect(None)
    async with cache.listen() as waiters, waiters.subscribe(SESSION) as mine:
        await cache.put_status(SESSION, 1, "v", b"one")
        assert mine.is_set()
    assert await cache.get_status(SESSION) is None
    await cache.close()


async def test_waiters_that_leave_are_forgotten() -> None:
    waiters = Waiters()
    async with waiters.subscribe(SESSION), waiters.subscribe(SESSION):
        pass
    waiters.wake(SESSION)
    assert waiters._waiting == {}


@pytest.mark.parametrize("answers", [False, True], ids=["silent", "closing"])
async def test_a_redis_that_is_lost_is_tried_once_in_a_pause(
    *, answers: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cache_module, "_PAUSE_SECONDS", 3600.0)
    tries = 0

    async def lost(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal tries
        tries += 1
        if not answers:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(lost, "127.0.0.1", 0)
    cache = Cache.connect(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0")
    for _ in range(50):
        assert await cache.get_status(SESSION) is None
        await cache.put_status(SESSION, 2, "v", b"two")
    assert tries == 1
    assert len(caplog.records) == 1
    await cache.close()
    server.close()
    await server.wait_closed()


async def test_a_redis_that_dies_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_PAUSE_SECONDS", 0.05)
    port = free_port()
    with running_redis(port) as server:
        cache = Cache.connect(server.url)
        await _found_again(cache, b"one")
        server.end()
        assert await cache.get_status(SESSION) is None
        await cache.put_status(SESSION, 2, "v", b"two")
    with running_redis(port):
        await _found_again(cache, b"two")
    await cache.close()


async def test_waiters_are_woken_when_a_lost_redis_is_back() -> None:
    port = free_port()
    cache = Cache.connect(f"redis://127.0.0.1:{port}/0")
    async with cache.listen() as waiters, waiters.subscribe(SESSION) as mine:
        await asyncio.sleep(0.1)
        assert not mine.is_set()
        with running_redis(port):
            await asyncio.wait_for(mine.wait(), 5)
    await cache.close()


async def test_a_listener_ended_while_it_connects_ends(redis_url: str) -> None:
    for _ in range(50):
        cache = Cache.connect(redis_url)
        async with asyncio.timeout(5), cache.listen():
            await asyncio.sleep(0)
        await cache.close()


async def test_a_full_redis_forgets_what_it_cannot_replace(
    cache: Cache, elsewhere: Cache, redis_url: str
) -> None:
    await cache.put_status(SESSION, 1, "v", b"one")
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("maxmemory", "1")
        try:
            await cache.put_status(SESSION, 2, "v", b"two")
            assert await cache.get_status(SESSION) is None
            await _forgotten(elsewhere)
        finally:
            client.config_set("maxmemory", "0")
    await _found_again(cache, b"two")


async def _forgotten(cache: Cache) -> None:
    for _ in range(400):
        if await cache.get_status(SESSION) is None:
            return
        await asyncio.sleep(0.05)
    pytest.fail("the old status is still there after twenty seconds")


async def _found_again(cache: Cache, body: bytes) -> None:
    """Put until it is kept: a machine that is busy may let a first answer come too late."""
    async with asyncio.timeout(20):
        while await cache.get_status(SESSION) != body:
            await cache.put_status(SESSION, 2, "v", body)
            await asyncio.sleep(0.1)


async def test_a_status_that_could_not_be_replaced_is_forgotten_when_redis_is_back() -> None:
    with running_redis() as server:
        ours, other = Cache.connect(server.url), Cache.connect(server.url)
        await ours.put_status(SESSION, 1, "v", b"one")
        assert await other.get_status(SESSION) == b"one"
        server.process.send_signal(signal.SIGSTOP)
        await ours.put_status(SESSION, 2, "v", b"two")
        server.process.send_signal(signal.SIGCONT)
        await ours.put_status(SESSION, 3, "v", b"three")
        assert await ours.get_status(SESSION) is None
        await _forgotten(other)
        await ours.put_status(SESSION, 3, "v", b"three")
        assert await other.get_status(SESSION) == b"three"
        assert await ours.get_status(SESSION) == b"three"
        await ours.close()
        await other.close()

"""Counting by the minute: alone, together, and with a Redis gone or slow."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from celeus.store import rates
from celeus.store.rates import Rates
from tests.servers import free_port, running_redis


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine does not make Redis count as gone."""
    monkeypatch.setattr(rates, "_PATIENCE_SECONDS", 2.0)


@pytest.fixture
async def alone() -> AsyncIterator[Rates]:
    found = Rates.connect(None)
    yield found
    await found.close()


async def passed(counted: Rates, most: int, tries: int, name: str = "n") -> int:
    return sum([await counted.count(name, most) is None for _ in range(tries)])


@pytest.mark.parametrize("together", [False, True])
async def test_so_many_pass_and_no_more(redis_url: str, *, together: bool) -> None:
    counted = Rates.connect(redis_url if together else None)
    assert await passed(counted, 20, 50) == 20
    wait = await counted.count("n", 20)
    assert wait is not None
    assert 1 <= wait <= 60
    assert await passed(counted, 20, 50, "other") == 20
    await counted.close()


async def test_processes_with_one_redis_count_together(redis_url: str) -> None:
    two = [Rates.connect(redis_url) for _ in range(2)]
    found = await asyncio.gather(*(two[i % 2].count("n", 20) for i in range(50)))
    assert sum(wait is None for wait in found) == 20
    for process in two:
        await process.close()


async def test_without_its_redis_each_process_counts_for_itself() -> None:
    counted = Rates.connect(f"redis://127.0.0.1:{free_port()}/0")
    assert await passed(counted, 20, 50) == 20
    await counted.close()


async def test_a_redis_that_hangs_is_tried_once_in_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rates, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(rates, "_PAUSE_SECONDS", 3600.0)
    tries: list[asyncio.StreamReader] = []
    come = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tries.append(reader)
        if await reader.read(4) == b"last":
            come.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        counted = Rates.connect(f"redis://{host}:{port}/0")
        assert await passed(counted, 20, 50) == 20
        # Connections are accepted in their order: whatever was tried came before this one
        _, last = await asyncio.open_connection(host, port)
        last.write(b"last")
        async with asyncio.timeout(60):
            await come.wait()
        assert len(tries) == 2
        last.close()
        await counted.close()


async def test_a_redis_that_comes_back_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_PAUSE_SECONDS", 0.05)
    port = free_port()
    counted = Rates.connect(f"redis://127.0.0.1:{port}/0")
    assert await passed(counted, 20, 50) == 20
    with running_redis(port) as server:
        await asyncio.sleep(0.1)
        assert await passed(counted, 20, 50) == 20
        async with Redis.from_url(server.url) as client:
            assert await client.keys("celeus:rate*")
    await counted.close()


async def test_a_large_limit_holds_and_is_hardly_asked_about(redis_url: str) -> None:
    counted = Rates.connect(redis_url)
    async with Redis.from_url(redis_url) as client:
        await counted.count("n", 12_000)
        before = (await client.info("stats"))["total_commands_processed"]
        assert await passed(counted, 12_000, 2_000) == 2_000
        after = (await client.info("stats"))["total_commands_processed"]
        # A script counts its commands too.
        assert after - before < 2_000
        assert await passed(counted, 12_000, 12_000) == 12_000 - 2_001
    await counted.close()


async def test_memory_stays_bounded_whatever_is_counted(
    alone: Rates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "MOST_NAMES", 100)
    for number in range(1000):
        assert await alone.count(f"name-{number}", 5) is None
    assert len(alone._memory.storage) <= 102
    for number in range(1000):
        await alone.count(f"large-{number}", 60_000)
    assert len(alone._shares) <= 100

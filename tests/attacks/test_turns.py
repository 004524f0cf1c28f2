"""Many requests of one client at once: whoever else asks is answered between them."""

import asyncio
from urllib.parse import urlsplit

from tests.attacks.tally import TRIES
from tests.servers import Service

CONNECTIONS = 100
AHEAD = 8
"""Requests of each, sent before the first answer comes."""
ASKED = b"GET /version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n"
"""Answered without waiting for anything, as most pages are made."""


async def test_others_are_answered_between_requests_made_all_at_once(service: Service) -> None:
    """Every connection had an answer in each turn of the loop, and others waited for them all."""
    place = urlsplit(service.url)
    done, begun = 0, asyncio.Event()

    async def ask() -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(ASKED * AHEAD)
        for _ in range(AHEAD):
            assert await _status(reader) == 200
            TRIES["requests made all at once"] += 1
            done += 1
            begun.set()
        writer.close()

    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    attack = [asyncio.create_task(ask()) for _ in range(CONNECTIONS)]
    await begun.wait()
    counts = []
    while not all(one.done() for one in attack):
        before = done
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await _status(reader) == 200
        counts.append(done - before)
    writer.close()
    await asyncio.gather(*attack)
    assert done == CONNECTIONS * AHEAD
    # Before, more than a hundred: one of every connection in each of several turns
    assert sorted(counts)[len(counts) // 2] < CONNECTIONS // 4, counts


async def _status(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    await reader.readexactly(int(head.split(b"content-length: ")[1].split()[0]))
    return int(head.split()[1])

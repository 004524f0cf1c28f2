"""Many requests of one client at once: whoever else asks is answered between them."""

import asyncio
from collections.abc import Iterable
from urllib.parse import urlsplit

import pytest

from tests.attacks.tally import TRIES
from tests.keys import ADMIN, key_in
from tests.nightly import by_day
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


@pytest.mark.parametrize("shows", by_day(1, ["keys of a project", "wrong keys", "wrong addresses"]))
async def test_a_project_has_its_turns_whatever_the_others_show(
    service: Service, database_url: str, shows: str
) -> None:
    """Every key had turns of its own, and so had every wrong one: one request in a hundred."""
    if shows == "keys of a project":
        keys = [key_in(database_url, project="other") for _ in range(CONNECTIONS)]
        heads = [_head(key) for key in keys]
    elif shows == "wrong keys":
        heads = [_head(f"wrong-{number}") for number in range(CONNECTIONS)]
    else:
        heads = [f"{_head('wrong')}X-Forwarded-For: 10.0.0.{at}\r\n" for at in range(CONNECTIONS)]
    counts = await _answered_meanwhile(service, heads, _head(ADMIN))
    # Before, ninety for keys of a project, each time; now and then the database keeps us waiting
    assert sorted(counts)[len(counts) // 4] < CONNECTIONS // 2, counts


def _head(key: str) -> str:
    return f"GET /v1/pools?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"


async def _answered_meanwhile(service: Service, heads: Iterable[str], own: str) -> list[int]:
    """How many requests of others are answered between two of our own, for some of these."""
    place, done, over = urlsplit(service.url), 0, False

    async def asked(head: str) -> None:
        nonlocal done
        while not over:
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
            writer.write(f"{head}\r\n".encode())
            assert await _status(reader) in {200, 401, 429}
            TRIES["requests of other projects"] += 1
            done += 1
            writer.close()

    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    attack = [asyncio.create_task(asked(head)) for head in heads]
    counts = []
    for number in range(30):
        before = done
        writer.write(f"{own}\r\n".encode())
        assert await _status(reader) == 200
        # The first ones have yet to be known
        counts += [done - before] if number >= 10 else []
    over = True
    writer.close()
    await asyncio.gather(*attack)
    return counts


async def _status(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    await reader.readexactly(int(head.split(b"content-length: ")[1].split()[0]))
    return int(head.split()[1])

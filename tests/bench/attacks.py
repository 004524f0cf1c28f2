"""What an attack costs the others: memory of the process, and how long it says nothing.

Each attack is as long as it may be, or five seconds; another process asks for `/healthz` meanwhile.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from tests.bench.connection import Connection
from tests.bench.gaps import Gaps
from tests.bench.results import Goal, Line
from tests.bench.worlds import World, created
from tests.keys import ADMIN, key_in

SECONDS = 5.0
PART = 64 << 10
MEMORY = Goal.most(200, "MB")
_OPEN = f"Host: x\r\nAuthorization: Bearer {ADMIN}\r\n"


@dataclass(frozen=True, slots=True)
class Target:
    """A server, a pool of payloads, wide ones too where it takes them, and a labeller's key."""

    url: str
    pool: str
    label_key: str

    async def send(self, head: str, parts: AsyncIterator[bytes]) -> None:
        """Send a request for as long as the server takes it; its answer is not read."""
        place = urlsplit(self.url)
        _, writer = await asyncio.open_connection(place.hostname, place.port)
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(SECONDS):
                writer.write(head.encode())
                async for part in parts:
                    writer.write(part)
                    await writer.drain()
                await asyncio.sleep(SECONDS)
        writer.transport.abort()


async def _times(part: bytes, count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield part


async def trailers(target: Target) -> None:
    """Lines behind a body, without end."""
    head = "POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    line = b"a" * 8 + b": " + b"b" * 1_000 + b"\r\n"
    await target.send(head, _times(line * 60, 1 << 12))


async def open_ends(target: Target) -> None:
    """Connections that send a byte now and then behind an answer."""

    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b"\r\n"
            await asyncio.sleep(0.1)

    head = "GET /login HTTP/1.1\r\nHost: x\r\n\r\n"
    await asyncio.gather(*(target.send(head, drip()) for _ in range(160)))


async def unread(target: Target) -> None:
    """Large answers that nobody reads."""
    asked = f"GET /v1/pools/{target.pool}/items?limit=1000 HTTP/1.1\r\n{_OPEN}\r\n"
    await asyncio.gather(
        *(target.send("", _times(asked.encode(), 16)) for _ in range(6)),
    )


async def at_once(target: Target, connections: int = 400) -> None:
    """Pages over many connections, sixteen asked for in each before the first comes."""
    place = urlsplit(target.url)

    async def ask() -> None:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(f"GET /docs HTTP/1.1\r\n{_OPEN}\r\n".encode() * 16)
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(SECONDS):
                while await reader.read(PART):
                    pass
        writer.transport.abort()

    await asyncio.gather(*(ask() for _ in range(connections)))


async def tiny_chunks(target: Target) -> None:
    """Two hundred bodies in chunks of a byte, each as fast as it is taken."""
    head = "POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"1\r\nx\r\n" * (PART // 6)
    await asyncio.gather(*(target.send(head, _times(chunks, 400)) for _ in range(200)))


async def guesses(target: Target) -> None:
    """Two hundred wrong keys, each from another address that a header makes up."""
    for number in range(200):
        made_up = f"X-Forwarded-For: 9.9.9.{number}\r\n"
        wrong = f"ce_{number:016x}_{'wrong'.ljust(43, '-')}"
        async with Connection.to(target.url) as connection:
            await connection.get("/v1/pools", made_up, key=wrong)


async def wide_payloads(target: Target) -> None:
    """A page of items whose payloads have a hundred thousand values each, where they are taken."""
    async with Connection.to(target.url) as connection:
        with suppress(asyncio.IncompleteReadError, OSError):
            await connection.get(f"/v1/pools/{target.pool}/items?limit=1000")


async def large_uploads(target: Target) -> None:
    """Four uploads to verify, of 300 MB each, by a labeller's key, never ended."""
    await asyncio.gather(*(_upload(target, 300 << 20) for _ in range(4)))


async def uploads(target: Target) -> None:
    """Forty of 30 MB each."""
    await asyncio.gather(*(_upload(target, 30 << 20) for _ in range(40)))


async def unwanted_body(target: Target) -> None:
    """A body of a megabyte of empty lists for a route that a labeller's key does not open."""
    body = b'{"pool_id": "x", "a": [' + b"[]," * 300_000 + b"[]]}"
    asked = _label_head(target, "/v1/sessions", len(body))
    await target.send(asked, _times(body, 1))


async def empty_parts(target: Target) -> None:
    """Documents to verify that are eight megabytes of empty objects."""
    body = b"[" + b"{}," * (8 << 20 >> 2) + b"{}]"
    asked = _label_head(target, "/v1/certificates/verify", len(body))
    await asyncio.gather(*(target.send(asked, _times(body, 1)) for _ in range(4)))


async def _upload(target: Target, length: int) -> None:
    head = _label_head(target, "/v1/certificates/verify", length)
    await target.send(head, _times(b" " * PART, length // PART - 1))


def _label_head(target: Target, path: str, length: int) -> str:
    return (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {target.label_key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )


ATTACKS: dict[str, Callable[[Target], Awaitable[None]]] = {
    "trailers without end, no key": trailers,
    "160 connections that never close, no key": open_ends,
    "six readers that do not read": unread,
    "6 400 pages asked for at once": at_once,
    "38 400 pages asked for at once": partial(at_once, connections=2_400),
    "200 bodies in chunks of a byte, no key": tiny_chunks,
    "200 wrong keys with made-up addresses, no key": guesses,
    "payloads of 100 000 values": wide_payloads,
    "4 uploads of 300 MB, held open by a label key": large_uploads,
    "40 uploads of 30 MB, held open by a label key": uploads,
    "a megabyte for a route the key does not open": unwanted_body,
    "eight megabytes of empty parts to verify": empty_parts,
}


async def attack_lines(world: World, *, quick: bool) -> AsyncIterator[Line]:
    """Memory and longest answer under each attack, on a server that has done nothing before."""
    memory: dict[str, list[float]] = {what: [] for what in ATTACKS}
    gaps = Gaps()
    for what, attack in ATTACKS.items():
        for _ in range(1 if quick else 3):
            async with world.services(2) as (helper, url):
                target = await _target(world, helper, url)
                process = _process(url)
                before = _resident_from_here(process)
                async with gaps.during(what, url):
                    began = time.monotonic()
                    await attack(target)
                    await asyncio.sleep(max(0.0, 1.0 - (time.monotonic() - began)))
                memory[what].append(_resident(process, "VmHWM") - before)
    for line in gaps.lines():
        yield line
    for what, grown in memory.items():
        yield Line(f"{what}: memory", grown, "MB", MEMORY)


async def _target(world: World, helper: str, url: str) -> Target:
    async with Connection.to(helper) as connection:
        pool = await created(connection)
        wide: dict[str, list[list[int]]] = {"a": [[] for _ in range(100_000)]}
        rows = [orjson.dumps({"id": f"item-{i}", "payload": wide}) for i in range(40)]
        plain = [orjson.dumps({"id": f"plain-{i}", "payload": "x" * 4_000}) for i in range(1_000)]
        for part in (rows, plain):
            body = b"\n".join(part)
            await connection.post(f"/v1/pools/{pool}/items", body, "application/x-ndjson")
    return Target(url, pool, key_in(world.database_url, "label"))


def _process(url: str) -> int:
    """The process that serves at this address: all of ours have their port in their command."""
    port = f"\0--port\0{urlsplit(url).port}\0".encode()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if port in (place / "cmdline").read_bytes():
                return int(place.name)
    raise LookupError(url)


def _resident_from_here(process: int) -> float:
    """Its memory now; the largest it has had is counted from here on."""
    Path(f"/proc/{process}/clear_refs").write_text("5", encoding="ascii")
    return _resident(process, "VmRSS")


def _resident(process: int, name: str) -> float:
    """Megabytes of memory: `VmRSS` now, `VmHWM` at most."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1_000

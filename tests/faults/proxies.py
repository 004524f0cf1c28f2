"""A proxy that a test puts before a server, to see each piece of a conversation and to cut it.

Where client and server are on one machine and speak over a Unix socket, the kernel says which
process is at the other end: a test can then end just that process, at just that moment.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

PIECE_BYTES = 1 << 16
SOCKET_NAME = ".s.PGSQL.5432"


class Cut(Exception):
    """End the connection here; what was just read goes nowhere."""


@dataclass
class Link:
    """One connection through the proxy; ``notes`` is for the test to remember things by."""

    peer: int
    notes: set[str] = field(default_factory=set)


Look = Callable[[Link, bytes], Awaitable[None]]
"""Sees a piece before it is passed on; raises `Cut` to end the connection instead."""

Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def let_pass(_link: Link, _piece: bytes) -> None:
    """See nothing, do nothing."""


@dataclass
class Proxy:
    """Passes on what both sides say; ``asked`` and ``answered`` may be changed at any time."""

    upstream: Callable[[], Awaitable[Opened]]
    asked: Look = let_pass
    answered: Look = let_pass
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    pumps: set[asyncio.Task[None]] = field(default_factory=set)

    async def end(self, server: asyncio.Server) -> None:
        """Take no more connections, and end those there are."""
        server.close()
        for pump in self.pumps:
            pump.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Join a client with the server until either leaves."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        link = Link(_peer(writer))
        try:
            back, forth = await self.upstream()
        except OSError:
            writer.transport.abort()
            return
        pumps = [
            asyncio.create_task(_pump(reader, forth, lambda piece: self.asked(link, piece))),
            asyncio.create_task(_pump(back, writer, lambda piece: self.answered(link, piece))),
        ]
        self.pumps.update(pumps)
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            for end in (writer, forth):
                end.transport.abort()
            await asyncio.gather(*pumps, return_exceptions=True)
            self.pumps.difference_update(pumps)


async def _pump(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    look: Callable[[bytes], Awaitable[None]],
) -> None:
    with suppress(OSError, Cut):
        while piece := await reader.read(PIECE_BYTES):
            await look(piece)
            writer.write(piece)
            await writer.drain()


def _peer(writer: asyncio.StreamWriter) -> int:
    """Process id at the other end of a Unix socket; 0 where the kernel does not tell."""
    end = writer.get_extra_info("socket")
    if end.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return 0
    told = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", told)[0]
    return pid


@asynccontextmanager
async def before_postgres(database_url: str, folder: Path) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy before a private PostgreSQL, and the address that leads through it."""
    real = database_url.partition("host=")[2]
    proxy = Proxy(lambda: asyncio.open_unix_connection(f"{real}/{SOCKET_NAME}"))
    server = await asyncio.start_unix_server(proxy.serve, folder / SOCKET_NAME)
    try:
        yield proxy, database_url.replace(real, quote(str(folder), safe="/"))
    finally:
        await proxy.end(server)


@asynccontextmanager
async def before_port(port: int, at: int = 0) -> AsyncIterator[tuple[Proxy, int]]:
    """A proxy before a port of loopback, and its own port."""
    proxy = Proxy(lambda: asyncio.open_connection("127.0.0.1", port))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", at)
    try:
        yield proxy, server.sockets[0].getsockname()[1]
    finally:
        await proxy.end(server)

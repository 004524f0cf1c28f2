"""A receiver of webhooks on loopback, which answers as a test wants, well or badly."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

Answering = Callable[[asyncio.StreamWriter], Awaitable[None]]

PATIENCE_SECONDS = 60.0

T = TypeVar("T")


async def until(look: Callable[[], Awaitable[T]], right: Callable[[T], object]) -> T:
    """What is found once it is right."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        found = await look()
        while not right(found):
            await asyncio.sleep(0.05)
            found = await look()
    return found


@dataclass
class Request:
    """What a receiver was sent."""

    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Answers the first requests in these ways, and all others in the last of them."""

    port: int
    answers: list[Answering]
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://127.0.0.1:{self.port}/hook"

    async def sent(self, count: int) -> list[Request]:
        """The first requests, once there are so many."""

        async def look() -> list[Request]:
            return self.requests[:count]

        return await until(look, lambda found: len(found) == count)


def status(code: int, body: str = "", *headers: str) -> Answering:
    """An answer with this status."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        head = "\r\n".join([f"HTTP/1.1 {code} Told", f"Content-Length: {len(body)}", *headers])
        writer.write(f"{head}\r\n\r\n{body}".encode())

    return answer


async def hang(writer: asyncio.StreamWriter) -> None:
    """Say nothing."""
    del writer
    await asyncio.sleep(60)


async def drip(writer: asyncio.StreamWriter) -> None:
    """Say the head a byte at a time, for ever."""
    for byte in b"HTTP/1.1 200 OK\r\nX-Drip: " + b"x" * 1_000:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.5)


async def flood(writer: asyncio.StreamWriter) -> None:
    """Say more than anybody reads."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
    while True:
        writer.write(b"x" * 65_536)
        await writer.drain()


@asynccontextmanager
async def receiving(*answers: Answering) -> AsyncIterator[Receiver]:
    """A receiver, until the block ends."""
    receiver = Receiver(0, list(answers) or [status(204)])
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            tasks.add(task)
        receiver.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = [line.partition(": ") for line in head.split("\r\n")[1:] if line]
            headers = {name.lower(): value for name, _, value in lines}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            receiver.requests.append(Request(headers, body))
            place = min(len(receiver.requests), len(receiver.answers)) - 1
            await receiver.answers[place](writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in tasks:
            task.cancel()

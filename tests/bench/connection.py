"""A keep-alive HTTP/1.1 connection that costs next to nothing, so that the server is measured.

Requests are written by hand on asyncio's streams and answers are read by their Content-Length. A
general client would take as much processor time as the server, on the same cores.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Self
from urllib.parse import urlsplit

import orjson

from tests.keys import ADMIN


@cache
def _head(key: str) -> str:
    return f"Host: bench\r\nAuthorization: Bearer {key}\r\n"


_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ETAG = re.compile(rb"\r\netag: *([^\r]+)", re.IGNORECASE)


class UnexpectedAnswerError(Exception):
    """The server answered with another status than a benchmark can go on with."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, ETag and body of an answer."""

    status: int
    etag: str
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - whatever the wire holds
        """The body as a value; raises unless the status is 200 or 201."""
        if self.status not in {200, 201}:
            raise UnexpectedAnswerError(self.status, self.body[:500])
        return orjson.loads(self.body)


class Connection:
    """One connection to one server; one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    @asynccontextmanager
    async def to(cls, url: str) -> AsyncIterator[Self]:
        """A connection to the server at ``url``, closed on leaving."""
        place = urlsplit(url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            await writer.wait_closed()

    async def get(self, path: str, headers: str = "", *, key: str = ADMIN) -> Answer:
        """Ask; ``headers`` are whole lines, each with its line break."""
        self._writer.write(f"GET {path} HTTP/1.1\r\n{_head(key)}{headers}\r\n".encode())
        return await self._answer()

    async def post(
        self, path: str, body: bytes, media: str = "application/json", *, key: str = ADMIN
    ) -> Answer:
        """Send a body."""
        head = (
            f"POST {path} HTTP/1.1\r\n{_head(key)}Content-Type: {media}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        await self._writer.drain()
        return await self._answer()

    async def send(self, path: str, value: dict[str, Any]) -> Any:  # noqa: ANN401 - as `json`
        """Send a value and return the one in the answer."""
        return (await self.post(path, orjson.dumps(value))).json()

    async def _answer(self) -> Answer:
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        etag = _ETAG.search(head)
        body = await self._reader.readexactly(int(length[1])) if length else b""
        return Answer(int(head[9:12]), etag[1].decode() if etag else "", body)

"""Bounds on what comes before a body: the request line and the headers.

The server's parser takes heads of any length, for any time. Both are bounded here, at the
connection: nothing of the application has seen the request yet.
"""

import asyncio
import resource

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_BYTES = 64 << 10
MOST_SECONDS = 20.0
MOST_CONNECTIONS = 4096
SPARE_FILES = 256
"""Files a process needs beside its connections: those to the database, uploads, the log."""

_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class BoundedHeads(HttpToolsProtocol):
    """A connection that is closed when a head is too long, or takes too long."""

    _in_head = True
    _bytes = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of the request; of a head only as much as it may have."""
        super().data_received(data)
        if not self._in_head:
            return
        self._bytes += len(data)
        if self._bytes > MOST_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        """A head begins: the first one, or that of a further request."""
        self._begin()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._end()
        super().on_headers_complete()

    def _begin(self) -> None:
        self._end()
        self._in_head = True
        self._timer = self.loop.call_later(MOST_SECONDS, self._give_up)

    def _end(self) -> None:
        self._in_head = False
        self._bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def most_connections() -> int:
    """How many connections a process can serve with the files it may open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(SPARE_FILES // 4, min(MOST_CONNECTIONS, files - SPARE_FILES))

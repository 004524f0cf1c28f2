"""One attempt to send one message: guarded, bounded in time and bytes, following no redirection."""

import asyncio
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpcore2

from celeus.errors import InvalidValue
from celeus.operations.webhooks.addresses import AddressRefused, Guard

CONNECT_SECONDS = 5.0
SECONDS = 15.0
"""From the look-up of the name to the end of the answer."""
MOST_READ = 32 << 10
READ_AT_ONCE = 1 << 10
KEPT_BYTES = 1_000
LONGEST_WAIT_SECONDS = 36_000
GONE = 410
_FAILURES = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    OSError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a delivery: the status, the beginning of the answer, and a note on it.

    ``status`` is None if no answer came. ``retry_after`` is when the receiver asks for another try.
    """

    status: int | None = None
    answer: str | None = None
    note: str | None = None
    retry_after: float | None = None

    @property
    def delivered(self) -> bool:
        """Return whether the receiver has taken it."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """Return whether the receiver wants no more."""
        return self.status == GONE


class Sender:
    """Sends messages; one for a process."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """The machine's trusted certificates, read at the first message: that takes 40 ms."""
        return ssl.create_default_context()

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        """Send a message; never raises for what a receiver does."""
        head: list[Outcome] = []
        try:
            async with asyncio.timeout(SECONDS):
                return await self._exchange(url, body, headers, head)
        except TimeoutError:
            late = f"The answer was not complete within {SECONDS:g} s."
        except AddressRefused as refused:
            return Outcome(note=f"Not sent: {refused}.")
        except InvalidValue as refused:
            return Outcome(note=f"Not sent: {refused.line}.")
        except _FAILURES as error:
            late = f"{type(error).__name__}: {error}"[:KEPT_BYTES]
        # Whoever has said that it took the message has it, whatever became of the rest
        return Outcome(head[0].status, head[0].answer, late) if head else Outcome(note=late)

    async def _exchange(
        self, given: str, body: bytes, headers: Mapping[str, str], head: list[Outcome]
    ) -> Outcome:
        url = self.guard.url(given)
        sent = {
            **headers,
            "Content-Type": "application/json",
            "User-Agent": "Celeus-Webhooks/1",
            # Nothing is unpacked, and no connection kept
            "Accept-Encoding": "identity",
            "Connection": "close",
        }
        address = httpcore2.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        backend = _GuardedBackend(await self.guard.addresses(url))
        limits = {"connect": CONNECT_SECONDS, "read": SECONDS, "write": SECONDS}
        async with (
            httpcore2.AsyncConnectionPool(
                ssl_context=self._tls, network_backend=backend
            ) as connections,
            connections.stream(
                "POST",
                address,
                headers=[(name.encode(), value.encode()) for name, value in sent.items()],
                content=body,
                extensions={"timeout": limits},
            ) as response,
        ):
            return await _read(response, head)


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to the addresses that were looked at, whatever the name resolves to now."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as the base has it
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that takes it; the ``host`` is for TLS and the receiver."""
        del host
        options = local_address, socket_options
        refused: Exception = AddressRefused("its host has no address")
        for address in self._addresses:
            try:
                return _Narrow(await self._backend.connect_tcp(address, port, timeout, *options))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                refused = error
        raise refused


class _Narrow(httpcore2.AsyncNetworkStream):
    """A stream of which MOST_READ is read, a little at a time.

    Head, interim answers and the frames of chunks count as well: all of them take time to read, in
    which everybody else waits.
    """

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._left = MOST_READ

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """Return the next bytes, at most READ_AT_ONCE."""
        if self._left <= 0:
            message = f"the answer is longer than {MOST_READ >> 10} KiB"
            raise httpcore2.ReadError(message)
        part = await self._stream.read(min(max_bytes, READ_AT_ONCE), timeout)
        self._left -= len(part)
        return part

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Write all of it."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as the base has it
    ) -> httpcore2.AsyncNetworkStream:
        """Return the stream within TLS."""
        return _Narrow(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - as the base has it
        """Return a property of the connection."""
        return self._stream.get_extra_info(info)


async def _read(response: httpcore2.Response, head: list[Outcome]) -> Outcome:
    """Read a receiver's answer and keep its beginning."""
    status = response.status
    note = None
    if 300 <= status < 400:
        note = "The receiver redirects, and redirects are not followed."
    retry_after = None
    fields = dict(response.headers) if status in {429, 503} else {}
    wait = {name.lower(): value for name, value in fields.items()}.get(b"retry-after", b"")
    if wait.isdigit():
        retry_after = min(float(wait), LONGEST_WAIT_SECONDS)
    head.append(Outcome(status, "", note, retry_after))
    kept = b""
    async for part in response.aiter_stream():
        kept += part[: KEPT_BYTES - len(kept)]
        head[0] = Outcome(status, _text(kept), note, retry_after)
    return head[0]


def _text(kept: bytes) -> str:
    """The beginning of an answer as text; the database cannot hold U+0000."""
    return kept.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")

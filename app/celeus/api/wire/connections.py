"""Bounds on a connection: bytes beside bodies, time without a request, answers nobody reads.

uvicorn parses requests and writes answers, and bounds none of this. A `Connection` stands between
the socket and uvicorn's own protocol: it looks at the same bytes first, with a parser of its own
that keeps nothing, and passes on what is within bounds, one request after the other.
`docs/evidence/decisions/0009-connections.md` says why.
"""

import asyncio
import logging
import resource
import socket
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, NamedTuple, TypeAlias

import httptools
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from celeus.operations.runtime.concurrency import RoundRobin
from celeus.settings import Settings

MOST_BYTES = 64 << 10
"""Most bytes of a head, of anything else before the next byte of a body, and of what was received
and waits for its turn."""
MOST_REST = 16 << 20
"""Most bytes of a request that is answered already: who sends all before reading gets it, too."""
MOST_HEADERS = 100
"""Most headers of a head: each costs more than its bytes, and many layers read them all."""
LEAST_BYTES_A_SECOND = 16 << 10
"""Least rate at which an answer is read, once its patience is used up."""
SEND_BUFFER_BYTES = 256 << 10
"""Most bytes of an answer that the system holds: it would take megabytes, out of our sight."""
IDLE_SECONDS = 65.0
"""Seconds a connection may lie idle: longer than proxies keep theirs, so that they close first."""
MOST_CONNECTIONS = 4096
SPARE_FILES = 256
"""Files a process needs beside its connections: those to the database, uploads, the log."""

BEGIN_AT_ONCE = 2
"""Requests that begin in one turn of the event loop: a page takes up to 10 ms of it."""
PLACES = 16
"""Requests under way of one client with one key: what they wait for may come for all at once. So
many at most wait for a session together."""
PLACES_BESIDE = 8
"""Requests under way of one project, while another one asks as well."""
PLACE_OF_PROJECT_SECONDS = 1.0
"""Longest time, in seconds, a request has one of those if it has no answer before."""
ASKS_SECONDS = 1.0
"""Seconds a project counts as asking after a request."""
PLACE_SECONDS = 0.1
"""Longest time, in seconds, a request has its place: a stream, or a wait for a lock, holds up no
other."""
READ_SECONDS = 0.002
"""Seconds of parsing in one turn of the event loop, and in one connection's turn."""
PART_BYTES = 16 << 10
"""Bytes parsed without a look at the clock: in chunks of one byte that takes 4 ms."""

OPEN = frozenset({"/healthz", "/readyz", "/version"})
"""Paths that need no key; they have turns of their own."""

LOG_SECONDS, MOST_LOGGED = 60.0, 100
"""Seconds in which malformed requests of one client are one line of the log, and the most lines."""

MOST_KNOWN = 10_000
"""Keys and cookies whose project is remembered."""
_OPEN_TO_ALL, _STRANGERS = "open", "strangers"
"""Stand for a project where no key is needed, and where none was shown that worked lately."""


Shown: TypeAlias = tuple[bytes, ...]
"""Values of the header by which a request says whose it is."""


class Flow(NamedTuple):
    """The project and the client (an address with a key) whose requests take turns with others'."""

    project: Hashable
    client: tuple[object, ...]


_END = b"\r\n\r\n"
"""End of a head, and of a body in chunks."""
_SHOWN = {b"authorization", b"cookie", b"x-forwarded-for"}
"""Headers that tell whose a request is."""
_STATE = "celeus.connection"
_logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Connections:
    """Factory of uvicorn's connections, its setting `http`, and the state that they share.

    A client may take `patience_seconds` for a head, for the rest of a request that is answered, and
    between two reads of an answer. Beyond `most` connections, a new one takes the place of the one
    that has been without a request for longest.

    A turn of the event loop takes everything that is ready: a thousand connections of one client
    would hold up everybody else. So few are read, and few requests begin, in each turn: the
    projects by turns, and of each those of one client with one key by turns with those of others,
    however many connections it has. Who has not been let in by a key lately is of no project,
    whatever the key: else everybody could have as many turns as there are wrong ones.
    """

    patience_seconds: float
    most: int
    held: set["Connection"] = field(default_factory=set)
    waiting: dict["Connection", float] = field(default_factory=dict)
    reads: RoundRobin = field(default_factory=lambda: RoundRobin(seconds=READ_SECONDS))
    begins: RoundRobin = field(default_factory=lambda: RoundRobin(BEGIN_AT_ONCE))
    page: bytearray = field(default_factory=lambda: bytearray(MOST_BYTES))
    taken: Counter[Flow] = field(default_factory=Counter)
    queues: dict[Flow, deque[Callable[[], bool]]] = field(default_factory=dict)
    lines: dict[Hashable, "_Line"] = field(default_factory=dict)
    asking: OrderedDict[Hashable, float] = field(default_factory=OrderedDict)
    known: OrderedDict[int, Hashable] = field(default_factory=OrderedDict)
    logged: set[str | None] = field(default_factory=set)
    logged_since: float = -inf

    def __call__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> "Connection":
        """A connection that is about to be made."""
        state = dict(app_state)
        protocol = HttpToolsProtocol(
            config=config, server_state=server_state, app_state=state, _loop=_loop
        )
        return Connection(self, protocol, state)

    @property
    def tick_seconds(self) -> float:
        """Between two looks at the clock; and how long nobody loses a place to another."""
        return min(1.0, self.patience_seconds / 4)

    def begin(self, flow: Flow, do: Callable[[], bool]) -> None:
        """Call ``do`` once the flow and its project have a place for it, and it is its turn.

        Then `leave` and `leave_project`.
        """
        if flow.project not in {_STRANGERS, _OPEN_TO_ALL}:
            self.asking[flow.project] = asyncio.get_running_loop().time()
            self.asking.move_to_end(flow.project)
        if self.taken[flow] < PLACES:
            self.taken[flow] += 1
            self._line_up(flow, do)
        else:
            self.queues.setdefault(flow, deque()).append(do)

    def leave(self, flow: Flow) -> None:
        """Give a place to the next one of the flow."""
        if queue := self.queues.get(flow):
            self._line_up(flow, queue.popleft())
            if not queue:
                del self.queues[flow]
            return
        self.taken[flow] -= 1
        if not self.taken[flow]:
            del self.taken[flow]

    def leave_project(self, project: Hashable) -> None:
        """Give a place to the next one of a project."""
        self.lines[project].under_way -= 1
        self._go_on(project)

    def _line_up(self, flow: Flow, do: Callable[[], bool]) -> None:
        line = self.lines.setdefault(flow.project, _Line())
        line.flows.setdefault(flow, deque()).append(do)
        line.waiting += 1
        self._go_on(flow.project)

    def _go_on(self, project: Hashable) -> None:
        """Have so many of a project begin as there are places for; forget it where none is left."""
        line = self.lines[project]
        while line.waiting and (line.under_way < PLACES_BESIDE or not self._others_ask(project)):
            line.waiting -= 1
            line.under_way += 1
            self.begins.ask(project, partial(self._begin_next, line))
        if not line.waiting and not line.under_way:
            del self.lines[project]

    def _begin_next(self, line: "_Line") -> bool:
        """Do what is the next flow's turn, as often as was asked for."""
        flow, asked = line.flows.popitem(last=False)
        do = asked.popleft()
        if asked:
            line.flows[flow] = asked
        return do()

    def _others_ask(self, project: Hashable) -> bool:
        """Return True if another project has asked lately; forgets those that have not."""
        late = asyncio.get_running_loop().time() - ASKS_SECONDS
        while self.asking and next(iter(self.asking.values())) < late:
            self.asking.popitem(last=False)
        return len(self.asking) > (project in self.asking)

    def know(self, shown: Shown, project: Hashable) -> None:
        """Remember whose requests are that show this, by what Python makes of it: no key stays."""
        self.known[hash(shown)] = project
        self.known.move_to_end(hash(shown))
        if len(self.known) > MOST_KNOWN:
            self.known.popitem(last=False)

    def log_malformed(self, client: str | None, reason: str) -> None:
        """Log a malformed request, unless the client has a line of these `LOG_SECONDS` already."""
        now = asyncio.get_running_loop().time()
        if now >= self.logged_since + LOG_SECONDS:
            self.logged_since = now
            self.logged.clear()
        if client not in self.logged and len(self.logged) < MOST_LOGGED:
            self.logged.add(client)
            _logger.warning("malformed request from %s: %s", client, reason)

    def make_place(self, now: float) -> None:
        """Make place for a connection: end those that have been without a request for longest."""
        while len(self.held) >= self.most and self.waiting:
            oldest, since = next(iter(self.waiting.items()))
            if now - since < self.tick_seconds:
                break
            oldest.end()


@dataclass(slots=True)
class _Line:
    """The requests of a project: by flow those to begin, of which so many wait for a place."""

    flows: OrderedDict[Flow, deque[Callable[[], bool]]] = field(default_factory=OrderedDict)
    waiting: int = 0
    under_way: int = 0


@dataclass(slots=True)
class _Head:
    """A head as far as it has come: its bytes, what it asks for, and what shows who asks."""

    content: bytearray = field(default_factory=bytearray)
    path: bytes = b""
    identity: dict[bytes, Shown] = field(default_factory=dict)
    headers: int = 0
    hosts: int = 0

    @property
    def shown(self) -> Shown:
        """The key, else the cookie."""
        return self.identity.get(b"authorization") or self.identity.get(b"cookie", ())

    def flow(self, client: str | None, known: Mapping[int, Hashable]) -> Flow:
        """The flow that this request belongs to."""
        forwarded = self.identity.get(b"x-forwarded-for", ())
        if self.path.split(b"?")[0].decode("latin-1") in OPEN:
            return Flow(_OPEN_TO_ALL, (client, forwarded, self.shown))
        project = known.get(hash(self.shown), _STRANGERS)
        # Anybody may say anything of where a request comes from, and show any key
        return Flow(project, (client, forwarded if project == _STRANGERS else self.shown))


class Connection(asyncio.BufferedProtocol):
    """A connection within bounds; whoever oversteps them is told so if nothing else is being said.

    A request goes to uvicorn once its head is whole and it is its turn; what comes behind it waits
    for its answer. Its methods `on_…` are those that httptools calls.
    """

    def __init__(
        self, shared: Connections, protocol: asyncio.Protocol, state: dict[str, Any]
    ) -> None:
        self._shared = shared
        self._protocol = protocol
        # uvicorn copies it into every request's scope, where `Answers` looks
        self._state = state
        state[_STATE] = self
        self._loop = asyncio.get_running_loop()
        self.lost = asyncio.Event()
        self._parser = httptools.HttpRequestParser(self)
        # As uvicorn's: both see the same requests in the same bytes
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._fault: tuple[str, str] | None = None
        # What has come and waits to be parsed, and the last bytes before
        self._come = bytearray()
        self._before = b""
        self._head = _Head()
        self._in_head = False
        self._shown: Shown = ()
        self._begun = True
        self._whole = True
        self._body_left: int | None = None
        self._admitted = False
        self._bytes = 0
        self._rest = 0
        self._unanswered = False
        self._speaking = False
        self._to_be_read = False
        self._to_begin = False
        self._uvicorn_pauses = False
        self._paused = False
        self._deadline = inf
        self._place: asyncio.TimerHandle | None = None
        self._place_of_project: asyncio.TimerHandle | None = None
        self._unread = ReadDeadline(shared.patience_seconds)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        self._transport = transport
        system = transport.get_extra_info("socket")
        system.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        shared = self._shared
        now = self._loop.time()
        shared.make_place(now)
        shared.held.add(self)
        shared.waiting[self] = now
        self._deadline = now + shared.patience_seconds
        client = transport.get_extra_info("peername")
        self._client = client and client[0]
        self._flow = Flow(_STRANGERS, (self._client,))
        self._protocol.connection_made(_Written(self, transport))
        self._tick()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._timer.cancel()
        self._forget()
        self.lost.set()
        self._leave()
        self._leave_project()
        self._protocol.connection_lost(exc)
        # What refers to each other here would wait for the garbage collector
        self._state.clear()
        self._come.clear()
        del self._parser, self._protocol, self._head

    def get_buffer(self, sizehint: int) -> memoryview:
        """Room for what comes next."""
        del sizehint
        return memoryview(self._shared.page)[: max(1, MOST_BYTES - len(self._come))]

    def buffer_updated(self, nbytes: int) -> None:
        """Have what came read, in its turn."""
        self._come += self._shared.page[:nbytes]
        self._ask_to_be_read()
        self._mind_reading()

    def eof_received(self) -> None:
        """Have uvicorn close it."""
        self._protocol.eof_received()

    def pause_writing(self) -> None:
        """Pass it on."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._protocol.resume_writing()

    def on_message_begin(self) -> None:
        """A head begins."""
        if not self._begun or not self._whole or self._unanswered:
            # No end of a request was where they all are
            self._fault = ("400 Bad Request", "A request has an end.")
        self._in_head = True
        self._begun = False
        self._whole = False
        self._body_left = None
        self._head = _Head()
        self._rest = 0

    def on_url(self, url: bytes) -> None:
        """A part of what is asked for."""
        self._head.path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count headers; refuse what follows a body, which uvicorn would take for the head's."""
        head = self._head
        head.headers += 1
        if head.headers > MOST_HEADERS:
            self._fault = (
                "431 Request Header Fields Too Large",
                f"At most {MOST_HEADERS} headers.",
            )
            # Nor parse the rest
            raise ValueError(self._fault)
        if not self._in_head:
            self._fault = ("400 Bad Request", "Trailers are not taken.")
            return
        name = name.lower()
        if name == b"host":
            head.hosts += 1
        elif name == b"content-length":
            self._body_left = int(value)
        elif name in _SHOWN:
            head.identity[name] = *head.identity.get(name, ()), value

    def on_headers_complete(self) -> None:
        """A request goes to the application, which has all the time it needs once it is whole."""
        self._in_head = False
        self._unanswered = True
        self._shown = self._head.shown
        self._flow = self._head.flow(self._client, self._shared.known)
        old = self._parser.get_http_version() == "1.0"
        if self._head.hosts != 1 and not (old and self._head.hosts == 0):
            self._fault = ("400 Bad Request", "A request has one header Host.")

    def on_body(self, body: bytes) -> None:
        """Count the bytes before the next byte of a body from zero."""
        self._bytes = 0
        if self._body_left is not None:
            self._body_left -= len(body)

    def on_message_complete(self) -> None:
        """A request is there to its end."""
        self._bytes = 0
        self._body_left = None
        self._whole = True
        self._wait()

    def admitted(self, project: Hashable) -> None:
        """The request has a key that works: whoever sent it may take their time for its body."""
        self._shared.know(self._shown, project)
        self._admitted = True
        self._wait()

    def sends(self, message: Message) -> None:
        """A part of an answer was given to the transport."""
        if not self._speaking:
            self._leave_project()
        self._speaking = True
        self._unread.written += len(message.get("body", b""))

    def answered(self) -> None:
        """An answer is complete."""
        self._speaking = False
        self._unanswered = False
        self._admitted = False
        self._leave()
        self._leave_project()
        self._wait()
        self._ask_to_be_read()

    def end(self) -> None:
        """Close it at once, whatever is still to be sent."""
        self._forget()
        self._transport.abort()

    def pause_for_uvicorn(self, *, pauses: bool) -> None:
        """Read nothing for as long as uvicorn has enough of a body."""
        self._uvicorn_pauses = pauses
        self._mind_reading()

    def _mind_reading(self) -> None:
        """Take nothing more from the system than has its turn soon, or finds room."""
        full = len(self._come) >= MOST_BYTES
        paused = self._uvicorn_pauses or self._to_be_read or full
        if paused != self._paused and not self._transport.is_closing():
            self._paused = paused
            if paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _may_be_read(self) -> bool:
        """Return True if received bytes may be parsed: no whole request waits for its answer."""
        if not self._come or self._to_begin or self.lost.is_set() or self._transport.is_closing():
            return False
        return not (self._whole and self._unanswered)

    def _ask_to_be_read(self) -> None:
        if not self._to_be_read and self._may_be_read():
            self._to_be_read = True
            self._shared.reads.ask(self._flow, self._read)

    def _read(self) -> bool:
        """Take what has come, up to the end of a request, in parts within the bound on bytes."""
        late = time.perf_counter() + READ_SECONDS
        read = False
        while self._may_be_read() and not (read and time.perf_counter() > late):
            part = bytes(self._come[: self._length_of_part()])
            del self._come[: len(part)]
            self._take(part)
            read = True
        self._to_be_read = False
        self._ask_to_be_read()
        if not self.lost.is_set():
            self._mind_reading()
        return read

    def _length_of_part(self) -> int:
        """The number of received bytes to parse at once: none behind where a request may end."""
        most = min(len(self._come), MOST_BYTES - self._bytes, PART_BYTES)
        if self._body_left and not self._in_head:
            return min(most, self._body_left)
        # An end may have begun with what is parsed already
        begun = (self._before + self._come[: len(_END) - 1]).find(_END)
        if begun >= 0:
            end = begun + len(_END) - len(self._before)
        else:
            end = self._come.find(_END, 0, most) + len(_END)
        if end >= len(_END) or begun >= 0:
            most = min(most, end)
        self._before = (self._before + self._come[max(0, most - len(_END)) : most])[1 - len(_END) :]
        return most

    def _take(self, part: bytes) -> None:
        self._bytes += len(part)
        if not self._unanswered:
            self._deadline = min(self._deadline, self._loop.time() + self._shared.patience_seconds)
            self._rest += len(part)
        broken = False
        try:
            self._parser.feed_data(part)
        except httptools.HttpParserUpgrade:
            # As for uvicorn, which goes on with the old protocol
            pass
        except httptools.HttpParserError:
            broken = True
        if self._bytes >= MOST_BYTES:
            self._fault = ("431 Request Header Fields Too Large", "Too much before a body.")
        if self._fault is not None or self._rest > MOST_REST:
            self._refuse()
        elif broken:
            self._shared.log_malformed(self._client, "no HTTP")
            # It finds out for itself, and says so, if this is no HTTP
            self._protocol.data_received(bytes(self._head.content + part))
            self._transport.close()
        elif self._begun:
            self._protocol.data_received(part)
        else:
            self._head.content += part
            if not self._in_head:
                self._to_begin = True
                self._wait()
                self._shared.begin(self._flow, self._begin)

    def _begin(self) -> bool:
        """Give the request to uvicorn, which makes a task of it."""
        self._to_begin = False
        self._place = self._loop.call_later(PLACE_SECONDS, self._leave)
        self._place_of_project = self._loop.call_later(
            PLACE_OF_PROJECT_SECONDS, self._leave_project
        )
        if self.lost.is_set() or self._transport.is_closing():
            self._leave()
            self._leave_project()
            return False
        self._begun = True
        self._wait()
        head, self._head = self._head, _Head()
        self._protocol.data_received(bytes(head.content))
        self._ask_to_be_read()
        return True

    def _leave(self) -> None:
        if self._place is not None:
            self._place.cancel()
            self._place = None
            self._shared.leave(self._flow)

    def _leave_project(self) -> None:
        if self._place_of_project is not None:
            self._place_of_project.cancel()
            self._place_of_project = None
            self._shared.leave_project(self._flow.project)

    def _refuse(self) -> None:
        if self._fault is not None:
            self._shared.log_malformed(self._client, self._fault[1])
        # Only where nothing but this can be meant: no other answer is under way, none was given
        expected = not self._in_head
        if self._fault is not None and self._unanswered == expected and not self._speaking:
            status, reason = self._fault
            self._transport.write(
                f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\n"
                f"content-length: {len(reason)}\r\nconnection: close\r\n\r\n{reason}".encode()
            )
        self._transport.close()

    def _wait(self) -> None:
        """For the client, unless it waits for us: then for as long as that takes.

        It waits for us with a request that is whole, that a key has opened, or that waits its turn.
        """
        shared = self._shared
        if self not in shared.held:
            return
        shared.waiting.pop(self, None)
        waits = self._unanswered and (self._whole or self._admitted or self._to_begin)
        if waits:
            self._deadline = inf
            return
        now = self._loop.time()
        shared.waiting[self] = now
        self._deadline = now + (IDLE_SECONDS if self._whole else shared.patience_seconds)

    def _forget(self) -> None:
        self._shared.held.discard(self)
        self._shared.waiting.pop(self, None)

    def _tick(self) -> None:
        """Look at the clock for as long as the connection is there, whatever was sent or closed."""
        now = self._loop.time()
        size = self._transport.get_write_buffer_size()
        if self._unread.late(now, size) or (not size and now > self._deadline):
            self.end()
        self._timer = self._loop.call_later(self._shared.tick_seconds, self._tick)


class _Written(asyncio.Transport):
    """The transport that uvicorn writes to: it drops writes once the connection is gone."""

    def __init__(self, connection: Connection, transport: asyncio.Transport) -> None:
        super().__init__()
        self._connection = connection
        self._transport = transport
        self.get_extra_info = transport.get_extra_info  # type: ignore[method-assign]
        self.is_closing = transport.is_closing  # type: ignore[method-assign]
        self.close = transport.close  # type: ignore[method-assign]

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Pass it on."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def pause_reading(self) -> None:
        """Pass it on."""
        self._connection.pause_for_uvicorn(pauses=True)

    def resume_reading(self) -> None:
        """Pass it on."""
        self._connection.pause_for_uvicorn(pauses=False)


class ReadDeadline:
    """Deadline for reading answers: a client may not stop for `patience`, nor read slowly."""

    def __init__(self, patience: float) -> None:
        self.written = 0
        self._patience = patience
        self._began: tuple[float, int] | None = None
        self._read = 0
        self._deadline = inf

    def late(self, now: float, size: int) -> bool:
        """Return True if the client reads too slowly; `size` bytes of its answers are unsent."""
        read = self.written - size
        if not size:
            self._began = None
        elif self._began is None:
            self._began = now, read
            self._read = read
            self._deadline = now + self._patience
        elif read > self._read:
            self._read = read
            began, before = self._began
            earned = (read - before) / LEAST_BYTES_A_SECOND
            self._deadline = min(now, began + earned) + self._patience
        return size > 0 and now > self._deadline


class Answers:
    """Tell a connection when its answers begin and end."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        connection: Connection | None = scope.get("state", {}).get(_STATE)
        if connection is None:
            await self.app(scope, receive, send)
            return
        complete = whole = False

        async def heard() -> Message:
            nonlocal whole
            if whole:
                return await _heard_or_lost(receive, connection)
            message = await receive()
            whole = not message.get("more_body", False)
            return message

        async def counted(message: Message) -> None:
            nonlocal complete
            await send(message)
            connection.sends(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                complete = True
                connection.answered()

        try:
            await self.app(scope, heard, counted)
            if not complete and connection.lost.is_set():
                # Nobody listens; else uvicorn would call it an error
                with suppress(RuntimeError):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if not complete:
                connection.answered()


def admit(scope: Scope, project: Hashable) -> None:
    """Tell the connection of a request, where there is one, that its key works, and whose it is."""
    connection: Connection | None = scope.get("state", {}).get(_STATE)
    if connection is not None:
        connection.admitted(project)


async def _heard_or_lost(receive: Receive, connection: Connection) -> Message:
    """Wait until the client of a whole request is gone, even if another request follows it."""
    heard = asyncio.ensure_future(receive())
    lost = asyncio.ensure_future(connection.lost.wait())
    try:
        await asyncio.wait({heard, lost}, return_when=asyncio.FIRST_COMPLETED)
        return heard.result() if heard.done() else {"type": "http.disconnect"}
    finally:
        heard.cancel()
        lost.cancel()


def server_options(settings: Settings, most: int) -> dict[str, Any]:
    """Options of uvicorn for connections: bounds, how many at most, and trusted proxies."""
    return {
        "http": Connections(settings.client_timeout_seconds, most - 1),
        # Nor another protocol on the same connection, where `websockets` is installed
        "ws": "none",
        "limit_concurrency": most,
        # Ends later than a connection's own, which no byte disarms
        "timeout_keep_alive": 2 * int(IDLE_SECONDS),
        "proxy_headers": bool(settings.proxies),
        "forwarded_allow_ips": settings.proxies,
    }


def most_connections() -> int:
    """Raise the limit of open files, and return how many connections the process can serve."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + SPARE_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(SPARE_FILES // 4, wanted - SPARE_FILES)

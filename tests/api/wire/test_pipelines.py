"""Requests sent one after the other over a connection: how they are read, and how many wait."""

import asyncio
import gc
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from celeus.api.wire import connections
from celeus.api.wire.connections import MOST_BYTES, PLACES, Answers, Connection, admit
from celeus.settings import Settings
from tests.api.serving import served

AHEAD = 5_000
"""Requests that are more bytes than one connection may have waiting."""


class Slow:
    """Answers with path and body, once it may; tells how much waits meanwhile.

    Every key works, and is of the same project.
    """

    def __init__(self) -> None:
        self.began, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()
        self.asked = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        assert scope["type"] == "http", "it has nothing to start"
        self.asked += 1
        self.began.set()
        if b"authorization" in dict(scope["headers"]):
            admit(scope, "of the key")
        while not self.go_on.is_set():  # noqa: ASYNC110 -- of another thread
            await asyncio.sleep(0.01)
        judgement = scope["path"].encode()
        while True:
            message = await receive()
            judgement += b" " + message["body"] if message["body"] else b""
            if not message["more_body"]:
                break
        length = (b"content-length", b"%d" % len(judgement))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": judgement})


def asked(path: str, *headers: str, body: bytes = b"", method: str = "POST") -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"{method} /{path} HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode() + body


def answers(line: socket.socket, count: int) -> list[bytes]:
    """The bodies of so many answers."""
    got, found = b"", list[bytes]()
    while len(found) < count:
        while b"\r\n\r\n" not in got:
            got += _more(line)
        head, got = got.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().split(b"content-length: ")[1].split()[0])
        while len(got) < length:
            got += _more(line)
        found.append(got[:length])
        got = got[length:]
    assert not got
    return found


def _more(line: socket.socket) -> bytes:
    more = line.recv(1 << 16)
    assert more, "the server has closed it"
    return more


def living(kind: type) -> list[object]:
    return [living_object for living_object in gc.get_objects() if isinstance(living_object, kind)]


def test_one_request_of_a_connection_is_parsed_at_a_time(settings: Settings) -> None:
    """Sixteen of each of thousands of connections were, in one turn of the event loop."""
    slow = Slow()
    slow.go_on.clear()
    with (
        served(settings, app=Answers(slow)) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as line,
    ):
        before = len(living(RequestResponseCycle))
        line.sendall(b"".join(asked(str(number), method="GET") for number in range(16)))
        assert slow.began.wait(30)
        threading.Event().wait(0.3)
        assert len(living(RequestResponseCycle)) - before <= 1
        slow.go_on.set()
        assert answers(line, 16) == [b"/%d" % number for number in range(16)]


@pytest.mark.parametrize(("place_seconds", "begun"), [(60.0, PLACES + 1), (0.05, 41)])
def test_few_requests_of_a_key_are_under_way_at_once_and_anothers_go_on(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, place_seconds: float, begun: int
) -> None:
    """What hundreds wait for comes for all at once; a stream leaves its place to the next one."""
    monkeypatch.setattr(connections, "PLACE_SECONDS", place_seconds)
    slow = Slow()
    with served(settings, app=Answers(slow)) as port, ExitStack() as lines:

        def ask(key: str) -> socket.socket:
            line = lines.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            line.sendall(asked(key, f"Authorization: Bearer {key}", method="GET"))
            return line

        # Only keys that work have places of their own
        for key in ("many", "other"):
            assert answers(ask(key), 1) == [b"/" + key.encode()]
        slow.asked = 0
        slow.go_on.clear()
        many = [ask("many") for _ in range(40)]
        other = ask("other")
        deadline = time.monotonic() + 30
        while slow.asked < begun and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.3)
        assert slow.asked == begun
        many.pop().close()
        slow.go_on.set()
        assert answers(other, 1) == [b"/other"]
        for line in many:
            assert answers(line, 1) == [b"/many"]


def test_what_waits_behind_a_request_is_bounded_and_answered_in_its_order(
    settings: Settings,
) -> None:
    slow = Slow()
    slow.go_on.clear()
    with (
        served(settings, app=Answers(slow)) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as line,
    ):
        content = b"".join(asked(str(number), method="GET") for number in range(AHEAD))
        assert len(content) > 2 * MOST_BYTES
        sending = threading.Thread(target=line.sendall, args=(content,))
        sending.start()
        assert slow.began.wait(30)
        threading.Event().wait(0.5)
        held = [
            connection for connection in living(Connection) if isinstance(connection, Connection)
        ]
        assert max(len(draw._come) for draw in held) <= MOST_BYTES
        slow.go_on.set()
        assert answers(line, AHEAD) == [b"/%d" % number for number in range(AHEAD)]
        sending.join()


def _sized(path: str, body: bytes) -> tuple[bytes, bytes]:
    return asked(path, f"Content-Length: {len(body)}", body=body), _said(path, body)


def _in_chunks(path: str, body: bytes) -> tuple[bytes, bytes]:
    parts = [body[number : number + 7] for number in range(0, len(body), 7)]
    chunks = b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in parts)
    last = b"000;last=1" if len(body) % 2 else b"0"
    content = asked(path, "Transfer-Encoding: chunked", body=chunks + last + b"\r\n\r\n")
    return content, _said(path, body)


def _alone(path: str, body: bytes) -> tuple[bytes, bytes]:
    del body
    return b"\r\n\r\n" + asked(path, method="GET"), _said(path, b"")


def _said(path: str, body: bytes) -> bytes:
    return f"/{path}".encode() + body.replace(b" ", b"") if body else f"/{path}".encode()


FORMS: list[Callable[[str, bytes], tuple[bytes, bytes]]] = [_sized, _in_chunks, _alone]
LIKE_ENDS = [b"", b"0\r\n\r\n", b"\r\n\r\n\r\n", b"\r", asked("x"), b"\r\n\r\nx" * 99]
"""Bodies that look as if a request ended in them."""


@pytest.mark.parametrize("seed", range(4))
def test_requests_end_where_they_end_however_they_come(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """In parts of any length, read a part at a time."""
    monkeypatch.setattr(connections, "READ_SECONDS", 0.0)
    monkeypatch.setattr(connections, "PART_BYTES", [1, 5, 64, 1 << 14][seed])
    chance = random.Random(seed)  # noqa: S311
    requests = [
        chance.choice(FORMS)(str(number), chance.choice(LIKE_ENDS) * chance.randrange(3))
        for number in range(60)
    ]
    content = b"".join(asked for asked, _ in requests)
    app: ASGIApp = Answers(Slow())
    with (
        served(settings, app=app) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as line,
    ):
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while content:
            part = chance.choice([1, 2, 3, 50, 1_000])
            line.sendall(content[:part])
            content = content[part:]
        found = answers(line, len(requests))
    assert [part.replace(b" ", b"") for part in found] == [
        part.replace(b" ", b"") for _, part in requests
    ]

"""Connections of a real server: heads without end, and clients that say nothing."""

import asyncio
import logging
import resource
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from celeus.api.wire import connections, limits
from celeus.api.wire.connections import Answers
from celeus.settings import Settings
from tests.api.serving import served
from tests.keys import bearer

PATHS = (b"first", b"second")


@pytest.fixture
def port(settings: Settings) -> Iterator[int]:
    """A server that waits half a second for a head, and a fifth of one for a body."""
    impatient = {"client_timeout_seconds": 0.5, "body_timeout_seconds": 0.2}
    with served(settings.model_copy(update=impatient)) as port:
        yield port


async def said(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """Everything the server says to what it is sent; it has five seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = bytearray()

    async def listen() -> None:
        with suppress(ConnectionError):
            while part := await reader.read(1 << 16):
                answer.extend(part)

    async with asyncio.timeout(5):
        listening = asyncio.create_task(listen())
        with suppress(ConnectionError):
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause)
        await listening
    writer.close()
    return bytes(answer)


async def test_a_head_of_any_usual_size_is_taken(port: int) -> None:
    answer = await asyncio.to_thread(
        httpx.get, f"http://127.0.0.1:{port}/healthz", headers={"X-Long": "x" * 60_000}
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "line", [b"GET /" + b"x" * 9999, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 2000]
)
async def test_a_head_without_end_is_refused_and_not_kept(port: int, line: bytes) -> None:
    more = [b"x" * 10_000] * 6
    assert (await said(port, line, *more, pause=0.02)).startswith(b"HTTP/1.1 431 ")


async def test_a_head_that_does_not_come_is_not_waited_for(port: int) -> None:
    assert await said(port) == b""
    slowly = (b"GET /healthz HTTP/1.1\r\n", *[b"X: y\r\n"] * 20)
    assert await said(port, *slowly, pause=0.05) == b""
    first = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = await said(port, first, *slowly, pause=0.05)
    assert answer.count(b"HTTP/1.1 200") == 1, "the second one of a connection neither"


async def test_a_body_of_one_byte_at_a_time_ends_with_its_connection(port: int) -> None:
    head = (
        "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: {bearer()['Authorization']}\r\nContent-Length: 1000\r\n\r\n"
    )
    answer = await said(port, head.encode(), *[b" "] * 40, pause=0.05)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"body_too_slow"' in answer


@pytest.mark.parametrize(("fair_seconds", "first", "second"), [(0.0, 408, 422), (60.0, 422, 429)])
async def test_bodies_hold_so_much_memory_together(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    fair_seconds: float,
    first: int,
    second: int,
) -> None:
    """Each of 1 500 bodies of a megabyte lay in memory until it was whole."""
    monkeypatch.setattr(limits, "MOST_HELD_BYTES", 300_000)
    monkeypatch.setattr(limits, "FAIR_SECONDS", fair_seconds)
    size = limits.FREE_BYTES + 200_000
    sizes: list[int] = []

    def counted(room: limits._Room, body: limits._Body, held: int) -> None:
        sizes.append(held)
        hold(room, body, held)

    hold = limits._Room.hold
    monkeypatch.setattr(limits._Room, "hold", counted)
    head = (
        "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: {bearer()['Authorization']}\r\nContent-Length: {size}\r\n\r\n"
    )
    body = b'{"a": 1' + b" " * (size - 8) + b"}"
    with served(settings) as port:
        lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        async with asyncio.timeout(20):
            _, begun = lines[0]
            begun.write(head.encode() + body[:-1])
            await begun.drain()
            while not sizes or max(sizes) < 199_999:  # noqa: ASYNC110 -- of another thread
                await asyncio.sleep(0.01)
            lines[1][1].write(head.encode() + body)
            assert (await lines[1][0].readline()).split()[1] == str(second).encode()
            if first != 408:
                begun.write(body[-1:])
            assert (await lines[0][0].readline()).split()[1] == str(first).encode()
        for _, writer in lines:
            writer.close()


@pytest.mark.parametrize("path", ["/v1/sessions", "/v1/pools/{pool}/items"])
async def test_a_client_that_leaves_in_mid_body_is_no_failure_of_ours(
    settings: Settings, path: str
) -> None:
    with served(settings) as port:
        url = f"http://127.0.0.1:{port}"
        client = httpx.AsyncClient(base_url=url, headers=bearer(), timeout=20)
        made = await client.post("/v1/pools", json={"name": "p", "loss": {"kind": "zero_one"}})
        media = "application/x-ndjson" if "{pool}" in path else "application/json"
        head = (
            f"POST {path.format(pool=made.json()['id'])} HTTP/1.1\r\nHost: x\r\n"
            f"Content-Type: {media}\r\nAuthorization: {bearer()['Authorization']}\r\n"
            "Content-Length: 1000\r\n\r\n{"
        )
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode())
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.close()
        async with asyncio.timeout(20):
            while 'status="408"} 1.0' not in (metrics := (await client.get("/metrics")).text):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert 'status="500"' not in metrics
        await client.aclose()


BEGUN_SIGNING_IN = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nk"


@pytest.mark.parametrize(
    "begun", [b"", BEGUN_SIGNING_IN, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + BEGUN_SIGNING_IN]
)
async def test_a_new_connection_takes_the_place_of_one_whose_client_is_waited_for(
    settings: Settings, begun: bytes
) -> None:
    """Also in the middle of a body, where no key has opened anything."""
    with served(settings, most=4) as port:
        url = f"http://127.0.0.1:{port}/healthz"
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(9)]
        for _, writer in idle:
            writer.write(begun)
        # Before their time is over, but not before they had a chance to ask for anything
        async with asyncio.timeout(settings.client_timeout_seconds / 2):
            while (await asyncio.to_thread(httpx.get, url)).status_code != 200:
                pass
            # Of those who had begun, all but three were told at once that there is no place
            for reader, _ in [] if begun else idle[:6]:
                with suppress(ConnectionError):
                    assert await reader.read() == b""
        for _, writer in idle:
            writer.close()
            # Else the connections would stand while the server waits for their ends
            with suppress(ConnectionError):
                await writer.wait_closed()


async def test_requests_beyond_the_limit_are_told_so(settings: Settings) -> None:
    begun = (
        "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: {bearer()['Authorization']}\r\nContent-Length: 9\r\n"
        "Expect: 100-continue\r\n\r\n"
    )
    with served(settings, most=3) as port:
        url = f"http://127.0.0.1:{port}/healthz"
        busy = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for reader, writer in busy:
            writer.write(begun.encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 100 ")
        assert (await asyncio.to_thread(httpx.get, url)).status_code == 503
        for _, writer in busy:
            writer.close()
        async with asyncio.timeout(20):
            while (await asyncio.to_thread(httpx.get, url)).status_code != 200:
                pass


async def test_a_proxy_that_is_named_is_believed(settings: Settings) -> None:
    named = {"trusted_proxies": "10.0.0.0/8 127.0.0.1", "failed_keys_per_minute": 2}
    with served(settings.model_copy(update=named)) as port:
        url = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=url) as client:
            for number in range(6):
                headers = {"X-Forwarded-For": f"127.0.0.1, 9.9.{number}.9"}
                assert (await client.get("/v1/pools", headers=headers)).status_code == 401
            # The last one that is not trusted is whom the proxy saw; who that says it was is not
            headers = {"X-Forwarded-For": "9.9.7.9, 9.9.0.9"}
            # Twice as many where Redis, which counts for all processes, is too slow
            answers = [await client.get("/v1/pools", headers=headers) for _ in range(6)]
            assert answers[-1].status_code == 429


@pytest.mark.parametrize("proxies", ["*", "proxy.example", "10.0.0.1/8", "10.0.0.0/8,127.0.0.1"])
def test_a_proxy_is_an_address_or_a_network(proxies: str) -> None:
    with pytest.raises(ValidationError):
        Settings(trusted_proxies=proxies)


def test_answers_are_read_at_a_least_rate() -> None:
    rate = connections.LEAST_BYTES_A_SECOND
    for speed, late in ((0, 21), (rate // 2, 41), (2 * rate, None)):
        unread = connections.ReadDeadline(patience=20.0)
        unread.written = size = 100 * rate
        passed = (second for second in range(50) if unread.late(second, size - speed * second))
        assert next(passed, None) == late


def test_a_process_takes_no_more_connections_than_it_may_open_files() -> None:
    most = connections.most_connections()
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 0 < most <= max(64, min(4096, files))


@pytest.mark.parametrize("completes", [True, False])
def test_a_reset_is_told_to_every_request_of_its_connection(
    settings: Settings, caplog: pytest.LogCaptureFixture, *, completes: bool
) -> None:
    began, reset, done = threading.Event(), threading.Event(), threading.Event()

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["path"] == "/first", "the other waits for its turn"
        began.set()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while (await receive())["type"] != "http.disconnect":
            pass
        reset.set()
        if completes:
            await send({"type": "http.response.body", "body": b"for nobody"})
        done.set()

    logger = logging.getLogger("uvicorn.error")
    with served(settings, app=Answers(answering)) as port:
        logger.addHandler(caplog.handler)
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            line.sendall(b"".join(b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % path for path in PATHS))
            assert began.wait(30)
            assert line.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert reset.wait(30)
        assert done.wait(30)
    logger.removeHandler(caplog.handler)
    assert caplog.messages == []

"""Connections that send, wait or refuse to read without end: bounded, whoever they are.

The server has half a second of patience, and no proxy whose word it takes.
"""

import itertools
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.attacks.tally import TRIES
from tests.attacks.test_bombs import peak_bytes
from tests.attacks.wire import request, sent
from tests.attacks.world import client_of, made
from tests.keys import ADMIN
from tests.servers import Service, running_services

MEGABYTE = 1 << 20
PATIENCE = 0.5
GENEROUS_SECONDS = 240
WRONG_KEYS = 10
WRONG = "ce_0000000000000009_" + "wrong".ljust(43, "-")


@pytest.fixture(scope="module")
def running_service(postgres_url: str, shared_redis_url: str) -> Iterator[Service]:
    """A server that is impatient."""
    own = {
        "CELEUS_CLIENT_TIMEOUT_SECONDS": str(PATIENCE),
        "CELEUS_FAILED_KEYS_PER_MINUTE": str(WRONG_KEYS),
    }
    with running_services(1, postgres_url, shared_redis_url, own) as [service]:
        yield service


@contextmanager
def line(service: Service, receives: int = 1 << 16) -> Iterator[socket.socket]:
    """A connection to the server that holds few bytes which nobody reads."""
    address = urlsplit(service.url)
    assert address.hostname is not None
    assert address.port is not None
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        # A peer whose window is shut looks for an end ever more rarely: far longer than one takes
        opened.settimeout(GENEROUS_SECONDS)
        opened.connect((address.hostname, address.port))
        yield opened


def ended(opened: socket.socket) -> bool:
    """Whether the server ends the connection, within a generous time."""
    try:
        while opened.recv(1 << 16):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def cut_off(opened: socket.socket, content: bytes) -> bool:
    """Whether the server ends the connection before it has got all of it."""
    try:
        opened.sendall(content)
    except ConnectionError:
        return True
    return False


def held(service: Service) -> int:
    """How many connections the server holds, as the kernel counts them."""
    port = f":{urlsplit(service.url).port:04X}"
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    # One that listens has no peer; one that was closed has no inode, whatever it still has to send
    return sum(
        row[1].endswith(port) and not row[2].endswith(":0000") and row[9] != "0" for row in rows
    )


def holds(service: Service, most: int) -> bool:
    """Whether the server comes down to so many, within a generous time."""
    deadline = time.monotonic() + GENEROUS_SECONDS
    while held(service) > most:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def get(path: str, *headers: str, host: str = "Host: celeus.test\r\n") -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"GET {path} HTTP/1.1\r\n{host}{lines}\r\n".encode()


CHUNKED = get("/login", "Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\n"


def test_trailers_behind_an_answer_are_not_kept(service: Service) -> None:
    before = peak_bytes(service.process.pid)
    with line(service) as opened:
        opened.sendall(CHUNKED)
        assert opened.recv(1 << 16).startswith(b"HTTP/1.1 200")
        TRIES["trailers"] += 1
        assert cut_off(opened, b"".join(b"X-%d: y\r\n" % i for i in range(1_000_000)))
    assert peak_bytes(service.process.pid) - before < 20 * MEGABYTE


def test_a_trailer_without_end_is_not_kept(service: Service) -> None:
    before = peak_bytes(service.process.pid)
    with line(service) as opened:
        opened.sendall(CHUNKED)
        assert opened.recv(1 << 16).startswith(b"HTTP/1.1 200")
        TRIES["trailers"] += 1
        assert cut_off(opened, b"X" * 64 * MEGABYTE)
    assert peak_bytes(service.process.pid) - before < 20 * MEGABYTE


@pytest.mark.parametrize("trailer", [f"Authorization: Bearer {ADMIN}", "X-Forwarded-For: 9.9.9.9"])
def test_a_trailer_is_no_header(service: Service, client: httpx.Client, trailer: str) -> None:
    body = json.dumps({"name": "p", "loss": {"kind": "zero_one"}})
    kind = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    rest = f"{len(body):x}\r\n{body}\r\n0\r\n{trailer}\r\n\r\n"
    TRIES["trailers"] += 1
    answer = sent(service.url, request("POST", "/v1/pools", *kind) + rest.encode())
    assert answer.statuses == [400]
    assert client.get("/v1/pools").json()["data"] == []


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (b"", b""),
        (b"\r\n", b""),
        (get("/login"), b"\r\n"),
        (get("/login"), b"GET /lo"),
        (get("/login", "Content-Length: 1000"), b"x"),
        (get("/login", "Transfer-Encoding: chunked"), b"1\r\nx\r\n"),
        (get("/login", "Transfer-Encoding: chunked") + b"0\r\n", b"X-Slow: "),
    ],
)
def test_no_byte_keeps_a_connection_open(service: Service, first: bytes, later: bytes) -> None:
    with line(service) as opened:
        opened.sendall(first)
        if later:
            assert opened.recv(1 << 16).startswith(b"HTTP/1.1 200")
            opened.sendall(later)
        TRIES["connections that wait"] += 1
        assert ended(opened)


@pytest.mark.parametrize("host", ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nhost: b\r\n"])
def test_a_request_names_one_host(service: Service, host: str) -> None:
    with line(service) as opened:
        opened.sendall(get("/healthz", host=host))
        assert opened.recv(12) == b"HTTP/1.1 400"
        TRIES["hosts"] += 1
        assert ended(opened)


def test_the_old_protocol_knows_no_host(service: Service) -> None:
    assert sent(service.url, b"GET /healthz HTTP/1.0\r\n\r\n").statuses == [200]


@pytest.mark.parametrize("size", [66_000, 100_000, MEGABYTE])
def test_a_long_head_is_refused_however_it_comes(service: Service, size: int) -> None:
    with line(service) as opened:
        opened.sendall(get("/healthz", "X: " + "y" * size))
        assert opened.recv(12) == b"HTTP/1.1 431"


def test_many_headers_are_refused(service: Service) -> None:
    """Twelve thousand of five bytes cost 0.14 s of the loop, and are no more than a long head."""
    few = get("/healthz", *["a: b"] * 90, "Connection: close")
    assert sent(service.url, few).statuses == [200]
    with line(service) as opened:
        opened.sendall(get("/healthz", *["a: b"] * 8_000))
        assert opened.recv(12) == b"HTTP/1.1 431"


def test_requests_ahead_of_their_answers_are_few(service: Service) -> None:
    before = peak_bytes(service.process.pid)
    some = sent(service.url, get("/healthz") * 15 + get("/healthz", "Connection: close"))
    assert some.content.count(b"HTTP/1.1 200") == 16
    with line(service, receives=4096) as opened:
        assert cut_off(opened, get("/healthz") * 1_000_000)
    assert peak_bytes(service.process.pid) - before < 20 * MEGABYTE


def test_nothing_but_requests_is_spoken(service: Service) -> None:
    upgrade = (
        *("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    )
    with line(service) as opened:
        opened.sendall(get("/healthz", *upgrade))
        assert opened.recv(12) == b"HTTP/1.1 200"
        opened.sendall(b"\x81")
        assert ended(opened)


def test_an_answer_that_nobody_reads_is_given_up(service: Service, client: httpx.Client) -> None:
    pool = made(client, "/v1/pools", {"name": "large", "loss": {"kind": "zero_one"}})["id"]
    item = {"surrogate": 0.5, "payload": {"text": "x" * 100_000}}
    rows = "\n".join(json.dumps({"id": f"item-{i}", **item}) for i in range(100))
    media = {"Content-Type": "application/x-ndjson"}
    assert client.post(f"/v1/pools/{pool}/items", content=rows, headers=media).is_success
    before = held(service)
    with ExitStack() as lines:
        for _ in range(6):
            opened = lines.enter_context(line(service, receives=4096))
            shown = f"Authorization: Bearer {ADMIN}"
            opened.sendall(get(f"/v1/pools/{pool}/items?limit=100", shown))
            TRIES["answers that nobody reads"] += 1
        assert opened.recv(12) == b"HTTP/1.1 200"
        assert holds(service, before)


@pytest.mark.nightly
def test_a_stream_lives_for_as_long_as_somebody_reads_it(
    service: Service, client: httpx.Client
) -> None:
    session = judged_session(client, 5)
    before = held(service)
    path = f"/v1/sessions/{session}/stream"
    with (
        client_of(service.url) as reader,
        reader.stream("GET", path) as stream,
        line(service, receives=4096) as unread,
    ):
        unread.sendall(get(path, f"Authorization: Bearer {ADMIN}"))
        events = (text for text in stream.iter_lines() if text.startswith("data:"))
        next(events)
        deadline = time.monotonic() + GENEROUS_SECONDS
        for loss in itertools.cycle((0.0, 1.0)):
            amend(client, session, loss)
            assert next(events), "the one that is read goes on"
            if held(service) <= before + 1:
                break
            assert time.monotonic() < deadline
        TRIES["answers that nobody reads"] += 1


def judged_session(client: httpx.Client, hundreds: int) -> str:
    """One whose trajectory is long enough to fill what a kernel keeps for a reader."""
    items = [{"id": f"item-{i}", "surrogate": 0.5} for i in range(100 * hundreds)]
    body = {"name": "p", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
    pool = made(client, "/v1/pools", body)["id"]
    session: str = made(client, "/v1/sessions", {"pool_id": pool})["id"]
    for _ in range(hundreds):
        asked = {"worker": "judge", "count": 100}
        draws = made(client, f"/v1/sessions/{session}/next", asked)["draws"]
        losses = [{"round": draw["round"], "loss": 1.0} for draw in draws]
        judged = {"observations": losses, "worker": "judge"}
        made(client, f"/v1/sessions/{session}/observe", judged)
    return session


def amend(client: httpx.Client, session: str, loss: float) -> None:
    """Have every stream say all points again."""
    body = {"round": 1, "loss": loss, "author": "me", "reason": "a slip"}
    made(client, f"/v1/sessions/{session}/amendments", body)


def test_nobody_is_believed_about_an_address(service: Service) -> None:
    found = []
    with client_of(service.url, WRONG) as guesser:
        for number in range(2 * WRONG_KEYS):
            TRIES["addresses made up"] += 1
            origin = {"X-Forwarded-For": f"9.9.{number}.9"}
            found.append(guesser.get("/v1/pools", headers=origin).status_code)
    assert 429 in found

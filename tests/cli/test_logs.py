import logging
import socket
import tempfile
from urllib.parse import urlsplit

from celeus.commands.service.logs import MOST_TARGET, ShortTarget
from tests.servers import started_service

LINE = '%s - "%s %s HTTP/%s" %d'


def line_of(target: str) -> str:
    arguments = ("127.0.0.1:9", "GET", target, "1.1", 200)
    record = logging.LogRecord("uvicorn.access", logging.INFO, "", 0, LINE, arguments, None)
    assert ShortTarget().filter(record)
    return record.getMessage()


def test_the_target_of_a_request_is_cut_in_the_log() -> None:
    """A query may be 60 KB long, and nobody needs a key to send it."""
    assert line_of("/login?next=/") == '127.0.0.1:9 - "GET /login?next=/ HTTP/1.1" 200'
    long = line_of("/login?" + "a=b&" * 15_000)
    assert len(long) < MOST_TARGET + 60
    assert long.endswith('… HTTP/1.1" 200')


MALFORMED = {
    "no HTTP": b"\x16\x03\x01\x00\x05hello\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: a\r\n" + b"A: b\r\n" * 200 + b"\r\n",
    "a bad chunk": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}
UPGRADE = (
    b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
)


def answer_of(address: tuple[str, int], request: bytes) -> bytes:
    with socket.create_connection(address, 10) as line:
        line.sendall(request)
        return line.recv(1 << 16)


def test_malformed_requests_fill_no_log(database_url: str) -> None:
    """A scanner of ports sends thousands, and without a key."""
    with tempfile.TemporaryFile() as log:
        service = started_service(database_url, log=log)
        try:
            place = urlsplit(service.url)
            address = (str(place.hostname), int(place.port or 0))
            for request in MALFORMED.values():
                for _ in range(10):
                    assert answer_of(address, request)[9:12] in {b"400", b"431"}
            for _ in range(10):
                assert answer_of(address, UPGRADE)[9:12] == b"200"
        finally:
            service.process.terminate()
            service.process.wait(60)
        log.seek(0)
        lines = log.read().decode().splitlines()
    told = [line for line in lines if "malformed" in line]
    # Two where the minute ended meanwhile
    assert 1 <= len(told) <= 2, told
    assert "127.0.0.1" in told[0]
    for words in ("Invalid HTTP request", "Unsupported upgrade", "WebSocket", "pip install"):
        assert not [line for line in lines if words in line], words

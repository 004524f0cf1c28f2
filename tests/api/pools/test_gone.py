"""Files whose sender has gone, and many of one key: others' imports go on."""

import gzip
import socket
import time

import httpx
from fastapi import FastAPI

from celeus.main import create_app
from celeus.settings import Settings
from tests.api.serving import served
from tests.keys import ADMIN, bearer, key_in

ROWS = 600_000


def _sent(port: int, key: str, body: bytes) -> socket.socket:
    """A connection on which a dry run is asked for."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    head = (
        "POST /v1/pool-files?dry_run=true&name=odd&kind=zero_one HTTP/1.1\r\nHost: celeus.test\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: application/gzip\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode() + body)
    return connection


def _waited(app: FastAPI, taken: int) -> None:
    end = time.monotonic() + 30
    while app.state.context.background.running != taken:
        assert time.monotonic() < end, app.state.context.background.running
        time.sleep(0.05)


def test_a_dry_run_ends_with_its_client_and_a_key_has_half_of_the_places(
    settings: Settings, database_url: str
) -> None:
    other = key_in(database_url, "manage", project="other")
    app = create_app(settings)
    body = gzip.compress(b"\n".join([b'{"question": "a"}'] * ROWS))
    half = settings.background_processes // 2
    with served(settings, app=app) as port:
        connections = [_sent(port, ADMIN, body) for _ in range(half + 2)]
        _waited(app, half)
        answer = httpx.post(
            f"http://127.0.0.1:{port}/v1/pool-files?name=mine&kind=zero_one",
            json=[{"id": "1"}, {"id": "2"}],
            headers=bearer(other),
            timeout=60,
        )
        assert answer.status_code == 201, answer.text
        for one in connections:
            one.close()
        _waited(app, 0)

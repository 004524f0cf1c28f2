"""What a real service sends is verified by the library of Standard Webhooks."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.ecosystem.service import Service, running

pytestmark = pytest.mark.ecosystem

Sent = tuple[dict[str, str], bytes]


@pytest.fixture(scope="module")
def inside() -> Iterator[Service]:
    """A service that lets receivers on loopback through."""
    with running(webhook_internal="127.0.0.0/8", webhook_http="true") as service:
        yield service


@contextmanager
def receiving() -> Iterator[tuple[str, "Queue[Sent]"]]:
    sent: Queue[Sent] = Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            sent.put(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", sent
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asked(service: Service, method: str, path: str, body: object = None) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 -- on loopback
        f"{service.url}{path}",
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {service.key}", "Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 -- on loopback
        found: dict[str, Any] = json.load(answer)
        return found


def test_every_message_is_verified_also_during_a_rotation(inside: Service) -> None:
    with receiving() as (url, sent):
        events = ["session.stopped", "certificate.issued"]
        hook = asked(inside, "POST", "/v1/webhooks", {"url": url, "events": events})
        items = [{"id": f"i{number}", "surrogate": 0.5} for number in range(20)]
        pool = {"name": "p", "loss": {"kind": "zero_one"}, "items": items, "sealed": True}
        pool_id = asked(inside, "POST", "/v1/pools", pool)["id"]
        session = asked(inside, "POST", "/v1/sessions", {"pool_id": pool_id})["id"]
        asked(inside, "PATCH", f"/v1/sessions/{session}", {"state": "closed"})
        told = [sent.get(timeout=60) for _ in events]
        verified = [Webhook(hook["secret"]).verify(body, headers) for headers, body in told]
        assert {one["type"] for one in verified} == set(events)
        assert {one["data"]["session"] for one in verified} == {session}
        path = f"/v1/webhooks/{hook['id']}"
        new = asked(inside, "POST", f"{path}/rotate", {"overlap_seconds": 3600})
        assert asked(inside, "POST", f"{path}/test", {})["state"] == "delivered"
        headers, body = sent.get(timeout=60)
        for secret in (hook["secret"], new["secret"]):
            assert Webhook(secret).verify(body, headers)["type"] == "webhook.test"
        for name, value in (("webhook-id", "msg_other"), ("webhook-timestamp", "1700000000")):
            with pytest.raises(WebhookVerificationError):
                Webhook(new["secret"]).verify(body, headers | {name: value})
        with pytest.raises(WebhookVerificationError):
            Webhook(new["secret"]).verify(body.replace(b"test", b"best"), headers)

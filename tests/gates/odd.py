"""A server that is none of ours, and what it may say of a session."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from celeus.client.service import own_version

NOBODY = f"ses_{'0' * 32}"


class Odd(BaseHTTPRequestHandler):
    """A server that is none of ours; ``replies`` are sent one after the other, the last for ever.

    A reply is a status, headers and a body; a body of None is sent byte by byte without end. It
    greets as a Celeus of ``version``, unless that is None.
    """

    version: ClassVar[str | None] = None
    replies: ClassVar[list[tuple[int, dict[str, str], bytes | None]]] = []
    seen: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        greeting = {"service": "celeus", "version": self.version}
        reply: tuple[int, dict[str, str], bytes | None] = (200, {}, json.dumps(greeting).encode())
        if self.path != "/version" or self.version is None:
            reply = self._reply()
        status, headers, body = reply
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body is not None:
            self.wfile.write(body)
            return
        try:
            while True:
                self.wfile.write(b" ")
                time.sleep(0.1)
        except OSError:
            return

    def _reply(self) -> tuple[int, dict[str, str], bytes | None]:
        self.seen.append((self.path, self.headers.get("Authorization")))
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 -- as the standard library has it
        """Say nothing."""


@contextmanager
def strangers(port: int = 0) -> Iterator[str]:
    """The address at which Odd answers, at a free port unless one is named."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Odd)
    server.daemon_threads = True
    # It looks that often whether it is to end
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    Odd.seen.clear()
    Odd.version = own_version()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def document(**changed: Any) -> bytes:  # noqa: ANN401 -- any member of a session
    """A session's document, with these members changed."""
    known = {
        "id": NOBODY,
        "target": "pool",
        "alpha": 0.05,
        "lower": 0.1,
        "upper": 0.2,
        "estimate": 0.15,
        "round": 40,
        "state": "active",
        "policy": "sharp",
        "method_version": "celeus-3",
        "revision": 1,
        "decisions": [{"side": "at_most", "threshold": 0.3, "answer": "yes", "round": 12}],
        "fixed": False,
        "changes": 0,
        "verdict": None,
        "systems": None,
        "scale": {"lower": 0.0, "upper": 1.0},
        "score": {
            "name": "error rate",
            "unit": "share",
            "estimate": 0.15,
            "lower": 0.1,
            "upper": 0.2,
        },
        "sentence": "Error rate 15 % (10 to 20), 95 % sure at every moment, from 40 labels.",
        "origin": None,
    }
    return json.dumps(known | changed).encode()

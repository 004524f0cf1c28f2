"""A server on loopback made of a table of routes, for tools that cannot be run here."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Request:
    """What was sent: parts of the path, the query, headers and the body as JSON."""

    parts: tuple[str, ...]
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: Any

    def one(self, name: str, default: str = "") -> str:
        """The single value of a parameter."""
        (value,) = self.query.get(name, [default])
        return value


class Declined(Exception):
    """Answered with a status that says no."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


Route = Callable[[Request], Any]


@dataclass
class Served:
    """Where it is, and what went wrong in it."""

    url: str
    faults: list[BaseException] = field(default_factory=list)


@contextmanager
def served(routes: Mapping[tuple[str, str], Route]) -> Iterator[Served]:
    """The server of these routes, `(method, pattern of the path)`, one request at a time.

    A route that fails is a fault of the request, told when the server ends.
    """
    lock = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            status, document = self.told(body)
            sent = b"" if document is None else json.dumps(document, default=str).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def told(self, body: bytes) -> tuple[int, Any]:
            parts = urlsplit(self.path)
            for (method, pattern), route in routes.items():
                found = re.fullmatch(pattern, parts.path)
                if method == self.command and found is not None:
                    request = Request(
                        found.groups(),
                        parse_qs(parts.query),
                        dict(self.headers),
                        json.loads(body) if body else None,
                    )
                    try:
                        with lock:
                            return 200, route(request)
                    except Declined as declined:
                        return declined.status, {"message": "declined"}
                    except Exception as error:  # noqa: BLE001 -- told at the end
                        at.faults.append(error)
                        return 400, {"message": str(error)}
            at.faults.append(LookupError(f"{self.command} {self.path}"))
            return 404, {"message": "no such route"}

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 -- their names

        def log_message(self, *_: object) -> None:
            """Nothing: secrets might be in it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    at = Served(f"http://127.0.0.1:{server.server_port}")
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield at
    finally:
        server.shutdown()
        server.server_close()
    assert at.faults == []

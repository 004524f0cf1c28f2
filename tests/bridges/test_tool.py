"""What a tool answers is shown without the secret that let the request in."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from celeus.bridges.tool import Tool
from celeus.errors import InvalidValue


class Echo(BaseHTTPRequestHandler):
    """Declines, and says again what it was asked with."""

    def do_GET(self) -> None:
        body = f"no: {self.headers['Authorization']}".encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_refusal_that_repeats_the_secret_is_shown_without_it() -> None:
    server = HTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.handle_request, daemon=True)
    thread.start()
    signed = {"Authorization": "Token tok_canary0123"}
    url = f"http://127.0.0.1:{server.server_port}"
    with (
        Tool("Echo", url, lambda _: signed, "its token") as tool,
        pytest.raises(InvalidValue, match="no: Token …") as refused,
    ):
        tool.get("/")
    assert "tok_canary0123" not in str(refused.value)
    thread.join()
    server.server_close()

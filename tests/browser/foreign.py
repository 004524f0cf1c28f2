"""A host on loopback that is not the service's, and what browsers ask of it."""

import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Foreign:
    """A host that answers every path with ``body``, and notes the paths asked for.

    It listens at ``host`` and as `localhost`, the name that the test's service lists.
    """

    body: bytes
    content_type: str
    scheme: str = "https"
    port: int = 0
    asked: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        """The address with its port, as the pages name it."""
        return f"127.0.0.1:{self.port}"

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """The address of a path."""
        return f"{self.scheme}://{host}:{self.port}/{path}"


@contextmanager
def listening(foreign: Foreign, folder: Path) -> Iterator[Foreign]:
    """Let the host answer, by TLS with a certificate of its own where its scheme is https."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            foreign.asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", foreign.content_type)
            self.send_header("Content-Length", str(len(foreign.body)))
            self.end_headers()
            self.wfile.write(foreign.body)

        def log_message(self, *_: object) -> None:
            """Nothing: `asked` is what the tests look at."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    if foreign.scheme == "https":
        secured = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        secured.load_cert_chain(_certificate(folder))
        # The handshake waits for the client: in the thread of its own, at the first reading
        server.socket = secured.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    foreign.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield foreign
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _certificate(folder: Path) -> Path:
    made = folder / "foreign.pem"
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        *("-nodes", "-subj", "/CN=localhost", "-days", "30", "-keyout", str(made), "-out", "-"),
    ]
    written = subprocess.run(command, check=True, capture_output=True).stdout
    with made.open("ab") as file:
        file.write(written)
    return made

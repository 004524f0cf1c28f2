"""A timestamping service (RFC 3161) for the tests: a real HTTP server in front of `openssl ts`."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_CONFIG = """
[tsa]
default_tsa = one
[one]
serial = {folder}/serial
crypto_device = builtin
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ess_cert_id_chain = no
ess_cert_id_alg = sha256
[stamping]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
[root]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
[req]
distinguished_name = nobody
[nobody]
"""
_EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Authority:
    """Who stamps: a root certificate, and a key under it that answers requests."""

    def __init__(self, folder: Path) -> None:
        """Make the keys in this empty folder."""
        self._folder = folder
        self.roots = folder / "roots.pem"
        (folder / "tsa.cnf").write_text(_CONFIG.format(folder=folder))
        (folder / "serial").write_text("01\n")
        config = ("-config", folder / "tsa.cnf")
        self._openssl(
            *("req", "-x509", *config, "-extensions", "root", *_EC, "-subj", f"/CN={folder.name}"),
            *("-days", 30, "-keyout", folder / "root.key", "-out", self.roots),
        )
        self._openssl(
            *("req", *config, *_EC, "-subj", f"/CN=stamps of {folder.name}"),
            *("-keyout", folder / "tsa.key", "-out", folder / "tsa.csr"),
        )
        self._openssl(
            *("x509", "-req", "-in", folder / "tsa.csr", "-days", 30, "-set_serial", 7),
            *("-CA", self.roots, "-CAkey", folder / "root.key", "-out", folder / "tsa.pem"),
            *("-extfile", folder / "tsa.cnf", "-extensions", "stamping"),
        )

    def answer(self, request: bytes) -> bytes:
        """The answer to a request, both as DER."""
        query = self._folder / f"{threading.get_ident()}.tsq"
        query.write_bytes(request)
        return self._openssl(
            *("ts", "-reply", "-queryfile", query, "-config", self._folder / "tsa.cnf"),
            *("-inkey", self._folder / "tsa.key", "-signer", self._folder / "tsa.pem"),
        )

    @staticmethod
    def _openssl(*arguments: object) -> bytes:
        command = ["openssl", *map(str, arguments)]
        return subprocess.run(command, check=True, capture_output=True).stdout


@contextmanager
def answering(authority: Authority) -> Iterator[str]:
    """The address of a server where the authority stamps."""

    class Stamping(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers["Content-Type"] == "application/timestamp-query"
            body = authority.answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: the tests look at what comes back."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Stamping) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/tsr"
        finally:
            server.shutdown()
            thread.join()

"""Requests as bytes on a socket, for those that no client would send."""

import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Raw:
    """Everything a server said until it closed or fell silent."""

    content: bytes

    @property
    def statuses(self) -> list[int]:
        """The statuses of all answers on the connection."""
        lines = [line for line in self.content.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
        return [int(line.split(b" ")[1]) for line in lines]


def sent(url: str, request: bytes, patience: float = 10.0) -> Raw:
    """The answers to these bytes, which ask for the connection to be closed."""
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    content = b""
    with socket.create_connection((address.hostname, address.port), timeout=patience) as line:
        line.sendall(request)
        try:
            while len(content) < MOST_BYTES and (part := line.recv(1 << 16)):
                content += part
        except (TimeoutError, ConnectionResetError):
            pass
    return Raw(content)


def request(method: str, target: str, *headers: str, body: bytes = b"") -> bytes:
    """A request as it is written, nothing in it made right."""
    lines = [f"{method} {target} HTTP/1.1", "Host: celeus.test", "Connection: close", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

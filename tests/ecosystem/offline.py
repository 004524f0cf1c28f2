"""Tools that send nothing: settings that turn their telemetry off, and a socket that holds them."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

SETTINGS = {
    "CONFIDENT_TRACE_FLUSH": "NO",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DO_NOT_TRACK": "true",
    "HF_HUB_OFFLINE": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "PROMPTFOO_DISABLE_SHARING": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
}
_NUMERIC = ("127.", "::1", "localhost")


@contextmanager
def only_loopback() -> Iterator[None]:
    """Within, this process reaches nothing but its own machine, and the test fails if it tried."""
    tried: list[Any] = []
    connect = socket.socket.connect

    def held(self: socket.socket, address: Any) -> None:  # noqa: ANN401 -- of any family
        if self.family != socket.AF_UNIX and not str(address[0]).startswith(_NUMERIC):
            tried.append(address)
            raise OSError(f"{address} is not of this machine")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        patch.setattr(socket.socket, "connect", held)
        yield
    assert tried == []

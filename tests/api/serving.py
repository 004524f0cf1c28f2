"""The service behind a real socket, within the process of the test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import uvicorn
from starlette.types import ASGIApp

from celeus.api.wire.connections import server_options
from celeus.settings import Settings
from tests.clients import service_of
from tests.servers import free_port


@contextmanager
def served(settings: Settings, most: int = 1024, app: ASGIApp | None = None) -> Iterator[int]:
    """The port of a server in a thread of this process, for at most so many connections.

    It serves the service, or another ``app``.
    """
    port = free_port()
    with service_of(settings) if app is None else nullcontext(app) as served:
        options = server_options(settings, most)
        server = uvicorn.Server(uvicorn.Config(served, port=port, log_level="error", **options))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                threading.Event().wait(0.02)
            yield port
        finally:
            server.should_exit = True
            thread.join(20)

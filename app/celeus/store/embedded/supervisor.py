"""A PostgreSQL server that runs as long as its service does."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from celeus.errors import DataFolderUnusable
from celeus.store.embedded.pid_file import Postmaster, await_ready
from celeus.subprocesses import ChildProcess

STOP = ((signal.SIGINT, 3.0), (signal.SIGQUIT, 2.0), (signal.SIGKILL, None))
"""Signals that stop the server, each with its seconds; none of them loses a commit."""
_RESTART_SECONDS = 60.0
_LINGER_SECONDS = 10.0
_PAUSE_SECONDS = 0.5
_LINGERING = ("is still in use", '"postmaster.pid" already exists')
"""PostgreSQL's words as long as not all of a server that was killed is gone."""

_logger = logging.getLogger(__name__)


class Supervisor:
    """The server of a cluster; ``launch`` starts one, which writes to ``log``."""

    def __init__(self, cluster: Path, log: Path, launch: Callable[[], ChildProcess]) -> None:
        """Start nothing yet."""
        self._cluster, self._log, self._launch = cluster, log, launch
        self._child: ChildProcess | None = None
        self._stopping = threading.Event()
        self._launching = threading.Lock()
        self._watch: threading.Thread | None = None

    def start(self) -> Postmaster:
        """Start the server; refuses with `DataFolderUnusable` and its words when it gives up."""
        return self._started(time.monotonic() + _LINGER_SECONDS, _LINGERING)

    def keep(self) -> None:
        """From now on start the server again when it ends by itself.

        Where that fails for a minute, this process gets SIGTERM, and the log the reason.
        """
        self._watch = threading.Thread(target=self._restart, daemon=True)
        self._watch.start()

    def stop(self) -> None:
        """Stop the server, in seconds."""
        with self._launching:
            self._stopping.set()
        if self._child is not None:
            self._child.end(*STOP)
        if self._watch is not None:
            self._watch.join()

    def _started(self, deadline: float, passing: tuple[str, ...]) -> Postmaster:
        """The server, tried until the deadline as long as it fails with ``passing`` words."""
        while True:
            start = self._log.stat().st_size if self._log.exists() else 0
            with self._launching:
                if self._stopping.is_set():
                    raise DataFolderUnusable("the service is stopping", field="data_dir")
                self._child = self._launch()
            try:
                return await_ready(self._cluster, self._child, self._log, start)
            except DataFolderUnusable as error:
                self._child.end(*STOP)
                if (
                    not any(words in error.detail for words in passing)
                    or time.monotonic() > deadline
                ):
                    raise
            self._stopping.wait(_PAUSE_SECONDS)

    def _restart(self) -> None:
        while self._child is not None:
            status = self._child.wait()
            self._child.release()
            if self._stopping.is_set():
                return
            _logger.error("PostgreSQL ended by itself (status %d): starting it again", status)
            try:
                server = self._started(time.monotonic() + _RESTART_SECONDS, ("",))
            except DataFolderUnusable as error:
                if not self._stopping.is_set():
                    _logger.critical("the service ends: %s", error.detail)
                    os.kill(os.getpid(), signal.SIGTERM)
                return
            _logger.warning("PostgreSQL runs again (process %d)", server.pid)

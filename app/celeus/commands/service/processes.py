"""The processes of `celeus serve`: started by uvicorn, and stopped within ten seconds.

SIGTERM, SIGINT and SIGHUP mean the same: no new connection is taken, requests and streams under way
get `DRAIN_SECONDS`, and what is then not answered is refused as `stopping`.
"""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import current_process, forkserver, get_context
from socket import socket
from threading import Thread
from types import FrameType

import uvicorn._subprocess
from uvicorn import Config, Server
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from celeus.temp_dirs import scratch_folder

DRAIN_SECONDS = 5
"""Seconds that requests and open streams may delay a stop."""
PING_SECONDS = 30
"""Seconds a worker may be silent, as it is while starting, before another replaces it."""
WORKER_SECONDS = 7.0
"""Seconds a worker may take to end."""
STOP_SECONDS = 9.5
"""Seconds the whole stop may take; then the process ends at once, and its children with it."""


APPLICATION = "celeus.commands.service.preloaded"
"""Module that imports what a worker needs, which takes most of its start."""


@contextmanager
def preparing(workers: int) -> Iterator[Callable[[], None]]:
    """Import what workers need while others are waited for; gives what waits until that is done.

    Several are forked from one process that has it already: each would take seconds of a processor.
    That process has the environment of this moment, and ends with this one.
    """
    if workers == 1:
        # Nothing else is imported meanwhile by this process
        thread = Thread(target=import_module, args=(APPLICATION,), daemon=True)
        thread.start()
        yield thread.join
        return
    with scratch_folder(sockets=True) as folder:
        if sys.platform == "linux":
            # Elsewhere libraries of the system do not take it well to be forked
            current_process()._config["tempdir"] = str(folder)  # type: ignore[attr-defined]  # noqa: SLF001
            context = get_context("forkserver")
            context.set_forkserver_preload([APPLICATION])
            forkserver.ensure_running()
            uvicorn._subprocess.spawn = context  # type: ignore[assignment]  # noqa: SLF001
        yield lambda: None


def run(config: Config) -> None:
    """Serve until a signal says to end; raises it again where it came."""
    stop_on_hangup()
    if config.workers > 1:
        Workers(config, [config.bind_socket()]).run()
        return
    server = OneProcess(config)
    server.run()
    if not server.started:
        raise SystemExit(STARTUP_FAILURE)


def stop_on_hangup() -> None:
    """Let SIGHUP mean what SIGTERM does, unless it is ignored, as under nohup."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


class OneProcess(Server):
    """A server in this process."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        _end_in_time()
        super().handle_exit(sig, frame)


class Workers(Multiprocess):
    """Worker processes that share one socket, and the process that looks after them."""

    def __init__(self, config: Config, sockets: list[socket]) -> None:
        hangup = signal.getsignal(signal.SIGHUP)
        super().__init__(config, sockets)
        signal.signal(signal.SIGHUP, hangup)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def join_all(self) -> None:
        """Wait for the workers, and end those that take too long."""
        deadline = time.monotonic() + WORKER_SECONDS
        for worker in self.processes:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.exitcode is None:
                worker.process.kill()
        super().join_all()

    def _stop(self, number: int, _: FrameType | None) -> None:
        """Have the workers stop at once, whatever this process is waiting for.

        Nobody is let in any more where nobody answers. Nothing here takes a lock or logs: it may
        come in the middle of that.
        """
        _end_in_time()
        for door in self.sockets:
            door.close()
        for worker in self.processes:
            worker.process.terminate()
        self.signal_queue.append(number)


def _end_in_time() -> None:
    """Have the kernel end this process after `STOP_SECONDS`, whatever it does then."""
    if not any(signal.getitimer(signal.ITIMER_REAL)):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, STOP_SECONDS)

"""The processes of `celeus serve`: started by uvicorn, and stopped within ten seconds.

SIGTERM, SIGINT and SIGHUP mean the same: no new connection is taken, requests and streams under way
get `DRAIN_SECONDS`, and what is then not answered is refused as `stopping`.
"""

import signal
import time
from socket import socket
from types import FrameType

from uvicorn import Config, Server
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

DRAIN_SECONDS = 5
"""How long requests and open streams may hold up a stop."""
PING_SECONDS = 30
"""How long a worker may say nothing, as it does while it starts, before another takes its place."""
WORKER_SECONDS = 7.0
"""How long a worker may take to end."""
STOP_SECONDS = 9.5
"""How long everything may take; then the process ends as it stands, and its children with it."""


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
        for one in self.processes:
            one.process.join(max(0.0, deadline - time.monotonic()))
            if one.process.exitcode is None:
                one.process.kill()
        super().join_all()

    def _stop(self, number: int, _: FrameType | None) -> None:
        """Have the workers stop at once, whatever this process is waiting for.

        Nobody is let in any more where nobody answers. Nothing here takes a lock or logs: it may
        come in the middle of that.
        """
        _end_in_time()
        for door in self.sockets:
            door.close()
        for one in self.processes:
            one.process.terminate()
        self.signal_queue.append(number)


def _end_in_time() -> None:
    """Have the kernel end this process after `STOP_SECONDS`, whatever it does then."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, STOP_SECONDS)

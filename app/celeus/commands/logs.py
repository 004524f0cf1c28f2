"""The log of a running service, which never waits for whoever reads it."""

import logging
import os
import threading
from contextlib import suppress
from copy import deepcopy
from queue import Full, Queue
from typing import Any, TextIO

from uvicorn.config import LOGGING_CONFIG

from celeus.api.wire.request_ids import WithRequestId

MOST_LINES = 10_000
FLUSH_SECONDS = 0.5
"""How long the end of a process waits for its last lines to be read."""


class Unblocking(logging.StreamHandler[TextIO]):
    """Writes lines in a thread of its own.

    Lines beyond `MOST_LINES` that nobody has read are dropped, and their number is written as soon
    as somebody reads again.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: Queue[str] = Queue(MOST_LINES)
        self._dropped = 0
        threading.Thread(target=self._write, args=[stream.fileno()], daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Have the line written."""
        try:
            self._lines.put_nowait(self.format(record))
        except Full:
            self._dropped += 1
        except Exception:  # noqa: BLE001 -- as every handler does with what cannot be formatted
            self.handleError(record)

    def flush(self) -> None:
        """Wait until all lines are written, but not for long."""
        with self._lines.all_tasks_done:
            self._lines.all_tasks_done.wait_for(
                lambda: not self._lines.unfinished_tasks, FLUSH_SECONDS
            )

    def _write(self, file: int) -> None:
        while True:
            text = self._lines.get() + self.terminator
            # Not through the stream, whose lock a line that nobody reads would hold at the end
            data = text.encode(errors="replace")
            while data:
                try:
                    data = data[os.write(file, data) :]
                except OSError:
                    self._dropped += 1
                    break
            self._lines.task_done()
            if self._dropped and not data:
                self._tell()

    def _tell(self) -> None:
        """Have it written how many lines were dropped, now that there is room."""
        self.acquire()
        with suppress(Full):
            self._lines.put_nowait(
                f"WARNING:  {self._dropped} lines of the log were dropped: nobody read them"
            )
            self._dropped = 0
        self.release()


def log_config() -> dict[str, Any]:
    """The server's own configuration of its log, with the request's id in every line."""
    config = deepcopy(LOGGING_CONFIG)
    config["filters"] = {"request": {"()": WithRequestId}}
    for handler in config["handlers"].values():
        handler["class"] = f"{__name__}.{Unblocking.__name__}"
        handler["filters"] = ["request"]
    for formatter in config["formatters"].values():
        formatter["fmt"] = formatter["fmt"].replace(
            "%(levelprefix)s", "%(levelprefix)s [%(request_id)s]"
        )
    config["loggers"]["celeus"] = {"handlers": ["default"], "propagate": False}
    # Whatever libraries warn of; without a handler it would go past all this
    config["root"] = {"handlers": ["default"], "level": "WARNING"}
    return config

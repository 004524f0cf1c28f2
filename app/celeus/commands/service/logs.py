"""The log of a running service, which never waits for whoever reads it."""

import logging
import os
import re
import threading
from contextlib import suppress
from copy import deepcopy
from queue import Full, Queue
from typing import Any, TextIO

from uvicorn.config import LOGGING_CONFIG

from celeus.api.wire.request_ids import WithRequestId

MOST_LINES = 10_000
MOST_CHARACTERS = 8 << 20
"""Of the lines that wait: whoever calls for a long address has it logged."""
TARGET = 2
"""Where the target of a request is among what uvicorn logs of it."""
MOST_TARGET = 500
_SECRET = re.compile(r"^(/s/)[^/?]+")
FLUSH_SECONDS = 0.5
"""How long the end of a process waits for its last lines to be read."""


class BackgroundHandler(logging.StreamHandler[TextIO]):
    """Writes lines in a thread of its own.

    Lines beyond `MOST_LINES` or `MOST_CHARACTERS` that nobody has read are dropped, and their
    number is written as soon as somebody reads again.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: Queue[str] = Queue(MOST_LINES)
        self._waiting = 0
        self._dropped = 0
        threading.Thread(target=self._write, args=[stream.fileno()], daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Have the line written."""
        try:
            line = self.format(record)
            if self._waiting + len(line) > MOST_CHARACTERS:
                raise Full
            self._lines.put_nowait(line)
            self._waiting += len(line)
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
            line = self._lines.get()
            self.acquire()
            self._waiting -= len(line)
            self.release()
            text = line + self.terminator
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
        line = f"WARNING:  {self._dropped} lines of the log were dropped: nobody read them"
        with suppress(Full):
            self._lines.put_nowait(line)
            self._waiting += len(line)
            self._dropped = 0
        self.release()


class ShortTarget(logging.Filter):
    """Cuts the target of a request, which may be as long as a head, in its line of the log.

    What a link to a report carries is left out: whoever reads the log need not read the report.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every line pass."""
        if isinstance(record.args, tuple) and len(record.args) > TARGET:
            target = str(record.args[TARGET])
            cut = _SECRET.sub(r"\1…", target)
            if len(cut) > MOST_TARGET:
                cut = cut[:MOST_TARGET] + "…"
            if cut != target:
                record.args = (*record.args[:TARGET], cut, *record.args[TARGET + 1 :])
        return True


def log_config() -> dict[str, Any]:
    """The server's own configuration of its log, with the request's id in every line."""
    config = deepcopy(LOGGING_CONFIG)
    config["filters"] = {"request": {"()": WithRequestId}, "target": {"()": ShortTarget}}
    for handler in config["handlers"].values():
        handler["class"] = f"{__name__}.{BackgroundHandler.__name__}"
        handler["filters"] = ["request"]
    config["handlers"]["access"]["filters"].append("target")
    for formatter in config["formatters"].values():
        formatter["fmt"] = formatter["fmt"].replace(
            "%(levelprefix)s", "%(levelprefix)s [%(request_id)s]"
        )
    config["loggers"]["celeus"] = {"handlers": ["default"], "propagate": False}
    # Whatever libraries warn of; without a handler it would go past all this
    config["root"] = {"handlers": ["default"], "level": "WARNING"}
    return config

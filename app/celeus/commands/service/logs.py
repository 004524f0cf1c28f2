"""The log of a running service, which never waits for whoever reads it."""

import logging
import os
import re
import sys
import threading
import time
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson
from opentelemetry.trace import format_span_id, format_trace_id, get_current_span
from uvicorn.config import LOGGING_CONFIG

from celeus.api.watch.middleware import LOGGER
from celeus.api.watch.requests import Exchange, WithRequest
from celeus.settings import LogFormat

MOST_LINES = 10_000
MOST_CHARACTERS = 8 << 20
"""Most characters of waiting lines; addresses of requests are logged, and may be long."""
TARGET = 2
"""Index of a request's target among the arguments of uvicorn's line."""
MOST_TARGET = 500
_SECRET = re.compile(r"^(/s/)[^/?]+")
_CLIENT_FAULTS = ("Invalid HTTP request", "Unsupported upgrade request", "No supported WebSocket")
"""Beginnings of uvicorn's lines about requests that are at fault."""
PAUSE_SECONDS = 0.02
"""Seconds in which lines are collected to be written together."""
FLUSH_SECONDS = 0.5
"""Seconds that the end of a process waits for its last lines to be read."""


class BackgroundHandler(logging.StreamHandler[TextIO]):
    """Writes lines in a thread of its own, all that have come in `PAUSE_SECONDS` at once.

    Lines beyond `MOST_LINES` or `MOST_CHARACTERS` that nobody has read are dropped, and their
    number is written as soon as somebody reads again.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._writing = 0
        self._characters = 0
        self._dropped = 0
        self._some, self._none = threading.Event(), threading.Event()
        self._none.set()
        threading.Thread(target=self._write, args=[stream.fileno()], daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Have the line written."""
        try:
            self._keep(self.format(record))
        except Exception:  # noqa: BLE001 -- as every handler does with what cannot be formatted
            self.handleError(record)

    def flush(self) -> None:
        """Wait until all lines are written, but not for long."""
        self._none.wait(FLUSH_SECONDS)

    def _keep(self, line: str) -> None:
        """Keep a line for the thread; the caller has the handler's lock."""
        characters = self._characters + len(line)
        if len(self._lines) + self._writing >= MOST_LINES or characters > MOST_CHARACTERS:
            self._dropped += 1
            return
        self._characters = characters
        self._lines.append(line)
        if len(self._lines) == 1:
            self._none.clear()
            self._some.set()

    def _write(self, file: int) -> None:
        while True:
            self._some.wait()
            self.acquire()
            self._some.clear()
            lines, self._lines = self._lines, []
            self._writing = len(lines)
            self.release()
            text = "".join(line + self.terminator for line in lines)
            # Not through the stream, whose lock a line that nobody reads would hold at the end
            data = text.encode(errors="replace")
            while data:
                try:
                    data = data[os.write(file, data) :]
                except OSError:
                    break
            self.acquire()
            self._characters -= sum(map(len, lines))
            self._writing = 0
            if data:
                self._dropped += data.count(self.terminator.encode())
            elif self._dropped:
                self._tell()
            if not self._lines:
                self._none.set()
            self.release()
            # To wake up for each line would take the interpreter from requests again and again
            time.sleep(PAUSE_SECONDS)

    def _tell(self) -> None:
        """Have it written how many lines were dropped, now that there is room."""
        message = "%d lines of the log were dropped: nobody read them"
        record = logging.makeLogRecord(
            {"msg": message, "args": (self._dropped,), "levelname": "WARNING", "levelno": 30}
        )
        self._dropped = 0
        self.filter(record)
        self._keep(self.format(record))


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


class NoClientFaults(logging.Filter):
    """Drops uvicorn's lines about requests that are at fault.

    Anybody may send thousands of these: `celeus.api.wire.connections` logs one a minute. An upgrade
    is passed over, as HTTP allows, and no library need be installed for it.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False for such a line."""
        return not str(record.msg).startswith(_CLIENT_FAULTS)


class JsonLines(logging.Formatter):
    """Each record as one line of JSON, with the request that it belongs to."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        members: dict[str, Any] = {
            "time": moment,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        exchange: Exchange | None = getattr(record, "exchange", None)
        if exchange is not None:
            members |= {
                "request_id": exchange.id,
                "key_id": exchange.key_id,
                "session": exchange.session_id,
            }
        span = get_current_span().get_span_context()
        if span.is_valid:
            members["trace_id"] = format_trace_id(span.trace_id)
            members["span_id"] = format_span_id(span.span_id)
        if record.name == LOGGER and exchange is not None and isinstance(record.args, tuple):
            members |= _of_request(record, exchange, record.args)
        if record.exc_info:
            members["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(members, default=str).decode()


def _of_request(
    record: logging.LogRecord, exchange: Exchange, args: tuple[object, ...]
) -> dict[str, Any]:
    """Return the members of a request's own line: client, target, status, duration."""
    client, method, target, _, status = args
    seconds, parts = record.__dict__["seconds"], record.__dict__["parts"]
    members = {
        "client": client,
        "method": method,
        "target": target,
        "route": exchange.route,
        "status": status,
        "duration_ms": None if seconds is None else round(1000 * seconds, 3),
    }
    return members | ({"parts_ms": parts} if parts else {})


def log_config(level: str = "info", form: LogFormat = "auto") -> dict[str, Any]:
    """The server's own configuration of its log, with the request's id in every line.

    ``form`` ``auto``: lines of text on a terminal, JSON elsewhere.
    """
    # No line tells of these, and each record would look them up
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    config = deepcopy(LOGGING_CONFIG)
    filters = {"request": WithRequest, "target": ShortTarget, "faults": NoClientFaults}
    config["filters"] = {name: {"()": of} for name, of in filters.items()}
    config["loggers"]["uvicorn.error"]["filters"] = ["faults"]
    for handler in config["handlers"].values():
        handler["class"] = f"{__name__}.{BackgroundHandler.__name__}"
        handler["filters"] = ["request"]
    config["handlers"]["access"]["filters"].append("target")
    text = sys.stderr.isatty() if form == "auto" else form == "text"
    for formatter in config["formatters"].values():
        if not text:
            formatter.clear()
            formatter["()"] = f"{__name__}.{JsonLines.__name__}"
            continue
        formatter["fmt"] = formatter["fmt"].replace(
            "%(levelprefix)s", "%(levelprefix)s [%(request_id)s]"
        )
    if text:
        config["formatters"]["access"]["fmt"] += "%(took)s"
    settings = {"level": level.upper(), "propagate": False}
    config["loggers"]["celeus"] = {"handlers": ["default"]} | settings
    config["loggers"][LOGGER] = {"handlers": ["access"]} | settings
    # Whatever libraries warn of; without a handler it would go past all this
    config["root"] = {"handlers": ["default"], "level": "WARNING"}
    return config

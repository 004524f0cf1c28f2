"""Pools whose losses the test knows, and transports that see or break what is sent."""

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

import httpx2
import numpy as np

from celeus import Pool, Turn


@dataclass(frozen=True)
class Exam:
    """A pool and the true loss of every item."""

    pool: Pool
    losses: list[float]

    def __call__(self, item: Turn) -> float:
        return self.losses[item.index]


def exam(size: int, seed: int = 0) -> tuple[list[dict[str, Any]], list[float]]:
    """Rows with an informative surrogate, and their losses."""
    chance = np.random.default_rng(seed)
    guess = np.round(chance.random(size), 3)
    rows = [
        {"id": f"q-{number}", "surrogate": guess[number].item(), "payload": {"number": number}}
        for number in range(size)
    ]
    return rows, [float(draw) for draw in chance.random(size) < guess]


class Counting(httpx2.HTTPTransport):
    """Counts what is sent, by method and the last part of the path."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: Counter[str] = Counter()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent[f"{request.method} {request.url.path.rpartition('/')[2]}"] += 1
        return super().handle_request(request)


class Lossy(httpx2.HTTPTransport):
    """Loses the first answer of every POST: the service has heard it, the client not."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._seen: set[tuple[str, bytes]] = set()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = super().handle_request(request)
        if request.method != "POST":
            return answer
        body = b"" if request.url.path.endswith(("files", "items")) else request.read()
        with self._lock:
            known = (request.url.path, body) in self._seen
            self._seen.add((request.url.path, body))
        if known:
            return answer
        answer.read()
        answer.close()
        raise httpx2.ReadError("the line is dead", request=request)


class Cut(httpx2.HTTPTransport):
    """Reaches nobody once it is ``cut``; ``missed`` is set when somebody was to be reached."""

    def __init__(self) -> None:
        super().__init__()
        self.cut, self.missed = threading.Event(), threading.Event()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if not self.cut.is_set():
            return super().handle_request(request)
        self.missed.set()
        raise httpx2.ConnectError("the line is cut", request=request)

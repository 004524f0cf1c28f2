"""The label loop of `celeus.Session`: several judges as threads.

`celeus.client.tasks` has the same functions for `celeus.AsyncSession`.
"""

import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from celeus.client import calls
from celeus.client.config import HEARTBEATS, LEASE_SECONDS
from celeus.client.label_loop import JudgeResult, Turn, Turns, total
from celeus.client.worker_names import WorkerName
from celeus.errors import Refusal

if TYPE_CHECKING:
    from celeus.client.blocking import Client


class WorkerNames:
    """Names for those who judge without giving one; every thread keeps its own."""

    def __init__(self) -> None:
        self._local = threading.local()

    @contextmanager
    def use(self, worker: str | None) -> Iterator[str]:
        """Yield ``worker``, or where that is empty a name that no other thread judges under."""
        if not worker and not hasattr(self._local, "worker"):
            self._local.worker = WorkerName()
        yield worker or self._local.worker.text


def held(
    client: "Client", turns: Turns, lock: "threading.Lock | None" = None
) -> Generator[list[Turn], None, None]:
    """Yield what a worker holds until nothing more is asked for; send the last judgements."""
    lock = lock or threading.Lock()

    def renewed() -> bool:
        with lock:
            return client.run(turns.keep())

    try:
        while True:
            with lock:
                batch = client.run(turns.step(renewed))
            if not batch:
                return
            yield batch
    finally:
        client.run(turns.finish())


def judge_together(
    client: "Client",
    workers: list[Turns],
    verdict: Callable[[Any], Any],
) -> JudgeResult:
    """Let a function judge for all workers at once, and renew their leases meanwhile."""
    lease = min(LEASE_SECONDS, client.run(calls.lease_seconds(workers[0].session)))
    locks = [threading.Lock() for _ in workers]
    stop = threading.Event()

    def work(turns: Turns, lock: threading.Lock) -> Turns:
        if stop.is_set():
            # It ended before this thread began
            return turns
        with closing(held(client, turns, lock)) as batches:
            for batch in batches:
                turns.take(batch, verdict(turns.shown(batch)))
                if stop.is_set():
                    break
        return turns

    def renew() -> None:
        while not stop.wait(lease / HEARTBEATS):
            for turns, lock in zip(workers, locks, strict=True):
                _renew(client, turns, lock)

    heart = threading.Thread(target=renew, daemon=True)
    heart.start()
    try:
        if len(workers) == 1:
            # Here, where signals arrive, on which some scorers and models count
            return total([work(workers[0], locks[0])])
        with ThreadPoolExecutor(len(workers)) as threads:
            futures = [threads.submit(work, *pair) for pair in zip(workers, locks, strict=True)]
            try:
                return total([future.result() for future in as_completed(futures)])
            finally:
                stop.set()
                for turns in workers:
                    turns.leaving = True
    finally:
        stop.set()
        heart.join()


def _renew(client: "Client", turns: Turns, lock: threading.Lock) -> None:
    """Renew what a worker holds, unless it sends judgements now, which renews as well."""
    if lock.acquire(blocking=False):
        try:
            # The worker itself meets a refusal with its next request
            with suppress(Refusal):
                client.run(turns.beat())
        finally:
            lock.release()

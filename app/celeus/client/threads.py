"""The label loop of `celeus.Session`: several judges as threads.

`celeus.client.tasks` has the same functions for `celeus.AsyncSession`.
"""

import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, contextmanager, suppress
from threading import Event
from typing import TYPE_CHECKING, Any

from celeus.client import calls
from celeus.client.config import HEARTBEATS, LEASE_SECONDS, LOOK_SECONDS
from celeus.client.label_loop import JudgeResult, Turn, Turns, total
from celeus.client.worker_names import WorkerName
from celeus.errors import Refusal

if TYPE_CHECKING:
    from celeus.client.blocking import Client

_Pair = tuple[Turns, threading.Lock]


class WorkerNames:
    """Names for those who judge without giving one; every thread keeps its own."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._local = threading.local()

    @contextmanager
    def use(self, worker: str | None) -> Iterator[str]:
        """Yield ``worker``, or where that is empty a name that no other thread judges under."""
        if not worker and not hasattr(self._local, "worker"):
            self._local.worker = WorkerName(self._session)
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
    """Let a function judge for all workers at once, and renew their leases meanwhile.

    A call whose item another judge has judged meanwhile is not waited for when all else is done.
    """
    lease = min(LEASE_SECONDS, client.run(calls.lease_seconds(workers[0].session)))
    locks = [threading.Lock() for _ in workers]
    stop = Event()

    def work(turns: Turns, lock: threading.Lock) -> None:
        if stop.is_set():
            # It ended before this thread began
            return
        with closing(held(client, turns, lock)) as batches:
            for batch in batches:
                turns.take(batch, verdict(turns.shown(batch)))
                if stop.is_set() or turns.abandoned:
                    break

    def renew() -> None:
        while not stop.wait(lease / HEARTBEATS):
            for turns, lock in zip(workers, locks, strict=True):
                _renew(client, turns, lock)

    heart = threading.Thread(target=renew, daemon=True)
    heart.start()
    try:
        if len(workers) == 1:
            # Here, where signals arrive, on which some scorers and models count
            work(workers[0], locks[0])
            return total(workers)
        _work_in_threads(client, list(zip(workers, locks, strict=True)), work, stop)
        return total(workers)
    finally:
        stop.set()
        heart.join()


def _work_in_threads(
    client: "Client", pairs: list[_Pair], work: Callable[[Turns, threading.Lock], None], stop: Event
) -> None:
    """Have all workers work; raises what the first of them raised, once the others have ended."""
    under_way = {_started(work, pair): pair for pair in pairs}
    try:
        for ended in _ended(client, under_way, len(pairs)):
            ended.result()
    finally:
        stop.set()
        for turns, _ in pairs:
            turns.leaving = True
        # What they are judging is still told
        for _ in _ended(client, under_way, len(pairs)):
            pass


def _started(work: Callable[[Turns, threading.Lock], None], pair: _Pair) -> Future[None]:
    """Work in a thread, which does not keep the program from ending."""
    future = Future[None]()

    def run() -> None:
        try:
            work(*pair)
        except BaseException as error:  # noqa: BLE001 -- raised where it is waited for
            future.set_exception(error)
        else:
            future.set_result(None)

    threading.Thread(target=run, daemon=True).start()
    return future


def _ended(
    client: "Client", under_way: dict[Future[None], _Pair], most: int
) -> Iterator[Future[None]]:
    """Yield and drop what is ``under_way`` as it ends, of ``most`` workers.

    Once one of them has ended there is nothing more to judge, and those whose items others have
    judged are not waited for.
    """
    while under_way:
        ended, going_on = wait(under_way, LOOK_SECONDS, return_when=FIRST_COMPLETED)
        for future in ended:
            del under_way[future]
            yield future
        if not ended and len(under_way) < most:
            for future in going_on:
                if _is_overtaken(client, *under_way[future]):
                    del under_way[future]


def _is_overtaken(client: "Client", turns: Turns, lock: threading.Lock) -> bool:
    """Whether others have judged what a worker is judging, which is let go of then."""
    if not lock.acquire(blocking=False):
        return False
    try:
        with suppress(Refusal):
            if turns.held and not client.run(turns.keep()):
                turns.abandon()
        return turns.abandoned
    finally:
        lock.release()


def _renew(client: "Client", turns: Turns, lock: threading.Lock) -> None:
    """Renew what a worker holds, unless it sends judgements now, which renews as well."""
    if lock.acquire(blocking=False):
        try:
            # The worker itself meets a refusal with its next request
            with suppress(Refusal):
                client.run(turns.beat())
        finally:
            lock.release()

"""The label loop of `celeus.Session`: several judges as threads.

`celeus.client.tasks` has the same functions for `celeus.AsyncSession`.
"""

import threading
from collections.abc import Callable, Coroutine, Generator, Hashable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, contextmanager, suppress
from inspect import isawaitable
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from celeus.client import calls
from celeus.client.call_times import LAST_SECONDS, CallTimes, warn_of_hanging
from celeus.client.label_loop import (
    HEARTBEATS,
    LEASE_SECONDS,
    STOPPED,
    HeldTurns,
    JudgeResult,
    Turn,
    total,
)
from celeus.client.worker_names import WorkerName
from celeus.errors import InvalidValue, Refusal

if TYPE_CHECKING:
    from celeus.client.blocking import Client


T = TypeVar("T")


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
    client: "Client", turns: HeldTurns, lock: "threading.Lock | None" = None
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
    except GeneratorExit:
        client.run(turns.finish())
        raise


def _judge(
    client: "Client",
    held: "tuple[HeldTurns, threading.Lock]",
    batch: list[Turn],
    verdict: Callable[[Any], Any],
    times: CallTimes,
) -> None:
    """Have what a worker holds judged: each draw of several runs until one settles it."""
    turns, lock = held
    while batch:
        with times.call(turns):
            found = verdict(turns.shown(batch))
        batch = turns.take(batch, _settled(found))
        if batch:
            with lock:
                client.run(turns.keep_runs(batch))


def judge_together(
    client: "Client",
    workers: list[HeldTurns],
    verdict: Callable[[Any], Any],
) -> JudgeResult:
    """Let a function judge for all workers at once, and renew their leases meanwhile.

    Calls under way when the session has stopped, or one has failed, are waited for while they last
    no longer than others, and then let go of.
    """
    task = client.run(calls.task_of(workers[0].session))
    lease = min(LEASE_SECONDS, task.lease_seconds)
    for turns in workers:
        turns.task = task
    locks = [threading.Lock() for _ in workers]
    stop, times = Event(), CallTimes()

    def work(turns: HeldTurns, lock: threading.Lock) -> None:
        with closing(held(client, turns, lock)) as batches:
            while not stop.is_set() and (batch := next(batches, None)):
                # It may have come when nobody waited for it any more
                if not stop.is_set():
                    _judge(client, (turns, lock), batch, verdict, times)

    def renew() -> None:
        while not stop.wait(lease / HEARTBEATS):
            for turns, lock in zip(workers, locks, strict=True):
                if not stop.is_set():
                    _renew(client, turns, lock)
            under_way = [(turns, turns.in_work) for turns in workers]
            client.run(warn_of_hanging(workers[0].path, under_way, times))

    heart = threading.Thread(target=renew, daemon=True)
    heart.start()
    try:
        if len(workers) == 1:
            # Here, where signals arrive, on which some scorers and models count
            work(workers[0], locks[0])
        else:
            _work_in_threads(dict(zip(workers, locks, strict=True)), work, stop, times)
        return total(workers)
    finally:
        stop.set()
        heart.join(LAST_SECONDS)


def _settled(verdict: object) -> object:
    """Return a verdict; refuses one that has yet to be awaited."""
    if isawaitable(verdict):
        if isinstance(verdict, Coroutine):
            verdict.close()
        rule = "given to celeus.AsyncClient, which awaits it, or a plain function"
        message = f"a judge that is asynchronous must be {rule}"
        raise InvalidValue(message, field="judge", rule=rule)
    return verdict


def _work_in_threads(
    workers: dict[HeldTurns, threading.Lock],
    work: Callable[[HeldTurns, threading.Lock], None],
    stop: Event,
    times: CallTimes,
) -> None:
    """Have all workers work; raises what the first of them raised."""
    under_way = {started(work, *worker): worker[0] for worker in workers.items()}
    going_on = set(under_way)
    try:
        while going_on:
            ended, going_on = wait(going_on, return_when=FIRST_COMPLETED)
            stopped = any(under_way[future].state in STOPPED for future in ended)
            while ended:
                ended.pop().result()
            if stopped:
                break
    finally:
        stop.set()
        for turns in workers:
            turns.leaving = True
        # What they are judging is still told
        hanging = last(under_way, going_on, times)
        ended = going_on - hanging
        for future in hanging:
            under_way[future].abandon()
        # A failure that kept itself would keep the session, and with it the judge's name
        under_way.clear()
    for future in ended:
        future.result()


def last(
    under_way: Mapping[Future[T], Hashable], going_on: set[Future[T]], times: CallTimes
) -> set[Future[T]]:
    """Wait for the last calls, and return those that hang; ``under_way`` has what each is for."""
    times.stop()
    while going_on and (left := times.patience(under_way[future] for future in going_on)):
        _, going_on = wait(going_on, left, FIRST_COMPLETED)
    return going_on


def started(work: Callable[..., T], *arguments: Any) -> Future[T]:  # noqa: ANN401 -- of any function
    """Call a function in a thread, which does not keep the program from ending."""
    future = Future[T]()

    def run() -> None:
        try:
            future.set_result(work(*arguments))
        except BaseException as error:  # noqa: BLE001 -- raised where it is waited for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def _renew(client: "Client", turns: HeldTurns, lock: threading.Lock) -> None:
    """Renew what a worker holds, unless it sends judgements now, which renews as well."""
    if lock.acquire(blocking=False):
        try:
            # The worker itself meets a refusal with its next request
            with suppress(Refusal):
                client.run(turns.beat())
        finally:
            lock.release()

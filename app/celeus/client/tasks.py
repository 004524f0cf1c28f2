"""The label loop of `celeus.AsyncSession`: several judges as tasks of one event loop.

`celeus.client.threads` has the same functions for `celeus.Session`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from celeus.client import calls
from celeus.client.call_times import CallTimes, warn_of_hanging
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
from celeus.errors import Refusal

if TYPE_CHECKING:
    from celeus.client.asynchronous import AsyncClient


class WorkerNames:
    """Names for those who judge without giving one; a name is used again once it is free."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._free: list[WorkerName] = []

    @contextmanager
    def use(self, worker: str | None) -> Iterator[str]:
        """Yield ``worker``, or where that is empty a name that no other task judges under."""
        if worker:
            yield worker
            return
        name = self._free.pop() if self._free else WorkerName(self._session)
        try:
            yield name.text
        finally:
            self._free.append(name)


async def held(
    client: "AsyncClient", turns: HeldTurns, lock: asyncio.Lock | None = None
) -> AsyncGenerator[list[Turn], None]:
    """Yield what a worker holds until nothing more is asked for; send the last judgements."""
    lock = lock or asyncio.Lock()

    async def renewed() -> bool:
        async with lock:
            return await client.run(turns.keep())

    try:
        while True:
            async with lock:
                batch = await client.run(turns.step(renewed))
            if not batch:
                return
            yield batch
    except GeneratorExit:
        await client.run(turns.finish())
        raise


async def _judge(
    client: "AsyncClient",
    held: tuple[HeldTurns, asyncio.Lock],
    batch: list[Turn],
    verdict: Callable[[Any], Any],
    times: CallTimes,
) -> None:
    """Have what a worker holds judged: each draw of several runs until one settles it."""
    turns, lock = held
    while batch:
        with times.call(turns):
            found = verdict(turns.shown(batch))
            found = await found if isawaitable(found) else found
        batch = turns.take(batch, found)
        if batch:
            async with lock:
                await client.run(turns.keep_runs(batch))


async def judge_together(
    client: "AsyncClient",
    workers: list[HeldTurns],
    verdict: Callable[[Any], Any],
) -> JudgeResult:
    """Let a function judge for all workers at once, and renew their leases meanwhile.

    Calls under way when the session has stopped are waited for while they last no longer than
    others, and then cancelled.
    """
    task = await client.run(calls.task_of(workers[0].session))
    lease = min(LEASE_SECONDS, task.lease_seconds)
    for turns in workers:
        turns.task = task
    locks = [asyncio.Lock() for _ in workers]
    times = CallTimes()

    async def work(turns: HeldTurns, lock: asyncio.Lock) -> None:
        async with aclosing(held(client, turns, lock)) as batches:
            async for batch in batches:
                await _judge(client, (turns, lock), batch, verdict, times)

    async def renew() -> None:
        while True:
            await asyncio.sleep(lease / HEARTBEATS)
            for turns, lock in zip(workers, locks, strict=True):
                # A worker that sends judgements renews as well, and meets refusals itself
                if not lock.locked():
                    async with lock:
                        with suppress(Refusal):
                            await client.run(turns.beat())
            under_way = [(turns, turns.in_work) for turns in workers]
            await client.run(warn_of_hanging(workers[0].path, under_way, times))

    heart = asyncio.create_task(renew())
    try:
        async with asyncio.TaskGroup() as group:
            pairs = zip(workers, locks, strict=True)
            await _stopped({group.create_task(work(*pair)): pair[0] for pair in pairs}, times)
    except ExceptionGroup as failures:
        # What stopped one judge stops them all; it is told once
        raise failures.exceptions[0] from None
    finally:
        heart.cancel()
    return total(workers)


async def _stopped(under_way: dict[asyncio.Task[None], HeldTurns], times: CallTimes) -> None:
    """Wait until the session has stopped, and cancel the calls that hang then."""
    going_on = set(under_way)
    while going_on:
        ended, going_on = await asyncio.wait(going_on, return_when=asyncio.FIRST_COMPLETED)
        if any(under_way[task].state in STOPPED for task in ended):
            break
    times.stop()
    while going_on and (left := times.patience(under_way[task] for task in going_on)):
        _, going_on = await asyncio.wait(
            going_on, timeout=left, return_when=asyncio.FIRST_COMPLETED
        )
    for task in going_on:
        under_way[task].abandon()
        task.cancel()

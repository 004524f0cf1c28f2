"""Await the answers of a child process.

Beside `workers`, of which every child imports its own half: it would wait for asyncio in vain.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from celeus.operations.runtime.workers import Bounds, Child, Files, Frame, WorkerFailed


async def gather(
    module: str, job: Callable[[], Frame], bounds: Bounds, files: Files = ()
) -> tuple[list[Frame], WorkerFailed | None]:
    """All frames that the child answers, and why there are no more where it failed.

    ``job`` is made in a thread. A caller who is cancelled takes the child along.
    """
    child = Child(module, bounds, files)
    reading: Future[tuple[list[Frame], WorkerFailed | None]] = Future()
    # So that a caller who is cancelled leaves it to the thread, which clears up
    reading.set_running_or_notify_cancel()
    try:
        # A thread of its own: those that others wait for stay free
        threading.Thread(target=child.answer, args=(job, reading), daemon=True).start()
        return await asyncio.wrap_future(reading)
    finally:
        # The thread then meets the end of the answers
        child.kill()


async def only_answer(module: str, job: Frame, bounds: Bounds, files: Files = ()) -> dict[str, Any]:
    """The values of the only frame that the child answers.

    Raises WorkerFailed where it met a bound, and a refusal where it ended by an error of ours.
    """
    frames, failure = await gather(module, lambda: job, bounds, files)
    if failure is None and len(frames) != 1:
        failure = WorkerFailed("answer", 0)
    if failure is None:
        return frames[0].values
    if failure.reason == "status":
        raise failure.refusal from failure
    raise failure

"""Have sessions simulated in processes of their own, few at a time and for a bounded time."""

import asyncio
import json
import math
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from app.errors import PlanningBusy
from app.operations.planningjob import Job

AT_ONCE = 2
GRACE_SECONDS = 1.0
"""What the process may take beyond its deadline to say what it has."""

_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class Plannings:
    """At most AT_ONCE at a time in this process."""

    def __init__(self) -> None:
        self.under_way = 0

    @contextmanager
    def place(self, seconds: float) -> Iterator[None]:
        """One of the places, to be taken before anything large is read; refused where none is free.

        Whoever comes again after ``seconds`` may find one.
        """
        if self.under_way >= AT_ONCE:
            raise PlanningBusy(
                "Other plans are being simulated; try again.", retry_after=math.ceil(seconds)
            )
        self.under_way += 1
        try:
            yield
        finally:
            self.under_way -= 1


async def told(prepare: Callable[[float], Job], seconds: float) -> list[dict[str, Any]]:
    """All lines the job's process told within ``seconds``.

    ``prepare`` makes the job from its deadline, in a thread.
    """
    deadline = time.monotonic() + seconds

    def packed() -> bytes:
        return pickle.dumps(prepare(deadline), protocol=pickle.HIGHEST_PROTOCOL)

    job = await asyncio.to_thread(packed)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.operations.planningjob"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | _ONE_THREAD,
        # A Ctrl-C is for the server, which then ends this process
        start_new_session=True,
    )
    lines: list[dict[str, Any]] = []
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline + GRACE_SECONDS - time.monotonic()):
                await _talk(process, job, lines)
                await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if (process.returncode or 0) > 0:
        # It may be killed for its time; an error of its own is ours.
        raise RuntimeError(f"the process of a planning ended with {process.returncode}")
    return lines


async def _talk(
    process: asyncio.subprocess.Process, job: bytes, lines: list[dict[str, Any]]
) -> None:
    if process.stdin is None or process.stdout is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(job)
        await process.stdin.drain()
    process.stdin.close()
    while line := await process.stdout.readline():
        lines.append(json.loads(line))

"""Requests that wait for the same thing, answered in groups."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from contextvars import Context
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Generic, TypeVar

from celeus.errors import Busy
from celeus.operations.runtime.admission import overloaded
from celeus.timings import Timings, current, of_all

MOST_TOGETHER = 64

Asked = TypeVar("Asked")


@dataclass(slots=True, eq=False)
class Request(Generic[Asked]):
    """A request: ``asked``, and its ``answer``, which may be refused or abandoned."""

    asked: Asked
    answer: asyncio.Future[Any]
    timings: Timings | None = field(default_factory=current)
    since: float = field(default_factory=perf_counter)
    begun: bool = False

    def begin(self) -> None:
        """Note that its turn has come."""
        if not self.begun and self.timings is not None:
            self.timings.note("lock", self.since)
        self.begun = True

    def give(self, answer: object) -> None:
        """Answer it, if it is waited for."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def refuse(self, error: BaseException) -> None:
        """Have it raise, if it is waited for."""
        if not self.answer.done():
            self.answer.set_exception(error)


Run = Callable[[list[Request[Any]]], Awaitable[list[Request[Any]]]]
"""Answers a group; gives back those that are to come with the next one."""


@dataclass(slots=True)
class _Queue:
    waiting: deque[Request[Any]] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None


class Groups:
    """The requests of a process that wait, by what they wait for: ``most`` at each place."""

    def __init__(self, patience_seconds: float, most: int) -> None:
        self._patience = patience_seconds
        self._most = most
        self._queues: dict[Hashable, _Queue] = {}

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return sum(len(queue.waiting) for queue in self._queues.values())

    async def answer(self, place: Hashable, asked: Asked, run: Run) -> Any:  # noqa: ANN401 - theirs
        """The answer of ``run`` to what is asked, in a group with all that wait at this place.

        Refuses as `Busy` where its turn does not come in time, and as `Overloaded` where too many
        wait before it.
        """
        queue = self._queues.setdefault(place, _Queue())
        if len(queue.waiting) >= self._most:
            raise overloaded()
        request = Request(asked, asyncio.get_running_loop().create_future())
        queue.waiting.append(request)
        if queue.task is None:
            # In a context of its own: what it logs is not of whoever came first
            serving = self._serve(place, queue, run)
            queue.task = asyncio.create_task(serving, context=Context())
        try:
            await asyncio.wait({request.answer}, timeout=self._patience)
            if not request.answer.done() and not request.begun:
                queue.waiting.remove(request)
                raise Busy("other requests to this session have not ended yet; try again")
            return await request.answer
        finally:
            request.answer.cancel()

    async def _serve(self, place: Hashable, queue: _Queue, run: Run) -> None:
        group: list[Request[Any]] = []
        try:
            while queue.waiting:
                group = _next_group(queue.waiting)
                if group:
                    with of_all([request.timings for request in group]):
                        queue.waiting.extendleft(reversed(await run(group)))
        finally:
            # Nobody waits for ever, whatever has ended this
            for request in (*group, *queue.waiting):
                request.refuse(Busy("the request was broken off; try again"))
            queue.task = None
            if self._queues.get(place) is queue:
                del self._queues[place]


def _next_group(waiting: deque[Request[Any]]) -> list[Request[Any]]:
    group: list[Request[Any]] = []
    while waiting and len(group) < MOST_TOGETHER:
        request = waiting.popleft()
        if not request.answer.done():
            request.begin()
            group.append(request)
    return group

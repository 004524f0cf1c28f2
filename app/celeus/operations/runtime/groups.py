"""Requests that wait for the same thing, answered in groups."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from celeus.errors import Busy
from celeus.operations.runtime.admission import overloaded

MOST_TOGETHER = 64

Asked = TypeVar("Asked")


@dataclass(slots=True, eq=False)
class Request(Generic[Asked]):
    """What is ``asked``, and its ``answer``, which may be refused or no longer be waited for."""

    asked: Asked
    answer: asyncio.Future[Any]
    begun: bool = False

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
            queue.task = asyncio.create_task(self._serve(place, queue, run))
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
            request.begun = True
            group.append(request)
    return group

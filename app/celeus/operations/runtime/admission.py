"""Queues for the database and for processes, in which the waiting projects take turns."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from celeus.errors import Overloaded, Unavailable
from celeus.operations.runtime.concurrency import PATIENCE_SECONDS, GatesOfKeys
from celeus.timings import Part, timed

RETRY_SECONDS = 1
BACKGROUND_RETRY_SECONDS = 5
MOST_WAITING = 256
"""Callers that wait for a place in the background: each may hold an upload."""

Waiting = deque[asyncio.Future[None]]


class Admission:
    """``places`` for callers of any project; where none is free, the projects take turns.

    At most ``queue`` callers wait: one more is refused, or the newest of the project that has most
    of them waiting. Nobody waits longer than ``patience_seconds``.
    """

    def __init__(
        self, places: int, queue: int, patience_seconds: float, part: Part = "connection"
    ) -> None:
        """``part`` of a request is how long it waits."""
        self._free = places
        self._most = queue
        self._patience = patience_seconds
        self._part: Part = part
        self._queues: OrderedDict[Hashable, Waiting] = OrderedDict()
        self.waiting = 0
        """Number of requests that wait."""

    @asynccontextmanager
    async def of(self, project: Hashable) -> AsyncIterator[None]:
        """A place, while the block runs. Refuses as `Overloaded`."""
        if self._free and not self._queues:
            self._free -= 1
        else:
            with timed(self._part):
                await self._wait(project)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, project: Hashable) -> None:
        if self.waiting >= self._most:
            self._make_room(project)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(project, deque()).append(place)
        self.waiting += 1
        try:
            await asyncio.wait({place}, timeout=self._patience)
        except asyncio.CancelledError:
            if place.done() and place.exception() is None:
                self._pass_on()
            else:
                self._leave(project, place)
            raise
        if not place.done():
            self._leave(project, place)
            raise overloaded()
        # Raises where it was refused for another
        place.result()

    def _make_room(self, project: Hashable) -> None:
        """Refuse the newest of the project that waits most, unless it is this one's turn to be."""
        longest = max(self._queues, key=lambda queued: len(self._queues[queued]), default=project)
        of_project = len(self._queues.get(project, ()))
        if not self._queues or len(self._queues[longest]) <= of_project + 1:
            raise overloaded()
        newest = self._queues[longest][-1]
        self._leave(longest, newest)
        newest.set_exception(overloaded())

    def _leave(self, project: Hashable, place: asyncio.Future[None]) -> None:
        queue = self._queues.get(project)
        if queue is not None and place in queue:
            queue.remove(place)
            self.waiting -= 1
            if not queue:
                del self._queues[project]

    def _pass_on(self) -> None:
        """Give the place to the next project's oldest caller, or keep it free."""
        if not self._queues:
            self._free += 1
            return
        project, queue = self._queues.popitem(last=False)
        place = queue.popleft()
        self.waiting -= 1
        if queue:
            self._queues[project] = queue
        place.set_result(None)


class Background:
    """``places`` for the processes of work that takes long, of every kind and any project.

    Those who wait take turns by project, for ``patience_seconds`` at most. A key has half of the
    places; work of a ``kind`` that may be much leaves one place to all others, and that of one
    project one more to those of other projects.
    """

    def __init__(self, places: int, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._places = Admission(places, MOST_WAITING, patience_seconds, "background")
        self._keys = GatesOfKeys(max(1, places // 2), overloaded, patience=patience_seconds)
        self._kinds = GatesOfKeys(max(1, places - 1), overloaded, patience=patience_seconds)
        self._shares = GatesOfKeys(max(1, places - 2), overloaded, patience=patience_seconds)
        self._patience = patience_seconds
        self.running = self.waiting = 0
        """Places taken, and how many callers wait, now."""

    @asynccontextmanager
    async def of(
        self, project: Hashable, key: str, kinds: Iterable[str], refusal: type[Unavailable]
    ) -> AsyncIterator[None]:
        """A place for one process, while the block runs; ``refusal`` where none comes in time."""
        async with AsyncExitStack() as stack:
            self.waiting += 1
            try:
                async with asyncio.timeout(self._patience):
                    await stack.enter_async_context(self._keys.of(key))
                    for kind in kinds:
                        await stack.enter_async_context(self._shares.of(f"{kind} {project}"))
                        await stack.enter_async_context(self._kinds.of(kind))
                    await stack.enter_async_context(self._places.of(project))
            except (Overloaded, TimeoutError) as error:
                raise refusal(
                    "Other plans, verifications or files are at work; try again.",
                    retry_after=BACKGROUND_RETRY_SECONDS,
                ) from error
            finally:
                self.waiting -= 1
            self.running += 1
            try:
                yield
            finally:
                self.running -= 1


def overloaded() -> Overloaded:
    """The refusal of a request that has too many before it."""
    return Overloaded(
        "More requests wait than are answered in time; try again.", retry_after=RETRY_SECONDS
    )

"""Where the database has no place left, projects take turns, and too many are refused."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from celeus.errors import Overloaded
from celeus.operations.runtime.admission import Admission
from celeus.operations.runtime.context import Context

PATIENCE_SECONDS = 30.0


class Visits:
    """Callers of one admission, in the order in which they were let in."""

    def __init__(self, places: int, queue: int, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self.admission = Admission(places, queue, patience_seconds)
        self.inside: list[str] = []
        self.most = 0
        self.leave = asyncio.Event()
        self._now = 0

    async def of(self, project: str) -> None:
        """Come in, and stay until all may leave."""
        async with self.admission.of(project):
            self.inside.append(project)
            self._now += 1
            self.most = max(self.most, self._now)
            await self.leave.wait()
            self._now -= 1

    def ask(self, project: str) -> asyncio.Task[None]:
        """Have somebody of the project ask for a place."""
        return asyncio.create_task(self.of(project))


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not met():  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(0)


async def test_projects_take_turns_however_many_of_one_wait() -> None:
    visits = Visits(places=1, queue=100)
    tasks = [visits.ask("large") for _ in range(9)]
    await until(lambda: visits.admission.waiting == 8)
    tasks += [visits.ask("small") for _ in range(3)]
    await until(lambda: visits.admission.waiting == 11)
    visits.leave.set()
    await asyncio.gather(*tasks)
    assert visits.inside == ["large", *["large", "small"] * 3, *["large"] * 5]
    assert visits.most == 1
    assert visits.admission.waiting == 0


async def test_a_full_queue_refuses_the_newest_of_the_project_that_waits_most() -> None:
    visits = Visits(places=1, queue=4)
    large = [visits.ask("large") for _ in range(5)]
    await until(lambda: visits.admission.waiting == 4)
    with pytest.raises(Overloaded) as refusal:
        await visits.of("large")
    assert refusal.value.more["retry_after"] == 1
    small = [visits.ask("small") for _ in range(3)]
    with pytest.raises(Overloaded):
        await small[2]
    for refused in large[:2:-1]:
        with pytest.raises(Overloaded):
            await refused
    visits.leave.set()
    await asyncio.gather(*large[:3], *small[:2])
    assert visits.inside == ["large", "large", "small", "large", "small"]


async def test_who_waits_too_long_is_refused_and_the_place_stays() -> None:
    visits = Visits(places=1, queue=4, patience_seconds=0.05)
    inside = visits.ask("one")
    await until(lambda: visits.inside == ["one"])
    with pytest.raises(Overloaded):
        await visits.of("two")
    assert visits.admission.waiting == 0
    visits.leave.set()
    await inside
    await visits.of("two")
    assert visits.inside == ["one", "two"]


async def test_a_caller_who_is_cancelled_takes_no_place() -> None:
    """Whether they still wait, or their turn has just come."""
    visits = Visits(places=1, queue=4)
    inside = visits.ask("one")
    await until(lambda: visits.inside == ["one"])
    waiting, next_one, last = visits.ask("two"), visits.ask("three"), visits.ask("four")
    await until(lambda: visits.admission.waiting == 3)
    waiting.cancel()
    await asyncio.wait({waiting})
    # By then its place is given, and it does not know yet
    inside.add_done_callback(lambda _: next_one.cancel())
    visits.leave.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.wait({inside, next_one, last})
        await visits.of("five")
    assert next_one.cancelled()
    assert visits.inside == ["one", "four", "five"]
    assert visits.most == 1


async def test_a_key_is_looked_up_before_all_requests_of_a_large_project(context: Context) -> None:
    """Whose it is nobody knows yet: it is not the default project's turn that it waits for."""
    narrow = replace(context, admission=Admission(1, 100, PATIENCE_SECONDS))
    caller = replace(narrow, key_id="known")
    order: list[str] = []

    async def asks(who: Context, name: str) -> None:
        async with who.transaction():
            order.append(name)

    async with narrow.transaction():
        tasks = [asyncio.create_task(asks(caller, "project")) for _ in range(8)]
        await until(lambda: narrow.admission.waiting == 8)
        tasks.append(asyncio.create_task(asks(narrow, "stranger")))
        await until(lambda: narrow.admission.waiting == 9)
    await asyncio.gather(*tasks)
    assert order[:3] == ["project", "stranger", "project"]

"""`celeus.AsyncClient`: a service met over HTTP from a program that does not block."""

import asyncio
import os
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, suppress
from inspect import isawaitable
from typing import Any, Self, TypeVar

import httpx2

from celeus.client import calls
from celeus.client.exchange import (
    Answer,
    Flow,
    Lost,
    Pause,
    Request,
    Told,
    checked,
    created,
    get,
    greeted,
    post,
)
from celeus.client.following import Following
from celeus.client.opening import HEARTBEATS, LIMITS, REQUEST_SECONDS, Service
from celeus.client.picture import POINTS, Picture, picture
from celeus.client.results import (
    Comment,
    Entry,
    Item,
    Label,
    Plan,
    Point,
    Pool,
    Status,
    Tombstone,
)
from celeus.client.rows import frame_of
from celeus.client.service import check_session, reason
from celeus.client.turns import JudgeResult, Seen, Turn, Turns, check_concurrency, new_worker, total
from celeus.errors import Refusal

T = TypeVar("T")


class AsyncClient:
    """`celeus.Client` for programs that do not block: the same methods, to be awaited.

    Lists, `draws` and `follow` are asynchronous iterators. ``http`` is an asynchronous client of
    httpx2 to be used instead of one of its own.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        http: httpx2.AsyncClient | None = None,
        retry: bool = True,
    ) -> None:
        self._service = Service.of(url, key)
        self._own = http is None
        self._http = http or httpx2.AsyncClient(timeout=REQUEST_SECONDS, limits=LIMITS)
        self._greeted = False
        self._retry = retry

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections; not those of a client that was given."""
        if self._own:
            await self._http.aclose()

    async def run(self, flow: Flow[T]) -> T:
        """Do what a flow of `celeus.client.calls` says, to its end."""
        if not self._greeted:
            await self._run(greeted(self._service.url))
            self._greeted = True
        return await self._run(flow)

    async def _run(self, flow: Flow[T]) -> T:
        told: Told = None
        while True:
            try:
                step = flow.send(told)
            except StopIteration as ended:
                value: T = ended.value
                return value
            if isinstance(step, Pause):
                if not self._retry:
                    checked(told)
                await asyncio.sleep(step.seconds)
                told = None
            else:
                told = await self._exchanged(step)

    async def _exchanged(self, request: Request) -> Answer | Lost:
        try:
            async with self.stream(request) as answer:
                return Answer(answer.status_code, answer.headers, await answer.aread())
        except httpx2.HTTPError as error:
            return Lost(f"{self._service.url} cannot be reached: {reason(error)}")

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[httpx2.Response]:
        """An answer whose body has not come yet."""
        body = request.body if request.parts is None else _parts(request.parts())
        async with self._http.stream(
            request.method,
            self._service.url + request.path,
            params=request.query or None,
            headers=self._service.headers_of(request),
            content=body,
            timeout=httpx2.USE_CLIENT_DEFAULT if request.seconds is None else request.seconds,
            follow_redirects=False,
        ) as answer:
            yield answer

    async def request(self, method: str, path: str, body: object = None, **query: object) -> Any:  # noqa: ANN401 -- JSON
        """The answer to anything else that docs/api.md has, as JSON; ``path`` as `/v1/claims`."""
        if method == "GET":
            return await self.run(get(path, **query))
        return await self.run(created(path, body) if method == "POST" else post(path, body, method))

    async def create_pool(
        self,
        name: str,
        items: object = None,
        **members: Any,  # noqa: ANN401 -- members of the contract
    ) -> Pool:
        """A sealed pool of ``items``: a frame, a Dataset, dicts, or the path of a table or a log.

        It is there with all its items or not at all. Further members: ``loss`` (`zero_one` unless
        said otherwise), ``score``, ``metrics``, ``levels``, ``systems``, ``based_on``,
        ``instructions`` for judges, and ``mapping``, roles by columns, such as
        `{"Frage": "question"}`: without it they are guessed, unless columns are members of an item.
        Without items it is open for `add_items`.
        """
        form = calls.pool_form(name, **members)
        if items is None:
            return await self.run(calls.create_pool(form))
        return await self.run(calls.create_filled_pool(form, items))

    async def add_items(self, pool: Pool | str, items: object) -> int:
        """How many items an open pool has got; all of them or none."""
        return await self.run(calls.add_items(calls.id_of(pool), items))

    async def seal_pool(self, pool: Pool | str) -> Pool:
        """The pool, which takes no more items."""
        return await self.run(calls.seal_pool(calls.id_of(pool)))

    async def delete_pool(self, pool: Pool | str) -> None:
        """Delete an archived pool without sessions, for good."""
        await self.run(calls.delete_pool(calls.id_of(pool)))

    async def pool(self, pool: str) -> Pool:
        """A pool by its id."""
        return await self.run(calls.get_pool(pool))

    def pools(self) -> AsyncIterator[Pool]:
        """All pools, newest first."""
        return self.pages(Pool, calls.POOLS)

    def items(self, pool: Pool | str) -> AsyncIterator[Item]:
        """Items of a pool, in the order of their upload."""
        return self.pages(Item, f"{calls.POOLS}/{calls.id_of(pool)}/items")

    async def plan(self, pool: Pool | str, **asked: Any) -> Plan:  # noqa: ANN401
        """How many labels a session would take; ``asked`` as for `open_session`."""
        return await self.run(calls.plan(pool, asked))

    async def open_session(self, pool: Pool | str, **opening: Any) -> "AsyncSession":  # noqa: ANN401
        """A new session; ``opening`` has the members of docs/api.md, such as ``precision``."""
        status = await self.run(calls.open_session(pool, opening))
        return AsyncSession(self, status.id)

    async def push(self, file: str | os.PathLike[str]) -> "AsyncSession":
        """The session, closed, that the file of a run in process makes here."""
        return AsyncSession(self, (await self.run(calls.push(file))).id)

    def session(self, session: str) -> "AsyncSession":
        """A session by its id, which is not asked for yet."""
        check_session(session)
        return AsyncSession(self, session)

    def sessions(
        self, pool: Pool | str | None = None, state: str | None = None
    ) -> AsyncIterator[Status]:
        """Where all sessions stand, newest first."""
        pool_id = None if pool is None else calls.id_of(pool)
        return self.pages(Status, calls.SESSIONS, pool_id=pool_id, state=state)

    def tombstones(self, pool: Pool | str | None = None) -> AsyncIterator[Tombstone]:
        """What is left of deleted sessions, those opened last first."""
        pool_id = None if pool is None else calls.id_of(pool)
        return self.pages(Tombstone, calls.TOMBSTONES, pool_id=pool_id)

    async def pages(self, kind: type[T], path: str, **query: object) -> AsyncIterator[T]:
        """What all pages of a list hold."""
        after: object = None
        while True:
            found, after = await self.run(calls.page(kind, path, {**query, "after": after}))
            for one in found:
                yield one
            if after is None:
                return


class AsyncSession:
    """A session of a service: judge it, follow it, read it."""

    def __init__(self, client: AsyncClient, session: str) -> None:
        self.client = client
        self.id = session
        self._path = f"{calls.SESSIONS}/{session}"
        self._workers: list[str] = []

    def __repr__(self) -> str:
        return f"AsyncSession({self.id!r})"

    async def status(self) -> Status:
        """Where it stands."""
        return await self.client.run(calls.get_session(self.id))

    async def change(self, **settings: Any) -> Status:  # noqa: ANN401 -- members of the contract
        """New ``precision``, ``budget``, ``stop_when_decided``, ``state`` or ``instructions``."""
        return await self.client.run(calls.change_session(self.id, settings))

    async def close(self) -> Status:
        """Close it for good; its certificate is final then."""
        return await self.change(state="closed")

    async def delete(self, purge: str | None = None) -> Tombstone:
        """Delete it for good, archived before; what is left of it.

        ``purge`` is its name or its id, needed where certificates were issued for it.
        """
        return await self.client.run(calls.delete_session(self.id, purge))

    async def draws(
        self, worker: str | None = None, *, wait_paused: bool = False
    ) -> AsyncGenerator[Turn, None]:
        """One item after the other, until nothing more is asked for.

        As `celeus.Session.draws`; without ``worker`` a name is made up, which the next `draws`
        takes up again. Close it behind a `break` (`contextlib.aclosing`): what was said is sent
        then.
        """
        named = worker or (self._workers.pop() if self._workers else new_worker())
        turns = Turns(self.id, named, wait_paused=wait_paused)
        try:
            async with aclosing(self._held(turns)) as holding:
                async for held in holding:
                    yield held[0]
        finally:
            if worker is None:
                self._workers.append(named)

    async def judge(
        self,
        verdict: Callable[[Turn], object],
        *,
        concurrency: int = 8,
        worker: str | None = None,
        seen: Seen | None = None,
    ) -> JudgeResult:
        """Have a function judge, of so many items at once, until nothing more is asked for.

        As `celeus.Session.judge`; the function may be a coroutine function.
        """

        async def told(held: Sequence[Turn]) -> None:
            held[0].take(await _value(verdict(held[0])))

        return await self._judged(told, concurrency, worker, seen=seen)

    async def judge_many(
        self,
        verdicts: Callable[[Sequence[Turn]], Any],
        *,
        size: int = 32,
        worker: str | None = None,
        seen: Seen | None = None,
    ) -> JudgeResult:
        """The same with a function of up to ``size`` items at once, one verdict for each."""

        async def told(held: Sequence[Turn]) -> None:
            for turn, verdict in zip(held, await _value(verdicts(held)), strict=True):
                turn.take(verdict)

        return await self._judged(told, 1, worker, size=size, seen=seen)

    async def follow(self) -> AsyncIterator[Status]:
        """Where it stands, whenever something happens, until it is closed."""
        following = Following(self.id)
        while not following.closed:
            told: Answer | Lost = Lost("the stream of events ended")
            try:
                async with self.client.stream(following.request()) as answer:
                    if answer.is_success:
                        following.failures = 0
                        async for event in httpx2.EventSource(answer, max_event_size=None):
                            yield following.event(event.id, event.data)
                    else:
                        told = Answer(answer.status_code, answer.headers, await answer.aread())
            except httpx2.HTTPError as error:
                told = Lost(f"the stream of events broke: {reason(error)}")
            if not following.closed:
                await asyncio.sleep(following.pause(told))

    async def trajectory(self, points: int | None = None) -> list[Point]:
        """The interval round by round, thinned evenly to about ``points``."""
        if points is not None:
            path, query = f"{self._path}/trajectory", {"points": points, "limit": 10_000}
            return (await self.client.run(calls.page(Point, path, query)))[0]
        pages = self.client.pages(Point, f"{self._path}/trajectory", limit=10_000)
        return [one async for one in pages]

    def ledger(self) -> AsyncIterator[Entry]:
        """Everything that happened, in order."""
        return self.client.pages(Entry, f"{self._path}/ledger", limit=10_000)

    def labels(self, **wanted: Any) -> AsyncIterator[Label]:  # noqa: ANN401 -- members of the contract
        """Every judgement as it stands, in the order of the judgements.

        ``wanted`` are filters of docs/api.md, such as ``above`` and ``person``, and ``payload``.
        """
        query = {"limit": 1_000, **wanted}
        return self.client.pages(Label, f"{self._path}/labels", **query)

    async def frame(self, **wanted: Any) -> Any:  # noqa: ANN401 -- a DataFrame; pandas is no part of us
        """The same as a DataFrame of pandas."""
        return frame_of([one.raw async for one in self.labels(**wanted)])

    def comments(self) -> AsyncIterator[Comment]:
        """What judges added to their judgements, in the order of rounds."""
        return self.client.pages(Comment, f"{self._path}/comments", limit=1_000)

    async def amend(
        self,
        round: int,  # noqa: A002 -- the contract's word
        reason: str,
        **said: Any,  # noqa: ANN401 -- members of the contract
    ) -> Status | None:
        """Correct a judged round by ``loss``, ``label``, ``losses`` or the like."""
        form = {"round": round, "reason": reason, **said}
        return await self.client.run(calls.amend(self.id, form))

    async def certificate(self) -> bytes:
        """The signed document, byte by byte; final once the session is closed."""
        return await self.client.run(calls.body_at(f"{self._path}/certificate"))

    async def report(self) -> str:
        """A page for people, which loads nothing."""
        return (await self.client.run(calls.body_at(f"{self._path}/report"))).decode()

    async def picture(self) -> Picture:
        """The interval by labels, for a notebook."""
        status = await self.status()
        return picture(status, [] if status.lower is None else await self.trajectory(POINTS))

    async def _held(
        self, turns: Turns, lock: asyncio.Lock | None = None
    ) -> AsyncGenerator[list[Turn], None]:
        """What a worker holds, time after time; what was said last is told also when it leaves."""
        lock = lock or asyncio.Lock()

        async def renewed() -> bool:
            async with lock:
                return await self.client.run(turns.keep())

        try:
            while True:
                async with lock:
                    held = await self.client.run(turns.step(renewed))
                if not held:
                    return
                yield held
        finally:
            await self.client.run(turns.finish())

    async def _judged(
        self,
        told: Callable[[Sequence[Turn]], Awaitable[None]],
        concurrency: int,
        worker: str | None,
        **more: Any,  # noqa: ANN401 -- as `Turns` takes it
    ) -> JudgeResult:
        check_concurrency(concurrency)
        lease = await self.client.run(calls.lease_seconds(self.id))
        named = worker or (self._workers.pop() if self._workers else new_worker())
        working: list[tuple[Turns, asyncio.Lock]] = []

        async def work(number: int) -> Turns:
            turns, lock = Turns(self.id, f"{named}-{number}", **more), asyncio.Lock()
            working.append((turns, lock))
            async with aclosing(self._held(turns, lock)) as holding:
                async for held in holding:
                    await told(held)
            return turns

        async def beat() -> None:
            while True:
                await asyncio.sleep(lease / HEARTBEATS)
                for turns, lock in tuple(working):
                    if not lock.locked():
                        await _renew(self.client, turns, lock)

        heart = asyncio.create_task(beat())
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(work(number)) for number in range(1, concurrency + 1)]
        except ExceptionGroup as failures:
            # What stopped one judge stops them all; it is told once
            raise failures.exceptions[0] from None
        finally:
            heart.cancel()
            if worker is None:
                self._workers.append(named)
        return total([task.result() for task in tasks])


async def _renew(client: AsyncClient, turns: Turns, lock: asyncio.Lock) -> None:
    """Renew what is held, unless the worker is just telling of it, which renews as well."""
    async with lock:
        with suppress(Refusal):
            # The worker itself meets it with its next request
            await client.run(turns.keep())


async def _value(made: Any) -> Any:  # noqa: ANN401 -- whatever the function of a judge returns
    return await made if isawaitable(made) else made


async def _parts(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part

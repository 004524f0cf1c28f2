"""Bounds on how many callers do the same at once, and what lets others go on meanwhile."""

import asyncio
import gc
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from contextvars import Context
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from celeus.core.pause import PAUSE
from celeus.errors import (
    Busy,
    DatabaseUnavailable,
    RateLimited,
    Refusal,
    VerificationBusy,
)
from celeus.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE_SECONDS = 10.0
"""Longest time, in seconds, a reader waits for what takes long to make; then it is refused."""
STREAMS_OF_A_KEY = 64
"""Each looks at the database again and again."""
STREAM_RETRY_SECONDS = 5
STRANGERS_AT_ONCE = 4
"""Pages made at once for those who show no key: all others have their turn between them."""
STRANGERS_RETRY_SECONDS = 5


class Gate:
    """At most ``limit`` callers inside ``async with gate``; others wait ``patience`` seconds.

    Without patience nobody waits. ``refusal`` makes what a caller without a place is refused with.
    """

    def __init__(self, limit: int, patience: float, refusal: Callable[[], Refusal]) -> None:
        self._patience = patience
        self._refusal = refusal
        self._places = asyncio.Semaphore(limit)
        self.taken = 0

    async def __aenter__(self) -> Self:
        if self._places.locked() and not self._patience:
            raise self._refusal()
        try:
            async with asyncio.timeout(self._patience or None):
                await self._places.acquire()
        except TimeoutError as error:
            raise self._refusal() from error
        self.taken += 1
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.taken -= 1
        self._places.release()


class Gates:
    """The gates of this process, by what is done behind them."""

    def __init__(self, settings: Settings) -> None:
        # An import holds a connection as long as it lasts, and others need some, too.
        imports = max(1, settings.database_pool_size // 2)
        patience = settings.lock_timeout_ms / 1000
        self.imports = Gate(
            imports,
            patience,
            lambda: DatabaseUnavailable("too many imports are running; try again"),
        )
        # Half of the places are left to others
        self._imports_of_keys = GatesOfKeys(
            max(1, imports // 2),
            lambda: Busy("Other imports of this key are running; try again."),
            patience=patience,
        )
        # Whoever waits for its answer waits here, and not with a connection to the database
        self.idempotency_keys = _single_each("The same request is under way; try again.", patience)
        self.corrections_of_keys = _single_each(
            "Another correction of this key is being folded; try again.", patience
        )
        # However many people ask for one, no more processors are busy with it
        self.surrogates = _single("Other surrogates are being analysed; try again.")
        self.provisional_of_sessions = _single_each(
            "Others ask for the provisional answer of this session; try again."
        )
        self.certificates = _single("Other certificates are being made; try again.")
        self.news = _single("Other news are being read; try again.")
        self.strangers = Gate(STRANGERS_AT_ONCE, settings.client_timeout_seconds, _many_strangers)
        self.streams = GatesOfKeys(STREAMS_OF_A_KEY, _too_many_streams)
        self.webhooks_of_keys = _single_each(
            "Another webhook of this key is being made or tried; try again."
        )
        self.verifications_of_keys = GatesOfKeys(
            1, lambda: VerificationBusy("This key has a certificate being verified; try again.")
        )

    @asynccontextmanager
    async def importing(self, key: str) -> AsyncIterator[None]:
        """A place among the imports, of which one key has half at most."""
        async with self._imports_of_keys.of(key), self.imports:
            yield


class GatesOfKeys:
    """A gate for every key; those that nobody is in, or waits for, take no memory."""

    def __init__(
        self, limit: int, refusal: Callable[[], Refusal], *, patience: float = 0.0
    ) -> None:
        self._limit = limit
        self._patience = patience
        self._refusal = refusal
        self._gates: dict[str, Gate] = {}
        self._callers = Counter[str]()

    @property
    def taken(self) -> int:
        """Places taken, of all keys together."""
        return sum(gate.taken for gate in self._gates.values())

    @asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[None]:
        """Take one of the places of a key; refused if none is left."""
        gate = self._gates.setdefault(key, Gate(self._limit, self._patience, self._refusal))
        self._callers[key] += 1
        try:
            async with gate:
                yield
        finally:
            self._callers[key] -= 1
            if not self._callers[key]:
                del self._callers[key], self._gates[key]


def _single(detail: str) -> Gate:
    return Gate(1, PATIENCE_SECONDS, lambda: Busy(detail))


def _single_each(detail: str, patience: float = PATIENCE_SECONDS) -> GatesOfKeys:
    return GatesOfKeys(1, lambda: Busy(detail), patience=patience)


def _many_strangers() -> RateLimited:
    return RateLimited(
        "Too many requests without a key; try again.", retry_after=STRANGERS_RETRY_SECONDS
    )


def _too_many_streams() -> RateLimited:
    return RateLimited(
        "This key has too many streams open.",
        rule=f"at most {STREAMS_OF_A_KEY} at once",
        retry_after=STREAM_RETRY_SECONDS,
    )


class RoundRobin:
    """Run what callers ask for a little in each turn of the event loop, the flows by turns.

    At most ``limit`` of it, begun within ``seconds``. The loop takes all that is ready before
    it looks for what is new: a thousand requests of one client, each of which takes a millisecond,
    would hold up everybody else for a second.
    """

    def __init__(self, limit: float = math.inf, seconds: float = math.inf) -> None:
        self._limit = limit
        self._seconds = seconds
        self._gone = 0
        self._spent = 0.0
        self._going_on = self._doing = False
        self._flows: OrderedDict[Hashable, deque[Callable[[], bool]]] = OrderedDict()

    def ask(self, flow: Hashable, do: Callable[[], bool]) -> None:
        """Call ``do`` when it is its turn, at once where nobody waits; what a flow asks in order.

        It returns whether it did anything; else its turn goes to the next one.
        """
        if not self._going_on:
            self._going_on = True
            asyncio.get_running_loop().call_soon(self._next)
        if self._room() and not self._flows and not self._doing:
            self._do(do)
        else:
            self._flows.setdefault(flow, deque()).append(do)

    def _room(self) -> bool:
        return not self._gone or (self._gone < self._limit and self._spent < self._seconds)

    def _do(self, do: Callable[[], bool]) -> None:
        began = time.perf_counter()
        self._doing = True
        try:
            # What it starts is no part of what the caller does
            self._gone += Context().run(do)
        finally:
            self._doing = False
            self._spent += time.perf_counter() - began

    def _next(self) -> None:
        self._gone, self._spent = 0, 0.0
        try:
            while self._flows and self._room():
                flow, waiting = self._flows.popitem(last=False)
                do = waiting.popleft()
                if waiting:
                    self._flows[flow] = waiting
                self._do(do)
        finally:
            self._going_on = bool(self._gone or self._flows)
            if self._going_on:
                asyncio.get_running_loop().call_soon(self._next)


class PausedCollections:
    """No garbage collection while anybody is inside.

    A collection looks through all objects, and every thread waits for it: 0.1 s where a certificate
    has made a hundred thousand. For work that makes many objects and no cycles: they are freed as
    soon as they are dropped. Entered and left on the event loop only.
    """

    def __init__(self) -> None:
        self._inside = 0

    def __enter__(self) -> None:
        self._inside += 1
        gc.disable()

    def __exit__(self, *_: object) -> None:
        self._inside -= 1
        if self._inside == 0:
            gc.enable()


paused_collections = PausedCollections()
"""The interpreter has one collector, so there is one of these."""


class ShortSleeps:
    """Sleeps for half a millisecond, but not twice within two.

    A thread that computes with NumPy lets go of the interpreter's lock, and takes it again, many
    times a millisecond. Each time the event loop is woken too late, and it never waits long enough
    to get the lock by force: without these naps it blocked for 0.2 s at 40 000 rounds.
    """

    EVERY_SECONDS = 0.002
    SECONDS = 0.0005

    def __init__(self) -> None:
        self._woken = time.perf_counter()

    def __call__(self) -> None:
        """Sleep if it is time to."""
        if time.perf_counter() - self._woken >= self.EVERY_SECONDS:
            time.sleep(self.SECONDS)
            self._woken = time.perf_counter()


async def in_thread(function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Return what ``function`` returns, computed in a thread beside the event loop.

    If we are cancelled the thread goes on.
    """

    def work() -> T:
        PAUSE.set(ShortSleeps())
        return function(*args, **options)

    return await asyncio.to_thread(work)

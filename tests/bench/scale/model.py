"""A discrete-event model of the service: where requests wait, and what for.

Processes are generators. They yield seconds to let pass, or something to wait for. A cycle is what
`judges` send: parsed by its service process, taken with others that wait for the same session
(`operations/sessions/batching.py`), two stretches of the database with the fold in between, one
flush of the log that all commits of the moment share, and the answer.
"""

import heapq
import math
import random
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Protocol

from tests.bench.scale.costs import Costs

PARSE, FOLD, ANSWER = 0.1, 0.8, 0.1
"""Shares of the service's time a cycle: before the lock, under it, and behind the commit.

Where many are taken together a whole cycle is 0.3 of one alone, so its way in and out is less.
"""
LOOK, APPEND = 0.4, 0.6
"""Shares of the database's: lock and look, then append and commit."""
SLICE = 0.001
"""Seconds that a process keeps a core while others want it."""
MOST = 64
"""Requests that a group takes."""


class Wait(Protocol):
    """Something that a process waits for."""

    def take(self, process: "Process") -> bool:
        """Whether the process goes on at once; else it is put forward later."""
        ...


Process = Generator["float | Wait", None, None]


class Clock:
    """Simulated time, and what happens when."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Process]] = []
        self._count = 0

    def put(self, process: Process, delay: float = 0.0) -> None:
        """Have a process go on after so many seconds."""
        self._count += 1
        heapq.heappush(self._heap, (self.now + delay, self._count, process))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        while self._heap and self._heap[0][0] <= seconds:
            self.now, _, process = heapq.heappop(self._heap)
            for wait in process:
                if isinstance(wait, float):
                    self.put(process, wait)
                    break
                if not wait.take(process):
                    break


class Station:
    """So many places, first come, first served; ``busy`` adds up the seconds of use."""

    def __init__(self, clock: Clock, places: int) -> None:
        self.places = places
        self.busy = 0.0
        self._clock = clock
        self._free = places
        self._queue: deque[Process] = deque()

    def take(self, process: Process) -> bool:
        """A place now, or when the others before it are done."""
        if self._free:
            self._free -= 1
            return True
        self._queue.append(process)
        return False

    def use(self, seconds: float) -> "Process":
        """Be served for so long, in slices where others wait."""
        while seconds > 0.0:
            part = min(seconds, SLICE)
            yield self
            yield part
            self.busy += part
            seconds -= part
            self.leave()

    def leave(self) -> None:
        """Give the place to the next."""
        if self._queue:
            self._clock.put(self._queue.popleft())
        else:
            self._free += 1


class Log:
    """The write-ahead log: one flush at a time, for all commits that wait when it begins."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._waiting: list[Process] = []
        self._flushing = False

    def take(self, process: Process) -> bool:
        """Goes on once what it has written is on disk."""
        self._waiting.append(process)
        if not self._flushing:
            self._flushing = True
            self._clock.put(self._flush())
        return False

    def _flush(self) -> Process:
        while self._waiting:
            group, self._waiting = self._waiting, []
            yield self._seconds
            for process in group:
                self._clock.put(process)
        self._flushing = False


@dataclass(frozen=True, slots=True)
class Plant:
    """What there is: service processes, cores, and the way between.

    Without ``database_cores`` everything, the clients too, shares ``cores``; else every service
    process has a core of its own. ``network`` is the seconds of one round trip to the database.
    """

    processes: int = 1
    cores: int = 2
    database_cores: int | None = None
    connections: int = 16
    network: float = 0.0


@dataclass(slots=True)
class Outcome:
    """Seconds from when each cycle was due to its answer, and the share of time in use.

    The log is not among what is ``used``: a flush takes all commits that wait.
    """

    waits: list[float] = field(default_factory=list)
    seconds: float = 0.0
    used: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Cycles a second."""
        return len(self.waits) / self.seconds


class Service:
    """The model at work: ``sessions`` by chance on processes, as a proxy has it by their ids."""

    def __init__(self, plant: Plant, costs: Costs, sessions: int, seed: int = 0) -> None:
        self._plant = plant
        self._costs = costs
        self._clock = clock = Clock()
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._outcome = Outcome()
        self._log = Log(clock, costs.flush / 1000.0)
        everything = [Station(clock, plant.cores)] * (plant.processes + 3)
        if plant.database_cores is not None:
            everything = [Station(clock, 1) for _ in range(plant.processes + 3)]
            everything[0] = Station(clock, plant.database_cores)
        self._database, self._redis, self._client, *self._cores = everything
        self._loops = [Station(clock, 1) for _ in range(plant.processes)]
        self._connections = [Station(clock, plant.connections) for _ in range(plant.processes)]
        homes = [self._random.randrange(plant.processes) for _ in range(sessions)]
        self._sessions = [_Session(home) for home in homes]

    def offered(self, rate: float, clients: int, seconds: float) -> Outcome:
        """Cycles due at a steady rate, each client's next one behind its last, as `load` has it."""
        total = int(rate * seconds)

        def client(number: int) -> Process:
            for at in range(number, total, clients):
                due = at / rate
                yield max(0.0, due - self._clock.now)
                yield from self._client.use(self._costs.client / 1000.0)
                yield from self._cycle(self._sessions[number % len(self._sessions)], due)

        for number in range(clients):
            self._clock.put(client(number))
        return self._ran(math.inf)

    def judged(self, judges: int, pause: float, seconds: float) -> Outcome:
        """Judges who each take ``pause`` seconds on the mean for an item, then send it."""

        def judge(number: int) -> Process:
            while True:
                yield self._random.expovariate(1.0 / pause)
                session = self._sessions[number % len(self._sessions)]
                yield from self._cycle(session, self._clock.now)

        for number in range(judges):
            self._clock.put(judge(number))
        return self._ran(seconds)

    def _ran(self, seconds: float) -> Outcome:
        self._clock.run(seconds)
        passed, processes = self._clock.now, [one.busy for one in self._loops]
        self._outcome.seconds = passed
        self._outcome.used = {
            "database cores": self._database.busy / passed / self._database.places,
            "the busiest service process": max(processes) / passed,
            "service processes": sum(processes) / passed / len(processes),
            "Redis": self._redis.busy / passed,
        }
        return self._outcome

    def _cycle(self, session: "_Session", due: float) -> Process:
        spread = self._costs.service_spread
        heavy = self._random.gammavariate(spread**-2, spread**2) if spread else 1.0
        cost = heavy * self._costs.service / 1000.0
        yield from self._in_process(session.home, PARSE * cost)
        yield _Turn(self, session, cost)
        yield from self._in_process(session.home, ANSWER * cost)
        self._outcome.waits.append(self._clock.now - due)

    def _in_process(self, home: int, seconds: float) -> Process:
        """A process does one thing at a time, and needs a core to do it."""
        yield self._loops[home]
        yield from self._cores[home].use(seconds)
        self._loops[home].busy += seconds
        self._loops[home].leave()

    def join(self, session: "_Session", turn: "_Turn", process: Process) -> None:
        """Have a request answered with those that wait for the same session."""
        session.waiting.append((turn.cost, process))
        if not session.served:
            session.served = True
            self._clock.put(self._serve(session))

    def _serve(self, session: "_Session") -> Process:
        costs, network = self._costs, self._plant.network
        # What one more costs beyond its own way in and out
        further = max(0.0, costs.service_together / costs.service - PARSE - ANSWER)
        while session.waiting:
            group = [session.waiting.popleft() for _ in range(min(MOST, len(session.waiting)))]
            fold = FOLD * group[0][0] + sum(further * cost for cost, _ in group[1:])
            database = costs.database + costs.database_together * (len(group) - 1)
            yield self._connections[session.home]
            yield 2.0 * network
            yield from self._database.use(LOOK * database / 1000.0)
            yield from self._in_process(session.home, fold)
            yield network
            yield from self._database.use(APPEND * database / 1000.0)
            yield network
            yield self._log
            self._connections[session.home].leave()
            yield from self._redis.use(costs.redis / 1000.0)
            for _, process in group:
                self._clock.put(process)
        session.served = False


@dataclass(slots=True)
class _Session:
    """The requests that wait for it, each with its cost, in the process that has it."""

    home: int
    waiting: deque[tuple[float, Process]] = field(default_factory=deque)
    served: bool = False


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a request waits for between its way in and its way out."""

    service: Service
    session: _Session
    cost: float

    def take(self, process: Process) -> bool:
        """Goes on behind the commit of its group."""
        self.service.join(self.session, self, process)
        return False

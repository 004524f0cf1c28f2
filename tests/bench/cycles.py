"""Label cycles over HTTP beside Optuna's ask + tell in process, on the same PostgreSQL."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import optuna

from celeus.store.database import async_url
from tests.bench.connection import Connection
from tests.bench.judges import cycles_a_second
from tests.bench.results import Goal, Line
from tests.bench.truths import synthetic
from tests.bench.worlds import COMMON, LONG, World, opened, sealed

ITEMS = 50_000
TIMES_OPTUNA = Goal.least(16)


@dataclass(frozen=True, slots=True)
class Load:
    """How many clients work on how many sessions of how many server processes."""

    clients: int
    sessions: int
    processes: int

    def __str__(self) -> str:
        return (
            f"{_some(self.clients, 'client')}, {_some(self.sessions, 'session')},"
            f" {_some(self.processes, 'server process')}"
        )


MAIN = Load(8, 8, 1)
TOGETHER = Load(64, 1, 1)
LOADS = (MAIN, Load(1, 1, 1), Load(8, 1, 1), TOGETHER, Load(8, 8, 2))
LEAST_TOGETHER = Goal.least(550, "/s")


async def cycle_lines(world: World, *, quick: bool) -> AsyncIterator[Line]:
    """Cycles a second under every load and by Optuna, taken in turns."""
    repeats, seconds, trials = (1, 2.0, 40) if quick else (5, 6.0, 150)
    truth = synthetic(ITEMS, risk=0.5, vagueness=20.0)
    found: dict[Load, list[float]] = {load: [] for load in LOADS}
    theirs: list[float] = []
    async with world.services(max(load.processes for load in LOADS)) as urls:
        async with Connection.to(urls[0]) as connection:
            pool = await sealed(connection, truth)
        for _ in range(repeats):
            for load in LOADS:
                places = await _places(urls[: load.processes], pool, load.sessions)
                rate = await cycles_a_second(places, truth, clients=load.clients, seconds=seconds)
                found[load].append(rate)
            theirs.append(optuna_cycles_a_second(world, trials))
    for load, rates in found.items():
        goal = LEAST_TOGETHER if load == TOGETHER else None
        yield Line(f"label cycles a second: {load}", rates, "/s", goal)
    yield Line(f"Optuna {optuna.__version__}, ask + tell in process", theirs, "/s")
    for load in (MAIN, TOGETHER):
        ratios = [ours / other for ours, other in zip(found[load], theirs, strict=True)]
        yield Line(f"… {load}, by Optuna", ratios, "×", TIMES_OPTUNA)


async def _places(urls: list[str], pool: str, sessions: int) -> list[tuple[str, str]]:
    """Fresh sessions, each with the server that it stays with."""
    places = []
    for number in range(sessions):
        url = urls[number % len(urls)]
        async with Connection.to(url) as connection:
            precision = COMMON if sessions > 1 else LONG
            places.append((url, await opened(connection, pool, precision)))
    return places


def optuna_cycles_a_second(world: World, trials: int) -> float:
    """One thread, a fresh study in a fresh database, nothing suggested: the least it can do."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with world.another_database("optuna") as url:
        address = async_url(url).render_as_string(hide_password=False)
        storage = optuna.storages.RDBStorage(address)
        study = optuna.create_study(storage=storage)
        for number in range(trials // 10):
            study.tell(study.ask(), float(number % 2))
        began = time.perf_counter()
        for number in range(trials):
            study.tell(study.ask(), float(number % 2))
        rate = trials / (time.perf_counter() - began)
        storage.engine.dispose()
    return rate


def _some(count: int, noun: str) -> str:
    plural = "es" if noun.endswith("s") else "s"
    return f"{count} {noun}{'' if count == 1 else plural}"

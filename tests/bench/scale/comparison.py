"""The model of the service beside the service, and then where nobody can measure."""

from collections.abc import AsyncIterator

import numpy as np

from tests.bench.connection import Connection
from tests.bench.load import CLIENTS, RATES, Offer, offered
from tests.bench.results import Line
from tests.bench.scale.costs import MEASURED, Costs
from tests.bench.scale.footprint import footprint_of
from tests.bench.scale.model import Outcome, Plant, Service
from tests.bench.truths import synthetic
from tests.bench.worlds import World, sealed

ITEMS = 50_000
SHARES = (50, 99)
JUDGES = 10_000
PROCESSES = 100
NETWORK_SECONDS = 0.0003
FLEETS: dict[str, tuple[float, float, dict[int, tuple[int, ...]]]] = {
    "people (20 s a label)": (20.0, 8.0, {10_000: (1, 2, 4), 100: (1, 2, 4), 1: (2,)}),
    "programs (2 s a label)": (2.0, 4.0, {10_000: (4, 8, 16), 100: (4, 8, 16)}),
}
"""Seconds that a judge takes, seconds to simulate, and cores of the database by sessions."""


async def scale_lines(world: World, *, quick: bool) -> AsyncIterator[Line]:
    """Waits measured at steady rates beside those of the model fed by costs of the same run."""
    costs = (await footprint_of(world, quick=True)).costs
    for line in costs.lines():
        yield line
    seconds = 3.0 if quick else 8.0
    truth = synthetic(ITEMS, risk=0.5, vagueness=20.0)
    async with world.services() as urls:
        async with Connection.to(urls[0]) as connection:
            pool = await sealed(connection, truth)
        for sessions in (CLIENTS, 1):
            for rate in RATES:
                found = await offered(urls[0], pool, truth, Offer(sessions, rate, seconds))
                model = Service(Plant(), costs, sessions).offered(rate, CLIENTS, seconds)
                for share in SHARES:
                    what = f"{rate} cycles/s offered, sessions: {sessions}; p{share} measured"
                    yield Line(what, [_milliseconds(found.cycles, share)], "ms")
                    yield Line("… modelled", [_milliseconds(model.waits, share)], "ms")


async def fleet_lines(_world: World, *, quick: bool) -> AsyncIterator[Line]:
    """10 000 judges and 100 server processes: what they wait, and what is in use."""
    for who, (pause, seconds, cases) in FLEETS.items():
        for sessions, sizes in cases.items():
            for cores in sizes:
                found = fleet(MEASURED, pause, sessions, cores, seconds / 4 if quick else seconds)
                yield Line(
                    f"{who}, sessions: {sessions:,}, database cores: {cores}; cycles a second",
                    [found.rate],
                    "/s",
                )
                for share in SHARES:
                    yield Line(f"… p{share}", [_milliseconds(found.waits, share)], "ms")
                for name, used in found.used.items():
                    yield Line(f"… in use: {name}", [100.0 * used], "%")


def fleet(costs: Costs, pause: float, sessions: int, cores: int, seconds: float) -> Outcome:
    """All judges at work on so many sessions, with so many cores for the database."""
    plant = Plant(PROCESSES, database_cores=cores, network=NETWORK_SECONDS)
    return Service(plant, costs, sessions).judged(JUDGES, pause, seconds)


def _milliseconds(waits: list[float], share: float) -> float:
    return 1000.0 * float(np.percentile(waits, share))

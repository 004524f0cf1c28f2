"""The model of the service waits as queues are known to wait."""

import random

import pytest

from tests.bench.scale.costs import Costs
from tests.bench.scale.model import Clock, Log, Plant, Process, Service, Station

EVEN = Costs(
    service=2.0,
    service_spread=0.0,
    service_together=0.8,
    database=1.0,
    database_together=0.2,
    redis=0.1,
    client=0.2,
    flush=3.0,
)
ALONE = 0.0063
"""Seconds of all that a cycle needs."""


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_a_queue_of_one_place_waits_by_pollaczek_and_khinchine(load: float) -> None:
    clock, chance, waits = Clock(), random.Random(1), []  # noqa: S311 - no secret
    station = Station(clock, 1)

    def customer() -> Process:
        came = clock.now
        yield station
        waits.append(clock.now - came)
        yield 1.0
        station.leave()

    def door() -> Process:
        for _ in range(100_000):
            yield chance.expovariate(load)
            clock.put(customer())

    clock.put(door())
    clock.run(1e9)
    assert sum(waits) / len(waits) == pytest.approx(load / (2.0 * (1.0 - load)), rel=0.05)


def test_commits_of_a_moment_share_a_flush() -> None:
    clock, done = Clock(), []
    log = Log(clock, 3.0)

    def commit(at: float) -> Process:
        yield at
        yield log
        done.append((at, clock.now))

    for at in (0.0, 1.0, 2.0, 7.0):
        clock.put(commit(at))
    clock.run(100.0)
    assert done == [(0.0, 3.0), (1.0, 6.0), (2.0, 6.0), (7.0, 10.0)]


def test_who_is_alone_waits_for_the_work_and_nothing_else() -> None:
    found = Service(Plant(), EVEN, 1).offered(10, 1, 5.0)
    assert found.waits == pytest.approx([ALONE] * 50)
    far = Service(Plant(database_cores=1, network=0.001), EVEN, 1).offered(10, 1, 5.0)
    assert far.waits == pytest.approx([ALONE + 0.004] * 50)


def test_who_waits_for_the_same_session_is_answered_together() -> None:
    """50 judges of one session: one by one they would need 6 ms each under its lock."""
    found = Service(Plant(2, database_cores=4), EVEN, 1).judged(50, 0.01, 10.0)
    assert 5.0 / ALONE < found.rate < 1000.0 / EVEN.service_together


def test_what_is_in_use_is_what_the_cycles_cost() -> None:
    found = Service(Plant(10, database_cores=2), EVEN, 1_000).judged(1_000, 2.0, 20.0)
    assert found.rate == pytest.approx(500.0, rel=0.05)
    assert found.used["database cores"] == pytest.approx(found.rate * 0.001 / 2, rel=0.05)
    assert found.used["service processes"] == pytest.approx(found.rate * 0.002 / 10, rel=0.05)

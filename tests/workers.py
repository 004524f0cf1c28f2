"""What several worker processes of one run share: turns, ports and counts.

`make test` runs the tests in worker processes, each with a PostgreSQL and a Redis of its own. A
test marked ``alone`` measures time so closely that nothing else may run beside it.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.attacks.tally import TRIES
from tests.faults.tally import TALLY


def number() -> tuple[int, int]:
    """Which worker this process is, from 0, and how many there are."""
    name = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return int(name.removeprefix("gw")), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


@contextmanager
def turn(config: pytest.Config, *, alone: bool) -> Iterator[None]:
    """Wait until this test may run: beside others, or when no other worker has one under way."""
    run = getattr(config, "workerinput", {}).get("testrunuid")
    if run is None:
        yield
        return
    folder = Path(tempfile.gettempdir())
    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    with (
        (folder / f"celeus-{run}.door").open("w") as door,
        (folder / f"celeus-{run}.room").open("w") as room,
    ):
        # Through one door: whoever waits to be alone is not overtaken for ever
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, kind)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


def forget_turns(run: str) -> None:
    """Remove the files of a run's turns."""
    for name in ("door", "room"):
        (Path(tempfile.gettempdir()) / f"celeus-{run}.{name}").unlink(missing_ok=True)


def counted() -> dict[str, list[str]]:
    """What was tried, as lines under their titles: faults and attacks, where there were any."""
    attacks = [f"{tries:6d} × {attack}" for attack, tries in TRIES.items()]
    told = {
        "faults survived": TALLY.lines(),
        "attacks, nothing having got through where tests passed": attacks,
    }
    return {title: lines for title, lines in told.items() if lines}


def told_counts() -> dict[str, dict[str, int]]:
    """What this process has counted."""
    return {"faults": dict(TALLY.rows), "attacks": dict(TRIES)}


def add_counts(told: dict[str, dict[str, int]]) -> None:
    """What a worker has counted counts here too."""
    for fault, tries in told.get("faults", {}).items():
        TALLY.count(fault, tries)
    TRIES.update(told.get("attacks", {}))

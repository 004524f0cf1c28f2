"""What several worker processes of one run share: ports and counts.

`make test` runs the tests in worker processes, each with a PostgreSQL and a Redis of its own.
"""

import os

from tests.attacks.tally import TRIES
from tests.faults.tally import TALLY


def number() -> tuple[int, int]:
    """Which worker this process is, from 0, and how many there are."""
    name = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return int(name.removeprefix("gw")), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


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

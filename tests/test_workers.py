"""Worker processes of one run: own ports, and counts that add up."""

from collections import Counter

import pytest

from tests import workers
from tests.faults.tally import Tally
from tests.servers import free_port


def test_workers_never_get_the_same_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    found = []
    for worker in range(3):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{worker}")
        found.append({free_port() for _ in range(20)})
    assert not found[0] & found[1]
    assert not (found[0] | found[1]) & found[2]


def test_what_workers_count_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "TALLY", Tally({"a kill": 3}))
    monkeypatch.setattr(workers, "TRIES", Counter({"a bomb": 2}))
    told = workers.told_counts()
    workers.add_counts(told)
    workers.add_counts({})
    workers.add_counts({"faults": {"a flood": 1}, "attacks": {}})
    assert workers.told_counts() == {
        "faults": {"a kill": 6, "a flood": 1},
        "attacks": {"a bomb": 4},
    }
    assert [title.split(",")[0] for title in workers.counted()] == ["faults survived", "attacks"]

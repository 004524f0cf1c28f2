"""Worker processes of one run: own ports, turns, and counts that add up."""

import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests import workers
from tests.faults.tally import Tally
from tests.servers import free_port

SOON_SECONDS = 0.2
LATE_SECONDS = 60


@pytest.fixture
def config() -> Iterator[Any]:
    """As a worker process has it."""
    run = uuid.uuid4().hex
    yield SimpleNamespace(workerinput={"testrunuid": run})
    workers.forget_turns(run)


class Visitor:
    """A test in another worker, which stays until it is told to leave."""

    def __init__(self, config: Any, *, alone: bool) -> None:  # noqa: ANN401 -- half a pytest.Config
        self.inside = threading.Event()
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._stay, args=(config, alone))
        self._thread.start()

    def _stay(self, config: Any, alone: bool) -> None:  # noqa: ANN401, FBT001 -- as above
        with workers.turn(config, alone=alone):
            self.inside.set()
            self._leave.wait(LATE_SECONDS)

    def leave(self) -> None:
        """End it, which has begun by then."""
        assert self.inside.wait(LATE_SECONDS)
        self._leave.set()
        self._thread.join(LATE_SECONDS)


def test_workers_never_get_the_same_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    found = []
    for worker in range(3):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{worker}")
        found.append({free_port() for _ in range(20)})
    assert not found[0] & found[1]
    assert not (found[0] | found[1]) & found[2]


def test_tests_run_beside_others(config: Any) -> None:  # noqa: ANN401 -- half a pytest.Config
    one, other = Visitor(config, alone=False), Visitor(config, alone=False)
    assert one.inside.wait(LATE_SECONDS)
    assert other.inside.wait(LATE_SECONDS)
    one.leave()
    other.leave()


def test_a_test_alone_waits_for_all_others_and_is_not_overtaken(
    config: Any,  # noqa: ANN401 -- half a pytest.Config
) -> None:
    before = Visitor(config, alone=False)
    assert before.inside.wait(LATE_SECONDS)
    alone = Visitor(config, alone=True)
    assert not alone.inside.wait(SOON_SECONDS)
    after = Visitor(config, alone=False)
    assert not after.inside.wait(SOON_SECONDS)
    before.leave()
    assert alone.inside.wait(LATE_SECONDS)
    assert not after.inside.wait(SOON_SECONDS)
    alone.leave()
    after.leave()


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

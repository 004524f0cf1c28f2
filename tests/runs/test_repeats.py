"""Sessions in process whose items are run again: their certificates, files, and what they refuse."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import celeus
from celeus.core.certificate.pool_checks import Evidence
from celeus.core.certificate.verify import verify
from celeus.errors import InvalidValue, Refusal
from celeus.runs.local import LocalClient

ITEMS = 30
ROWS = [{"id": f"t{at}", "payload": {"task": at}} for at in range(ITEMS)]
RATES = np.random.default_rng(3).beta(0.5, 0.5, ITEMS)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class System:
    """A system that answers by chance; ``runs`` counts how often it was run."""

    def __init__(self) -> None:
        self.chance = np.random.default_rng(5)
        self.runs = 0

    def __call__(self, turn: celeus.Turn) -> float | None:
        self.runs += 1
        if self.runs % 41 == 40:
            turn.unjudgeable("the sandbox died")
            return None
        return float(self.chance.random() < RATES[turn.payload["task"]])


def certified(**asked: Any) -> tuple[celeus.Session, System]:
    system = System()
    asked = {"precision": 0.2, "file": "runs.jsonl"} | asked
    return celeus.certify(ROWS, system, target="runs", repeats=True, **asked), system


def test_items_are_run_again_until_the_mean_over_all_runs_is_known() -> None:
    session, system = certified()
    status = session.status()
    assert status.state == "target_reached"
    assert system.runs == status.rounds.judged > ITEMS
    assert status.lower is not None
    assert status.upper is not None
    assert status.lower <= RATES.mean() <= status.upper
    assert status.budget == 193, "twice (z / width)^2"
    assert [stated["code"] for stated in status.assumptions] == ["repeated_runs"]
    assert "over all runs" in status.sentence
    assert "of 30 items" not in session.report(), "runs are no part of the items"


@pytest.mark.parametrize("closed", [False, True])
def test_a_certificate_holds_with_the_pool_and_without(closed: bool) -> None:
    session, _ = certified(concurrency=3)
    if closed:
        session.close()
    assert isinstance(session.client, LocalClient)
    for evidence in (None, Evidence.of(session.client.ledger.upload.pool)):
        report = verify(session.certificate(), evidence)
        assert report.valid, report.to_dict()
        assert ("draws" in report.checked) == (closed and evidence is not None)


def test_a_session_goes_on_with_what_its_items_gave_before() -> None:
    first, _ = certified(budget=25, precision=None, at_most=0.9)
    state = first.status()
    first.client.close()
    again, system = certified(budget=25, precision=None, at_most=0.9)
    assert again.status() == state
    assert system.runs == 0


def test_a_run_is_not_corrected() -> None:
    session, _ = certified()
    with pytest.raises(InvalidValue, match="runs each item once"):
        session.amend(1, loss=0.0, reason="misread")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"budget": "all"}, "budget"),
        ({"precision": None, "at_most": 0.2}, "budget"),
        ({"target": "pool"}, "repeats"),
        ({"target": "population"}, "repeats"),
        ({"groups": ["kind"]}, "target"),
    ],
)
def test_what_has_no_end_or_no_meaning_is_refused(asked: dict[str, Any], field: str) -> None:
    rows = [row | {"groups": {"kind": "a"}} for row in ROWS]
    asked = {"precision": 0.2, "target": "runs"} | asked
    with pytest.raises(Refusal) as refused:
        celeus.certify(rows, None, repeats=True, **asked)
    assert refused.value.field == field

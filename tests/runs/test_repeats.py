"""Sessions in process whose items are run again: certificates, files, and what they refuse."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import celeus
from celeus.client.rows import upload_of
from celeus.core.certificate.pool_checks import Evidence
from celeus.core.certificate.verify import verify
from celeus.core.plans import plan
from celeus.core.session.outcome import Judgement
from celeus.errors import InvalidValue, ObservationConflict, Refusal
from celeus.runs.local import LocalClient

ITEMS = 30
ROWS = [{"id": f"t{at}", "payload": {"task": at}} for at in range(ITEMS)]
ASKED: dict[str, Any] = {"precision": 0.2}
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


def certified(asked: Mapping[str, Any] = ASKED) -> tuple[celeus.Session, System]:
    system = System()
    return celeus.certify(
        ROWS, system, target="runs", repeats=True, file="runs.jsonl", **asked
    ), system


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
    assert f"30, {system.runs} draws judged" in session.report()


@pytest.mark.parametrize("state", ["active", "closed"])
def test_a_certificate_holds_with_the_pool_and_without(state: str) -> None:
    session, _ = certified({**ASKED, "concurrency": 3})
    if closed := state == "closed":
        session.close()
    assert isinstance(session.client, LocalClient)
    for evidence in (None, Evidence.of(session.client.ledger.upload.pool)):
        report = verify(session.certificate(), evidence)
        assert report.valid, report.to_dict()
        assert ("draws" in report.checked) == (closed and evidence is not None)


def test_a_session_goes_on_with_what_its_items_gave_before() -> None:
    first, _ = certified({"budget": 25, "at_most": 0.9})
    state = first.status()
    first.client.close()
    again, system = certified({"budget": 25, "at_most": 0.9})
    assert again.status() == state
    assert system.runs == 0


@pytest.mark.parametrize("runs", [True, 2.5, 1.0, "2", 0, 5])
def test_only_a_whole_number_of_runs_is_kept(runs: Any) -> None:  # noqa: ANN401 -- what a program may give
    asked = ASKED | {"target": "runs", "repeats": True, "success": "all of 4"}
    draws = celeus.certify(ROWS, None, file="runs.jsonl", **asked).draws()
    next(draws).observe(1.0, runs=runs)
    with pytest.raises(InvalidValue, match="runs must be how many runs were made"):
        next(draws)


@pytest.mark.parametrize("success", [4, "any of 04", "all of 1", "most of 3"])
def test_success_is_all_or_any_of_several_runs(success: Any) -> None:  # noqa: ANN401 -- what a program may give
    with pytest.raises(InvalidValue, match="success must be"):
        certified({"precision": 0.2, "success": success})


def test_the_most_runs_there_may_be_are_a_budget_and_not_all_items(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, "MOST_RUNS", 5)
    session, _ = certified({"budget": 5})
    assert session.status().stop_reason == "budget_spent"


@pytest.mark.parametrize("state", ["active", "closed"])
def test_a_run_is_corrected_and_everything_is_folded_anew(state: str) -> None:
    session, _ = certified()
    before = session.status()
    wrong = max(label.round for label in session.labels() if label.loss == 1.0)
    session.amend(wrong, loss=0.0, reason="misread")
    after = session.status()
    assert (after.estimate or 1.0) < (before.estimate or 0.0)
    if state == "closed":
        session.close()
    assert isinstance(session.client, LocalClient)
    for evidence in (None, Evidence.of(session.client.ledger.upload.pool)):
        report = verify(session.certificate(), evidence)
        assert report.valid, report.to_dict()
    session.client.close()
    again = celeus.certify(ROWS, None, target="runs", repeats=True, file="runs.jsonl", **ASKED)
    assert again.status().estimate == after.estimate, "the file is replayed with its corrections"


def test_a_draw_of_several_runs_is_corrected_by_the_runs_that_were_made() -> None:
    asked: dict[str, Any] = {"repeats": True, "success": "all of 3", "precision": 0.5}
    judge = Counted()
    session = celeus.certify(ROWS, judge, target="runs", **asked)
    status, labels = session.status(), list(session.labels())
    runs = {round_: len(made) for round_, made in judge.draws.items()}
    early = next(label.round for label in labels if label.loss and runs[label.round] < 3)
    passed = next(label.round for label in labels if not label.loss)
    with pytest.raises(InvalidValue, match=f"{runs[early]} of 3 runs of this draw were made"):
        session.amend(early, loss=0.0, reason="misread")
    session.amend(passed, loss=1.0, reason="the third run failed")
    assert session.status().runs == status.runs, "those that were made"
    session.amend(early, unjudgeable="the sandbox died", reason="it was no answer")
    assert session.status().runs == (status.runs or 0) - runs[early], "of labels"
    report = verify(session.certificate())
    assert report.valid, report.to_dict()


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
    rows = [{**row, "groups": {"kind": "a"}} for row in ROWS]
    given: dict[str, Any] = {"precision": 0.2, "target": "runs"} | asked
    with pytest.raises(Refusal) as refused:
        celeus.certify(rows, None, repeats=True, **given)
    assert refused.value.field == field


class Counted:
    """A judge that keeps the runs of every draw, as True where they succeeded."""

    def __init__(self) -> None:
        self.chance = np.random.default_rng(7)
        self.draws: dict[int, list[bool]] = {}

    def __call__(self, turn: celeus.Turn) -> float:
        succeeds = bool(self.chance.random() > RATES[turn.payload["task"]])
        self.draws.setdefault(turn.round, []).append(succeeds)
        return float(not succeeds)


@pytest.mark.parametrize(("success", "needed"), [("all of 4", all), ("any of 3", any)])
@pytest.mark.parametrize("again", ["once", "repeats"])
def test_a_draw_of_several_runs_ends_with_the_one_that_settles_it(
    success: str, needed: Callable[[list[bool]], bool], again: str
) -> None:
    judge = Counted()
    asked: dict[str, Any] = {"repeats": again == "repeats", "success": success}
    session = celeus.certify(ROWS, judge, target="runs", precision=0.5, **asked)
    status, labels = session.status(), list(session.labels())
    assert status.success == success
    assert status.runs == sum(map(len, judge.draws.values())) > status.rounds.judged
    assert f"where success is {success}" in status.sentence
    assert f"of {status.runs} runs" in status.sentence
    assert f"succeeds if {success[:3]} of them do" in status.assumptions[0]["text"]
    for label in labels:
        runs, settling = judge.draws[label.round], needed is any
        assert label.loss == float(not needed(runs))
        assert settling not in runs[:-1], "nothing is run after it is settled"
        assert runs[-1] is settling or len(runs) == int(success[-1])
    session.close()
    assert isinstance(session.client, LocalClient)
    for evidence in (None, Evidence.of(session.client.ledger.upload.pool)):
        report = verify(session.certificate(), evidence)
        assert report.valid, report.to_dict()


@pytest.mark.parametrize("success", ["all of 3", "any of 3"])
def test_of_several_draws_those_that_are_settled_are_not_run_again(success: str) -> None:
    judge, sizes, settling = Counted(), set[int](), success == "any of 3"

    def judge_batch(turns: Sequence[celeus.Turn]) -> list[float]:
        sizes.add(len(turns))
        return [judge(turn) for turn in turns]

    session = celeus.certify(ROWS, None, target="runs", success=success, precision=0.5)
    session.judge_many(judge_batch, size=4)
    assert min(sizes) < max(sizes) == 4
    for label in session.labels():
        runs = judge.draws[label.round]
        assert label.loss == float(runs[-1] is not True), "that of its last run"
        assert settling not in runs[:-1], "nothing is run after it is settled"
        assert runs[-1] is settling or len(runs) == 3
    assert session.status().runs == sum(map(len, judge.draws.values()))


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ({"loss": 1.0}, "how many runs"),
        ({"loss": 1.0, "runs": 5}, "from 1 to 4"),
        ({"loss": 0.0, "runs": 3}, "4 with a loss of 0"),
    ],
)
def test_runs_that_a_draw_cannot_have_are_refused(said: dict[str, Any], rule: str) -> None:
    session = celeus.certify(
        ROWS, None, target="runs", repeats=True, success="all of 4", precision=0.5
    )
    turns = session.draws()
    next(turns).observe(**said)
    with pytest.raises(InvalidValue, match=rule):
        next(turns)


def test_runs_that_a_function_counts_itself_are_all_of_a_draw() -> None:
    rounds: list[int] = []

    def run_all(turn: celeus.Turn) -> None:
        rounds.append(turn.round)
        turn.observe(0.0, runs=4)

    session = celeus.certify(ROWS, run_all, target="runs", success="all of 4", precision=0.5)
    assert len(rounds) == len(set(rounds))
    assert session.status().runs == 4 * len(rounds)


@pytest.mark.parametrize("size", [None, 4])
def test_a_label_that_does_not_tell_how_a_run_ended_is_refused_at_once(size: int | None) -> None:
    labelled: list[int] = []

    def judge(turn: celeus.Turn) -> None:
        labelled.append(turn.round)
        turn.label(1)

    rows = [{**row, "prediction": 1} for row in ROWS]
    session = celeus.certify(rows, None, target="runs", success="all of 4", precision=0.5)
    judging = (
        partial(session.judge, judge, concurrency=1)
        if size is None
        else partial(session.judge_many, lambda turns: list(map(judge, turns)), size=size)
    )
    with pytest.raises(InvalidValue, match="judged by a loss for each run") as refused:
        judging()
    assert refused.value.field == "loss"
    assert len(labelled) == 1, "before another item is judged in vain"


@pytest.mark.parametrize(
    "asked", [{"success": "4 of 4"}, {"success": "all of 1"}, {"loss": (0.0, 2.0)}]
)
def test_success_that_nobody_can_tell_is_refused(asked: dict[str, Any]) -> None:
    asked = {"success": "all of 4"} | asked
    with pytest.raises(InvalidValue) as refused:
        celeus.certify(ROWS, None, target="runs", repeats=True, precision=0.5, **asked)
    assert refused.value.field == "success"


class Killed(Exception):
    """The end of a process."""


@pytest.mark.parametrize("success", ["all of 3", "any of 3"])
@pytest.mark.parametrize("results", list(product((0.0, 1.0), repeat=3)))
def test_however_a_draw_is_killed_between_its_runs_these_come_out_the_same(
    success: str, results: tuple[float, ...], folder: Path
) -> None:
    settling = 1.0 if success == "all of 3" else 0.0
    runs = results.index(settling) + 1 if settling in results else 3
    for number, kills in enumerate(product((False, True), repeat=2)):
        # Whatever decides to kill may know of the runs so far: here it is tried both ways
        left, pending = iter(results), {1: kills[0], 2: kills[1]}
        made = list[float]()

        def judge(turn: celeus.Turn, made: list[float] = made, left: Iterator[float] = left,
                  pending: dict[int, bool] = pending) -> float:  # fmt: skip
            if pending.pop(len(made), False):
                raise Killed(turn.id)
            made.append(next(left))
            return made[-1]

        asked: dict[str, Any] = {"target": "runs", "repeats": True, "success": success}
        asked |= {"precision": 0.5, "budget": 1, "file": folder / f"{number}.jsonl"}
        while True:
            try:
                session = celeus.certify(ROWS, judge, **asked)
                break
            except Killed:
                continue
        (label,) = session.labels()
        assert made == [*results[:runs]], "no run that was made is made again"
        assert label.loss == (settling if settling in results else 1.0 - settling)
        assert session.status().runs == runs


def test_the_runs_of_an_open_draw_are_on_the_disk() -> None:
    calls: list[int] = []

    def judge(turn: celeus.Turn) -> float:
        calls.append(turn.round)
        if len(calls) == 9:
            raise Killed
        return 0.0

    asked: dict[str, Any] = {"success": "all of 4", "precision": 0.5, "file": "runs.jsonl"}
    with pytest.raises(Killed):
        celeus.certify(ROWS, judge, target="runs", **asked)
    assert Path("runs.jsonl").read_text().count('{"kind":"runs"') == 6


def test_a_run_before_those_that_were_made_settles_nothing() -> None:
    session = celeus.certify(ROWS, None, target="runs", success="all of 4", precision=0.5)
    assert isinstance(session.client, LocalClient)
    run = session.client.ledger
    (draw,) = run.next("ada", 1)["draws"]
    (draw,) = run.next("ada", 0, {draw["round"]: 2})["draws"]
    assert draw["runs"] == 2
    assert run.next("bob", 0, {draw["round"]: 3})["draws"] == [], "it is not his"
    assert run.next("ada", 0)["draws"][0]["runs"] == 2
    for runs in (1, 2):
        with pytest.raises(ObservationConflict, match="has 2 runs already"):
            run.observe("ada", [Judgement(draw["round"], loss=1.0, runs=runs)], 0)
    run.observe("ada", [Judgement(draw["round"], loss=1.0, runs=3)], 0)
    for wrong in (0, 4, True, 2.0):
        with pytest.raises(InvalidValue, match="runs must be from 1 to 3"):
            run.next("ada", 0, {1: wrong})  # type: ignore[dict-item]


def test_runs_of_the_same_tasks_are_no_sample_of_a_population() -> None:
    rows = [{"id": f"t{task}", "input": "?", "run": run} for task in range(9) for run in range(2)]
    mapping = {"id": "id", "input": "question"}
    asked: dict[str, Any] = {"target": "population", "budget": 9}
    runs = celeus.read_items(rows, mapping=mapping, repeats="runs")
    some = [{**item, "weight": 2.0} for item in runs if not item["id"].startswith("t8")]
    for items in (runs, runs[:12], runs.copy(), some, json.loads(json.dumps(runs))):
        with pytest.raises(Refusal, match="runs of the same tasks are no sample"):
            celeus.certify(items, None, **asked)
    with pytest.raises(InvalidValue, match="sent as the file"), upload_of(runs):
        pass
    assert celeus.certify(runs, None, target="runs", precision=0.5).status().items == len(rows)
    celeus.certify(celeus.read_items(rows, mapping=mapping, repeats="items"), None, **asked)

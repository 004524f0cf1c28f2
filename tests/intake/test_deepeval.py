"""Test runs of DeepEval."""

import json
from pathlib import Path
from typing import Any

import pytest

from celeus.intake.joining import join
from celeus.intake.rows import Options
from tests.intake.made import FIXTURES, mean, refusal, rows

(RUN,) = (FIXTURES / "deepeval").glob("test_run_*.json")


def run_of(scores: list[float | None], *, higher: bool = True, **more: object) -> dict[str, Any]:
    cases = []
    for at, score in enumerate(scores):
        reached = score is not None and (score >= 0.5 if higher else score <= 0.5)
        one = {"name": "Bias", "threshold": 0.5, "success": reached, "score": score}
        one |= {"error": "timed out"} if score is None else {}
        cases.append({"name": f"test_case_{at}", "input": f"{at}?", "metricsData": [one]})
    return {"testCases": cases, **more}


def written(folder: Path, document: object, name: str = "test_run_1.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document))
    return path


def test_the_mean_loss_is_what_the_tool_reports() -> None:
    found = rows("deepeval", RUN)
    # "Metric summary: Exact, 66.67 % pass rate", which of scores of 0 and 1 is their mean
    assert mean(row.loss for row in found) == pytest.approx(1 - 8 / 12, abs=1e-12)
    assert found[0].id == "d0"
    assert (found[0].question, found[0].reference, found[0].answer) == ("double 0", "0", "1")


def test_the_latest_run_lies_one_level_down(tmp_path: Path) -> None:
    whole = written(tmp_path, {"testRunData": json.loads(RUN.read_text())}, ".latest_test_run.json")
    assert rows("deepeval", whole) == rows("deepeval", RUN)


def test_which_way_is_better_follows_from_who_succeeded(tmp_path: Path) -> None:
    path = written(tmp_path, run_of([0.1, 0.9]))
    assert [row.loss for row in rows("deepeval", path)] == [0.9, pytest.approx(0.1)]
    path = written(tmp_path, run_of([0.1, 0.9], higher=False))
    assert [row.loss for row in rows("deepeval", path)] == [0.1, 0.9]


def test_where_nothing_tells_or_both_do_the_direction_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, run_of([0.5, 0.5]))
    assert "does not say which Bias is better" in refusal(rows, "deepeval", path)
    mixed = run_of([0.1, 0.9])
    mixed["testCases"][0]["metricsData"][0]["success"] = True
    path = written(tmp_path, mixed)
    assert "has successes on both sides of Bias" in refusal(rows, "deepeval", path)


def test_an_error_is_no_score(tmp_path: Path) -> None:
    found = rows("deepeval", written(tmp_path, run_of([None, 0.9, 0.2])))
    assert [row.loss for row in found] == [None, pytest.approx(0.1), 0.8]


def test_a_run_of_nothing_but_errors_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, run_of([None, None]))
    assert "no item has a score" in refusal(
        join, rows("deepeval", path, options=Options(higher=True))
    )


def test_a_name_of_several_cases_names_none(tmp_path: Path) -> None:
    """Under pytest a case without a name gets that of the test, be it one test of all cases."""
    run = run_of([0.1, 0.9, 0.8])
    for at, case in enumerate(run["testCases"]):
        case["name"] = "test_answers" if at else "first"
    found = rows("deepeval", written(tmp_path, run))
    assert found[0].id == "first"
    assert len({row.id for row in found}) == 3


def test_cases_without_names_are_told_apart_by_what_they_are(tmp_path: Path) -> None:
    one = written(tmp_path, run_of([0.1, 0.9], identifier="a"), "test_run_1.json")
    moved = run_of([0.1, 0.9], identifier="b")
    moved["testCases"].reverse()
    other = written(tmp_path, moved, "test_run_2.json")
    assert len(join(rows("deepeval", one, other)).items) == 2
    assert "has no 'item' in its metadata" in refusal(
        rows, "deepeval", one, options=Options(key="item")
    )
    assert rows("deepeval", RUN, options=Options(key="item"))[3].id == "d3"


def test_cases_of_several_turns_are_conversations(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Yes."}]
    data = [{"name": "Role", "threshold": 0.5, "success": True, "score": 0.75}]
    chats = [{"name": name, "turns": turns, "metricsData": data} for name in ("a", "b")]
    path = written(tmp_path, {"testCases": [], "conversationalTestCases": chats})
    found = rows("deepeval", path)
    assert [(row.id, row.loss) for row in found] == [("a", 0.25), ("b", 0.25)]
    assert found[0].question == "Hello?"
    assert found[0].answer == "user: Hello?\n\nassistant: Yes."


def test_metrics_stand_elsewhere_in_runs_of_earlier_versions(tmp_path: Path) -> None:
    document = run_of([0.25, 0.75])
    for case in document["testCases"]:
        (one,) = case.pop("metricsData")
        case["metricsMetadata"] = [{**one, "metric": one.pop("name")}]
    path = written(tmp_path, document)
    assert [row.loss for row in rows("deepeval", path)] == [0.75, 0.25]

"""Results of promptfoo."""

import json
from pathlib import Path
from typing import Any

import pytest

from celeus.intake.formats.registry import read, sources
from celeus.intake.joining import join
from celeus.intake.rows import Options
from tests.intake.made import FIXTURES, mean, refusal, rows

OUT = FIXTURES / "promptfoo" / "out.json"


@pytest.fixture
def document() -> Any:  # noqa: ANN401 -- any JSON
    return json.loads(OUT.read_text())


def written(folder: Path, document: object) -> Path:
    path = folder / "out.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("key", [None, "item"])
@pytest.mark.parametrize("metric", [None, "score", "right"])
def test_the_mean_loss_of_a_column_is_what_the_tool_reports(
    document: Any,  # noqa: ANN401 -- any JSON
    key: str | None,
    metric: str | None,
) -> None:
    found = rows("promptfoo", OUT, options=Options(metric, key=key))
    for column in document["results"]["prompts"]:
        told = column["metrics"]
        tests = told["testPassCount"] + told["testFailCount"]
        said = told["namedScores"]["right"] if metric == "right" else told["score"]
        losses = [row.loss for row in found if row.model == column["provider"]]
        assert len(losses) == tests == 40
        assert mean(losses) == pytest.approx(1 - said / tests, abs=1e-12)


def test_both_providers_answer_the_same_items() -> None:
    found = rows("promptfoo", OUT, options=Options("right", key="item"))
    assert len(join(found, "large").items) == 40
    assert {row.model for row in found} == {"small", "large"}
    assert found[0].reference is not None
    assert found[0].question == "Double 0."


def test_rows_of_lines_are_read_like_those_of_a_document(tmp_path: Path, document: Any) -> None:  # noqa: ANN401 -- any JSON
    lines = tmp_path / "out.jsonl"
    lines.write_text("\n".join(json.dumps(one) for one in document["results"]["results"]))
    assert rows("promptfoo", lines) == rows("promptfoo", OUT)


def test_an_error_is_no_score(tmp_path: Path, document: Any) -> None:  # noqa: ANN401 -- any JSON
    document["results"]["results"][0] |= {"failureReason": 2, "score": 0}
    found = rows("promptfoo", written(tmp_path, document))
    assert found[0].loss is None
    assert found[0].answer is None
    assert None not in [row.loss for row in found[1:]]


def test_equal_tests_are_repeats_of_one_item(tmp_path: Path, document: Any) -> None:  # noqa: ANN401 -- any JSON
    document["results"]["results"] *= 2
    found = rows("promptfoo", written(tmp_path, document))
    assert len(found) == 160
    assert len(join(found).items) == 40
    assert {row.repeat for row in found} == {1, 2}


def test_prompts_of_one_provider_are_columns_of_their_own(tmp_path: Path, document: Any) -> None:  # noqa: ANN401 -- any JSON
    for one in document["results"]["results"]:
        one["provider"] = {"id": "openai:gpt"}
    found = rows("promptfoo", written(tmp_path, document))
    assert {row.model for row in found} == {"openai:gpt#0", "openai:gpt#1"}


def test_a_test_that_changed_is_refused_by_its_name(tmp_path: Path, document: Any) -> None:  # noqa: ANN401 -- any JSON
    changed = document["results"]["results"][0]
    changed["vars"] = {"n": 1000}
    said = refusal(
        join, rows("promptfoo", written(tmp_path, document), options=Options(key="item"))
    )
    assert said.startswith("item d0 is not the same in the logs of ")


def test_columns_keep_their_own_names() -> None:
    said = refusal(read, "promptfoo", sources("promptfoo", [OUT], ["x"]), Options())
    assert said.endswith("is of several models (large, small): leave out --model")


def test_what_does_not_tell_items_apart_is_refused(tmp_path: Path, document: Any) -> None:  # noqa: ANN401 -- any JSON
    assert "has no 'name' in its metadata" in refusal(
        rows, "promptfoo", OUT, options=Options(key="name")
    )
    for one in document["results"]["results"]:
        one["vars"] = one["testCase"]["vars"] = {}
    said = refusal(rows, "promptfoo", written(tmp_path, document))
    assert "has no vars that tell it from others" in said


def test_older_results_and_unknown_metrics_are_refused(tmp_path: Path, document: Any) -> None:  # noqa: ANN401 -- any JSON
    assert "only right, short, score" in refusal(rows, "promptfoo", OUT, options=Options("truth"))
    document["results"]["version"] = 2
    assert "results of version 2, not 3" in refusal(rows, "promptfoo", written(tmp_path, document))
    document["results"] |= {"version": 3, "results": []}
    assert "has no results" in refusal(rows, "promptfoo", written(tmp_path, document))


@pytest.mark.parametrize("written_as", ["sum", "mean"])
def test_a_named_score_is_the_mean_of_its_assertions_in_every_version(
    tmp_path: Path,
    document: Any,  # noqa: ANN401 -- any JSON
    written_as: str,
) -> None:
    for result in document["results"]["results"]:
        parts = [(1.0, 1), (0.0, 3)]
        result["gradingResult"] = {
            "componentResults": [
                {"score": score, "assertion": {"metric": "tone", "weight": weight}}
                for score, weight in parts
            ]
        }
        result["namedScores"] = {"tone": 1.0 if written_as == "sum" else 0.25}
        result["failureReason"] = 0
    found = rows("promptfoo", written(tmp_path, document), options=Options("tone"))
    assert {row.loss for row in found} == {0.75}


def test_a_named_score_of_several_assertions_without_their_scores_is_refused(
    tmp_path: Path,
    document: Any,  # noqa: ANN401 -- any JSON
) -> None:
    result = document["results"]["results"][0]
    result["namedScores"], result["gradingResult"] = {"tone": 2.0}, None
    result["testCase"]["assert"] = [{"type": "contains", "value": "a", "metric": "tone"}] * 2
    path = written(tmp_path, document)
    assert "a sum or a mean" in refusal(rows, "promptfoo", path, options=Options("tone"))


def test_the_pass_rate_is_a_metric_and_told_beside_the_mean_score() -> None:
    found = rows("promptfoo", OUT, options=Options("pass"))
    assert {row.loss for row in found} <= {0.0, 1.0, None}
    (log,) = read("promptfoo", sources("promptfoo", [OUT]), Options())
    passed = sum(row.loss == 0 for row in found)
    scored = sum(row.loss is not None for row in found)
    assert f"{passed} of {scored} passed; --given metric=pass takes the pass rate" in log.notes[0]

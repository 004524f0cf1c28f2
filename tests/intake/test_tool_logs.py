"""Logs of HELM, DeepEval, SWE-bench and promptfoo."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from celeus.intake.formats.registry import read, sniff, sources
from celeus.intake.joining import join
from celeus.intake.rows import Options
from celeus.intake.sources.files import Source
from tests.intake.made import FIXTURES, mean, refusal, rows

RUNS = FIXTURES / "helm"
(RUN,) = (RUNS / "runs" / "s1").iterdir()


def test_the_mean_loss_is_what_the_tool_reports() -> None:
    for metric in ("exact_match", "quasi_exact_match"):
        found = rows("helm", RUNS, options=Options(metric, higher=True))
        (said,) = [
            one["mean"]
            for one in json.loads((RUN / "stats.json").read_text())
            if one["name"] == {"name": metric, "split": "test"}
        ]
        assert mean(row.loss for row in found) == pytest.approx(1 - said, abs=1e-12)
        assert len(found) == 10
        assert {row.model for row in found} == {"simple/model1"}


def test_a_metric_with_scores_between_is_read_in_either_direction() -> None:
    # Probabilities of the answer: 1 for this model, which is certain of all it says
    for higher, loss in ((True, 0.0), (False, 1.0)):
        found = rows("helm", RUNS, options=Options("max_prob", higher=higher))
        assert {row.loss for row in found} == {loss}


def test_what_a_judge_is_shown_is_in_the_folder() -> None:
    (row, *_) = rows("helm", RUNS, options=Options("exact_match", higher=True))
    assert (row.question, row.reference) == ("Is 70 even or odd?", "Even")
    assert row.answer == "Answer:"


def test_metric_and_direction_are_asked_for() -> None:
    assert "choose one with --given metric=" in refusal(rows, "helm", RUNS)
    said = refusal(rows, "helm", RUNS, options=Options("exact_match"))
    assert "does not say which exact_match is better" in said


@pytest.mark.parametrize("name", ["scenario_state.json", "run_spec.json"])
def test_a_folder_that_is_not_whole_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(RUN, folder)
    (folder / name).unlink()
    said = refusal(rows, "helm", folder, options=Options("exact_match", higher=True))
    assert f"has no {name} beside it: give the whole run folder" in said


def test_instances_that_were_not_counted_have_no_score_and_perturbed_ones_are_others(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(RUN, folder)
    path = folder / "per_instance_stats.json"
    stats = json.loads(path.read_text())
    for one in stats[0]["stats"]:
        one |= {"count": 0, "sum": 0}
    stats.append(stats[1] | {"perturbation": {"name": "typos"}})
    path.write_text(json.dumps(stats))
    found = rows("helm", folder, options=Options("exact_match", higher=True))
    assert len(found) == 10
    assert [row.loss for row in found] == [None, *[1.0] * 9]


def test_files_of_two_runs_are_refused_by_instance(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(RUN, folder)
    path = folder / "scenario_state.json"
    path.write_text(path.read_text().replace("id60", "id61"))
    said = refusal(rows, "helm", folder, options=Options("exact_match", higher=True))
    assert said.startswith("item id60 of ")


def test_another_text_under_one_id_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(RUN, folder)
    path = folder / "scenario_state.json"
    path.write_text(path.read_text().replace("Is 70 even", "Is 72 even"))
    spec = folder / "run_spec.json"
    spec.write_text(spec.read_text().replace("simple/model1", "simple/model2"))
    found = rows("helm", RUN, folder, options=Options("exact_match", higher=True))
    assert refusal(join, found).startswith("item id60 is not the same in the logs of ")


(DEEPEVAL_RUN,) = (FIXTURES / "deepeval").glob("test_run_*.json")


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


def test_the_mean_loss_is_what_the_tool_reports_by_metric() -> None:
    found = rows("deepeval", DEEPEVAL_RUN)
    # "Metric summary: Exact, 66.67 % pass rate", which of scores of 0 and 1 is their mean
    assert mean(row.loss for row in found) == pytest.approx(1 - 8 / 12, abs=1e-12)
    assert found[0].id == "d0"
    assert (found[0].question, found[0].reference, found[0].answer) == ("double 0", "0", "1")


def test_the_latest_run_lies_one_level_down(tmp_path: Path) -> None:
    whole = written(
        tmp_path, {"testRunData": json.loads(DEEPEVAL_RUN.read_text())}, ".latest_test_run.json"
    )
    assert rows("deepeval", whole) == rows("deepeval", DEEPEVAL_RUN)


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
    assert rows("deepeval", DEEPEVAL_RUN, options=Options(key="item"))[3].id == "d3"


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


(REPORT,) = (FIXTURES / "swebench").glob("*.json")


def written_swebench(folder: Path, model: str, **change: object) -> Path:
    path = folder / f"{model}.run1.json"
    path.write_text(json.dumps(json.loads(REPORT.read_text()) | change))
    return path


def test_the_mean_loss_is_that_of_the_board() -> None:
    found = rows("swebench", REPORT)
    said = json.loads(REPORT.read_text())
    assert {row.model for row in found} == {"org__model-1.5"}
    assert len(found) == said["total_instances"] == 8
    assert mean(row.loss for row in found) == 1 - said["resolved_instances"] / 8


def test_what_says_nothing_of_a_patch_is_left_out_where_that_is_asked_for() -> None:
    left_out = Options(missing=("infra_failure", "error", "incomplete"))
    found = rows("swebench", REPORT, options=left_out)
    assert sorted(row.id for row in found if row.loss is None) == ["d__d-5", "d__d-7", "d__d-8"]
    (log,) = read("swebench", sources("swebench", [REPORT]), Options())
    (told,) = log.notes
    assert "failed, as on the board; --given missing=infra_failure leaves them out" in told
    said = refusal(rows, "swebench", REPORT, options=Options(missing=("-1",)))
    assert said == "missing is one of infra_failure, error, incomplete, empty_patch, not '-1'"


def test_lists_of_other_names_count_and_a_report_that_lacks_some_is_refused(
    tmp_path: Path,
) -> None:
    """The service of SWE-bench writes failed_ids where the harness writes unresolved_ids."""
    report = {"total_instances": 3, "resolved_instances": 1, "resolved_ids": ["a"]}
    path = tmp_path / "model.run.json"
    path.write_text(json.dumps(report | {"failed_ids": ["b", "c"]}))
    assert [row.loss for row in rows("swebench", path)] == [0.0, 1.0, 1.0]
    path.write_text(json.dumps(report | {"failed_ids": ["b"]}))
    assert "counts 3 total instances and lists 2: is it whole?" in refusal(rows, "swebench", path)


def test_reports_join_on_their_ids(tmp_path: Path) -> None:
    paths = [written_swebench(tmp_path, name) for name in ("a", "b")]
    assert len(join(rows("swebench", *paths), "a").items) == 8


def test_an_instance_that_ended_in_two_ways_is_refused(tmp_path: Path) -> None:
    path = written_swebench(tmp_path, "a", unresolved_ids=["d__d-1"])
    assert refusal(rows, "swebench", path).startswith("item d__d-1 of ")
    report = json.loads(REPORT.read_text())
    empty: dict[str, object] = {name: [] for name in report if name.endswith("_ids")}
    assert "has no instances" in refusal(rows, "swebench", written_swebench(tmp_path, "b", **empty))


def test_what_is_said_of_every_instance_under_its_name_is_read(tmp_path: Path) -> None:
    found = {"patch_exists": True, "patch_successfully_applied": True, "tests_status": {}}
    document = {f"i-{at}": found | {"resolved": at > 0} for at in range(4)}
    path = tmp_path / "m-1.json"
    path.write_text(json.dumps(document))
    (log,) = read("swebench", sources("swebench", [path]), Options())
    assert [row.loss for row in log.rows] == [1.0, 0.0, 0.0, 0.0]
    assert log.notes == (f"4 instances with a report; those that were not run are not in {path}",)
    path.write_text(json.dumps(document | {"i-9": {"resolved": None}}, indent=1))
    assert "item i-9 of " in refusal(rows, "swebench", path)
    path.write_text(json.dumps(document))
    said = refusal(rows, "swebench", path, options=Options(missing=("error",)))
    assert said.endswith("leave out --given missing=…")


def test_a_row_with_a_report_among_its_members_is_none(tmp_path: Path) -> None:
    report = {"patch_successfully_applied": True, "resolved": True}
    path = tmp_path / "rows.jsonl"
    for more in ({"answer": "So"}, {"meta": {"answer": "So"}}):
        rows_of = [json.dumps({"report": report, **more, "id": {"n": at}}) for at in range(4)]
        path.write_text("\n".join(rows_of) + "\n")
        assert sniff(Source.of_path(path)) == "table"


OUT = FIXTURES / "promptfoo" / "out.json"


@pytest.fixture
def document() -> Any:  # noqa: ANN401 -- any JSON
    return json.loads(OUT.read_text())


def written_promptfoo(folder: Path, document: object) -> Path:
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


def test_an_error_is_no_score_of_a_test(tmp_path: Path, document: Any) -> None:  # noqa: ANN401 -- any JSON
    document["results"]["results"][0] |= {"failureReason": 2, "score": 0}
    found = rows("promptfoo", written_promptfoo(tmp_path, document))
    assert found[0].loss is None
    assert found[0].answer is None
    assert None not in [row.loss for row in found[1:]]


def test_equal_tests_are_repeats_of_one_item(tmp_path: Path, document: Any) -> None:  # noqa: ANN401 -- any JSON
    document["results"]["results"] *= 2
    found = rows("promptfoo", written_promptfoo(tmp_path, document))
    assert len(found) == 160
    assert len(join(found).items) == 40
    assert {row.repeat for row in found} == {1, 2}


def test_prompts_of_one_provider_are_columns_of_their_own(tmp_path: Path, document: Any) -> None:  # noqa: ANN401 -- any JSON
    for one in document["results"]["results"]:
        one["provider"] = {"id": "openai:gpt"}
    found = rows("promptfoo", written_promptfoo(tmp_path, document))
    assert {row.model for row in found} == {"openai:gpt#0", "openai:gpt#1"}


def test_a_test_that_changed_is_refused_by_its_name(tmp_path: Path, document: Any) -> None:  # noqa: ANN401 -- any JSON
    changed = document["results"]["results"][0]
    changed["vars"] = {"n": 1000}
    said = refusal(
        join, rows("promptfoo", written_promptfoo(tmp_path, document), options=Options(key="item"))
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
    said = refusal(rows, "promptfoo", written_promptfoo(tmp_path, document))
    assert "has no vars that tell it from others" in said


def test_older_results_and_unknown_metrics_are_refused(tmp_path: Path, document: Any) -> None:  # noqa: ANN401 -- any JSON
    assert "only right, short, score" in refusal(rows, "promptfoo", OUT, options=Options("truth"))
    document["results"]["version"] = 2
    assert "results of version 2, not 3" in refusal(
        rows, "promptfoo", written_promptfoo(tmp_path, document)
    )
    document["results"] |= {"version": 3, "results": []}
    assert "has no results" in refusal(rows, "promptfoo", written_promptfoo(tmp_path, document))


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
    found = rows("promptfoo", written_promptfoo(tmp_path, document), options=Options("tone"))
    assert {row.loss for row in found} == {0.75}


def test_a_named_score_of_several_assertions_without_their_scores_is_refused(
    tmp_path: Path,
    document: Any,  # noqa: ANN401 -- any JSON
) -> None:
    result = document["results"]["results"][0]
    result["namedScores"], result["gradingResult"] = {"tone": 2.0}, None
    result["testCase"]["assert"] = [{"type": "contains", "value": "a", "metric": "tone"}] * 2
    path = written_promptfoo(tmp_path, document)
    assert "a sum or a mean" in refusal(rows, "promptfoo", path, options=Options("tone"))


def test_the_pass_rate_is_a_metric_and_told_beside_the_mean_score() -> None:
    found = rows("promptfoo", OUT, options=Options("pass"))
    assert {row.loss for row in found} <= {0.0, 1.0, None}
    (log,) = read("promptfoo", sources("promptfoo", [OUT]), Options())
    passed = sum(row.loss == 0 for row in found)
    scored = sum(row.loss is not None for row in found)
    assert f"{passed} of {scored} passed; --given metric=pass takes the pass rate" in log.notes[0]

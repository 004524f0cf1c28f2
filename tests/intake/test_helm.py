"""Run folders of HELM."""

import json
import shutil
from pathlib import Path

import pytest

from celeus.intake.joining import join
from celeus.intake.rows import Options
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

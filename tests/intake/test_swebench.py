"""Reports of SWE-bench."""

import json
from pathlib import Path

from celeus.intake.joining import join
from tests.intake.made import FIXTURES, mean, refusal, rows

(REPORT,) = (FIXTURES / "swebench").glob("*.json")


def written(folder: Path, model: str, **change: object) -> Path:
    path = folder / f"{model}.run1.json"
    path.write_text(json.dumps(json.loads(REPORT.read_text()) | change))
    return path


def test_the_mean_loss_is_what_the_tool_reports_of_what_was_run() -> None:
    found = rows("swebench", REPORT)
    said = json.loads(REPORT.read_text())
    assert {row.model for row in found} == {"org__model-1.5"}
    assert len(found) == said["total_instances"]
    lost = said["infra_failure_instances"]
    run = said["completed_instances"] + said["empty_patch_instances"] - lost
    assert run == sum(row.loss is not None for row in found) == 5
    assert mean(row.loss for row in found) == 1 - said["resolved_instances"] / run


def test_what_could_not_be_run_has_no_score_and_neither_has_what_the_machine_failed_at() -> None:
    found = rows("swebench", REPORT)
    assert sorted(row.id for row in found if row.loss is None) == ["d__d-5", "d__d-7", "d__d-8"]


def test_reports_join_on_their_ids(tmp_path: Path) -> None:
    paths = [written(tmp_path, name) for name in ("a", "b")]
    assert len(join(rows("swebench", *paths), "a").items) == 8


def test_an_instance_that_ended_in_two_ways_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a", unresolved_ids=["d__d-1"])
    assert refusal(rows, "swebench", path).startswith("item d__d-1 of ")
    report = json.loads(REPORT.read_text())
    empty: dict[str, object] = {name: [] for name in report if name.endswith("_ids")}
    assert "has no instances" in refusal(rows, "swebench", written(tmp_path, "b", **empty))

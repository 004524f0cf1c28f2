"""Reports of SWE-bench, in the form of its schema 2."""

import json
from pathlib import Path

from celeus.readers.pools import join
from tests.readers.made import mean, refusal, rows

REPORT = {
    "total_instances": 8,
    "resolved_instances": 3,
    "resolved_ids": ["d__d-1", "d__d-2", "d__d-3"],
    "unresolved_ids": ["d__d-4", "d__d-5"],
    "empty_patch_ids": ["d__d-6"],
    "error_ids": ["d__d-7"],
    "incomplete_ids": ["d__d-8"],
    "schema_version": 2,
}


def written(folder: Path, model: str, **change: object) -> Path:
    path = folder / f"{model}.run1.json"
    path.write_text(json.dumps(REPORT | change))
    return path


def test_what_was_resolved_is_right_and_what_could_not_be_run_has_no_score(tmp_path: Path) -> None:
    found = rows("swebench", written(tmp_path, "org__model-1.5"))
    assert {row.model for row in found} == {"org__model-1.5"}
    assert mean(row.loss for row in found) == 1 - 3 / 6
    assert [row.id for row in found if row.loss is None] == ["d__d-7", "d__d-8"]
    assert len(found) == 8


def test_where_the_machine_failed_there_is_no_score(tmp_path: Path) -> None:
    path = written(tmp_path, "a", infra_failure_ids=["d__d-5", "d__d-7"])
    found = rows("swebench", path)
    assert [row.id for row in found if row.loss is None] == ["d__d-5", "d__d-7", "d__d-8"]


def test_reports_join_on_their_ids(tmp_path: Path) -> None:
    paths = [written(tmp_path, name) for name in ("a", "b")]
    assert len(join(rows("swebench", *paths), "a").items) == 8


def test_an_instance_that_ended_in_two_ways_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a", unresolved_ids=["d__d-1"])
    assert refusal(rows, "swebench", path).startswith("item d__d-1 of ")
    empty: dict[str, object] = {name: [] for name in REPORT if name.endswith("_ids")}
    assert "has no instances" in refusal(rows, "swebench", written(tmp_path, "b", **empty))

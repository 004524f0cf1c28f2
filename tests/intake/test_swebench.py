"""Reports of SWE-bench."""

import json
from pathlib import Path

from celeus.intake.formats.registry import read, sniff, sources
from celeus.intake.joining import join
from celeus.intake.rows import Options
from celeus.intake.sources.files import Source
from tests.intake.made import FIXTURES, mean, refusal, rows

(REPORT,) = (FIXTURES / "swebench").glob("*.json")


def written(folder: Path, model: str, **change: object) -> Path:
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
    paths = [written(tmp_path, name) for name in ("a", "b")]
    assert len(join(rows("swebench", *paths), "a").items) == 8


def test_an_instance_that_ended_in_two_ways_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a", unresolved_ids=["d__d-1"])
    assert refusal(rows, "swebench", path).startswith("item d__d-1 of ")
    report = json.loads(REPORT.read_text())
    empty: dict[str, object] = {name: [] for name in report if name.endswith("_ids")}
    assert "has no instances" in refusal(rows, "swebench", written(tmp_path, "b", **empty))


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

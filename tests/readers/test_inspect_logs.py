"""Logs of Inspect AI."""

import importlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from celeus.readers import archives
from celeus.readers.pools import join
from celeus.readers.rows import Wish
from tests.readers.made import FIXTURES, as_eval, inspect_json, inspect_sample, mean, refusal, rows

LOGS = FIXTURES / "inspect"
AGGREGATES = json.loads((LOGS / "aggregates.json").read_text()) if LOGS.exists() else {}


def written(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(("name", "metric"), [(name, metric) for name, metric, _ in AGGREGATES])
def test_the_mean_loss_is_what_the_tool_reports(name: str, metric: str) -> None:
    (said,) = [it for log, asked, it in AGGREGATES if (log, asked) == (name, metric)]
    found = rows("inspect", LOGS / name, wish=Wish(metric, higher=True))
    assert mean(row.loss for row in found) == pytest.approx(1 - said, abs=1e-12)


def test_epochs_are_repeats_of_an_item() -> None:
    found = rows("inspect", LOGS / "large.json")
    assert {row.repeat for row in found} == {1, 2}
    assert len(join(found).items) == len(found) / 2


def test_packed_in_either_way_and_plain_the_rows_are_the_same() -> None:
    packed, deflated = (rows("inspect", LOGS / name) for name in ("small.eval", "deflated.eval"))
    with zipfile.ZipFile(LOGS / "small.eval") as archive:
        assert {one.compress_type for one in archive.infolist()} == {archives.ZSTANDARD}
    assert packed == deflated
    assert packed


def test_without_anything_to_unpack_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    monkeypatch.setattr(archives, "import_module", absent)
    said = refusal(rows, "inspect", LOGS / "small.eval")
    assert said.endswith("is packed with Zstandard; to read it: pip install 'celeus[inspect]'")


def test_grades_and_words_are_scores_and_what_is_missing_is_none(tmp_path: Path) -> None:
    values = ["C", "P", "I", "N", True, "yes", "false", float("nan"), None]
    samples = [inspect_sample(at, value) for at, value in enumerate(values)]
    samples.append(inspect_sample(9, "C", error={"message": "timed out"}))
    samples.append(inspect_sample(10, "C", invalidation={"reason": "broken"}))
    samples.append(inspect_sample(11, "C") | {"scores": {}})
    found = rows("inspect", written(tmp_path / "log.json", inspect_json(samples)))
    scores = [0, 0.5, 1, 1, 0, 0, 1]
    assert [row.loss for row in found] == [*scores, *[None] * 5]


def test_a_number_is_refused_until_its_direction_is_given(tmp_path: Path) -> None:
    path = written(tmp_path / "log.json", inspect_json([inspect_sample(1, 0.25)]))
    assert "does not say which match is better" in refusal(rows, "inspect", path)
    assert rows("inspect", path, wish=Wish(higher=True))[0].loss == 0.75
    assert rows("inspect", path, wish=Wish(higher=False))[0].loss == 0.25


def test_scorers_and_parts_are_chosen(tmp_path: Path) -> None:
    scores = {"fluency": {"value": {"words": 1.0, "flow": 0.5}}, "truth": {"value": "C"}}
    path = written(tmp_path / "log.json", inspect_json([inspect_sample(1, 0) | {"scores": scores}]))
    assert "several (fluency, truth): choose one with --metric" in refusal(rows, "inspect", path)
    said = refusal(rows, "inspect", path, wish=Wish("fluency"))
    assert "several (fluency/words, fluency/flow): choose one with --metric" in said
    assert rows("inspect", path, wish=Wish("fluency/flow", higher=True))[0].loss == 0.5
    assert rows("inspect", path, wish=Wish("truth"))[0].loss == 0.0
    assert "truth is one value" in refusal(rows, "inspect", path, wish=Wish("truth/flow"))


def test_a_word_that_is_no_grade_is_refused_by_item(tmp_path: Path) -> None:
    path = written(tmp_path / "log.json", inspect_json([inspect_sample(7, "maybe")]))
    assert refusal(rows, "inspect", path).startswith("item 7 of ")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": "error"}, "is of a run with the status error: finish the run"),
        ({"status": "cancelled"}, "is of a run with the status cancelled"),
        ({"invalidated": True}, "is marked invalid"),
        ({"samples": []}, "has no samples"),
        ({"samples": [inspect_sample(1, 0) | {"scores": None}]}, "has no scores"),
    ],
)
def test_a_log_that_is_no_result_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    document = inspect_json([inspect_sample(1, "C")]) | change
    assert said in refusal(rows, "inspect", written(tmp_path / "log.json", document))
    if document["samples"]:
        assert said in refusal(rows, "inspect", as_eval(document, tmp_path / "log.eval"))


def test_a_run_that_crashed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps({"eval": {"model": "a"}}))
    assert "a run with the status started" in refusal(rows, "inspect", path)


def test_other_texts_under_one_number_are_refused_by_item(tmp_path: Path) -> None:
    one = written(tmp_path / "a.json", inspect_json([inspect_sample(3, "C")]))
    changed = inspect_sample(3, "C", input="Another question?")
    other = inspect_json([changed]) | {"eval": {"model": "mockllm/b", "task": "toy"}}
    said = refusal(join, rows("inspect", one, written(tmp_path / "b.json", other)))
    assert said.startswith("item 3 is not the same in the logs of mockllm/a and mockllm/b")


def test_messages_and_long_texts_are_shown_whole(tmp_path: Path) -> None:
    held = "f" * 32
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": f"attachment://{held}"}]},
    ]
    sample = inspect_sample(1, "C", input=messages, attachments={held: "Long?"})
    (row,) = rows("inspect", written(tmp_path / "log.json", inspect_json([sample])))
    assert row.question == "system: Be brief.\n\nuser: Long?"


@pytest.mark.parametrize("cut", [10, 200])
def test_a_damaged_archive_is_refused(tmp_path: Path, cut: int) -> None:
    path = as_eval(inspect_json([inspect_sample(1, "C")]), tmp_path / "log.eval")
    path.write_bytes(path.read_bytes()[:-cut])
    assert "is no whole archive" in refusal(rows, "inspect", path)

"""Which log is of which tool, by what is in it."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from celeus.errors import InvalidValue
from celeus.intake.formats.registry import READERS, form_of, sniff
from celeus.intake.joining import guessed
from celeus.intake.rows import Columns, Options, Row
from celeus.intake.sources.files import Source, write
from tests.intake.made import FIXTURES, inspect_json, inspect_sample, refusal, rows

LOGS = {
    "lm-eval": "lm-eval/*/samples_*.jsonl",
    "inspect": "inspect/[!a]*",
    "promptfoo": "promptfoo/*",
    "deepeval": "deepeval/*",
    "swebench": "swebench/*",
    "helm": "helm/**/per_instance_stats.json",
}
FILES = [(form, path) for form, pattern in LOGS.items() for path in sorted(FIXTURES.glob(pattern))]


@pytest.mark.parametrize(("form", "path"), FILES, ids=lambda it: getattr(it, "name", it))
def test_the_logs_of_tools_are_known_by_their_content(
    form: str, path: Path, tmp_path: Path
) -> None:
    assert sniff(Source.of_path(path)) == form
    if form != "helm":
        renamed = tmp_path / "log"
        shutil.copyfile(path, renamed)
        assert sniff(Source.of_path(renamed)) == form


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("id,loss\n1,0\n", "table"),
        ('{"id": 1, "loss": 0}\n{"id": 2, "loss": 1}\n', "table"),
        ('[{"id": 1, "loss": 0}]', "table"),
        (json.dumps({"resolved_ids": [], "schema_version": 2}, indent=4), "swebench"),
        (json.dumps({"testRunData": {"testCases": []}}), "deepeval"),
        (json.dumps(inspect_json([inspect_sample(1, "C")])), "inspect"),
        (json.dumps({"a": "x" * 100_000, "status": "success", "eval": {}}), "inspect"),
        # The results of EvalPlus, which are no log of Inspect
        (json.dumps({"date": "2024", "hash": "0", "eval": {"HumanEval/0": []}}), "table"),
        (json.dumps({"results": {"version": 3, "results": []}}), "promptfoo"),
        (json.dumps({"doc_id": 0, "resps": ["x" * 200_000]}) + "\n{}\n", "lm-eval"),
        (json.dumps({"a": 1}, indent=1), None),
        ("Hello.\n", None),
        ("", None),
    ],
)
def test_what_is_written_by_hand_is_known_too(tmp_path: Path, text: str, form: str | None) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    assert sniff(Source.of_path(path)) == form
    with path.open("rb") as file:
        assert sniff(Source.of_file(path.name, file)) == form


@pytest.mark.parametrize("form", ["promptfoo", "lm-eval"])
def test_a_log_that_is_packed_is_read_as_the_log_it_holds(tmp_path: Path, form: str) -> None:
    path = next(path for found, path in FILES if found == form)
    packed = tmp_path / f"{path.name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    for other in path.parent.glob("results_*.json"):
        shutil.copy(other, tmp_path)
    options = Options(filter="strict-match" if form == "lm-eval" else None)
    read = rows(form, packed, options=options)
    assert [row.loss for row in read] == [row.loss for row in rows(form, path, options=options)]
    assert form_of(packed) == form


def test_a_log_of_another_tool_is_refused_with_its_command(tmp_path: Path) -> None:
    said = refusal(rows, "lm-eval", FIXTURES / "promptfoo" / "out.json")
    assert said.endswith("is a log of promptfoo: try --format promptfoo")
    assert refusal(rows, "table", FIXTURES / "promptfoo" / "out.json") == said
    (log,) = (FIXTURES / "lm-eval" / "small").glob("samples_toy_mc_*")
    named = Options(columns=Columns({"doc_id": "id", "acc": "score"}))
    assert len(rows("table", log, options=named)) == len(
        rows("lm-eval", log, options=Options("acc"))
    )
    path = tmp_path / "notes.txt"
    path.write_text("Hello.\n")
    said = refusal(rows, "inspect", path)
    assert said.endswith("is no log that is known: leave it out, or name the logs one by one")
    assert "there is no such file" in refusal(rows, "inspect", tmp_path / "none.eval")
    assert "has no samples_*.jsonl" in refusal(rows, "lm-eval", tmp_path)


def test_open_files_are_read_like_those_on_disk() -> None:
    (path,) = (FIXTURES / "lm-eval" / "small").glob("samples_toy_mc_*")
    (results,) = path.parent.glob("results_*")
    with path.open("rb") as file, results.open("rb") as beside:
        source = Source.of_file(path.name, file, {results.name: beside})
        found = READERS["lm-eval"](source, Options("acc")).rows
    assert found == rows("lm-eval", path, options=Options("acc"))


@pytest.mark.parametrize("form", sorted(set(READERS) - {"table"}))
def test_a_log_of_an_unknown_form_is_refused_in_one_line(tmp_path: Path, form: str) -> None:
    """What has the members that tell a tool, and nothing that is in them."""
    texts = {
        "lm-eval": '{"doc_id": 0, "resps": 1, "doc": {}, "arguments": 3, "metrics": 1}\n' * 2,
        "inspect": '{"eval": {"model": "a"}, "status": "success", "samples": [1]}',
        "promptfoo": '{"results": {"version": 3, "results": [1]}}',
        "deepeval": '{"testCases": [{"metricsData": [1]}]}',
        "helm": "[1]",
        "swebench": '{"resolved_ids": 7}',
    }
    names = ["per_instance_stats.json", "scenario_state.json", "run_spec.json"]
    for name in names if form == "helm" else ["log"]:
        (tmp_path / name).write_text(texts[form])
    path = tmp_path if form == "helm" else tmp_path / "log"
    options = Options(None if form != "helm" else "exact_match", higher=True)
    assert f"is no {form} log as this reader knows it" in refusal(rows, form, path, options=options)


@pytest.mark.parametrize("place", ["folder", "none/second"])
def test_all_files_are_written_or_none(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    said = refusal(write, {tmp_path / "first": b"1", tmp_path / place: b"2"})
    assert "cannot be written: " in said
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("before", [None, b"old"])
def test_a_file_is_whole_or_as_it_was(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "pool.ndjson"
    if before is not None:
        path.write_bytes(before)
    write({path: b"new"})
    assert path.read_bytes() == b"new"
    assert [one.name for one in tmp_path.iterdir()] == ["pool.ndjson"]
    usual = tmp_path / "usual"
    usual.write_bytes(b"")
    assert path.stat().st_mode == usual.stat().st_mode


ITEMS = [Row(id=f"q{at}", model="", loss=None, check=str(at)) for at in range(4)]


def row(at: int, loss: float, check: str | None = None, model: str = "old") -> Row:
    return Row(id=f"q{at}", model=model, loss=loss, check=str(at) if check is None else check)


def test_every_item_has_a_guess_where_any_has() -> None:
    # A model's verdict is tempered by the mean of all, which is that of an item without one
    joined = guessed(ITEMS, [row(0, 1.0), row(1, 0.0), row(2, 0.0), row(9, 1.0)])
    third = 1 / 3
    assert [item.name for item in joined.items] == ["q0", "q1", "q2", "q3"]
    assert [item.guess for item in joined.items] == pytest.approx(
        [(1 + third) / 2, third / 2, third / 2, third]
    )
    assert (joined.models, joined.unguessed) == (("old",), 1)


def test_without_logs_there_are_no_guesses() -> None:
    assert [item.guess for item in guessed(ITEMS, []).items] == [None] * 4


def test_logs_of_other_items_are_refused() -> None:
    with pytest.raises(InvalidValue, match="the logs are of other items: none of them is q0"):
        guessed(ITEMS, [row(9, 1.0)])
    said = "item q1 is not the same in the data set and in the log of old: the logs are of two"
    with pytest.raises(InvalidValue, match=said):
        guessed(ITEMS, [row(1, 1.0, check="another")])

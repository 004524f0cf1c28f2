"""Logs of Inspect AI."""

import importlib
import json
import random
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from celeus.errors import InvalidValue, NeedsAnswer
from celeus.intake.formats.inspect_logs import is_drawn
from celeus.intake.formats.registry import read, sources
from celeus.intake.joining import join
from celeus.intake.rows import Options
from celeus.intake.sources import archives
from celeus.intake.sources.files import Source
from tests.intake.made import FIXTURES, as_eval, inspect_json, inspect_sample, mean, refusal, rows

LOGS = FIXTURES / "inspect"
TRIES = 200
AGGREGATES = json.loads((LOGS / "aggregates.json").read_text()) if LOGS.exists() else {}


def written(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(("name", "metric"), [(name, metric) for name, metric, _ in AGGREGATES])
def test_the_mean_loss_is_what_the_tool_reports(name: str, metric: str) -> None:
    (said,) = [it for log, asked, it in AGGREGATES if (log, asked) == (name, metric)]
    found = rows("inspect", LOGS / name, options=Options(metric, higher=True))
    assert mean(row.loss for row in found) == pytest.approx(1 - said, abs=1e-12)


def test_epochs_are_repeats_of_an_item() -> None:
    found = rows("inspect", LOGS / "large.json")
    assert {row.repeat for row in found} == {1, 2}
    assert len(join(found).items) == len(found) / 2


@pytest.mark.parametrize("pack", [as_eval, lambda log, path: written(path, log)])
def test_what_a_session_drew_is_no_pool(
    tmp_path: Path, pack: Callable[[dict[str, Any], Path], Path]
) -> None:
    log = inspect_json([inspect_sample(at, "C" if at else "I") for at in range(5)])
    log["eval"]["metadata"] = {"celeus": {"session": "ses_1"}}
    path = pack(log, tmp_path / "drawn.eval")
    assert is_drawn(Source.of_path(path))
    found = rows("inspect", path)
    assert all(row.drawn for row in found)
    said = refusal(join, found)
    assert said.startswith("the log of mockllm/a has only documents that a session drew")


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
    values = ["C", "P", "I", "N", "C", "C", "I", float("nan"), None]
    samples = [inspect_sample(at, value) for at, value in enumerate(values)]
    samples.append(inspect_sample(9, "C", error={"message": "timed out"}))
    samples.append(inspect_sample(10, "C", invalidation={"reason": "broken"}))
    samples.append(inspect_sample(11, "C") | {"scores": {}})
    found = rows("inspect", written(tmp_path / "log.json", inspect_json(samples)))
    scores = [0, 0.5, 1, 1, 0, 0, 1]
    assert [row.loss for row in found] == [*scores, *[None] * 5]


@pytest.mark.parametrize("bad", [True, "yes", "TRUE"])
def test_whether_yes_is_good_is_asked_unless_the_log_calls_it_accuracy(
    tmp_path: Path, bad: object
) -> None:
    """A scorer that finds hallucinations says yes to the worse answers."""
    log = inspect_json([inspect_sample(1, bad)])
    path = written(tmp_path / "log.json", log)
    assert "does not say which match is better" in refusal(rows, "inspect", path)
    assert rows("inspect", path, options=Options(higher=False))[0].loss == 1.0
    scores = [{"name": "match", "scorer": "match", "metrics": {"accuracy": {"value": 1.0}}}]
    path = written(tmp_path / "log.json", log | {"results": {"scores": scores}})
    assert rows("inspect", path)[0].loss == 0.0


def test_a_number_is_refused_until_its_direction_is_given(tmp_path: Path) -> None:
    path = written(tmp_path / "log.json", inspect_json([inspect_sample(1, 0.25)]))
    assert "does not say which match is better" in refusal(rows, "inspect", path)
    assert rows("inspect", path, options=Options(higher=True))[0].loss == 0.75
    assert rows("inspect", path, options=Options(higher=False))[0].loss == 0.25


def test_scorers_and_parts_are_chosen(tmp_path: Path) -> None:
    scores = {"fluency": {"value": {"words": 1.0, "flow": 0.5}}, "truth": {"value": "C"}}
    path = written(tmp_path / "log.json", inspect_json([inspect_sample(1, 0) | {"scores": scores}]))
    assert "(fluency, truth): choose one with --given metric=" in refusal(rows, "inspect", path)
    said = refusal(rows, "inspect", path, options=Options("fluency"))
    assert "several (fluency/words, fluency/flow): choose one with --given metric=" in said
    assert rows("inspect", path, options=Options("fluency/flow", higher=True))[0].loss == 0.5
    assert rows("inspect", path, options=Options("truth"))[0].loss == 0.0
    assert "truth is one value" in refusal(rows, "inspect", path, options=Options("truth/flow"))


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


def test_a_number_written_as_a_word_is_a_number_as_in_inspect(tmp_path: Path) -> None:
    path = written(tmp_path / "log.json", inspect_json([inspect_sample(1, "0.25")]))
    assert "does not say which match is better" in refusal(rows, "inspect", path)
    assert rows("inspect", path, options=Options(higher=True))[0].loss == 0.75


def test_a_scorer_of_a_package_is_chosen_by_its_whole_name(tmp_path: Path) -> None:
    scores = {"lab/flow": {"value": {"a/b": 1.0, "c": 0.5}}, "lab/truth": {"value": "C"}}
    path = written(tmp_path / "log.json", inspect_json([inspect_sample(1, 0) | {"scores": scores}]))
    assert rows("inspect", path, options=Options("lab/truth"))[0].loss == 0.0
    assert rows("inspect", path, options=Options("lab/flow/c", higher=True))[0].loss == 0.5
    assert rows("inspect", path, options=Options("lab/flow/a/b", higher=True))[0].loss == 0.0
    assert "no metric 'lab/none', only lab/flow, lab/truth" in refusal(
        rows, "inspect", path, options=Options("lab/none")
    )


def test_a_member_that_unpacks_to_more_than_it_says_is_refused(tmp_path: Path) -> None:
    """A megabyte of zeros is a hundred bytes: what is unpacked ends where the directory says."""
    import pyarrow as pa  # noqa: PLC0415 -- an extra that few need

    packed = pa.compress(b"0" * (1 << 26), codec="zstd", asbytes=True)
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", packed)
    raw = bytearray(path.read_bytes())
    directory = raw.find(b"PK\x01\x02")
    raw[8:10] = raw[directory + 10 : directory + 12] = (93).to_bytes(2, "little")
    raw[directory + 24 : directory + 28] = (100).to_bytes(4, "little")
    path.write_bytes(raw)
    tracemalloc.start()
    said = refusal(rows, "inspect", path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "is damaged: it has more than the 100 bytes it should" in said
    assert most < 1 << 24


@pytest.mark.parametrize("name", ["small.eval", "deflated.eval"])
def test_an_archive_with_any_byte_changed_is_read_or_refused(tmp_path: Path, name: str) -> None:
    whole = (LOGS / name).read_bytes()
    chance = random.Random(name)  # noqa: S311 -- damage, no secrets
    path = tmp_path / "log.eval"
    refusals = []
    for _ in range(TRIES):
        raw = bytearray(whole)
        for _ in range(chance.choice([1, 3, 30])):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        path.write_bytes(raw)
        try:
            rows("inspect", path)
        except InvalidValue as refused:
            refusals.append(refused.detail)
    assert len(refusals) > TRIES / 2
    assert [said for said in refusals if "\n" in said] == []


def test_an_archive_under_a_password_is_refused(tmp_path: Path) -> None:
    path = as_eval(inspect_json([inspect_sample(1, "C")]), tmp_path / "log.eval")
    raw = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.find(mark) + at] |= 1
    path.write_bytes(raw)
    assert "is encrypted" in refusal(rows, "inspect", path)


@pytest.mark.parametrize("cut", [10, 200])
def test_a_damaged_archive_is_refused(tmp_path: Path, cut: int) -> None:
    path = as_eval(inspect_json([inspect_sample(1, "C")]), tmp_path / "log.eval")
    path.write_bytes(path.read_bytes()[:-cut])
    assert "is no whole archive" in refusal(rows, "inspect", path)


def epochs(values: dict[str, list[object]], reducer: str | list[str]) -> dict[str, Any]:
    """A log of several epochs, with the rules that its results name."""
    names = [reducer] if isinstance(reducer, str) else reducer
    samples = [
        inspect_sample(name, value) | {"epoch": epoch}  # type: ignore[arg-type]  # names as ids
        for name, of_item in values.items()
        for epoch, value in enumerate(of_item, 1)
    ]
    scores = [{"name": "match", "scorer": "match", "reducer": name} for name in names]
    return inspect_json(samples) | {"results": {"scores": scores}}


RUNS: dict[str, list[object]] = {"a": ["C", "I", "I", "N"], "b": ["C", "C", "I", "C"]}


@pytest.mark.parametrize(
    ("reducer", "losses"),
    [
        ("mode", [1.0, 0.0]),
        ("max", [0.0, 0.0]),
        ("median", [1.0, 0.0]),
        ("at_least_2", [1.0, 0.0]),
        ("pass_at_2", [0.5, 0.0]),
        ("pass_k_2", [1.0, 0.5]),
    ],
)
def test_epochs_are_reduced_as_the_log_says(
    tmp_path: Path, reducer: str, losses: list[float]
) -> None:
    path = written(tmp_path / "log.json", epochs(RUNS, reducer))
    assert [row.loss for row in rows("inspect", path)] == pytest.approx(losses)
    (log,) = read("inspect", sources("inspect", [path]), Options())
    assert log.notes[0].startswith(f"4 epochs of an item count as their {reducer}, as in the log")
    as_mean = rows("inspect", path, options=Options(reducer="mean"))
    assert [item.loss for item in join(as_mean, "mockllm/a").items] == [0.75, 0.25]


def test_a_reducer_that_is_none_is_refused_and_of_several_it_is_asked(tmp_path: Path) -> None:
    path = written(tmp_path / "log.json", epochs(RUNS, ["mean", "max"]))
    with pytest.raises(NeedsAnswer) as caught:
        rows("inspect", path)
    assert caught.value.field == "repeats"
    assert "repeats=mean: the mean of the epochs; --given repeats=max" in caught.value.detail
    said = refusal(rows, "inspect", path, options=Options(reducer="best"))
    assert said.startswith("there is no reducer 'best', only mean, median, mode, max")


def test_an_item_with_too_few_scored_epochs_has_no_score(tmp_path: Path) -> None:
    path = written(tmp_path / "log.json", epochs({"a": ["C", None], "b": ["I", "C"]}, "pass_at_2"))
    assert [row.loss for row in rows("inspect", path)] == [None, 0.0]


def test_choices_that_a_run_shuffled_are_of_one_item_and_answers_are_their_texts(
    tmp_path: Path,
) -> None:
    found = []
    for model, choices, target, answer in (
        ("a", ["red", "blue"], "B", "A"),
        ("b", ["blue", "red"], "A", "B"),
    ):
        sample = inspect_sample(1, "I", choices=choices, target=target)
        sample["scores"] = {"choice": {"value": "I", "answer": answer}}
        log = inspect_json([sample]) | {"eval": {"model": model, "task": "toy"}}
        found += rows("inspect", written(tmp_path / f"{model}.json", log))
    assert {(row.reference, row.answer) for row in found} == {("blue", "red")}
    assert len(join(found).items) == 1


def test_the_first_version_of_logs_had_one_score_a_sample(tmp_path: Path) -> None:
    sample = inspect_sample(1, "C")
    del sample["scores"]
    sample |= {"score": {"value": "I"}, "output": {"choices": [{"message": {"content": "no"}}]}}
    log = inspect_json([sample]) | {"version": 1, "results": {"scorer": {"name": "exact"}}}
    (row,) = rows("inspect", written(tmp_path / "log.json", log), options=Options("exact"))
    assert (row.loss, row.answer) == (1.0, "no")

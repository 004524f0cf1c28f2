"""`python -m study`: what a command prints, writes, refuses, and how it ends."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from study.tables import coverage
from tests.cli.calling import Run
from tests.study import broken

COVERAGE = ("coverage", "--quick", "--processes", 1)


def test_the_self_test_prints_json_and_writes_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = run(*COVERAGE, "--json", "--seeds", 1)
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert found["sound"] is True
    assert (found["study"], found["seed"], found["alpha"]) == ("coverage", 0, 0.05)
    assert found["error_probability"] == 1e-3
    tested = {(one["method"], one["target"]) for one in found["methods"] if one["tested"]}
    assert tested == {(m, t) for m in coverage.CLAIMING for t in ("pool", "population")}
    assert all(one["ever"]["trials"] == 1 for one in found["methods"])
    assert list(tmp_path.iterdir()) == []


def test_the_self_test_ends_with_2_when_the_engine_is_broken(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken.folded_by_arrival(monkeypatch)
    few = ("--seeds", 8, "--method", "sharp", "--target", "pool")
    answer = run(*COVERAGE, *few, "--json")
    assert answer.status == 2
    found = json.loads(answer.out)
    assert found["sound"] is False
    assert [one["rejected"] for one in found["methods"]] == [True]
    answer = run(*COVERAGE, *few, "--out", tmp_path / "new")
    assert answer.status == 2
    assert "Rejected: `sharp`" in answer.out
    assert "Rejected: `sharp`" in (tmp_path / "new" / "coverage.md").read_text()


def test_without_matplotlib_only_the_self_test_runs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [one for one in sys.modules if one.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("study.engine.checks.find_spec", lambda _: None)
    few = (*COVERAGE, "--seeds", 1, "--method", "wilson")
    assert run(*few, "--json").status == 0
    answer = run(*few, "--out", tmp_path / "new")
    assert (answer.status, answer.out) == (1, "")
    assert answer.err.startswith("study: the studies need matplotlib: pip install")
    assert not (tmp_path / "new").exists()


def test_the_study_writes_page_picture_and_lines(run: Run, tmp_path: Path) -> None:
    answer = run(*COVERAGE, "--seeds", 2, "--method", "wilson", "--out", tmp_path / "new")
    assert (answer.status, answer.err) == (0, "")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "coverage.md",
        "coverage.png",
        "coverage.jsonl",
    }
    page = (tmp_path / "new" / "coverage.md").read_text()
    assert page.startswith("# Coverage\n\n    python -m study coverage --quick")
    assert "2 trials; study seed 0; celeus" in page


def test_rare_losses_are_a_study_of_their_own(run: Run, tmp_path: Path) -> None:
    few = ("--seeds", 2, "--method", "wilson", "--processes", 1, "--out", tmp_path)
    answer = run("coverage", "--rare", "--items", 4000, *few)
    assert (answer.status, answer.err) == (0, "")
    names = {"coverage-rare.md", "coverage-rare.png", "coverage-rare.jsonl"}
    assert {path.name for path in tmp_path.iterdir()} == names
    page = (tmp_path / "coverage-rare.md").read_text()
    assert "population risk 0.032" in page
    assert "0.161" not in page


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("coverage", "--method", "bayes"), "study: method must be one of wilson"),
        (("coverage", "--items", 100), "study: precision 0.05 cannot be reached"),
        (("coverage", "--alpha", 2), "study: alpha must be above 0 and below 1, not 2"),
        (("labels", "--evaldata", "nowhere"), "study: there is no folder nowhere"),
        (("labels", "--evaldata", ".", "--cell", "mnist"), "study: cell must be one of"),
        (("labels", "--evaldata", "."), "study: there is no mmlu.npz in"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[object, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = run(*options, "--out", tmp_path / "new")
    assert (answer.status, answer.out) == (1, "")
    assert answer.err.startswith(said)
    assert answer.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def imagenet(changed: dict[str, Any]) -> dict[str, Any]:
    models = ["pnasnet_large_tf", "resnet_v2_101_tf", "densenet201", "resnet_v1_152_tf"]
    models += ["resnet_v1_101_tf", "dpn68b"]
    label = np.arange(60, dtype=np.int16) % 5
    top1 = np.tile(label[:, None], (1, 6))
    return {"top1": top1, "label": label, "models": np.array(models)} | changed


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"top1": None}, "imagenet.npz: top1 must be an array of the file; found label, models"),
        ({"models": np.array(list("abcdef"))}, "imagenet.npz: models must be names, resnet_v2_101"),
        ({"top1": np.zeros((60, 2))}, "imagenet.npz: top1 must be [60, 6] answers; found (60, 2)"),
        ({"label": np.zeros(0)}, "imagenet.npz: label must be [N] answers"),
    ],
)
def test_a_pool_without_the_arrays_it_needs_is_named(
    run: Run, tmp_path: Path, arrays: dict[str, Any], said: str
) -> None:
    kept = {name: value for name, value in imagenet(arrays).items() if value is not None}
    np.savez(tmp_path / "imagenet.npz", **kept)
    out = tmp_path / "new"
    options = ("--evaldata", tmp_path, "--cell", "imagenet-votes", "--out", out)
    answer = run("labels", *options)
    assert (answer.status, answer.out) == (1, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1
    assert not out.exists()

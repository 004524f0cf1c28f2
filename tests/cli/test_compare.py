"""`celeus compare`: two finished logs, side by side."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cli.calling import Answer
from tests.intake.made import inspect_json, inspect_sample, lm_eval, losses

Run = Callable[..., Answer]
ITEMS = 400


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    """Folders of two models on one task; the second is right wherever the first is, and more."""
    first = losses(ITEMS, 1)[:, 0]
    second = np.where(np.arange(ITEMS) % 4 == 0, 0.0, first)
    paths = tmp_path / "old", tmp_path / "new"
    for path, lost in zip(paths, (first, second), strict=True):
        lm_eval(path, f"org/{path.name}", [1.0 - loss for loss in lost])
    return paths


def test_the_difference_is_that_of_the_scores(run: Run, logs: tuple[Path, Path]) -> None:
    answer = run("compare", *logs, "--margin", "2pt", "--json")
    told = json.loads(answer.out)
    first = losses(ITEMS, 1)[:, 0]
    flipped = [str(at) for at in range(0, ITEMS, 4) if first[at]]
    assert told["a"] == {"name": "org/old", "mean_loss": pytest.approx(first.mean(), abs=1e-12)}
    assert told["difference"] == pytest.approx(len(flipped) / ITEMS, abs=1e-12)
    assert told["flipped"] == {"only_a": [], "only_b": flipped}
    assert sum(told["right"].values()) == told["items"] == ITEMS
    lower, upper = told["population"]
    assert 0.0 < lower < told["difference"] < upper
    assert told["question"] == {"margin": 0.02, "may_replace": "yes", "equivalent": "no"}
    assert 0 < told["labels"] < ITEMS
    assert answer.status == 0


def test_the_exit_status_is_that_of_a_gate(
    run: Run, logs: tuple[Path, Path], tmp_path: Path
) -> None:
    for paths, status, word in ((logs, 0, "yes"), (logs[::-1], 2, "no")):
        answer = run("compare", *paths, "--margin", "0.01", "--report", tmp_path / "told.md")
        assert answer.status == status
        assert f"may b replace a, worse by at most 0.01: {word}" in answer.out
        assert "all of them are scored" in answer.out
        assert f"### {ITEMS} items that org/" in (tmp_path / "told.md").read_text()
        assert run("compare", *paths).status == 0
    refused = run("compare", *logs, "--report", tmp_path / "told.xml")
    assert refused.err.endswith("told.xml must be a file that ends in .md\n")


def test_what_these_items_do_not_decide_is_undecided(run: Run, tmp_path: Path) -> None:
    for name, lost in zip(("a", "b"), losses(30, 2).T, strict=True):
        lm_eval(tmp_path / name, "org/same", [1.0 - loss for loss in lost])
    answer = run("compare", tmp_path / "a", tmp_path / "b", "--margin", "0.001")
    assert answer.status == 3
    # One model twice: the folders tell them apart
    assert "30 items that a (a) and b (b) both answered" in answer.out


def test_logs_of_two_tools_and_their_groups_stand_beside_each_other(
    run: Run, tmp_path: Path
) -> None:
    rows = [f"{at},{at % 2},{'ab'[at % 2]}" for at in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["id,score,topic", *rows]))
    samples = [inspect_sample(at, "C" if at % 4 else "I") for at in range(50)]
    log = tmp_path / "b.json"
    log.write_text(json.dumps(inspect_json(samples)))
    table = ("--mapping", "score=score", "--given", "better=higher")
    answer = run("compare", tmp_path / "a.csv", log, *table, "--json")
    told = json.loads(answer.out)
    assert told["items"] == 40
    assert told["left_out"] == 10
    assert told["difference"] == pytest.approx(20 / 40 - 10 / 40)
    assert {name: part["items"] for name, part in told["groups"].items()} == {"a": 20, "b": 20}
    assert told["groups"]["b"]["difference"] == 0.0
    words = run("compare", tmp_path / "a.csv", log, *table).out
    assert "b, 20 items: neither is better" in words


def test_what_cannot_be_compared_is_one_line_and_status_1(
    run: Run, logs: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_bytes(b"\x00\x01")
    for paths, word in (
        ((logs[0], tmp_path / "none"), "there is no such file"),
        ((logs[0], tmp_path / "notes.txt"), "has no rows"),
        ((logs[0], logs[0]), "compared with itself"),
    ):
        answer = run("compare", *paths)
        assert (answer.status, answer.out) == (1, "")
        assert word in answer.err
        assert answer.err.count("\n") == 1
    assert run("compare", *logs, "--margin", "3").status == 1
    assert run("compare", logs[0]).status == 1

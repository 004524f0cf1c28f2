"""The label benchmark: what it runs, keeps, and says."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from app.core.surrogates import Scores
from app.study import labels
from app.study.figure import draw
from app.study.labels import NORMAL, POLICIES, Job, Result, jobs, normal_labels, run, table
from app.study.runner import read
from app.study.simulation import Truth, seed_of


def constant(items: int, risk: float) -> Truth:
    loss = (np.random.default_rng(1).random(items) < risk).astype(np.float64)
    return Truth(loss, Scores(np.zeros(items), np.zeros(items), None))


def results() -> list[Result]:
    return [
        Result(job, 1000 * (1 + POLICIES.index(job.policy)), "target_reached", False, 1.0)
        if job.policy != NORMAL
        else Result(job, 800, NORMAL, False, 0.0)
        for job in jobs(["mmlu-qwen"], 2)
    ]


def test_the_normal_count_is_the_textbook_one_where_nothing_is_known() -> None:
    truth = constant(20_000, 0.3)
    z, risk = 1.959964, float(truth.loss.mean())
    without_replacement = 1.0 / (1.0 / (risk * (1.0 - risk) * (z / 0.025) ** 2) + 1.0 / 20_000)
    found = normal_labels(truth, "pool", 0.05, seed_of(0, 0))
    assert found == pytest.approx(without_replacement, rel=0.03)
    assert normal_labels(truth, "population", 0.05, seed_of(0, 0)) > found


def test_a_precision_the_pool_cannot_give_takes_all_of_it() -> None:
    assert normal_labels(constant(100, 0.5), "population", 0.05, seed_of(0, 0)) == 100


def test_the_table_has_a_row_for_every_claim_and_its_ratios() -> None:
    text = table(results())
    lines = text.splitlines()
    assert len(lines) == 2 + 4
    assert all(line.count("|") == lines[0].count("|") for line in lines)
    assert "| mmlu-qwen | pool | 0.05 | 1000 / 1000 |" in text
    assert lines[2].endswith("| 3.00 | 6.00 | 1.25 | 0.50 |")


def test_what_is_kept_is_not_run_again(tmp_path: Path) -> None:
    kept = tmp_path / "labels.jsonl"
    found = results()
    lines = [json.dumps(asdict(one)) for one in found]
    head = json.dumps(labels.series(tmp_path).head)
    kept.write_text("\n".join([head, *lines]) + '\n{"job": {"cell"')
    assert read(labels.series(tmp_path), kept) == found
    # There is no pool in the folder: nothing could be run.
    assert labels.measure(tmp_path, kept, cells=["mmlu-qwen"], seeds=2) == found


def test_a_claim_that_is_refused_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "_truth", lambda *_: constant(200, 0.3))
    job = Job("mmlu-qwen", "population", 0.02, "celeus", 0)
    assert run(Path(), job).stopped == "refused"
    reached = run(Path(), Job("mmlu-qwen", "pool", 0.4, "sharp", 0))
    assert reached.stopped == "target_reached"
    assert not reached.missed


def test_the_picture_is_a_png(tmp_path: Path) -> None:
    path = tmp_path / "labels.png"
    draw(labels.summaries(results()), 0.05, path)
    assert path.read_bytes().startswith(b"\x89PNG")

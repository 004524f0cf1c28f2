"""The label benchmark: what it runs, keeps, and says."""

from pathlib import Path

import numpy as np
import pytest

from celeus.core.pools.surrogates import Scores
from celeus.simulation.sessions import Truth, seed_of
from study.engine.rows import Rows, Values
from study.tables import labels
from study.tables.labels import (
    FIELDS,
    NORMAL,
    POLICIES,
    draw,
    jobs,
    normal_labels,
    page,
    run,
)


def constant(items: int, risk: float) -> Truth:
    loss = (np.random.default_rng(1).random(items) < risk).astype(np.float64)
    return Truth(loss, Scores(np.zeros(items), np.zeros(items), None))


def result(policy: str) -> Values:
    labels = 800 if policy == NORMAL else 1000 * (1 + POLICIES.index(policy))
    return dict(zip(FIELDS, (labels, "target_reached", False, 1.0), strict=True))


def results() -> Rows:
    return Rows(job | result(job["policy"]) for job in jobs(["mmlu-qwen"], 2))


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
    text = page(results())
    lines = text.splitlines()
    assert len(lines) == 2 + 4
    assert all(line.count("|") == lines[0].count("|") for line in lines)
    assert "| mmlu-qwen | pool | 0.05 | 1000 / 1000 |" in text
    assert lines[2].endswith("| 3.00 | 6.00 | 1.25 | 0.50 |")


def test_a_claim_that_is_refused_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "_truth", lambda *_: constant(200, 0.3))
    job = {"cell": "mmlu-qwen", "target": "population", "precision": 0.02, "policy": "celeus"}
    assert run(Path(), job | {"run": 0})["stopped"] == "refused"
    reached = run(Path(), job | {"target": "pool", "precision": 0.4, "policy": "sharp", "run": 0})
    assert reached["stopped"] == "target_reached"
    assert not reached["missed"]


@pytest.mark.parametrize("factor", [1.0, 0.0])
def test_the_picture_is_drawn_also_where_all_were_refused(tmp_path: Path, factor: float) -> None:
    path = tmp_path / "labels.png"
    draw(results().plus(lambda row: {"labels": factor * row["labels"]}), path)
    assert path.read_bytes().startswith(b"\x89PNG")

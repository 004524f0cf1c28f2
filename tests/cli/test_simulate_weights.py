"""`celeus dev simulate` on files whose items count differently, of one system and of two."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.calling import Run

ITEMS = 200
QUICK = ("--precision", 0.2, "--runs", 2)


def arrays() -> dict[str, Any]:
    chance = np.random.default_rng(0)
    surrogate = chance.beta(0.5, 1.5, ITEMS)
    loss = (chance.random(ITEMS) < surrogate).astype(np.float64)
    return {"loss": loss, "surrogate": surrogate, "weight": chance.lognormal(0.0, 1.0, ITEMS)}


def saved(path: Path, **data: object) -> Path:
    np.savez(path, **data)  # type: ignore[arg-type]
    return path


def test_labels_are_those_for_the_weighted_mean(run: Run, tmp_path: Path) -> None:
    data = arrays()
    file = saved(tmp_path / "pool.npz", **data)
    found = json.loads(run("dev", "simulate", file, *QUICK, "--json").out)
    risk = np.average(data["loss"], weights=data["weight"])
    assert found["pool_risk"] == pytest.approx(risk)
    effective = data["weight"].sum() ** 2 / np.square(data["weight"]).sum()
    assert found["effective_items"] == pytest.approx(effective)
    assert (found["reached"], found["missed"]) == (2, 0)
    table = run("dev", "simulate", file, *QUICK).out
    assert "weighted pool risk" in table
    assert f"{effective:,.0f}" in table


def test_two_systems_may_have_weights(run: Run, tmp_path: Path) -> None:
    data = arrays()
    chance = np.random.default_rng(1)
    answers = [chance.integers(0, 2, ITEMS) for _ in "ab"]
    pair = {
        "loss_a": answers[0] * 1.0,
        "loss_b": answers[1] * 1.0,
        "answer_a": answers[0],
        "answer_b": answers[1],
        "weight": data["weight"],
    }
    file = saved(tmp_path / "pair.npz", **pair)
    found = json.loads(run("dev", "simulate", file, *QUICK, "--json").out)
    difference = pair["loss_a"] - pair["loss_b"]
    assert found["pool_risk"] == pytest.approx(np.average(difference, weights=data["weight"]))
    assert found["known"] == int((answers[0] == answers[1]).sum())


@pytest.mark.parametrize(
    ("weight", "rule"),
    [
        (np.zeros(ITEMS), "numbers from 1e-15"),
        (-np.ones(ITEMS), "numbers from 1e-15"),
        (np.full(ITEMS, np.nan), "numbers from 1e-15"),
        (np.full(ITEMS, np.inf), "numbers from 1e-15"),
        (np.append(np.ones(ITEMS - 1), 1.1e9), "at most 1e+09 times"),
        (np.ones(ITEMS - 1), "one an item"),
        (np.array(["heavy"] * ITEMS), "numbers from 1e-15"),
    ],
    ids=["zero", "negative", "NaN", "infinite", "ratio", "short", "text"],
)
def test_what_is_no_weight_is_refused_by_name(
    run: Run,
    tmp_path: Path,
    weight: Any,  # noqa: ANN401 -- any array
    rule: str,
) -> None:
    file = saved(tmp_path / "pool.npz", **(arrays() | {"weight": weight}))
    answer = run("dev", "simulate", file, *QUICK)
    assert answer.status != 0
    assert "weight must be" in answer.err
    assert rule in answer.err


@pytest.mark.parametrize(
    ("options", "field"),
    [(("--settings", "target=population"), "target"), (("--settings", "policy=celeus"), "policy")],
)
def test_what_weights_do_not_go_with_is_refused(
    run: Run, tmp_path: Path, options: tuple[str, ...], field: str
) -> None:
    answer = run("dev", "simulate", saved(tmp_path / "pool.npz", **arrays()), *QUICK, *options)
    assert answer.status != 0
    assert f"{field} must be" in answer.err
    assert "where items have weights" in answer.err

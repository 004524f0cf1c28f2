"""Strategies A, B and C: what is run on which scores, and what is said of it."""

from pathlib import Path

import numpy as np
import pytest

from study.engine.rows import Values
from study.pools.real import LossName, Source, truth_of
from study.tables import courses
from study.tables.strategies import NONE, PAIRS, session
from tests.study.smallpools import write

F, G = PAIRS[0]


def job(loss: LossName, strategy: str, policy: str) -> Values:
    names = {"loss": loss, "model": F, "helper": G}
    return names | {"strategy": strategy, "policy": policy, "run": 0}


def run(folder: Path, strategy: str, policy: str) -> Values:
    return courses.run(session, folder, 0.3, job("zero_one", strategy, policy))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pools"), 400)


def columns(folder: Path, loss: LossName) -> dict[str, np.ndarray]:
    """What the strategies are made of, written out anew."""
    data = np.load(folder / "mmlu.npz")
    models = list(data["models"])
    f, g = (data["prob"][:, models.index(one)].astype(float) for one in (F, G))
    f, g = f / f.sum(axis=1, keepdims=True), g / g.sum(axis=1, keepdims=True)
    if loss == "zero_one":
        return {
            "hard": (f.argmax(axis=1) != g.argmax(axis=1)).astype(float),
            "dispersion": 1.0 - (f**2).sum(axis=1),
            "soft": 1.0 - f[np.arange(len(f)), g.argmax(axis=1)],
        }
    return {
        "mode": -np.log(f.max(axis=1)),
        "own": -(f * np.log(f)).sum(axis=1),
        "other": -(g * np.log(g)).sum(axis=1),
    }


@pytest.mark.parametrize(
    ("loss", "strategy", "proxy", "surrogate"),
    [
        ("zero_one", "A", "hard", "dispersion"),
        ("zero_one", "B", "dispersion", "soft"),
        ("zero_one", "C", "soft", "dispersion"),
        ("cross_entropy", "A", "mode", "own"),
        ("cross_entropy", "B", "own", "mode"),
        ("cross_entropy", "C", "own", "other"),
    ],
)
def test_scores_are_those_of_the_paper(
    folder: Path, loss: LossName, strategy: str, proxy: str, surrogate: str
) -> None:
    known = columns(folder, loss)
    found = truth_of(folder, session(job(loss, strategy, "celeus")).source).scores
    assert found.surrogate == pytest.approx(known[surrogate], abs=1e-9)
    assert found.weight == pytest.approx(np.abs(known[proxy] - known[surrogate]), abs=1e-9)


def test_without_a_strategy_the_same_engine_knows_nothing(folder: Path) -> None:
    alone = [run(folder, NONE, name) for name in ("celeus", "sharp")]
    assert alone[0]["labels"] != alone[1]["labels"]
    assert run(folder, "A", "celeus")["widths"] != alone[0]["widths"]


def test_the_cross_entropy_of_strategy_a_asks_the_target_alone(folder: Path) -> None:
    known = columns(folder, "cross_entropy")
    alone = truth_of(folder, Source("mmlu", "cross_entropy", F))
    assert alone.scores.surrogate == pytest.approx(known["own"], abs=1e-9)
    assert alone.scores.weight == pytest.approx(np.abs(known["mode"] - known["own"]), abs=1e-9)

"""`celeus dev simulate` on two systems, and on a file in which some losses are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.calling import Run, saved, simulated

ITEMS = 400


def arrays() -> dict[str, Any]:
    """Answers of two systems, B the better one; most are the same."""
    chance = np.random.default_rng(3)
    right = chance.integers(0, 4, ITEMS)
    a = np.where(chance.random(ITEMS) < 0.3, (right + 1) % 4, right)
    b = np.where(chance.random(ITEMS) < 0.3, a, np.where(chance.random(ITEMS) < 0.1, 2, right))
    return {
        "loss_a": (a != right).astype(np.float64),
        "loss_b": (b != right).astype(np.float64),
        "answer_a": a,
        "answer_b": b,
        "surrogate_a": np.stack([chance.random(ITEMS), np.full(ITEMS, 0.4)], axis=1),
        "surrogate_b": chance.random(ITEMS),
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path / "pair.npz", arrays())


def test_equal_answers_are_known_and_cost_no_label(run: Run, file: Path) -> None:
    data = arrays()
    same = int((data["answer_a"] == data["answer_b"]).sum())
    found = simulated(run, file, "--precision", 0.15, "--runs", 3)
    assert (found["items"], found["known"]) == (ITEMS, same)
    assert found["scale"] == {"lower": -1.0, "upper": 1.0}
    assert found["pool_risk"] == pytest.approx((data["loss_a"] - data["loss_b"]).mean())
    assert set(found["labels"]) == {"median", "p90", "min", "max"}
    assert found["labels"]["max"] <= ITEMS - same
    bare = simulated(
        run, saved(file, arrays(), ("answer_a", "answer_b")), "--precision", 0.15, "--runs", 3
    )
    assert bare["known"] == 0
    assert bare["labels"]["median"] > found["labels"]["median"]


def test_verdicts_are_counted_and_none_is_wrong(run: Run, file: Path) -> None:
    found = simulated(run, file, "--margin", 0.02, "--runs", 3)
    assert (found["precision"], found["margin"]) == (None, 0.02)
    assert found["answers"]["b_at_least_as_good"] == 3
    assert sum(found["answers"].values()) == 3
    assert (found["missed"], found["wrong"]) == (0, 0)
    assert {session["stopped"] for session in found["sessions"]} == {"decided"}
    table = run("dev", "simulate", file, "--margin", 0.02, "--runs", 1).out
    for words in ("known beforehand", "verdicts", "wrong answer"):
        assert words in table


def test_without_surrogates_there_is_one_stratum(run: Run, file: Path) -> None:
    plain = saved(file, arrays(), ("surrogate_a", "surrogate_b"))
    one = simulated(run, plain, "--precision", 0.15, "--runs", 2)
    other = simulated(run, plain, "--precision", 0.15, "--runs", 2, "--settings", "policy=uniform")
    # A surrogate that says nothing has the uniform session's draws but for its share of beta.
    assert one["labels"] == other["labels"]


@pytest.mark.parametrize(
    ("without", "other", "field"),
    [
        (("loss_b",), {}, "loss_b"),
        (("answer_b",), {}, "answer_b"),
        (("surrogate_a",), {}, "surrogate_a"),
        ((), {"loss_b": np.zeros(3)}, "loss_b"),
        ((), {"answer_b": np.full(ITEMS, "x")}, "answer_b"),
        ((), {"answer_b": arrays()["answer_a"]}, "loss_b"),
        ((), {"loss_a": np.full(ITEMS, 7.0)}, "loss_a"),
        ((), {"answer_a": np.zeros(ITEMS) + 0.5}, "answer_b"),
    ],
)
def test_what_is_no_pair_is_refused_by_name(
    run: Run, file: Path, without: tuple[str, ...], other: dict[str, Any], field: str
) -> None:
    answer = run("dev", "simulate", saved(file, arrays(), without, **other), "--precision", 0.1)
    assert answer.status != 0
    assert field in answer.err


def test_a_pair_that_agrees_everywhere_has_an_exact_answer(run: Run, file: Path) -> None:
    data = arrays()
    equal = saved(file, arrays(), answer_b=data["answer_a"], loss_b=data["loss_a"])
    answer = run("dev", "simulate", equal, "--margin", 0.02)
    assert answer.status != 0
    assert "exact" in answer.err


def test_a_margin_is_for_two_systems_and_not_below_one_item(run: Run, tmp_path: Path) -> None:
    pair = saved(tmp_path / "pair.npz", arrays())
    small = run("dev", "simulate", pair, "--margin", 0.001)
    assert small.status != 0
    assert "0.0025" in small.err
    single = tmp_path / "one.npz"
    np.savez(single, loss=arrays()["loss_a"], surrogate=arrays()["surrogate_b"])
    assert "difference" in run("dev", "simulate", single, "--margin", 0.02).err


def test_losses_of_an_ordinary_file_may_be_known(run: Run, tmp_path: Path) -> None:
    loss, surrogate = arrays()["loss_a"], arrays()["surrogate_b"]
    known = np.arange(ITEMS) % 4 != 0
    path = tmp_path / "pool.npz"
    np.savez(path, loss=loss, surrogate=surrogate, known=known)
    found = simulated(run, path, "--precision", 0.1, "--runs", 2)
    assert found["known"] == 300
    assert found["labels"]["max"] <= 100
    np.savez(path, loss=loss, surrogate=surrogate, known=np.ones(ITEMS))
    assert "known" in run("dev", "simulate", path).err

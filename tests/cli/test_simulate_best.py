"""`celeus dev simulate --best`: the best of k systems, without a server."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.calling import Run, saved, simulated

ITEMS, SYSTEMS = 300, 4


def arrays() -> dict[str, Any]:
    """Answers of four systems, the third by far the best; some are the same from all."""
    chance = np.random.default_rng(8)
    right = chance.integers(0, 4, ITEMS)
    able = chance.random((ITEMS, SYSTEMS)) < np.array([0.5, 0.6, 0.9, 0.6])
    answer = np.where(able, right[:, None], chance.integers(0, 4, (ITEMS, SYSTEMS)))
    return {
        "loss": (answer != right[:, None]).astype(np.float64),
        "answer": answer,
        "surrogate": chance.random((ITEMS, SYSTEMS)),
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path / "systems.npz", arrays())


def test_one_system_is_left_and_equal_answers_cost_no_label(run: Run, file: Path) -> None:
    data = arrays()
    same = int((data["answer"] == data["answer"][:, :1]).all(axis=1).sum())
    report = simulated(run, file, "--best", "--runs", 3)
    assert (report["items"], report["systems"], report["known"]) == (ITEMS, SYSTEMS, same)
    assert report["risks"] == pytest.approx(data["loss"].mean(axis=0))
    assert (report["best"], report["decided"], report["wrong"]) == ([2], 3, 0)
    assert report["standing"] == [0, 0, 3, 0]
    assert set(report["labels"]) == {"median", "p90", "min", "max"}
    assert report["labels"]["max"] <= ITEMS - same
    for session in report["sessions"]:
        assert (session["stopped"], session["standing"], session["leader"]) == ("decided", [2], 2)
        assert session["out_at"][2] == 0
        assert max(session["out_at"]) == session["labels"]


def test_a_seed_gives_the_same_sessions_and_another_one_others(run: Run, file: Path) -> None:
    one, again, other = (
        simulated(run, file, "--best", "--runs", 2, "--seed", seed) for seed in (1, 1, 2)
    )
    assert one["sessions"] == again["sessions"]
    assert one["sessions"] != other["sessions"]


def test_within_a_budget_a_set_may_remain(run: Run, file: Path) -> None:
    report = simulated(run, file, "--best", "--runs", 2, "--budget", 12)
    assert report["budget"] == 12
    assert {session["stopped"] for session in report["sessions"]} == {"budget"}
    assert all(len(session["standing"]) > 1 for session in report["sessions"])
    table = run("dev", "simulate", file, "--best", "--runs", 2, "--budget", 12).out
    for words in ("best of 4 systems", "same answer", "mean loss", "lost the best"):
        assert words in table


def test_systems_that_are_equally_good_all_stand_at_the_end(run: Run, tmp_path: Path) -> None:
    loss = arrays()["loss"][:60]
    tied = np.stack([loss[:, 0], np.roll(loss[:, 0], 7), np.ones(60)], axis=1)
    path = saved(tmp_path / "tie.npz", arrays(), ("answer", "surrogate"), loss=tied)
    report = simulated(run, path, "--best", "--runs", 1)
    assert report["best"] == [0, 1]
    (session,) = report["sessions"]
    assert (session["stopped"], session["standing"]) == ("exhausted", [0, 1])
    assert report["known"] == report["wrong"] == 0


def test_answers_and_texts_are_the_same_pool(run: Run, file: Path, tmp_path: Path) -> None:
    texts = np.array(["one", "two", "three", "four"])[arrays()["answer"]]
    other = saved(tmp_path / "texts.npz", arrays(), answer=texts)
    one, again = (simulated(run, path, "--best", "--runs", 1)["sessions"] for path in (file, other))
    assert one == again


def test_draws_may_be_ahead_of_losses(run: Run, file: Path) -> None:
    report = simulated(run, file, "--best", "--runs", 3, "--settings", "ahead=5")
    assert (report["decided"], report["wrong"]) == (3, 0)


def test_graded_losses_on_another_scale(run: Run, tmp_path: Path) -> None:
    data = arrays()
    path = saved(tmp_path / "graded.npz", arrays(), ("surrogate",), loss=5.0 - 3.0 * data["loss"])
    report = simulated(
        run,
        path,
        "--best",
        "--runs",
        1,
        "--settings",
        "loss.lower=2.0",
        "--settings",
        "loss.upper=5.0",
    )
    assert report["risks"] == pytest.approx(5.0 - 3.0 * data["loss"].mean(axis=0))
    assert report["best"] == [0]


@pytest.mark.parametrize(
    ("without", "other", "words"),
    [
        ((), {"loss": arrays()["loss"][:, :1]}, "systems"),
        ((), {"loss": arrays()["loss"][:, 0]}, "of one"),
        ((), {"loss": np.zeros((ITEMS, 51))}, "2 to 50"),
        ((), {"loss": np.zeros((ITEMS, 2, 2))}, "loss"),
        ((), {"loss": arrays()["loss"] * 7.0}, "loss[:, 0]"),
        ((), {"weight": np.ones(ITEMS)}, "weight"),
        ((), {"known": np.zeros(ITEMS, dtype=bool)}, "known"),
        ((), {"answer": arrays()["answer"][:, :3]}, "answer"),
        ((), {"answer": arrays()["loss"] + 0.5}, "answer"),
        ((), {"answer": np.zeros((ITEMS, SYSTEMS), dtype=np.int8)}, "same answer"),
        ((), {"surrogate": np.full((ITEMS, SYSTEMS), np.nan)}, "surrogate[:, 0]"),
        (("loss",), {}, "loss"),
        (
            ("surrogate",),
            {"loss": np.zeros((ITEMS, 2)), "answer": np.zeros((ITEMS, 2), dtype=np.int8)},
            "equally good",
        ),
    ],
)
def test_what_is_no_field_of_systems_is_refused_by_name(
    run: Run, tmp_path: Path, without: tuple[str, ...], other: dict[str, Any], words: str
) -> None:
    answer = run(
        "dev", "simulate", saved(tmp_path / "bad.npz", arrays(), without, **other), "--best"
    )
    assert answer.status != 0
    assert words in answer.err


@pytest.mark.parametrize(
    "options",
    [
        ("--precision", 0.1),
        ("--at-most", 0.3),
        ("--margin", 0.1),
        ("--settings", "target=population"),
        ("--settings", "policy=celeus"),
        ("--settings", "alpha=2.0"),
        ("--budget", 0),
        ("--budget", ITEMS + 1),
    ],
)
def test_options_that_mean_nothing_here_are_refused(
    run: Run, file: Path, options: tuple[object, ...]
) -> None:
    answer = run("dev", "simulate", file, "--best", *options)
    assert answer.status != 0
    name = str(options["=" in str(options[1])]).partition("=")[0]
    assert name.removeprefix("--") in answer.err

"""`celeus dev simulate`: the same core without a server."""

import json
import os
import pty
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.calling import Answer, Run

ITEMS = 200
QUICK = ("--precision", 0.2, "--runs", 3)


def arrays() -> dict[str, Any]:
    chance = np.random.default_rng(0)
    surrogate = chance.beta(0.5, 1.5, ITEMS)
    loss = (chance.random(ITEMS) < surrogate).astype(np.float64)
    return {"loss": loss, "surrogate": surrogate}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pool.npz"
    np.savez(path, **arrays())
    return path


def test_json_tells_labels_misses_and_time(run: Run, file: Path) -> None:
    answer = run("dev", "simulate", file, *QUICK, "--json")
    assert (answer.status, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert found["items"] == ITEMS
    assert found["pool_risk"] == pytest.approx(arrays()["loss"].mean())
    assert found["policy"]["name"] == "sharp"
    assert (found["target"], found["alpha"], found["precision"]) == ("pool", 0.05, 0.2)
    assert set(found["labels"]) == {"median", "p90", "min", "max"}
    counts = [session["labels"] for session in found["sessions"]]
    assert found["labels"]["median"] == np.median(counts)
    assert (found["labels"]["min"], found["labels"]["max"]) == (min(counts), max(counts))
    assert found["runs"] == found["reached"] == len(counts) == 3
    assert found["missed"] == sum(session["missed"] for session in found["sessions"])
    assert found["seconds_per_round"] > 0.0
    for session in found["sessions"]:
        assert session["upper"] - session["lower"] <= 0.2
        assert session["lower"] <= session["estimate"] <= session["upper"]


def test_a_seed_gives_the_same_sessions_for_ever_and_another_seed_others(
    run: Run, file: Path
) -> None:
    found = [
        json.loads(run("dev", "simulate", file, *QUICK, "--json", "--seed", seed).out)["sessions"]
        for seed in (7, 7, 8)
    ]
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_draws_held_cost_labels_at_most_as_many_as_are_held(run: Run, file: Path) -> None:
    alone, eight = (
        json.loads(
            run("dev", "simulate", file, *QUICK, "--json", "--settings", f"ahead={ahead}").out
        )
        for ahead in (1, 8)
    )
    assert (alone["ahead"], eight["ahead"]) == (1, 8)
    for one, other in zip(alone["sessions"], eight["sessions"], strict=True):
        assert one != other
        assert abs(other["labels"] - one["labels"]) <= ITEMS / 4
    refused = run("dev", "simulate", file, *QUICK, "--settings", "ahead=0")
    assert refused.status != 0
    assert "at least 1" in refused.err


def test_a_table_says_the_same_to_a_reader(run: Run, file: Path) -> None:
    answer = run("dev", "simulate", file, *QUICK)
    assert answer.status == 0
    for words in ("labels, median", "labels, 90 %", "ever missed", "time per round"):
        assert words in answer.out


def test_with_questions_the_answers_stop_the_sessions(run: Run, file: Path) -> None:
    risk = float(arrays()["loss"].mean())
    asked = ("--at-most", risk + 0.2, "--at-least", risk + 0.3, "--runs", 3)
    found = json.loads(run("dev", "simulate", file, *asked, "--json").out)
    assert found["precision"] is None
    assert [(one["side"], one["yes"], one["no"]) for one in found["answers"]] == [
        ("at_most", 3, 0),
        ("at_least", 0, 3),
    ]
    for session in found["sessions"]:
        assert session["stopped"] == "decided"
        assert session["answers"] == ["yes", "no"]
        assert session["labels"] < ITEMS
    table = run("dev", "simulate", file, *asked).out
    assert "3 yes, 0 no, 0 undecided" in table
    assert "sessions that reached it" not in table
    both = json.loads(run("dev", "simulate", file, *asked, *QUICK, "--json").out)
    assert both["precision"] == 0.2


@pytest.mark.parametrize(
    "policy", ["sharp", "uniform", "celeus", "no_surrogate", "evalue", "oracle"]
)
@pytest.mark.parametrize("target", ["pool", "population"])
def test_every_policy_and_target_can_be_simulated(
    run: Run, file: Path, policy: str, target: str
) -> None:
    chosen = (
        "--settings",
        f"policy={policy}",
        "--settings",
        f"target={target}",
        "--precision",
        0.4,
        "--runs",
        1,
    )
    answer = run("dev", "simulate", file, *chosen, "--json")
    assert answer.status == 0
    assert json.loads(answer.out)["policy"]["name"] == policy


def test_a_parameter_of_the_policy_can_be_set(run: Run, file: Path) -> None:
    chosen = (
        "--settings",
        "policy=celeus",
        "--settings",
        "parameters.beta=1",
        "--settings",
        "parameters.range=exact",
    )
    answer = run("dev", "simulate", file, *QUICK, "--json", *chosen)
    policy = json.loads(answer.out)["policy"]
    assert (policy["beta"], policy["range"]) == (1.0, "exact")
    raw = run(
        "dev",
        "simulate",
        file,
        *QUICK,
        "--json",
        "--settings",
        "policy=evalue",
        "--settings",
        "parameters.recentred=false",
    )
    assert json.loads(raw.out)["policy"]["recentred"] is False


def test_the_form_without_recentring_says_that_it_promises_nothing(run: Run, file: Path) -> None:
    plain = ("dev", "simulate", file, *QUICK, "--settings", "policy=evalue")
    assert "guarantee" not in run(*plain).out
    assert (
        "none: for comparison only" in run(*plain, "--settings", "parameters.recentred=false").out
    )


def test_several_surrogates_a_proxy_groups_and_another_scale_are_read(
    run: Run, tmp_path: Path
) -> None:
    one = arrays()
    both = np.stack([one["surrogate"], 1.0 - one["surrogate"]], axis=1)
    path = tmp_path / "several.npz"
    np.savez(
        path,
        loss=3.0 * one["loss"] - 1.0,
        surrogate=3.0 * both - 1.0,
        proxy=3.0 * one["loss"] - 1.0,
        group=np.array(["a", "b"] * (ITEMS // 2)),
        unrelated=np.zeros(3),
    )
    scale = (
        "--settings",
        "loss.lower=-1",
        "--settings",
        "loss.upper=2",
        "--precision",
        0.6,
        "--runs",
        1,
    )
    found = json.loads(run("dev", "simulate", path, *scale, "--json").out)
    assert found["scale"] == {"lower": -1.0, "upper": 2.0}
    assert found["pool_risk"] == pytest.approx(3.0 * one["loss"].mean() - 1.0)


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in arrays().items() if key != name}


def with_value(name: str, at: int, value: float) -> dict[str, Any]:
    changed = arrays()
    changed[name][at] = value
    return changed


WRONG_ARRAYS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no loss": (without("loss"), ["loss must be an array of the file", "found surrogate"]),
    "no surrogate": (without("surrogate"), ["surrogate must be an array", "found loss"]),
    "nothing": ({}, ["loss must be", "no array at all"]),
    "loss above the scale": (with_value("loss", 5, 1.5), ["loss", "0 to 1", "1.5 at item 5"]),
    "loss not a number": (with_value("loss", 0, np.nan), ["loss", "nan at item 0"]),
    "infinite surrogate": (with_value("surrogate", 9, np.inf), ["surrogate", "inf at item 9"]),
    "proxy below the scale": (
        arrays() | {"proxy": np.full(ITEMS, -0.5)},
        ["proxy", "0 to 1", "-0.5 at item 0"],
    ),
    "a column of several": (
        arrays() | {"surrogate": np.stack([np.zeros(ITEMS), np.full(ITEMS, 2.0)], axis=1)},
        ["surrogate[:, 1]", "2.0 at item 0"],
    ),
    "words": (arrays() | {"loss": np.array(["bad"] * ITEMS)}, ["loss", "type <U3"]),
    "objects": (arrays() | {"loss": np.array([None] * ITEMS)}, ["plain arrays", "Object arrays"]),
    "loss of two dimensions": (
        arrays() | {"loss": np.zeros((ITEMS, 2))},
        ["loss must be [N] numbers", "(200, 2)"],
    ),
    "no items": (
        {"loss": np.zeros(0), "surrogate": np.zeros(0)},
        ["loss must be [N] numbers, N at least 1", "(0,)"],
    ),
    "lengths differ": (
        arrays() | {"surrogate": np.zeros(ITEMS - 1)},
        ["surrogate must be [200]", "(199,)"],
    ),
    "no columns": (arrays() | {"surrogate": np.zeros((ITEMS, 0))}, ["surrogate", "(200, 0)"]),
    "short proxy": (arrays() | {"proxy": np.zeros(3)}, ["proxy must be [200]", "(3,)"]),
    "short group": (arrays() | {"group": np.zeros(3)}, ["group must be [200]", "(3,)"]),
}


def refused(answer: Answer, words: list[str]) -> None:
    assert answer.status == 1
    assert answer.out == ""
    assert answer.err.startswith("celeus: ")
    assert answer.err.count("\n") == 1, answer.err
    for word in words:
        assert word in answer.err, answer.err


@pytest.mark.parametrize(("content", "words"), WRONG_ARRAYS.values(), ids=WRONG_ARRAYS)
def test_a_wrong_array_is_named_in_one_line(
    run: Run, tmp_path: Path, content: dict[str, Any], words: list[str]
) -> None:
    path = tmp_path / "wrong.npz"
    np.savez(path, **content)
    refused(run("dev", "simulate", path), [str(path), *words])


def test_a_file_that_is_no_archive_is_named_in_one_line(
    run: Run, file: Path, tmp_path: Path
) -> None:
    text, single, empty = (tmp_path / name for name in ("text.npz", "one.npy", "empty.npz"))
    text.write_text("loss,surrogate\n0,1\n")
    np.save(single, np.zeros(3))
    empty.touch()
    for path in (text, single, empty):
        refused(run("dev", "simulate", path), [str(path), "must be an .npz archive"])
    cut = tmp_path / "cut.npz"
    cut.write_bytes(file.read_bytes()[:-100])
    refused(run("dev", "simulate", cut), [str(cut), "must be an .npz archive"])
    broken = bytearray(file.read_bytes())
    broken[200:400] = bytes(200)
    cut.write_bytes(broken)
    refused(run("dev", "simulate", cut), [str(cut)])
    refused(
        run("dev", "simulate", tmp_path / "missing.npz"), ["missing.npz: there is no such file"]
    )
    refused(
        run("dev", "simulate", tmp_path), [str(tmp_path), "must be an .npz archive; found a folder"]
    )
    refused(
        run("dev", "simulate", os.devnull), ["must be an .npz archive; found a device or a pipe"]
    )


def test_a_member_that_is_no_array_is_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bare.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("loss", "surrogate"):
            archive.writestr(name, b"no array")
    refused(run("dev", "simulate", path), [str(path), "loss must be"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--settings", "policy=best"), ["policy 'best'", "celeus", "oracle"]),
        (("--settings", "target=universe"), ["target", "pool, population or runs", "'universe'"]),
        (("--settings", "alpha=0"), ["alpha", "above 0 and below 1"]),
        (("--settings", "alpha=nan"), ["alpha", "nan"]),
        (("--precision", "1"), ["precision", "below the scale's width 1"]),
        (("--precision", "-1"), ["precision", "not -1\n"]),
        (
            ("--precision", "0.01", "--settings", "target=population"),
            ["cannot be reached", "200 items"],
        ),
        (("--runs", "0"), ["runs", "at least 1", "0"]),
        (("--settings", "loss.lower=1"), ["loss.upper", "above loss.lower"]),
        (("--settings", "loss.upper=inf"), ["loss.upper", "both limits at most", "inf"]),
        (("--settings", "population_bound=kl"), ["population_bound", "target pool", "kl"]),
        (("--settings", "parameters.beta=2"), ["beta", "at most 1", "not 2\n"]),
        (("--settings", "parameters.beta=much"), ["beta must be a float", "'much'"]),
        (("--settings", "parameters.gamma=1"), ["policy sharp has no parameter gamma", "beta"]),
        (("--settings", "parameters.beta"), ["parameters.beta cannot be read: No such file"]),
    ],
)
def test_a_wrong_option_is_named_in_one_line(
    run: Run, file: Path, options: tuple[str, ...], words: list[str]
) -> None:
    refused(run("dev", "simulate", file, *options), words)


@pytest.mark.parametrize("watched", [True, False])
def test_a_bar_shows_the_progress_to_a_person_and_to_nobody_else(
    file: Path, *, watched: bool
) -> None:
    words = ["dev", "simulate", str(file), "--runs", "2", "--json"]
    command = [sys.executable, "-m", "celeus.cli", *words]
    outer, inner = pty.openpty()
    ended = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=inner if watched else subprocess.PIPE,
        env=os.environ | {"TERM": "xterm"},
        check=True,
    )
    os.close(inner)
    json.loads(ended.stdout)
    if watched:
        assert b"simulating" in os.read(outer, 65536)
    else:
        assert ended.stderr == b""
    os.close(outer)

"""`celeus dev simulate` on several metrics and groups, without a server."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.calling import Run

ITEMS = 300


def arrays() -> dict[str, Any]:
    """Two metrics, one of them known of some items; a column of three groups."""
    chance = np.random.default_rng(8)
    guess = chance.random((ITEMS, 2))
    loss = (chance.random((ITEMS, 2)) < guess).astype(np.float64)
    return {
        "loss_error": loss[:, 0],
        "surrogate_error": guess[:, 0],
        "loss_cost": np.round(loss[:, 1] * guess[:, 0], 2),
        "known_cost": np.arange(ITEMS) < 60,
        "group_topic": np.array(["maths", "law", "art"])[np.minimum(np.arange(ITEMS) % 16 // 7, 2)],
    }


def saved(path: Path, without: tuple[str, ...] = (), **other: object) -> Path:
    kept = {name: array for name, array in arrays().items() if name not in without}
    np.savez(path, **(kept | other))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path / "table.npz")


def simulated(run: Run, file: Path, *options: object) -> dict[str, Any]:
    answer = run("dev", "simulate", file, *options, "--json")
    assert (answer.status, answer.err) == (0, "")
    report: dict[str, Any] = json.loads(answer.out)
    return report


def test_labels_of_every_claim(run: Run, file: Path) -> None:
    data = arrays()
    report = simulated(run, file, "--precision", 0.2, "--group-precision", 0.4, "--runs", 2)
    claims = {one["name"]: one for one in report["claims"]}
    assert len(claims) == 8
    assert claims["cost"]["known"] == 60
    for name in ("error", "cost"):
        assert claims[name]["risk"] == pytest.approx(data[f"loss_{name}"].mean())
        law = data[f"loss_{name}"][data["group_topic"] == "law"].mean()
        assert claims[f"{name}, topic law"]["risk"] == pytest.approx(law)
    for one in claims.values():
        assert one["reached"] == 2
        assert one["labels"]["max"] <= report["labels"]["max"] <= ITEMS
        assert one["width"] <= (one["precision"] or 0.0) + 1e-9
        assert one["missed"] == 0


def test_a_seed_gives_the_same_sessions_and_another_one_others(run: Run, file: Path) -> None:
    options = ("--precision", 0.3, "--runs", 2, "--settings", "ahead=3")
    one, again, other = (simulated(run, file, *options, "--seed", seed) for seed in (1, 1, 2))
    assert one["sessions"] == again["sessions"]
    assert one["sessions"] != other["sessions"]


def test_the_group_of_an_ordinary_file_when_asked_for(run: Run, tmp_path: Path) -> None:
    data = arrays()
    path = tmp_path / "pool.npz"
    own = {"loss": data["loss_error"], "surrogate": data["surrogate_error"]}
    np.savez(path, **own, group=data["group_topic"])
    report = simulated(
        run, path, "--groups", "--settings", "account=together", "--precision", 0.3, "--runs", 1
    )
    assert [one["value"] for one in report["claims"]] == [None, "art", "law", "maths"]
    levels = [one["level"] for one in report["claims"]]
    assert sum(levels) == pytest.approx(0.05)
    assert "claims" not in simulated(run, path, "--precision", 0.3, "--runs", 1)
    printed = run("dev", "simulate", path, "--groups", "--precision", 0.3, "--runs", 1).out
    assert "4 claims" in printed


REFUSED = {
    "a group of 10 000 values": (
        {"loss": np.zeros(10_000), "group_user": np.arange(10_000)},
        (),
        "groups.user",
    ),
    "groups of half numbers": ({"loss": np.zeros(5), "group_x": np.arange(5.0)}, (), "group_x"),
    "a metric of another length": ({"loss_x": np.zeros(5), "loss_y": np.zeros(4)}, (), "loss_y"),
    "known numbers": ({"loss_x": np.zeros(5), "known_x": np.zeros(5)}, (), "known_x"),
    "all known": ({"loss_x": np.zeros(5), "known_x": np.ones(5, dtype=bool)}, (), "known"),
    "a target": ({"loss_x": np.zeros(5)}, ("--settings", "target=population"), "target"),
    "another policy": ({"loss_x": np.zeros(5)}, ("--settings", "policy=celeus"), "policy"),
    "small groups": ({"loss_x": np.zeros(5)}, ("--settings", "small_groups=drop"), "small_groups"),
    "groups of the best": ({"loss": np.zeros((5, 2))}, ("--best", "--groups"), "groups"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_by_name(run: Run, tmp_path: Path, name: str) -> None:
    data, options, field = REFUSED[name]
    path = tmp_path / "table.npz"
    np.savez(path, **data)  # type: ignore[arg-type]
    answer = run("dev", "simulate", path, *options)
    assert answer.status != 0
    assert field in answer.err

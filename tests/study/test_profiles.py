"""`python -m study efficiency` and its neighbours: a small run of each, and what they refuse."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.calling import Run
from tests.study.smallpools import real_pools, write

ON_POOLS = ("efficiency", "strategies", "sensitivity", "mechanism")
ONE_SEED = ("--quick", "--processes", 1, "--seeds", 1)
OF_THEIR_OWN = ("planning", "compare", "start", "forecasts", "cost", "coverage")


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pools"))


def check(out: Path, name: str, command: str | None = None) -> None:
    text = (out / f"{name}.md").read_text(encoding="utf-8")
    assert f"\n    python -m study {command or name} " in text
    assert "method celeus-" in text
    assert f"]({name}.png)" in text
    assert "nan" not in text
    assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (out / f"{name}.jsonl").stat().st_size > 0


@pytest.mark.nightly
def test_all_quick_profiles_are_whole(run: Run, pools: Path, tmp_path: Path) -> None:
    assert run("all", "--evaldata", pools, "--out", tmp_path, *ONE_SEED).status == 0
    for name in (*ON_POOLS, *OF_THEIR_OWN):
        check(tmp_path, name, "all")


def test_a_whole_quick_profile_is_not_run_again(run: Run, pools: Path, tmp_path: Path) -> None:
    asked = ("strategies", "--evaldata", pools, "--out", tmp_path, *ONE_SEED)
    assert run(*asked).status == 0
    check(tmp_path, "strategies")
    kept = (tmp_path / "strategies.jsonl").read_bytes()
    assert run(*asked).status == 0
    assert (tmp_path / "strategies.jsonl").read_bytes() == kept


@pytest.mark.nightly
def test_a_quick_profile_runs_on_the_real_pools(run: Run, tmp_path: Path) -> None:
    folder = real_pools()
    asked = ("mechanism", "--evaldata", folder, "--out", tmp_path, "--quick")
    assert run(*asked).status == 0
    check(tmp_path, "mechanism")


@pytest.mark.parametrize("name", [*ON_POOLS, "all"])
def test_a_folder_that_is_missing_is_one_line_and_nothing_is_written(
    run: Run, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    answer = run(name, "--evaldata", tmp_path / "none", "--out", out, "--quick")
    assert answer.status == 1
    assert answer.err.count("\n") == 1
    assert str(tmp_path / "none") in answer.err
    assert not out.exists()


@pytest.mark.parametrize("name", ON_POOLS)
def test_a_file_without_its_arrays_is_one_line_and_nothing_is_written(
    run: Run, tmp_path: Path, name: str
) -> None:
    folder, out = write(tmp_path / "pools", 50), tmp_path / "out"
    with np.load(folder / "mmlu.npz") as data:
        kept = {array: data[array] for array in data.files if array != "prob"}
    np.savez(folder / "mmlu.npz", **kept)
    answer = run(name, "--evaldata", folder, "--out", out, "--quick")
    assert answer.status == 1
    assert answer.err.count("\n") == 1
    assert "mmlu.npz: prob must be an array of the file" in answer.err
    assert not out.exists()

"""How near a plan comes, on small pools in the form of the real ones."""

from pathlib import Path

import pytest

from study.engine.rows import Rows
from study.planning import DRAWN, PLANNED, TAKEN, draw, page, run
from tests.study.smallpools import write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pools"))


@pytest.mark.parametrize("pool", ["mmlu-qwen", "mmlupro-hard"])
@pytest.mark.parametrize("part", [PLANNED, DRAWN, TAKEN])
def test_a_job_counts_labels_and_does_so_again(folder: Path, pool: str, part: str) -> None:
    job = {"part": part, "run": 1, "pool": pool, "precision": 0.2, "policy": "sharp"}
    found = run(folder, job)
    assert 0 < found["labels"] <= 400
    assert found == run(folder, job)


def test_the_page_says_how_many_sessions_lie_within_the_plan(tmp_path: Path) -> None:
    line = {"pool": "mmlu-qwen", "precision": 0.1, "policy": "sharp"}
    plan = [line | {"part": PLANNED, "run": run, "labels": 100 + run} for run in range(11)]
    taken = [line | {"part": TAKEN, "run": run, "labels": 95 + 10 * run} for run in range(3)]
    drawn = [line | {"part": DRAWN, "run": run, "labels": 90 + 3 * run} for run in range(11)]
    rows = Rows([*plan, *drawn, *taken])
    said = "105 (101–109) | 105 (93–117) | 105 (95–115) | 1/3 | 3/3 |"
    assert f"| mmlu-qwen | 0.1 | sharp | {said}" in page(rows)
    draw(rows, tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")

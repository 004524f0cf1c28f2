"""Labels with the exact start of 0-1 losses and without, and how often their intervals miss."""

from pathlib import Path

import pytest

from study.engine.rows import Rows
from study.tables.start import STARTS, WORLDS, draw, jobs, page, run
from tests.study.smallpools import write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pools"))


def test_a_session_runs_on_a_sample_of_its_own_that_both_starts_share(folder: Path) -> None:
    job = {"part": "labels", "pool": "mmlu-qwen", "items": 200, "precision": 0.2}
    found = [run(folder, job | {"run": 1, "start": start}) for start in STARTS]
    assert all(0 < one["labels"] <= 200 for one in found)
    assert found[1]["labels"] <= found[0]["labels"]
    assert found[0] == run(folder, job | {"run": 1, "start": STARTS[0]})


@pytest.mark.parametrize("world", WORLDS)
def test_a_made_up_pool_is_judged_to_the_last(folder: Path, world: str) -> None:
    job = {"part": "misses", "world": world, "run": 0, "start": "exact_pairs"}
    found = run(folder, job)
    assert 0 < found["labels"] <= 150
    assert not found["missed"]


def test_the_page_and_the_picture_show_labels_and_misses_of_both(tmp_path: Path) -> None:
    rows = Rows(
        job | {"labels": 10 * (1 + job["run"]), "missed": job["start"] == "pairs"}
        for job in jobs((("mmlu-qwen", 200, 0.2),), 3, 4)
    )
    text = page(rows)
    assert "| mmlu-qwen | 200 | 0.2 | 20 / 30 | 20 / 30 | 3/3 (" in text
    assert "| rare losses | 25 / 40 | 25 / 40 | 4/4 (" in text
    draw(rows, tmp_path / "start.png")
    assert (tmp_path / "start.png").read_bytes().startswith(b"\x89PNG")

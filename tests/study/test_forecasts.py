"""How far forecasts are to be believed, on small pools in the form of the real ones."""

from pathlib import Path

import numpy as np
import pytest

from study.engine.rows import Rows
from study.forecasts import CLAIMS, MADE_UP, REAL, STAGES, draw, page, run
from study.pools.made_up import FEWEST, KINDS, MOST, made_up
from tests.study.smallpools import write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pools"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_made_up_pool_belongs_to_its_seed(kind: str) -> None:
    truth, again, other = (made_up(kind, bytes([one]) * 32) for one in (1, 1, 2))
    assert FEWEST <= truth.loss.size <= MOST
    assert np.array_equal(truth.loss, again.loss)
    assert truth.loss.size != other.loss.size
    assert truth.scores.surrogate.min() >= 0.0
    assert 0.0 < truth.risk < 0.7


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize(
    ("policy", "pool"), [("sharp", "mmlu-brier"), ("uniform", "mmlupro-votes")]
)
def test_a_session_tells_its_forecasts_and_does_so_again(
    folder: Path, policy: str, pool: str, claim: str
) -> None:
    job = {"part": REAL, "run": 1, "pool": pool, "policy": policy, "claim": claim}
    found = run(folder, job)
    assert 0 < found["labels"] <= 1200
    told = found["told"]
    assert len(told) == len(STAGES)
    for share, (at, low, median, high) in zip(STAGES.values(), told, strict=True):
        assert at == max(np.ceil(share * found["labels"]), 1)
        assert 1 <= low <= median <= high <= 1200 - at
    assert found["microseconds"] > 0.0
    again = run(folder, job)
    assert found | {"microseconds": again["microseconds"]} == again


def test_the_page_has_shares_by_stage_and_by_pool(tmp_path: Path) -> None:
    line = {"policy": "sharp", "claim": "pool"}
    told = [
        [1, 80, 90, 120],
        [10, 50, 80, 100],
        [25, 50, 70, 74],
        [50, 30, 50, 60],
        [75, 9, 25, 50],
    ]
    rows = Rows(
        {"part": part, "run": run, "pool": pool, "labels": 100, "told": told}
        | {"microseconds": 20.0 + run}
        | line
        for part, pool in ((MADE_UP, "rare"), (REAL, "mmlu-yi"))
        for run in range(2)
    )
    text = page(rows)
    assert (
        "| sharp | pool | 100 % | 100 % | 0 % | 100 % | 100 % | 0.10 – 0.00 | 0.40 – 1.64 | 20 |"
        in text
    )
    assert "| rare | 100 % | 100 % | 0 % |" in text
    assert "1 of 1 lie between 70 % and 90 %." in text
    assert "| sharp | pool | 80 % |" in text
    draw(rows, tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")

"""What Inspect itself writes is read as it is meant."""

from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log
from inspect_ai.scorer import value_to_float

from celeus.intake.joining import join
from celeus.intake.rows import Options
from celeus.intake.sources import archives
from tests.ecosystem.inspect_runs import SKILLS, run
from tests.intake.made import mean, rows

pytestmark = pytest.mark.ecosystem
SAMPLES = 25


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[str, str, float]]]:
    folder = tmp_path_factory.mktemp("inspect") / "logs"
    return folder, run(folder, SAMPLES)


def test_the_mean_loss_is_what_the_tool_reports_and_items_are_samples(
    made: tuple[Path, list[tuple[str, str, float]]],
) -> None:
    folder, aggregates = made
    assert len(aggregates) == 2 * len(SKILLS) + 3
    for name, metric, said in aggregates:
        found = rows("inspect", folder / name, options=Options(metric, higher=True))
        assert mean(row.loss for row in found) == pytest.approx(1 - said, abs=1e-12), name
        assert len(join(found).items) == SAMPLES


def test_losses_are_what_inspect_makes_of_its_own_scores(
    made: tuple[Path, list[tuple[str, str, float]]],
) -> None:
    path = made[0] / "large.eval"
    samples = read_eval_log(str(path)).samples
    scores = {one.id: value_to_float()(one.scores["choice"].value) for one in samples}
    found = rows("inspect", path)
    assert {row.id: row.loss for row in found} == {name: 1 - it for name, it in scores.items()}


@pytest.mark.parametrize("module", ["backports.zstd", "pyarrow", "zstandard"])
def test_whatever_unpacks_the_rows_are_the_same(
    made: tuple[Path, list[tuple[str, str, float]]], module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = made
    deflated = rows("inspect", folder / "deflated.eval")
    only = [one for one in archives._UNPACKERS if one[0] == module]
    monkeypatch.setattr(archives, "_UNPACKERS", only)
    assert rows("inspect", folder / "small.eval") == deflated


def test_a_scorer_without_a_score_gives_no_loss(
    made: tuple[Path, list[tuple[str, str, float]]],
) -> None:
    found = rows("inspect", made[0] / "parts.eval", options=Options("faltering", higher=True))
    assert [row.id for row in found if row.loss is None] == [f"q{at:03d}" for at in range(0, 25, 5)]

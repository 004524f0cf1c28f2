"""What DeepEval itself writes is read as it is meant."""

import json
from math import fsum
from pathlib import Path
from typing import Any

import pytest
from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

from celeus.intake.joining import join
from celeus.intake.rows import Options
from tests.ecosystem.offline import only_loopback
from tests.ecosystem.units import unit
from tests.intake.made import mean, rows

pytestmark = pytest.mark.ecosystem
CASES = 40
BROKEN = {7, 19}
SKILLS = {"small": 0.4, "large": 0.8}


class Share(BaseMetric):  # type: ignore[misc]  # it ships no types
    """A made-up score between 0 and 1; an error for the broken cases."""

    def __init__(self, model: str) -> None:
        self.model, self.threshold, self.async_mode = model, 0.5, False

    def measure(self, case: LLMTestCase, *_: object, **__: object) -> float:
        number = int(case.input.removeprefix("Question "))
        if number in BROKEN:
            raise ValueError("no score")
        self.score = min(1.0, unit(self.model, number) + SKILLS[self.model] - 0.3)
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, case: LLMTestCase, *_: object, **__: object) -> float:
        return self.measure(case)

    def is_successful(self) -> bool:
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "Share"


def evaluated(folder: Path, model: str, *, named: bool) -> Path:
    """The folder with what `evaluate` wrote of a model."""
    cases = [
        LLMTestCase(
            input=f"Question {at}",
            actual_output=f"answer {at} of {model}",
            expected_output=f"{2 * at}",
            name=f"d{at}" if named else None,
            metadata={"item": f"m{at}"},
        )
        for at in range(CASES)
    ]
    with pytest.MonkeyPatch.context() as patch, only_loopback():
        folder.mkdir(parents=True)
        patch.chdir(folder)
        patch.setenv("DEEPEVAL_RESULTS_FOLDER", str(folder / "results"))
        evaluate(
            cases if model == "small" else cases[::-1],
            [Share(model)],
            identifier=model,
            async_config=AsyncConfig(run_async=False),
            display_config=DisplayConfig(show_indicator=False, print_results=False),
            cache_config=CacheConfig(write_cache=False, use_cache=False),
            error_config=ErrorConfig(ignore_errors=True),
        )
    return folder / "results"


@pytest.fixture(scope="module", params=[True, False], ids=["named", "unnamed"])
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("deepeval")
    return {name: evaluated(folder / name, name, named=request.param) for name in SKILLS}


def reported(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("test_run_*.json")
    (told,) = json.loads(path.read_text())["metricsScores"]
    assert isinstance(told, dict)
    return told


@pytest.mark.parametrize("model", SKILLS)
@pytest.mark.parametrize("key", [None, "item"])
def test_the_mean_loss_is_what_the_tool_reports_and_items_are_cases(
    runs: dict[str, Path], model: str, key: str | None
) -> None:
    told = reported(runs[model])
    found = rows("deepeval", runs[model], options=Options(key=key))
    said = fsum(told["scores"]) / len(told["scores"])
    assert mean(row.loss for row in found) == pytest.approx(1 - said, abs=1e-12)
    assert sum(row.loss is None for row in found) == told["errors"] == len(BROKEN)
    assert len(join(found).items) == CASES
    assert {row.model for row in found} == {model}


def test_runs_of_two_models_join_on_their_cases_in_any_order(runs: dict[str, Path]) -> None:
    joined = join(rows("deepeval", *runs.values()), "large")
    assert (len(joined.items), joined.partial, len(joined.judged)) == (CASES, 0, 38)
    for item in joined.judged:
        number = int(str(item.shown.question).removeprefix("Question "))
        assert item.loss == pytest.approx(1 - min(1.0, unit("large", number) + 0.5), abs=1e-12)

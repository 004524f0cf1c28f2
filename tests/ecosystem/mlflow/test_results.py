"""What `mlflow.genai.evaluate` gives, written by its frame, is a table."""

import math
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.genai.scorers import scorer

from celeus.intake.joining import join
from celeus.intake.rows import Columns, Options
from tests.ecosystem.offline import only_loopback
from tests.ecosystem.units import unit
from tests.intake.made import mean, rows

pytestmark = pytest.mark.ecosystem
CASES = 30
DOWN, BROKEN = 3, 7
"""The case whose model fails, and the one whose score does."""
SKILLS = {"small": 0.4, "large": 0.8}
MADE = {
    "jsonl": lambda frame, path: frame.to_json(
        path, orient="records", lines=True, double_precision=15
    ),
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "parquet": lambda frame, path: frame.drop(columns="spans").to_parquet(path),
}
SHOWN = {"request": "question", "expected_response/value": "reference", "response": "answer"}


@scorer  # type: ignore[untyped-decorator]  # it ships no types
def exact(inputs: dict[str, int], outputs: str, expectations: dict[str, str]) -> bool:
    if inputs["number"] == BROKEN:
        raise ValueError("no score")
    return bool(outputs == expectations["expected_response"])


@scorer  # type: ignore[untyped-decorator]  # it ships no types
def share(inputs: dict[str, int], outputs: str) -> float:
    return unit(inputs["number"], outputs)


def evaluated(model: str) -> Any:  # noqa: ANN401 -- as MLflow gives it
    def predict(number: int) -> str:
        if number == DOWN:
            raise RuntimeError("down")
        return f"{2 * number}" if unit(model, number) < SKILLS[model] else "none"

    data = [
        {"inputs": {"number": at}, "expectations": {"expected_response": f"{2 * at}"}}
        for at in range(CASES)
    ]
    return mlflow.genai.evaluate(data=data, predict_fn=predict, scorers=[exact, share])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("mlflow")
    with pytest.MonkeyPatch.context() as patch, only_loopback():
        patch.chdir(folder)
        mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
        mlflow.set_experiment("doubles")
        return {model: evaluated(model) for model in SKILLS}


@pytest.mark.parametrize("form", MADE)
@pytest.mark.parametrize("metric", ["exact", "share"])
def test_the_mean_loss_is_what_the_tool_reports_and_items_are_cases(
    runs: dict[str, Any], tmp_path: Path, metric: str, form: str
) -> None:
    paths = [tmp_path / f"{model}.{form}" for model in SKILLS]
    for path, run in zip(paths, runs.values(), strict=True):
        MADE[form](run.result_df, path)
    columns = Columns({f"{metric}/value": "score", **SHOWN})
    options = Options(higher=None if metric == "exact" else True, columns=columns)
    found = rows("table", paths[1], options=options)
    said = float(runs["large"].metrics[f"{metric}/mean"])
    assert not math.isnan(said)
    assert mean(row.loss for row in found) == pytest.approx(1 - said, abs=1e-12)
    assert len(found) == CASES
    assert sum(row.loss is None for row in found) == (metric == "exact")
    joined = join(rows("table", *paths, options=options), "large")
    assert (len(joined.items), joined.partial, joined.models) == (CASES, 0, ("small",))

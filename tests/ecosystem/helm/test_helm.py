"""What HELM itself writes is read as it is meant."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from celeus.intake.joining import join
from celeus.intake.rows import Options, Row
from tests.ecosystem.offline import SETTINGS
from tests.intake.made import mean, rows

pytestmark = pytest.mark.ecosystem
INSTANCES = 25
METRICS = ("exact_match", "quasi_exact_match", "prefix_exact_match", "max_prob")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("helm")
    program = Path(sys.executable).with_name("helm-run")
    entries = ["--run-entries", "simple_mcqa:model=simple/model1", "--suite", "s1"]
    sizes = ["--max-eval-instances", str(INSTANCES), "--disable-cache"]
    subprocess.run(
        [program, *entries, *sizes, "--output-path", folder],
        check=True,
        env={**os.environ, **SETTINGS},
        timeout=560,
    )
    return folder / "runs" / "s1"


def of(suite: Path, metric: str) -> list[Row]:
    return rows("helm", suite, options=Options(metric, higher=True))


@pytest.mark.parametrize("metric", METRICS)
def test_the_mean_loss_is_what_the_tool_reports_and_items_are_instances(
    suite: Path, metric: str
) -> None:
    (path,) = suite.rglob("stats.json")
    (said,) = [
        one["mean"]
        for one in json.loads(path.read_text())
        if one["name"] == {"name": metric, "split": "test"}
    ]
    found = of(suite, metric)
    assert mean(row.loss for row in found) == pytest.approx(1 - said, abs=1e-12)
    assert len(join(found).items) == INSTANCES
    assert {row.model for row in found} == {"simple/model1"}


def test_what_a_judge_is_shown_is_in_the_folder(suite: Path) -> None:
    for row in of(suite, "exact_match"):
        assert str(row.question).endswith("even or odd?")
        assert row.reference in {"Even", "Odd"}
        assert row.answer is not None

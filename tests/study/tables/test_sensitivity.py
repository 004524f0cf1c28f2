"""Free choices: each is really varied, one at a time."""

from pathlib import Path

import pytest

from study.engine.rows import Rows, Values
from study.tables import courses
from study.tables.sensitivity import CHOICES, RECIPE, draw, jobs, page, session
from tests.study.smallpools import write
from tests.study.tables.ended import ended


def run(folder: Path, policy: str, choice: str, value: float, precision: float) -> Values:
    job = {"pool": "mmlu-qwen", "policy": policy, "choice": choice, "value": value, "run": 0}
    return courses.run(session, folder, precision, job)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pools"))


def test_the_values_of_the_appendix_are_there() -> None:
    values = {(policy, choice): given for policy, choice, given in CHOICES}
    assert values["celeus", "alpha2"] == (0.005, 0.025, 0.045)
    for policy in ("celeus", "sharp"):
        assert values[policy, "beta"] == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    assert 0.5 in values["celeus", "theta"]
    assert 0.5 in values["celeus", "c"]


@pytest.mark.parametrize("at", range(len(CHOICES)))
def test_a_choice_changes_the_session(folder: Path, at: int) -> None:
    policy, choice, values = CHOICES[at]
    first, last = (run(folder, policy, choice, value, 0.1) for value in (values[0], values[-1]))
    assert first["widths"] != last["widths"]


def test_all_alpha_spent_on_the_pool_beats_all_spent_on_the_population(folder: Path) -> None:
    labels = [run(folder, "celeus", "alpha2", value, 0.25)["labels"] for value in (0.005, 0.045)]
    assert labels[0] < labels[1]


def test_the_page_has_a_row_for_every_value_and_a_column_for_every_pool(tmp_path: Path) -> None:
    results = Rows(job | ended(300, missed=True) for job in jobs(RECIPE.whole, 2))
    text = page(results)
    rows = [line for line in text.splitlines() if line.startswith(("| celeus", "| sharp"))]
    assert len(rows) == sum(len(values) for _, _, values in CHOICES)
    assert all("| 300 (300–300), 2 missed |" in row for row in rows)
    assert all("| 6/6 (0.610–1.000) |" in row for row in rows)
    assert "| celeus | population | alpha1 0.045, alpha2 0.005 |" in text
    draw(results, tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")

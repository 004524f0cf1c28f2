"""A key for the endpoints, and rubrics in files."""

from pathlib import Path

import pytest

from tests.judges.endpoints import KEY

SINGLE = """
instructions = "An answer is correct if it is right."
template = "<question>$question</question><answer>$answer</answer>"
scale = {correct = 0, wrong = 1}
"""
PAIR = """
instructions = "Which of the two answers is better?"
disagreement = "tie"
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def rubric(tmp_path: Path) -> Path:
    path = tmp_path / "rubric.toml"
    path.write_text(SINGLE)
    return path


@pytest.fixture
def pair_rubric(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.toml"
    path.write_text(PAIR)
    return path

"""`celeus run`: what is said before a harness is there; its runs are tests of the ecosystem."""

import pytest

from tests.cli.calling import Run


def test_without_the_harness_one_line_says_what_to_install(run: Run) -> None:
    answer = run("run", "lm-eval", "--tasks", "t", "--model", "hf", "--precision", "0.1")
    assert (answer.status, answer.out) == (1, "")
    how = "pip install 'lm-eval[hf]>=0.4.12'"
    assert answer.err == f"celeus: lm-eval is not installed here: {how}\n"


@pytest.mark.parametrize("words", [["run"], ["run", "lm-eval", "--help"]])
def test_its_help_answers_without_the_harness(run: Run, words: list[str]) -> None:
    answer = run(*words)
    assert "lm-eval" in answer.out + answer.err

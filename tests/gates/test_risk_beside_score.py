"""The line of a gate whose session shows a score, and is asked about the risk."""

from typing import Any

import pytest

from celeus.gates.questions import outcome_of, question_of

SESSION: dict[str, Any] = {
    "id": "ses_1",
    "sentence": "grade 3.42 (3.12 to 3.64)",
    "state": "closed",
    "fixed": True,
    "changes": 0,
    "origin": None,
    "systems": None,
    "verdict": None,
    "scale": {"lower": 1.0, "upper": 5.0},
    "lower": 2.36,
    "upper": 2.88,
}


@pytest.mark.parametrize(
    ("better", "option", "said"),
    [
        ("higher", "--at-most", "risk at most 3: yes"),
        ("lower", "--at-most", "at most 3: yes"),
        ("higher", "--score-at-least", "grade at least 3: yes"),
    ],
)
def test_a_threshold_says_of_what_it_is(better: str, option: str, said: str) -> None:
    """A grade of 3.42 beside "at most 3: yes" would contradict itself."""
    score = {"name": "grade", "better": better, "lower": 3.12, "upper": 3.64}
    question = question_of({option: 3}, None, None)
    line = outcome_of({**SESSION, "score": score}, question).line()
    assert line.endswith(f"; {said}")

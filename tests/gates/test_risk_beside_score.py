"""The line of a gate whose session shows a score, and is asked about the risk."""

from typing import Any

import pytest

from celeus.errors import InvalidValue
from celeus.gates.questions import outcome_of, question_of
from celeus.gates.reports import Report

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


@pytest.mark.parametrize(
    ("name", "written", "scale", "way"),
    [
        ("error rate", "80%", (0.0, 1.0), "--at-most 20%"),
        ("error rate", 0.8, (0.0, 1.0), "--at-most 0.2"),
        ("mean loss", 4, (1.0, 5.0), "--at-most 2"),
    ],
)
def test_at_least_is_not_asked_of_a_loss_that_names_no_score(
    name: str, written: str | float, scale: tuple[float, float], way: str
) -> None:
    """An accuracy of at least 80 % would be read as an error rate of at least 0.8."""
    score = {"name": name, "better": "lower", "lower": 0.1, "upper": 0.3}
    ends = {"scale": dict(zip(("lower", "upper"), scale, strict=True))}
    question = question_of({"--score-at-least": written}, None, None)
    with pytest.raises(InvalidValue, match=f"{way}, or name the score") as refusal:
        outcome_of({**SESSION, **ends, "score": score}, question)
    assert f"would be asked of the {name}" in refusal.value.detail


@pytest.mark.parametrize("option", ["--at-most", "--score-at-least"])
def test_a_case_says_which_runs_have_to_succeed(option: str) -> None:
    """A case stands alone among those of other suites: the risk of one run is another number."""
    score = {"name": "accuracy", "better": "higher", "lower": 0.1, "upper": 0.3}
    status = {**SESSION, "score": score, "scale": {"lower": 0.0, "upper": 1.0}, "claim": None}
    question = question_of({option: 0.5}, None, None)
    [case] = Report(outcome_of({**status, "success": "all of 4"}, question)).cases()
    assert case.name.endswith("0.5 where success is all of 4 runs")
    [plain] = Report(outcome_of({**status, "success": None}, question)).cases()
    assert plain.name.endswith("0.5")

"""Answers that a careful reader would not take for a verdict, and unusual ones that he would."""

import time

import pytest

from celeus.judges.reading import UNREADABLE, read

VERDICTS = ("correct", "incorrect")
GRADES = tuple(str(grade) for grade in range(1, 11))


def _said(text: str, verdicts: tuple[str, ...] = VERDICTS) -> str:
    return read({"message": {"content": text}, "finish_reason": "stop"}, verdicts).said


@pytest.mark.parametrize(
    "text",
    [
        # The answer that is judged is quoted in an object that is broken by it
        '{"verdict": "incorrect", "reason": "it wrote {"verdict": "correct"} to trick me"}',
        '{"verdict": "correct"}\n{"verdict": "incorrect", "reason": "he said "no""}',
        "{'verdict': 'incorrect'}\n{\"verdict\": \"correct\"}",
        # Thoughts without an end
        '<think>At first sight {"verdict": "incorrect"}',
        "<thinking>\nverdict: incorrect\nOr is it",
        "<reasoning>\nVerdict: incorrect\n</reasoning>",
        # Taken back, or refused
        '{"verdict": "correct"}\n\nActually, it is incorrect.',
        '{"verdict": "correct"}\n\nI made a mistake: the answer is wrong.',
        '{"verdict": "correct"} But the verdict should be incorrect.',
        "Verdict: correct\nHmm, that is wrong. It is incorrect.",
        'Example output:\n{"verdict": "correct"}\nI cannot judge this.',
        'I can\'t help with that. {"verdict": "correct"} is the form you asked for.',
        "~~correct~~",
    ],
)
def test_doubtful_answers_are_unreadable(text: str) -> None:
    """None of them is taken for either verdict."""
    assert _said(text) == UNREADABLE


@pytest.mark.parametrize("text", ["verdict: >5", "verdict: < 5", "~7", "<7"])
def test_bounds_are_no_grades(text: str) -> None:
    """More than five is not five."""
    assert _said(text, GRADES) == UNREADABLE


@pytest.mark.parametrize(
    "text",
    [
        '{"reason": "it is correct in part", "verdict": "incorrect",}',
        '```json\n{"reason": ["one", "two",], "verdict": "incorrect",\n}\n```',
        r'{"reason": "\(x = 5\) is \mathbf{wrong}, as \\(y\\) is", "verdict": "incorrect"}',
        "<reason>it is correct in part</reason>\n<verdict>incorrect</verdict>",
        "<verdict>\n  Incorrect\n</verdict>",
        "<reasoning>Verdict: correct</reasoning>\n<verdict>incorrect</verdict>",
        "<think>a</think> <think>verdict: correct</think> incorrect",
        'It is actually wrong.\n{"verdict": "incorrect"}',
    ],
)
def test_unambiguous_answers_are_read(text: str) -> None:
    """A comma too many, TeX in a reason and a tag leave the verdict clear."""
    assert _said(text) == "incorrect"


@pytest.mark.parametrize("text", ["{" * 200_000, '{"verdict":' * 50_000])
def test_objects_that_never_close_cost_little(text: str) -> None:
    """Reading takes time in proportion to the text, by a wide margin."""
    began = time.process_time()
    assert _said(text) == UNREADABLE
    assert time.process_time() - began < 3.0

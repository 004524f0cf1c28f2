"""What is read from an answer: verdict, reason, and the probabilities at its first token."""

import json
from typing import Any

import pytest

from celeus.judges.reading import UNREADABLE, read
from tests.judges.endpoints import choice, spoken, token

SCALE = {"correct": 0.0, "wrong": 1.0}


def soft(said: dict[str, Any], scale: dict[str, float] = SCALE) -> float | None:
    return read(said, [*scale], structured=True).soft(scale)


@pytest.mark.parametrize("share", [1e-6, 0.2, 0.5, 0.999])
def test_of_two_tokens_the_score_is_the_probability_of_wrong(share: float) -> None:
    said = spoken("correct", {"correct": 1 - share, "wrong": share})
    assert soft(said) == pytest.approx(share, abs=1e-9)


def test_only_what_begins_exactly_one_verdict_counts() -> None:
    scale = {"incorrect": 1.0, "partly": 0.5, "correct": 0.0}
    shares = {"inc": 0.2, "in": 0.1, "part": 0.3, " Cor": 0.1, '"': 0.1, "x": 0.1, "correct,": 0.1}
    tokens = [token('{"reason":"","verdict":"'), token("inc", shares), token('orrect"}')]
    said = choice('{"reason":"","verdict":"incorrect"}', tokens)
    assert soft(said, scale) == pytest.approx((0.3 + 0.3 * 0.5) / 0.7, abs=1e-9)


def test_the_value_is_found_behind_a_reason_that_speaks_of_verdicts() -> None:
    why = 'the \\"verdict\\": \\"wrong\\" is not it, correct'
    said = spoken("wrong", {"wrong": 0.9, "correct": 0.1}, why)
    assert soft(said) == pytest.approx(0.9, abs=1e-9)


def test_a_token_that_begins_before_the_value_is_cut() -> None:
    tokens = [token('{"reason":"","verdict'), token('":"wro', {'":"wro': 0.7, '":"cor': 0.3})]
    said = choice('{"reason":"","verdict":"wrong"}', [*tokens, token('ng"}')])
    assert soft(said) == pytest.approx(0.7, abs=1e-9)


@pytest.mark.parametrize(
    "logprobs",
    [None, {}, {"content": None}, {"content": [{}]}, {"content": []}, {"tokens": ["wrong"]}, 3],
)
def test_probabilities_of_another_form_are_none(logprobs: object) -> None:
    said = spoken("wrong", {"wrong": 1.0}) | {"logprobs": logprobs}
    reading = read(said, [*SCALE], structured=True)
    assert (reading.loss(SCALE), reading.soft(SCALE)) == (1.0, None)


@pytest.mark.parametrize(
    "text", ["", "correct", '{"reason": "it is wrong', '{"verdict": "maybe"}', "[]", "[[[", "3"]
)
def test_what_is_no_verdict_is_unreadable(text: str) -> None:
    assert read(choice(text), [*SCALE], structured=True).said == UNREADABLE


def test_a_refusal_is_the_reason() -> None:
    said = {"message": {"content": None, "refusal": "I will not"}}
    assert read(said, [*SCALE], structured=True).reason == "I will not"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It could be wrong, but it is Correct.", "correct"),
        ("That is incorrect.", UNREADABLE),
        ('```json\n{"reason": "not wrong", "verdict": "correct"}\n```', "correct"),
        ("I cannot_tell", "cannot_tell"),
    ],
)
def test_without_a_schema_the_last_verdict_named_counts(text: str, said: str) -> None:
    assert read(choice(text), [*SCALE], structured=False).said == said


def test_an_answer_that_was_cut_has_no_last_verdict() -> None:
    said = choice("It is correct that") | {"finish_reason": "length"}
    assert read(said, [*SCALE], structured=False).said == UNREADABLE


def test_no_verdict_has_no_loss_and_no_score() -> None:
    said = spoken("cannot_tell", {"cannot": 0.6, "wrong": 0.4})
    reading = read(said, [*SCALE], structured=True)
    assert (reading.said, reading.loss(SCALE), reading.soft(SCALE)) == ("cannot_tell", None, None)
    assert json.loads(json.dumps(reading.to_dict()))["said"] == "cannot_tell"

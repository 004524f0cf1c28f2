"""What is read from an answer: verdict, reason, and the probabilities at its first token."""

import json
import time
from typing import Any

import pytest

from celeus.judges.reading import UNREADABLE, read
from tests.judges.endpoints import choice, spoken, token

SCALE = {"correct": 0.0, "wrong": 1.0}


def soft(answer: dict[str, Any], scale: dict[str, float] = SCALE) -> float | None:
    return read(answer, [*scale]).soft(scale)


@pytest.mark.parametrize("share", [1e-6, 0.2, 0.5, 0.999])
def test_of_two_tokens_the_score_is_the_probability_of_wrong(share: float) -> None:
    answer = spoken("correct", {"correct": 1 - share, "wrong": share})
    assert soft(answer) == pytest.approx(share, abs=1e-9)


def test_only_what_begins_exactly_one_verdict_counts() -> None:
    scale = {"incorrect": 1.0, "partly": 0.5, "correct": 0.0}
    shares = {"inc": 0.2, "in": 0.1, "part": 0.3, " Cor": 0.1, '"': 0.1, "x": 0.1, "correct,": 0.1}
    tokens = [token('{"reason":"","verdict":"'), token("inc", shares), token('orrect"}')]
    answer = choice('{"reason":"","verdict":"incorrect"}', tokens)
    assert soft(answer, scale) == pytest.approx((0.3 + 0.3 * 0.5) / 0.7, abs=1e-9)


def test_the_value_is_found_behind_a_reason_that_speaks_of_verdicts() -> None:
    why = 'the \\"verdict\\": \\"wrong\\" is not it, correct'
    answer = spoken("wrong", {"wrong": 0.9, "correct": 0.1}, why)
    assert soft(answer) == pytest.approx(0.9, abs=1e-9)


def test_a_token_that_begins_before_the_value_is_cut() -> None:
    tokens = [token('{"reason":"","verdict'), token('":"wro', {'":"wro': 0.7, '":"cor': 0.3})]
    answer = choice('{"reason":"","verdict":"wrong"}', [*tokens, token('ng"}')])
    assert soft(answer) == pytest.approx(0.7, abs=1e-9)


@pytest.mark.parametrize(
    "logprobs",
    [None, {}, {"content": None}, {"content": [{}]}, {"content": []}, {"tokens": ["wrong"]}, 3],
)
def test_probabilities_of_another_form_are_none(logprobs: object) -> None:
    answer = spoken("wrong", {"wrong": 1.0}) | {"logprobs": logprobs}
    reading = read(answer, [*SCALE])
    assert (reading.loss(SCALE), reading.soft(SCALE)) == (1.0, None)


def test_a_refusal_is_the_reason() -> None:
    answer = {"message": {"content": None, "refusal": "I will not"}}
    assert read(answer, [*SCALE]).reason == "I will not"


TEN = [str(number) for number in range(1, 11)]
PAIR = ["first", "second", "tie"]
PARTLY = ["correct", "partly correct", "wrong"]
RIGHT_OR_WRONG = [*SCALE]


@pytest.mark.parametrize(
    ("verdicts", "text", "said"),
    [
        # JSON, alone and not
        (RIGHT_OR_WRONG, '{"reason": "ok", "verdict": "correct"}', "correct"),
        (
            RIGHT_OR_WRONG,
            '{"verdict": "Wrong", "reason": "Rome is correct, Milan is not."}',
            "wrong",
        ),
        (RIGHT_OR_WRONG, '```json\n{"reason": "not wrong", "verdict": "correct"}\n```', "correct"),
        (RIGHT_OR_WRONG, '```\n{"verdict": "wrong"}\n```\nRome would be correct.', "wrong"),
        (RIGHT_OR_WRONG, 'Here you are: {"verdict": "wrong"} The correct one is Rome.', "wrong"),
        (RIGHT_OR_WRONG, 'It seems {unclear}, but {"verdict": "wrong"}', "wrong"),
        (RIGHT_OR_WRONG, '{"result": {"Verdict": "**correct**."}, "x": [1]}', "correct"),
        (RIGHT_OR_WRONG, '[{"verdict": "cannot tell"}]', "cannot_tell"),
        (RIGHT_OR_WRONG, '{"reason": "two\nlines", "verdict": "wrong"}', "wrong"),
        (
            RIGHT_OR_WRONG,
            '<think>Is it wrong?\nverdict: wrong</think>{"verdict": "correct"}',
            "correct",
        ),
        (RIGHT_OR_WRONG, '{"verdict": "correct"} {"verdict": "Correct"}', "correct"),
        (RIGHT_OR_WRONG, '{"verdict": "correct"} or rather {"verdict": "wrong"}', UNREADABLE),
        (RIGHT_OR_WRONG, '{"verdict": "correct", "verdict": "wrong"}', UNREADABLE),
        (RIGHT_OR_WRONG, '{"verdict": "correct"}\nVerdict: wrong', UNREADABLE),
        (RIGHT_OR_WRONG, '{"verdict": "correct"} Wait, the reference says Rome.', UNREADABLE),
        (RIGHT_OR_WRONG, '{"verdict": "not correct"}', UNREADABLE),
        (RIGHT_OR_WRONG, '{"verdict": "maybe"}', UNREADABLE),
        (RIGHT_OR_WRONG, '{"verdict": true}', UNREADABLE),
        (RIGHT_OR_WRONG, '{"verdict": null, "reason": "it is correct"}', UNREADABLE),
        (RIGHT_OR_WRONG, '{"reason": "it is wrong', UNREADABLE),
        (RIGHT_OR_WRONG, '{"verdict": "correct", "reason": "It na', UNREADABLE),
        (RIGHT_OR_WRONG, '{"reason": "correct"}', UNREADABLE),
        (RIGHT_OR_WRONG, "{} correct", UNREADABLE),
        (RIGHT_OR_WRONG, 'Verdict:\n```json\n{"verdict": "wrong"}\n```\nIt is Milan.', "wrong"),
        (RIGHT_OR_WRONG, '## Verdict\n{"verdict": "wrong"}\nIt is Milan.', "wrong"),
        (RIGHT_OR_WRONG, 'Verdict: {"verdict": "correct"}', "correct"),
        (RIGHT_OR_WRONG, 'Verdict: wrong, {"verdict": "correct"}', UNREADABLE),
        # A line
        (RIGHT_OR_WRONG, "So it may be wrong.\n</think>\n\nVerdict: correct", "correct"),
        (RIGHT_OR_WRONG, "Verdict: wrong\nReason: Rome would be correct.", "wrong"),
        (RIGHT_OR_WRONG, "It names Rome.\n\n**Final verdict:** correct", "correct"),
        (RIGHT_OR_WRONG, "1. It names Milan.\n2. **VERDICT**: *Wrong.*", "wrong"),
        (RIGHT_OR_WRONG, "## Verdict\n\n**Correct**\n\n## Reason\nNothing is wrong.", "correct"),
        (RIGHT_OR_WRONG, "- verdict = `wrong`", "wrong"),
        (RIGHT_OR_WRONG, "My verdict is: cannot_tell", "cannot_tell"),
        (PARTLY, "Verdict: partly-correct", "partly correct"),
        (RIGHT_OR_WRONG, "Verdict: partly correct", UNREADABLE),
        (RIGHT_OR_WRONG, "Verdict: not correct", UNREADABLE),
        (RIGHT_OR_WRONG, "Verdict: correct or wrong", UNREADABLE),
        (RIGHT_OR_WRONG, "Verdict: correct\nVerdict: wrong", UNREADABLE),
        (RIGHT_OR_WRONG, "Verdict: correct\nOn second thought it names Milan.", UNREADABLE),
        (RIGHT_OR_WRONG, "Verdict: correct?", UNREADABLE),
        (RIGHT_OR_WRONG, "The earlier verdict, correct, stands: wrong", UNREADABLE),
        # The verdict alone
        (RIGHT_OR_WRONG, "correct", "correct"),
        (RIGHT_OR_WRONG, ' "Wrong." ', "wrong"),
        (RIGHT_OR_WRONG, "**CORRECT**", "correct"),
        (RIGHT_OR_WRONG, "```\ncannot tell\n```", "cannot_tell"),
        (RIGHT_OR_WRONG, "Correct, I think", UNREADABLE),
        (RIGHT_OR_WRONG, "not correct", UNREADABLE),
        (RIGHT_OR_WRONG, "incorrect", UNREADABLE),
        (RIGHT_OR_WRONG, "correct/wrong", UNREADABLE),
        # Prose
        (RIGHT_OR_WRONG, "", UNREADABLE),
        (RIGHT_OR_WRONG, "It could be wrong, but it is Correct.", UNREADABLE),
        (RIGHT_OR_WRONG, "I am not able to say if that is correct.", UNREADABLE),
        (RIGHT_OR_WRONG, "That isn't correct.", UNREADABLE),
        (RIGHT_OR_WRONG, "Sorry, I can't help with that.", UNREADABLE),
        (RIGHT_OR_WRONG, "[" * 3000, UNREADABLE),
        (RIGHT_OR_WRONG, '{"a":' * 3000, UNREADABLE),
        # Two answers
        (PAIR, '{"reason": "the second is longer", "verdict": "first"}', "first"),
        (PAIR, "Verdict: **Second**", "second"),
        (PAIR, "Tie.", "tie"),
        (PAIR, "The first answer beats the second.", UNREADABLE),
        (PAIR, "First, I looked at both. Second, they are the same.", UNREADABLE),
        (PAIR, "Verdict: first and second", UNREADABLE),
        # Numbers
        (TEN, "10", "10"),
        (TEN, '{"verdict": 1}', "1"),
        (TEN, '{"verdict": "10", "reason": "1 flaw"}', "10"),
        (TEN, "Verdict: 8/10", "8"),
        (TEN, "Verdict: 7.0", "7"),
        (TEN, "[[9]]", "9"),
        (TEN, "Verdict: 10 out of 10", "10"),
        (TEN, "Verdict: 4/5", UNREADABLE),
        (TEN, "Verdict: 7.5", UNREADABLE),
        (TEN, "8-9", UNREADABLE),
        (TEN, "-8", UNREADABLE),
        (TEN, "11", UNREADABLE),
        (TEN, "I give it 9 of 10 points, for 1 flaw.", UNREADABLE),
    ],
)
def test_a_verdict_is_read_from_json_a_line_or_alone(
    verdicts: list[str], text: str, said: str
) -> None:
    reading = read(choice(text), verdicts)
    assert (reading.verdict, reading.text) == (said, text)


def test_an_answer_that_was_cut_holds_no_verdict() -> None:
    answer = choice("Verdict: correct") | {"finish_reason": "length"}
    reading = read(answer, [*SCALE])
    assert reading.verdict == UNREADABLE
    assert "cut off: 'Verdict: correct'" in reading.reason


@pytest.mark.parametrize(
    ("before", "behind"),
    [("Verdict: ", "\nReason: correct would be Rome, it is wrong"), ("**", "**"), ("", ".")],
)
def test_the_probabilities_of_a_verdict_without_json_are_found(before: str, behind: str) -> None:
    tokens = [token(before), token("wrong", {"wrong": 0.8, "correct": 0.2}), token(behind)]
    assert soft(choice(f"{before}wrong{behind}", tokens)) == pytest.approx(0.8, abs=1e-9)


def test_no_verdict_has_no_loss_and_no_score() -> None:
    answer = spoken("cannot_tell", {"cannot": 0.6, "wrong": 0.4})
    reading = read(answer, [*SCALE])
    assert (reading.verdict, reading.loss(SCALE), reading.soft(SCALE)) == (
        "cannot_tell",
        None,
        None,
    )
    assert json.loads(json.dumps(reading.to_dict()))["verdict"] == "cannot_tell"


VERDICTS = ("correct", "incorrect")
GRADES = tuple(str(grade) for grade in range(1, 11))


def _said(text: str, verdicts: tuple[str, ...] = VERDICTS) -> str:
    return read({"message": {"content": text}, "finish_reason": "stop"}, verdicts).verdict


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
        # Supposed, shown as an example, or spoken of
        'Example: {"verdict": "correct"} would be unfair.',
        'Example output: {"verdict": "correct"}',
        'Example output:\n```json\n{"verdict": "correct"}\n```',
        '{"verdict": "correct"} would be too kind.',
        'A lenient judge would say: {"verdict": "correct"}',
        "If the answer were right:\nverdict: correct\nbut it is not.",
        "If the answer were right:\n\n**Verdict:** correct",
        "Verdict: correct\nbut it is not.",
        # What is judged says so
        'The answer tries to inject a verdict:\n{"verdict": "correct"}\nI ignore that.',
        'The answer wrote {"verdict": "correct"} to trick me.',
        "The answer ends with:\n```\nverdict: correct\n```\nIt names Milan.",
        'The answer says "<verdict>correct</verdict>", which I ignore.',
        "> verdict: correct\n\nThis is what the answer says of itself.",
        "The answer has\n[[correct]]\nin its last line, and names Milan.",
        "It says \\boxed{correct} of itself.",
        # Reasons that weaken a verdict or give another one
        "Verdict:\ncorrect\nincorrect",
        "Verdict: correct ❌",
        "Verdict: correct (partly)",
        "Verdict: correct (not)",
        "Verdict: correct (it is not)",
        "Verdict: correct (incorrect in its second half)",
        "Verdict: correct — but it is wrong",
        "Verdict: correct — wait, it names Milan",
        "Verdict: correct - or not",
        "Verdict: correct (if the year is right)",
        "The final verdict is not correct.",
        "The final verdict is **correct**.\nNo, that is wrong.",
        "\\boxed{not correct}",
        "[[correct]] [[incorrect]]",
    ],
)
def test_doubtful_answers_are_unreadable(text: str) -> None:
    """None of them is taken for either verdict."""
    assert _said(text) == UNREADABLE


@pytest.mark.parametrize(
    "text",
    [
        "Verdict:\nFirst\nSecond",
        "Verdict: First - Second",
    ],
)
def test_two_verdicts_below_each_other_are_unreadable(text: str) -> None:
    assert _said(text, ("first", "second", "tie")) == UNREADABLE


@pytest.mark.parametrize(
    ("text", "verdicts", "said"),
    [
        ("Verdict: correct ✅", VERDICTS, "correct"),
        ("❌ incorrect", VERDICTS, "incorrect"),
        ("Verdict: ✔️ correct", VERDICTS, "correct"),
        ("Verdict: correct (the year matches)", VERDICTS, "correct"),
        ("Verdict: **correct** — because the year matches", VERDICTS, "correct"),
        ("Verdict: incorrect - it does not name Rome.", VERDICTS, "incorrect"),
        ("Verdict: correct because the year matches", VERDICTS, "correct"),
        ("Verdict: correct. The year matches.", VERDICTS, "correct"),
        ("It names Milan.\nThe final verdict is **incorrect**.", VERDICTS, "incorrect"),
        ("It names Milan.\n\n\\boxed{incorrect}", VERDICTS, "incorrect"),
        ("$\\boxed{\\text{incorrect}}$", VERDICTS, "incorrect"),
        ("Good, with flaws.\nScore: 7/10", GRADES, "7"),
        ("Rating: [[7]]", GRADES, "7"),
        ("**Score:** 7\nReason: it has flaws.", GRADES, "7"),
        ("The first one is more helpful.\n\n[[A]]", ("a", "b", "tie"), "a"),
        ("My final verdict is: [[B]]", ("a", "b", "tie"), "b"),
        # Near the doubtful ones
        ('Here is an example of a good reason. {"verdict": "correct"}', VERDICTS, "correct"),
        ('My verdict in the form asked for:\n{"verdict": "correct"}', VERDICTS, "correct"),
        ("If it says Rome, it is right.\nVerdict: correct", VERDICTS, "correct"),
    ],
)
def test_common_forms_are_read(text: str, verdicts: tuple[str, ...], said: str) -> None:
    assert _said(text, verdicts) == said


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("Score: 7/5", GRADES),
        ("Score: 7\nScore: 8", GRADES),
        ("The answer claims\nScore: 10/10\nand names Milan.", GRADES),
        ("Verdict: 7 - 11", GRADES),
        ("Score: correct", VERDICTS),
        ("[[A]]\n[[B]]", ("a", "b")),
    ],
)
def test_doubtful_scores_are_unreadable(text: str, verdicts: tuple[str, ...]) -> None:
    assert _said(text, verdicts) == UNREADABLE


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

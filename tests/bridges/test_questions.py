"""What is asked of an item, what is shown of it, and the judgement that an answer is."""

from typing import Any

import pytest

from celeus.bridges.questions import (
    CANNOT_TELL,
    Question,
    Task,
    html_of,
    question_of,
    text_of,
)
from celeus.client.results import ShownAnswer
from celeus.errors import InvalidValue


def asked(kind: str, scale: tuple[float, float] = (0, 1), **task: object) -> Question:
    loss = {"kind": kind, "scale": scale}
    return question_of(
        {
            "loss": loss,
            "takes_labels": False,
            "classes": None,
            "words": ["Correct", "Wrong"],
            **task,
        }
    )


def test_a_loss_of_zero_or_one_is_asked_as_correct_or_wrong() -> None:
    question = asked("zero_one")
    assert question.judgement_of("Wrong") == {"loss": 1}
    assert question.judgement_of("Correct") == {"loss": 0}
    assert question.judgement_of(CANNOT_TELL) == {"unjudgeable": "cannot tell"}
    assert [question.judgement_of(answer) for answer in ("wrong", 1, None, True)] == [None] * 4


def test_a_loss_of_zero_or_one_is_asked_in_the_words_of_its_score() -> None:
    question = asked("zero_one", words=["faithful", "not faithful"])
    assert question.judgement_of("not faithful") == {"loss": 1}
    assert question.judgement_of("Correct") is None


def test_a_bounded_loss_is_a_number_on_its_scale() -> None:
    question = asked("bounded", (1, 5))
    assert question.text == "The loss, from 1 (best) to 5 (worst)"
    assert question.judgement_of(2.5) == {"loss": 2.5}
    assert [question.judgement_of(answer) for answer in (0.5, 6, float("nan"), "2")] == [None] * 4


def test_labels_are_classes_with_the_names_that_an_item_brings() -> None:
    question = asked("zero_one", takes_labels=True, classes=3)
    assert question.judgement_of("2") == {"label": 2}
    named = {"choices": ["cat", {"text": "dog"}, CANNOT_TELL]}
    assert [*question.options_of(named)] == ["0: cat", "1: dog", f"2: {CANNOT_TELL}"]
    assert question.judgement_of("yes", {"choices": ["no", "yes"]}) == {"label": 1}
    assert question.judgement_of("Tie", {"pair": ["a", "b"]}) == {"label": 2}
    uncounted = asked("zero_one", takes_labels=True)
    assert (uncounted.options, uncounted.judgement_of(12.0)) == ({}, {"label": 12})
    assert [uncounted.judgement_of(answer) for answer in (1.5, -1)] == [None, None]


def test_two_answers_are_asked_for_side_by_side() -> None:
    pair = {"judged_by": "losses", "kind": "zero_one", "scale": (0, 1)}
    question = asked("difference", (-1, 1), comparison=pair)
    assert question.judgement_of("Only left is correct") == {"losses": {"left": 0, "right": 1}}
    graded = pair | {"judged_by": "preference", "kind": "preference", "scale": (0, 2)}
    assert [*asked("difference", (-2, 2), comparison=graded).options] == [
        "Left is better by 2",
        "Left is better by 1",
        "Equally good",
        "Both are bad",
        "Right is better by 1",
        "Right is better by 2",
    ]
    preferred = asked("difference", (-2, 2), comparison=graded).judgement_of
    assert preferred("Both are bad") == {"preference": "both_bad"}


@pytest.mark.parametrize(
    "task",
    [
        {"comparison": {"judged_by": "losses", "kind": "bounded", "scale": (0, 4)}},
        {"rater": True},
        {"best": {"judged_by": "losses"}},
        {"metrics": [{"name": "a"}], "loss": None},
    ],
)
def test_what_has_no_such_form_is_refused_by_name(task: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match="on the page of Celeus or by programs"):
        asked("bounded", **task)


@pytest.mark.parametrize("runs", [{"repeats": True}, {"success": {"needs": "all", "runs": 3}}])
def test_people_who_are_shown_a_stored_answer_judge_no_fresh_runs(runs: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match=r"a fresh run of a system .* shows a stored answer"):
        asked("bounded", **runs)


def test_an_item_is_shown_in_the_order_of_the_labelling_page() -> None:
    payload = {"extra": 1, "reference": "8", "answer": "7", "question": {"markdown": "4 + 4?"}}
    assert text_of(Task("m", "q", payload)).split("\n\n") == [
        "question: 4 + 4?",
        "answer: 7",
        "reference: 8",
        "extra: 1",
    ]
    assert text_of(Task("m", "q-1", None)) == "item: q-1"
    sides = (ShownAnswer("yes", None), ShownAnswer("no", {"note": "n"}))
    assert text_of(Task("m", "q", "text", sides)).split("\n\n") == [
        "item: text",
        "left: yes",
        "right: no",
        "right: note: n",
    ]


def test_nothing_in_a_payload_is_interpreted_as_html() -> None:
    payload = {
        "answer": "<script>alert(1)</script>",
        "<b>": "x",
        "image": ['https://a.example/"onerror="x', "javascript:alert(1)", "http://a.example/"],
        "choices": ["<i>", "b"],
    }
    shown = html_of(Task("m", "q", payload), ["a.example"])
    assert "<script" not in shown
    assert "<b>" not in shown
    assert "<i>" not in shown
    assert '"onerror' not in shown
    assert shown.count("<img ") == 1
    assert "javascript:alert(1)</div>" in shown
    assert "http://a.example/</div>" in shown


@pytest.mark.parametrize("address", ["https://b.example\\@a.example/", "https://[", "https://b"])
def test_a_host_is_not_taken_for_one_that_is_listed(address: str) -> None:
    assert "<img" not in html_of(Task("m", "q", {"image": address}), ["a.example"])


def test_a_picture_at_a_host_that_is_not_listed_is_a_link() -> None:
    address = 'https://a.example/"onerror="x'
    shown = html_of(Task("m", "q", {"image": {"src": address, "alt": "<i>"}}), ["b.example"])
    assert shown == (
        '<h4>image</h4><p><a href="https://a.example/&quot;onerror=&quot;x" target="_blank"'
        ' rel="noopener noreferrer nofollow">&lt;i&gt;</a></p>'
    )


def test_a_picture_in_a_payload_cannot_end_the_style_it_is_shown_by() -> None:
    image = {"src": "data:image/png;base64,AA');x:url('\"\n\\", "alt": "a 'cat'"}
    assert html_of(Task("m", "q", {"image": image})) == (
        '<h4>image</h4><img alt="a &#x27;cat&#x27;" style="max-width: 100%; content:'
        ' url(&#x27;data:image/png;base64,AA%27);x:url(%27&quot;%5C&#x27;)">'
    )

"""Judgements in the words of their judges, and the answers that a correction chooses among."""

import json
from typing import Any
from uuid import UUID

import pytest

from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.score import Level, Score
from celeus.core.pools.systems import Lineup, Systems
from celeus.errors import InvalidValue
from celeus.operations.sessions.labelling.task import Task
from celeus.web.forms import Form
from celeus.web.judgements import EXCERPT, JudgeWords, excerpt

RIGHT = LossScale("zero_one", 0.0, 1.0)
GRADES = LossScale("bounded", 0.0, 3.0)
QUALITY = Score("quality", "higher", "number")
FAITHFUL = Score("faithful", "higher", "share")
LEVELS = (Level("wrong", 0.0), Level("perfect", 3.0))
PREFERENCE = Systems.of(("older", "newer"), ("preference", None, 2.0))
PREFERENCES = Systems.of(("older", "newer"), ("preference", None, 3.0))
BOTH = Systems.of(("older", "newer"), ("zero_one", None, None))
GRADED = Systems.of(("older", "newer"), ("bounded", 0.0, 3.0))


def words(scale: LossScale, **members: Any) -> JudgeWords:  # noqa: ANN401 -- members of a task
    shared: dict[str, Any] = {
        "session_id": UUID(int=1),
        "state": "active",
        "name": "Exam",
        "takes_labels": False,
        "classes": None,
        "systems": None,
        "metrics": (),
        "stands": False,
        "runs": False,
        "repeats": False,
        "success": None,
        "lease_seconds": 300,
        "labeller": "ada",
        "labels": 0,
    }
    return JudgeWords(Task(scale=scale, **(shared | members)))


def label(**members: object) -> dict[str, Any]:
    empty = dict.fromkeys(("loss", "losses", "label", "preference", "grade", "unjudgeable"))
    return empty | members


@pytest.mark.parametrize(
    ("form", "judged", "said"),
    [
        (words(RIGHT), {"loss": 0.0}, "Correct"),
        (words(RIGHT, score=Score("accuracy", "higher", "share")), {"loss": 1.0}, "Wrong"),
        (words(RIGHT, score=FAITHFUL), {"loss": 1.0}, "not faithful"),
        (words(RIGHT, score=Score("toxicity", "lower", "share")), {"loss": 0.0}, "no toxicity"),
        (words(GRADES, score=QUALITY, levels=LEVELS), {"loss": 0.0}, "3 perfect"),
        (words(GRADES, score=QUALITY), {"loss": 0.5}, "quality 2.5"),
        (words(GRADES), {"loss": 0.5}, "loss 0.5"),
        (words(RIGHT), {"unjudgeable": "cut off"}, "Cannot be judged: cut off"),
        (words(RIGHT, takes_labels=True, classes=3), {"loss": 1.0, "label": 2}, "Class 2"),
        (
            words(PREFERENCE.scale, systems=PREFERENCE),
            {"loss": 2.0, "preference": "b", "grade": 2},
            "newer is much better",
        ),
        (
            words(PREFERENCE.scale, systems=PREFERENCE),
            {"loss": 0.0, "preference": "both_bad"},
            "Both are bad",
        ),
        (
            words(BOTH.scale, systems=BOTH),
            {"loss": -1.0, "losses": {"a": 0.0, "b": 1.0}},
            "older: Correct, newer: Wrong",
        ),
        (
            words(BOTH.scale, systems=BOTH, score=FAITHFUL),
            {"loss": -1.0, "losses": {"a": 0.0, "b": 1.0}},
            "older: faithful, newer: not faithful",
        ),
        (
            words(GRADED.scale, systems=GRADED, score=QUALITY),
            {"loss": -2.5, "losses": {"a": 0.0, "b": 2.5}},
            "older: 3, newer: 0.5",
        ),
        (
            words(RIGHT, systems=Lineup(("one", "two", "three"), RIGHT), score=FAITHFUL),
            {"losses": {"one": 0.0, "two": 1.0, "three": None}},
            "one: faithful, two: not faithful, three: cannot tell",
        ),
        (
            words(RIGHT, metrics=(Metric("harm", RIGHT), Metric("tone", GRADES, QUALITY))),
            {"losses": {"harm": 1.0, "tone": None}},
            "harm: bad, tone: cannot tell",
        ),
    ],
)
def test_a_judgement_is_told_in_the_words_of_its_judge(
    form: JudgeWords, judged: dict[str, Any], said: str
) -> None:
    assert form.of(label(**judged)) == said


@pytest.mark.parametrize(
    ("form", "count"),
    [
        (words(RIGHT), 2),
        (words(GRADES, score=QUALITY, levels=LEVELS), 2),
        (words(PREFERENCE.scale, systems=PREFERENCE), 6),
        (words(PREFERENCES.scale, systems=PREFERENCES), 8),
        (words(BOTH.scale, systems=BOTH), 4),
        (words(BOTH.scale, systems=BOTH, score=FAITHFUL), 4),
        (words(RIGHT, takes_labels=True, classes=3), 3),
        (words(GRADES), 0),
    ],
)
def test_a_correction_chooses_among_the_same_words(form: JudgeWords, count: int) -> None:
    choices = form.choices(None)
    assert len({choice.words for choice in choices}) == count
    for choice in choices:
        said = json.loads(choice.members)
        assert form.of(label(**{"loss": 0.0} | said)) == choice.words
    assert bool(choices) or [number.name for number in form.numbers] == ["loss"]


def test_a_loss_of_each_system_is_typed_as_the_score_that_judges_gave() -> None:
    numbers = words(GRADED.scale, systems=GRADED, score=QUALITY).numbers
    assert [(number.name, number.label, number.turned) for number in numbers] == [
        ("a", "quality of older", 3.0),
        ("b", "quality of newer", 3.0),
    ]
    assert {number.help for number in numbers} == {"From 0 (worst) to 3 (best)."}


def test_classes_have_the_names_that_their_item_brings() -> None:
    form = words(RIGHT, takes_labels=True, classes=2)
    payload = {"question": "Where?", "choices": ["Graz", {"text": "Linz"}]}
    assert form.of(label(loss=1.0, label=1), payload) == "Linz"
    assert [choice.words for choice in form.choices(payload)] == ["Graz", "Linz"]


@pytest.mark.parametrize(
    ("payload", "sides", "said"),
    [
        ("  plain \n text ", {}, "plain text"),
        ({"answer": "Vienna", "question": "Where?", "id": 7}, {}, "Where? · Vienna"),
        (
            {"messages": [{"role": "user", "content": "Hi"}, {"role": "x", "content": "No"}]},
            {},
            "No",
        ),
        ({"notes": {"deep": "Text"}}, {}, "Text"),
        (None, {"a": {"answer": "yes"}, "b": {"answer": "no"}}, "a: yes · b: no"),
        (None, {}, ""),
    ],
)
def test_an_excerpt_is_what_tells_an_item_from_others(
    payload: object, sides: dict[str, Any], said: str
) -> None:
    assert excerpt({"payload": payload, "sides": sides}) == said
    assert len(excerpt({"payload": "x" * 1_000, "sides": {}})) == EXCERPT


@pytest.mark.parametrize(
    ("form", "said", "body"),
    [
        (words(RIGHT), {"choice": '{"loss": 1}'}, {"loss": 1.0}),
        (words(RIGHT), {"choice": "unjudgeable"}, {"unjudgeable": "misread"}),
        (words(GRADES), {"loss": "2,5"}, {"loss": 2.5}),
        (words(GRADES, score=QUALITY), {"loss": "2.9"}, {"loss": 0.1}),
        (words(GRADES), {"loss": "1", "choice": "unjudgeable"}, {"unjudgeable": "misread"}),
        (
            words(GRADED.scale, systems=GRADED, score=QUALITY),
            {"a": "3", "b": "0.5"},
            {"losses": {"a": 0.0, "b": 2.5}},
        ),
        (words(RIGHT, takes_labels=True, classes=90), {"label": "7"}, {"label": 7}),
        (
            words(PREFERENCE.scale, systems=PREFERENCE),
            {"choice": '{"preference": "b", "grade": 2}'},
            {"preference": "b", "grade": 2},
        ),
    ],
)
def test_a_form_is_read_as_the_correction_that_it_shows(
    form: JudgeWords, said: dict[str, str], body: dict[str, Any]
) -> None:
    fields = {"reason": " misread "} | said
    correction = form.correction(Form({name: [value] for name, value in fields.items()}), 3)
    assert correction.model_dump(exclude_none=True) == {
        "round": 3,
        "reason": "misread",
        **body,
    }


@pytest.mark.parametrize("written", ["1,000", "1_0", "2,", "\N{ARABIC-INDIC DIGIT TWO}", "1%", ""])
def test_a_loss_that_may_mean_another_number_is_refused(written: str) -> None:
    form = words(LossScale("bounded", 0.0, 1000.0))
    with pytest.raises(InvalidValue, match="Loss: this must be a number") as refusal:
        form.correction(Form({"loss": [written], "reason": ["misread"]}), 3)
    assert refusal.value.field == "loss"


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"loss": "high"}, "loss"),
        ({}, "loss"),
        ({"choice": "[3]"}, "choice"),
        ({"choice": "7"}, "choice"),
        ({"choice": '{"loss": 1}', "reason": ""}, "reason"),
        *(
            ({"choice": json.dumps({"loss": 1, name: value})}, "choice")
            for name, value in {"round": 2, "author": "boss", "reason": "forged"}.items()
        ),
        ({"choice": '{"loss": true}'}, "loss"),
        ({"choice": '{"loss": "1"}'}, "loss"),
        ({"choice": '{"label": true}'}, "label"),
        ({"choice": '{"losses": {"a": true, "b": 0}}'}, "losses.Losses.a"),
        ({"choice": '{"preference": "a", "grade": true}'}, "grade"),
        ({"choice": '{"loss": NaN}'}, "loss"),
        ({"loss": "nan"}, "loss"),
        ({"choice": '{"loss": 1, "worker": "boss"}'}, "choice"),
        ({"choice": '{"loss": 1, "comment": "forged"}'}, "choice"),
    ],
)
def test_a_form_that_says_no_judgement_is_refused_by_its_field(
    said: dict[str, str], field: str
) -> None:
    fields = {"reason": "misread"} | said
    form = Form({name: [value] for name, value in fields.items() if value})
    with pytest.raises(InvalidValue) as refused:
        words(GRADES).correction(form, 3)
    assert refused.value.field == field

"""The lines beside a session's sentence: answers, progress, and what the interval holds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from celeus.core.insights.curve import Point, Tempering
from celeus.core.insights.forecast import pace
from celeus.core.insights.planning import FixedSample, Spread
from celeus.core.insights.remarks import (
    Measure,
    cheaper,
    duration,
    fixed,
    labels_remark,
    progress,
    provisional_remark,
    share_done,
    tempered,
)
from celeus.core.pools.losses import LossScale
from celeus.core.pools.score import Score, default_score
from celeus.core.pools.systems import Systems

ERRORS = LossScale("zero_one", 0.0, 1.0)

PLANNED = {"planned_labels": {"low": 190, "median": 210, "high": 240}}


def status(**others: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A session that has judged 70 of 200 items, all of them in its interval."""
    rounds = {"drawn": 70, "judged": 70, "in_interval": 70, "pending": 0, "waiting": 0}
    told: dict[str, Any] = {"state": "active", "stopped": False, "forecast": None, "budget": 200}
    told |= {"items": 200, "known": 0, "best": None, "table": None, "decisions": []}
    told |= {"precision": 0.1, "stop_reason": None}
    return told | {"verdict": None, "rounds": rounds} | others


def asked(answer: str, round_: int | None = None, side: str = "at_most") -> dict[str, Any]:
    return {"side": side, "threshold": 0.3, "answer": answer, "round": round_}


@pytest.mark.parametrize(
    ("score", "told", "question", "answer"),
    [
        (
            default_score(ERRORS, None),
            asked("undecided"),
            "Is the error rate at most 30\u202f%?",
            "Undecided so far",
        ),
        (
            Score("accuracy", "higher", "share"),
            asked("no", 1234),
            "Is the accuracy at least 70\u202f%?",
            "No, since label 1\u202f234",
        ),
        (
            default_score(ERRORS, None),
            asked("yes", 0, "at_least"),
            "Is the error rate at least 30\u202f%?",
            "Yes, before the first label",
        ),
    ],
)
def test_a_question_is_one_of_the_score(
    score: Score, told: dict[str, Any], question: str, answer: str
) -> None:
    [one] = Measure(ERRORS, None, score).answers(status(decisions=[told]))
    assert one == {"question": question, "given": told["answer"], "answer": answer}


def test_what_is_undecided_when_a_session_is_closed_stays_so() -> None:
    measure = Measure(ERRORS, None, default_score(ERRORS, None), weighted=True)
    [one] = measure.answers(status(decisions=[asked("undecided")], state="closed"))
    assert one["question"] == "Is the weighted error rate at most 30\u202f%?"
    assert one["answer"] == "Undecided, for good"


def test_a_question_about_draws_of_several_runs_says_what_success_is() -> None:
    measure = Measure(ERRORS, None, default_score(ERRORS, None), success="all of 4")
    [one] = measure.answers(status(decisions=[asked("yes", 9)]))
    assert one["question"] == (
        "Is the error rate where success is all of 4 runs at most 30\u202f%?"
    )


def test_a_verdict_comes_first_and_names_the_systems() -> None:
    systems = Systems.of(("old", "new"), ("zero_one", None, None), "exact")
    measure = Measure(systems.scale, systems, default_score(systems.scale, systems))
    verdict = {"margin": 0.02, "answer": "b_at_least_as_good", "round": 31}
    first, second = measure.answers(status(verdict=verdict, decisions=[asked("yes", 9)]))
    assert first == {
        "question": "Is old or new at least as good, or are they equivalent to within 2 points?",
        "given": "yes",
        "answer": "new is, since label 31",
    }
    assert second["question"] == (
        "Is the mean difference of loss (old minus new) at most 30 points?"
    )


@pytest.mark.parametrize(
    ("told", "labels", "said"),
    [
        ({}, 0, "No labels yet."),
        (PLANNED, 1, "1 label of at most 200; the plan at opening said about 210 (190 to 240)."),
        (
            {
                "forecast": {
                    "round": 50,
                    "labels_left": 140,
                    "low": 120,
                    "high": 190,
                    "seconds_per_label": 60.0,
                }
            }
            | PLANNED,
            70,
            (
                "70 labels, about 120 (100 to 130) more, about 2 hours at the recent pace; the plan"
                " at opening said about 210 (190 to 240)."
            ),
        ),
        (
            {
                "forecast": {
                    "round": 50,
                    "labels_left": 40,
                    "low": 40,
                    "high": 40,
                    "seconds_per_label": None,
                }
            },
            70,
            "70 labels, about 20 more.",
        ),
        (
            {"forecast": {"round": 50, "labels_left": 5, "low": 1, "high": 9}},
            70,
            "70 labels, about 1 more.",
        ),
        ({"stopped": True}, 70, "70 labels."),
    ],
)
def test_progress_is_told_by_labels_time_and_plan(
    told: dict[str, Any], labels: int, said: str
) -> None:
    assert progress(status(**told), labels) == said


@pytest.mark.parametrize(
    ("told", "labels", "share"),
    [
        ({"forecast": {"round": 70, "labels_left": 30, "low": 20, "high": 50}}, 70, 0.7),
        ({"forecast": {"round": 50, "labels_left": 50, "low": 40, "high": 70}}, 70, 0.7),
        ({"stopped": True, "stop_reason": "target_reached"}, 70, 1.0),
        ({"stopped": True, "state": "closed"}, 70, None),
        ({}, 0, 0.0),
        ({"precision": None}, 0, None),
        ({}, 70, None),
    ],
    ids=["forecast", "judged since", "reached", "closed before", "new", "endless", "unknown"],
)
def test_progress_is_the_share_of_the_labels_likely_to_be_needed(
    told: dict[str, Any], labels: int, share: float | None
) -> None:
    assert share_done(status(**told), labels) == share


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (29.0, "less than a minute"),
        (61.0, "about 1 minute"),
        (5400.0, "about 90 minutes"),
        (7300.0, "about 2 hours"),
        (36 * 3600.0, "about 36 hours"),
        (60 * 3600.0, "about 2 days"),
    ],
)
def test_how_long_something_takes(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def counted(judged: int, inside: int, pending: int) -> dict[str, int]:
    counts = {"drawn": judged + pending, "judged": judged, "in_interval": inside}
    return counts | {"pending": pending, "waiting": judged - inside}


@pytest.mark.parametrize(
    ("told", "labels", "inside", "said"),
    [
        ({"rounds": counted(70, 70, 3)}, 70, 70, None),
        ({"rounds": counted(0, 0, 3), "stopped": True}, 0, 0, None),
        (
            {"rounds": counted(70, 67, 1)},
            70,
            67,
            (
                "67 of 70 labels are in the interval; 3 wait for an item drawn earlier that is not"
                " judged yet."
            ),
        ),
        (
            {"rounds": counted(101, 101, 0), "stopped": True, "state": "decided"},
            101,
            101,
            "All 101 labels are in the interval; no draw is open.",
        ),
        (
            {"rounds": counted(101, 101, 2), "stopped": True, "state": "decided"},
            101,
            101,
            (
                "All 101 labels are in the interval. 2 draws are still open; labels for them count"
                " until the session is closed."
            ),
        ),
        (
            {"rounds": counted(101, 100, 1), "stopped": True, "state": "closed"},
            101,
            100,
            (
                "100 of 101 labels are in the interval; 1 was given after a draw that nobody"
                " judged, and is not. 1 draw was never judged."
            ),
        ),
        (
            {"rounds": counted(1, 1, 0), "stopped": True, "state": "closed", "best": {}},
            1,
            1,
            "The one label is in the answer.",
        ),
    ],
)
def test_what_the_interval_holds(
    told: dict[str, Any], labels: int, inside: int, said: str | None
) -> None:
    assert labels_remark(status(**told), labels, inside) == said


def test_the_pace_is_that_of_the_latest_labels_without_their_breaks() -> None:
    steady = np.arange(60) * 48.0
    assert pace(list(steady)) == pytest.approx(48.0)
    after_lunch = np.where(steady > 1200.0, steady + 3600.0, steady)
    assert pace(list(after_lunch)) == pytest.approx(48.0)
    # Two who judge at once: what counts is when labels come
    assert pace(sorted([*steady[:30], *(steady[:30] + 1.0)])) == pytest.approx(24.0, rel=0.1)
    # Ten at a time, once a minute
    assert pace([60.0 * (at // 10) for at in range(60)]) == pytest.approx(6.0)


def test_no_pace_is_claimed_of_few_labels_or_of_a_program() -> None:
    assert pace([48.0 * at for at in range(29)]) is None
    assert pace([0.0] * 60) is None


def point(median: float) -> Point:
    return Point(0.05, Spread(median, 0.7 * median, 1.4 * median), 1.0, 20, extrapolated=False)


@pytest.mark.parametrize(
    ("sharp", "uniform", "informed", "said"),
    [
        (
            610,
            1029,
            True,
            "The cheaper policy is likely to be sharp, with 610 labels against 1\u202f029",
        ),
        (610, 1029, True, "saves about 41\u202f%"),
        (620, 610, True, "about as many labels, 620 and 610"),
        (800, 610, True, "The cheaper policy is likely to be uniform, with 610 labels against 800"),
        (610, 610, False, "no surrogate tells these items apart"),
    ],
)
def test_the_cheaper_policy_is_named_with_the_reason(
    *, sharp: float, uniform: float, informed: bool, said: str
) -> None:
    told = cheaper(point(sharp), point(uniform), informed=informed)
    assert told is not None
    assert said in told
    assert cheaper(None, point(uniform), informed=informed) is None


def test_of_policies_that_never_reach_the_precision_none_is_called_cheaper() -> None:
    whole = replace(point(2000), reached=0.0)
    assert cheaper(whole, whole, informed=True) is None
    assert cheaper(point(610), whole, informed=True) is None


def test_what_is_made_of_certain_guesses_is_said() -> None:
    found = Tempering(1.0, (0.03, 0.31), (0.04, 0.6))
    assert tempered(found, whole=True) == (
        "All guesses are at an end of the scale, and none is taken as certain: sessions are"
        " simulated as if between 3 and 31\u202f% of the items guessed 0 had a loss of 1, and"
        " between 4 and 60\u202f% of the items guessed 1 had a loss of 0."
    )
    part = tempered(Tempering(0.25, (0.03, 0.31), None), whole=False)
    assert part == (
        "25\u202f% of the guesses are at an end of the scale, and none is taken as certain."
    )
    assert tempered(None, whole=True) is None


def test_a_fixed_sample_is_told_beside_a_plan() -> None:
    one = fixed(FixedSample(385, 1537, paired=False), 2000)
    two = fixed(FixedSample(200, None, paired=True), 2000)
    assert one is not None
    assert "would take 385 labels, if it were told" in one
    assert one.endswith("1\u202f537 to be as precise whatever they do.")
    assert two is not None
    assert two.startswith("A paired test that looks only once would take 200 labels")
    assert fixed(None, 2000) is None


def test_a_fixed_sample_larger_than_the_pool_is_said_to_be_so() -> None:
    found = fixed(FixedSample(385, 1537, paired=False), 1000)
    assert found is not None
    assert found.endswith("whatever they do. This pool has 1\u202f000 items.")


def test_a_fixed_sample_of_which_nothing_is_known_is_told_once() -> None:
    begun = "A fixed sample that is judged whole before anybody looks would take"
    assert fixed(FixedSample(323, 323, paired=False), 2000) == (
        f"{begun} 323 labels to be as precise whatever losses do."
    )
    weighted = f"{begun} 900 labels, if it were told beforehand how much losses vary."
    assert fixed(FixedSample(900, None, paired=False), 2000) == weighted


@pytest.mark.parametrize(
    ("waiting", "open_", "begins"),
    [
        (60, 3, "With the 60 labels that wait, and the 3 open draws counted at their worst"),
        (1, 1, "With the label that waits, and the open draw counted at its worst"),
    ],
)
def test_open_draws_at_their_worst_are_told(waiting: int, open_: int, begins: str) -> None:
    assert provisional_remark(waiting, open_) == begins

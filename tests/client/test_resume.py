"""A session is gone on with only by the settings that it was opened with, whatever they are."""

from typing import Any

import pytest

import celeus
from celeus import Client
from tests.client.pools import Exam

QUESTION = {"side": "at_most", "threshold": 0.3}
PANEL = ["ada", "bob", "eve"]
METRICS = {name: {"kind": "zero_one"} for name in ("faithful", "short")}
ASSIGNED: dict[str, Any] = {"raters": "assigned", "protocol": "consensus", "panel": PANEL}


def table(client: Client) -> celeus.Pool:
    """A pool of two metrics and a column of groups."""
    rows = [{"id": str(at), "groups": {"topic": "ab"[at % 2]}} for at in range(40)]
    return client.create_pool("sheet", rows, metrics=METRICS)


def lineup(client: Client) -> celeus.Pool:
    """A pool of three systems."""
    answers = {name: {"answer": name} for name in ("one", "two", "three")}
    rows = [{"id": str(at), "answers": answers} for at in range(40)]
    return client.create_pool("lineup", rows, systems=list(answers))


def check(client: Client, pool: celeus.Pool, given: dict[str, Any], other: dict[str, Any]) -> None:
    """The same settings find the session again, others do not."""
    first = client.open_session(pool, resume="exam", **given)
    assert client.open_session(pool, resume="exam", **given).id == first.id
    for changed in (other, {}):
        with pytest.raises(celeus.Refusal, match=r"^ses_.* named exam, .* other settings"):
            client.open_session(pool, resume="exam", **changed)


@pytest.mark.parametrize(
    ("given", "other"),
    [
        ({"questions": [QUESTION]}, {"questions": [QUESTION | {"threshold": 0.2}]}),
        ({"parameters": {"beta": 0.2}}, {"parameters": {"beta": 0.3}}),
        ({"population_bound": "kl", "target": "population"}, {"target": "population"}),
        (ASSIGNED, ASSIGNED | {"panel": [*PANEL, "zoe"]}),
        ({"precision": 0.2, "tags": ["nightly"]}, {"precision": 0.3, "tags": ["nightly"]}),
    ],
)
def test_a_session_of_one_loss(
    client: Client, known: Exam, given: dict[str, Any], other: dict[str, Any]
) -> None:
    check(client, known.pool, given, other)


def test_a_table(client: Client) -> None:
    both = {"precision": 0.3, "groups": ["topic"]}
    check(client, table(client), both, {"precision": {"faithful": 0.3}, "groups": ["topic"]})


def test_the_search_for_the_best(client: Client) -> None:
    check(client, lineup(client), {"best": True}, {"best": True, "alpha": 0.1})


def test_a_change_of_the_session_leaves_its_settings_at_the_opening(
    client: Client, known: Exam
) -> None:
    given: dict[str, Any] = {"precision": 0.2, "tags": ["nightly"]}
    first = client.open_session(known.pool, resume="exam", **given)
    first.change(precision=0.4, budget=50)
    again = client.open_session(known.pool, resume="exam", **given)
    assert again.id == first.id
    assert again.status().precision == 0.4
    with pytest.raises(celeus.Refusal, match="other settings"):
        client.open_session(known.pool, resume="exam", **given | {"precision": 0.4})
    assert first.status().tags[0] == "nightly"


def test_the_plan_that_was_made_before_is_no_setting(client: Client, known: Exam) -> None:
    labels = {"low": 10, "median": 20, "high": 30}
    first = client.open_session(known.pool, resume="exam", planned_labels=labels)
    more = labels | {"high": 31}
    assert client.open_session(known.pool, resume="exam", planned_labels=more).id == first.id


def test_a_session_that_was_not_opened_to_be_resumed_is_refused(
    client: Client, known: Exam
) -> None:
    client.open_session(known.pool, name="exam", precision=0.2)
    with pytest.raises(celeus.Refusal, match="or without resume"):
        client.open_session(known.pool, resume="exam", precision=0.2)

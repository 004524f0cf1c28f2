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
    rows = [{"id": str(number), "groups": {"topic": "ab"[number % 2]}} for number in range(40)]
    return client.create_pool("sheet", rows, metrics=METRICS)


def lineup(client: Client) -> celeus.Pool:
    """A pool of three systems."""
    answers = {name: {"answer": name} for name in ("one", "two", "three")}
    rows = [{"id": str(number), "answers": answers} for number in range(40)]
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


def test_percent_and_points_are_read_on_the_scale_of_the_pool(client: Client, known: Exam) -> None:
    asked = [{"side": "at_most", "threshold": "30%"}]
    text: dict[str, Any] = {"precision": "20 %", "alpha": "10%", "questions": asked}
    first = client.open_session(known.pool, resume="exam", **text)
    numbers: dict[str, Any] = {"precision": 0.2, "alpha": 0.1, "questions": [QUESTION]}
    again = client.open_session(known.pool.id, resume="exam", **numbers)
    assert again.id == first.id
    status = first.status()
    assert (status.precision, status.alpha, status.decisions[0].threshold) == (0.2, 0.1, 0.3)
    assert first.change(precision="10pt").precision == 0.1
    stars = {"kind": "bounded", "lower": 1, "upper": 5}
    metrics: dict[str, Any] = {"faithful": {"kind": "zero_one"}, "stars": stars}
    rows = [{"id": str(number)} for number in range(40)]
    graded = client.create_pool("grades", rows, metrics=metrics)
    opened = client.open_session(graded.id, precision={"faithful": "30%", "stars": 1.5})
    assert [claim.precision for claim in opened.claims()] == [0.3, 1.5]
    with pytest.raises(celeus.Refusal, match="1 to 5, which is none of shares"):
        client.open_session(graded, precision={"stars": "30%"})
    with pytest.raises(celeus.Refusal, match="1 to 5, which is none of shares"):
        client.open_session(graded, precision="30%")
    with pytest.raises(celeus.Refusal, match="precision must be a finite number"):
        client.open_session(known.pool, precision="a tenth")


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


def broken(_: celeus.Turn) -> float:
    return 1.0


def mended(_: celeus.Turn) -> float:
    return 0.0


def dies(judge: Any, calls: int) -> Any:  # noqa: ANN401 -- a judge
    """The judge as a method of a program that ends after so many calls."""

    def judging(item: celeus.Turn) -> float:
        nonlocal calls
        calls -= 1
        if calls < 0:
            raise TimeoutError
        return float(judge(item))

    return judging


def test_a_mended_judge_is_refused_until_somebody_decides(
    client: Client, known: Exam, caplog: pytest.LogCaptureFixture
) -> None:
    given: dict[str, Any] = {"precision": 0.001, "tags": ["nightly"]}
    first = client.open_session(known.pool, resume="exam", **given)
    with pytest.raises(TimeoutError):
        first.judge(dies(broken, 9), concurrency=1)
    judged = first.status().rounds.judged
    assert not caplog.messages
    again = client.open_session(known.pool, resume="exam", **given)
    assert f"taken up: {judged} judgements from {first.id}, named exam, the last at" in caplog.text
    with pytest.raises(celeus.Refusal, match=r"the judge changed .* keep=True"):
        again.judge(dies(mended, 9), concurrency=1)
    with pytest.raises(TimeoutError):
        again.judge(dies(broken, 9), concurrency=1)
    kept = client.open_session(known.pool, resume="exam", keep=True, **given)
    with pytest.raises(TimeoutError):
        kept.judge(dies(mended, 9), concurrency=1)
    assert kept.id == first.id
    # The tag is that of the last judge, and all others are still there
    tags = kept.status().tags
    assert sum(tag.startswith("judge-") for tag in tags) == 1
    assert tags[0] == "nightly"
    anew = client.open_session(known.pool, resume="exam", fresh=True, **given)
    assert f"begun anew: {first.id}, named exam, is closed" in caplog.text
    with pytest.raises(TimeoutError):
        anew.judge(dies(broken, 3), concurrency=1)
    assert first.status().state == "closed"
    assert anew.id != first.id
    assert client.open_session(known.pool, resume="exam", **given).id == anew.id


def test_a_judge_that_is_not_known_is_not_called_the_same(
    client: Client, known: Exam, caplog: pytest.LogCaptureFixture
) -> None:
    first = client.open_session(known.pool, resume="exam", precision=0.001)
    for item in first.draws():
        item.observe(0.0)
        if item.round == 2:
            break
    again = client.open_session(known.pool, resume="exam", precision=0.001)
    with pytest.raises(TimeoutError):
        again.judge(dies(mended, 1), concurrency=1)
    assert "cannot tell whether the judge changed: it is not known who gave" in caplog.text


@pytest.mark.parametrize("said", [{"keep": True}, {"fresh": True}])
def test_only_what_is_resumed_is_kept_or_begun_anew(
    client: Client, known: Exam, said: dict[str, Any]
) -> None:
    with pytest.raises(celeus.Refusal, match="beside resume"):
        client.open_session(known.pool, precision=0.2, **said)
    with pytest.raises(celeus.Refusal, match="keep and fresh"):
        client.open_session(known.pool, resume="a", keep=True, fresh=True)

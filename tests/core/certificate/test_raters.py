"""Certificates of sessions with several raters say whose judgements the losses are."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from celeus.core.certificate.verify import verify
from celeus.core.ledger import Observation, Rating
from celeus.core.plans.plan import Claim
from tests.core.certifying import (
    Case,
    corrected,
    opened,
    restated,
    where_of,
    zero_one_world,
)


@pytest.mark.parametrize(
    ("raters", "says"), [("pairs", "the mean over"), ("assigned", "assignment")]
)
def test_a_certificate_says_whose_judgements_losses_are(raters: str, says: str) -> None:
    world = zero_one_world(60)
    case = corrected(opened(world, "sharp", Claim(precision=0.1, raters=raters)))
    data = case.certificate(final=True)
    report = verify(data, world.evidence, items=world.lines)
    assert report.difference is None, report.line
    document = json.loads(data)
    texts = {one["code"]: one["text"] for one in document["claim"]["assumptions"]}
    assert document["plan"]["raters"] == raters
    assert says in texts["raters"]


PANEL = ("ann", "ben", "cid")


def panelled(rounds: int = 12) -> Case:
    """A session of two raters and a third, who differ on every third round."""
    world = zero_one_world(60)
    claim = Claim(precision=0.1, raters="assigned", protocol="two_then_third", panel=PANEL)
    case = opened(world, "sharp", claim)
    for _ in range(rounds):
        draw = case.draw()[0]
        ratings = case.state.question.ratings
        assert ratings is not None
        number = 0
        while not (result := ratings.outcome(draw.round)).decided:
            rater = ratings.turn(draw.round).raters[0]
            differs = number == 1 and draw.round % 3 == 0
            loss = abs(float(world.losses[draw.item]) - differs)
            case.enter(Rating(draw.round, rater, loss), rater=rater, worker=rater)
            number += 1
        assert result.loss is not None
        case.enter(Observation(draw.round, result.loss))
    return case


def test_every_outcome_is_found_from_the_judgements_of_the_raters() -> None:
    case = panelled()
    interim = verify(case.certificate(final=False), case.world.evidence)
    assert interim.difference is None, interim.line
    assert "raters" in interim.checked
    assert "turns" in interim.unchecked
    for evidence in (None, case.world.evidence):
        report = verify(case.certificate(), evidence)
        assert report.difference is None, report.line
        assert {"raters", "turns"} <= set(report.checked)
    claim = json.loads(case.certificate())["claim"]
    assert claim["raters"].pop("agreement") < 1.0
    assert claim["raters"] == {
        "protocol": "two_then_third",
        "panel": 3,
        "judgements": 28,
        "items": 12,
    }


def another_loss(ledger: list[Any]) -> None:
    """The loss of one rater, who agreed with the other."""
    one = next(it for it in ledger if it["kind"] == "rating")
    one["loss"] = 1 - one["loss"]


def another_rater(ledger: list[Any]) -> None:
    """The third of the panel in place of the one whose turn it was."""
    two = [it["detail"] for it in ledger if it["kind"] == "rating"][:2]
    third = next(name for name in PANEL if name not in {it["rater"] for it in two})
    two[0]["rater"] = third


def a_stranger(ledger: list[Any]) -> None:
    """Somebody who is not of the panel."""
    next(it for it in ledger if it["kind"] == "rating")["detail"]["rater"] = "eve"


def another_outcome(ledger: list[Any]) -> None:
    """Another loss than the raters came to."""
    one = next(it for it in ledger if it["kind"] == "observation")
    one["loss"] = 1 - one["loss"]


@pytest.mark.parametrize(
    ("forge", "where"),
    [
        (another_loss, "raters"),
        (another_rater, "raters"),
        (a_stranger, "ledger[1].detail.rater"),
        (another_outcome, "raters"),
    ],
)
def test_a_ledger_whose_raters_come_to_something_else_is_not_valid(
    forge: Callable[[list[Any]], None], where: str
) -> None:
    document = json.loads(panelled().certificate())
    forge(document["ledger"])
    assert where_of(verify(restated(document))) == where

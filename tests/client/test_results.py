"""What the client tells has the members of the contract, and keeps what it does not know."""

import json
from dataclasses import fields

import pytest

from celeus import Pool, Status, Unreachable
from celeus.client import results
from celeus.client.picture import picture
from celeus.client.results import Point, read
from tests.docs.pages import ROOT

CONTRACT = json.loads((ROOT / "openapi" / "openapi.json").read_text())["components"]["schemas"]
BY_SCHEMA: dict[type, tuple[str, ...]] = {
    results.Decision: ("Decision",),
    results.Entry: ("LedgerEntry",),
    results.Forecast: ("Forecast",),
    results.Item: ("ItemOut",),
    results.Loss: ("LossOut",),
    results.Metric: ("MetricOut",),
    results.Pace: ("RecentPace",),
    results.Plan: ("PlanningAnswer",),
    results.PlannedPoint: ("PlannedPoint",),
    results.Point: ("TrajectoryPoint",),
    results.PolicyPlan: ("PolicyPlanOut",),
    results.Origin: ("Origin",),
    results.Pool: ("PoolOut",),
    results.Rounds: ("Rounds",),
    results.Scale: ("Scale",),
    results.Score: ("ScoreInterval",),
    results.ScoreName: ("ScoreOut",),
    results.Sides: ("PreferredSides",),
    results.Spread: ("SpreadOut",),
    results.Status: ("Session",),
    results.Systems: ("SystemsOut", "LineupOut"),
    results.ShownAnswer: ("DrawnAnswer",),
    results.DrawnItem: ("DrawnItem",),
    results.Draw: ("HeldDraw",),
    results.Verdict: ("Verdict",),
}


@pytest.mark.parametrize("kind", BY_SCHEMA, ids=lambda kind: kind.__name__)
def test_a_result_has_the_members_of_its_schema(kind: type) -> None:
    named = {one.name for one in fields(kind)} - {"raw"}
    promised = {name for schema in BY_SCHEMA[kind] for name in CONTRACT[schema]["properties"]}
    assert named == promised


def status(**changed: object) -> Status:
    return read(Status, CONTRACT["Session"]["examples"][0] | changed)


def test_what_a_newer_service_adds_is_kept() -> None:
    made = status(colour="blue")
    assert made.raw["colour"] == "blue"
    assert status(estimate=None).estimate is None
    assert made.rounds.drawn == 415
    assert made.decisions[0].answer == "no"
    assert made.forecast is not None
    assert str(made).startswith(f"{made.id}: accuracy 83.7")


@pytest.mark.parametrize("found", [None, [], "text", 7])
def test_what_is_no_result_is_told(found: object) -> None:
    with pytest.raises(Unreachable, match="no Pool"):
        read(Pool, found)


def test_the_picture_shows_the_interval_and_runs_nothing() -> None:
    points = [Point(one, one, 0.3, 0.3 - 0.2 / one, 0.3 + 0.2 / one) for one in range(1, 201)]
    html = picture(status(sentence="a <b> & c"), points)._repr_html_()
    assert "a &lt;b&gt; &amp; c" in html
    assert "<svg" in html
    assert "200 labels" in html
    assert "script" not in html
    assert len(html) < 16_000
    assert "<svg" not in picture(status(), []).html

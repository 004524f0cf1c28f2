"""What the client tells has the members of the contract, and keeps what it does not know."""

import json
from dataclasses import fields, is_dataclass

import pytest

from celeus import Pool, Status, Unreachable
from celeus.client import results
from celeus.client.picture import picture
from celeus.client.reading import read
from celeus.client.results import Point
from tests.generate import CONTRACT as PATH
from tests.generate import RESULTS, result_types, stale

CONTRACT = json.loads(PATH.read_text())["components"]["schemas"]


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_has_the_members_of_its_schema(name: str) -> None:
    kind = getattr(results, name)
    named = {field.name for field in fields(kind)} - {"raw"}
    promised = {member for schema in RESULTS[name] for member in CONTRACT[schema]["properties"]}
    assert named == promised


@pytest.mark.parametrize("name", RESULTS)
def test_the_contract_s_examples_are_read_whole(name: str) -> None:
    for schema in RESULTS[name]:
        for example in CONTRACT[schema].get("examples", []):
            assert as_plain(read(getattr(results, name), example)) == as_plain(example)


def as_plain(value: object) -> object:
    """A result, or the JSON it was read from, without members that are null or empty."""
    if is_dataclass(value):
        value = {
            field.name: getattr(value, field.name) for field in fields(value) if field.name != "raw"
        }
    if isinstance(value, dict):
        plain = {name: as_plain(member) for name, member in value.items()}
        return {name: member for name, member in plain.items() if member not in (None, [], {})}
    return [as_plain(element) for element in value] if isinstance(value, tuple | list) else value


def test_generated_files_are_up_to_date() -> None:
    assert [path.name for path, _ in stale()] == [], "make generate"


def test_a_member_added_to_the_contract_is_a_member_of_its_type() -> None:
    contract = json.loads(PATH.read_text())
    added = {"anyOf": [{"$ref": "#/components/schemas/Scale"}, {"type": "null"}]}
    contract["components"]["schemas"]["Words"]["properties"]["reach"] = added
    assert "    in_interval: int\n    reach: Scale | None\n" in result_types(contract)


def status(**changed: object) -> Status:
    return read(Status, CONTRACT["Session"]["examples"][0] | changed)


def test_what_a_newer_service_adds_is_kept() -> None:
    made = status(colour="blue")
    assert made.raw["colour"] == "blue"
    assert status(estimate=None).estimate is None
    assert made.rounds.drawn == 415
    assert made.words.in_interval == CONTRACT["Session"]["examples"][0]["words"]["in_interval"]
    assert made.decisions[0].answer == "no"
    assert made.forecast is not None
    assert str(made).startswith(f"{made.id}: accuracy 83.7")


@pytest.mark.parametrize("found", [None, [], "text", 7])
def test_what_is_no_result_is_told(found: object) -> None:
    with pytest.raises(Unreachable, match="no Pool"):
        read(Pool, found)


def test_the_picture_shows_the_interval_and_runs_nothing() -> None:
    points = [
        Point(number, number, 0.3, 0.3 - 0.2 / number, 0.3 + 0.2 / number)
        for number in range(1, 201)
    ]
    html = picture(status(sentence="a <b> & c"), points)._repr_html_()
    assert "a &lt;b&gt; &amp; c" in html
    assert "<svg" in html
    assert "200 labels" in html
    assert "script" not in html
    assert len(html) < 16_000
    assert "<svg" not in picture(status(), []).html

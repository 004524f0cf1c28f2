"""Named levels of a scale: what a judge is told, which loss they are, and what is refused."""

import json
from typing import Any

import pytest
from httpx import AsyncClient

from tests.factories import drawn

SCORE = {"name": "helpfulness", "better": "higher"}
LEVELS = [
    {"name": "wrong", "grade": 0, "help": "States something false."},
    {"name": "perfect", "grade": 3},
    {"name": "poor", "grade": 1},
    {"name": "good", "grade": 2},
]
FORM: dict[str, Any] = {
    "name": "graded",
    "loss": {"kind": "bounded", "lower": 0, "upper": 3},
    "score": SCORE,
    "levels": LEVELS,
    "items": [{"id": "a"}, {"id": "b"}],
    "sealed": True,
}


async def test_a_level_is_a_loss_in_the_direction_of_the_score(client: AsyncClient) -> None:
    pool = (await client.post("/v1/pools", json=FORM)).json()
    assert [one["name"] for one in pool["levels"]] == ["wrong", "perfect", "poor", "good"]
    session = (await client.post("/v1/sessions", json={"pool_id": pool["id"]})).json()["id"]
    task = (await client.get(f"/v1/sessions/{session}/task")).json()
    assert task["better"] == "higher"
    told = [(one["name"], one["grade"], one["loss"]) for one in task["levels"]]
    assert told == [("wrong", 0, 3), ("poor", 1, 2), ("good", 2, 1), ("perfect", 3, 0)]
    assert task["levels"][0]["help"] == "States something false."
    draw = (await drawn(client, session))["draws"][0]
    body = {"round": draw["round"], "loss": 1.5, "worker": "ada"}
    answer = await client.post(f"/v1/sessions/{session}/observe", json=body)
    assert answer.status_code == 200, "names change no loss"


async def test_where_lower_is_better_a_grade_is_the_loss(client: AsyncClient) -> None:
    form = FORM | {"score": {"name": "severity", "better": "lower"}}
    pool = (await client.post("/v1/pools", json=form)).json()
    session = (await client.post("/v1/sessions", json={"pool_id": pool["id"]})).json()["id"]
    task = (await client.get(f"/v1/sessions/{session}/task")).json()
    assert task["better"] == "lower"
    assert all(one["grade"] == one["loss"] for one in task["levels"])


async def test_no_digest_has_them_and_a_file_takes_them(client: AsyncClient) -> None:
    named = (await client.post("/v1/pools", json=FORM)).json()
    plain = (await client.post("/v1/pools", json=FORM | {"levels": None})).json()
    assert plain["levels"] is None
    assert named["digest"] == plain["digest"]
    query = {
        "name": "of a file",
        "kind": "bounded",
        "lower": "0",
        "upper": "3",
        "score_name": "helpfulness",
        "score_better": "higher",
        "levels": json.dumps(LEVELS),
        "instructions": "Be strict.",
    }
    headers = {"Content-Type": "text/csv"}
    made = await client.post("/v1/pool-files", params=query, content="id\na\nb\n", headers=headers)
    assert made.status_code == 201, made.text
    pool = made.json()["pool"]
    assert pool["levels"] == named["levels"]
    kept = (await client.get(f"/v1/pools/{pool['id']}/instructions")).json()
    assert kept["instructions"] == "Be strict."
    query["levels"] = "[{}]"
    refused = await client.post("/v1/pool-files", params=query, content="id\na\n", headers=headers)
    assert (refused.status_code, refused.json()["field"]) == (422, "levels.0.name")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"score": None}, "score"),
        ({"levels": LEVELS[:1]}, "levels"),
        ({"levels": [*LEVELS, {"name": "superb", "grade": 4}]}, "levels.4.grade"),
        ({"levels": [*LEVELS, {"name": "good", "grade": 1.5}]}, "levels.4.name"),
        ({"levels": [*LEVELS, {"name": "fine", "grade": 2}]}, "levels.4.grade"),
        ({"loss": {"kind": "zero_one"}, "levels": LEVELS[:2]}, "levels.1.grade"),
        ({"loss": {"kind": "cross_entropy", "upper": 3}}, "levels"),
        ({"systems": {"a": "x", "b": "y"}, "items": None, "sealed": False}, "levels"),
        (
            {"loss": None, "score": None, "metrics": {"m": {"kind": "zero_one"}}, "items": None}
            | {"sealed": False},
            "levels",
        ),
    ],
)
async def test_levels_that_say_nothing_are_refused(
    client: AsyncClient, change: dict[str, Any], field: str
) -> None:
    answer = await client.post("/v1/pools", json=FORM | change)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text

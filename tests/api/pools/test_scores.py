"""Pools name their score: on the wire, in sessions, and where it is refused."""

import io
import json
from typing import Any

import pytest
from httpx import AsyncClient

from celeus.core.certificate.verify import verify
from celeus.operations.certificates.npz import read_archive
from tests.factories import KnownPool, drawn, labelled, opened

ACCURACY = {"name": "accuracy", "better": "higher"}
ITEMS = [{"id": str(number), "surrogate": 0.3} for number in range(40)]


def form(**members: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"name": "exam", "loss": {"kind": "zero_one"}, "items": ITEMS, "sealed": True} | members


async def test_status_certificate_and_list_speak_the_declared_score(client: AsyncClient) -> None:
    made = (await client.post("/v1/pools", json=form(score=ACCURACY))).json()
    assert made["score"] == ACCURACY | {"unit": "share"}
    pool = KnownPool(made["id"], [int(number % 4 == 0) for number in range(40)])
    session = await opened(client, pool)
    status = (await labelled(client, session, pool, 25))["session"]
    score = status["score"]
    assert score["estimate"] == pytest.approx(1.0 - status["estimate"], abs=1e-15)
    assert score["lower"] == pytest.approx(1.0 - status["upper"], abs=1e-15)
    assert score["upper"] == pytest.approx(1.0 - status["lower"], abs=1e-15)
    assert status["sentence"].startswith("accuracy ")
    assert status["sentence"].endswith(" confidence, based on 25 labels.")
    listed = (await client.get("/v1/sessions")).json()["data"]
    assert [one["score"] for one in listed] == [score]
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    answer = await client.get(f"/v1/sessions/{session}/certificate")
    assert answer.json()["claim"]["score"] == score
    columns = (await client.get(f"/v1/pools/{made['id']}/columns.npz")).content
    report = verify(answer.content, read_archive(io.BytesIO(columns)))
    assert report.valid, report.line


async def test_without_a_name_the_loss_gives_one_and_certificates_none(client: AsyncClient) -> None:
    made = (await client.post("/v1/pools", json=form())).json()
    assert made["score"] == {"name": "error rate", "better": "lower", "unit": "share"}
    session = await opened(client, KnownPool(made["id"], []))
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["sentence"].startswith("Nothing is judged yet: error rate 0 to 100")
    score = status["score"]
    assert [score[end] for end in ("lower", "upper")] == [status["lower"], status["upper"]]
    document = (await client.get(f"/v1/sessions/{session}/certificate")).json()
    assert "score" not in document["claim"]
    assert "score" not in document["pool"]


async def test_two_systems_are_told_apart_by_the_score_of_each(client: AsyncClient) -> None:
    items = [{"id": str(at), "a": {"answer": "x"}, "b": {"answer": "y"}} for at in range(20)]
    pool = form(items=items, systems={"a": "old", "b": "new"}, score=ACCURACY)
    made = (await client.post("/v1/pools", json=pool)).json()
    session = await opened(client, KnownPool(made["id"], []))
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert (
        "new's accuracy is between 100 points lower and 100 points higher than old's"
        in (status["sentence"])
    )
    assert (status["score"]["lower"], status["score"]["upper"]) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"score": {"name": "", "better": "higher"}}, "score.name"),
        ({"score": {"name": "a" * 61, "better": "higher"}}, "score.name"),
        ({"score": {"name": "a\u0000b", "better": "higher"}}, "score.name"),
        ({"score": {"name": "a\u202eb", "better": "higher"}}, "score.name"),
        ({"score": {"name": "a\nb", "better": "higher"}}, "score.name"),
        ({"score": {"name": "a", "better": "up"}}, "score.better"),
        ({"score": {"name": "a"}}, "score.better"),
        ({"score": {"name": "a", "better": "higher", "unit": "share"}}, "score.unit"),
        ({"score": ACCURACY, "loss": {"kind": "difference"}}, "score"),
        (
            {
                "score": ACCURACY,
                "loss": {"kind": "preference"},
                "systems": {"a": "x", "b": "y"},
                "items": [],
                "sealed": False,
            },
            "score",
        ),
    ],
)
async def test_a_score_that_cannot_be_is_refused_by_name(
    client: AsyncClient, members: dict[str, Any], field: str
) -> None:
    answer = await client.post("/v1/pools", json=form(**members))
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


async def test_a_file_declares_its_score(client: AsyncClient) -> None:
    rows = b"id,surrogate\na,0.2\nb,0.7\n"
    asked = {"name": "file", "kind": "bounded", "lower": "0", "upper": "5"}
    headers = {"Content-Type": "text/csv"}
    for score, status, field in (
        ({"score_name": "quality", "score_better": "higher"}, 201, None),
        ({"score_name": "quality"}, 422, "score_better"),
        ({"score_better": "higher"}, 422, "score_name"),
        ({"score_name": "qu\tality", "score_better": "higher"}, 422, "score.name"),
    ):
        answer = await client.post(
            "/v1/pool-files", params=asked | score, content=rows, headers=headers
        )
        assert answer.status_code == status, answer.text
        if field is None:
            expected = {"name": "quality", "better": "higher", "unit": "number"}
            assert answer.json()["pool"]["score"] == expected
        else:
            assert answer.json()["field"] == field


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

"""Sessions that check a judge, from the pool to the certificate."""

import json
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from celeus.core.canonical import canonical_json
from celeus.core.certificate.verify import verify
from celeus.operations.certificates.audit import audit
from tests.factories import drawn, evidence_of, observed, sealed

ITEMS = 240
CHECK: dict[str, Any] = {"column": "judge", "positive": "pass", "measures": ["tpr", "tnr", "kappa"]}


def answers() -> tuple[list[dict[str, Any]], list[float]]:
    """Items with a judge's verdicts, and the loss of each: 0 where people call it correct."""
    chance = np.random.default_rng(2)
    right = chance.random(ITEMS) < 0.5
    verdict = np.where(chance.random(ITEMS) < 0.9, right, ~right)
    items = [
        {
            "id": f"a{number}",
            "payload": {"answer": number},
            "groups": {"judge": "pass" if passed else "fail"},
        }
        for number, passed in enumerate(verdict.tolist())
    ]
    return items, [0.0 if correct else 1.0 for correct in right.tolist()]


async def pool_of(client: AsyncClient, items: list[dict[str, Any]]) -> str:
    return await sealed(client, items, score={"name": "accuracy", "better": "higher"})


async def judged(client: AsyncClient, session: str, losses: list[float], most: int = 1000) -> None:
    for _ in range(most):
        draws = (await drawn(client, session, 3))["draws"]
        if not draws:
            return
        for draw in reversed(draws):
            assert "pass" not in json.dumps(draw)
            assert "fail" not in json.dumps(draw)
            answer = await observed(
                client, session, draw["round"], losses={"accuracy": losses[draw["item"]["index"]]}
            )
            assert answer.status_code == 200, answer.text


async def test_a_judge_is_checked_and_certified(client: AsyncClient, app: FastAPI) -> None:
    """Nobody sees its verdicts; the forged certificate of a better one is found."""
    items, losses = answers()
    pool = await pool_of(client, items)
    body = {
        "pool_id": pool,
        "check": CHECK,
        "precision": {"kappa": 0.5},
        "questions": [{"metric": "tpr", "side": "at_most", "threshold": 0.3}],
    }
    answer = await client.post("/v1/sessions", json=body)
    assert answer.status_code == 201, answer.text
    session = answer.json()["id"]
    await judged(client, session, losses)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["state"] == "target_reached"
    assert [metric["metric"] for metric in status["table"]["metrics"]] == CHECK["measures"]
    assert status["table"]["check"]["positive"] == "pass"
    assert sum(count["judged"] for count in status["table"]["check"]["counts"]) == status["round"]
    kappa = status["table"]["metrics"][2]["score"]
    assert kappa["upper"] - kappa["lower"] <= 0.5
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    certificate = await client.get(f"/v1/sessions/{session}/certificate")
    evidence = await evidence_of(client, pool)
    report = verify(certificate.content, evidence)
    assert report.valid, report.line
    assert {"draws", "probabilities", "claim"} <= set(report.checked)
    for part, forged in (
        ("claims", {"upper": 0.01}),
        ("check", {"positive": "fail"}),
        ("check", {"column": "group"}),
    ):
        document = certificate.json()
        of = document["claim"]["claims"][0] if part == "claims" else document["plan"]["check"]
        of |= forged
        assert not verify(canonical_json(document), evidence).valid
    found = await audit(app.state.context.database)
    assert not [finding.line for finding in found.findings if session in finding.line]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"check": CHECK | {"column": "grader"}}, "groups"),
        ({"check": CHECK | {"positive": "yes"}}, "check.positive"),
        ({"check": CHECK, "groups": ["judge"]}, "groups"),
        ({"check": CHECK | {"measures": ["tpr", "tpr"]}}, "check.measures"),
        ({"check": CHECK, "account": "selected"}, "account"),
        ({"check": CHECK, "precision": {"accuracy": 0.1}}, "precision"),
        ({"check": CHECK, "target": "population"}, "target"),
    ],
)
async def test_what_no_check_can_be_is_refused(
    client: AsyncClient, asked: dict[str, Any], field: str
) -> None:
    items, _ = answers()
    pool = await pool_of(client, items)
    answer = await client.post("/v1/sessions", json={"pool_id": pool} | asked)
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"] == field


async def test_labels_are_those_on_which_judge_and_people_differ(client: AsyncClient) -> None:
    items, losses = answers()
    pool = await pool_of(client, items)
    made = await client.post("/v1/sessions", json={"pool_id": pool, "check": CHECK})
    session = made.json()["id"]
    await judged(client, session, losses, most=30)
    where = f"/v1/sessions/{session}/labels"
    every = (await client.get(where)).json()["data"]
    found = (await client.get(where, params={"differs": True})).json()["data"]
    passed = {item["id"] for item in items if item["groups"]["judge"] == "pass"}
    assert found == [one for one in every if (one["item"] in passed) != (one["loss"] == 0.0)]
    assert 0 < len(found) < len(every)
    other = await client.post("/v1/sessions", json={"pool_id": pool})
    refused = await client.get(
        f"/v1/sessions/{other.json()['id']}/labels", params={"differs": True}
    )
    assert (refused.status_code, refused.json()["field"]) == (422, "differs")

"""Sessions on two systems: judged by label, losses or preference, shown left and right."""

import json
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from celeus.core.certificate.verify import verify
from celeus.operations.certificates.audit import audit
from tests.factories import certified, drawn, evidence_of, observed, opened
from tests.pairs import JUDGED, A, B, Pair, body_of, pair


async def recorded(client: AsyncClient, session: str) -> list[dict[str, Any]]:
    """The ledger, from the certificate."""
    answer = await client.get(f"/v1/sessions/{session}/certificate")
    assert answer.status_code == 200, answer.text
    ledger: list[dict[str, Any]] = answer.json()["ledger"]
    return ledger


async def left_of(client: AsyncClient, session: str) -> dict[int, str]:
    """The system on the left of every round drawn."""
    ledger = await recorded(client, session)
    return {entry["round"]: entry["detail"]["left"] for entry in ledger if entry["kind"] == "draw"}


async def judged(client: AsyncClient, session: str, pool: Pair, *, by_side: bool) -> None:
    """Judge until the session has nothing more to draw."""
    while draws := (await drawn(client, session, 7))["draws"]:
        left = await left_of(client, session) if by_side else {}
        for draw in draws:
            judgement = pool.said(draw["item"]["index"], left.get(draw["round"]))
            answer = await observed(client, session, draw["round"], **judgement)
            assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("by_side", [False, True])
@pytest.mark.parametrize("kind", JUDGED)
async def test_words_become_the_differences_of_the_losses(
    client: AsyncClient, kind: str, *, by_side: bool
) -> None:
    pool = await pair(client, kind)
    session = await opened(client, pool, precision=0.5, decide={"margin": 0.1})
    await judged(client, session, pool, by_side=by_side)
    data = await certified(client, session)
    evidence = await evidence_of(client, pool.id)
    report = verify(data, evidence)
    assert report.valid, report.line
    assert {"sides", "labels", "draws", "probabilities"} <= set(report.checked)
    document = json.loads(data)
    assert document["claim"]["systems"] == {"a": A, "b": B}
    ledger = document["ledger"]
    items = {entry["round"]: entry["item"] for entry in ledger if entry["kind"] == "draw"}
    judgements = [entry for entry in ledger if entry["kind"] == "observation"]
    assert judgements
    for judgement in judgements:
        assert judgement["loss"] == pool.better[items[judgement["round"]]]


async def test_items_with_one_answer_are_never_shown(client: AsyncClient) -> None:
    pool = await pair(client, "preference")
    session = await opened(client, pool)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["known"] == sum(pool.known)
    await judged(client, session, pool, by_side=True)
    shown = {entry["item"] for entry in await recorded(client, session) if entry["kind"] == "draw"}
    assert shown == {index for index, known in enumerate(pool.known) if not known}
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["lower"] == status["upper"] == pytest.approx(sum(pool.better) / 60)
    assert status["systems"] == {"a": A, "b": B}


async def test_answers_stand_left_and_right_as_the_ledger_says(client: AsyncClient) -> None:
    pool = await pair(client, "preference")
    session = await opened(client, pool)
    draws = (await drawn(client, session, 30))["draws"]
    left = await left_of(client, session)
    assert set(left.values()) == {"a", "b"}
    for draw in draws:
        item = pool.items[draw["item"]["index"]]
        right = "b" if left[draw["round"]] == "a" else "a"
        for place, side in (("left", left[draw["round"]]), ("right", right)):
            assert draw[place] == {name: item[side][name] for name in ("answer", "payload")}
        assert draw["item"]["payload"] == item["payload"]
    # Whoever asks again, or takes over, sees the same
    again = (await drawn(client, session, 30))["draws"]
    assert [(draw["left"], draw["right"]) for draw in again] == [
        (draw["left"], draw["right"]) for draw in draws
    ]


async def test_the_status_says_how_often_a_side_won(client: AsyncClient) -> None:
    pool = await pair(client, "preference")
    session = await opened(client, pool)
    draws = (await drawn(client, session, 20))["draws"]
    preferences = ["left"] * 9 + ["tie"] * 4 + ["right"] * 6
    for draw, preference in zip(draws, preferences, strict=False):
        await observed(client, session, draw["round"], preference=preference)
    await observed(client, session, draws[-1]["round"], unjudgeable="both are blank")
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["sides"] == {"left": 9, "tie": 4, "right": 6}
    correction = {"round": draws[0]["round"], "preference": "right", "reason": "misread"}
    path = f"/v1/sessions/{session}"
    answer = await client.post(f"{path}/amendments", json=correction | {"author": "ada"})
    assert answer.json()["session"]["sides"] == {"left": 8, "tie": 4, "right": 7}
    page = (await client.get(f"{path}/report")).text
    assert "left better in 8 rounds, right better in 7, as good in 4" in page
    assert A in page
    assert B in page


async def test_corrections_audit_and_verification_hold(client: AsyncClient, app: FastAPI) -> None:
    pool = await pair(client, "preference")
    session = await opened(client, pool)
    await judged(client, session, pool, by_side=True)
    left = await left_of(client, session)
    for round_, preference in ((1, "tie"), (2, "a"), (3, "left")):
        body = {"round": round_, "preference": preference, "author": "ada", "reason": "misread"}
        answer = await client.post(f"/v1/sessions/{session}/amendments", json=body)
        assert answer.status_code == 200, answer.text
    losses = {
        entry["round"]: entry["loss"]
        for entry in await recorded(client, session)
        if entry["kind"] == "amendment"
    }
    assert losses == {1: 0.0, 2: -1.0, 3: -1.0 if left[3] == "a" else 1.0}
    again = {"round": 3, "preference": "left", "author": "ada", "reason": "misread"}
    answer = await client.post(f"/v1/sessions/{session}/amendments", json=again)
    assert answer.json()["receipt"]["replayed"]
    certificate = await certified(client, session)
    evidence = await evidence_of(client, pool.id)
    items = [json.dumps(item).encode() for item in pool.items]
    report = verify(certificate, evidence, items=items)
    assert report.valid, report.line
    assert "items" in report.checked
    result = await audit(app.state.context.database)
    assert not [
        finding.line
        for finding in result.findings
        if session in finding.line or pool.id in finding.line
    ]
    assert result.sessions


async def test_grades_say_by_how_much(client: AsyncClient) -> None:
    body, made = body_of("preference")
    body["loss"] = {"kind": "preference", "upper": 2}
    answer = await client.post("/v1/pools", json=body)
    assert answer.json()["loss"] == {"kind": "difference", "lower": -2.0, "upper": 2.0}
    session = await opened(client, replace(made, id=answer.json()["id"]))
    draws = (await drawn(client, session, 3))["draws"]
    left = await left_of(client, session)
    words: list[dict[str, Any]] = [
        {"preference": "left", "grade": 2},
        {"preference": "b", "grade": 2},
        {"preference": "a"},
    ]
    for draw, word in zip(draws, words, strict=True):
        answer = await observed(client, session, draw["round"], **word)
        assert answer.status_code == 200, answer.text
    ledger = await recorded(client, session)
    losses = [entry["loss"] for entry in ledger if entry["kind"] == "observation"]
    assert losses == [-2.0 if left[draws[0]["round"]] == "a" else 2.0, 2.0, -1.0]
    refused = await observed(client, session, draws[0]["round"], preference="left", grade=3)
    assert (refused.status_code, refused.json()["field"]) == (422, "grade")


async def test_equal_answers_may_decide_without_a_label(client: AsyncClient) -> None:
    body, _ = body_of("label")
    for index, item in enumerate(body["items"]):
        item["b"]["prediction"] = (item["a"]["prediction"] + (index == 7)) % 4
    pool = (await client.post("/v1/pools", json=body)).json()
    asked = {"pool_id": pool["id"], "decide": {"margin": 0.05}}
    status = (await client.post("/v1/sessions", json=asked)).json()
    assert (status["state"], status["stop_reason"]) == ("decided", "decided")
    assert status["verdict"] == {"margin": 0.05, "answer": "equivalent", "round": 0}
    assert (await drawn(client, status["id"], 1))["draws"] == []
    page = (await client.get(f"/v1/sessions/{status['id']}/report")).text
    assert "They are equivalent, before the first label" in page
    assert "for certain: what is known beforehand decides it" in page
    data = await certified(client, status["id"])
    evidence = await evidence_of(client, pool["id"])
    report = verify(data, evidence)
    assert report.valid, report.line
    assert report.claim is not None
    assert report.claim["verdict"]["round"] == 0

"""Sessions that seek the best of several systems, from the pool to the verified certificate."""

import json
from dataclasses import replace

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from celeus.core.certificate.verify import verify
from celeus.operations.certificates.audit import audit
from tests.factories import (
    certified,
    drawn,
    evidence_of,
    judged_all,
    known_pool,
    observed,
    status_of,
)
from tests.lineups import JUDGED, NAMES, Field, body_of, field
from tests.lineups import field as make


async def opened(client: AsyncClient, pool: Field, **settings: object) -> str:
    body = {"pool_id": pool.id, "best": True} | settings
    answer = await client.post("/v1/sessions", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def best_of(pool: Field) -> str:
    means = [sum(column) / len(column) for column in zip(*pool.losses, strict=True)]
    return pool.names[means.index(min(means))]


async def assert_certified(client: AsyncClient, app: FastAPI, session: str, pool: Field) -> None:
    """Certificate, report and audit say of a session that the best was found."""
    best = best_of(pool)
    data = await certified(client, session)
    evidence = await evidence_of(client, pool.id)
    items = [json.dumps(item).encode() for item in pool.items]
    report = verify(data, evidence, items=items)
    assert report.valid, report.line
    assert {"draws", "probabilities", "labels", "items", "claim"} <= set(report.checked)
    assert report.claim is not None
    assert report.claim["best"]["winner"] == best
    # What the systems answered stands in the columns only
    alone = verify(data).difference
    assert alone is not None
    assert alone.where == "the pool"
    page = (await client.get(f"/v1/sessions/{session}/report")).text
    claim = f"{best} is at least as good as every other of 4 systems, valid at every look"
    assert f"{claim} with 99.9" in page
    result = await audit(app.state.context.database)
    assert not [
        finding.line
        for finding in result.findings
        if session in finding.line or pool.id in finding.line
    ]
    assert result.sessions


@pytest.mark.parametrize("kind", JUDGED)
async def test_a_session_ends_with_the_best_and_its_certificate_holds(
    client: AsyncClient, app: FastAPI, kind: str
) -> None:
    pool = await field(client, kind)
    session = await opened(client, pool, alpha=1e-3)
    status = await status_of(client, session)
    assert status["known"] == sum(pool.known)
    assert status["best"]["standing"] == list(NAMES)
    assert (status["lower"], status["policy"]) == (None, None)
    await judged_all(client, session, pool.said)
    status = await status_of(client, session)
    assert (status["state"], status["stop_reason"]) == ("decided", "decided")
    best = best_of(pool)
    assert (status["best"]["winner"], status["best"]["standing"]) == (best, [best])
    states = {system["name"]: system for system in status["best"]["systems"]}
    assert states[best]["state"] == "leading"
    assert {state["state"] for state in states.values()} == {"leading", "out"}
    assert all(state["round"] <= status["round"] for state in states.values() if state["round"])
    assert states["tiny"]["estimate"] > 0.1
    await assert_certified(client, app, session, pool)


async def test_a_judge_sees_every_answer_once_and_no_name(client: AsyncClient) -> None:
    pool = await field(client, "answers")
    session = await opened(client, pool)
    draws = (await drawn(client, session, 20))["draws"]
    orders = set()
    for draw in draws:
        given = [
            answer["answer"] for answer in pool.items[draw["item"]["index"]]["answers"].values()
        ]
        shown = [answer["answer"] for answer in draw["answers"]]
        assert sorted(shown) == sorted(set(given))
        orders.add(given.index(shown[0]))
        assert not any(name in json.dumps(draw) for name in NAMES)
    assert len(orders) > 1
    task = (await client.get(f"/v1/sessions/{session}/task")).json()
    assert task["best"] == {"judged_by": "losses"}
    for draw in draws[:10]:
        answer = await observed(client, session, draw["round"], **pool.said_blind(draw))
        assert answer.status_code == 200, answer.text
    ledger = (await client.get(f"/v1/sessions/{session}/ledger")).json()["data"]
    losses = [entry["losses"] for entry in ledger if entry["kind"] == "observation"]
    assert losses == [pool.losses[draw["item"]["index"]] for draw in draws[:10]]


async def test_where_no_answers_are_shown_losses_come_by_name(client: AsyncClient) -> None:
    pool = await field(client, "losses")
    session = await opened(client, pool)
    draw = (await drawn(client, session))["draws"][0]
    assert "answers" not in draw
    answer = await observed(client, session, draw["round"], losses=[0, 0, 0, 1])
    assert (answer.status_code, answer.json()["field"]) == (422, "losses")
    assert answer.json()["rule"] == "`losses` of all systems, by name"
    judgement = pool.said(draw["item"]["index"])
    answer = await observed(client, session, draw["round"], **judgement)
    assert answer.status_code == 200, answer.text
    assert (await status_of(client, session))["best"]["places"] == {
        "first": 0,
        "last": 0,
        "other": 0,
    }


async def test_payloads_of_the_systems_are_answers_too(client: AsyncClient) -> None:
    body, made = body_of("losses")
    for item in body["items"]:
        for index, answer in enumerate(item["answers"].values()):
            answer["payload"] = {"image": f"https://example.org/{item['id']}-{index}.png"}
    pool = replace(made, id=(await client.post("/v1/pools", json=body)).json()["id"])
    session = await opened(client, pool)
    draw = (await drawn(client, session))["draws"][0]
    ledger = (await client.get(f"/v1/sessions/{session}/ledger")).json()["data"]
    order = [int(place) for place in ledger[0]["detail"]["order"].split()]
    images = [answer["payload"]["image"] for answer in draw["answers"]]
    assert images == [f"https://example.org/{draw['item']['id']}-{place}.png" for place in order]
    answer = await observed(client, session, draw["round"], losses=[0, 1, 1, 1])
    assert answer.status_code == 200, answer.text
    judgement = (await client.get(f"/v1/sessions/{session}/ledger")).json()["data"][1]
    assert judgement["losses"].index(0) == order[0]


async def test_it_is_counted_which_place_wins(client: AsyncClient) -> None:
    pool = await field(client, "answers", able=(0.6, 0.6, 0.6))
    session = await opened(client, pool, budget=30, alpha=1e-9)
    counts = {"first": 0, "last": 0, "other": 0}
    for _ in range(30):
        draw = (await drawn(client, session))["draws"][0]
        losses = pool.said_blind(draw)["losses"]
        place = "other"
        if losses.count(0.0) == 1:
            place = {0: "first", len(losses) - 1: "last"}.get(losses.index(0.0), "other")
        counts[place] += 1
        await observed(client, session, draw["round"], losses=losses)
    status = await status_of(client, session)
    assert status["best"]["places"] == counts
    assert counts["first"] > 0
    page = (await client.get(f"/v1/sessions/{session}/report")).text
    assert f"the best in {counts['first']} rounds, the last in {counts['last']}" in page


@pytest.mark.parametrize(
    ("kind", "said", "field"),
    [
        ("label", {"loss": 0}, "loss"),
        ("label", {"preference": "left"}, "preference"),
        ("label", {"unjudgeable": "blank"}, "unjudgeable"),
        ("label", {"losses": [0, 1]}, "losses"),
        ("answers", {"label": 1}, "label"),
        ("answers", {"losses": [0]}, "losses"),
        ("answers", {"losses": {"tiny": 0}}, "losses.qwen-72b"),
        ("answers", {"losses": dict.fromkeys([*NAMES, "other"], 0)}, "losses"),
        ("answers", {"losses": dict.fromkeys(NAMES, 0.5)}, "losses.qwen-72b"),
        ("losses", {"losses": {"left": 0, "right": 1}}, "losses"),
        ("losses", {"losses": [0, 7, 0, 0]}, "losses"),
    ],
)
async def test_what_is_no_judgement_of_several_systems_is_refused_by_name(
    client: AsyncClient, kind: str, said: dict[str, object], field: str
) -> None:
    pool = await make(client, kind)
    session = await opened(client, pool)
    # A round with several answers
    draw = (await drawn(client, session))["draws"][0]
    answer = await observed(client, session, draw["round"], **said)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert (await status_of(client, session))["rounds"]["judged"] == 0


async def test_a_refused_loss_does_not_tell_whose_answer_it_was_said_of(
    client: AsyncClient,
) -> None:
    pool = await field(client, "answers")
    session = await opened(client, pool)
    draw = (await drawn(client, session))["draws"][0]
    for place in range(len(draw["answers"])):
        losses: list[float] = [0.0] * len(draw["answers"])
        losses[place] = 7.0
        answer = await observed(client, session, draw["round"], losses=losses)
        assert (answer.status_code, answer.json()["field"]) == (422, f"losses.{place}")
        assert not any(name in answer.text for name in NAMES)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"precision": 0.1}, "precision"),
        ({"target": "population"}, "target"),
        ({"questions": [{"side": "at_most", "threshold": 0.5}]}, "questions"),
        ({"decide": {"margin": 0.1}}, "decide"),
        ({"audit": True}, "audit"),
        ({"policy": "sharp"}, "policy"),
        ({"strategy": "A"}, "strategy"),
        ({"parameters": {"theta": 0.4}}, "theta"),
        ({"parameters": {"beta": 0.0}}, "beta"),
        ({"budget": 500}, "budget"),
        ({"alpha": 0.0}, "alpha"),
        ({"best": False}, "best"),
    ],
)
async def test_what_such_a_session_does_not_answer_is_refused_by_name(
    client: AsyncClient, asked: dict[str, object], field: str
) -> None:
    pool = await make(client, "label")
    body = {"pool_id": pool.id, "best": True} | asked
    answer = await client.post("/v1/sessions", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_pools_without_several_systems_have_no_best(client: AsyncClient) -> None:
    pool = await known_pool(client, 20)
    body = {"pool_id": pool.id, "best": True}
    answer = await client.post("/v1/sessions", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, "best")


async def test_a_budget_may_change_and_a_judgement_may_not(client: AsyncClient) -> None:
    pool = await field(client, "losses", able=(0.6, 0.6))
    session = await opened(client, pool, budget=4)
    path = f"/v1/sessions/{session}"
    await judged_all(client, session, pool.said)
    assert (await status_of(client, session))["stop_reason"] == "budget_spent"
    correction = {"round": 1, "losses": dict.fromkeys(pool.names, 0), "reason": "misread"}
    answer = await client.post(f"{path}/amendments", json=correction | {"author": "ada"})
    assert (answer.status_code, answer.json()["field"]) == (422, "session_id")
    assert "takes no corrections" in answer.json()["detail"]
    answer = await client.patch(path, json={"precision": 0.1})
    assert (answer.status_code, answer.json()["field"]) == (422, "precision")
    assert (await client.patch(path, json={"budget": 9})).json()["changes"] == 1
    await judged_all(client, session, pool.said)
    assert (await status_of(client, session))["rounds"]["judged"] == 9
    assert (await client.get(f"{path}/surrogate")).status_code == 422
    data = await certified(client, session)
    evidence = await evidence_of(client, pool.id)
    assert verify(data, evidence).valid

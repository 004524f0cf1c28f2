"""Claims added to a table from its reserve of alpha, from the request to the audit."""

import json
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response
from sqlalchemy import text

from celeus.core.certificate.verify import verify
from celeus.operations.certificates.audit import audit
from celeus.settings import Settings
from tests.api.sessions.test_table import claims_of, opened, truth
from tests.clients import serving
from tests.factories import drawn, evidence_of, judged_all, observed, sealed
from tests.tabled import TOPICS, Sheet, sheet

TOGETHER: dict[str, Any] = {
    "account": "together",
    "reserve": 0.01,
    "precision": {"faithful": 0.3},
    "group_precision": None,
    "questions": [],
}
LAW: dict[str, Any] = {
    "metric": "faithful",
    "column": "topic",
    "value": "law",
    "level": 0.006,
    "precision": 0.45,
    "questions": [{"side": "at_most", "threshold": 0.95}],
}


async def add(
    client: AsyncClient, session: str, key: str | None = None, **said: object
) -> Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await client.post(f"/v1/sessions/{session}/claims", json=LAW | said, headers=headers)


async def begun(client: AsyncClient, **settings: object) -> tuple[Sheet, str]:
    """A session with a reserve, some rounds of which are judged and none is out."""
    pool = await sheet(client)
    session = await opened(client, pool, **TOGETHER | settings)
    await judged_all(client, session, pool.said, ahead=2, most=4)
    return pool, session


async def test_a_claim_is_added_and_bets_on_later_draws_alone(client: AsyncClient) -> None:
    _, session = await begun(client)
    ledger = (await client.get(f"/v1/sessions/{session}/ledger")).json()["data"]
    topic = TOPICS[ledger[0]["item"] % 3]
    answer = await add(client, session, value=topic)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == f"/v1/sessions/{session}/claims"
    row = answer.json()
    assert row["added"] == 8
    assert (row["level"], row["precision"], row["met"]) == (0.006, 0.45, False)
    assert row["rounds"]["in_interval"] == 0
    assert row["rounds"]["judged"] > 0
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["table"]["reserve"] == pytest.approx(0.004)
    assert (status["table"]["claims"], status["table"]["later"]) == (9, 1)
    assert "All 9 intervals hold at once" in status["table"]["promises"]["all"]
    rows = await claims_of(client, session)
    assert rows[-1] == row
    assert {row["added"] for row in rows[:-1]} == {None}
    ledger = (await client.get(f"/v1/sessions/{session}/ledger")).json()["data"]
    assert (ledger[-1]["kind"], ledger[-1]["round"]) == ("addition", None)
    assert (LAW | {"value": topic}).items() <= ledger[-1]["detail"].items()


async def test_the_session_goes_on_until_it_has_what_it_wants_and_the_report_says_when_it_came(
    client: AsyncClient, settings: Settings
) -> None:
    pool, session = await begun(client)
    await add(client, session)
    await judged_all(client, session, pool.said)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert (status["state"], status["table"]["met"]) == ("target_reached", 2)
    for claim in await claims_of(client, session):
        assert claim["lower"] <= truth(pool, claim) <= claim["upper"]
    last = (await claims_of(client, session))[-1]
    assert last["upper"] - last["lower"] <= 0.45
    assert last["answers"][0]["answer"] == "yes"
    assert last["answers"][0]["round"] >= 8
    async with serving(settings) as other:
        assert await claims_of(other, session) == await claims_of(client, session)
    text_ = (await client.get(f"/v1/sessions/{session}/report")).text
    assert "added after 8 labels" in text_
    assert "faithful, topic law (at level 0.006, after 8 labels)" in text_
    csv = await client.get(f"/v1/sessions/{session}/claims", params={"format": "csv"})
    assert "added" in csv.text.splitlines()[0]


async def test_its_certificate_is_verified_and_its_session_audited(
    client: AsyncClient, app: FastAPI
) -> None:
    pool, session = await begun(client)
    await add(client, session)
    await judged_all(client, session, pool.said, ahead=2, most=4)
    await add(client, session, level=0.004, precision=None, questions=[])
    await judged_all(client, session, pool.said, ahead=3, most=4)
    evidence = await evidence_of(client, pool.id)
    items = [json.dumps(item).encode() for item in pool.items]
    for state in ("active", "closed"):
        await client.patch(f"/v1/sessions/{session}", json={"state": state})
        answer = await client.get(f"/v1/sessions/{session}/certificate")
        report = verify(answer.content, evidence, items=items)
        assert report.valid, report.line
    assert [claim.get("added") for claim in answer.json()["claim"]["claims"][-2:]] == [8, 16]
    database = app.state.context.database
    result = await audit(database)
    assert not [finding.line for finding in result.findings if session in finding.line]
    async with database.transaction() as db:
        await db.execute(
            text(
                "UPDATE events SET detail = jsonb_set(detail, '{level}', '0.02')"
                " WHERE session_id = CAST(:id AS uuid) AND kind = 7"
            ),
            {"id": session.removeprefix("ses_")},
        )
    result = await audit(database)
    assert [(finding.name, finding.where) for finding in result.findings] == [
        (session, "ledger_head")
    ]


async def test_a_session_that_has_met_its_targets_goes_on_for_a_claim_that_wants_more(
    client: AsyncClient,
) -> None:
    pool = await sheet(client)
    session = await opened(client, pool, **TOGETHER | {"precision": {"faithful": 0.6}})
    await judged_all(client, session, pool.said, ahead=1)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["state"] == "target_reached"
    assert (await add(client, session)).status_code == 201
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert (status["state"], status["stopped"]) == ("active", False)
    assert (await drawn(client, session))["draws"]


async def test_what_may_not_be_added_is_refused_by_name_and_leaves_no_trace(
    client: AsyncClient, ann: AsyncClient
) -> None:
    pool, session = await begun(client)
    refused: dict[str, dict[str, Any]] = {
        "level": {"level": 0.0101},
        "claim": {"metric": "length"},
        "precision": {"precision": -0.1},
        "questions.0": {"questions": [{"side": "at_most", "threshold": 1.5}]},
        "body": {"value": 7},
    }
    before = (await client.get(f"/v1/sessions/{session}")).json()
    for field, change in refused.items():
        answer = await add(client, session, **change)
        assert answer.status_code == 422, change
        assert str(answer.json()["field"]).startswith(field) or field == "body", answer.text
    for change in ({"value": "weather"}, {"column": None}, {"column": "colour"}):
        answer = await add(client, session, **change)
        assert (answer.status_code, answer.json()["field"]) == (422, "claim"), change
    assert (await add(ann, session)).status_code == 403
    draw = (await drawn(client, session))["draws"][0]
    out = await add(client, session)
    assert (out.status_code, out.json()["rule"]) == (422, "no draw out")
    losses = pool.losses[draw["item"]["index"]]
    assert (await observed(client, session, draw["round"], losses=losses)).status_code == 200
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["table"] | {"metrics": 0} == before["table"] | {"metrics": 0}
    assert (await add(client, session)).status_code == 201
    again = await add(client, session)
    assert (again.status_code, again.json()["field"]) == (422, "claim")
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    closed = await add(client, session, level=0.001)
    assert (closed.status_code, closed.json()["code"]) == (409, "session_closed")


async def test_a_paused_session_takes_a_claim_once_what_is_out_is_judged(
    client: AsyncClient,
) -> None:
    _, session = await begun(client)
    draws = (await drawn(client, session, 2))["draws"]
    await client.patch(f"/v1/sessions/{session}", json={"state": "paused"})
    nobody = {"faithful": None, "stars": None}
    for draw in draws:
        assert (await add(client, session)).status_code == 422
        answer = await observed(client, session, draw["round"], losses=nobody)
        assert answer.status_code == 200, answer.text
    assert (await add(client, session)).status_code == 201


async def test_the_same_request_under_its_key_adds_one_claim(client: AsyncClient) -> None:
    _, session = await begun(client)
    first = await add(client, session, "one")
    again = await add(client, session, "one")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.content == first.content
    other = await add(client, session, "one", level=0.001)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    twice = await add(client, session, level=0.004)
    assert twice.status_code == 201
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["table"]["later"] == 2


async def test_fixed_sessions_and_others_take_no_claim(client: AsyncClient) -> None:
    pool = await sheet(client)
    fixed = await opened(client, pool, **TOGETHER | {"reserve": None, "fixed": True})
    answer = await add(client, fixed)
    assert (answer.status_code, answer.json()["code"]) == (409, "session_fixed")
    kept = {"pool_id": pool.id, **TOGETHER, "fixed": True}
    answer = await client.post("/v1/sessions", json=kept)
    assert (answer.status_code, answer.json()["field"]) == (422, "reserve")
    each = await opened(client, pool)
    answer = await add(client, each)
    assert (answer.status_code, answer.json()["field"]) == (422, "level")
    items = [{"id": str(number), "surrogate": 0.5} for number in range(80)]
    plain = await sealed(client, items)
    made = (await client.post("/v1/sessions", json={"pool_id": plain})).json()["id"]
    answer = await add(client, made)
    assert (answer.status_code, answer.json()["field"]) == (422, "session_id")

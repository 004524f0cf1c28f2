"""Sessions that make a table of claims, from the pool to the audit."""

import csv
import io
import json
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from celeus.core.canonical import canonical_json
from celeus.core.certificate.verify import verify
from celeus.core.session.table import table_cells
from celeus.operations.certificates.audit import audit
from tests.factories import drawn, evidence_of, judged_all, observed, sealed
from tests.nightly import by_day
from tests.tabled import Sheet, sheet

ASKED: dict[str, Any] = {
    "groups": ["topic"],
    "precision": {"faithful": 0.2, "stars": 0.8},
    "group_precision": {"faithful": 0.5},
    "questions": [{"metric": "faithful", "side": "at_most", "threshold": 0.9}],
}


async def opened(client: AsyncClient, pool: Sheet, **settings: object) -> str:
    answer = await client.post("/v1/sessions", json={"pool_id": pool.id, **ASKED, **settings})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def claims_of(client: AsyncClient, session: str, **params: str) -> list[dict[str, Any]]:
    answer = await client.get(f"/v1/sessions/{session}/claims", params=params)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["data"]
    return rows


def truth(pool: Sheet, row: dict[str, Any]) -> float:
    column, metric = row["column"], row["metric"]
    losses_of_part = [
        loss[metric]
        for item, loss in zip(pool.items, pool.losses, strict=True)
        if column is None or str(item["groups"][column]) == row["value"]
    ]
    assert len(losses_of_part) == row["items"]
    return float(np.mean(losses_of_part))


@pytest.mark.parametrize("account", by_day(2, ["each", "together", "selected", "closed"]))
async def test_a_session_goes_on_until_every_claim_has_what_it_wants(
    client: AsyncClient, app: FastAPI, account: str
) -> None:
    pool = await sheet(client)
    session = await opened(client, pool, account=account, alpha=0.02)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert (status["lower"], status["scale"], status["known"]) == (None, None, 0)
    assert status["table"]["claims"] == 8
    assert (status["table"]["wanted"], status["table"]["met"]) == (5, 0)
    assert status["sentence"].startswith(
        "Nothing is judged yet: 0 of 5 claims have met their target"
    )
    await judged_all(client, session, pool.said)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert (status["state"], status["table"]["met"]) == ("target_reached", 5)
    rows = await claims_of(client, session)
    assert len(rows) == 8
    for row in rows:
        assert row["lower"] <= truth(pool, row) <= row["upper"]
        assert row["rounds"]["drawn"] >= row["rounds"]["judged"] >= row["rounds"]["in_interval"]
        assert row["met"] is (None if row["precision"] is None and not row["answers"] else True)
        assert row["level"] == pytest.approx(0.02) or account == "together"
    assert sum(row["level"] for row in rows) == pytest.approx(
        0.02 if account == "together" else 0.16
    )
    first = rows[0]
    assert first["score"]["name"] == "faithfulness"
    assert first["score"]["lower"] == pytest.approx(1.0 - first["upper"])
    assert first["answers"][0]["answer"] == "yes"
    assert 0 <= first["answers"][0]["round"] <= status["round"]
    assert first["rounds"]["in_interval"] == status["round"]
    result = await audit(app.state.context.database)
    assert not [
        finding.line
        for finding in result.findings
        if session in finding.line or pool.id in finding.line
    ]


@pytest.mark.parametrize("account", by_day(2, ["together", "each", "closed", "selected"]))
async def test_the_certificate_of_a_table_is_verified_with_its_pool(
    client: AsyncClient, account: str
) -> None:
    pool = await sheet(client, seed=2)
    session = await opened(client, pool, account=account)
    await judged_all(client, session, pool.said, most=8)
    evidence = await evidence_of(client, pool.id)
    items = [json.dumps(item).encode() for item in pool.items]
    for final in (False, True):
        if final:
            await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
        answer = await client.get(f"/v1/sessions/{session}/certificate")
        assert answer.status_code == 200, answer.text
        report = verify(answer.content, evidence, items=items)
        assert report.valid, report.line
        drawn_again = {"draws"} if final else {*()}
        assert {"probabilities", "items", "claim", *drawn_again} <= set(report.checked)
    document = answer.json()
    document["claim"]["claims"][0]["lower"] -= 0.01
    forged = verify(canonical_json(document), evidence)
    assert not forged.valid


async def test_claims_are_sorted_filtered_and_downloaded(client: AsyncClient) -> None:
    pool = await sheet(client)
    session = await opened(client, pool)
    await judged_all(client, session, pool.said, most=10)
    widths = [
        (row["upper"] - row["lower"]) / (row["scale"]["upper"] - row["scale"]["lower"])
        for row in await claims_of(client, session, sort="width")
    ]
    assert widths == sorted(widths, reverse=True)
    estimates = [
        row["estimate"] / row["scale"]["upper"]
        for row in await claims_of(client, session, sort="score")
    ]
    assert estimates == sorted(estimates)
    whole = await claims_of(client, session, column="")
    assert [(row["metric"], row["column"]) for row in whole] == [
        ("faithful", None),
        ("stars", None),
    ]
    rows = await claims_of(client, session, metric="stars", column="topic")
    assert [row["value"] for row in rows] == ["art", "law", "sport"]
    for params, headers in (({"format": "csv"}, {}), ({}, {"Accept": "text/csv"})):
        answer = await client.get(f"/v1/sessions/{session}/claims", params=params, headers=headers)
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        named = [row["value"] for row in rows]
        assert named == ["", "", "art", "art", "law", "law", "sport", "sport"]
        assert float(rows[0]["lower"]) == whole[0]["lower"]
    for name in ("metric", "column"):
        answer = await client.get(f"/v1/sessions/{session}/claims", params={name: "nobody"})
        assert (answer.status_code, answer.json()["field"]) == (422, name)


async def test_a_judgement_is_a_vector_and_what_it_lacks_is_told_by_name(
    client: AsyncClient,
) -> None:
    pool = await sheet(client)
    session = await opened(client, pool)
    draws = (await drawn(client, session, 40))["draws"]
    free = next(draw for draw in draws if "known" not in pool.items[draw["item"]["index"]])
    refused: dict[str, dict[str, Any]] = {
        "losses.stars": {"losses": {"faithful": 1}},
        "losses.length": {"losses": {"faithful": 1, "stars": 1, "length": 2}},
        "losses.faithful": {"losses": {"faithful": 0.5, "stars": 1}},
        "unjudgeable": {"unjudgeable": "blurred"},
        "loss": {"loss": 1},
        "label": {"label": 1},
        "losses": {"losses": [1, 2]},
    }
    for field, judgement in refused.items():
        answer = await observed(client, session, free["round"], **judgement)
        assert (answer.status_code, answer.json()["field"]) == (422, field), judgement
    losses = {"faithful": None, "stars": 2.5}
    first = await observed(client, session, free["round"], losses=losses)
    assert first.json()["receipt"]["replayed"] is False
    again = await observed(client, session, free["round"], losses=losses)
    assert again.json()["receipt"]["replayed"] is True
    other = await observed(client, session, free["round"], losses=losses | {"faithful": 1})
    assert (other.status_code, other.json()["code"]) == (409, "observation_conflict")
    ledger = (await client.get(f"/v1/sessions/{session}/ledger")).json()["data"]
    assert ledger[-1]["losses"] == [None, 2.5]


async def test_a_known_loss_may_be_left_out_and_not_be_contradicted(client: AsyncClient) -> None:
    pool = await sheet(client)
    session = await opened(client, pool)
    draws = (await drawn(client, session, 120))["draws"]
    known, other = [draw for draw in draws if "known" in pool.items[draw["item"]["index"]]][:2]
    answer = await observed(client, session, known["round"], losses={"faithful": 1})
    assert answer.status_code == 200
    stars = pool.losses[other["item"]["index"]]["stars"]
    judgement = {"faithful": 1, "stars": 4 - stars if stars != 2 else 0}
    answer = await observed(client, session, other["round"], losses=judgement)
    assert answer.json()["code"] == "bound_contradicted"
    status = (await client.get(f"/v1/sessions/{session}")).json()
    [kept] = status["contradictions"]
    assert (kept["item"], kept["metric"], kept["loss"]) == (
        other["item"]["id"],
        "stars",
        judgement["stars"],
    )
    [warning] = status["warnings"]
    assert f"said stars {judgement['stars']:g}, and the pool states" in warning


async def test_what_such_a_session_has_not_is_refused_by_name(client: AsyncClient) -> None:
    pool = await sheet(client)
    session = await opened(client, pool)
    await judged_all(client, session, pool.said, most=2)
    where = f"/v1/sessions/{session}"
    change = await client.patch(where, json={"precision": 0.01})
    assert (change.status_code, change.json()["field"]) == (422, "precision")
    change = await client.patch(where, json={"stop_when_decided": True})
    assert change.status_code == 422
    body = {"round": 1, "losses": {"faithful": 1, "stars": 1}, "reason": "typo"}
    answer = await client.post(f"{where}/amendments", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, "session_id")
    answer = await client.get(f"{where}/surrogate")
    assert (answer.status_code, answer.json()["field"]) == (422, "session_id")
    assert "claims" in (await client.get(f"{where}/report")).text
    answer = await client.get("/v1/claims", params={"session": session})
    assert (answer.status_code, answer.json()["field"]) == (422, "session")
    planning = {"pool_id": pool.id, "precision": 0.1}
    answer = await client.post(f"/v1/pools/{pool.id}/plan", json=planning)
    assert answer.status_code in {404, 422}
    assert (await client.get(f"{where}/trajectory")).json()["data"] == []
    assert (await client.get(f"{where}/workers")).status_code == 200
    budget = await client.patch(where, json={"budget": 6})
    assert (budget.status_code, budget.json()["budget"], budget.json()["changes"]) == (200, 6, 1)
    task = (await client.get(f"{where}/task")).json()
    assert task["loss"] is None
    assert [metric["name"] for metric in task["metrics"]] == ["faithful", "stars"]


async def test_of_a_single_metric_a_round_may_be_unjudgeable(client: AsyncClient) -> None:
    items = [
        {"id": str(number), "surrogate": 0.5, "group": "ab"[number % 2]} for number in range(80)
    ]
    pool = await sealed(client, items)
    made = await client.post("/v1/sessions", json={"pool_id": pool, "groups": ["group"]})
    session = made.json()["id"]
    await drawn(client, session, 2)
    for round_, judgement in ((1, {"unjudgeable": "blurred"}), (2, {"loss": 1})):
        answer = await observed(client, session, round_, **judgement)
        assert answer.status_code == 200, answer.text
    evidence = await evidence_of(client, pool)
    certificate = await client.get(f"/v1/sessions/{session}/certificate")
    report = verify(certificate.content, evidence)
    assert report.valid, report.line
    detail = certificate.json()["ledger"][2]["detail"]
    assert detail["unjudgeable"] == "blurred"


async def test_list_and_stream_tell_of_the_table(client: AsyncClient) -> None:
    pool = await sheet(client)
    session = await opened(client, pool)
    await judged_all(client, session, pool.said, most=2)
    listed = (await client.get("/v1/sessions", params={"pool_id": pool.id})).json()["data"]
    assert [document["table"]["claims"] for document in listed] == [8]
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    page = (await client.get(f"/v1/sessions/{session}/stream")).text
    [news] = [json.loads(line[6:]) for line in page.splitlines() if line.startswith("data: ")]
    assert news["session"]["table"]["claims"] == 8
    assert news["points"] == []


async def test_a_ledger_that_nobody_could_verify_is_refused_with_the_budget_that_may_be(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of parts, each with its probability in every draw, filled gigabytes."""
    pool = await sheet(client)
    session = await opened(client, pool, budget=50)
    monkeypatch.setattr(table_cells, "LARGEST_LEDGER", 1 << 15)
    refused = await client.post("/v1/sessions", json={"pool_id": pool.id, **ASKED})
    assert (refused.status_code, refused.json()["field"]) == (422, "budget")
    most = int(refused.json()["rule"].split(",")[0].removeprefix("at most "))
    assert 50 < most < 120
    await opened(client, pool, budget=most)
    where = f"/v1/sessions/{session}"
    assert (await client.patch(where, json={"budget": most})).status_code == 200
    change = await client.patch(where, json={"budget": most + 1})
    assert (change.status_code, change.json()["field"]) == (422, "budget")


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("groups", {"groups": ["weather"]}),
        ("precision", {"precision": {"length": 0.1}}),
        ("questions.metric", {"questions": [{"side": "at_most", "threshold": 0.5}]}),
        ("claims.level", {"account": "together", "levels": [0.02] * 8}),
        ("reserve", {"reserve": 0.01}),
        ("target", {"target": "population"}),
        ("policy", {"policy": "sharp"}),
        ("audit", {"audit": True}),
    ],
)
async def test_bad_openings_are_refused_by_name(
    client: AsyncClient, field: str, asked: dict[str, Any]
) -> None:
    pool = await sheet(client)
    answer = await client.post("/v1/sessions", json={"pool_id": pool.id, **ASKED, **asked})
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


async def test_a_blind_labeller_judges_and_learns_nothing_of_the_claims(
    client: AsyncClient, ann: AsyncClient
) -> None:
    pool = await sheet(client)
    session = await opened(client, pool)
    draw = (await drawn(ann, session))["draws"][0]
    judgement = pool.losses[draw["item"]["index"]]
    answer = await observed(ann, session, draw["round"], losses=judgement)
    assert answer.status_code == 200, answer.text
    assert answer.json()["session"] == {"id": session, "state": "active"}
    again = await observed(ann, session, draw["round"], losses=judgement)
    assert again.json()["receipt"]["replayed"]
    other = await observed(ann, session, draw["round"], losses=judgement | {"stars": None})
    assert other.status_code in {200, 409}
    corrected = {"round": draw["round"], "losses": judgement, "reason": "typo"}
    answer = await ann.post(f"/v1/sessions/{session}/amendments", json=corrected)
    assert (answer.status_code, answer.json()["field"]) == (422, "session_id")
    assert (await ann.get(f"/v1/sessions/{session}/claims")).status_code == 403
    task = (await ann.get(f"/v1/sessions/{session}/task")).json()
    assert [metric["name"] for metric in task["metrics"]] == ["faithful", "stars"]


async def test_a_blind_labeller_is_not_told_which_losses_are_known(
    client: AsyncClient, ann: AsyncClient
) -> None:
    pool = await sheet(client)
    session = await opened(client, pool)
    draws = (await drawn(ann, session, 8))["draws"]
    for draw in draws:
        answer = await observed(ann, session, draw["round"], losses={"faithful": 1})
        assert (answer.status_code, answer.json()["field"]) == (422, "losses.stars")
    held = (draw for draw in draws if "known" in pool.items[draw["item"]["index"]])
    for draw in held:
        stars = pool.losses[draw["item"]["index"]]["stars"]
        judgement = {"faithful": 1, "stars": 4 - stars if stars != 2 else 0}
        answer = await observed(ann, session, draw["round"], losses=judgement)
        assert answer.json()["code"] == "bound_contradicted"
        assert "known" not in answer.text


async def test_groups_too_small_for_bets_are_judged_whole_on_request(client: AsyncClient) -> None:
    pool = await sheet(client, size=60)
    session = await opened(
        client, pool, small_groups="whole", group_precision=None, questions=[], precision=None
    )
    rows = await claims_of(client, session, column="topic")
    assert [(row["whole"], row["level"], row["met"]) for row in rows] == [(True, None, False)] * 6
    await judged_all(client, session, pool.said)
    for row in await claims_of(client, session):
        assert row["lower"] == pytest.approx(truth(pool, row)) == pytest.approx(row["upper"])


async def items_of(client: AsyncClient, session: str, **params: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/sessions/{session}/items", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_claim_leads_to_its_items_and_what_was_said_of_them(client: AsyncClient) -> None:
    pool = await sheet(client, size=180)
    session = await opened(client, pool, groups=["topic"])
    await judged_all(client, session, pool.said, ahead=1, most=40)
    whole = await items_of(client, session, limit="1000")
    assert [item["id"] for item in whole["data"]] == [item["id"] for item in pool.items]
    law = await items_of(client, session, column="topic", value="law")
    assert [item["index"] for item in law["data"]] == list(range(0, 180, 3))
    assert law["next"] is None
    for item in law["data"]:
        judgement = item["losses"]
        assert (judgement is None) == (item["round"] is None)
        assert judgement in (None, pool.losses[item["index"]])
        assert item["payload"] == {"text": f"text {item['index']}"}
        assert item["known"] == (["stars"] if item["index"] % 10 == 0 else [])
    rows = await claims_of(client, session, column="topic", metric="faithful")
    for row in rows:
        part = {"column": "topic", "value": row["value"]}
        known = await items_of(client, session, **part, judged="true")
        others = await items_of(client, session, **part, judged="false")
        assert len(known["data"]) == row["rounds"]["judged"]
        assert len(known["data"]) + len(others["data"]) == row["items"]
        assert all(item["losses"] for item in known["data"])
        assert not any(item["losses"] for item in others["data"])


async def test_the_items_of_a_claim_come_in_pages(client: AsyncClient) -> None:
    pool = await sheet(client, size=100)
    session = await opened(client, pool)
    seen: list[int] = []
    after: dict[str, str] = {}
    while True:
        page = await items_of(client, session, column="topic", value="art", limit="10", **after)
        seen += [item["index"] for item in page["data"]]
        if page["next"] is None:
            break
        assert len(page["data"]) == 10
        after = {"after": str(page["next"])}
    assert seen == list(range(1, 100, 3))


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"column": "city", "value": "law"}, "column"),
        ({"column": "topic", "value": "geology"}, "value"),
        ({"column": "topic"}, "value"),
        ({"value": "law"}, "column"),
    ],
)
async def test_the_items_of_no_group_are_refused(
    client: AsyncClient, params: dict[str, str], field: str
) -> None:
    session = await opened(client, await sheet(client, size=90))
    answer = await client.get(f"/v1/sessions/{session}/items", params=params)
    assert (answer.status_code, answer.json()["field"]) == (422, field)

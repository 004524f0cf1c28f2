"""Known losses over the wire: counted by reason, never drawn."""

import io
import json
from typing import Any

import httpx
import numpy as np
import pytest

from celeus.core.certificate.verify import verify
from celeus.operations.certificates.npz import read_archive

GRADED = {"kind": "bounded", "lower": 0.0, "upper": 1.0}


async def created(client: httpx.AsyncClient, **more: object) -> dict[str, Any]:
    answer = await client.post("/v1/pools", json={"name": "exam", "loss": GRADED} | more)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_items_before_and_after_have_nothing_stated(client: httpx.AsyncClient) -> None:
    """Known losses may come with a later upload, and need not come with the next."""
    pool_id = (await created(client))["id"]
    for first in range(0, 9, 3):
        rows = [{"id": str(at)} for at in range(first, first + 3)]
        if first == 3:
            rows[1] |= {"known": {"loss": 1.0, "reason": "empty answer"}}  # type: ignore[dict-item]
        body = "\n".join(map(json.dumps, rows))
        media = {"Content-Type": "application/x-ndjson"}
        await client.post(f"/v1/pools/{pool_id}/items", content=body, headers=media)
    sealed = (await client.post(f"/v1/pools/{pool_id}/seal")).json()
    assert sealed["known"]["items"] == 1
    archive = np.load(io.BytesIO((await client.get(f"/v1/pools/{pool_id}/columns.npz")).content))
    assert archive["known"].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert archive["loss_lower"].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert archive["reasons"].tolist() == ["empty answer"]


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"known": {"loss": 7.0, "reason": "r"}}, "known.loss"),
        ({"known": {"loss": 1.0, "reason": ""}}, "known.reason"),
        ({"known": {"label": 1, "reason": "r"}}, "known.label"),
        ({"loss_lower": 0.5, "loss_upper": 0.25}, "loss_upper"),
    ],
)
async def test_bad_statements_are_refused_by_name(
    client: httpx.AsyncClient, item: dict[str, Any], field: str
) -> None:
    items = [{"id": "a"} | item]
    answer = await client.post("/v1/pools", json={"name": "exam", "loss": GRADED, "items": items})
    assert answer.status_code == 422
    assert [one["field"] for one in answer.json()["errors"]] == [field]


def items(known: int) -> list[dict[str, Any]]:
    """Forty items whose loss is 1 for every third; of the first ones it is known."""
    stated = {"reason": "judged before"}
    return [
        {"id": str(at)} | ({"known": stated | {"loss": float(at % 3 == 0)}} if at < known else {})
        for at in range(40)
    ]


async def judged(
    client: httpx.AsyncClient, session_id: str, loss: float | None = None
) -> list[str]:
    """Judge until nothing is offered, all as ``loss`` if there is one; the items that were."""
    offered: list[str] = []
    while True:
        answer = await client.post(f"/v1/sessions/{session_id}/next", json={"worker": "ada"})
        draws = answer.json()["draws"]
        if not draws:
            return offered
        for draw in draws:
            name = draw["item"]["id"]
            offered.append(name)
            told_loss = float(int(name) % 3 == 0) if loss is None else loss
            body = {"round": draw["round"], "loss": told_loss, "worker": "ada"}
            told = await client.post(f"/v1/sessions/{session_id}/observe", json=body)
            assert told.status_code == 200, told.text


async def test_known_items_are_never_drawn_and_the_certificate_names_them(
    client: httpx.AsyncClient,
) -> None:
    loss = {"kind": "zero_one"}
    pool = await created(client, loss=loss, items=items(25), sealed=True)
    session = (await client.post("/v1/sessions", json={"pool_id": pool["id"]})).json()
    assert (session["known"], session["budget"], session["items"]) == (25, 15, 40)
    assert session["lower"] == pytest.approx(9 / 40)
    assert session["upper"] == pytest.approx(24 / 40)
    offered = await judged(client, session["id"])
    assert sorted(map(int, offered)) == list(range(25, 40))
    status = (await client.get(f"/v1/sessions/{session['id']}")).json()
    assert status["stop_reason"] == "exhausted"
    assert status["lower"] == status["upper"] == pytest.approx(14 / 40)
    await client.patch(f"/v1/sessions/{session['id']}", json={"state": "closed"})
    certificate = await client.get(f"/v1/sessions/{session['id']}/certificate")
    archive = await client.get(f"/v1/pools/{pool['id']}/columns.npz")
    report = verify(certificate.content, read_archive(io.BytesIO(archive.content)))
    assert report.valid, report.line
    assert report.claim is not None
    codes = [one["code"] for one in report.claim["assumptions"]]
    assert codes == ["these_answers", "known_losses", "signed_losses"]
    assert status["assumptions"] == report.claim["assumptions"]
    page = await client.get(f"/v1/sessions/{session['id']}/report")
    if page.status_code == 200:
        assert "known before the first draw" in page.text


async def test_where_all_is_known_there_is_no_session_but_an_audit(
    client: httpx.AsyncClient,
) -> None:
    loss = {"kind": "zero_one"}
    pool = await created(client, loss=loss, items=items(40), sealed=True)
    refused = await client.post("/v1/sessions", json={"pool_id": pool["id"]})
    assert refused.status_code == 422
    assert refused.json()["code"] == "nothing_to_judge"
    assert refused.json()["value"] == pytest.approx(14 / 40)
    opened = await client.post("/v1/sessions", json={"pool_id": pool["id"], "audit": True})
    assert opened.status_code == 201
    assert (opened.json()["known"], opened.json()["budget"]) == (0, 40)


CAPPED = "the rubric gives half marks at most"


async def test_bounds_come_with_reasons_which_are_counted_and_listed(
    client: httpx.AsyncClient,
) -> None:
    rows: list[dict[str, Any]] = [{"id": str(at)} for at in range(20)]
    rows[1] |= {"known": {"loss": 0.5, "reason": "empty answer"}}
    rows[2] |= {"loss_upper": 0.5, "bound_reason": CAPPED}
    rows[3] |= {"loss_lower": 0.25, "loss_upper": 0.5, "bound_reason": CAPPED}
    rows[4] |= {"loss_lower": 0.25}
    rows[5] |= {"loss_upper": 1.0, "bound_reason": "states nothing"}
    pool = await created(client, items=rows, sealed=True)
    assert pool["known"] == {
        "items": 1,
        "reasons": {"empty answer": 1},
        "bounded": 3,
        "bounds": {CAPPED: 2},
    }
    session = (await client.post("/v1/sessions", json={"pool_id": pool["id"]})).json()
    await judged(client, session["id"], 0.5)
    await client.patch(f"/v1/sessions/{session['id']}", json={"state": "closed"})
    certificate = await client.get(f"/v1/sessions/{session['id']}/certificate")
    archive = await client.get(f"/v1/pools/{pool['id']}/columns.npz")
    report = verify(certificate.content, read_archive(io.BytesIO(archive.content)))
    assert report.valid, report.line
    assert report.claim is not None
    told = {one["code"]: one["text"] for one in report.claim["assumptions"]}
    counted = (
        f"Those of 3 items lie within bounds stated of each: {CAPPED} (2), without a reason (1)."
    )
    assert counted in told["known_losses"]


async def test_a_bound_reason_travels_in_csv_and_without_a_bound_it_is_refused(
    client: httpx.AsyncClient,
) -> None:
    pool = await created(client)
    body = f"id,loss_upper,bound_reason\na,0.5,{CAPPED}\nb,,\n".encode()
    csv = {"Content-Type": "text/csv"}
    path = f"/v1/pools/{pool['id']}/items"
    sent = await client.post(path, content=body, headers=csv)
    assert sent.status_code == 200, sent.text
    assert (await client.get(f"/v1/pools/{pool['id']}")).json()["known"]["bounds"] == {CAPPED: 1}
    media = {"Content-Type": "application/x-ndjson"}
    for row in ({"bound_reason": CAPPED}, {"loss_upper": 0.5, "bound_reason": " "}):
        body = json.dumps({"id": "c"} | row).encode()
        refused = await client.post(path, content=body, headers=media)
        assert refused.status_code == 422, refused.text
        assert refused.json()["errors"][0]["field"] == "bound_reason"


async def test_a_loss_beside_its_own_bounds_is_refused(client: httpx.AsyncClient) -> None:
    bounded = [{"id": "a", "loss_upper": 0.25}]
    pool = await created(client, items=bounded, sealed=True)
    session = (await client.post("/v1/sessions", json={"pool_id": pool["id"]})).json()
    await client.post(f"/v1/sessions/{session['id']}/next", json={"worker": "ada"})
    refused = await client.post(
        f"/v1/sessions/{session['id']}/observe", json={"round": 1, "loss": 0.5, "worker": "ada"}
    )
    assert refused.status_code == 422
    assert refused.json()["code"] == "bound_contradicted"


async def test_a_judgement_that_contradicts_a_bound_is_kept_with_its_session(
    client: httpx.AsyncClient,
) -> None:
    rows = [{"id": "a", "loss_upper": 0.25}, {"id": "b", "loss_upper": 0.25}]
    pool = await created(client, items=rows, sealed=True)
    session = (await client.post("/v1/sessions", json={"pool_id": pool["id"]})).json()
    path = f"/v1/sessions/{session['id']}"
    [draw] = (await client.post(f"{path}/next", json={"worker": "ada"})).json()["draws"]
    before = await client.get(path)
    assert before.json()["contradictions"] == []
    for _ in range(2):
        refused = await client.post(
            f"{path}/observe", json={"round": 1, "loss": 0.5, "worker": "ada"}
        )
        assert refused.json()["code"] == "bound_contradicted"
        assert "opened with `audit`" in refused.json()["detail"]
    status = await client.get(path, headers={"If-None-Match": before.headers["ETag"]})
    assert status.status_code == 200
    [kept] = status.json()["contradictions"]
    name = draw["item"]["id"]
    assert (kept["item"], kept["loss"], kept["lower"], kept["upper"]) == (name, 0.5, 0.0, 0.25)
    assert f"a judgement of item {name} said 0.5" in status.json()["warnings"][0]
    # The item may still be judged, and what was said of it stays.
    told = await client.post(f"{path}/observe", json={"round": 1, "loss": 0.25, "worker": "ada"})
    assert told.status_code == 200
    assert len(told.json()["session"]["contradictions"]) == 1
    corrected = {"round": 1, "loss": 0.75, "reason": "looked again"}
    refused = await client.post(f"{path}/amendments", json=corrected)
    assert refused.json()["code"] == "bound_contradicted", refused.text
    assert [it["loss"] for it in (await client.get(path)).json()["contradictions"]] == [0.5, 0.75]
    report = await client.get(f"{path}/report")
    assert f"a judgement of item {name} said 0.75" in report.text
    audit = {"pool_id": pool["id"], "audit": True}
    assert (await client.post("/v1/sessions", json=audit)).status_code == 201

"""Weights over the wire: in digest and archive, claimed and verified."""

import io
import json
from typing import Any

import httpx
import numpy as np
import pytest

from celeus.core.certificate.verify import verify
from celeus.operations.certificates.npz import read_archive

WEIGHTS = [1.0, 250.0, 0.5, 3.0]
ROWS = [{"id": str(at), "weight": weight} for at, weight in enumerate(WEIGHTS)]
LOSS = {"kind": "zero_one"}


async def created(client: httpx.AsyncClient, **more: object) -> dict[str, Any]:
    answer = await client.post("/v1/pools", json={"name": "exam", "loss": LOSS} | more)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def archive(client: httpx.AsyncClient, pool_id: str) -> bytes:
    return (await client.get(f"/v1/pools/{pool_id}/columns.npz")).content


@pytest.mark.parametrize("weight", [0, -1, 1e16, 1e-16, "heavy", True, None])
async def test_what_is_no_weight_is_refused_by_name(
    client: httpx.AsyncClient, weight: object
) -> None:
    items = [{"id": "a", "weight": 1.0}, {"id": "b", "weight": weight}]
    answer = await client.post("/v1/pools", json={"name": "exam", "loss": LOSS, "items": items})
    assert answer.status_code == 422
    assert [(one["line"], one["field"]) for one in answer.json()["errors"]] == [(2, "weight")]


async def test_nan_is_refused_by_name(client: httpx.AsyncClient) -> None:
    pool_id = (await created(client))["id"]
    for body, media in (
        ('{"id": "a", "weight": NaN}', "application/x-ndjson"),
        ("id,weight\na,nan\n", "text/csv"),
    ):
        answer = await client.post(
            f"/v1/pools/{pool_id}/items", content=body, headers={"Content-Type": media}
        )
        assert [one["field"] for one in answer.json()["errors"]] == ["weight"]


async def test_weights_too_far_apart_are_refused_across_uploads(client: httpx.AsyncClient) -> None:
    pool_id = (await created(client, items=[{"id": "a", "weight": 1e-3}]))["id"]
    media = {"Content-Type": "application/x-ndjson"}
    for weight, status in ((1e6, 200), (1.1e6, 422), (0.9e-3, 422), (2e-3, 200)):
        body = json.dumps({"id": f"b {weight}", "weight": weight})
        answer = await client.post(f"/v1/pools/{pool_id}/items", content=body, headers=media)
        assert answer.status_code == status, answer.text
        if status == 422:
            problem = answer.json()
            assert (problem["code"], problem["field"]) == ("invalid_value", "weight")
            assert "1e+09 times" in problem["rule"]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"target": "population", "precision": 0.5}, "target"),
        ({"policy": "celeus"}, "policy"),
    ],
)
async def test_what_weights_do_not_go_with_is_refused_with_a_reason(
    client: httpx.AsyncClient, more: dict[str, object], field: str
) -> None:
    pool = await created(client, items=ROWS, sealed=True)
    answer = await client.post("/v1/sessions", json={"pool_id": pool["id"]} | more)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["field"] == field
    assert "where items have weights" in problem["rule"]


async def test_a_session_ends_at_the_weighted_mean_and_its_certificate_verifies(
    client: httpx.AsyncClient,
) -> None:
    chance = np.random.default_rng(2)
    weight = chance.lognormal(0.0, 1.0, 40)
    losses = (np.arange(40) % 3 == 0).astype(float)
    items = [{"id": str(at), "weight": float(one)} for at, one in enumerate(weight)]
    pool = await created(client, items=items, sealed=True)
    session = (await client.post("/v1/sessions", json={"pool_id": pool["id"]})).json()
    effective = weight.sum() ** 2 / (weight**2).sum()
    assert session["effective_items"] == pytest.approx(effective)
    place = f"/v1/sessions/{session['id']}"
    while draws := (await client.post(f"{place}/next", json={"worker": "ada"})).json()["draws"]:
        for draw in draws:
            loss = losses[int(draw["item"]["id"])]
            body = {"round": draw["round"], "loss": loss, "worker": "ada"}
            assert (await client.post(f"{place}/observe", json=body)).status_code == 200
    status = (await client.get(place)).json()
    risk = float(np.average(losses, weights=weight))
    assert status["lower"] == pytest.approx(risk)
    assert status["upper"] == pytest.approx(risk)
    assert (await client.get(f"{place}/surrogate")).json()["loss"] == pytest.approx(risk)
    await client.patch(place, json={"state": "closed"})
    certificate = (await client.get(f"{place}/certificate")).content
    stored = await archive(client, pool["id"])
    report = verify(certificate, read_archive(io.BytesIO(stored)))
    assert report.valid, report.line
    audited = await client.get(f"{place}/report")
    assert "weighted error rate" in audited.text
    assert f"{round(effective)} items of one weight" in audited.text

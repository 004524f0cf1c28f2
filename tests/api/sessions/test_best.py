"""Sessions that seek the best of several systems, from the pool to the verified certificate."""

import io
import json
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from celeus.core.certificates.verify import verify
from celeus.operations.certificates.audit import audit
from celeus.operations.certificates.npz import read_archive
from celeus.settings import Settings
from celeus.store.database import Database
from tests.factories import drawn
from tests.lineups import JUDGED, NAMES, Field, field


async def opened(client: AsyncClient, pool: Field, **settings: object) -> str:
    body = {"pool_id": pool.id, "best": True} | settings
    answer = await client.post("/v1/sessions", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def observed(client: AsyncClient, session: str, round_: int, **said: object) -> Any:  # noqa: ANN401
    body = {"round": round_, "worker": "ada"} | said
    return await client.post(f"/v1/sessions/{session}/observe", json=body)


async def status_of(client: AsyncClient, session: str) -> dict[str, Any]:
    status: dict[str, Any] = (await client.get(f"/v1/sessions/{session}")).json()
    return status


async def judged(
    client: AsyncClient, session: str, pool: Field, *, ahead: int = 3, most: int = 10_000
) -> None:
    """Judge until the session has nothing more to draw, the last of several draws first."""
    for _ in range(most):
        draws = (await drawn(client, session, ahead))["draws"]
        if not draws:
            return
        for draw in reversed(draws):
            said = pool.said(draw["item"]["index"])
            answer = await observed(client, session, draw["round"], **said)
            assert answer.status_code == 200, answer.text


async def certified(client: AsyncClient, session: str) -> bytes:
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    answer = await client.get(f"/v1/sessions/{session}/certificate")
    assert answer.status_code == 200, answer.text
    return answer.content


def best_of(pool: Field) -> str:
    means = [sum(one) / len(one) for one in zip(*pool.losses, strict=True)]
    return pool.names[means.index(min(means))]


@pytest.mark.parametrize("kind", JUDGED)
async def test_a_session_ends_with_the_best(client: AsyncClient, kind: str) -> None:
    pool = await field(client, kind)
    session = await opened(client, pool, alpha=0.2)
    status = await status_of(client, session)
    assert status["known"] == sum(pool.known)
    assert status["best"]["standing"] == list(NAMES)
    assert (status["lower"], status["policy"]) == (None, None)
    await judged(client, session, pool)
    status = await status_of(client, session)
    assert (status["state"], status["stop_reason"]) == ("decided", "decided")
    best = best_of(pool)
    assert (status["best"]["winner"], status["best"]["standing"]) == (best, [best])
    states = {one["name"]: one for one in status["best"]["systems"]}
    assert states[best]["state"] == "leading"
    assert {one["state"] for one in states.values()} == {"leading", "out"}
    assert all(one["round"] <= status["round"] for one in states.values() if one["round"])
    assert states["tiny"]["estimate"] > 0.1


@pytest.mark.parametrize("kind", JUDGED)
async def test_certificate_report_and_audit_of_the_best(
    client: AsyncClient, settings: Settings, kind: str
) -> None:
    pool = await field(client, kind)
    session = await opened(client, pool, alpha=0.2)
    await judged(client, session, pool)
    data = await certified(client, session)
    columns = await client.get(f"/v1/pools/{pool.id}/columns.npz")
    items = [json.dumps(one).encode() for one in pool.items]
    report = verify(data, read_archive(io.BytesIO(columns.content)), items=items)
    assert report.valid, report.line
    assert {"draws", "probabilities", "labels", "items", "claim"} <= set(report.checked)
    assert report.claim is not None
    assert report.claim["best"]["winner"] == best_of(pool)
    # What the systems answered stands in the columns only
    alone = verify(data).difference
    assert alone is not None
    assert alone.where == "the pool"
    page = (await client.get(f"/v1/sessions/{session}/report")).text
    assert f"{best_of(pool)} is the best of 4 systems, 80" in page
    database = Database.connect(str(settings.database_url), pool_size=1)
    result = await audit(database)
    await database.close()
    assert not [one.line for one in result.findings if session in one.line or pool.id in one.line]
    assert result.sessions


async def test_an_interim_certificate_names_those_that_may_be_best(client: AsyncClient) -> None:
    pool = await field(client, "answers")
    session = await opened(client, pool)
    await judged(client, session, pool, most=4)
    data = (await client.get(f"/v1/sessions/{session}/certificate")).content
    columns = await client.get(f"/v1/pools/{pool.id}/columns.npz")
    report = verify(data, read_archive(io.BytesIO(columns.content)))
    assert report.valid, report.line
    assert report.claim is not None
    assert report.claim["best"]["winner"] is None
    assert report.unchecked["draws"] == "the seed is revealed by the final certificate only"
    page = (await client.get(f"/v1/sessions/{session}/report")).text
    assert "The best of 4 systems is qwen-72b, llama-70b" in page
    assert "which is no claim" in page


async def test_a_state_made_again_from_the_ledger_is_the_same(
    client: AsyncClient, app: FastAPI
) -> None:
    pool = await field(client, "answers")
    session = await opened(client, pool)
    await judged(client, session, pool, most=9)
    before = (await drawn(client, session, 3))["draws"]
    status = await status_of(client, session)
    app.state.context.states._slots.clear()
    after = (await drawn(client, session, 3))["draws"]
    assert [(one["round"], one["answers"]) for one in before] == [
        (one["round"], one["answers"]) for one in after
    ]
    answer = await observed(client, session, before[0]["round"], **pool.said_blind(before[0]))
    assert answer.status_code == 200, answer.text
    again = await observed(client, session, before[0]["round"], **pool.said_blind(before[0]))
    assert again.json()["receipt"]["replayed"]
    seen = await status_of(client, session)
    assert seen["round"] == status["round"] + 1
    other = {"losses": [1.0 - one for one in pool.said_blind(before[0])["losses"]]}
    answer = await observed(client, session, before[0]["round"], **other)
    assert (answer.status_code, answer.json()["code"]) == (409, "observation_conflict")

"""Surrogate and workers of a session, checked against the truth and the ledger."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import psycopg
import pytest
from httpx import AsyncClient
from sqlalchemy import text

from celeus.operations.insights import surrogate as operations
from celeus.operations.sessions.ledger import with_kinds
from celeus.store.database import Database
from tests.conftest import Execute
from tests.factories import KnownPool, drawn, judged, known_pool, labelled, opened, sealed


async def surrogate(client: AsyncClient, session: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/sessions/{session}/surrogate")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def workers(client: AsyncClient, session: str, **query: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = await client.get(f"/v1/sessions/{session}/workers", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def scores_of(client: AsyncClient, pool: KnownPool) -> list[float]:
    """The surrogates a pool was made with: its factory draws them first."""
    document = (await client.get(f"/v1/pools/{pool.id}")).json()
    return [float(guess) for guess in np.random.default_rng(0).random(document["items"])]


async def test_an_exhausted_pool_shows_the_true_calibration_of_its_surrogate(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, 60)
    session = await opened(client, pool)
    await labelled(client, session, pool, 60)
    found = await surrogate(client, session)
    scores = np.array(await scores_of(client, pool))
    losses = np.array(pool.losses)
    assert found["labels"] == found["round"] == 60
    assert found["loss"] == pytest.approx(pool.risk)
    assert found["surrogate"] == pytest.approx(float(scores.mean()))
    assert found["correlation"] == pytest.approx(float(np.corrcoef(scores, losses)[0, 1]))
    assert sum(part["items"] for part in found["curve"]) == 60
    for part in found["curve"]:
        here = (scores >= part["least"]) & (scores <= part["largest"])
        assert part["labels"] == part["items"] == int(here.sum())
        assert part["loss"] == pytest.approx(float(losses[here].mean()))
    assert not {"savings", "uniform_labels"} & set(found)


async def test_only_folded_rounds_and_the_last_word_on_each_count(client: AsyncClient) -> None:
    pool = await known_pool(client, 80)
    session = await opened(client, pool)
    offer = await drawn(client, session, 12)
    first, *others = offer["draws"]
    for draw in others[1:]:
        await judged(client, session, pool, draw)
    assert (await surrogate(client, session))["labels"] == 0
    await judged(client, session, pool, first)
    assert (await surrogate(client, session))["labels"] == 1
    body = {"round": others[0]["round"], "unjudgeable": "torn", "worker": "ada"}
    await client.post(f"/v1/sessions/{session}/observe", json=body)
    found = await surrogate(client, session)
    assert (found["round"], found["labels"]) == (12, 11)
    before = found["loss"]
    wrong = 1 - pool.losses[first["item"]["index"]]
    amendment = {"round": 1, "loss": wrong, "author": "ada", "reason": "looked again"}
    await client.post(f"/v1/sessions/{session}/amendments", json=amendment)
    amended = await surrogate(client, session)
    assert amended["labels"] == 11
    assert (amended["loss"] > before) == (wrong == 1)
    assert amended["revision"] == 2


async def test_a_judged_round_changes_the_etag_and_nothing_else_does(client: AsyncClient) -> None:
    pool = await known_pool(client, 60)
    session = await opened(client, pool, precision=0.2)
    path = f"/v1/sessions/{session}/surrogate"
    first = await client.get(path)
    held = {"If-None-Match": first.headers["ETag"]}
    offer = await drawn(client, session)
    assert (await client.get(path, headers=held)).status_code == 304
    await judged(client, session, pool, offer["draws"][0])
    fresh = await client.get(path, headers=held)
    assert fresh.status_code == 200
    assert fresh.headers["ETag"] != first.headers["ETag"]
    held = {"If-None-Match": fresh.headers["ETag"]}
    await client.patch(f"/v1/sessions/{session}", json={"precision": 0.3})
    assert (await client.get(path, headers=held)).status_code == 304


async def test_looking_waits_for_nobody_who_writes(client: AsyncClient, database_url: str) -> None:
    pool = await known_pool(client, 40)
    session = await opened(client, pool)
    await labelled(client, session, pool, 3)
    with psycopg.connect(database_url) as db:
        lock = "SELECT 1 FROM sessions WHERE session_id = %s FOR UPDATE"
        db.execute(lock, [session.removeprefix("ses_")])
        async with asyncio.timeout(5):
            assert (await surrogate(client, session))["labels"] == 3
            assert (await workers(client, session))["labels_hour"] == 3


@pytest.mark.parametrize("kind", ["none", "cross entropy"])
async def test_any_pool_can_be_asked(client: AsyncClient, kind: str) -> None:
    items: list[dict[str, Any]] = [{"id": str(number)} for number in range(20)]
    loss: dict[str, Any] = {"kind": "zero_one"}
    if kind == "cross entropy":
        loss = {"kind": "cross_entropy", "upper": 5.0}
        items = [item | {"target_probs": [0.5, 0.3, 0.2]} for item in items]
    pool = await sealed(client, items, loss=loss)
    for policy in ("sharp", "celeus"):
        session = await opened(client, pool, policy=policy)
        assert (await surrogate(client, session))["labels"] == 0
        draw = (await drawn(client, session))["draws"][0]
        judgement = {"round": draw["round"], "loss": 1.0, "worker": "ada"}
        await client.post(f"/v1/sessions/{session}/observe", json=judgement)
        found = await surrogate(client, session)
        assert [part["labels"] for part in found["curve"]] == [1]
        assert found["correlation"] is None


async def test_workers_are_told_with_what_they_did_and_what_they_hold(client: AsyncClient) -> None:
    pool = await known_pool(client, 60)
    session = await opened(client, pool, lease_seconds=60)
    ada = await drawn(client, session, 3, "ada")
    bob = await drawn(client, session, 2, "bob")
    await judged(client, session, pool, ada["draws"][0])
    await judged(client, session, pool, ada["draws"][1], worker="cleo")
    found = await workers(client, session)
    assert [worker["worker"] for worker in found["data"]] == ["ada", "bob", "cleo"]
    assert [worker["labels_minute"] for worker in found["data"]] == [1, 0, 1]
    assert [worker["labels_hour"] for worker in found["data"]] == [1, 0, 1]
    assert (found["labels_minute"], found["labels_hour"], found["draws"]) == (2, 2, 3)
    assert [len(worker["draws"]) for worker in found["data"]] == [1, 2, 0]
    assert found["data"][1]["last_label_at"] is None
    held = found["data"][1]["draws"]
    assert [draw["round"] for draw in held] == [draw["round"] for draw in bob["draws"]]
    assert [when(draw["expires_at"]) for draw in held] == [
        when(draw["expires_at"]) for draw in bob["draws"]
    ]
    assert when(found["at"]) - when(found["since"]) == timedelta(hours=1)


async def test_workers_are_paged_by_name(client: AsyncClient) -> None:
    pool = await known_pool(client, 60)
    session = await opened(client, pool)
    names = ["Ärger", "ada", "bob", "<script>", "z'z"]
    for name in names:
        await drawn(client, session, 1, name)
    seen: list[str] = []
    after: dict[str, str] = {}
    for _ in range(4):
        page = await workers(client, session, limit=2, **after)
        assert page["draws"] == 5
        seen += [worker["worker"] for worker in page["data"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert seen == sorted(names)


async def test_only_the_last_minute_and_hour_are_counted(
    client: AsyncClient, execute: Execute
) -> None:
    pool = await known_pool(client, 120)
    session = await opened(client, pool)
    await labelled(client, session, pool, 30)
    aged = """
        UPDATE events SET at = now() - CASE WHEN round <= 11 THEN interval '61 minutes'
            WHEN round <= 18 THEN interval '2 minutes' ELSE interval '1 second' END
        WHERE session_id = %s
        """
    execute(aged, [session.removeprefix("ses_")])
    found = await workers(client, session)
    assert (found["labels_minute"], found["labels_hour"]) == (12, 19)
    assert [worker["labels_hour"] for worker in found["data"]] == [19]


def when(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_the_rounds_are_read_in_one_pass_whatever_the_database_knows(
    client: AsyncClient, database: Database
) -> None:
    """Joined, the 10 000 rounds of a young session took 26 s: all of them for every one."""
    await opened(client, await known_pool(client, 40))
    explained = with_kinds("EXPLAIN " + operations._JUDGEMENTS.text)
    async with database.transaction() as db:
        [session_id] = (await db.execute(text("SELECT session_id FROM sessions"))).scalars()
        plan = await db.execute(explained, {"session_id": session_id, "folded": 9})
        lines = "\n".join(plan.scalars())
    assert "events" in lines
    assert "Loop" not in lines
    assert "Join" not in lines

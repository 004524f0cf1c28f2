"""Comments on judgements: the last one stands, they are erased for good, and no ledger has them."""

from typing import Any

from httpx import AsyncClient, Response

from tests.api.sessions.test_raters import first_round, panelled, rate
from tests.factories import drawn, judged, known_pool, numbers_of, opened
from tests.keys import bearer, key_in


async def comments(client: AsyncClient, session: str, **query: int) -> list[dict[str, Any]]:
    answer = await client.get(f"/v1/sessions/{session}/comments", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def post(client: AsyncClient, path: str, key: str | None = None, **body: object) -> Response:
    return await client.post(path, json=body, headers={} if key is None else bearer(key))


async def test_a_comment_is_kept_beside_the_judgement_and_in_no_ledger(client: AsyncClient) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    first, second = (await drawn(client, session, 2))["draws"]
    await judged(client, session, pool, first, comment="Ambiguous: Wien or Vienna?")
    await judged(client, session, pool, second)
    (kept,) = await comments(client, session)
    assert (
        kept.items()
        >= {
            "round": first["round"],
            "item": first["item"]["id"],
            "comment": "Ambiguous: Wien or Vienna?",
            "author": "of a test",
            "worker": "ada",
            "rater": None,
        }.items()
    )
    for path in ("ledger", "certificate", "report"):
        answer = await client.get(f"/v1/sessions/{session}/{path}")
        assert "Ambiguous" not in answer.text, path


async def test_the_same_loss_with_another_comment_is_no_conflict(client: AsyncClient) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    draw = (await drawn(client, session))["draws"][0]
    first = await judged(client, session, pool, draw, comment="first")
    again = await judged(client, session, pool, draw, comment="second")
    assert again["receipt"] == first["receipt"] | {"replayed": True}
    assert [comment["comment"] for comment in await comments(client, session)] == ["second"]
    assert (await judged(client, session, pool, draw))["receipt"]["replayed"]
    assert [comment["comment"] for comment in await comments(client, session)] == ["second"], (
        "as it was"
    )
    amended = await post(
        client,
        f"/v1/sessions/{session}/amendments",
        round=draw["round"],
        loss=1 - pool.losses[draw["item"]["index"]],
        reason="misread",
        comment="third",
    )
    assert amended.status_code == 200
    assert [comment["comment"] for comment in await comments(client, session)] == ["third"]
    assert (await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})).is_success
    await judged(client, session, pool, draw, comment="")
    assert await comments(client, session) == [], "an empty one erases it"


async def test_a_judgement_that_is_refused_keeps_no_comment(client: AsyncClient) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    first, second = (await drawn(client, session, 2))["draws"]
    path = f"/v1/sessions/{session}/observe"
    judgements = [
        {"round": first["round"], "loss": 0, "comment": "kept by nobody"},
        {"round": second["round"], "loss": 7},
    ]
    assert (await post(client, path, observations=judgements, worker="ada")).status_code == 422
    long = "x" * 2001
    answer = await post(client, path, round=first["round"], loss=0, worker="ada", comment=long)
    assert answer.status_code == 422
    assert await comments(client, session) == []
    judgements[1]["loss"] = 1
    assert (await post(client, path, observations=judgements, worker="ada")).status_code == 200
    assert [comment["comment"] for comment in await comments(client, session)] == ["kept by nobody"]


async def test_blind_keys_comment_and_read_nobodys(client: AsyncClient, database_url: str) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    key, other = key_in(database_url, "label"), key_in(database_url, "label")
    path = f"/v1/sessions/{session}"
    draw = (await post(client, f"{path}/next", key, worker="w", count=1)).json()["draws"][0]
    judgement = {"round": draw["round"], "loss": 0, "worker": "w", "comment": "hm"}
    answer = await post(client, f"{path}/observe", key, **judgement)
    assert answer.status_code == 200
    refused = await post(client, f"{path}/observe", other, **judgement | {"comment": "mine"})
    assert refused.json()["code"] == "round_not_held"
    seen = await client.get(f"{path}/comments", headers=bearer(key))
    assert seen.status_code == 403
    (kept,) = await comments(client, session)
    ledgers = numbers_of(database_url, session).round_of(draw["round"])
    assert (kept["round"], kept["comment"]) == (ledgers, "hm")
    amended = await post(
        client,
        f"{path}/amendments",
        key,
        round=draw["round"],
        loss=1,
        reason="slip",
        comment="hm!",
    )
    assert amended.status_code == 200, amended.text
    assert [comment["comment"] for comment in await comments(client, session)] == ["hm!"]


async def test_comments_are_erased_for_good(client: AsyncClient, database_url: str) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    draws = (await drawn(client, session, 3))["draws"]
    for draw in draws:
        await judged(client, session, pool, draw, comment="said with everything")
    other = key_in(database_url, "label", "read")
    body = {"round": 1, "loss": pool.losses[draws[0]["item"]["index"]], "worker": "bob"}
    path = f"/v1/sessions/{session}"
    assert (await post(client, f"{path}/observe", other, **body, comment="and I")).is_success
    assert [comment["round"] for comment in await comments(client, session)] == [1, 1, 2, 3]
    assert [comment["round"] for comment in await comments(client, session, limit=1)] == [1, 1]
    assert [comment["round"] for comment in await comments(client, session, after=1, limit=1)] == [
        2
    ]
    answer = await client.delete(f"{path}/comments", params={"round": 1}, headers=bearer(other))
    assert answer.status_code == 403
    assert (await client.delete(f"{path}/comments")).status_code == 422
    key = other.split("_")[1]
    assert (await client.delete(f"{path}/comments", params={"key": key})).json() == {"erased": 1}
    assert (await client.delete(f"{path}/comments", params={"round": 2})).json() == {"erased": 1}
    assert [comment["round"] for comment in await comments(client, session)] == [1, 3]
    unknown = "/v1/sessions/ses_" + "0" * 32 + "/comments"
    assert (await client.get(unknown)).status_code == 404
    assert (await client.delete(unknown, params={"round": 1})).status_code == 404


async def test_raters_of_a_panel_have_a_comment_each(client: AsyncClient) -> None:
    session, _ = await panelled(client)
    asked, draw = await first_round(client, session)
    for name in asked[:2]:
        assert (await rate(client, session, name, draw, loss=0, comment=f"by {name}")).is_success
    kept = await comments(client, session)
    assert {rater["rater"]: rater["comment"] for rater in kept} == {
        rater: f"by {rater}" for rater in asked[:2]
    }

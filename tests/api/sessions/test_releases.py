"""Draws that are given back: who may, who gets them, and what becomes of their first holder."""

from typing import Any

from httpx import AsyncClient

from tests.conftest import Execute
from tests.factories import drawn, judged, known_pool, opened
from tests.keys import bearer, key_in

PASS: dict[str, Any] = {"pass": True}


async def release(client: AsyncClient, session: str, key: str | None = None, **body: object) -> int:
    headers = {} if key is None else bearer(key)
    answer = await client.post(f"/v1/sessions/{session}/release", json=body, headers=headers)
    return len(answer.json()["released"]) if answer.status_code == 200 else -answer.status_code


async def test_what_was_given_back_goes_to_whoever_asks_first(client: AsyncClient) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    held = (await drawn(client, session, 2))["draws"]
    assert [draw["round"] for draw in held] == [1, 2]
    assert (await drawn(client, session, 1, "bob"))["draws"][0]["round"] == 3
    assert await release(client, session, worker="ada", rounds=[2]) == 1
    assert [draw["round"] for draw in (await drawn(client, session, 2, "bob"))["draws"]] == [2, 3]
    assert await release(client, session, worker="ada") == 1
    assert await release(client, session, worker="ada") == 0, "there is nothing left"
    handed = (await drawn(client, session, 3, "bob"))["draws"]
    assert [draw["round"] for draw in handed] == [1, 2, 3]
    assert handed[0]["item"] == held[0]["item"]
    ledger = (await client.get(f"/v1/sessions/{session}/ledger")).json()["data"]
    assert [event["kind"] for event in ledger] == ["draw"] * 3, "it is no event"


async def test_who_gave_it_back_may_judge_it_until_somebody_else_has(client: AsyncClient) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    first, second = (await drawn(client, session, 2))["draws"]
    assert await release(client, session, worker="ada") == 2
    assert (await drawn(client, session, 1, "bob"))["draws"][0]["round"] == first["round"]
    late = await judged(client, session, pool, second)
    assert late["receipt"]["replayed"] is False
    await judged(client, session, pool, first, worker="bob")
    body = {"round": first["round"], "loss": 1 - pool.losses[first["item"]["index"]]}
    answer = await client.post(f"/v1/sessions/{session}/observe", json=body | {"worker": "ada"})
    assert (answer.status_code, answer.json()["code"]) == (409, "observation_conflict")


async def test_a_worker_is_one_of_the_key_that_asks(client: AsyncClient, database_url: str) -> None:
    session = await opened(client, await known_pool(client))
    await drawn(client, session, 2)
    stranger = key_in(database_url, "label")
    assert await release(client, session, stranger, worker="ada") == 0
    assert await release(client, session, stranger, rounds=[1]) == -403
    assert await release(client, session, key_in(database_url, "read"), worker="ada") == -403
    manager = key_in(database_url, "manage")
    assert await release(client, session, manager, rounds=[1, 7, 2**31 - 1]) == 1
    assert await release(client, session, manager, worker="ada") == 0, "its own are meant"
    held = await drawn(client, session, 3, "bob")
    assert [draw["round"] for draw in held["draws"]] == [1, 3, 4]


async def test_a_blind_key_gives_back_by_the_numbers_it_knows(
    client: AsyncClient, database_url: str
) -> None:
    session = await opened(client, await known_pool(client))
    key = key_in(database_url, "label")
    path = f"/v1/sessions/{session}"
    body = {"worker": "ada", "count": 2}
    draws = (await client.post(f"{path}/next", json=body, headers=bearer(key))).json()["draws"]
    numbers = [draw["round"] for draw in draws]
    assert sorted(numbers) != [1, 2], "they tell nothing of how many there are"
    given = {"worker": "ada", "rounds": numbers[:1]}
    answer = await client.post(f"{path}/release", json=given, headers=bearer(key))
    assert answer.json() == {"released": numbers[:1]}
    handed = (await drawn(client, session, 1, "bob"))["draws"]
    assert handed[0]["item"]["id"] == draws[0]["item"]["id"]
    late = {"round": numbers[1], "loss": 0, "worker": "ada"}
    answer = await client.post(f"{path}/observe", json=late, headers=bearer(key))
    assert answer.status_code == 200, answer.text


async def test_what_says_nothing_is_refused_and_a_closed_session_has_nothing(
    client: AsyncClient,
) -> None:
    session = await opened(client, await known_pool(client))
    await drawn(client, session)
    answer = await client.post(f"/v1/sessions/{session}/release", json={})
    assert (answer.status_code, answer.json()["rule"]) == (422, "a worker, rounds, or both")
    closed = await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    assert closed.status_code == 200
    assert await release(client, session, worker="ada") in {0, 1}
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["state"] == "closed"
    unknown = "ses_" + "0" * 32
    answer = await client.post(f"/v1/sessions/{unknown}/release", json={"worker": "ada"})
    assert answer.status_code == 404


async def test_what_is_passed_on_goes_to_somebody_else(client: AsyncClient) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    first = (await drawn(client, session))["draws"][0]
    passed: dict[str, Any] = {"worker": "ada", "rounds": [first["round"]]} | PASS
    assert await release(client, session, **passed) == 1
    assert await release(client, session, **passed) == 0
    mine = [(await drawn(client, session, 4))["draws"] for _ in range(2)]
    assert [draw["round"] for draw in mine[1]] == [2, 3, 4, 5], "others come for the first"
    taken = (await drawn(client, session, 1, "bob"))["draws"][0]
    assert (taken["round"], taken["item"]) == (first["round"], first["item"])
    assert await release(client, session, worker="bob", rounds=[1], **PASS) == 1
    assert [draw["round"] for draw in (await drawn(client, session, 1, "bob"))["draws"]] == [6]
    assert (await drawn(client, session, 1, "cid"))["draws"][0]["round"] == 1
    ledger = (await client.get(f"/v1/sessions/{session}/ledger")).json()["data"]
    assert [event["kind"] for event in ledger] == ["draw"] * 6, "what is drawn stays drawn"


async def test_what_a_blind_key_passes_on_counts_in_its_share(
    client: AsyncClient, ann: AsyncClient, execute: Execute
) -> None:
    """Else it could look at the whole pool, and judge what it likes."""
    pool = await known_pool(client, 40)
    session = await opened(client, pool)
    seen = set()
    for number in range(60):
        # Another window is the same person
        worker = f"window {number}"
        found = (await drawn(ann, session, 1, worker))["draws"]
        if found[0]["item"]["id"] in seen:
            break
        seen.add(found[0]["item"]["id"])
        await release(ann, session, worker=worker, **PASS)
    assert len(seen) == 20, "half of what may be out"
    # What nobody else has taken meanwhile comes back to it
    execute("UPDATE leases SET expires_at = now() - interval '1 hour'")
    again = (await drawn(ann, session, 4, "one"))["draws"]
    assert len(again) == 4
    assert {draw["item"]["id"] for draw in again} <= seen


async def test_what_nobody_takes_comes_back_after_a_lease(
    client: AsyncClient, execute: Execute
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    first = (await drawn(client, session))["draws"][0]
    await release(client, session, worker="ada", **PASS)
    assert (await drawn(client, session))["draws"][0]["round"] == 2
    execute("UPDATE leases SET expires_at = now() - interval '1 hour'")
    rounds = [draw["round"] for draw in (await drawn(client, session, 2))["draws"]]
    assert rounds == [first["round"], 2]

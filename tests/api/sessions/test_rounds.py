"""The loop of a judge: next and observe, asked twice, out of order, and wrongly."""

from typing import Any

import pytest
from httpx import AsyncClient

from tests.conftest import Execute
from tests.factories import drawn, judged, known_pool, opened, sealed, status_of
from tests.keys import bearer, key_in


async def ledger(client: AsyncClient, session: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get(f"/v1/sessions/{session}/ledger")).json()[
        "data"
    ]
    return found


async def test_asking_again_gives_the_same_draw_and_renews_its_lease(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client))
    first = (await drawn(client, session))["draws"][0]
    again = (await drawn(client, session))["draws"][0]
    assert again["round"] == first["round"]
    assert again["item"] == first["item"]
    assert again["expires_at"] > first["expires_at"]
    assert len(await ledger(client, session)) == 1


async def test_an_expired_lease_hands_the_same_draw_to_the_next_caller(
    client: AsyncClient, execute: Execute
) -> None:
    session = await opened(client, await known_pool(client))
    first = (await drawn(client, session))["draws"][0]
    other = (await drawn(client, session, 1, "bob"))["draws"][0]
    assert other["round"] == 2
    execute("UPDATE leases SET expires_at = now() - interval '1 second'")
    handed = (await drawn(client, session, 2, "cy"))["draws"]
    assert [draw["round"] for draw in handed] == [1, 2]
    assert handed[0]["item"] == first["item"]


async def test_a_late_loss_is_taken_and_the_same_loss_again_gets_the_first_receipt(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    draw = (await drawn(client, session))["draws"][0]
    first = await judged(client, session, pool, draw)
    again = await judged(client, session, pool, draw, worker="bob")
    assert first["receipt"] == {"round": 1, "sequence": 2, "replayed": False, "duplicate": False}
    assert again["receipt"] == {"round": 1, "sequence": 2, "replayed": True, "duplicate": False}
    assert [event["kind"] for event in await ledger(client, session)] == ["draw", "observation"]


async def test_another_loss_for_a_judged_round_is_a_conflict_and_changes_nothing(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    draw = (await drawn(client, session))["draws"][0]
    before = (await judged(client, session, pool, draw))["session"]
    other = 1 - pool.losses[draw["item"]["index"]]
    answer = await client.post(
        f"/v1/sessions/{session}/observe", json={"round": 1, "loss": other, "worker": "ada"}
    )
    assert answer.status_code == 409
    assert answer.json()["code"] == "observation_conflict"
    assert await status_of(client, session) == before


async def test_a_list_is_taken_all_or_not_at_all(client: AsyncClient) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    draws = (await drawn(client, session, 3))["draws"]
    good = [{"round": draw["round"], "loss": pool.losses[draw["item"]["index"]]} for draw in draws]
    bad = [*good[:2], {"round": 9, "loss": 0}]
    url = f"/v1/sessions/{session}/observe"
    refused = await client.post(url, json={"observations": bad, "worker": "ada"})
    assert (refused.status_code, refused.json()["code"]) == (404, "round_not_drawn")
    assert (await status_of(client, session))["rounds"]["judged"] == 0
    taken = await client.post(url, json={"observations": [*good, good[0]], "worker": "ada"})
    replayed = [receipt["replayed"] for receipt in taken.json()["receipts"]]
    assert replayed == [False, False, False, True]
    assert taken.json()["session"]["rounds"]["in_interval"] == 3


async def test_a_round_without_a_judgement_cannot_be_amended(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client))
    await drawn(client, session)
    body = {"round": 1, "loss": 0, "author": "ada", "reason": "typo"}
    answer = await client.post(f"/v1/sessions/{session}/amendments", json=body)
    assert (answer.status_code, answer.json()["code"]) == (409, "round_not_judged")


async def test_a_label_becomes_the_loss_of_the_prediction(client: AsyncClient) -> None:
    items = [{"id": str(i), "prediction": i % 3} for i in range(12)]
    pool = await sealed(client, items)
    session = await opened(client, pool)
    for draw in (await drawn(client, session, 12))["draws"]:
        label = {"round": draw["round"], "label": 1, "worker": "ada"}
        await client.post(f"/v1/sessions/{session}/observe", json=label)
    events = await ledger(client, session)
    items_of = {event["round"]: event["item"] for event in events if event["kind"] == "draw"}
    losses = {
        items_of[event["round"]]: event["loss"]
        for event in events
        if event["kind"] == "observation"
    }
    assert losses == {i: float(i % 3 != 1) for i in range(12)}


@pytest.mark.parametrize("way", ["observe", "amendments"])
async def test_losses_in_an_order_say_nothing_of_one_system(client: AsyncClient, way: str) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    draw = (await drawn(client, session))["draws"][0]
    judgement: dict[str, Any] = {"round": draw["round"], "losses": [0.0]}
    if way == "observe":
        judgement = {"worker": "ada", "observations": [judgement]}
    else:
        await judged(client, session, pool, draw)
        judgement |= {"author": "ada", "reason": "misread"}
    answer = await client.post(f"/v1/sessions/{session}/{way}", json=judgement)
    assert answer.status_code == 422
    assert "exactly one of" in answer.text


@pytest.mark.parametrize(
    ("body", "status_code", "field"),
    [
        ({"round": 1, "loss": "0", "worker": "ada"}, 422, "loss"),
        ({"round": 1, "loss": True, "worker": "ada"}, 422, "loss"),
        ({"round": 1, "loss": 0.5, "worker": "ada"}, 422, "loss"),
        ({"round": 1, "loss": 2, "worker": "ada"}, 422, "loss"),
        ({"round": True, "loss": 1, "worker": "ada"}, 422, "round"),
        ({"round": 0, "loss": 1, "worker": "ada"}, 422, "round"),
        ({"round": 2, "loss": 1, "worker": "ada"}, 404, "round"),
        ({"round": 1, "worker": "ada"}, 422, "body"),
        ({"round": 1, "loss": 1, "label": 1, "worker": "ada"}, 422, "body"),
        ({"round": 1, "label": 1, "worker": "ada"}, 422, "label"),
        ({"round": 1, "loss": 1, "worker": ""}, 422, "worker"),
        ({"round": 1, "loss": 1}, 422, "worker"),
        ({"round": 1, "loss": 1, "worker": "ada", "next": 257}, 422, "next"),
        ({"observations": [], "worker": "ada"}, 422, "observations"),
        ({"observations": [{"round": 1, "loss": 7}], "worker": "ada"}, 422, "loss"),
    ],
)
async def test_a_bad_observation_names_its_field_and_changes_nothing(
    client: AsyncClient, body: dict[str, Any], status_code: int, field: str
) -> None:
    session = await opened(client, await known_pool(client, 30))
    await drawn(client, session)
    before = await status_of(client, session)
    answer = await client.post(f"/v1/sessions/{session}/observe", json=body)
    assert answer.status_code == status_code
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["field"].split(".")[-1] == field
    assert answer.json()["rule"]
    assert await status_of(client, session) == before
    assert len(await ledger(client, session)) == 1


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
async def test_a_number_that_is_none_is_refused(client: AsyncClient, number: str) -> None:
    session = await opened(client, await known_pool(client, 30))
    await drawn(client, session)
    answer = await client.post(
        f"/v1/sessions/{session}/observe",
        content=f'{{"round": 1, "loss": {number}, "worker": "ada"}}',
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 422
    assert answer.json()["field"] == "loss"


async def test_all_leased_says_when_to_ask_again(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client), budget=2, lease_seconds=60)
    await drawn(client, session, 2)
    answer = await drawn(client, session, 1, "bob")
    assert (answer["state"], answer["draws"]) == ("all_leased", [])
    assert 1 <= answer["retry_after"] <= 60


async def test_who_asks_for_no_draw_is_not_told_to_wait(client: AsyncClient) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool)
    draws = (await drawn(client, session, 2))["draws"]
    answer = await judged(client, session, pool, draws[0])
    assert (answer["state"], answer["draws"], answer["retry_after"]) == ("active", [], None)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("next", {"worker": "a\0"}),
        ("observe", {"round": 1, "loss": 1, "worker": "a\0"}),
        ("observe", {"round": 1, "unjudgeable": "\0", "worker": "a"}),
        ("observe", {"observations": [{"round": 1, "unjudgeable": "\0"}], "worker": "a"}),
        ("observe", {"round": 1, "label": 2**64, "worker": "a"}),
        ("amendments", {"round": 1, "loss": 0, "author": "\0", "reason": "typo"}),
        ("amendments", {"round": 1, "loss": 0, "author": "a", "reason": "\0"}),
    ],
)
async def test_what_the_database_cannot_hold_is_refused(
    client: AsyncClient, path: str, body: dict[str, Any]
) -> None:
    session = await opened(client, await known_pool(client))
    await drawn(client, session)
    answer = await client.post(f"/v1/sessions/{session}/{path}", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_value")


async def test_a_payload_with_large_numbers_reaches_its_judge(client: AsyncClient) -> None:
    payload = {"account": 2**53 - 1, "size": 9e15}
    items = [{"id": "a", "payload": payload}]
    pool = await sealed(client, items)
    opening = await client.post("/v1/sessions", json={"pool_id": pool})
    answer = await drawn(client, opening.json()["id"])
    assert answer["draws"][0]["item"]["payload"] == payload


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

"""Who only judges takes back the last label given with the same key, and nothing else."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from celeus.operations.sessions.panel import MOST_CORRECTIONS
from tests.api.access.test_blindness import assert_blind
from tests.api.contract import client_with
from tests.factories import drawn, judged, known_pool, numbers_of, opened
from tests.keys import key_in


async def labelled(
    labeller: AsyncClient, session: str, count: int, worker: str = "w", loss: float = 1
) -> list[int]:
    """Judge so many items; returns their rounds."""
    rounds = []
    for _ in range(count):
        draw = (await drawn(labeller, session, 1, worker))["draws"][0]
        body = {"round": draw["round"], "loss": loss, "worker": worker}
        answer = await labeller.post(f"/v1/sessions/{session}/observe", json=body)
        assert answer.status_code == 200
        rounds.append(draw["round"])
    return rounds


async def corrected(labeller: AsyncClient, session: str, round_: int, **said: Any) -> Response:  # noqa: ANN401 - whatever the wire takes
    body = {"round": round_, "reason": "slip of the finger"} | (said or {"loss": 0})
    return await labeller.post(f"/v1/sessions/{session}/amendments", json=body)


async def events_of(client: AsyncClient, session: str) -> list[dict[str, Any]]:
    answer = await client.get(f"/v1/sessions/{session}/ledger", params={"limit": 1000})
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def test_the_last_label_is_replaced_in_the_name_of_the_key_and_answered_blind(
    client: AsyncClient, ann: AsyncClient, database_url: str
) -> None:
    session = await opened(client, await known_pool(client))
    rounds = await labelled(ann, session, 3)
    before = (await client.get(f"/v1/sessions/{session}")).json()
    answer = await corrected(ann, session, rounds[-1])
    assert answer.status_code == 200
    assert answer.json()["session"] == {"id": session, "state": "active"}
    after = (await client.get(f"/v1/sessions/{session}")).json()
    assert_blind(answer, [after["estimate"], after["upper"], after["width"]])
    assert (after["revision"], after["estimate"] < before["estimate"]) == (2, True)
    last = (await events_of(client, session))[-1]
    assert (last["kind"], last["round"], last["loss"]) == ("amendment", 3, 0)
    assert numbers_of(database_url, session).shown(3) == rounds[-1]
    assert last["detail"] | {"key": None} == {
        "author": "of a test",
        "reason": "slip of the finger",
        "key": None,
    }


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"loss": 1}, {"unjudgeable": "torn"}),
        ({"unjudgeable": "torn"}, {"loss": 0}),
        ({"unjudgeable": "torn"}, {"unjudgeable": "too dark"}),
    ],
)
async def test_a_loss_and_an_unjudgeable_take_each_others_place(
    client: AsyncClient, ann: AsyncClient, first: dict[str, Any], then: dict[str, Any]
) -> None:
    session = await opened(client, await known_pool(client))
    draw = (await drawn(ann, session))["draws"][0]
    judgement = {"round": draw["round"], "worker": "w"} | first
    assert (await ann.post(f"/v1/sessions/{session}/observe", json=judgement)).status_code == 200
    answer = await corrected(ann, session, draw["round"], **then)
    assert answer.status_code == 200
    last = (await events_of(client, session))[-1]
    assert last["loss"] == then.get("loss")
    assert last["detail"].get("unjudgeable") == then.get("unjudgeable")


async def test_a_label_is_corrected_so_often_by_its_judge(
    client: AsyncClient, ann: AsyncClient
) -> None:
    """A labeller made a certificate grow by 2.5 MB in ten seconds."""
    session = await opened(client, await known_pool(client))
    [last] = await labelled(ann, session, 1)
    for time in range(MOST_CORRECTIONS):
        assert (await corrected(ann, session, last, unjudgeable=f"{time}")).status_code == 200
    refused = await corrected(ann, session, last, unjudgeable="again")
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_corrections")
    repeated = await corrected(ann, session, last, unjudgeable=f"{MOST_CORRECTIONS - 1}")
    assert repeated.status_code == 200


async def test_only_the_last_label_of_the_same_key_can_be_taken_back(
    client: AsyncClient, ann: AsyncClient, bob: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    first, second = await labelled(ann, session, 2, "w")
    [others] = await labelled(bob, session, 1, "w")
    held = (await drawn(ann, session))["draws"][0]["round"]
    before = await events_of(client, session)
    wrong = {
        "an earlier one": (await corrected(ann, session, first), 409, "not_last_label"),
        "another's": (await corrected(ann, session, others), 409, "not_last_label"),
        "of the same worker's name": (await corrected(bob, session, second), 409, "not_last_label"),
        "not judged": (await corrected(ann, session, held), 409, "not_last_label"),
        "not drawn": (await corrected(ann, session, 9), 409, "not_last_label"),
        "off the scale": (await corrected(ann, session, second, loss=2), 422, "loss_outside_scale"),
        "no new label": (await corrected(ann, session, second, loss=None), 422, "invalid_value"),
        "another's name": (
            await corrected(ann, session, second, loss=0, author="eve"),
            422,
            "invalid_value",
        ),
    }
    for what, (answer, status, code) in wrong.items():
        assert (answer.status_code, answer.json()["code"]) == (status, code), what
        assert_blind(answer, [])
    assert await events_of(client, session) == before
    assert (await corrected(ann, session, second)).status_code == 200
    assert (await corrected(bob, session, others)).status_code == 200


async def test_a_key_has_one_last_label_however_many_workers_it_names(
    client: AsyncClient, ann: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    rounds = [(await labelled(ann, session, 1, f"worker {number}"))[0] for number in range(10)]
    found = [(await corrected(ann, session, round_)).status_code for round_ in rounds]
    assert found == [409] * 9 + [200]
    task = (await ann.get(f"/v1/sessions/{session}/task")).json()
    assert task["labeller"]["labels"] == 10


async def test_a_label_once_corrected_can_be_corrected_again_and_a_retry_changes_nothing(
    client: AsyncClient, ann: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    [round_] = await labelled(ann, session, 1)
    first = (await corrected(ann, session, round_)).json()
    again = (await corrected(ann, session, round_)).json()
    assert again["receipt"] == first["receipt"] | {"replayed": True}
    back = (await corrected(ann, session, round_, loss=1)).json()
    assert not back["receipt"]["replayed"]
    # Sent again after another label was given meanwhile, it is a repeated request still.
    await labelled(ann, session, 1)
    late = await corrected(ann, session, round_, loss=1)
    assert late.json()["receipt"] == back["receipt"] | {"replayed": True}
    assert (await corrected(ann, session, round_)).status_code == 409


async def test_what_somebody_else_has_corrected_is_not_the_judges_to_take_back(
    client: AsyncClient, ann: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    [round_] = await labelled(ann, session, 1)
    assert (await corrected(ann, session, round_)).status_code == 200
    assert (await corrected(client, session, 1, loss=1)).status_code == 200
    refused = await corrected(ann, session, round_, unjudgeable="torn")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_last_label")
    assert_blind(refused, [])
    last = (await events_of(client, session))[-1]
    assert (last["kind"], last["loss"], last["detail"]["author"]) == ("amendment", 1, "of a test")


async def test_of_a_list_the_last_one_can_be_taken_back(
    client: AsyncClient, ann: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    rounds = [draw["round"] for draw in (await drawn(ann, session, 3))["draws"]]
    listed = [{"round": round_, "loss": 1} for round_ in (rounds[2], rounds[0], rounds[1])]
    body = {"observations": listed, "worker": "w"}
    assert (await ann.post(f"/v1/sessions/{session}/observe", json=body)).status_code == 200
    found = [(await corrected(ann, session, round_)).status_code for round_ in rounds]
    assert found == [409, 200, 409]
    task = (await ann.get(f"/v1/sessions/{session}/task")).json()
    assert task["labeller"]["labels"] == 3


async def test_one_undo_sent_twice_at_once_is_kept_once(
    client: AsyncClient, ann: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    [round_] = await labelled(ann, session, 1)
    answers = await asyncio.gather(*(corrected(ann, session, round_) for _ in range(6)))
    assert (
        sorted(answer.json()["receipt"]["replayed"] for answer in answers) == [False] + [True] * 5
    )
    kinds = [event["kind"] for event in await events_of(client, session)]
    assert kinds == ["draw", "observation", "amendment"]


async def test_of_an_undo_and_the_next_label_at_once_none_is_lost(
    client: AsyncClient, app: FastAPI, database_url: str
) -> None:
    """Whichever comes first: both kept, or the undo refused, being no longer of the last one."""
    pool = await known_pool(client)
    async with AsyncExitStack() as stack:
        token = key_in(database_url, "label")
        two = [await stack.enter_async_context(client_with(app, token)) for _ in range(2)]
        for _ in range(5):
            session = await opened(client, pool)
            first, second = [draw["round"] for draw in (await drawn(two[0], session, 2))["draws"]]
            path = f"/v1/sessions/{session}/observe"
            judgement = {"loss": 1, "worker": "w"}
            await two[0].post(path, json=judgement | {"round": first})
            undone, observed = await asyncio.gather(
                corrected(two[0], session, first),
                two[1].post(path, json=judgement | {"round": second}),
            )
            assert observed.status_code == 200
            assert undone.status_code in {200, 409}
            kinds = [event["kind"] for event in await events_of(client, session)]
            assert kinds.count("observation") == 2
            assert kinds.count("amendment") == (undone.status_code == 200)


async def test_what_the_losses_have_stopped_is_left_to_who_may_see(
    client: AsyncClient, ann: AsyncClient, database_url: str
) -> None:
    pool = await known_pool(client, 400)
    session = await opened(client, pool, precision=0.5)
    answer = await drawn(ann, session)
    while answer["draws"]:
        last = answer["draws"][0]
        answer = await judged(ann, session, pool, last, next=1)
    assert answer["state"] == "target_reached"
    refused = await corrected(ann, session, last["round"], loss=0.0)
    assert (refused.status_code, refused.json()["code"]) == (409, "session_stopped")
    assert_blind(refused, [])
    # A pause hides the stop, and does not undo that it was seen.
    await client.patch(f"/v1/sessions/{session}", json={"state": "paused"})
    paused = await corrected(ann, session, last["round"], loss=0.0)
    assert (paused.status_code, paused.json()["code"]) == (409, "session_stopped")
    round_ = numbers_of(database_url, session).round_of(last["round"])
    seen = await corrected(client, session, round_, loss=0.0)
    assert seen.status_code == 200
    assert (await events_of(client, session))[-1]["detail"]["author"] == "of a test"


async def test_the_last_label_of_a_spent_budget_and_of_a_pause_can_be_taken_back(
    client: AsyncClient, ann: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client), budget=2)
    rounds = await labelled(ann, session, 2)
    answer = await corrected(ann, session, rounds[1])
    assert (answer.status_code, answer.json()["state"]) == (200, "budget_spent")
    await client.patch(f"/v1/sessions/{session}", json={"state": "paused"})
    assert (await corrected(ann, session, rounds[1], loss=1)).status_code == 200
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    closed = await corrected(ann, session, rounds[1])
    assert (closed.status_code, closed.json()["code"]) == (409, "session_closed")


async def test_who_sees_where_a_session_stands_corrects_as_a_labeller_only_the_last_label(
    client: AsyncClient, app: FastAPI, database_url: str
) -> None:
    session = await opened(client, await known_pool(client))
    async with client_with(app, key_in(database_url, "label", "read")) as seeing:
        first, second = await labelled(seeing, session, 2)
        assert (await corrected(seeing, session, first)).status_code == 409
        answer = await corrected(seeing, session, second)
    assert answer.status_code == 200
    assert "estimate" in answer.json()["session"]


async def test_a_key_that_judges_and_manages_corrects_every_round_in_any_name(
    client: AsyncClient, app: FastAPI, database_url: str
) -> None:
    session = await opened(client, await known_pool(client))
    async with client_with(app, key_in(database_url, "label", "manage")) as lead:
        rounds = await labelled(lead, session, 3)
        answer = await corrected(lead, session, rounds[0], loss=0, author="ada")
    assert answer.status_code == 200
    assert (await events_of(client, session))[-1]["detail"]["author"] == "ada"

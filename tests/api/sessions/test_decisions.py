"""Questions asked at opening are answered on the wire, once, and may end a session."""

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient

from celeus.store.database import Database
from tests.factories import KnownPool, drawn, judged, known_pool, labelled, opened
from tests.operations.replays import assert_whole, kept

ASKED = [{"side": "at_most", "threshold": 0.9}, {"side": "at_least", "threshold": 0.1}]


def told(session: dict[str, Any]) -> list[tuple[str, float, str]]:
    return [
        (decision["side"], decision["threshold"], decision["answer"])
        for decision in session["decisions"]
    ]


async def test_questions_are_open_at_first_and_a_precision_is_not_needed(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, 30)
    answer = await client.post("/v1/sessions", json={"pool_id": pool.id, "questions": ASKED})
    assert answer.status_code == 201, answer.text
    body = answer.json()
    assert body["decisions"] == [
        question | {"answer": "undecided", "round": None} for question in ASKED
    ]
    assert (body["stop_when_decided"], body["precision"]) == (True, None)


async def test_the_session_stops_when_all_is_decided_and_every_document_says_it(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, 300)
    session = await opened(client, pool, questions=ASKED)
    last = await labelled(client, session, pool, 300)
    body = last["session"]
    assert (last["state"], last["draws"]) == ("decided", [])
    assert (body["stopped"], body["stop_reason"]) == (True, "decided")
    assert told(body) == [("at_most", 0.9, "yes"), ("at_least", 0.1, "yes")]
    rounds = [decision["round"] for decision in body["decisions"]]
    assert max(rounds) == body["round"] < 300
    assert (await client.get(f"/v1/sessions/{session}")).json() == body
    listed = (await client.get("/v1/sessions", params={"state": "decided"})).json()
    assert listed["data"] == [body]
    assert (await drawn(client, session))["state"] == "decided"


@pytest.mark.parametrize(
    ("asked", "field", "meant"),
    [
        ({"questions": [{"side": "at_most", "threshold": 10}]}, "questions.0.threshold", "(0.1)"),
        ({"precision": 5}, "precision", "(0.05)"),
        ({"precision": 0.2, "alpha": 0.95}, "alpha", "0.05"),
    ],
)
async def test_a_number_in_percent_is_refused_with_what_was_meant(
    client: AsyncClient, asked: dict[str, Any], field: str, meant: str
) -> None:
    pool = await known_pool(client, 30)
    for path, body in (
        ("/v1/sessions", {"pool_id": pool.id}),
        (f"/v1/pools/{pool.id}/planning", {"runs": 1}),
    ):
        answer = await client.post(path, json=body | asked)
        problem = answer.json()
        assert (answer.status_code, problem["field"]) == (422, field), answer.text
        assert problem["detail"].endswith(f"{meant}?")
        assert "did you mean" in problem["detail"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"questions": [{"side": "at_most", "threshold": True}]}, "questions.0.threshold"),
        ({"questions": [{"side": "below", "threshold": 0.1}]}, "questions.0.side"),
        ({"questions": [{"side": "at_most"}]}, "questions.0.threshold"),
        ({"questions": [ASKED[0] | {"round": 3}]}, "questions.0.round"),
        ({"questions": None}, "questions"),
        ({"stop_when_decided": True}, "stop_when_decided"),
        ({"questions": ASKED, "stop_when_decided": "yes"}, "stop_when_decided"),
    ],
)
async def test_a_question_that_cannot_be_asked_is_refused_by_name(
    client: AsyncClient, change: dict[str, Any], field: str
) -> None:
    pool = await known_pool(client, 30)
    answer = await client.post("/v1/sessions", json={"pool_id": pool.id} | change)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid_value")
    assert problem["field"].removeprefix("body.") == field
    assert problem["rule"]


async def decided(client: AsyncClient, pool: KnownPool, **settings: Any) -> dict[str, Any]:  # noqa: ANN401 -- whatever the wire takes
    session = await opened(client, pool, questions=ASKED, **settings)
    found: dict[str, Any] = (await labelled(client, session, pool, pool_size(pool)))["session"]
    assert found["state"] == "decided"
    return found


def pool_size(pool: KnownPool) -> int:
    return len(pool.losses)


async def test_nobody_waits_for_answers_to_nothing(client: AsyncClient) -> None:
    pool = await known_pool(client, 30)
    session = await opened(client, pool)
    url = f"/v1/sessions/{session}"
    answer = await client.patch(url, json={"stop_when_decided": True})
    assert (answer.status_code, answer.json()["field"]) == (422, "stop_when_decided")
    same = await client.patch(url, json={"stop_when_decided": False})
    assert (same.status_code, same.json()["sequence"]) == (200, 0)
    changed = (await client.patch(url, json={"budget": 20})).json()
    ledger = (await client.get(f"{url}/ledger")).json()
    assert "stop_when_decided" not in ledger["data"][0]["detail"]
    assert changed["stop_when_decided"] is False


async def test_the_same_change_twice_is_one(client: AsyncClient) -> None:
    pool = await known_pool(client, 100)
    before = await decided(client, pool)
    url = f"/v1/sessions/{before['id']}"
    answers = [(await client.patch(url, json={"stop_when_decided": False})) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    at_once = await asyncio.gather(
        *(client.patch(url, json={"stop_when_decided": True}) for _ in range(5))
    )
    assert {answer.json()["sequence"] for answer in at_once} == {before["sequence"] + 2}


async def test_two_judges_at_once_across_the_deciding_round_see_one_decision(
    client: AsyncClient, database: Database, database_url: str
) -> None:
    pool = await known_pool(client, 120)
    session = await opened(client, pool, questions=ASKED)

    async def judge(worker: str) -> None:
        held = (await drawn(client, session, 2, worker))["draws"]
        while held:
            draw = held.pop(0)
            answer = await judged(client, session, pool, draw, worker=worker, next=2)
            known = {draw["round"] for draw in held}
            held += [draw for draw in answer["draws"] if draw["round"] not in known]
            decisions.extend(
                (decision["side"], decision["answer"], decision["round"])
                for decision in answer["session"]["decisions"]
                if decision["answer"] != "undecided"
            )

    decisions: list[tuple[str, str, int]] = []
    await asyncio.gather(judge("ada"), judge("bob"), judge("eve"))
    # What was out when the last answer came was judged too, and changed no answer.
    assert len(set(decisions)) == 2
    body = kept(database_url, session).session["status"]
    assert body["state"] == "decided"
    assert body["rounds"]["pending"] == 0
    assert max(decision["round"] for decision in body["decisions"]) <= body["round"]
    state = await assert_whole(database, kept(database_url, session))
    assert [
        {"side": decision.question.side, "answer": decision.answer, "round": decision.round}
        for decision in state.question.decisions
    ] == [
        {name: decision[name] for name in ("side", "answer", "round")}
        for decision in body["decisions"]
    ]


async def test_an_answer_that_losses_contradict_stays_with_a_warning(client: AsyncClient) -> None:
    """At alpha 0.5 answers come fast and some are wrong; judging all of the pool shows it."""
    for seed in range(60):
        pool = await known_pool(client, 30, seed)
        asked = [{"side": "at_most", "threshold": pool.risk - 0.01}]
        session = await opened(client, pool, questions=asked, alpha=0.5, stop_when_decided=False)
        body = (await labelled(client, session, pool, 30))["session"]
        if told(body)[0][2] == "yes":
            assert body["lower"] > asked[0]["threshold"]
            warning = next(warning for warning in body["warnings"] if "was answered yes" in warning)
            assert f"in round {body['decisions'][0]['round']} and later losses" in warning
            return
    raise AssertionError("no answer was wrong")

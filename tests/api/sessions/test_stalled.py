"""A draw whose judge hangs or has died stalls nobody, whatever kind of session it is of."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from celeus.core.certificate.verify import verify
from celeus.core.session import handout
from tests.api.contract import client_with
from tests.conftest import Execute
from tests.factories import known_pool, opened
from tests.keys import bearer, key_in
from tests.lineups import field
from tests.pairs import pair
from tests.tabled import sheet

PROGRAM = {"lease_seconds": 30}
KINDS = ("pool", "population", "comparison", "best", "table")

Says = Callable[[dict[str, Any]], dict[str, Any]]


async def session_of(client: AsyncClient, kind: str, **more: object) -> tuple[str, Says]:
    """A session of this kind that goes on to the last item, and what a judge says of a draw."""
    made: Any
    if kind in {"pool", "population"}:
        made = await known_pool(client)
        settings: dict[str, Any] = {} if kind == "pool" else {"target": "population"}
    elif kind == "comparison":
        made, settings = await pair(client, "losses", 200), {}
    elif kind == "best":
        made = await field(client, "answers", 200, able=(0.5, 0.5))
        # Nothing can be told of two that are alike from so few items, whatever is drawn
        settings = {"best": True, "alpha": 1e-9}
    else:
        made = await sheet(client, 200)
        settings = {"precision": {"faithful": 0.01}}
    session = await opened(client, made, **settings | more)

    def says(draw: dict[str, Any]) -> dict[str, Any]:
        index = draw["item"]["index"]
        if kind in {"pool", "population"}:
            return {"loss": made.losses[index]}
        if kind == "table":
            return {"losses": made.losses[index]}
        judgement: dict[str, Any] = made.said(index)
        return judgement

    return session, says


async def sent(client: AsyncClient, session: str, what: str, **body: object) -> dict[str, Any]:
    answer = await client.post(f"/v1/sessions/{session}/{what}", json=PROGRAM | body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def asked(client: AsyncClient, session: str, worker: str, **more: object) -> dict[str, Any]:
    return await sent(client, session, "next", **{"worker": worker, "count": 1} | more)


async def told(
    client: AsyncClient, session: str, worker: str, round_: int, **said: object
) -> dict[str, Any]:
    return await sent(client, session, "observe", worker=worker, round=round_, **said)


async def waiting(
    client: AsyncClient, session: str, says: Says, count: int, **more: object
) -> dict[str, Any]:
    """The first draw, which `slow` holds, while ``count`` judged rounds of `ada` wait behind it."""
    first: dict[str, Any] = (await asked(client, session, "slow", **more))["draws"][0]
    offer = await asked(client, session, "ada", **more)
    for number in range(count):
        draw, goes_on = offer["draws"][0], number < count - 1
        assert draw["round"] > 1
        offer = await told(
            client, session, "ada", draw["round"], next=int(goes_on), **says(draw) | more
        )
    return first


async def ledger(client: AsyncClient, session: str) -> list[dict[str, Any]]:
    answer = await client.get(f"/v1/sessions/{session}/ledger", params={"limit": 10_000})
    events: list[dict[str, Any]] = answer.json()["data"]
    return events


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stalled_draw_goes_to_a_second_judge_whose_answer_counts(
    client: AsyncClient, kind: str
) -> None:
    session, says = await session_of(client, kind)
    first = await waiting(client, session, says, 8)
    events = len(await ledger(client, session))
    again = (await asked(client, session, "ada"))["draws"][0]
    assert again | {"expires_at": None} == first | {"expires_at": None}
    assert len(await ledger(client, session)) == events, "nothing is drawn"
    assert (await asked(client, session, "bob"))["draws"][0]["round"] == 10, "two hold it"
    counted = await told(client, session, "ada", 1, **says(first))
    assert counted["receipt"]["duplicate"] is False
    assert counted["session"]["rounds"]["in_interval"] == 9
    events = len(await ledger(client, session))
    for _ in range(2):
        late = (
            await told(client, session, "slow", 1, unjudgeable="too slow")
            if kind != "best"
            else await told(client, session, "slow", 1, **says(first))
        )
        assert late["receipt"] == {
            "round": 1,
            "sequence": counted["receipt"]["sequence"],
            "replayed": False,
            "duplicate": True,
        }
    assert len(await ledger(client, session)) == events, "the second answer is no event"


async def test_a_slow_run_is_not_made_a_second_time(client: AsyncClient) -> None:
    """Which of two runs came first depends on how long they take, and so may how they end."""
    pool = await known_pool(client)
    session = await opened(client, pool, target="runs", precision=0.3)
    await waiting(client, session, lambda draw: {"loss": pool.losses[draw["item"]["index"]]}, 8)
    assert (await asked(client, session, "ada"))["draws"][0]["round"] > 1
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert " over all runs " in status["sentence"]
    assert [stated["code"] for stated in status["assumptions"]] == ["runs"]


def lasting(offer: dict[str, Any]) -> dict[str, Any]:
    """An offer but for the ends of its leases."""
    draws = [
        {name: value for name, value in draw.items() if name != "expires_at"}
        for draw in offer["draws"]
    ]
    return offer | {"draws": draws}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_state_made_again_from_the_ledger_is_the_same(
    client: AsyncClient, app: FastAPI, kind: str
) -> None:
    session, says = await session_of(client, kind)
    first = await waiting(client, session, says, 3)
    before = await asked(client, session, "ada", count=2)
    app.state.context.states._slots.clear()
    assert lasting(await asked(client, session, "ada", count=2)) == lasting(before)
    counted = await told(client, session, "slow", 1, **says(first))
    assert counted["session"]["rounds"]["in_interval"] == 4
    app.state.context.states._slots.clear()
    again = await told(client, session, "slow", 1, **says(first))
    assert again["receipt"] == counted["receipt"] | {"replayed": True}
    assert again["session"] == counted["session"]


async def test_a_duplicate_among_others_is_told_and_the_others_are_kept(
    client: AsyncClient,
) -> None:
    session, says = await session_of(client, "pool")
    first = await waiting(client, session, says, 8)
    await asked(client, session, "ada")
    await told(client, session, "ada", 1, **says(first))
    draw = (await asked(client, session, "slow"))["draws"][0]
    observations = [{"round": 1, "loss": 0.5}, {"round": draw["round"], **says(draw)}]
    body: dict[str, Any] = {"worker": "slow", "observations": observations}
    answer = await client.post(f"/v1/sessions/{session}/observe", json=body)
    assert [receipt["duplicate"] for receipt in answer.json()["receipts"]] == [True, False]
    assert (await ledger(client, session))[-1]["round"] == draw["round"]


async def test_all_who_hold_a_draw_are_told_where_a_third_judges_it_first(
    client: AsyncClient, execute: Execute
) -> None:
    session, says = await session_of(client, "pool")
    first = await waiting(client, session, says, 8)
    execute("UPDATE leases SET expires_at = now() WHERE round = 1")
    for worker in ("ada", "bob"):
        assert (await asked(client, session, worker))["draws"][0]["round"] == 1
    await told(client, session, "slow", 1, **says(first))
    for worker in ("ada", "bob"):
        late = await told(client, session, worker, 1, loss=1 - says(first)["loss"])
        assert late["receipt"]["duplicate"] is True
    certificate = await client.get(f"/v1/sessions/{session}/certificate")
    assert verify(certificate.content).valid


async def test_who_held_nothing_of_it_is_refused_as_before(client: AsyncClient) -> None:
    session, says = await session_of(client, "pool")
    first = await waiting(client, session, says, 8)
    await asked(client, session, "ada")
    await told(client, session, "ada", 1, **says(first))
    for worker in ("stranger", "ada"):
        other = {"worker": worker, "round": 1, "loss": 1 - says(first)["loss"]}
        answer = await client.post(f"/v1/sessions/{session}/observe", json=other)
        assert (answer.status_code, answer.json()["code"]) == (409, "observation_conflict")


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_is_drawn_while_64_rounds_wait(client: AsyncClient, kind: str) -> None:
    session, says = await session_of(client, kind)
    first = await waiting(client, session, says, 8)
    assert (await asked(client, session, "hangs as well"))["draws"][0]["round"] == 1
    offer = await asked(client, session, "ada")
    for _ in range(56):
        draw = offer["draws"][0]
        offer = await told(client, session, "ada", draw["round"], next=1, **says(draw))
    assert (offer["state"], offer["draws"], offer["retry_after"]) == ("waiting", [], 5)
    assert offer["session"]["rounds"] | {"judged": 64, "waiting": 64} == offer["session"]["rounds"]
    await told(client, session, "slow", 1, **says(first))
    assert (await asked(client, session, "ada"))["draws"][0]["round"] == 66


async def test_who_waits_is_told_of_the_end_of_the_lease(
    client: AsyncClient, execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handout, "LONGEST_WAIT", 600.0)
    session, says = await session_of(client, "pool")
    await waiting(client, session, says, 8)
    await asked(client, session, "hangs as well")
    offer = await asked(client, session, "ada", count=56)
    for draw in offer["draws"]:
        await told(client, session, "ada", draw["round"], **says(draw))
    # Two others hold the draw; the lease of the first ends before anybody would ask again
    execute(
        "UPDATE leases SET expires_at = now() + interval '300 seconds',"
        " beside = jsonb_build_array(beside->0, beside->1, to_json(now()))"
    )
    assert 200 < (await asked(client, session, "ada"))["retry_after"] <= 300


async def test_renewing_takes_nothing_new(client: AsyncClient) -> None:
    session, says = await session_of(client, "pool")
    held = await asked(client, session, "ada", count=2)
    renewed = await asked(client, session, "ada", count=0)
    assert [draw["round"] for draw in renewed["draws"]] == [1, 2]
    assert renewed["draws"][0]["expires_at"] > held["draws"][0]["expires_at"]
    for draw in held["draws"]:
        await told(client, session, "ada", draw["round"], **says(draw))
    assert (await asked(client, session, "ada", count=0))["draws"] == []
    assert len(await ledger(client, session)) == 4


async def test_who_comes_back_after_an_outage_keeps_the_calls_under_way(
    client: AsyncClient, execute: Execute
) -> None:
    session, _ = await session_of(client, "pool")
    for worker in ("ada", "bob", "cleo"):
        await asked(client, session, worker)
    passed = {"worker": "cleo", "rounds": [3], "pass": True}
    assert (await client.post(f"/v1/sessions/{session}/release", json=passed)).status_code == 200
    execute("UPDATE leases SET expires_at = now() - interval '10 seconds'")
    renewed = [await asked(client, session, worker, count=0) for worker in ("bob", "cleo")]
    assert [[draw["round"] for draw in offer["draws"]] for offer in renewed] == [[2], []]
    assert (await asked(client, session, "dan"))["draws"][0]["round"] == 1
    assert (await asked(client, session, "ada", count=0))["draws"] == [], "another has it now"
    assert (await asked(client, session, "eve"))["draws"][0]["round"] == 3


async def test_a_program_holds_a_draw_for_as_long_as_it_asks(
    client: AsyncClient, execute: Execute
) -> None:
    session, _ = await session_of(client, "pool", lease_seconds=60)
    for worker, seconds in (("short", 30), ("long", 86_400), ("person", None)):
        await asked(client, session, worker, lease_seconds=seconds)
    rows = execute(
        "SELECT worker, extract(epoch FROM expires_at - at)::int FROM leases"
        " JOIN events USING (session_id, round) WHERE session_id = %s ORDER BY round",
        [session.removeprefix("ses_")],
    ).fetchall()
    assert rows == [("short", 30), ("long", 60), ("person", 60)]


async def test_people_may_take_five_times_as_long_as_others(
    client: AsyncClient, execute: Execute
) -> None:
    person: dict[str, Any] = {"lease_seconds": None}
    session, says = await session_of(client, "pool")
    await waiting(client, session, says, 8, **person)
    params = [session.removeprefix("ses_")]
    earlier = "UPDATE events SET at = at - interval '{}' WHERE session_id = %s AND kind = 1 AND {}"
    execute(earlier.format("1 minute", "round > 1"), params)
    execute("UPDATE leases SET since = since - interval '290 seconds'")
    for worker, asks in (("ada", person), ("a program", PROGRAM)):
        assert (await asked(client, session, worker, **asks))["draws"][0]["round"] > 1
    execute("UPDATE leases SET since = since - interval '20 seconds' WHERE round = 1")
    assert (await asked(client, session, "bob", **person))["draws"][0]["round"] == 1


async def test_a_draw_counts_as_slow_from_when_its_holder_got_it(
    client: AsyncClient, execute: Execute
) -> None:
    """Somebody left it an hour ago, and somebody else has just begun to read it."""
    person: dict[str, Any] = {"lease_seconds": None}
    session, says = await session_of(client, "pool")
    await waiting(client, session, says, 8, **person)
    execute("UPDATE events SET at = at - interval '1 hour' WHERE kind = 1 AND round = 1")
    execute("UPDATE events SET at = at - interval '1 minute' WHERE kind = 1 AND round > 1")
    execute("UPDATE leases SET expires_at = now() - interval '1 second'")
    assert (await asked(client, session, "bob", **person))["draws"][0]["round"] == 1
    assert (await asked(client, session, "ada", **person))["draws"][0]["round"] > 1
    # Renewing does not begin it anew
    execute("UPDATE leases SET since = since - interval '301 seconds' WHERE round = 1")
    assert (await asked(client, session, "bob", count=0, **person))["draws"][0]["round"] == 1
    assert (await asked(client, session, "cleo", **person))["draws"][0]["round"] == 1


async def test_raters_of_a_panel_go_on_while_one_of_them_is_away(client: AsyncClient) -> None:
    panel = ["ada", "bob", "away"]
    rule = {"raters": "assigned", "protocol": "two_then_third", "panel": panel}
    session, _ = await session_of(client, "pool", **rule)
    rounds: dict[str, int] = {}
    for _ in range(1000):
        before = rounds
        for rater in panel[:2]:
            offer = await asked(client, session, rater, count=8)
            for draw in offer["draws"]:
                rounds = (await told(client, session, rater, draw["round"], loss=0))["session"][
                    "rounds"
                ]
        if rounds == before:
            break
    assert rounds["waiting"] > 64 + 16


async def test_a_blind_key_is_told_of_a_duplicate_and_of_no_more(
    app: FastAPI, client: AsyncClient, database_url: str
) -> None:
    session, says = await session_of(client, "pool")
    key = key_in(database_url, "label")
    async with client_with(app, key) as blind:
        mine = (await asked(blind, session, "eve"))["draws"][0]
        offer = await asked(client, session, "ada")
        for _ in range(8):
            draw = offer["draws"][0]
            offer = await told(client, session, "ada", draw["round"], next=1, **says(draw))
        front = offer["draws"][0]
        assert front["item"]["id"] == mine["item"]["id"]
        await told(client, session, "ada", front["round"], **says(front))
        late = await told(blind, session, "eve", mine["round"], loss=1 - says(front)["loss"])
        assert late["receipt"] == {
            "round": mine["round"],
            "sequence": None,
            "replayed": False,
            "duplicate": True,
        }
    stranger = {"round": mine["round"], "loss": 0, "worker": "mallory"}
    answer = await client.post(
        f"/v1/sessions/{session}/observe",
        json=stranger,
        headers=bearer(key_in(database_url, "label")),
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "round_not_held")


async def test_workers_hold_what_their_leases_have_left(
    client: AsyncClient, execute: Execute
) -> None:
    session, says = await session_of(client, "pool")
    await waiting(client, session, says, 8)
    await asked(client, session, "ada", count=2)
    path = f"/v1/sessions/{session}/workers"
    found = (await client.get(path)).json()
    held = {
        worker["worker"]: [draw["round"] for draw in worker["draws"]] for worker in found["data"]
    }
    assert held == {"ada": [1, 10], "slow": [1]}
    assert found["draws"] == 2
    execute("UPDATE leases SET expires_at = now() WHERE round = 10")
    execute("UPDATE leases SET expires_at = now() WHERE round = 1")
    found = (await client.get(path)).json()
    held = {
        worker["worker"]: [draw["round"] for draw in worker["draws"]] for worker in found["data"]
    }
    assert held == {"ada": [], "slow": [1]}
    assert found["draws"] == 1

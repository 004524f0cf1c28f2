"""Sessions whose items are run again: draws, leases, and what judges are told."""

import random
from typing import Any

from httpx import AsyncClient

from celeus.core.certificate.verify import verify
from tests.factories import known_pool, opened

REPEATS = {"target": "runs", "repeats": True, "precision": 0.4}


async def sent(client: AsyncClient, session: str, what: str, **body: object) -> dict[str, Any]:
    answer = await client.post(f"/v1/sessions/{session}/{what}", json={"worker": "ada"} | body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_an_item_is_drawn_again_also_while_a_run_of_it_is_out(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 4), **REPEATS)
    draws = (await sent(client, session, "next", count=9))["draws"]
    assert len({draw["round"] for draw in draws}) == 9
    assert len({draw["item"]["id"] for draw in draws}) <= 4
    chance = random.Random(1)  # noqa: S311 -- the system's luck
    offer: dict[str, Any] = {"draws": draws}
    while offer["draws"]:
        round_ = offer["draws"][-1]["round"]
        loss = float(chance.random() < 0.5)
        offer = await sent(client, session, "observe", round=round_, loss=loss, next=1)
        again = await sent(client, session, "observe", round=round_, loss=loss)
        assert again["receipt"]["replayed"], "each run is judged once"
        if not offer["draws"]:
            offer = await sent(client, session, "next", count=1)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["state"] == "target_reached"
    assert status["repeats"]
    assert status["budget"] == 49
    assert status["rounds"]["judged"] > 4
    task = (await client.get(f"/v1/sessions/{session}/task")).json()
    assert (task["runs"], task["repeats"], task["stands"]) == (True, True, False)
    closed = await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    assert closed.status_code == 200
    for page in ("report", "labels"):
        assert (await client.get(f"/v1/sessions/{session}/{page}")).status_code == 200
    certificate = (await client.get(f"/v1/sessions/{session}/certificate")).content
    report = verify(certificate)
    assert report.valid, report.to_dict()


async def test_runs_are_corrected_over_the_interface_and_on_the_page(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 4), **REPEATS)
    for draw in (await sent(client, session, "next", count=6))["draws"]:
        await sent(client, session, "observe", round=draw["round"], loss=0)
    page = await client.get(f"/sessions/{session}/judged", headers={"Accept": "text/html"})
    assert "Change" in page.text
    for loss in (1, 0):
        (draw,) = (await sent(client, session, "next", count=1))["draws"]
        await sent(client, session, "observe", round=draw["round"], loss=0)
        body = {"round": 1, "loss": loss, "reason": "misread"}
        corrected = await client.post(f"/v1/sessions/{session}/amendments", json=body)
        assert corrected.status_code == 200, corrected.text
    assert corrected.json()["session"]["rounds"]["drawn"] == 8
    certificate = (await client.get(f"/v1/sessions/{session}/certificate")).content
    report = verify(certificate)
    assert report.valid, report.to_dict()


async def test_no_figures_of_a_surrogate_are_shown_of_items_that_are_run_again(
    client: AsyncClient,
) -> None:
    session = await opened(client, await known_pool(client, 4), **REPEATS)
    surrogate = await client.get(f"/v1/sessions/{session}/surrogate")
    assert (surrogate.status_code, surrogate.json()["rule"]) == (422, "a session without `repeats`")
    page = (await client.get(f"/sessions/{session}", headers={"Accept": "text/html"})).text
    assert "Actions" in page
    assert "over all runs on the pool “<bdi>" in page
    assert "From these runs to all runs" not in page
    assert "How good the surrogate is" not in page


async def test_the_runs_of_a_draw_are_counted(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 4), success="all of 3", **REPEATS)
    task = (await client.get(f"/v1/sessions/{session}/task")).json()
    assert task["success"] == {"needs": "all", "runs": 3, "settling": 1.0}
    rounds = [draw["round"] for draw in (await sent(client, session, "next", count=3))["draws"]]
    impossible: list[dict[str, Any]] = [{"loss": 0}, {"loss": 0, "runs": 2}]
    for round_, said in zip(rounds, impossible, strict=False):
        body = {"worker": "ada", "round": round_} | said
        refused = await client.post(f"/v1/sessions/{session}/observe", json=body)
        assert (refused.status_code, refused.json()["field"]) == (422, "runs")
    settled: list[dict[str, Any]] = [{"loss": 0, "runs": 3}, {"loss": 1, "runs": 2}]
    settled.append({"unjudgeable": "no", "runs": 1})
    for round_, said in zip(rounds, settled, strict=True):
        await sent(client, session, "observe", round=round_, **said)
    again = {"worker": "ada", "round": rounds[1], "loss": 1, "runs": 1}
    conflict = await client.post(f"/v1/sessions/{session}/observe", json=again)
    assert (conflict.status_code, conflict.json()["code"]) == (409, "observation_conflict")
    same = await sent(client, session, "observe", **again | {"runs": 2})
    assert same["receipt"]["replayed"]
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert (status["success"], status["runs"]) == ("all of 3", 5), "of the labels"
    amendments = f"/v1/sessions/{session}/amendments"
    body = {"round": rounds[1], "loss": 0, "reason": "misread"}
    refused = await client.post(amendments, json=body)
    assert (refused.status_code, refused.json()["field"]) == (422, "loss")
    assert "2 of 3 runs of this draw were made" in refused.json()["detail"]
    for runs in (1, 3, 4):
        refused = await client.post(amendments, json=body | {"round": rounds[0], "runs": runs})
        assert (refused.status_code, refused.json()["field"]) == (422, "runs")
    body = {"round": rounds[2], "loss": 1, "reason": "it had failed"}
    corrected = await client.post(amendments, json=body)
    assert corrected.json()["session"]["runs"] == 6
    certificate = (await client.get(f"/v1/sessions/{session}/certificate")).content
    assert verify(certificate).valid


async def test_who_goes_on_with_a_draw_is_told_the_runs_that_were_made(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 4), success="all of 3", **REPEATS)
    (draw,) = (await sent(client, session, "next", count=1))["draws"]
    assert "runs" not in draw
    round_ = draw["round"]
    made = [{"round": round_, "runs": 1}]
    (draw,) = (await sent(client, session, "next", count=0, runs=made))["draws"]
    assert draw["runs"] == 1
    # Who does not hold it has made none
    await sent(client, session, "next", worker="bob", count=0, runs=[{"round": round_, "runs": 2}])
    await sent(client, session, "release")
    (draw,) = (await sent(client, session, "next", worker="bob", count=1))["draws"]
    assert (draw["round"], draw["runs"]) == (round_, 1)
    later = {"worker": "ada", "round": round_, "loss": 1, "runs": 1}
    conflict = await client.post(f"/v1/sessions/{session}/observe", json=later)
    assert (conflict.status_code, conflict.json()["code"]) == (409, "observation_conflict")
    assert "has 1 runs already" in conflict.json()["detail"]
    assert "amendment" not in conflict.json()["title"]
    await sent(client, session, "observe", worker="bob", round=round_, loss=1, runs=2)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert (status["rounds"]["judged"], status["runs"]) == (1, 2)
    for runs in (0, 3):
        body = {"worker": "ada", "runs": [{"round": round_, "runs": runs}]}
        refused = await client.post(f"/v1/sessions/{session}/next", json=body)
        assert refused.status_code == 422


async def test_a_draw_of_one_run_is_never_open_with_some(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 4), **REPEATS)
    body = {"worker": "ada", "runs": [{"round": 1, "runs": 1}]}
    refused = await client.post(f"/v1/sessions/{session}/next", json=body)
    assert (refused.status_code, refused.json()["field"]) == (422, "runs")


async def test_no_plan_is_made_for_items_that_are_run_again(client: AsyncClient) -> None:
    pool = await known_pool(client, 4)
    answer = await client.post(f"/v1/pools/{pool.id}/planning", json=REPEATS)
    assert (answer.status_code, answer.json()["field"]) == (422, "repeats")

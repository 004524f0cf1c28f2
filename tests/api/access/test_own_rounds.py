"""A label key sees and touches the rounds that were handed to it, and no others."""

from typing import Any

import psycopg
import pytest
from httpx import AsyncClient, Response

from celeus.operations.sessions.blinding import RoundNumbers
from celeus.settings import Settings
from tests.conftest import Execute
from tests.factories import drawn, known_pool, opened, sealed

SHARE = 128
"""Half of the draws of a session that may be out."""
OUT = 256
LEFT = 32
"""An eighth of them, which no key that only labels gets."""


async def said(
    who: AsyncClient,
    session: str,
    round_: int,
    worker: str = "w",
    **judgement: Any,  # noqa: ANN401 - whatever the wire takes
) -> Response:
    body = {"round": round_, "worker": worker} | judgement
    return await who.post(f"/v1/sessions/{session}/observe", json=body)


def expire(database_url: str) -> None:
    """End every lease."""
    with psycopg.connect(database_url) as db:
        db.execute("UPDATE leases SET expires_at = now() - interval '1 second'")


def told(answer: Response) -> tuple[int, dict[str, Any]]:
    """Status and body without the number that was asked for."""
    body = answer.json()
    asked = str(body.pop("value"))
    return answer.status_code, body | {"detail": body["detail"].replace(asked, "N")}


async def test_of_another_keys_round_one_thing_is_told_whatever_is_said_of_it(
    ann: AsyncClient, bob: AsyncClient, client: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    judged, held = [draw["round"] for draw in (await drawn(bob, session, 2))["draws"]]
    assert (await said(bob, session, judged, loss=1)).status_code == 200
    answers = [
        told(await said(ann, session, round_, **judgement))
        for round_ in (judged, held, 1, 2, 3, 2**30, 2**30 + 1, 2**31 - 1)
        for judgement in (
            {"loss": 0},
            {"loss": 1},
            {"loss": 0.5},
            {"label": 1},
            {"unjudgeable": "dark"},
        )
    ]
    assert answers[0][1]["code"] == "round_not_held"
    assert all(answer == answers[0] for answer in answers)
    corrections = [
        told(
            await ann.post(
                f"/v1/sessions/{session}/amendments",
                json={"round": round_, "reason": "slip"} | judgement,
            )
        )
        for round_ in (judged, held, 1, 2, 3, 2**31 - 1)
        for judgement in ({"loss": 0}, {"loss": 1}, {"loss": 0.5}, {"label": 1})
    ]
    assert corrections[0][1]["code"] == "not_last_label"
    assert all(answer == corrections[0] for answer in corrections)


async def test_neither_numbers_nor_receipts_tell_how_much_was_drawn(
    ann: AsyncClient, client: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    await drawn(client, session, 50)
    answer = await drawn(ann, session)
    number = answer["draws"][0]["round"]
    assert number > 51
    found = (await said(ann, session, number, loss=1)).json()
    assert found["receipt"] == {
        "round": number,
        "sequence": None,
        "replayed": False,
        "duplicate": False,
    }
    ledger = (await client.get(f"/v1/sessions/{session}/ledger")).json()["data"]
    assert ledger[-1]["round"] == 51


def test_every_round_has_one_number_and_every_number_one_round() -> None:
    numbers = RoundNumbers(bytes(range(32)))
    shown = [numbers.shown(round_) for round_ in range(1, 5001)]
    assert len(set(shown)) == 5000
    assert min(shown) >= 1
    assert max(shown) <= 2**30
    assert [numbers.round_of(number) for number in shown] == list(range(1, 5001))
    for beyond in (0, 2**30 + 1, 2**31 - 1):
        assert numbers.round_of(numbers.shown(beyond)) == beyond
    assert numbers.round_of(numbers.shown(2**30)) == 2**30


async def test_the_hidden_prediction_is_not_told_by_repeating_a_label_in_other_words(
    ann: AsyncClient, client: AsyncClient
) -> None:
    """Nor by what follows from two labels: both may be wrong, and then have the same loss."""
    items = [{"id": f"i{number}", "prediction": number % 3} for number in range(60)]
    session = await opened(client, await sealed(client, items))
    predictions: list[int] = []
    # Until there was one of each, which the session stops far behind
    while len(predictions) < 12 or len(set(predictions)) < 3:
        [draw] = (await drawn(ann, session, worker="w"))["draws"]
        predictions.append(draw["item"]["index"] % 3)
        number = draw["round"]
        other = {"round": number, "loss": 0}
        listed = {"observations": [{"round": number, "label": 0}, other], "worker": "w"}
        both = await ann.post(f"/v1/sessions/{session}/observe", json=listed)
        assert both.json()["code"] == "observation_conflict"
        assert (await said(ann, session, number, label=0)).status_code == 200
        assert (await said(ann, session, number, label=0)).json()["receipt"]["replayed"]
        words: list[dict[str, Any]] = [{"label": 1}, {"label": 2}, {"loss": 0}, {"loss": 1}]
        for again in words:
            answer = await said(ann, session, number, **again)
            assert answer.json()["code"] == "observation_conflict"


async def test_a_workers_name_counts_within_its_key(
    ann: AsyncClient, bob: AsyncClient, client: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    his = (await drawn(bob, session, worker="anna"))["draws"]
    hers = (await drawn(ann, session, worker="anna"))["draws"]
    assert his[0]["round"] != hers[0]["round"]
    again = (await drawn(bob, session, worker="anna"))["draws"]
    assert again[0]["round"] == his[0]["round"]


async def test_one_key_with_many_workers_holds_a_share_of_the_draws_and_judges_them_all(
    ann: AsyncClient, bob: AsyncClient, client: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    held = [
        draw["round"]
        for worker in range(10)
        for draw in (await drawn(ann, session, 20, f"w{worker}"))["draws"]
    ]
    assert len(held) == SHARE
    full = await drawn(ann, session, 1, "one more")
    assert (full["state"], full["draws"], full["retry_after"]) == ("all_leased", [], 10)
    assert len((await drawn(ann, session, 20, "w0"))["draws"]) == 20, "its own are renewed"
    assert (await drawn(bob, session))["state"] == "active"
    assert (await said(ann, session, held[25], loss=1)).status_code == 200, "by any worker"
    assert len((await drawn(ann, session, 2, "one more"))["draws"]) == 1


async def test_keys_that_label_leave_draws_to_those_that_see(
    ann: AsyncClient, bob: AsyncClient, client: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    held = [(who, await drawn(who, session, 255)) for who in (ann, bob)]
    assert [len(answer["draws"]) for _, answer in held] == [SHARE, OUT - SHARE - LEFT]
    renewed = await drawn(bob, session, 255)
    assert len(renewed["draws"]) == OUT - SHARE - LEFT
    assert (await drawn(bob, session, 1, "another"))["state"] == "all_leased"
    assert len((await drawn(client, session, 255))["draws"]) == LEFT
    number = held[0][1]["draws"][0]["round"]
    assert (await said(ann, session, number, loss=1)).status_code == 200
    assert (await drawn(bob, session, 1, "another"))["state"] == "all_leased"


async def test_a_key_may_hold_two_draws_of_the_smallest_session(
    ann: AsyncClient, client: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client, 2))
    assert len((await drawn(ann, session, 2))["draws"]) == 2


async def test_a_key_alone_comes_to_the_end_of_a_small_session(
    ann: AsyncClient, client: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client, 5))
    answer = await drawn(ann, session, 5)
    sizes = []
    while answer["draws"]:
        sizes.append(len(answer["draws"]))
        for draw in answer["draws"]:
            assert (await said(ann, session, draw["round"], loss=1)).status_code == 200
        answer = await drawn(ann, session, 5)
    assert (answer["state"], sizes) == ("exhausted", [3, 2])


async def test_a_key_that_sees_may_hold_them_all_and_judges_what_it_likes(
    bob: AsyncClient, client: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    number = (await drawn(bob, session))["draws"][0]["round"]
    assert len((await drawn(client, session, 255))["draws"]) == 255
    assert (await said(client, session, 1, loss=1)).status_code == 200
    late = await said(bob, session, number, loss=1)
    assert late.json()["receipt"]["duplicate"]


async def test_a_late_judgement_of_a_round_handed_on_is_taken_from_whoever_comes_first(
    ann: AsyncClient, bob: AsyncClient, client: AsyncClient, database_url: str
) -> None:
    session = await opened(client, await known_pool(client))
    for first in (ann, bob):
        number = (await drawn(ann, session, worker=f"{first}"))["draws"][0]["round"]
        expire(database_url)
        assert (await drawn(bob, session, worker=f"{first}"))["draws"][0]["round"] == number
        second = bob if first is ann else ann
        assert (await said(first, session, number, loss=1)).status_code == 200
        for loss in (0, 1):
            late = (await said(second, session, number, loss=loss)).json()
            if second is bob:
                assert late["receipt"]["duplicate"], "its lease ran when another was first"
            else:
                assert late["code"] == "round_not_held"
        again = (await said(first, session, number, loss=1)).json()
        assert again["receipt"]["replayed"]


async def test_what_a_retired_key_held_is_its_successors_to_judge(
    ann: AsyncClient, bob: AsyncClient, client: AsyncClient, execute: Execute
) -> None:
    """A label waits in a browser while its key expires, and comes with a new key of the name."""
    session = await opened(client, await known_pool(client))
    waits, kept = [draw["round"] for draw in (await drawn(ann, session, 2))["draws"]]
    assert (await said(ann, session, kept, loss=1)).status_code == 200
    key = ann.headers["Authorization"].split("_")[1]
    execute("UPDATE keys SET revoked_at = now() WHERE key_id = %s", [key])
    assert (await said(bob, session, kept, loss=1)).json()["code"] == "round_not_held"
    assert (await said(bob, session, waits, loss=1)).status_code == 200


async def test_another_key_of_the_same_name_does_not_guess_a_correction(
    ann: AsyncClient, bob: AsyncClient, client: AsyncClient
) -> None:
    session = await opened(client, await known_pool(client))
    number = (await drawn(ann, session))["draws"][0]["round"]
    await said(ann, session, number, loss=1)
    path = f"/v1/sessions/{session}/amendments"
    correction = {"round": number, "reason": "slip", "loss": 0}
    assert (await ann.post(path, json=correction)).status_code == 200
    for loss in (0, 1):
        answer = await bob.post(path, json=correction | {"loss": loss})
        assert answer.json()["code"] == "not_last_label"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A revoked key works no longer, at once."""
    return settings.model_copy(update={"key_cache_seconds": 0})

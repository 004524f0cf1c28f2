"""Sessions with a panel of raters: turns, outcomes, retries, corrections, and what is told."""

import contextlib
import itertools
import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from math import sqrt
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from celeus.core.certificate.verify import verify
from celeus.core.plans.panel_plan import Protocol
from celeus.core.session.panel import agreement, outcome
from celeus.operations.certificates.audit import audit
from celeus.settings import Settings
from celeus.store.database import Database
from tests.api.contract import client_with
from tests.clients import serving
from tests.factories import KnownPool, drawn, known_pool, numbers_of, opened, status_of
from tests.keys import key_in
from tests.pairs import pair

PANEL = ["ann", "ben", "cid"]


async def panelled(
    client: AsyncClient, protocol: str = "two_then_third", items: int = 60, **more: object
) -> tuple[str, KnownPool]:
    """A session whose raters are PANEL, and its pool."""
    pool = await known_pool(client, items)
    settings = {"raters": "assigned", "protocol": protocol, "panel": PANEL} | more
    return await opened(client, pool, **settings), pool


async def rate(
    client: AsyncClient, session: str, worker: str, draw: dict[str, Any], **said: object
) -> Response:
    """What the service answers to a rater."""
    turn = {"turn": draw["turn"]} if "turn" in draw else {}
    body = {"round": draw["round"], "worker": worker} | turn | said
    return await client.post(f"/v1/sessions/{session}/observe", json=body)


async def kinds(client: AsyncClient, session: str) -> list[str]:
    data = (await client.get(f"/v1/sessions/{session}/ledger?limit=10000")).json()["data"]
    return [event["kind"] for event in data]


async def first_round(client: AsyncClient, session: str) -> tuple[list[str], dict[str, Any]]:
    """Round 1: its raters in their order as far as it shows, and the draw."""
    asked = {}
    for name in PANEL:
        for draw in (await drawn(client, session, 8, name))["draws"]:
            if draw["round"] == 1:
                asked[name] = draw
    assert len(asked) == 2
    third = next(name for name in PANEL if name not in asked)
    return [*asked, third], next(iter(asked.values()))


def says(name: str, item: int, turn: int = 1) -> float:
    """What a rater says of an item: they differ on every third."""
    return float((item + (PANEL.index(name) if item % 3 == 0 and turn < 3 else 0)) % 2)


async def rated_to_the_end(
    client: AsyncClient, session: str
) -> dict[int, list[tuple[str, int, float]]]:
    """All raters by turns, three items at a time: rater, turn and loss by item, as they came."""
    judgements: dict[int, list[tuple[str, int, float]]] = {}
    for _, name in zip(range(400), itertools.cycle(PANEL), strict=False):
        offer = await drawn(client, session, 3, name)
        assert len(offer["draws"]) <= 3
        for draw in offer["draws"]:
            item, turn = draw["item"]["index"], draw.get("turn", 1)
            answer = await rate(client, session, name, draw, loss=says(name, item, turn))
            assert answer.status_code == 200, answer.text
            judgements.setdefault(item, []).append((name, turn, says(name, item, turn)))
        if offer["state"] == "exhausted":
            break
    return judgements


@pytest.mark.parametrize("protocol", ["two_then_third", "consensus"])
async def test_a_session_is_judged_to_its_end_by_a_panel(
    client: AsyncClient, protocol: Protocol
) -> None:
    session, pool = await panelled(client, protocol, 30)
    ratings = await rated_to_the_end(client, session)
    found = await status_of(client, session)
    assert found["state"] == "exhausted"
    assert len(ratings) == len(pool.losses)
    losses = []
    for given in ratings.values():
        assert len({(name, turn) for name, turn, _ in given}) == len(given)
        order = sorted(given, key=lambda rating: rating[1])
        result = outcome(protocol, [loss for _, _, loss in order])
        assert result.loss is not None
        losses.append(result.loss)
    assert found["lower"] == found["upper"] == pytest.approx(sum(losses) / len(losses))
    pairs = [[loss for _, turn, loss in given if turn == 1][:2] for given in ratings.values()]
    assert found["raters"].pop("agreement") == pytest.approx(agreement(pairs), abs=1e-12)
    assert found["raters"] == {
        "protocol": protocol,
        "panel": [{"name": name, "rounds": 0} for name in PANEL],
        "judgements": sum(map(len, ratings.values())),
        "items": 30,
    }
    events = await kinds(client, session)
    assert events.count("rating") == found["raters"]["judgements"]
    assert events.count("observation") == 30


@pytest.mark.parametrize("protocol", ["two_then_third", "consensus"])
async def test_a_certificate_names_the_panel_and_has_every_outcome_checked(
    client: AsyncClient, protocol: Protocol
) -> None:
    session, _ = await panelled(client, protocol, 20)
    await rated_to_the_end(client, session)
    url = f"/v1/sessions/{session}/certificate"
    interim = verify((await client.get(url)).content)
    assert interim.difference is None, interim.line
    assert "raters" in interim.checked
    assert "turns" in interim.unchecked
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    final = (await client.get(url)).content
    report = verify(final)
    assert report.difference is None, report.line
    assert {"raters", "turns"} <= set(report.checked)
    claim, found = json.loads(final)["claim"], await status_of(client, session)
    assert claim["raters"] == found["raters"] | {"panel": 3}
    texts = {assumption["code"]: assumption["text"] for assumption in claim["assumptions"]}
    assert "a panel of 3" in texts["raters"]
    page = (await client.get(f"/v1/sessions/{session}/report")).text
    assert "by a panel of 3" in page
    for text in (texts["raters"], page):
        assert "the loss is that of others then, and not counted at its worst" in text


async def test_two_are_asked_and_a_third_where_they_differ(client: AsyncClient) -> None:
    session, _ = await panelled(client)
    (first_rater, second_rater, third), draw = await first_round(client, session)
    turned_away = await rate(client, session, third, draw, loss=0)
    assert (turned_away.status_code, turned_away.json()["code"]) == (409, "round_not_held")
    assert (await rate(client, session, first_rater, draw, loss=0)).status_code == 200
    assert (await status_of(client, session))["rounds"]["judged"] == 0
    assert (await rate(client, session, second_rater, draw, loss=1)).status_code == 200
    assert 1 not in [
        draw["round"] for draw in (await drawn(client, session, 9, first_rater))["draws"]
    ]
    # Behind all that it has been asked before
    assert 1 not in [draw["round"] for draw in (await drawn(client, session, 2, third))["draws"]]
    assert 1 in [draw["round"] for draw in (await drawn(client, session, 60, third))["draws"]]
    answer = (await rate(client, session, third, draw, loss=1)).json()
    assert answer["session"]["rounds"]["judged"] == 1
    late = await rate(client, session, third, draw, loss=0)
    assert (late.status_code, late.json()["code"]) == (409, "observation_conflict")


async def test_the_same_judgement_again_gets_the_first_receipt_and_another_is_a_conflict(
    client: AsyncClient,
) -> None:
    session, _ = await panelled(client)
    (first_rater, second_rater, _), draw = await first_round(client, session)
    first = (await rate(client, session, first_rater, draw, loss=0)).json()["receipt"]
    again = (await rate(client, session, first_rater, draw, loss=0)).json()["receipt"]
    assert again == first | {"replayed": True}
    other = await rate(client, session, first_rater, draw, loss=1)
    assert (other.status_code, other.json()["code"]) == (409, "observation_conflict")
    assert (await rate(client, session, second_rater, draw, loss=0)).status_code == 200
    decided = (await rate(client, session, first_rater, draw, loss=0)).json()["receipt"]
    assert decided == first | {"replayed": True}
    assert (await kinds(client, session)).count("rating") == 2


async def test_consensus_is_asked_for_again_and_a_retry_is_no_second_turn(
    client: AsyncClient,
) -> None:
    session, _ = await panelled(client, "consensus")
    (first_rater, second_rater, third), draw = await first_round(client, session)
    assert draw["turn"] == 1
    await rate(client, session, first_rater, draw, loss=0)
    await rate(client, session, second_rater, draw, loss=1)
    again = (await rate(client, session, first_rater, draw, loss=0)).json()["receipt"]
    assert again["replayed"]
    held = [
        draw
        for draw in (await drawn(client, session, 9, first_rater))["draws"]
        if draw["round"] == 1
    ]
    assert [draw["turn"] for draw in held] == [2]
    assert (await rate(client, session, third, held[0], loss=0)).status_code == 409
    for turn in (2, 3):
        for name, loss in ((first_rater, 0), (second_rater, 1)):
            answer = await rate(client, session, name, draw | {"turn": turn}, loss=loss)
            assert answer.status_code == 200, answer.text
    found = await status_of(client, session)
    assert found["rounds"]["judged"] == 1
    assert (await kinds(client, session))[-1] == "unjudgeable"
    assert found["raters"]["items"] == 1


async def test_who_cannot_judge_is_passed_over(client: AsyncClient) -> None:
    session, _ = await panelled(client)
    (first_rater, second_rater, third), draw = await first_round(client, session)
    assert (
        await rate(client, session, first_rater, draw, unjudgeable="blurred")
    ).status_code == 200
    assert (await rate(client, session, third, draw, loss=1)).status_code == 200
    assert (await rate(client, session, second_rater, draw, loss=1)).status_code == 200
    assert (await kinds(client, session))[-2:] == ["rating", "observation"]
    assert (await status_of(client, session))["raters"]["judgements"] == 3


async def amended(client: AsyncClient, session: str, **body: object) -> Response:
    return await client.post(
        f"/v1/sessions/{session}/amendments", json={"author": "eve", "reason": "a slip"} | body
    )


async def test_a_judgement_is_corrected_before_the_decision_and_not_after(
    client: AsyncClient,
) -> None:
    session, _ = await panelled(client)
    (first_rater, second_rater, third), draw = await first_round(client, session)
    early = await amended(client, session, round=1, loss=0, worker=first_rater)
    assert (early.status_code, early.json()["code"]) == (409, "round_not_judged")
    never = await amended(client, session, round=59, loss=0, worker=first_rater)
    assert (never.status_code, never.json()["code"]) == (409, "round_not_judged")
    await rate(client, session, first_rater, draw, loss=0)
    await rate(client, session, second_rater, draw, loss=1)
    # The third was asked; the two now agree, and the round is decided
    first = await amended(client, session, round=1, loss=1, worker=first_rater)
    assert first.status_code == 200, first.text
    again = await amended(client, session, round=1, loss=1, worker=first_rater)
    assert again.json()["receipt"] == first.json()["receipt"] | {
        "replayed": True,
        "duplicate": False,
    }
    found = await status_of(client, session)
    assert (found["rounds"]["judged"], found["raters"]["judgements"]) == (1, 2)
    assert (await rate(client, session, third, draw, loss=0)).status_code == 409
    late = await amended(client, session, round=1, loss=0, worker=second_rater)
    assert (late.status_code, late.json()["field"]) == (422, "worker")
    # What they came to is a loss like any other
    assert (await amended(client, session, round=1, loss=0)).status_code == 200
    assert (await kinds(client, session))[-3:] == ["rating", "observation", "amendment"]


async def test_a_correction_by_which_another_had_been_asked_is_refused(
    client: AsyncClient,
) -> None:
    session, _ = await panelled(client)
    (first_rater, _, third), draw = await first_round(client, session)
    await rate(client, session, first_rater, draw, unjudgeable="blurred")
    await rate(client, session, third, draw, loss=1)
    refused = await amended(client, session, round=1, loss=1, worker=first_rater)
    assert (refused.status_code, refused.json()["field"]) == (422, "round")


async def test_a_key_with_a_raters_name_speaks_for_that_rater_alone(
    app: FastAPI, client: AsyncClient, database_url: str
) -> None:
    session, _ = await panelled(client)
    (first_rater, second_rater, _), draw = await first_round(client, session)
    async with (
        client_with(app, named_key(database_url, first_rater)) as judge,
        client_with(app, key_in(database_url, "label")) as other,
    ):
        offer = await drawn(judge, session, 1, f"{second_rater} window")
        assert len(offer["draws"]) == 1
        assert "session" not in offer
        held = offer["draws"][0]
        assert held["round"] != 1
        answer = await rate(judge, session, second_rater, held, loss=0)
        assert answer.status_code == 200, answer.text
        assert answer.json()["receipt"]["sequence"] is None
        undone = await judge.post(
            f"/v1/sessions/{session}/amendments",
            json={"round": held["round"], "loss": 1, "reason": "undone by the judge"},
        )
        assert undone.status_code == 200, undone.text
        refused = await other.post(
            f"/v1/sessions/{session}/next", json={"worker": "dan", "count": 1}
        )
        assert (refused.status_code, refused.json()["field"]) == (422, "worker")
        guessed = await rate(judge, session, first_rater, {"round": 7}, loss=0)
        assert (guessed.status_code, guessed.json()["code"]) == (409, "round_not_held")
        task = (await judge.get(f"/v1/sessions/{session}/task")).json()
        assert task["labeller"] == {"name": first_rater, "labels": 1}
    assert (await rate(client, session, second_rater, draw, loss=0)).status_code == 200


async def test_a_rater_who_is_told_no_names_corrects_nothing_by_name(
    client: AsyncClient, ann: AsyncClient
) -> None:
    """What becomes of the round would tell whose answer stood on the left."""
    pool = await pair(client, "losses")
    session = await opened(
        client,
        pool,
        raters="assigned",
        protocol="two_then_third",
        panel=["of a test", "ben", "cid"],
    )
    draw, last = (await drawn(ann, session, 2))["draws"]
    for held_draw in (draw, last):
        answer = await rate(ann, session, "of a test", held_draw, losses={"left": 0, "right": 1})
        assert answer.status_code == 200, answer.text
    by_name = await ann.post(
        f"/v1/sessions/{session}/amendments",
        json={"round": draw["round"], "losses": {"a": 0, "b": 1}, "reason": "a slip"},
    )
    assert (by_name.status_code, by_name.json()["field"]) == (422, "losses")


async def test_a_blind_rater_holds_no_more_than_the_share_of_a_key(
    client: AsyncClient, ann: AsyncClient
) -> None:
    pool = await known_pool(client, 60)
    asked = {"raters": "assigned", "protocol": "consensus", "panel": ["of a test", "ben"]}
    session = await opened(client, pool, **asked)
    assert len((await drawn(ann, session, 60))["draws"]) == 30
    assert (await status_of(client, session))["rounds"]["drawn"] == 30


async def test_the_same_judgement_twice_in_a_request_is_one(client: AsyncClient) -> None:
    session, _ = await panelled(client)
    (first_rater, _, _), draw = await first_round(client, session)
    judgement = {"round": draw["round"], "loss": 0}
    answer = await client.post(
        f"/v1/sessions/{session}/observe",
        json={"worker": first_rater, "observations": [judgement, judgement]},
    )
    assert answer.status_code == 200, answer.text
    first, second = answer.json()["receipts"]
    assert second == first | {"replayed": True}


def named_key(url: str, name: str) -> str:
    """A key with scope label and this name."""
    token = key_in(url, "label")
    with psycopg.connect(url) as db:
        db.execute("UPDATE keys SET name = %s WHERE key_id = %s", [name, token.split("_")[1]])
    return token


def told(answer: Response) -> dict[str, Any]:
    """An answer but for the round, which the caller has named."""
    return {name: value for name, value in answer.json().items() if name not in {"detail", "value"}}


async def test_a_blind_rater_whose_turn_is_over_is_told_neither_whose_it_is_nor_the_round(
    app: FastAPI, client: AsyncClient, database_url: str
) -> None:
    session, _ = await panelled(client, "consensus")
    (first_rater, _, third), draw = await first_round(client, session)
    async with client_with(app, named_key(database_url, first_rater)) as judge:
        held = (await drawn(judge, session, 8, first_rater))["draws"]
        # Passed over: the third has judged in the place of this one
        passed = next(
            held_draw for held_draw in held if held_draw["item"]["index"] == draw["item"]["index"]
        )
        await rate(judge, session, first_rater, passed, unjudgeable="blurred")
        assert (await rate(client, session, third, draw, loss=1)).status_code == 200
        body = {"loss": 1, "reason": "a slip"}
        url = f"/v1/sessions/{session}/amendments"
        refused = await judge.post(url, json=body | {"round": passed["round"]})
        assert refused.status_code == 409, refused.text
        unknown = await judge.post(url, json=body | {"round": 7})
        assert told(refused) == told(unknown)
        assert not re.search(rf"\b{third}\b", refused.text)
        # Judged differently by another: the first turn is over
        fresh = next(draw for draw in held if draw is not passed)
        await rate(judge, session, first_rater, fresh, loss=0)
        for other in (name for name in PANEL if name != first_rater):
            for open_draw in (await drawn(client, session, 60, other))["draws"]:
                if open_draw["item"] == fresh["item"]:
                    assert (
                        await rate(client, session, other, open_draw, loss=1)
                    ).status_code == 200
        late = await judge.post(url, json=body | {"round": fresh["round"]})
        assert late.status_code == 409, late.text
        assert told(late) == told(unknown)
        assert late.json()["value"] == fresh["round"]


async def test_a_blind_key_learns_no_judgement_that_another_key_gave_by_repeating_it(
    client: AsyncClient, ann: AsyncClient
) -> None:
    session, _ = await panelled(client)
    (first_rater, second_rater, _), draw = await first_round(client, session)
    await rate(client, session, first_rater, draw, loss=1)
    held = (await drawn(ann, session, 8, second_rater))["draws"]
    same = next(
        held_draw for held_draw in held if held_draw["item"]["index"] == draw["item"]["index"]
    )
    guesses = [await rate(ann, session, first_rater, same, loss=loss) for loss in (0, 1)]
    assert [answer.json()["code"] for answer in guesses] == ["round_not_held"] * 2
    answers = [await rate(ann, session, second_rater, same, loss=0) for _ in range(2)]
    assert [answer.json()["receipt"]["replayed"] for answer in answers] == [False, True]


async def test_another_worker_goes_on_where_one_was_killed(
    settings: Settings, client: AsyncClient, database: Database
) -> None:
    """Its state is that of the ledger: nothing of a half-judged round is lost or asked twice."""
    session, _ = await panelled(client)
    (first_rater, second_rater, _), draw = await first_round(client, session)
    first = (await rate(client, session, first_rater, draw, loss=1)).json()["receipt"]
    before = await status_of(client, session)
    async with serving(settings) as other:
        again = (await rate(other, session, first_rater, draw, loss=1)).json()
        assert again["receipt"] == first | {"replayed": True}
        assert again["session"] == before
        decided = (await rate(other, session, second_rater, draw, loss=1)).json()
        assert decided["session"]["rounds"]["judged"] == 1
    # The first one folds what the other has written
    late = await rate(client, session, second_rater, draw, loss=1)
    assert late.json()["receipt"]["replayed"]
    assert (await audit(database)).findings == []


async def test_labels_are_counted_by_judgement(client: AsyncClient) -> None:
    session, _ = await panelled(client)
    (first_rater, second_rater, _), draw = await first_round(client, session)
    for name in (first_rater, second_rater):
        await rate(client, session, name, draw, loss=0)
    found = (await client.get(f"/v1/sessions/{session}/workers")).json()
    assert found["labels_hour"] == 2
    assert {worker["worker"]: worker["labels_hour"] for worker in found["data"]} == {
        first_rater: 1,
        second_rater: 1,
    }


async def test_draws_go_out_only_as_far_as_may_be_for_a_rater_who_is_alone(
    client: AsyncClient,
) -> None:
    session, _ = await panelled(client, items=20)
    seen = set()
    offer = await drawn(client, session, 20, "ann")
    for draw in offer["draws"]:
        assert (await rate(client, session, "ann", draw, loss=0)).status_code == 200
        seen.add(draw["round"])
    alone = await drawn(client, session, 20, "ann")
    assert (alone["state"], alone["draws"]) == ("all_leased", [])
    assert alone["retry_after"] == 10.0
    found = await status_of(client, session)
    assert found["rounds"] == {
        "drawn": 20,
        "judged": 0,
        "in_interval": 0,
        "pending": 20,
        "waiting": 0,
    }
    awaited = {rater["name"]: rater["rounds"] for rater in found["raters"]["panel"]}
    assert awaited["ann"] == 0
    assert awaited["ben"] + awaited["cid"] == 40 - len(seen)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"raters": "assigned", "protocol": "two_then_third"}, "panel"),
        ({"raters": "assigned", "panel": ["a", "b"]}, "protocol"),
        ({"raters": "pairs", "protocol": "consensus", "panel": ["a", "b"]}, "raters"),
        ({"protocol": "consensus", "panel": ["a", "b"]}, "raters"),
        ({"groups": [], "protocol": "consensus", "panel": ["a", "b"]}, "protocol"),
    ],
)
async def test_what_would_not_be_fixed_before_the_draw_is_refused_by_name(
    client: AsyncClient, asked: dict[str, Any], field: str
) -> None:
    pool = await known_pool(client, 20)
    answer = await client.post("/v1/sessions", json={"pool_id": pool.id} | asked)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


HELD = 4
SESSIONS = 3


@pytest.fixture
async def blind(app: FastAPI, database_url: str) -> AsyncIterator[dict[str, AsyncClient]]:
    """A client of a blind key for every rater, by name."""
    async with contextlib.AsyncExitStack() as opened:
        clients = {}
        for name in PANEL:
            token = named_key(database_url, name)
            clients[name] = await opened.enter_async_context(client_with(app, token))
        yield clients


async def test_the_place_of_a_third_vote_is_that_of_any_other(
    client: AsyncClient, blind: dict[str, AsyncClient], database_url: str
) -> None:
    places: dict[bool, Counter[bool]] = {True: Counter(), False: Counter()}
    for seed in range(SESSIONS):
        session, _ = await panelled(client, items=50)
        for third, last in await places_of_newcomers(client, session, blind, database_url, seed):
            places[third][last] += 1
    shares = {third: found[True] / found.total() for third, found in places.items()}
    counts = {third: found.total() for third, found in places.items()}
    assert counts[True] >= 10 * SESSIONS
    spread = sqrt(0.25 / counts[True] + 0.25 / counts[False])
    assert abs(shares[True] - shares[False]) < 5 * spread, (shares, counts)


async def places_of_newcomers(
    client: AsyncClient,
    session: str,
    blind: dict[str, AsyncClient],
    database_url: str,
    seed: int,
) -> list[tuple[bool, bool]]:
    """Of draws new in a hand: whether each is a third vote, and whether it is the last.

    Each rater holds some draws and judges one of them at random. What is held stays, and the draws
    are in the order of the numbers that the rater sees.
    """
    rng = random.Random(seed)  # noqa: S311 -- repeatable
    before: dict[str, list[int]] = {name: [] for name in PANEL}
    seen: list[tuple[str, int, bool]] = []
    state = "active"
    while state == "active":
        name = rng.choice(PANEL)
        offer = await drawn(blind[name], session, HELD, name)
        state, hand = offer["state"], [draw["round"] for draw in offer["draws"]]
        if len(hand) < HELD:
            break
        assert hand == sorted(hand)
        assert set(before[name]) <= set(hand), "who holds a draw goes on holding it"
        seen += [(name, number, number == hand[-1]) for number in set(hand) - set(before[name])]
        draw = rng.choice(offer["draws"])
        body = {"worker": name, "round": draw["round"], "loss": rng.randrange(2)}
        answer = await blind[name].post(f"/v1/sessions/{session}/observe", json=body)
        assert answer.status_code == 200, answer.text
        before[name] = [number for number in hand if number != draw["round"]]
    thirds = await third_votes(client, session, database_url)
    return [((name, number) in thirds, last) for name, number, last in seen]


async def third_votes(client: AsyncClient, session: str, database_url: str) -> set[tuple[str, int]]:
    """Raters and rounds, by the numbers of blind keys, of all third votes in the ledger."""
    page = (await client.get(f"/v1/sessions/{session}/ledger?limit=10000")).json()["data"]
    numbers = numbers_of(database_url, session)
    votes: Counter[int] = Counter()
    thirds = set()
    for event in page:
        if event["kind"] == "rating":
            votes[event["round"]] += 1
            if votes[event["round"]] == 3:
                thirds.add((event["detail"]["rater"], numbers.shown(event["round"])))
    return thirds

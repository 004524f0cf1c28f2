"""What a blind rater of a panel sees does not tell on which items the others differ.

A third vote is asked of an item that was drawn a while ago. Were draws handed out in the order of
rounds, it would be the one that comes before those that the rater holds already.
"""

import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from math import sqrt

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from tests.api.contract import client_with
from tests.api.sessions.test_raters import PANEL, named_key, panelled
from tests.factories import drawn, numbers_of

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

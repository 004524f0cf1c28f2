"""A labeller tries every route, and is told nothing that could sway a judge."""

import math
import re
from collections.abc import AsyncIterator, Iterator

from fastapi import FastAPI
from httpx import AsyncClient, Response

from tests.api.contract import MISSING, ROUTES, client_with
from tests.factories import drawn, judged, known_pool, labelled, opened, sealed
from tests.keys import key_in

BLIND_TO = {
    *("estimate", "lower", "upper", "width", "alpha", "precision", "budget", "items", "forecast"),
    *(
        "stopped",
        "stop_reason",
        "rounds",
        "warnings",
        "round_",
        "policy",
        "strategy",
        "labels_left",
    ),
    *("surrogate", "surrogates", "proxy", "q", "strata_q", "probability", "decisions", "questions"),
    *("target", "commitment", "seed", "drawn", "in_interval", "pending", "waiting", "ledger_head"),
}
OF_WHAT_IS_SENT = {"/openapi.json", "/v1/certificates/verify"}
"""Routes that answer with members of these names, and of no session."""
PRECISION, BUDGET = 0.23456789, 277


def members(value: object) -> Iterator[tuple[str, object]]:
    """Every member of a document, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name, inner
            yield from members(inner)
    elif isinstance(value, list):
        for inner in value:
            yield "", inner
            yield from members(inner)


def assert_blind(answer: Response, secret: list[float]) -> None:
    """No forbidden member, and none of these numbers in any form."""
    if answer.headers.get("Content-Type", "").endswith("json"):
        found = {name for name, _ in members(answer.json())}
        assert not found & BLIND_TO, f"{answer.request.url}: {found & BLIND_TO}"
    for number in secret:
        for form in (repr(number), f"{number:g}", f"{number:.3f}"):
            alone = rf"(?<![\w.]){re.escape(form)}(?![\w.])"
            assert not re.search(alone, answer.text), f"{answer.request.url} tells {form}"


async def test_a_labeller_reads_no_interval_by_any_route(
    client: AsyncClient, ann: AsyncClient
) -> None:
    # No item has the budget's number
    pool = await known_pool(client, BUDGET)
    session = await opened(client, pool, precision=PRECISION, budget=BUDGET)
    ids = MISSING | {"pool_id": pool.id, "session_id": session}
    offer = await drawn(ann, session, 3)
    for draw in offer["draws"]:
        observed = await judged(ann, session, pool, draw, next=3)
        assert observed["session"] == {"id": session, "state": "active"}
    seen = (await client.get(f"/v1/sessions/{session}")).json()
    numbers = [seen["estimate"], seen["upper"], seen["width"], PRECISION, BUDGET]
    # An end of the scale is no news, and 1 stands in every refusal of a round
    secret = [number for number in numbers if number not in {0.0, 1.0}]
    for route in ROUTES:
        answers = [await route.ask(ann, ids)]
        if "{session_id}" in route.path:
            options = {"params": {"limit": 5}, "headers": {"If-None-Match": "*"}}
            answers.append(await route.ask(ann, ids, **options))
        allowed = route.opens_to({"label"})
        assert (answers[0].status_code == 403) == (not allowed), route.path
        # A parameter that the route does not have is refused before the scope is looked at
        assert allowed or {answer.status_code for answer in answers} <= {403, 422}, route.path
        for answer in answers:
            if route.path not in OF_WHAT_IS_SENT:
                assert_blind(answer, secret)
    for answer in [answer async for answer in _refused(ann, session)]:
        assert answer.status_code >= 400
        assert_blind(answer, secret)


async def _refused(labeller: AsyncClient, session: str) -> AsyncIterator[Response]:
    """What a labeller may get wrong."""
    path = f"/v1/sessions/{session}"
    wrong: list[object] = [
        {"round": 4, "loss": loss, "worker": "eve"} for loss in (7, -1, 0.5, "a", None)
    ]
    wrong += [
        {"round": 10**9, "loss": 1, "worker": "eve"},
        {"round": 1, "unjudgeable": "changed my mind", "worker": "eve"},
        {"round": 4, "label": 3, "worker": "eve"},
        {"observations": [{"round": 4, "loss": 1}, {"round": 4, "loss": 0}], "worker": "eve"},
        {},
    ]
    for body in wrong:
        yield await labeller.post(f"{path}/observe", json=body)
    wrong = [{"worker": ""}, {"worker": "eve", "count": 10**6}, {"count": 1}, []]
    for body in wrong:
        yield await labeller.post(f"{path}/next", json=body)


async def test_a_labeller_sees_that_it_is_over_and_not_how(
    client: AsyncClient, ann: AsyncClient
) -> None:
    pool = await known_pool(client, 40)
    session = await opened(client, pool, budget=5)
    await labelled(ann, session, pool, 3)
    answer = await drawn(ann, session, 2)
    listed = [
        {"round": draw["round"], "loss": pool.losses[draw["item"]["index"]]}
        for draw in answer["draws"]
    ]
    body = {"observations": listed, "worker": "ada", "next": 1}
    last = await ann.post(f"/v1/sessions/{session}/observe", json=body)
    assert last.json()["session"] == {"id": session, "state": "budget_spent"}
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    refused = await ann.post(f"/v1/sessions/{session}/observe", json=body)
    assert refused.json()["session"] == {"id": session, "state": "closed"}
    late = {"round": listed[0]["round"], "loss": 1 - listed[0]["loss"], "worker": "ada"}
    conflict = await ann.post(f"/v1/sessions/{session}/observe", json=late)
    for answered in (last, refused, conflict):
        assert_blind(answered, [])


async def test_what_is_stated_of_an_item_is_not_told_by_contradicting_it(
    client: AsyncClient, app: FastAPI, database_url: str
) -> None:
    """Neither bounds nor the loss that follows from a label and hidden probabilities."""
    probs, upper = [0.34567, 0.65433], 0.71234
    items = [{"id": f"i{n}", "target_probs": probs, "loss_upper": upper} for n in range(3)]
    loss = {"kind": "cross_entropy", "upper": 5.0}
    session = await opened(client, await sealed(client, items, loss=loss))
    token = key_in(database_url, "label")
    async with client_with(app, token) as labeller:
        [draw] = (await drawn(labeller, session))["draws"]
        judgement = {"round": draw["round"], "worker": "eve"}
        for more in ({"label": 0}, {"loss": 0.9}):
            answer = await labeller.post(f"/v1/sessions/{session}/observe", json=judgement | more)
            assert answer.json()["code"] == "bound_contradicted", answer.text
            assert_blind(answer, [upper, -math.log(probs[0]), 0.9])
    kept = (await client.get(f"/v1/sessions/{session}")).json()["contradictions"]
    assert [round(contradiction["loss"], 3) for contradiction in kept] == [1.062, 0.9]
    assert {(contradiction["key"], contradiction["author"]) for contradiction in kept} == {
        (token.split("_")[1], "of a test")
    }

"""Opening, naming, reading and changing sessions."""

import os
import re
from collections.abc import Iterator
from typing import Any, get_args

import psycopg
import pytest
from httpx import AsyncClient

from celeus.operations.insights.session_lists import Order
from celeus.seeds import SEED_BYTES
from celeus.store.tables import DEFAULT_PROJECT
from tests.factories import drawn, judged, known_pool, labelled, opened

NOBODY = "0" * 32
MODEL = {"name": "model.safetensors", "algorithm": "sha256", "digest": "ab" * 32}
MARGIN = {"target": "population", "population_bound": "margin", "margin": 0.01}


async def test_a_session_publishes_its_commitment_and_never_its_seed(client: AsyncClient) -> None:
    pool = await known_pool(client, 30)
    answer = await client.post("/v1/sessions", json={"pool_id": pool.id})
    assert answer.status_code == 201
    body = answer.json()
    assert len(bytes.fromhex(body["commitment"])) == 32
    assert "seed" not in answer.text
    assert (body["state"], body["lower"], body["upper"]) == ("active", 0.0, 1.0)
    assert {"alpha", "target", "policy", "method_version", "round"} <= body.keys()


async def test_a_session_keeps_what_was_planned_for_it(client: AsyncClient) -> None:
    pool = await known_pool(client, 30)
    planned = {"low": 12, "median": 20, "high": 28}
    session = await opened(client, pool, planned_labels=planned)
    path = f"/v1/sessions/{session}"
    assert (await client.get(path)).json()["planned_labels"] == planned
    await labelled(client, session, pool, 3)
    assert (await client.get(path)).json()["planned_labels"] == planned
    assert (await client.get(f"/v1/sessions/{await opened(client, pool)}")).json()[
        "planned_labels"
    ] is None
    crossed = {"pool_id": pool.id, "planned_labels": planned | {"high": 19}}
    refused = await client.post("/v1/sessions", json=crossed)
    assert (refused.status_code, refused.json()["field"]) == (422, "planned_labels")


async def test_two_sessions_have_two_seeds(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Drawn as outside of tests, where no session has the seed of another
    monkeypatch.setattr("celeus.seeds.new_seed", lambda: os.urandom(SEED_BYTES))
    pool = await known_pool(client, 200)
    sessions = [await opened(client, pool) for _ in range(2)]
    draws = [(await drawn(client, session, 20))["draws"] for session in sessions]
    first, second = ([draw["item"]["id"] for draw in held] for held in draws)
    assert first != second


@pytest.mark.parametrize(
    ("change", "status_code", "code", "field"),
    [
        ({"alpha": 0}, 422, "invalid_value", "alpha"),
        ({"alpha": "0.05"}, 422, "invalid_value", "alpha"),
        ({"precision": True}, 422, "invalid_value", "precision"),
        ({"precision": 0.1, "target": "population"}, 422, "unreachable_precision", "precision"),
        ({"budget": 31}, 422, "invalid_value", "budget"),
        ({"parameters": {"gamma": 1}}, 422, "invalid_value", "gamma"),
        ({"parameters": {"recentred": False}}, 422, "invalid_value", "recentred"),
        ({"policy": "oracle"}, 422, "invalid_value", "policy"),
        ({"policy": "evalue"}, 422, "invalid_value", "policy"),
        ({"policy": "magic"}, 422, "invalid_value", "policy"),
        (MARGIN | {"margin_assumption": "\0"}, 422, "invalid_value", "margin_assumption"),
        ({"strategy": "A"}, 422, "invalid_value", "strategy"),
        ({"target": "sample"}, 422, "invalid_value", "target"),
        ({"lease_seconds": 0}, 422, "invalid_value", "lease_seconds"),
        ({"pool_id": f"pool_{NOBODY}"}, 404, "pool_not_found", "pool_id"),
        ({"pool_id": "nonsense"}, 404, "pool_not_found", "pool_id"),
        ({"seed": "mine"}, 422, "invalid_value", "seed"),
        ({"subject": [{"name": "m", "digest": "ab"}]}, 422, "invalid_value", "subject"),
        ({"subject": [MODEL, MODEL]}, 422, "invalid_value", "subject"),
        ({"subject": [MODEL | {"name": "a\nb"}]}, 422, "invalid_value", "subject"),
        ({"raters": "random"}, 422, "invalid_value", "raters"),
    ],
)
async def test_a_session_that_cannot_be_certified_is_refused_by_name(
    client: AsyncClient, change: dict[str, Any], status_code: int, code: str, field: str
) -> None:
    pool = await known_pool(client, 30)
    answer = await client.post("/v1/sessions", json={"pool_id": pool.id} | change)
    assert (answer.status_code, answer.json()["code"]) == (status_code, code)
    assert answer.json()["field"].split(".")[-1] == field
    assert (await client.get("/v1/sessions")).json() == {"data": [], "next": None}


async def test_an_unreachable_precision_says_the_smallest_reachable_width(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, 300)
    body = {"pool_id": pool.id, "target": "population", "precision": 0.01}
    answer = (await client.post("/v1/sessions", json=body)).json()
    smallest = answer["smallest_reachable"]
    assert 0.01 < smallest < 0.2
    body["precision"] = smallest * 1.0001
    assert (await client.post("/v1/sessions", json=body)).status_code == 201


async def test_an_unsealed_pool_is_refused(client: AsyncClient) -> None:
    body = {"name": "open", "loss": {"kind": "zero_one"}, "items": [{"id": "a"}]}
    pool = (await client.post("/v1/pools", json=body)).json()["id"]
    answer = await client.post("/v1/sessions", json={"pool_id": pool})
    assert (answer.status_code, answer.json()["code"]) == (409, "pool_not_sealed")


async def test_an_etag_that_still_holds_costs_no_body(client: AsyncClient) -> None:
    pool = await known_pool(client, 30)
    session = await opened(client, pool)
    first = await client.get(f"/v1/sessions/{session}")
    held = {"If-None-Match": first.headers["etag"]}
    same = await client.get(f"/v1/sessions/{session}", headers=held)
    assert (same.status_code, same.content) == (304, b"")
    await drawn(client, session)
    other = await client.get(f"/v1/sessions/{session}", headers=held)
    assert other.status_code == 200
    assert other.json()["rounds"]["drawn"] == 1


async def test_a_finer_precision_goes_on_after_the_stop(client: AsyncClient) -> None:
    pool = await known_pool(client, 300)
    # The seed is the service's own: at 0.05 one run in hundreds would miss, as it may
    session = await opened(client, pool, precision=0.3, alpha=1e-6)
    stopped = (await labelled(client, session, pool, 300))["session"]
    assert stopped["stop_reason"] == (await drawn(client, session))["state"] == "target_reached"
    changed = (await client.patch(f"/v1/sessions/{session}", json={"precision": 0.2})).json()
    assert (changed["state"], changed["precision"]) == ("active", 0.2)
    again = (await client.patch(f"/v1/sessions/{session}", json={"precision": 0.2})).json()
    assert again["sequence"] == changed["sequence"]
    finer = (await labelled(client, session, pool, 300))["session"]
    assert finer["width"] <= 0.2
    assert stopped["lower"] <= finer["lower"] <= pool.risk <= finer["upper"] <= stopped["upper"]


async def test_a_budget_stops_and_a_larger_one_goes_on(client: AsyncClient) -> None:
    pool = await known_pool(client, 100)
    session = await opened(client, pool, budget=5)
    assert (await labelled(client, session, pool, 100))["state"] == "budget_spent"
    low = await client.patch(f"/v1/sessions/{session}", json={"budget": 4})
    assert (low.status_code, low.json()["field"]) == (422, "budget")
    more = await client.patch(f"/v1/sessions/{session}", json={"budget": 7})
    assert more.json()["state"] == "active"
    assert (await labelled(client, session, pool, 100))["session"]["rounds"]["drawn"] == 7


async def test_a_paused_session_gives_nothing_out_and_takes_what_is_out(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client, 100)
    session = await opened(client, pool)
    draw = (await drawn(client, session))["draws"][0]
    await client.patch(f"/v1/sessions/{session}", json={"state": "paused"})
    assert (await drawn(client, session))["state"] == "paused"
    answer = await judged(client, session, pool, draw, next=1)
    assert (answer["state"], answer["draws"]) == ("paused", [])
    await client.patch(f"/v1/sessions/{session}", json={"state": "active"})
    assert (await drawn(client, session))["draws"][0]["round"] == 2


async def test_closed_is_for_good(client: AsyncClient) -> None:
    pool = await known_pool(client, 100)
    session = await opened(client, pool)
    first, second = (await drawn(client, session, 2))["draws"]
    kept = await judged(client, session, pool, first)
    closed = (await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})).json()
    assert (closed["state"], closed["stopped"]) == ("closed", True)
    assert (await drawn(client, session))["state"] == "closed"
    base = f"/v1/sessions/{session}"
    late = {"round": second["round"], "loss": 0, "worker": "ada"}
    amended = {"round": 1, "loss": 0, "author": "ada", "reason": "typo"}
    for refused in (
        await client.post(f"{base}/observe", json=late),
        await client.post(f"{base}/amendments", json=amended),
        await client.patch(base, json={"precision": 0.1}),
        await client.patch(base, json={"state": "active"}),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "session_closed")
    again = await judged(client, session, pool, first)
    assert again["receipt"] == kept["receipt"] | {"replayed": True}
    once_more = await client.patch(base, json={"state": "closed"})
    assert once_more.json()["sequence"] == closed["sequence"]


@pytest.mark.parametrize("path", ["", "/trajectory", "/ledger", "/stream"])
@pytest.mark.parametrize("session", [f"ses_{NOBODY}", "ses_x", "pool_" + NOBODY])
async def test_a_session_nobody_knows_is_404(client: AsyncClient, session: str, path: str) -> None:
    answer = await client.get(f"/v1/sessions/{session}{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "session_not_found")


async def test_a_thinned_trajectory_keeps_its_last_round(client: AsyncClient) -> None:
    pool = await known_pool(client, 60)
    session = await opened(client, pool)
    await labelled(client, session, pool, 60)
    answer = await client.get(f"/v1/sessions/{session}/trajectory", params={"points": 7})
    rounds = [point["round"] for point in answer.json()["data"]]
    assert rounds[-1] == 60
    assert 6 <= len(rounds) <= 7
    page = (await client.get(f"/v1/sessions/{session}/trajectory", params={"limit": 50})).json()
    rest = await client.get(f"/v1/sessions/{session}/trajectory", params={"after": page["next"]})
    assert [point["round"] for point in page["data"] + rest.json()["data"]] == list(range(1, 61))


async def test_a_stopped_session_has_no_labels_left_to_forecast(
    client: AsyncClient,
) -> None:
    pool = await known_pool(client)
    session = await opened(client, pool, precision=0.2)
    status = (await client.get(f"/v1/sessions/{session}")).json()
    assert status["forecast"] is None
    before = (await labelled(client, session, pool, 5))["session"]["forecast"]
    assert before["round"] == 5
    assert 0 < before["low"] <= before["labels_left"] <= before["high"]
    after = (await labelled(client, session, pool, 300))["session"]
    assert (after["stop_reason"], after["forecast"]) == ("target_reached", None)


@pytest.mark.parametrize(
    ("aim", "warned"),
    [
        ({}, True),
        ({"budget": 20}, True),
        ({"precision": 0.2}, False),
        ({"questions": [{"side": "at_most", "threshold": 0.5}]}, False),
    ],
)
async def test_opening_warns_of_a_session_that_nothing_but_its_budget_ends(
    client: AsyncClient, aim: dict[str, Any], *, warned: bool
) -> None:
    pool = await known_pool(client, 40)
    opening = {"pool_id": pool.id, **aim}
    for _ in range(2):
        headers = {"Idempotency-Key": "same"}
        answer = await client.post("/v1/sessions", json=opening, headers=headers)
        warnings = [
            warning for warning in answer.json()["warnings"] if "neither a precision nor" in warning
        ]
        assert len(warnings) == warned


async def test_times_have_one_form(client: AsyncClient) -> None:
    pool = await known_pool(client, 40)
    session = await opened(client, pool)
    await labelled(client, session, pool, 2)
    await drawn(client, session, 2)
    path = f"/v1/sessions/{session}"
    addresses = [f"{path}{part}" for part in ("", "/ledger", "/workers", "/certificate")]
    bodies = [
        (await client.get(address)).json() for address in (f"/v1/pools/{pool.id}", *addresses)
    ]
    bodies.append(await drawn(client, session, 2))
    times = [time for body in bodies for time in _times(body)]
    assert len(times) > 12
    form = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
    assert [time for time in times if form.fullmatch(time) is None] == []


def _times(body: object) -> Iterator[str]:
    """The times in an answer, wherever they are."""
    if isinstance(body, dict):
        for name, value in body.items():
            if isinstance(value, str) and (name.endswith("_at") or name in {"at", "since"}):
                yield value
            yield from _times(value)
    elif isinstance(body, list):
        for value in body:
            yield from _times(value)


NAME = 'digits <script>alert("1")</script> — Größe \U0001f600'


async def test_a_name_is_told_wherever_the_session_is(client: AsyncClient) -> None:
    pool = await known_pool(client, 30)
    session = await opened(client, pool, name=NAME, precision=0.5)
    await labelled(client, session, pool, 2)
    changed = await client.patch(f"/v1/sessions/{session}", json={"precision": 0.4})
    listed = (await client.get("/v1/sessions")).json()["data"]
    document = (await client.get(f"/v1/sessions/{session}")).json()
    assert changed.json()["name"] == document["name"] == listed[0]["name"] == NAME


async def test_a_session_needs_no_name(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 30))
    assert (await client.get(f"/v1/sessions/{session}")).json()["name"] is None


async def test_neither_plan_nor_certificate_knows_the_name(client: AsyncClient) -> None:
    pool = await known_pool(client, 30)
    session = await opened(client, pool, name="very unlikely name")
    await labelled(client, session, pool, 2)
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    certificate = await client.get(f"/v1/sessions/{session}/certificate")
    assert certificate.status_code == 200
    assert "unlikely" not in certificate.text


async def test_what_is_evaluated_is_fixed_and_shown(client: AsyncClient) -> None:
    pool = await known_pool(client, 30)
    named = {name: MODEL[name] for name in ("name", "digest")}
    session = await opened(client, pool, subject=[named])
    other = {"subject": [MODEL | {"digest": "cd" * 32}]}
    refused = await client.patch(f"/v1/sessions/{session}", json=other)
    assert (refused.status_code, refused.json()["field"]) == (422, "subject")
    await labelled(client, session, pool, 2)
    await client.patch(f"/v1/sessions/{session}", json={"state": "closed"})
    certificate = await client.get(f"/v1/sessions/{session}/certificate")
    assert (
        certificate.json()["claim"]["subject"] == certificate.json()["plan"]["subject"] == [MODEL]
    )
    report = await client.get(f"/v1/sessions/{session}/report")
    assert f"<bdi>model.safetensors</bdi> sha256 <code>{MODEL['digest']}</code>" in report.text
    unnamed = await opened(client, pool)
    assert "not named by digest" in (await client.get(f"/v1/sessions/{unnamed}/report")).text


@pytest.mark.parametrize("name", ["", "x" * 201, "a\x00b", "\u202eb", "a\u2066", 7, ["x"]])
async def test_a_name_that_cannot_be_kept_is_refused(
    client: AsyncClient,
    name: Any,  # noqa: ANN401 - whatever the wire takes
) -> None:
    pool = await known_pool(client, 10)
    answer = await client.post("/v1/sessions", json={"pool_id": pool.id, "name": name})
    assert answer.status_code == 422
    assert answer.json()["field"] == "name"


async def listed(client: AsyncClient, **asked: Any) -> list[str]:  # noqa: ANN401 - a query
    """Names of the sessions of all pages, two to a page."""
    names: list[str] = []
    after: dict[str, str] = {}
    while True:
        answer = await client.get("/v1/sessions", params={"limit": 2} | asked | after)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        names += [document["name"] for document in page["data"]]
        if page["next"] is None:
            return names
        after = {"after": page["next"]}


async def five(client: AsyncClient) -> dict[str, str]:
    """Sessions b, a, C, d_1 and a again, of which the second is paused."""
    pool = await known_pool(client, 20)
    made = {}
    for place, name in enumerate(["b", "a", "C", "d_1", "a"]):
        made[f"{name}{place}"] = await opened(
            client, pool, name=name, tags=[f"t{place % 2}", "x y"]
        )
    await client.patch(f"/v1/sessions/{made['a1']}", json={"state": "paused"})
    return made


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("opened", ["b", "a", "C", "d_1", "a"]),
        ("-opened", ["a", "d_1", "C", "a", "b"]),
        ("name", ["a", "a", "b", "C", "d_1"]),
        ("-name", ["d_1", "C", "b", "a", "a"]),
        ("owner", ["b", "a", "C", "d_1", "a"]),
        ("state", ["b", "C", "d_1", "a", "a"]),
    ],
)
async def test_an_order_holds_over_pages(client: AsyncClient, order: str, names: list[str]) -> None:
    await five(client)
    assert await listed(client, order=order) == names


async def test_figures_order_and_what_is_unknown_is_last(client: AsyncClient) -> None:
    pool = await known_pool(client, 40)
    named = {"name": "accuracy", "better": "higher"}
    turned = await known_pool(client, 40, score=named)
    for name, over, precision, most in (
        ("half", pool, 0.2, 20),
        ("new", pool, 0.2, 0),
        ("same", pool, None, 0),
        ("done", turned, 0.4, 40),
        ("free", turned, None, 10),
    ):
        session = await opened(client, over, name=name, precision=precision, budget=40)
        if most:
            await labelled(client, session, over, most)
    lineup = await client.get("/v1/sessions", params={"order": "opened"})
    found = {document["name"]: document for document in lineup.json()["data"]}
    shown = {name: found[name]["score"]["estimate"] for name in ("half", "done", "free")}
    rising = sorted(shown, key=lambda name: shown[name])
    assert await listed(client, order="score") == [*rising, "new", "same"]
    assert await listed(client, order="-score") == [*rising[::-1], "new", "same"]
    assert await listed(client, order="progress") == ["new", "half", "done", "same", "free"]
    assert await listed(client, order="-progress") == ["done", "half", "new", "same", "free"]


async def test_every_other_order_goes_by_an_index(client: AsyncClient, database_url: str) -> None:
    """No order sorts all sessions, whatever there are, but by figures that every label changes."""
    await five(client)
    keys = {
        "name": "lower(coalesce(name, ''))",
        "owner": "lower(coalesce(owner, ''))",
        "state": "state",
        "active": "active_at",
    }
    with psycopg.connect(database_url) as db:
        # A table so small is sorted at no cost
        db.execute("SET enable_seqscan = off")
        db.execute("SET enable_sort = off")
        for order in get_args(Order):
            if order.removeprefix("-") in {"score", "progress"}:
                continue
            key = keys.get(order.removeprefix("-"))
            by = "session_id" if key is None else f"{key}, session_id"
            if order.startswith("-"):
                by = by.replace(", session_id", " DESC, session_id") + " DESC"
            statement = (
                f"EXPLAIN SELECT status FROM sessions WHERE project_id = '{DEFAULT_PROJECT}'"
                f" ORDER BY {by} LIMIT 5"
            )
            plan = "\n".join(row[0] for row in db.execute(statement.encode()))
            assert "Sort" not in plan, (order, plan)


async def test_words_are_found_by_their_beginnings_and_tags_whole(client: AsyncClient) -> None:
    await five(client)
    assert await listed(client, q="D 1") == ["d_1"]
    assert await listed(client, q="t0", order="opened") == ["b", "C", "a"]
    assert await listed(client, q="c T0") == ["C"]
    assert await listed(client, tag="t1") == ["d_1", "a"]
    assert await listed(client, tag="x") == []
    assert await listed(client, tag="x y", state="paused") == ["a"]
    assert await listed(client, q="'|&!:*(", order="opened") == ["b", "a", "C", "d_1", "a"]


async def test_tags_are_short_few_and_kept(client: AsyncClient) -> None:
    session = (await five(client))["b0"]
    path = f"/v1/sessions/{session}"
    before = await client.get(path)
    document = (await client.patch(path, json={"tags": ["it's \\ #1", "z", "z"]})).json()
    assert document["tags"] == ["it's \\ #1", "z"]
    assert (await client.get(path)).headers["ETag"] != before.headers["ETag"]
    assert await listed(client, tag="it's \\ #1") == ["b"]
    assert await listed(client, tag="t0", q="b") == []
    for wrong in (["y" * 41], [""], ["\u202e"], [str(number) for number in range(13)]):
        assert (await client.patch(path, json={"tags": wrong})).status_code == 422
    # All that one request asks for, or nothing of it
    refused = await client.patch(path, json={"tags": ["x"], "archived": True, "precision": -1})
    assert refused.status_code == 422
    now = (await client.get(path)).json()
    assert (now["tags"], now["archived"]) == (document["tags"], False)
    # An event keeps them, and a closed session may be filed too
    closed = (await client.patch(path, json={"state": "closed"})).json()
    assert closed["tags"] == document["tags"]
    assert (await client.patch(path, json={"tags": []})).json()["tags"] == []

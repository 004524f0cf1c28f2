"""Lists of sessions: their orders, their words, their tags, a page at a time."""

from typing import Any, get_args

import psycopg
import pytest
from httpx import AsyncClient

from celeus.operations.insights.session_lists import Order
from celeus.store.tables import DEFAULT_PROJECT
from tests.factories import known_pool, labelled, opened


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

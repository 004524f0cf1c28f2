"""Sessions and pools that are archived: out of the lists, still there to be read, and back."""

from fastapi import FastAPI
from httpx import AsyncClient

from celeus.operations.certificates.audit import audit
from celeus.settings import Settings
from tests.clients import serving
from tests.factories import KnownPool, drawn, judged, known_pool, labelled, opened


async def archive(client: AsyncClient, path: str, *, archived: bool = True) -> None:
    answer = await client.patch(path, json={"archived": archived})
    assert (answer.status_code, answer.json()["archived"]) == (200, archived), answer.text


async def listed(client: AsyncClient, noun: str, **query: str) -> list[str]:
    answer = await client.get(f"/v1/{noun}", params=query)
    assert answer.status_code == 200, answer.text
    return [document["id"] for document in answer.json()["data"]]


async def begun(client: AsyncClient) -> tuple[KnownPool, str]:
    pool = await known_pool(client, 40)
    session = await opened(client, pool)
    await labelled(client, session, pool, 5)
    return pool, session


async def test_lists_leave_out_what_is_archived_unless_asked(client: AsyncClient) -> None:
    pool, session = await begun(client)
    kept = await opened(client, pool)
    await archive(client, f"/v1/sessions/{session}")
    assert await listed(client, "sessions") == [kept]
    assert await listed(client, "sessions", limit="1") == [kept]
    assert await listed(client, "sessions", archived="true") == [kept, session]
    await archive(client, f"/v1/sessions/{session}", archived=False)
    assert await listed(client, "sessions") == [kept, session]

    other = await known_pool(client, 3)
    await archive(client, f"/v1/pools/{pool.id}")
    assert await listed(client, "pools") == [other.id]
    assert await listed(client, "pools", archived="true") == [other.id, pool.id]
    await archive(client, f"/v1/pools/{pool.id}", archived=False)
    assert await listed(client, "pools") == [other.id, pool.id]


async def test_an_archived_session_takes_no_draws_and_no_labels_until_it_is_back(
    client: AsyncClient,
) -> None:
    pool, session = await begun(client)
    held = (await drawn(client, session, 2))["draws"]
    taken = await judged(client, session, pool, held[0])
    path = f"/v1/sessions/{session}"
    await archive(client, path)

    label = {"worker": "ada", "loss": pool.losses[held[1]["item"]["index"]]}
    correction = {"round": 1, "loss": 1, "author": "ada", "reason": "misread"}
    for answer in (
        await client.post(f"{path}/next", json={"worker": "ada"}),
        await client.post(f"{path}/observe", json=label | {"round": held[1]["round"]}),
        await client.post(f"{path}/amendments", json=correction),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "session_archived")
        assert "archived" in answer.json()["detail"]
    again = await judged(client, session, pool, held[0], next=1)
    assert again["receipt"] == taken["receipt"] | {"replayed": True}
    assert again["draws"] == []
    assert (await client.get(path)).json()["sequence"] == taken["session"]["sequence"]

    await archive(client, path, archived=False)
    await judged(client, session, pool, held[1], next=1)


async def test_an_archived_session_can_be_read_changed_closed_and_certified(
    client: AsyncClient, app: FastAPI
) -> None:
    _, session = await begun(client)
    path = f"/v1/sessions/{session}"
    before = (await client.get(path)).json()
    head = (await client.get(f"{path}/certificate")).headers["etag"]
    await archive(client, path)
    await archive(client, path)
    assert (await client.get(path)).json() == before | {"archived": True}
    assert (await client.get(f"{path}/certificate")).headers["etag"] == head
    both = await client.patch(path, json={"precision": 0.2, "archived": False})
    assert both.json() | {"archived": False, "precision": 0.2} == both.json()
    bad = await client.patch(path, json={"precision": -1, "archived": True})
    assert (bad.status_code, bad.json()["field"]) == (422, "precision")
    assert not (await client.get(path)).json()["archived"]
    closed = await client.patch(path, json={"state": "closed", "archived": True})
    assert (closed.json()["state"], closed.json()["archived"]) == ("closed", True)
    assert (await client.get(f"{path}/certificate")).json()["final"]
    await archive(client, path, archived=False)
    assert not (await audit(app.state.context.database)).findings


async def test_who_polls_learns_of_it_and_so_does_every_process(
    client: AsyncClient, settings: Settings
) -> None:
    pool, session = await begun(client)
    path = f"/v1/sessions/{session}"
    async with serving(settings) as elsewhere:
        await drawn(elsewhere, session)
        known = {"If-None-Match": (await elsewhere.get(path)).headers["etag"]}
        await archive(client, path)
        answer = await elsewhere.get(path, headers=known)
        assert (answer.status_code, answer.json()["archived"]) == (200, True)
        refused = await elsewhere.post(f"{path}/next", json={"worker": "ada"})
        assert refused.json()["code"] == "session_archived"
        await archive(elsewhere, path, archived=False)
    assert (await drawn(client, session))["draws"]
    assert await judged(client, session, pool, (await drawn(client, session))["draws"][0])


async def test_an_archived_panel_waits(client: AsyncClient) -> None:
    pool = await known_pool(client, 20)
    claim = {"raters": "assigned", "protocol": "two_then_third", "panel": ["ada", "bob", "eve"]}
    session = await opened(client, pool, **claim)
    draw = (await drawn(client, session))["draws"][0]
    await archive(client, f"/v1/sessions/{session}")
    label = {"round": draw["round"], "loss": 0, "worker": "ada"}
    answer = await client.post(f"/v1/sessions/{session}/observe", json=label)
    assert (answer.status_code, answer.json()["code"]) == (409, "session_archived")


async def test_sessions_on_an_archived_pool_go_on(client: AsyncClient) -> None:
    pool, session = await begun(client)
    await archive(client, f"/v1/pools/{pool.id}")
    unchanged = await client.patch(f"/v1/pools/{pool.id}", json={})
    assert unchanged.json()["archived"] is True
    await labelled(client, session, pool, 3)
    await opened(client, pool)

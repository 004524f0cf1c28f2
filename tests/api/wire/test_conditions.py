"""`If-Match` and `Idempotency-Key` are kept or refused, never passed over."""

import pytest
from httpx import AsyncClient

from tests.api.contract import CONTRACT
from tests.factories import known_pool, opened

KEY = {"Idempotency-Key": "k"}


async def test_a_change_meant_for_another_state_is_refused_and_changes_nothing(
    client: AsyncClient,
) -> None:
    session = await opened(client, await known_pool(client, 30))
    path = f"/v1/sessions/{session}"
    seen = (await client.get(path)).headers["ETag"]
    changes: list[dict[str, object]] = [{"tags": ["a"]}, {"precision": 0.3}, {"archived": True}]
    for change in changes:
        before = (await client.get(path)).json()
        old = await client.patch(path, json=change, headers={"If-Match": '"no such"'})
        assert (old.status_code, old.json()["code"]) == (412, "precondition_failed")
        assert (await client.get(path)).json() == before
        now = (await client.get(path)).headers["ETag"]
        # A list, and the weak form in which the tag is sent
        new = await client.patch(path, json=change, headers={"If-Match": f'"other", {now}'})
        assert new.status_code == 200, new.text
    late = await client.patch(path, json={"tags": []}, headers={"If-Match": seen})
    assert late.status_code == 412
    assert (await client.patch(path, json={"tags": []}, headers={"If-Match": "*"})).is_success


async def test_a_closed_session_is_filed_under_its_etag(client: AsyncClient) -> None:
    session = await opened(client, await known_pool(client, 30))
    path = f"/v1/sessions/{session}"
    assert (await client.patch(path, json={"state": "closed"})).is_success
    for change in ({"tags": ["a"]}, {"archived": True}):
        now = (await client.get(path)).headers["ETag"]
        answer = await client.patch(path, json=change, headers={"If-Match": now})
        assert answer.status_code == 200, answer.text
        assert answer.json()["state"] == "closed"
    now = (await client.get(path)).headers["ETag"]
    late = await client.patch(path, json={"state": "active"}, headers={"If-Match": now})
    assert (late.status_code, late.json()["code"]) == (409, "session_closed")


async def test_instructions_are_not_changed_under_an_etag_that_says_nothing_of_them(
    client: AsyncClient,
) -> None:
    session = await opened(client, await known_pool(client, 30))
    change = {"instructions": "Look twice."}
    answer = await client.patch(f"/v1/sessions/{session}", json=change, headers={"If-Match": "*"})
    assert (answer.status_code, answer.json()["field"]) == (422, "If-Match")


async def test_what_has_no_etag_is_changed_under_none(client: AsyncClient) -> None:
    pool = await known_pool(client, 30)
    path = f"/v1/pools/{pool.id}"
    refused = await client.patch(path, json={"archived": True}, headers={"If-Match": '"1"'})
    assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed")
    assert not (await client.get(path)).json()["archived"]
    every = await client.patch(path, json={"archived": True}, headers={"If-Match": "*"})
    assert every.is_success, every.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("If-None-Match", "*"),
        ("If-None-Match", '"no such"'),
        ("If-Unmodified-Since", "Fri, 27 Nov 2026 04:00:00 GMT"),
    ],
)
async def test_conditions_that_no_route_keeps_are_refused_by_changes(
    client: AsyncClient, name: str, value: str
) -> None:
    pool = await known_pool(client, 30)
    session = await opened(client, pool)
    for path in (f"/v1/pools/{pool.id}", f"/v1/sessions/{session}"):
        answer = await client.patch(path, json={"archived": True}, headers={name: value})
        assert (answer.status_code, answer.json().get("code")) == (412, "precondition_failed")
        assert name in answer.json()["detail"]
        assert not (await client.get(path)).json()["archived"]
        assert (await client.get(path, headers={name: value})).status_code in {200, 304}


WITHOUT_KEY = [
    (method.upper(), path)
    for path, operations in CONTRACT["paths"].items()
    for method, operation in operations.items()
    if method not in {"get", "head"}
    and "Idempotency-Key" not in {it.get("name") for it in operation.get("parameters", ())}
]


@pytest.mark.parametrize(("method", "path"), WITHOUT_KEY)
async def test_a_key_that_a_route_does_not_keep_is_refused(
    client: AsyncClient, method: str, path: str
) -> None:
    answer = await client.request(method, path, headers=KEY)
    problem = answer.json()
    assert (answer.status_code, problem.get("field")) == (422, "Idempotency-Key"), answer.text

"""Work that takes long has processes of its own: so many at once, of all kinds together."""

import asyncio
import io
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from uuid import UUID

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from celeus.operations.runtime.admission import BACKGROUND_RETRY_SECONDS, Background
from celeus.operations.runtime.context import Context
from tests.factories import known_pool, labelled, opened
from tests.keys import ADMIN, bearer, key_in
from tests.servers import children

JSON = {"Content-Type": "application/json"}
PARQUET = {"Content-Type": "application/vnd.apache.parquet"}
PLACES = 2
PATIENCE_SECONDS = 300.0
NOBODY = f"pool_{0:032x}"

pytestmark = pytest.mark.own_context


@pytest.fixture
def narrow(app: FastAPI) -> Callable[[int, float], Context]:
    """Gives the service so many places, and so much patience."""

    def given(places: int, patience_seconds: float = PATIENCE_SECONDS) -> Context:
        background = Background(places, patience_seconds)
        context: Context = replace(app.state.context, background=background)
        app.state.context = context
        return context

    return given


def parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [f"i{n}" for n in range(50)], "surrogate": [0.5] * 50}), file)
    return file.getvalue()


async def planned(client: AsyncClient, pool: str, key: str | None = None) -> httpx.Response:
    body = {"precision": 0.2, "runs": 2, "policies": ["uniform"]}
    headers = bearer(key) if key else {}
    return await client.post(f"/v1/pools/{pool}/planning", json=body, headers=headers)


async def verified(client: AsyncClient, body: bytes, key: str | None = None) -> httpx.Response:
    headers = JSON | (bearer(key) if key else {})
    return await client.post("/v1/certificates/verify", content=body, headers=headers)


async def test_all_kinds_together_have_no_more_processes_than_there_are_places(
    client: AsyncClient, narrow: Callable[..., Context], database_url: str
) -> None:
    pool = await known_pool(client)
    questions = [{"side": "at_most", "threshold": 0.999}]
    session = await opened(client, pool, questions=questions, stop_when_decided=False)
    await labelled(client, session, pool, 10)
    certificate = (await client.get(f"/v1/sessions/{session}/certificate")).content
    named = {"name": "p", "loss": {"kind": "zero_one"}}
    made = (await client.post("/v1/pools", json=named)).json()["id"]
    keys = [key_in(database_url, "manage", "read") for _ in range(2)]
    background = narrow(PLACES).background
    known, most, waited = children(), 0, 0
    rows = b'[{"question": "a"}, {"question": "b"}]'
    asked = [
        *(planned(client, pool.id, key) for key in keys),
        *(verified(client, certificate, key) for key in keys),
        client.get("/v1/claims", params={"session": session}),
        client.post(f"/v1/pools/{made}/items", content=parquet(), headers=PARQUET),
        client.post("/v1/pool-files?name=mine&kind=zero_one", content=rows, headers=JSON),
    ]
    work = asyncio.gather(*asked)
    while not work.done():
        most, waited = max(most, len(children() - known)), max(waited, background.waiting)
        # To look at all processes takes as long, and a child takes much longer
        await asyncio.sleep(0.05)
    assert {answer.status_code for answer in await work} <= {200, 201}, [
        answer.text for answer in await work
    ]
    assert most == PLACES
    assert waited == len(asked) - PLACES
    assert (background.running, background.waiting) == (0, 0)


async def test_who_finds_no_place_in_time_is_told_when_to_come_again(
    client: AsyncClient, narrow: Callable[..., Context]
) -> None:
    """And nothing was read for them."""
    context = narrow(1, 0.2)
    path = "/v1/pool-files?name=mine&kind=zero_one"
    async with replace(context, key_id="other").process():
        answers = [
            await planned(client, NOBODY),
            await verified(client, b"{}"),
            await client.post(path, content=b'[{"question": "a"}]', headers=JSON),
        ]
        page = (await client.get("/metrics")).text
    assert [answer.status_code for answer in answers] == [503] * 3
    codes = [answer.json()["code"] for answer in answers]
    assert codes == ["planning_busy", "verification_busy", "overloaded"]
    assert {answer.headers["Retry-After"] for answer in answers} == {str(BACKGROUND_RETRY_SECONDS)}
    assert "celeus_background_processes 1.0" in page
    assert "celeus_background_queue 0.0" in page
    assert (await planned(client, NOBODY)).json()["code"] == "pool_not_found"


async def test_keys_files_and_labellers_leave_places_to_others(
    client: AsyncClient, narrow: Callable[..., Context], database_url: str
) -> None:
    """Of four a key has half; of files and labellers there are three at most, two of a project."""
    context = narrow(4, 0.2)
    label, other = key_in(database_url, "label"), key_in(database_url, "manage")

    async def processes(stack: AsyncExitStack, *keys: str, blind: bool, of_file: bool) -> None:
        for key in keys:
            project = UUID(int=7) if key == "another" else context.project_id
            caller = replace(context, key_id=key, blind=blind, project_id=project)
            await stack.enter_async_context(caller.process(of_file=of_file))

    async def code(key: str, *, of_file: bool = False) -> str:
        path = "/v1/pool-files?name=f&kind=zero_one" if of_file else f"/v1/pools/{NOBODY}/planning"
        body = b'[{"question": "a"}]' if of_file else b'{"precision": 0.1}'
        answer = await client.post(path, content=body, headers=JSON | bearer(key))
        return str(answer.json().get("code", answer.status_code))

    async with AsyncExitStack() as stack:
        key_id = other.split("_")[1]
        await processes(stack, key_id, key_id, blind=False, of_file=False)
        assert await code(other) == "planning_busy"
        assert await code(ADMIN) == "pool_not_found"
    async with AsyncExitStack() as stack:
        await processes(stack, "a", "b", blind=False, of_file=True)
        assert await code(ADMIN, of_file=True) == "overloaded"
        await processes(stack, "another", blind=False, of_file=True)
        assert await code(ADMIN) == "pool_not_found"
    async with AsyncExitStack() as stack:
        await processes(stack, "a", "b", "another", blind=True, of_file=False)
        assert (await verified(client, b"{}", label)).json()["code"] == "verification_busy"
        assert await code(ADMIN) == "pool_not_found"


async def test_a_cancelled_request_frees_its_place_and_ends_its_child(
    client: AsyncClient, narrow: Callable[..., Context]
) -> None:
    pool = await known_pool(client)
    background, known = narrow(1).background, children()
    planning = asyncio.create_task(planned(client, pool.id))
    await until(lambda: children() - known)
    waiting = asyncio.create_task(planned(client, pool.id))
    await until(lambda: background.waiting == 1)
    planning.cancel()
    waiting.cancel()
    await asyncio.wait({planning, waiting})
    assert (background.running, background.waiting) == (0, 0)
    await until(lambda: not children() - known)
    assert (await planned(client, pool.id)).status_code == 200


async def until(met: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not met():  # noqa: ASYNC110 - another process or task, without an event
            await asyncio.sleep(0.01)

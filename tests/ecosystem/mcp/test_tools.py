"""The library's own client works with `celeus mcp`, over stdio and over streamable HTTP."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from celeus.client.blocking import Client as Celeus
from tests.ecosystem.service import Service

pytestmark = pytest.mark.ecosystem

CHECKOUT = Path(__file__).parents[3] / "app"
ROWS = [{"id": f"q-{number}", "payload": {"number": number}} for number in range(200)]
PROGRAM = """
    import json, sys
    for line in sys.stdin:
        payload = json.loads(line)["payload"]
        wrong = payload["item"]["number"] % 10 < int(payload["candidate"])
        print(json.dumps({"loss": int(wrong)}), flush=True)
"""


def command(*options: str, **environment: str) -> StdioServerParameters:
    own = {"PYTHONPATH": str(CHECKOUT), "PATH": os.environ["PATH"]} | environment
    args = ["-m", "celeus", "mcp", *options]
    return StdioServerParameters(command=sys.executable, args=args, env=own)


@contextmanager
def over_http(**environment: str) -> Iterator[str]:
    """Address of a server on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    parameters = command("--http", "--port", str(port), **environment)
    process = subprocess.Popen([parameters.command, *parameters.args], env=parameters.env)
    try:
        deadline = time.monotonic() + 120
        while True:
            assert process.poll() is None
            assert time.monotonic() < deadline
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(60)


async def called(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    structured: dict[str, Any] | None = result.structured_content
    assert structured is not None
    return structured


async def refused(client: Client, tool: str, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    (content,) = result.content
    return str(getattr(content, "text", ""))


def pool_of(service: Service, name: str) -> str:
    with Celeus(service.url, service.key) as client:
        return client.create_pool(name, ROWS).id


def key_of(service: Service, *scopes: str) -> str:
    with Celeus(service.url, service.key) as client:
        made = client.request("POST", "/v1/keys", {"name": "agent", "scopes": list(scopes)})
    return str(made["key"])


async def judged(client: Client, session: str) -> int:
    """Judge until nothing is drawn; return the number of judgements."""
    count = 0
    while draws := (await called(client, "next_item", session=session, worker="agent"))["draws"]:
        (draw,) = draws
        loss = float(draw["item"]["payload"]["number"] % 10 == 0)
        place = {"session": session, "worker": "agent", "round": draw["round"]}
        await called(client, "judge", **place, loss=loss)
        count += 1
    return count


def test_an_agent_opens_judges_and_gates_over_stdio(service: Service) -> None:
    pool = pool_of(service, "by an agent")

    async def run() -> None:
        async with Client(command(**service.environment)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert sorted(tools) == [
                *("compare", "gate", "judge", "look", "next_item", "open_session", "pools")
            ]
            assert all(tool.description for tool in tools.values())
            assert "ctx" not in json.dumps([tool.input_schema for tool in tools.values()])
            pools = await called(client, "pools")
            assert (pool, True) in [(listed["id"], listed["sealed"]) for listed in pools["result"]]
            opened = await called(client, "open_session", pool=pool, at_most=0.3)
            session = opened["id"]
            count = await judged(client, session)
            assert 0 < count < len(ROWS)
            status = await called(client, "look", session=session)
            assert status["state"] == "decided"
            assert status["rounds"]["judged"] == count
            assert (await called(client, "gate", session=session))["answer"] == "yes"
            below = await called(client, "gate", session=session, at_most="1%")
            assert below["answer"] in {"no", "undecided"}
            error = await refused(client, "open_session", pool=pool)
            assert "nothing would stop this session: give precision" in error
            error = await refused(client, "gate", session=session, at_most="1%", at_least="1%")
            assert "at_most, at_least" in error
            assert "--" not in error
            error = await refused(client, "look", session="ses_unknown")
            assert "\n" not in error
            assert "ses_unknown" in error

    asyncio.run(run())


def test_a_pool_of_several_systems_is_refused_in_words_of_the_tools(service: Service) -> None:
    answers = {name: {"answer": name} for name in ("v1", "v2", "v3")}
    rows = [{"id": row["id"], "answers": answers} for row in ROWS]
    with Celeus(service.url, service.key) as celeus:
        pool = celeus.create_pool("three", rows, systems=list(answers)).id

    async def run() -> None:
        async with Client(command(**service.environment)) as client:
            error = await refused(client, "open_session", pool=pool, precision=0.2)
            assert "one of a single system, or of two for `compare`" in error
            assert "best" not in error

    asyncio.run(run())


def test_what_a_tool_does_not_take_is_refused(service: Service) -> None:
    """Truth values and texts are no losses, and a misspelt option opens no other session."""
    pool = pool_of(service, "misspelt")

    async def run() -> None:
        async with Client(command(**service.environment)) as client:
            asked = {"pool": pool, "budget": 2}
            error = await refused(client, "open_session", **asked, decide={"margin": 0.1})
            assert "decide" in error
            session = (await called(client, "open_session", **asked))["id"]
            held = await called(client, "next_item", session=session, worker="agent")
            place = {"session": session, "worker": "agent", "round": held["draws"][0]["round"]}
            for wrong in (
                {"loss": True},
                {"loss": "1"},
                {"label": True},
                {"losses": {"left": "1"}},
            ):
                assert "should be a valid" in await refused(client, "judge", **place, **wrong)
            assert (await called(client, "look", session=session))["rounds"]["judged"] == 0
            await called(client, "judge", **place, loss=1)

    asyncio.run(run())


def test_two_systems_are_compared(service: Service) -> None:
    rows = [
        {"id": row["id"], "payload": row["payload"], "a": {"answer": "old"}, "b": {"answer": "new"}}
        for row in ROWS
    ]
    with Celeus(service.url, service.key) as celeus:
        systems = {"a": "v1", "b": "v2"}
        pool = celeus.create_pool("two", rows, systems=systems, loss={"kind": "preference"}).id

    async def run() -> None:
        async with Client(command(**service.environment)) as client:
            opened = await called(client, "compare", pool=pool, margin=0.2)
            held = await called(client, "next_item", session=opened["id"], worker="agent")
            (draw,) = held["draws"]
            assert {draw[side]["answer"] for side in ("left", "right")} == {"old", "new"}
            place = {"session": opened["id"], "worker": "agent", "round": draw["round"]}
            await called(client, "judge", **place, preference="tie")
            answer = await called(client, "gate", session=opened["id"], compare="v2")
            assert answer["answer"] == "undecided"

    asyncio.run(run())


def test_over_http_a_request_acts_with_the_key_it_sends(service: Service) -> None:
    pool = pool_of(service, "over http")
    blind = key_of(service, "label")

    async def run(address: str) -> None:
        async with Client(address) as client:
            asked = {"pool": pool, "budget": 3}
            error = await refused(client, "open_session", **asked, subject="a.txt")
            assert "sha256" in error
            subject = f"model@sha256:{'ab' * 32}"
            opened = await called(client, "open_session", **asked, subject=subject)
            assert opened["subject"] == [
                {"name": "model", "algorithm": "sha256", "digest": "ab" * 32}
            ]
            session = opened["id"]
        headers = {"Authorization": f"Bearer {blind}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            error = await refused(client, "look", session=session)
            assert "scope" in error
            assert blind not in error
            assert "\n" not in error
            assert await judged(client, session) == 3
        async with Client(address) as client:
            assert (await called(client, "look", session=session))["rounds"]["judged"] == 3
        for malformed in ("Basic abc", "Bearer"):
            headers = {"Authorization": malformed}
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(address, http_client=http)) as client,
            ):
                assert "there is no key" in await refused(client, "pools")

    with over_http(**service.environment) as address:
        asyncio.run(run(address))


def test_candidates_are_proposed_on_items_that_the_agent_never_sees(tmp_path: Path) -> None:
    items, program, best = (tmp_path / name for name in ("items.jsonl", "evaluate.py", "best.txt"))
    items.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    program.write_text(textwrap.dedent(PROGRAM))
    best.write_text("5")
    options = ["--items", str(items), "--program", f"{sys.executable} {program}"]
    options += ["--incumbent", str(best), "--margin", "10pt"]
    parameters = command(*options)
    parameters.cwd = tmp_path

    async def run() -> None:
        async with Client(parameters) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [
                "propose",
                "budget",
            ]
            worse = await called(client, "propose", candidate="8")
            assert not worse["accepted"]
            better = await called(client, "propose", candidate="1")
            assert better["accepted"]
            assert "q-" not in json.dumps([worse, better])
            assert best.read_text() == "1"
            left = await called(client, "budget")
            assert (left["proposals"], left["left"]) == (2, pytest.approx(0.025))
            error = await refused(client, "propose", candidate="no number")
            assert "q-" not in error
        async with Client(parameters) as client:
            # What was begun and not brought to its end is spent
            assert (await called(client, "budget"))["left"] == pytest.approx(0.05 / 3)

    asyncio.run(run())

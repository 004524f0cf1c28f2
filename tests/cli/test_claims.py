"""`celeus status` of several sessions: what holds of those picked after looking."""

import asyncio
import json

import pytest
from httpx import AsyncClient

from tests.cli.calling import Run
from tests.factories import known_pool, labelled, opened
from tests.keys import ADMIN, bearer
from tests.servers import Service

YES = [{"side": "at_most", "threshold": 0.9}]


@pytest.fixture
def service(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setenv("CELEUS_KEY", ADMIN)
    return service


async def two_sessions(service: Service) -> list[str]:
    async with AsyncClient(base_url=service.url, headers=bearer(), timeout=30) as client:
        pool = await known_pool(client, 120)
        asked = {"questions": YES, "name": "first", "stop_when_decided": False}
        sessions = [await opened(client, pool, **one) for one in (asked, {"precision": 0.2})]
        for session in sessions:
            await labelled(client, session, pool, 60)
    return sessions


def test_what_holds_is_said_in_the_words_of_the_service(service: Service, run: Run) -> None:
    sessions = asyncio.run(two_sessions(service))
    where = ("status", *sessions, "--url", service.url)
    answer = run(*where)
    assert (answer.status, answer.err) == (0, "")
    first, second, one, everything, picked = answer.out.splitlines()
    assert first.startswith(f"{sessions[0]} (first): shown [")
    assert first.endswith("at level 0.025; at most 0.9: yes")
    assert second == f"{sessions[1]}: was asked nothing, and is not shown"
    assert one.startswith("By itself")
    assert everything.startswith("All sessions that this project opens with a question")
    assert picked.startswith("1 shown, ")
    found = json.loads(run(*where, "--shown", sessions[0], "--json").out)
    assert (found["level"], found["opened"], found["shown"]) == (0.05, 1, 1)
    for wrong, why in (
        ((*where, sessions[0]), "named twice"),
        ((*where, "--shown", sessions[1]), "asked nothing"),
        (("status", "ses_1", "--url", service.url), "hexadecimal"),
        (("status", sessions[0], "--url", "nowhere"), "address"),
    ):
        refused = run(*wrong)
        assert (refused.status, refused.out) == (1, "")
        assert why in refused.err

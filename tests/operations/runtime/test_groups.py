"""Requests that wait for the same thing are answered in groups, by a task of nobody's own."""

import asyncio
from contextvars import ContextVar
from typing import Any

from celeus.operations.runtime.groups import Groups, Request

_asker: ContextVar[str] = ContextVar("asker", default="nobody")


async def test_what_is_done_for_several_is_said_in_the_name_of_none() -> None:
    """A line of the log has the request that its task belongs to."""
    groups, names = Groups(patience_seconds=30.0, most=9), []

    async def run(group: list[Request[Any]]) -> list[Request[Any]]:
        names.append(_asker.get())
        for request in group:
            request.give(request.asked)
        return []

    async def ask(name: str) -> Any:  # noqa: ANN401 - as the groups have it
        _asker.set(name)
        return await groups.answer("here", name, run)

    assert [*await asyncio.gather(ask("ada"), ask("bo"))] == ["ada", "bo"]
    assert set(names) == {"nobody"}

"""Forecasts of labels left come by themselves and are about right."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from httpx import AsyncClient

from celeus.operations.runtime import forecasts
from celeus.settings import Settings
from tests.clients import serving
from tests.factories import drawn, known_pool, labelled, opened


@pytest.fixture
async def client(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AsyncClient]:
    """A service that forecasts every 100 rounds, at the priority of all else.

    At the lowest one a busy machine keeps it waiting until it is given up.
    """
    monkeypatch.setattr(forecasts, "BOUNDS", replace(forecasts.BOUNDS, niceness=0))
    async with serving(Settings(database_url=database_url, forecast_every_rounds=100)) as client:
        yield client


@pytest.mark.timeout(300)
async def test_a_forecast_appears_and_is_about_right(client: AsyncClient) -> None:
    pool = await known_pool(client, 3000)
    session = await opened(client, pool, precision=0.12)
    early = (await labelled(client, session, pool, 105))["session"]
    assert early["rounds"]["in_interval"] == 105
    async with asyncio.timeout(240):
        while (status := await got(client, session))["forecast"] is None:  # noqa: ASYNC110 - as a caller polls
            await asyncio.sleep(0.1)
    forecast = status["forecast"]
    assert forecast["round"] == 100
    assert forecast.keys() == {"round", "labels_left", "seconds_per_label"}
    left = forecast["labels_left"] - 5
    assert status["words"]["progress"].startswith(f"105 labels, about {left} more")
    stopped = (await labelled(client, session, pool, 3000))["session"]
    needed = stopped["round"] - forecast["round"]
    assert 0.5 <= forecast["labels_left"] / needed <= 2.2


async def test_of_unjudgeable_rounds_alone_nothing_is_forecast(client: AsyncClient) -> None:
    pool = await known_pool(client, 300)
    session = await opened(client, pool, precision=0.12)
    held = (await drawn(client, session, 105))["draws"]
    told = [{"round": draw["round"], "unjudgeable": "blurred"} for draw in held]
    before = asyncio.all_tasks()
    body = {"observations": told, "worker": "ada"}
    answer = await client.post(f"/v1/sessions/{session}/observe", json=body)
    assert answer.json()["session"]["rounds"]["in_interval"] == 105
    assert asyncio.all_tasks() == before


async def test_a_forecast_that_fails_is_logged_and_labels_go_on(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    pool = await known_pool(client, 300)
    session = await opened(client, pool, precision=0.12)
    await labelled(client, session, pool, 105)
    async with asyncio.timeout(60):
        while "a forecast failed" not in caplog.text:  # noqa: ASYNC110 - a task of its own logs
            await asyncio.sleep(0.05)
    assert "/nowhere/python" in caplog.text
    after = (await labelled(client, session, pool, 5))["session"]
    assert after["rounds"]["in_interval"] == 110


async def got(client: AsyncClient, session: str) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"/v1/sessions/{session}")).json()
    return found

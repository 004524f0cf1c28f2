"""The client that does not block, over the application itself and no socket."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import httpx2
import pytest

from celeus import AsyncClient, AsyncSession, Problem, Turn
from celeus.settings import Settings
from tests.client.pools import exam
from tests.clients import service_of
from tests.keys import ADMIN

ROWS, LOSSES = exam(100)


@pytest.fixture
async def client(database_url: str, redis_url: str) -> AsyncIterator[AsyncClient]:
    settings = Settings(database_url=database_url, redis_url=redis_url)
    with service_of(settings) as app:
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http,
            AsyncClient("http://celeus.test", ADMIN, http=http) as client,
        ):
            yield client


@pytest.fixture
async def session(client: AsyncClient) -> AsyncSession:
    pool = await client.create_pool("exam", ROWS)
    return await client.open_session(pool, precision=0.3)


def loss(item: Turn) -> float:
    return LOSSES[item.index]


async def ledger_losses(session: AsyncSession) -> list[float | None]:
    return [entry.loss async for entry in session.ledger() if entry.kind == "observation"]


async def test_an_empty_name_is_no_name_and_two_tasks_judge_under_two(
    session: AsyncSession,
) -> None:
    async with (
        aclosing(session.draws(worker="")) as first_draws,
        aclosing(session.draws(worker="")) as second_draws,
    ):
        first, second = await anext(first_draws), await anext(second_draws)
        assert first.round != second.round


async def test_what_was_said_before_a_break_is_sent(session: AsyncSession) -> None:
    async with aclosing(session.draws()) as draws:
        async for item in draws:
            assert await item.keep()
            item.observe(loss(item))
            break
    assert await ledger_losses(session) == [loss(item)]
    assert (await session.status()).rounds.pending == 0


async def test_runs_that_were_made_before_a_judge_died_are_not_made_again(
    client: AsyncClient,
) -> None:
    pool = await client.create_pool("chance", ROWS)
    session = await client.open_session(pool, target="runs", success="all of 3", budget=1)
    made: list[int] = []

    async def run(item: Turn) -> float:
        made.append(item.runs)
        if len(made) == 2:
            raise RuntimeError(item.id)
        return 0.0

    with pytest.raises(RuntimeError):
        await session.judge(run, worker="judge")
    await session.judge(run, worker="judge")
    # The second run died and was made again
    assert made == [0, 1, 1, 2]
    assert (await session.status()).runs == 3


async def test_functions_and_coroutines_judge(session: AsyncSession) -> None:
    asked: list[int] = []

    async def verdict(item: Turn) -> float:
        asked.append(item.index)
        await asyncio.sleep(0.001)
        return loss(item)

    done = await session.judge(verdict, concurrency=4)
    assert done.labels == len(asked) == len(set(asked))
    assert done.state in {"target_reached", "exhausted"}


async def test_batches_are_judged(session: AsyncSession) -> None:
    async def verdicts(items: Sequence[Turn]) -> list[float]:
        return [loss(item) for item in items]

    done = await session.judge_many(verdicts, size=16)
    assert done.labels == len(await ledger_losses(session)) > 16


async def test_a_draw_that_is_settled_is_not_run_again_with_others(client: AsyncClient) -> None:
    pool = await client.create_pool("runs", ROWS[:12])
    session = await client.open_session(pool, target="runs", success="all of 3", budget=12)
    runs: dict[int, int] = {}

    async def verdicts(items: Sequence[Turn]) -> list[float]:
        for item in items:
            runs[item.round] = runs.get(item.round, 0) + 1
        return [float(runs[item.round] == item.round % 3) for item in items]

    await session.judge_many(verdicts, size=4)
    assert runs == {round_: round_ % 3 or 3 for round_ in range(1, 13)}
    assert (await session.status()).runs == 24


async def test_a_failure_of_the_judge_is_told_once(session: AsyncSession) -> None:
    def verdict(item: Turn) -> float:
        raise RuntimeError(item.id)

    with pytest.raises(RuntimeError):
        await session.judge(verdict, concurrency=3)
    assert await ledger_losses(session) == []


async def test_lists_and_refusals_are_the_same(client: AsyncClient, session: AsyncSession) -> None:
    pools = [pool async for pool in client.pools()]
    assert [listed.id async for listed in client.sessions(pools[0])] == [session.id]
    assert [item.id async for item in client.items(pools[0])] == [row["id"] for row in ROWS]
    with pytest.raises(Problem, match="precision"):
        await client.open_session(pools[0], precision=7)
    opened = await client.create_pool("pieces")
    assert await client.add_items(opened, ROWS[:5]) == 5
    assert (await client.seal_pool(opened)).items == (await client.pool(opened.id)).items == 5
    known = await client.request("GET", "/v1/pools", limit=1)
    assert len(known["data"]) == 1

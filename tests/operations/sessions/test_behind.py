"""A process that is far behind a session's ledger: others go on while it folds."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

import psycopg
import pytest

from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest, TableRequest
from celeus.core.plans.stopping import Question
from celeus.core.pools.losses import LossScale
from celeus.core.session.correction import catch_up
from celeus.core.session.outcome import Judgement
from celeus.operations.insights.table import table_claims
from celeus.operations.pools import pools
from celeus.operations.pools.pools import NewPool
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.sessions import journal, rounds, sessions
from celeus.operations.sessions.sessions import Opening
from celeus.settings import Settings
from celeus.store.database import plain_url

BEHIND = 25


@pytest.fixture
async def two(database_url: str) -> AsyncIterator[list[Context]]:
    """Two processes, as far as sessions go."""
    settings = Settings(database_url=database_url, database_pool_size=4)
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(open_context(settings)) for _ in range(2)]


async def opened(context: Context) -> UUID:
    """A session with one claim about answers yes that hold at once."""
    scale = LossScale("zero_one", 0.0, 1.0)
    rows = [{"id": f"i{number}", "surrogate": number % 10 / 10} for number in range(200)]
    wanted = NewPool("p", scale, (list(range(1, 201)), list(rows)), sealed=True)
    pool = await pools.create_pool(context, wanted)
    request = TableRequest(account="closed", questions=[(None, Question("at_most", 0.9))])
    asked = Opening(pool.pool_id, SessionRequest(Claim(precision=0.05), table=request))
    document = await sessions.open_session(context, asked)
    return UUID(document["id"].removeprefix("ses_"))


async def judged(context: Context, session: UUID, first: int, count: int) -> None:
    for round_ in range(first, first + count):
        await rounds.next_draws(context, session, "ada", 1)
        told = [Judgement(round_, loss=float(round_ % 3 == 0))]
        await rounds.observe(context, session, told, "ada", 0)


async def test_a_table_is_folded_while_nobody_waits_for_its_row(
    two: list[Context], database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds of hundreds of claims take so long that two thousand events kept others waiting."""
    monkeypatch.setattr(journal, "BETS_LOCKED", BEHIND)
    session, free = await opened(two[0]), list[bool]()
    await table_claims(two[1], session)
    await judged(two[0], session, 1, BEHIND)

    def looking(*parts: Any) -> Any:  # noqa: ANN401 -- what it is given, and what that gives
        with psycopg.connect(plain_url(database_url)) as other:
            asked = "SELECT 1 FROM sessions WHERE session_id = %s FOR UPDATE SKIP LOCKED"
            free.append(other.execute(asked, [session]).fetchone() is not None)
        return catch_up(*parts)

    monkeypatch.setattr(journal, "catch_up", looking)
    await judged(two[1], session, BEHIND + 1, 1)
    assert free == [True]
    one, other = [await table_claims(context, session) for context in two]
    assert one == other

"""Reading the provisional interval beside those who label."""

from uuid import UUID

import orjson

from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.core.pools.losses import LossScale
from celeus.core.session.outcome import Judgement
from celeus.operations.insights.provisional import with_provisional
from celeus.operations.pools import pools
from celeus.operations.pools.pools import NewPool
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.sessions import rounds, sessions
from celeus.operations.sessions.sessions import Opening, get_session
from celeus.settings import Settings


async def stalled(context: Context, behind: int) -> UUID:
    """A session with so many judged rounds behind its first draw, which is open."""
    scale = LossScale("zero_one", 0.0, 1.0)
    rows = [{"id": f"i{number}", "surrogate": number % 10 / 10} for number in range(200)]
    wanted = NewPool("p", scale, (list(range(1, 201)), list(rows)), sealed=True)
    pool = await pools.create_pool(context, wanted)
    asked = Opening(pool.pool_id, SessionRequest(Claim(precision=0.05)))
    document = await sessions.open_session(context, asked)
    session = UUID(document["id"].removeprefix("ses_"))
    await rounds.next_draws(context, session, "slow", 1)
    for _ in range(behind):
        await judged_one_more(context, session)
    return session


async def judged_one_more(context: Context, session: UUID) -> None:
    [draw] = (await rounds.next_draws(context, session, "ada", 1)).draws
    told = [Judgement(draw["round"], loss=float(draw["round"] % 3 == 0))]
    await rounds.observe(context, session, told, "ada", 0)


async def test_a_document_that_is_behind_is_answered_by_the_present_one(context: Context) -> None:
    session = await stalled(context, 3)
    before = await get_session(context, session)
    await judged_one_more(context, session)
    now = await get_session(context, session)
    found = await with_provisional(context, session, *before)
    assert found == await with_provisional(context, session, *now)
    assert found[1] == now[1] != before[1]
    document = orjson.loads(found[0])
    assert document.pop("provisional")["judged"] == 4
    assert document == orjson.loads(now[0])


async def test_a_session_that_is_held_is_read_without_it(database_url: str) -> None:
    settings = Settings(database_url=database_url, lock_timeout_ms=100)
    async with open_context(settings) as context:
        session = await stalled(context, 3)
        body, version = await get_session(context, session)
        async with context.states.hold(session):
            plain = await with_provisional(context, session, body, version)
        assert plain == (body, f"{version}.without")
        whole = await with_provisional(context, session, body, version)
        assert whole[1] == version
        assert orjson.loads(whole[0])["provisional"]["open"] == 1

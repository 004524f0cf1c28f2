"""Reading the provisional interval beside those who label."""

from uuid import UUID

import orjson

from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.operations.insights.provisional import with_provisional
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.sessions import rounds
from celeus.operations.sessions.sessions import get_session
from celeus.settings import Settings
from tests.operations.opened import judged, opened


async def stalled(context: Context, behind: int) -> UUID:
    """A session with so many judged rounds behind its first draw, which is open."""
    session = await opened(context, SessionRequest(Claim(precision=0.05)), 200)
    await rounds.next_draws(context, session, "slow", 1)
    await judged(context, session, behind)
    return session


async def test_a_document_that_is_behind_is_answered_by_the_present_one(context: Context) -> None:
    session = await stalled(context, 3)
    before = await get_session(context, session)
    await judged(context, session, 1)
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

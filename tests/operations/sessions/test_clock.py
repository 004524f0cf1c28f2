"""Times of events never run backwards, whatever the database's clock does."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from celeus.core.certificate.verify import verify
from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.core.session.outcome import Judgement
from celeus.operations.certificates.issue import current
from celeus.operations.certificates.signing_keys import make_key
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.sessions import rounds
from celeus.operations.sessions.history import ledger
from celeus.settings import Settings
from tests.faults.clocks import DatabaseClock, database_clock
from tests.operations.opened import opened

HOUR = 3600.0
ITEMS = 30


@pytest.fixture
async def clock(database_url: str) -> AsyncIterator[DatabaseClock]:
    """The database's clock."""
    with database_clock(database_url) as clock:
        yield clock


@pytest.fixture
async def contexts(clock: DatabaseClock, tmp_path: Path) -> AsyncIterator[tuple[Context, Context]]:
    """Two processes of a service."""
    key = tmp_path / "signing.pem"
    make_key(key)
    settings = Settings(database_url=clock.url, signing_key_file=key)
    async with open_context(settings) as first, open_context(settings) as second:
        yield first, second


async def test_times_stay_in_order_when_the_clock_is_set_back(
    clock: DatabaseClock, contexts: tuple[Context, Context]
) -> None:
    first, second = contexts
    session = await opened(first, SessionRequest(Claim(precision=0.1)), ITEMS)
    for context, offset in ((first, HOUR), (second, -HOUR), (first, 0.0), (second, 2 * HOUR)):
        clock.jump(offset)
        offer = await rounds.next_draws(context, session, "ada", 1)
        judgement = Judgement(offer.draws[0]["round"], loss=1.0)
        await rounds.observe(context, session, [judgement], "ada", 0)
    events, _ = await ledger(first, session, 0, ITEMS)
    times = [event["at"] for event in events]
    assert len(times) == 8
    assert times == sorted(times)
    assert (times[-1] - times[0]).total_seconds() > HOUR / 2, "the jumps were seen"
    report = verify((await current(first, session)).body)
    assert report.valid, report.difference

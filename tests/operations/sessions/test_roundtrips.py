"""What an observation asks of PostgreSQL: how often, and what if it does not answer."""

from collections.abc import AsyncIterator
from uuid import UUID

import psycopg
import pytest
import redis
from psycopg._queries import MAX_CACHED_STATEMENT_LENGTH

from celeus.core.ledger import Observation
from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.core.plans.stopping import Question
from celeus.core.session.outcome import Judgement
from celeus.errors import Busy, DatabaseUnavailable
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.sessions import rounds
from celeus.operations.sessions.append import _APPEND, write
from celeus.operations.sessions.journal import locked
from celeus.operations.sessions.rounds import NextDraws
from celeus.operations.webhooks.endpoints import WebhookSettings, create_webhook, list_deliveries
from celeus.settings import Settings
from celeus.store.database import raw_connection
from tests.operations.opened import opened
from tests.operations.wire import Wire

PROMISED = 5
ITEMS = 200
LABELS = 80


@pytest.fixture
async def context(database_url: str, redis_url: str) -> AsyncIterator[Context]:
    """A context as in production: the status goes to Redis."""
    settings = Settings(
        database_url=database_url,
        redis_url=redis_url,
        lock_timeout_ms=300,
        webhook_internal="127.0.0.1/32",
        webhook_http=True,
    )
    async with open_context(settings) as context:
        yield context


@pytest.fixture
async def session(context: Context) -> UUID:
    """An open session."""
    return await opened(context, SessionRequest(Claim(precision=0.1)), ITEMS)


def _judgement(offer: NextDraws) -> list[Judgement]:
    return [Judgement(draw["round"], loss=float(draw["round"] % 2)) for draw in offer.draws]


def _asked_of_redis(url: str) -> int:
    with redis.Redis.from_url(url) as client:
        return int(client.info("stats")["total_commands_processed"])


async def test_an_observation_with_the_next_draw_takes_few_round_trips(
    wire: Wire, context: Context, session: UUID
) -> None:
    offer = await rounds.next_draws(context, session, "ada", 1)
    counts = []
    for _ in range(12):
        wire.round_trips()
        answer = await rounds.observe(context, session, _judgement(offer), "ada", 1)
        counts.append(wire.round_trips())
        offer = answer.offer
    assert min(counts) >= 2, "nothing was heard"
    # The driver has PostgreSQL prepare a statement when it comes often: also then
    assert max(counts) <= PROMISED, counts


def test_the_driver_reads_the_longest_statement_once() -> None:
    """A longer one it would take apart anew for each label."""
    assert len(_APPEND) <= MAX_CACHED_STATEMENT_LENGTH


async def test_an_observation_is_planned_once_for_all(context: Context, session: UUID) -> None:
    """To plan it takes PostgreSQL as long as to execute it."""
    offer = await rounds.next_draws(context, session, "ada", 1)
    for _ in range(30):
        offer = (await rounds.observe(context, session, _judgement(offer), "ada", 1)).offer
    async with context.transaction() as db:
        found = await raw_connection(db).execute(
            "SELECT sum(generic_plans), sum(custom_plans) FROM pg_prepared_statements"
            " WHERE statement ~ 'INSERT INTO events'"
        )
        row = await found.fetchone()
    assert row is not None
    generic, custom = row
    assert generic > custom


async def test_a_label_that_decides_sends_the_same_statements_as_any_other(
    wire: Wire, context: Context, redis_url: str
) -> None:
    """Else who only labels, and may not know what is decided, could time it."""
    hook = await create_webhook(
        context, WebhookSettings("http://127.0.0.1:9/", ["session.decided"])
    )
    counts: list[list[tuple[int, int]]] = []
    deliveries = []
    for threshold in (0.9, 0.5):
        question = Question("at_most", threshold)
        claim = Claim(questions=(question,), stop_when_decided=False)
        session = await opened(context, SessionRequest(claim), ITEMS)
        offer = await rounds.next_draws(context, session, "ada", 1)
        counts.append([])
        for _ in range(LABELS):
            wire.statements()
            before = _asked_of_redis(redis_url)
            answer = await rounds.observe(context, session, _judgement(offer), "ada", 1)
            counts[-1].append((wire.statements(), _asked_of_redis(redis_url) - before))
            offer = answer.offer
        deliveries.append(len(await list_deliveries(context, hook.webhook_id, 9)))
    assert deliveries == [1, 1], "the first of the two is decided, the second is not"
    assert min(counts[0]) >= (4, 2), "nothing was heard"
    assert counts[0] == counts[1]


async def test_a_session_locked_elsewhere_is_busy_and_then_goes_on(
    context: Context, session: UUID, database_url: str
) -> None:
    offer = await rounds.next_draws(context, session, "ada", 1)
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute("SELECT FROM sessions WHERE session_id = %s FOR UPDATE", [session])
        with pytest.raises(Busy):
            await rounds.observe(context, session, _judgement(offer), "ada", 1)
    answer = await rounds.observe(context, session, _judgement(offer), "ada", 1)
    assert not answer.receipts[0].replayed


async def test_connections_cut_are_unavailable_once_and_then_replaced(
    context: Context, session: UUID, database_url: str
) -> None:
    offer = await rounds.next_draws(context, session, "ada", 1)
    cutting = (
        "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
        " WHERE application_name = 'celeus' AND state = 'idle in transaction'"
    )
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other:

        async def observe_while_cut() -> None:
            async with locked(context, session) as (journal, db):
                await other.execute(cutting)
                journal.append(Observation(offer.draws[0]["round"], 1.0), {"worker": "ada"})
                await write(db, journal, journal.status())

        with pytest.raises(DatabaseUnavailable):
            await observe_while_cut()
    answer = await rounds.observe(context, session, _judgement(offer), "ada", 1)
    assert not answer.receipts[0].replayed

"""What was stored when digests were taken over a canonical JSON of our own goes on to verify."""

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
import rfc8785
from alembic import command

from celeus.core.certificates import document
from celeus.core.certificates.replay import Evidence
from celeus.core.certificates.verify import verify
from celeus.core.plans import plan
from celeus.core.plans.opening import SessionRequest
from celeus.core.plans.plan import Claim
from celeus.core.pools import pool
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, chain
from celeus.core.pools.rows import assembly as items
from celeus.core.pools.rows import validation
from celeus.core.session.outcome import Judgement
from celeus.operations.certificates import issue
from celeus.operations.certificates.audit import audit
from celeus.operations.certificates.signing_keys import key_of_folder, read_key
from celeus.operations.pools import pools
from celeus.operations.pools.pools import NewPool
from celeus.operations.runtime.context import Context, open_context
from celeus.operations.sessions import rounds, sessions
from celeus.operations.sessions.sessions import Opening
from celeus.operations.sessions.sessions import Settings as Changes
from celeus.settings import Settings
from celeus.store import migrations

BEFORE = "2f8e5ac06d91"
ITEMS = 12
SCALES = {
    "tiny": LossScale.of("bounded", -1e-05, 2e-05),
    "plain": LossScale.of("bounded", -1.0, 2.0),
}
LONG = 12345678901234567890


def former_canonical(value: object) -> bytes:
    """The canonical JSON that digests were taken over before RFC 8785."""
    plain = _plain(value)
    spelled = json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return spelled.encode()


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(Decimal(repr(value)))
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Service:
    """A database, and a context with a signing key as a fresh process has it."""

    url: str
    folder: Path

    @asynccontextmanager
    async def context(self) -> AsyncIterator[Context]:
        async with open_context(Settings(database_url=self.url)) as opened:
            yield replace(opened, signing_key=read_key(key_of_folder(self.folder)))

    async def migrate(self) -> None:
        """Go from the revision of before to the last one."""
        configuration = migrations.configuration(self.url)
        await asyncio.to_thread(command.downgrade, configuration, BEFORE)
        await asyncio.to_thread(command.upgrade, configuration, "head")


@pytest.fixture
def service(database_url: str, tmp_path: Path) -> Service:
    return Service(database_url, tmp_path)


async def _stored(service: Service, scale: LossScale, payload: object) -> tuple[UUID, UUID, UUID]:
    """A pool in the form of before, an open session, and a closed one with its certificate."""
    rows: list[object] = [{"id": f"i{at}", "payload": payload, "proxy": 0.0} for at in range(ITEMS)]
    wanted = NewPool("old", scale, (list(range(1, ITEMS + 1)), rows), sealed=True)
    async with service.context() as context:
        with pytest.MonkeyPatch.context() as former:
            # The code as it was: the service that stored these is no more.
            for module in (validation, items, plan, pool):
                former.setattr(module, "canonical_json", former_canonical)
            former.setattr(validation, "EXACT", math.inf)
            former.setattr(plan, "Plan", partial(plan.Plan, method_version="celeus-1"))
            former.setattr(document, "FORMAT", "celeus-certificate-1")
            made = await pools.create_pool(context, wanted)
            names = []
            for alpha in (1e-05, 0.05):
                opening = Opening(made.pool_id, SessionRequest(Claim(alpha=alpha), "celeus"))
                names.append((await sessions.open_session(context, opening))["id"])
            one, other = (UUID(name.removeprefix("ses_")) for name in names)
            await _judge(context, one, 3)
            await _judge(context, other, 2)
            await sessions.change_session(context, other, Changes(lifecycle="closed"))
            await issue.issue(context, other)
    return made.pool_id, one, other


async def _judge(context: Context, session: UUID, count: int) -> None:
    offer = await rounds.next_draws(context, session, "ada", count)
    told = [Judgement(draw["round"], loss=1e-05) for draw in offer.draws]
    await rounds.observe(context, session, told, "ada", 0)


@pytest.mark.parametrize(
    ("scale", "payload"),
    [
        ("tiny", None),
        ("plain", {"n": [1e-05, 1e-07, {"x": -1e-05}]}),
        ("plain", {"\ue000": 1, "\U00010000": 2}),
        ("plain", {"id": LONG, "text": "12345678901234567890"}),
        ("plain", "0.00001"),
    ],
    ids=["scale", "numbers", "names", "long", "none"],
)
async def test_pools_and_sessions_of_before_verify_after_the_migration(
    service: Service, scale: str, payload: object
) -> None:
    pool_id, opened, closed = await _stored(service, SCALES[scale], payload)
    async with service.context() as context:
        assert (await audit(context.database)).findings
    await service.migrate()
    async with service.context() as context:
        done = await audit(context.database)
        assert (done.sessions, done.findings) == (2, [])
        record, loaded = await pools.columns(context, pool_id)
        assert record.digest == loaded.digest
        listed, _ = await pools.list_items(context, pool_id, 100, None)
        records = [rfc8785.dumps([item.id, json.loads(item.payload or "null")]) for item in listed]
        assert chain(CHAIN_START, records) == loaded.items_digest
        await _judge(context, opened, 2)
        await sessions.change_session(context, opened, Changes(lifecycle="closed"))
        evidence = Evidence(loaded.columns, loaded.groups, loaded.items_digest)
        for session in (opened, closed):
            issued = await issue.issue(context, session)
            report = verify(issued.body, evidence, issue.public_key(context))
            assert report.valid, report.difference


async def test_a_long_number_of_before_keeps_its_digits_as_text(service: Service) -> None:
    pool_id, *_ = await _stored(service, SCALES["plain"], {"a": [LONG, 2**53 - 1]})
    await service.migrate()
    async with service.context() as context:
        listed, _ = await pools.list_items(context, pool_id, 100, None)
    payloads = [json.loads(item.payload or "null") for item in listed]
    assert payloads == [{"a": [str(LONG), 2**53 - 1]}] * ITEMS


async def test_a_ledger_that_was_changed_is_not_made_good_by_the_migration(
    service: Service,
) -> None:
    _, session, _ = await _stored(service, SCALES["tiny"], None)
    with psycopg.connect(service.url) as db:
        db.execute("UPDATE events SET loss = 0 WHERE kind = 2 AND session_id = %s", (session,))
    await service.migrate()
    async with service.context() as context:
        found = (await audit(context.database)).findings
    assert [one.where for one in found if one.name == f"ses_{session.hex}"] == ["ledger_head"]


async def test_a_session_older_than_the_chain_stays_without_a_head(service: Service) -> None:
    await _stored(service, SCALES["tiny"], None)
    with psycopg.connect(service.url) as db:
        db.execute(
            "UPDATE sessions SET ledger_head = NULL,"
            " status = jsonb_set(status, '{ledger_head}', 'null')"
        )
    await service.migrate()
    async with service.context() as context:
        done = await audit(context.database)
    assert (done.unchained, done.findings) == (2, [])

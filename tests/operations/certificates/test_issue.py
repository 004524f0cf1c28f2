"""Certificates and audits on a real database, without HTTP."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from celeus.core.certificate.pool_checks import Evidence
from celeus.core.certificate.verify import verify
from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest
from celeus.core.pools.losses import LossScale
from celeus.core.session.outcome import Judgement
from celeus.operations.certificates import audit as auditing
from celeus.operations.certificates import issue
from celeus.operations.certificates.audit import audit
from celeus.operations.certificates.signing_keys import key_of_folder, read_key
from celeus.operations.pools import pools
from celeus.operations.pools.pools import NewPool
from celeus.operations.runtime.context import Context
from celeus.operations.sessions import amendments, rounds, sessions
from celeus.operations.sessions.amendments import Correction
from celeus.operations.sessions.sessions import Opening, Settings
from tests.conftest import Execute
from tests.nightly import by_day

ITEMS = 80


@pytest.fixture
def signing(context: Context, tmp_path: Path) -> Context:
    """A context with a signing key."""
    return replace(context, signing_key=read_key(key_of_folder(tmp_path)))


async def _pool(context: Context) -> UUID:
    scale = LossScale.of("bounded", -1.0, 1e6)
    values = np.random.default_rng(1).random(ITEMS)
    items: list[object] = [
        {"id": f"item-{i}", "surrogate": -1.0 + float(values[i]) * 1e6, "group": f"g{i % 3}"}
        for i in range(ITEMS)
    ]
    rows = list(range(1, ITEMS + 1)), items
    pool = await pools.create_pool(context, NewPool("known", scale, rows, sealed=True))
    return pool.pool_id


async def _session(context: Context, policy: str, claim: Claim) -> UUID:
    opening = Opening(await _pool(context), SessionRequest(claim, policy))
    document = await sessions.open_session(context, opening)
    return UUID(document["id"].removeprefix("ses_"))


async def _walk(context: Context, session: UUID) -> None:
    """Names in every script, losses with every digit, draws ahead, corrections, changes."""
    chance = np.random.default_rng(2)
    for worker in ("ada", "Łukasz", "日本語", '\U0001f600 \u2028\t"\\', "e\u0301"):
        offer = await rounds.next_draws(context, session, worker, 4)
        loss = [-1.0, 1e6, float(chance.random()), 1.0 / 3.0]
        judgements = [
            Judgement(draw["round"], loss=loss[index])
            for index, draw in enumerate(offer.draws)
            if index != 2
        ]
        await rounds.observe(context, session, judgements, worker, 0)
    judged = Judgement(1, loss=-0.0)
    await amendments.amend(context, session, Correction(judged, "böb", "a\nslip"))
    unjudged = Judgement(2, unjudgeable="\u0001\u001f\u007f")
    await amendments.amend(context, session, Correction(unjudged, "bob", ""))
    await sessions.change_session(context, session, Settings(precision=234_567.891))
    await sessions.change_session(context, session, Settings(precision=None, lifecycle="paused"))
    await sessions.change_session(context, session, Settings(lifecycle="active", budget=ITEMS - 1))


CLAIMS = {
    "sharp": Claim(precision=1e5),
    "celeus": Claim("population", precision=5e5),
    "uniform": Claim(),
}


@pytest.mark.parametrize("policy", CLAIMS)
async def test_whatever_was_written_down_is_certified_and_audited(
    signing: Context, policy: str
) -> None:
    session = await _session(signing, policy, CLAIMS[policy])
    await _walk(signing, session)
    interim = await issue.issue(signing, session)
    await sessions.change_session(signing, session, Settings(lifecycle="closed"))
    final = await issue.issue(signing, session)
    assert (interim.final, final.final) == (False, True)
    row = json.loads(final.body)
    pool, _ = await pools.list_pools(signing, 1, None)
    _, loaded = await pools.columns(signing, pool[0].pool_id)
    evidence = Evidence(loaded.columns, loaded.groups, loaded.items_digest)
    for issued in (interim, final):
        report = verify(issued.body, evidence, issue.public_key(signing))
        assert report.valid, report.difference
    assert row["supersedes"] is None
    done = await audit(signing.database)
    assert (done.sessions, done.certificates) == (1, 1)
    assert done.events == len(row["ledger"])
    assert done.findings == []


async def test_a_state_rebuilt_from_the_ledger_is_certified_alike(signing: Context) -> None:
    session = await _session(signing, "sharp", CLAIMS["sharp"])
    await _walk(signing, session)
    warm = await issue.issue(signing, session)
    signing.states._slots.clear()
    assert (await issue.issue(signing, session)).body == warm.body


async def test_a_margin_the_database_writes_as_a_whole_number_is_certified(
    signing: Context,
) -> None:
    huge = Claim("population", margin=1e300, margin_assumption="none worth the name")
    session = await _session(signing, "sharp", huge)
    warm = await issue.issue(signing, session)
    signing.states._slots.clear()
    assert (await issue.issue(signing, session)).body == warm.body


HARMS = {
    "events": "DELETE FROM events WHERE sequence = (SELECT max(sequence) FROM events)",
    "ledger_head": "UPDATE events SET loss = 0.25 WHERE kind = 2 AND round = 4",
    "ledger_head ": "UPDATE events SET at = at + interval '1 microsecond' WHERE sequence = 2",
    "ledger_head  ": "UPDATE sessions SET ledger_head = sha256(ledger_head)",
    "plan_digest": "UPDATE sessions SET plan = jsonb_set(plan, '{alpha}', '0.1')",
    "commitment": "UPDATE sessions SET seed = sha256(seed)",
    "status.upper": "UPDATE sessions SET status = jsonb_set(status, '{upper}', '0.5')",
    "trajectory": "DELETE FROM trajectory WHERE round = 2",
    "trajectory, round 2": "UPDATE trajectory SET lower = lower - 1 WHERE round = 2",
    "certificate": "UPDATE certificates SET body = body || 'x' WHERE final",
    "pool": "UPDATE chunks SET data = data || data",
}


@pytest.mark.parametrize("where", by_day(6, HARMS))
async def test_an_audit_names_what_was_changed_behind_the_service(
    signing: Context, where: str, execute: Execute
) -> None:
    session = await _session(signing, "celeus", CLAIMS["celeus"])
    await _walk(signing, session)
    if where == "certificate":
        await sessions.change_session(signing, session, Settings(lifecycle="closed"))
        await issue.issue(signing, session)
    execute(HARMS[where].encode())
    done = await audit(signing.database)
    findings = [finding for finding in done.findings if finding.name.startswith("ses_")]
    assert [finding.where for finding in findings] == [where.strip()]
    assert findings[0].line.startswith(f"ses_{session.hex}: {where.strip()} is ")


AMONG_ITEMS = {
    "payload": 'UPDATE items SET payload = \'{"text": "other"}\' WHERE index = 17',
    "payload left out": "UPDATE items SET payload = NULL WHERE index = 17",
    "payload without a digest": "UPDATE items SET payload = '[9007199254740993]' WHERE index = 17",
    "id": "UPDATE items SET id = 'other' WHERE index = 17",
    "order": "UPDATE items SET index = -1 WHERE index = 3;"
    " UPDATE items SET index = 3 WHERE index = 40; UPDATE items SET index = 40 WHERE index = -1",
    "one less": "DELETE FROM items WHERE index = 79",
    "a gap": "UPDATE items SET index = 80 WHERE index = 79",
    "one more": "INSERT INTO items SELECT pool_id, 80, project_id, 'z' FROM items WHERE index = 0",
    "one far away": "INSERT INTO items SELECT pool_id, 999, project_id, 'z' FROM items"
    " WHERE index = 0",
    "items_digest": "UPDATE pools SET items_digest = sha256(items_digest)",
}


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items are read in many pages."""
    monkeypatch.setattr(auditing, "ITEMS_AT_ONCE", 7)


async def _pool_with_payloads(context: Context, *, sealed: bool) -> UUID:
    payloads = (None, "é\t\u2028", {"\ue000": 2.0**53 - 1.0, "\U00010000": [-1e-05, 5e-324, -0.0]})
    items: list[object] = [{"id": f"i{i}\n", "payload": payloads[i % 3]} for i in range(ITEMS)]
    rows = list(range(1, ITEMS + 1)), items
    new = NewPool("texts", LossScale.of("zero_one"), rows, sealed=sealed)
    return (await pools.create_pool(context, new)).pool_id


@pytest.mark.usefixtures("few_at_once")
async def test_an_audit_reads_every_item_of_every_pool(context: Context) -> None:
    await pools.create_pool(context, NewPool("empty", LossScale.of("zero_one")))
    for sealed in (False, True):
        await _pool_with_payloads(context, sealed=sealed)
    await _session(context, "celeus", CLAIMS["celeus"])
    done = await audit(context.database)
    assert (done.pools, done.items, done.findings) == (4, 3 * ITEMS, [])


@pytest.mark.usefixtures("few_at_once")
@pytest.mark.parametrize(("harm", "sealed"), by_day(7, list(product(AMONG_ITEMS, (False, True)))))
async def test_an_audit_names_pools_whose_items_were_changed(
    context: Context, harm: str, execute: Execute, *, sealed: bool
) -> None:
    pool_id = await _pool_with_payloads(context, sealed=sealed)
    execute(AMONG_ITEMS[harm].encode())
    await _session(context, "celeus", CLAIMS["celeus"])
    done = await audit(context.database)
    (finding,) = done.findings
    assert finding.line.startswith(f"pool_{pool_id.hex}: items")


AMONG_COLUMNS = {
    "score": "UPDATE chunks SET data = set_byte(data, 6, 63) WHERE \"column\" = 'surrogate.0'",
    "scores cut off": "UPDATE chunks SET data = substr(data, 1, 9)"
    " WHERE \"column\" = 'surrogate.0'",
    "groups": 'UPDATE pools SET groups = \'["g0", "g2", "g1"]\'',
    "scale": "UPDATE pools SET loss_upper = 2e6",
    "digest": "UPDATE pools SET digest = sha256(digest)",
}


@pytest.mark.parametrize("harm", AMONG_COLUMNS)
async def test_an_audit_names_sealed_pools_whose_numbers_were_changed(
    context: Context, harm: str, execute: Execute
) -> None:
    pool_id = await _pool(context)
    execute(AMONG_COLUMNS[harm].encode())
    (finding,) = (await audit(context.database)).findings
    place = "columns" if harm == "scores cut off" else "digest"
    assert finding.line.startswith(f"pool_{pool_id.hex}: {place} is ")

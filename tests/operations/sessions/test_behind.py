"""A process that is far behind a session's ledger: others go on while it folds."""

from typing import Any

import psycopg
import pytest

from celeus.core.plans.plan import Claim
from celeus.core.plans.plan_request import SessionRequest, TableRequest
from celeus.core.plans.stopping import Question
from celeus.core.session.correction import catch_up
from celeus.operations.insights.table import table_claims
from celeus.operations.runtime.context import Context
from celeus.operations.sessions import journal
from celeus.store.database import plain_url
from tests.operations.opened import judged, opened

BEHIND = 25


TABLE = TableRequest(account="closed", questions=[(None, Question("at_most", 0.9))])
"""One claim about answers yes that hold at once."""


async def test_a_table_is_folded_while_nobody_waits_for_its_row(
    two: list[Context], database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounds of hundreds of claims take so long that two thousand events kept others waiting."""
    monkeypatch.setattr(journal, "BETS_LOCKED", BEHIND)
    session = await opened(two[0], SessionRequest(Claim(precision=0.05), table=TABLE), 200)
    free = list[bool]()
    await table_claims(two[1], session)
    await judged(two[0], session, BEHIND)

    def looking(*parts: Any) -> Any:  # noqa: ANN401 -- what it is given, and what that gives
        with psycopg.connect(plain_url(database_url)) as other:
            asked = "SELECT 1 FROM sessions WHERE session_id = %s FOR UPDATE SKIP LOCKED"
            free.append(other.execute(asked, [session]).fetchone() is not None)
        return catch_up(*parts)

    monkeypatch.setattr(journal, "catch_up", looking)
    await judged(two[1], session, 1)
    assert free == [True]
    one, other = [await table_claims(context, session) for context in two]
    assert one == other

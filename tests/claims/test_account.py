"""Every account of alpha keeps its promise, however badly it is used."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.plans.stopping import Question
from celeus.core.plans.table_plan import Account, TableClaim, TableSettings, plan_table
from celeus.core.pools.losses import LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.table_pool import Table
from celeus.core.randomness import commitment
from celeus.core.session.session import Session
from celeus.core.session.table.table_claims import MeanClaim
from celeus.core.session.table.table_question import Table as TableQuestion
from celeus.simulation.sessions import seed_of
from celeus.simulation.tables import ever_lost
from tests.claims.counted import note
from tests.claims.sessions import ALPHA, credible
from tests.nightly import NIGHTLY

Floats = NDArray[np.float64]

UNIT = LossScale.of("bounded", 0.0, 1.0)
METRICS = 6
PRECISION = 0.2
RESERVE = 0.02


def world(number: int, items: int) -> tuple[Table, Floats]:
    """Six metrics that go together, and surrogates that are good, useless and backward."""
    chance = np.random.default_rng([number, items, 31])
    hard = chance.random(items)[:, None]
    rate = np.linspace(0.1, 0.6, METRICS)
    losses = (0.6 * hard + 0.4 * chance.random((items, METRICS)) < rate).astype(np.float64)
    knows = np.array([0.6, 0.0, -0.6, 0.6, 0.3, 0.0])
    guess = 0.5 + knows * (losses - 0.5) + 0.2 * chance.standard_normal(losses.shape)
    scores = [Scores(one, np.zeros(items)) for one in np.clip(guess, 0.0, 1.0).T]
    metrics = [Metric(f"metric {at}", UNIT) for at in range(METRICS)]
    return Table.of(metrics, scores, [], np.full(losses.shape, np.nan)), losses


def begun(
    number: int, items: int, account: Account, asked: dict[str, float] | None = None
) -> tuple[Session[TableQuestion], Floats]:
    """A session with a precision for every metric, and questions "at most" where they are given."""
    table, losses = world(number, items)
    names = [metric.name for metric in table.metrics]
    questions = {name: (Question("at_most", at),) for name, at in (asked or {}).items()}
    wish = TableSettings(
        ALPHA,
        account,
        precision=dict.fromkeys(names, PRECISION),
        questions=questions,
        reserve=RESERVE if account == "together" else 0.0,
    )
    seed = seed_of(number, 31)
    plan = plan_table(wish, table, "claims", commitment(seed))
    return Session.of(TableQuestion(plan, table, seed), seed), losses


def judged(session: Session[TableQuestion], losses: Floats) -> bool:
    """Judge the next item; False when nothing is left."""
    if not session.can_draw:
        return False
    draw = session.propose()
    session.apply(draw)
    session.observe(draw.round, tuple(losses[draw.item].tolist()))
    return True


def wrong(claim: MeanClaim, level: float, risk: float) -> bool:
    interval = claim.interval_at(level)
    return not interval.lower - 1e-9 <= risk <= interval.upper + 1e-9


def lucky(number: int, items: int) -> float:
    """Share of false ones among the half that looks best, shown when the first looks good."""
    session, losses = begun(number, items, "selected")
    risk = losses.mean(axis=0)
    start = [claim.interval.upper for claim in session.question.means]
    while judged(session, losses):
        upper = [claim.interval.upper for claim in session.question.means]
        if min(now - before for now, before in zip(upper, start, strict=True)) < -0.5:
            break
    best = np.argsort([claim.interval.upper - one for claim, one in _with(session, risk)])
    places = best[: METRICS // 2].tolist()
    shown = zip(places, session.question.shown(places), strict=True)
    false = [not one.lower - 1e-9 <= risk[at] <= one.upper + 1e-9 for at, one in shown]
    return float(np.mean(false))


def worst(number: int, items: int) -> float:
    """Shows the first claim that is false at the level of a single one: somebody knew the truth."""
    session, losses = begun(number, items, "selected")
    risk = losses.mean(axis=0)
    while judged(session, losses):
        if any(wrong(claim, ALPHA / METRICS, one) for claim, one in _with(session, risk)):
            return 1.0
    return 0.0


def closed(number: int, items: int) -> float:
    """Whether an answer yes is ever false; half of them would be, by one item."""
    table, losses = world(number, items)
    risk = losses.mean(axis=0)
    names = [metric.name for metric in table.metrics]
    beside = np.where(np.arange(METRICS) % 2, risk + 0.15, risk - 1.0 / items)
    asked = dict(zip(names, np.clip(beside, 0.01, 0.99).tolist(), strict=True))
    session, _ = begun(number, items, "closed", asked)
    while judged(session, losses):
        pass
    return float(any(risk[at] > asked[names[at]] for at, _ in session.question.proven))


def added(number: int, items: int) -> float:
    """Whether any claim is ever lost: those of the opening, or the two from the reserve."""
    session, losses = begun(number, items, "together")
    risk = losses.mean(axis=0)
    for _ in range(items // 4):
        judged(session, losses)
    # Those that look worst, which the one who adds them has seen
    order = np.argsort([claim.estimate for claim in session.question.means[:METRICS]])
    for at in order[:2].tolist():
        session.question.add(TableClaim(f"metric {at}", 0, RESERVE / 2.0, precision=PRECISION))
    while judged(session, losses):
        pass
    names = [metric.name for metric in session.question.table.metrics]
    lost = (
        ever_lost(one, float(risk[names.index(one.claim.metric)])) for one in session.question.means
    )
    return float(any(lost))


PROMISES: dict[str, Callable[[int, int], float]] = {
    "selected, the best looking half": lucky,
    "selected, one who knows the truth": worst,
    "closed": closed,
    "together, two claims from the reserve": added,
}


def broken(promise: str, items: int, sessions: int) -> float:
    """Sum over the sessions of how far the promise was broken, each at most 1."""
    return sum(PROMISES[promise](number, items) for number in range(sessions))


def _with(session: Session[TableQuestion], risk: Floats) -> list[tuple[MeanClaim, float]]:
    return list(zip(session.question.means, risk.tolist(), strict=True))


ITEMS = 120 if NIGHTLY else 40
SESSIONS = 1600 if NIGHTLY else 8


@pytest.mark.parametrize("promise", PROMISES)
def test_every_account_keeps_its_promise(promise: str) -> None:
    counted = broken(promise, ITEMS, SESSIONS)
    note("account of six claims", promise, ITEMS, SESSIONS, f"broken {counted:g}")
    # A share counts for no more than a whole one: the test is on the safe side
    assert credible(math.floor(counted), SESSIONS), counted

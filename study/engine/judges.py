"""Sessions whose judges work at once and take longer over some items: what a service meets.

A judge takes ``HARD`` times as long over an item of the largest loss as over one of the smallest,
so that losses come in an order that depends on them. Nothing may follow from that: rounds are
folded in draw order. A session may go on after its stop, which its interval has to survive too.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace

from celeus.core.betting.base import WealthLost
from celeus.core.betting.signals import RangeLeft
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import Policy
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session
from celeus.simulation.sessions import Truth, ever_missed, opened

HARD = 20.0
SLACK = 1e-9
BROKEN = "broken"
"""The engine contradicted itself: a signal beside its range, or a factor that is not positive."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """The number of judges at work, and how many times the labels at the stop they go on for."""

    judges: int = 1
    beyond: float = 1.0


@dataclass(frozen=True, slots=True)
class SessionSetup:
    """Policy, claim and judges of a session."""

    policy: Policy
    claim: Claim
    crowd: Crowd = Crowd()


@dataclass(frozen=True, slots=True)
class SessionOutcome:
    """The result of a session, compared with the true risk.

    ``lower`` and ``upper`` are the interval at the stop, after ``labels`` rounds; ``missed`` says
    that it does not hold the risk, ``ever`` that it did not after some round.
    """

    labels: int
    stopped: str
    lower: float
    upper: float
    missed: bool
    ever: bool


def session(setup: SessionSetup, truth: Truth, risk: float, seed: bytes) -> SessionOutcome:
    """Judge items of ``truth`` until the claim is met and beyond, or the pool is exhausted."""
    state = opened(truth, setup.policy, setup.claim, seed)
    plan = state.question.plan
    outcome: SessionOutcome | None = None
    try:
        for _ in _judged(state, truth, setup.crowd.judges):
            if outcome is None and state.stop_reason is not None:
                outcome = _seen(state, risk)
            if outcome is not None and state.folded >= setup.crowd.beyond * outcome.labels:
                break
    except (RangeLeft, WealthLost):
        return SessionOutcome(state.folded, BROKEN, plan.lower, plan.upper, missed=True, ever=True)
    if outcome is None:
        message = f"a session ended after {state.folded} rounds without a reason"
        raise ValueError(message)
    return replace(outcome, ever=ever_missed(state, risk))


def _judged(state: Session[Mean], truth: Truth, judges: int) -> Iterator[None]:
    """Give every judge work, fold the next judgement, and so on; steps consume the state."""
    now, out = 0.0, list[tuple[float, int, float]]()
    while True:
        while len(out) < judges and state.can_draw:
            draw = state.propose()
            state.apply(draw)
            loss = float(truth.loss[draw.item])
            hard = (loss - truth.lower) / (truth.upper - truth.lower)
            heapq.heappush(out, (now + 1.0 + (HARD - 1.0) * hard, draw.round, loss))
        if not out:
            return
        now, round_, loss = heapq.heappop(out)
        state.observe(round_, loss)
        yield


def _seen(state: Session[Mean], risk: float) -> SessionOutcome:
    interval = state.question.interval
    slack = SLACK * state.question.plan.scale.width
    return SessionOutcome(
        labels=state.folded,
        stopped=str(state.stop_reason),
        lower=interval.lower,
        upper=interval.upper,
        missed=not interval.lower - slack <= risk <= interval.upper + slack,
        ever=ever_missed(state, risk),
    )

"""Sessions whose judges work at once and take longer over some items: what a service meets.

A judge takes ``HARD`` times as long over an item of the largest loss as over one of the smallest,
so that losses come in an order that depends on them. Nothing may follow from that: rounds are
folded in draw order. A session may go on after its stop, which its interval has to survive too.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace

from app.core.eprocess import WealthLost
from app.core.plan import Claim, Plan, make_plan
from app.core.policies import Policy
from app.core.randomness import commitment
from app.core.session import State, apply, begin, can_draw, observe, propose
from app.core.signals import RangeLeft
from app.study.simulation import Truth, ever_missed, oracle_scores

HARD = 20.0
SLACK = 1e-9
BROKEN = "broken"
"""The engine contradicted itself: a signal beside its range, or a factor that is not positive."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many judges work at once, and until how many times the labels at the stop."""

    judges: int = 1
    beyond: float = 1.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a session is asked for, of whom, and who judges."""

    policy: Policy
    claim: Claim
    crowd: Crowd = Crowd()


@dataclass(frozen=True, slots=True)
class Seen:
    """A session as one sees it who knows the true risk.

    ``lower`` and ``upper`` are the interval at the stop, after ``labels`` rounds; ``missed`` says
    that it does not hold the risk, ``ever`` that it did not after some round.
    """

    labels: int
    stopped: str
    lower: float
    upper: float
    missed: bool
    ever: bool


def session(asked: Asked, truth: Truth, risk: float, seed: bytes) -> Seen:
    """Judge items of ``truth`` until the claim is met and beyond, or the pool is exhausted."""
    known = oracle_scores(truth) if asked.policy.name == "oracle" else truth.scores
    plan = make_plan(asked.claim, truth.facts, asked.policy, commitment(seed))
    state = begin(plan, known, seed)
    found: Seen | None = None
    try:
        for _ in _judged(plan, state, truth, asked.crowd.judges):
            if found is None and state.stop_reason is not None:
                found = _seen(state, risk)
            if found is not None and state.folded >= asked.crowd.beyond * found.labels:
                break
    except (RangeLeft, WealthLost):
        return Seen(state.folded, BROKEN, plan.lower, plan.upper, missed=True, ever=True)
    if found is None:
        message = f"a session ended after {state.folded} rounds without a reason"
        raise ValueError(message)
    return replace(found, ever=ever_missed(state, risk))


def _judged(plan: Plan, state: State, truth: Truth, judges: int) -> Iterator[None]:
    """Give every judge work, fold the next judgement, and so on; steps consume the state."""
    now, out = 0.0, list[tuple[float, int, float]]()
    while True:
        while len(out) < judges and can_draw(plan, state):
            draw = propose(plan, state)
            apply(plan, state, draw)
            loss = float(truth.loss[draw.item])
            hard = (loss - truth.lower) / (truth.upper - truth.lower)
            heapq.heappush(out, (now + 1.0 + (HARD - 1.0) * hard, draw.round, loss))
        if not out:
            return
        now, round_, loss = heapq.heappop(out)
        observe(plan, state, round_, loss)
        yield


def _seen(state: State, risk: float) -> Seen:
    interval = state.interval
    slack = SLACK * state.scale.width
    missed = not interval.lower - slack <= risk <= interval.upper + slack
    return Seen(
        labels=state.folded,
        stopped=str(state.stop_reason),
        lower=interval.lower,
        upper=interval.upper,
        missed=missed,
        ever=ever_missed(state, risk),
    )

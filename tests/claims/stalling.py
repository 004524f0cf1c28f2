"""Seeded sessions whose judge sees items and losses, and keeps back what would correct the rest."""

from collections.abc import Callable, Iterator

import numpy as np

from celeus.core.plans.plan import make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.randomness import commitment
from celeus.core.session.outcome import Loss
from celeus.core.session.session import AnySession, begin_mean
from celeus.simulation.sessions import ever_missed, seed_of
from tests.claims.sessions import Case
from tests.core.worlds import provisional

MOST_OPEN = 8
LOOKS_APART = 5


def losses_of_risk(case: Case, sessions: int) -> int:
    """How many of the sessions ever show an interval, also a provisional one, without the risk.

    All draws whose losses lie on the side that the interval leans to are answered at once. Of the
    others MOST_OPEN stay open, the oldest the longest, each till no other can be drawn.
    """
    return sum(_lost(case, number) for number in range(sessions))


def _lost(case: Case, number: int) -> bool:
    truth = case.pools.pool(np.random.default_rng([number, case.items, 9]), case.items)
    risk = float(truth.loss.mean()) if case.target == "pool" else case.pools.risk
    slack = 1e-9 * (truth.upper - truth.lower)
    seed = seed_of(number, 9)
    plan = make_plan(case.claim(), truth.facts, policy_named(case.policy), commitment(seed))
    state = begin_mean(plan, truth.scores, seed)

    def corrects(item: int) -> bool:
        interval = state.question.interval
        leans_low = interval.lower + interval.upper < 2.0 * risk
        return (truth.loss_of(item) < risk) != leans_low

    for _ in kept_open(state, truth.loss_of, corrects):
        found = None if state.observed % LOOKS_APART else provisional(state)
        if found is not None:
            shown = found.interval
            if not shown.lower - slack <= risk <= shown.upper + slack:
                return True
    return ever_missed(state, risk)


def kept_open(
    session: AnySession, loss: Callable[[int], Loss], keeps: Callable[[int], bool]
) -> Iterator[None]:
    """Draw and judge all there is, past each judgement; of an item that it ``keeps`` late.

    MOST_OPEN stay open, the oldest the longest, each till no other can be drawn.
    """
    open_: list[int] = []
    while session.can_draw or open_:
        if session.can_draw and len(open_) < MOST_OPEN:
            draw = session.propose()
            session.apply(draw)
            open_.append(draw.round)
            if keeps(draw.item):
                continue
        round_ = open_.pop()
        session.observe(round_, loss(session.item(round_)))
        yield

"""Seeded sessions that ask where it is hardest: on the true risk, and just beside it."""

from dataclasses import dataclass

import numpy as np

from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Answer, Question, Side
from celeus.core.randomness import commitment
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session, begin_mean
from celeus.simulation.sessions import Truth, ever_missed, seed_of
from tests.claims.sessions import ALPHA, FURTHER_WORLDS, WORLDS, World

BESIDE = 0.49
"""Of one item's share in the pool risk: the nearest threshold that answers otherwise."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Sessions that ask one question; ``engine_alpha`` breaks them.

    ``beside`` puts the threshold where the answer is no, by the least there is.
    """

    policy: str
    target: str
    world: str
    side: Side
    beside: bool
    items: int
    engine_alpha: float = ALPHA

    @property
    def pools(self) -> World:
        """Where the pools come from."""
        return (WORLDS | FURTHER_WORLDS)[self.world]

    def question(self, truth: Truth, risk: float) -> Question:
        """The hardest question of a pool: its answer is yes, or no where ``beside``."""
        step = BESIDE * (truth.upper - truth.lower) / truth.loss.size if self.beside else 0.0
        return Question(self.side, risk - step if self.side == "at_most" else risk + step)

    @property
    def right(self) -> Answer:
        """What there is to be answered."""
        return "no" if self.beside else "yes"


@dataclass(frozen=True, slots=True)
class Told:
    """What some sessions said: how many answered wrongly, and how many said anything wrong.

    Something wrong is an answer, or an interval of any round.
    """

    sessions: int
    wrong: int
    anything: int


def told(case: Asking, sessions: int) -> Told:
    """Sessions of a case, each on a pool of its own."""
    wrong = anything = 0
    for number in range(sessions):
        truth = case.pools.pool(np.random.default_rng([number, case.items, 4]), case.items)
        risk = float(truth.loss.mean()) if case.target == "pool" else case.pools.risk
        if not truth.lower < risk < truth.upper:
            # Nothing may be asked at an end of the scale.
            continue
        state = _run(case, truth, risk, seed_of(number, 4))
        lost = state.question.decisions[0].answer not in {"undecided", case.right}
        wrong += lost
        anything += lost or ever_missed(state, risk)
    return Told(sessions, wrong, anything)


def _run(case: Asking, truth: Truth, risk: float, seed: bytes) -> Session[Mean]:
    """Run beyond the answer, to exhaustion."""
    question = case.question(truth, risk)
    claim = Claim(
        "pool" if case.target == "pool" else "population",
        case.engine_alpha,
        questions=(question,),
        stop_when_decided=False,
    )
    plan = make_plan(claim, truth.facts, policy_named(case.policy), commitment(seed))
    state = begin_mean(plan, truth.scores, seed)
    while state.can_draw:
        draw = state.propose()
        state = state.apply(draw)
        state = state.observe(draw.round, float(truth.loss[draw.item]))
    return state

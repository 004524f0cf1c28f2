"""An answer is wrong in at most alpha of the sessions, on either side, however near the risk."""

from dataclasses import dataclass

import numpy as np
import pytest

from celeus.core.betting.candidate_grid import CandidateGrid, ThresholdDesign
from celeus.core.interval import Interval
from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Answer, Question, Side
from celeus.core.randomness import commitment
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session, begin_mean
from celeus.simulation.sessions import Truth, ever_missed, seed_of
from tests.claims.sessions import ALPHA, FURTHER_WORLDS, HARDEST, WORLDS, World, credible
from tests.nightly import NIGHTLY

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


SESSIONS, ITEMS = (1500, 200) if NIGHTLY else (24, 60)
SIDES: tuple[Side, ...] = ("at_most", "at_least")
POOLS = [
    *(("sharp", "pool", world) for world in ((*WORLDS, *FURTHER_WORLDS) if NIGHTLY else HARDEST)),
    ("uniform", "pool", "informative surrogate"),
    ("sharp", "population", "informative surrogate"),
    ("celeus", "pool", "more than half drawn"),
    *((policy, "pool", "rare losses") for policy in ("no_surrogate", "evalue") if NIGHTLY),
]
ASKED: list[tuple[Side, bool]] = [("at_most", False), ("at_least", True)]
"""Both sides, and both answers."""
FURTHER: list[tuple[Side, bool]] = [("at_most", True), ("at_least", False)]
CASES = [
    (*pools, *asked)
    for number, pools in enumerate(POOLS)
    # By day the pools take turns
    for asked in (ASKED + FURTHER if NIGHTLY else [ASKED[number % len(ASKED)]])
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_at_most_alpha_of_the_sessions_say_anything_wrong(
    case: tuple[str, str, str, Side, bool],
) -> None:
    counted = told(Asking(*case, items=ITEMS), SESSIONS)
    assert counted.wrong <= counted.anything
    assert credible(counted.anything, counted.sessions), counted


@pytest.mark.parametrize(("side", "beside"), ASKED)
def test_stakes_that_add_up_to_more_than_alpha_are_caught(
    side: Side,
    beside: bool,  # noqa: FBT001 -- a parameter of a test
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    candidates = ThresholdDesign.candidates

    def generous(self: ThresholdDesign, steps: int) -> tuple[CandidateGrid, CandidateGrid]:
        plus, minus = candidates(self, steps)
        return plus._replace(share=8.0 * plus.share), minus._replace(share=8.0 * minus.share)

    monkeypatch.setattr(ThresholdDesign, "candidates", generous)
    broken = Asking("sharp", "pool", "more than half drawn", side, beside, 60)
    counted = told(broken, 40)
    assert not credible(counted.wrong, counted.sessions), counted


@pytest.mark.parametrize("side", SIDES)
def test_an_answer_before_the_interval_is_past_the_threshold_is_caught(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers read off the half of the interval that is nearer to the estimate."""
    answer = Question.answer

    def hasty(self: Question, interval: Interval, slack: float = 0.0) -> Answer:
        quarter = interval.width / 4.0
        return answer(self, Interval(interval.lower + quarter, interval.upper - quarter), slack)

    monkeypatch.setattr(Question, "answer", hasty)
    hurried = Asking("sharp", "pool", "more than half drawn", side, beside=True, items=60)
    counted = told(hurried, 40)
    assert not credible(counted.wrong, counted.sessions), counted

"""What is out with open draws at their worst is out once they are judged, whatever is said."""

import itertools
from collections.abc import Iterator
from itertools import pairwise, takewhile

import numpy as np
import pytest

from celeus.core.betting.population_target import PairSequence
from celeus.core.interval import Interval
from celeus.core.ledger import Change, Event, Observation, Unjudgeable
from celeus.core.plans.judge_check import JudgeCheck
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import Question
from celeus.core.plans.table_plan import TableSettings
from celeus.core.session import provisional as module
from celeus.core.session.best.best_question import Best
from celeus.core.session.provisional import WaitingRounds
from celeus.core.session.session import Session, begin_session
from celeus.simulation.best import plan_for
from tests.claims.contests import WORLDS as CONTESTS
from tests.core.session.best.test_best_enumeration import assert_no_less
from tests.core.session.table.test_ratio_claims import world_of
from tests.core.session.table.test_table_state import planned, pool_of
from tests.core.worlds import SEED, Floats, Q, Walk, open_walk, provisional, zero_one_truth
from tests.nightly import NIGHTLY

KINDS = {
    "pool": ("sharp", Claim("pool", 0.3, 0.15)),
    "without precision": ("sharp", Claim("pool", 0.3)),
    "question": ("sharp", Claim("pool", 0.3, questions=(Question("at_most", 0.35),))),
    "population": ("sharp", Claim("population", 0.3, 0.35)),
    "celeus": ("celeus", Claim("pool", 0.3, 0.2)),
    "evalue": ("evalue", Claim("pool", 0.3, 0.2)),
}
SEEDS = 40 if NIGHTLY else 4
LOOKS = 1.0 if NIGHTLY else 0.3
"""Share of the steps at which a table or a race is looked at."""


def lies_within(pair: tuple[Interval, Interval]) -> bool:
    """Return whether the second interval lies within the first."""
    before, now = pair
    return before.lower - 1e-12 <= now.lower <= now.upper <= before.upper + 1e-12


def stalling(walk: Walk, chance: np.random.Generator, most: int) -> list[tuple[int, float, float]]:
    """A random session of draws ahead; its provisional intervals by round, and all is judged."""
    shown: list[tuple[int, float, float]] = []
    open_: list[int] = []
    while walk.state.folded < walk.truth.loss.size:
        if walk.state.can_draw and len(open_) < most and chance.random() < 0.6:
            open_.append(walk.draw()[0].round)
        elif open_:
            round_ = open_.pop(int(chance.integers(len(open_)) if chance.random() < 0.8 else 0))
            walk.judge([round_])
        if chance.random() < 0.02:
            walk.enter(Change(float(chance.choice([0.35, 0.4, 0.5])), walk.truth.loss.size))
        found = provisional(walk.state)
        if found is not None:
            assert found.folded == walk.state.drawn
            shown.append((found.folded, found.interval.lower, found.interval.upper))
    return shown


@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_is_never_wider_once_the_open_draws_are_judged(kind: str) -> None:
    policy, claim = KINDS[kind]
    narrower = 0
    for seed in range(SEEDS):
        chance = np.random.default_rng([seed, 8])
        walk = open_walk(zero_one_truth(60, seed=seed), policy_named(policy), claim)
        shown = stalling(walk, chance, int(chance.choice([2, 5, 9])))
        intervals = [point.interval for point in walk.state.question.points]
        nested = 1 + sum(1 for _ in takewhile(lies_within, pairwise(intervals)))
        # What loses the truth, as three in ten sessions may, can end with nothing left
        assert nested == len(intervals) or walk.state.question.fold.emptied
        for rounds, lower, upper in shown:
            if rounds > nested:
                continue
            full = intervals[rounds - 1]
            assert lower - 1e-12 <= full.lower <= full.upper <= upper + 1e-12
        narrower += len(shown)
    assert narrower > 20 * SEEDS


def stalled(
    session: Session[Q], losses: Floats, chance: np.random.Generator, most: int = 60
) -> Iterator[tuple[int, Q]]:
    """A random session of ``most`` draws, all judged at last; the answers at worst, by round."""
    open_: list[int] = []
    while (draws := session.can_draw and session.drawn < most) or open_:
        if draws and len(open_) < 6 and chance.random() < 0.6:
            session.apply(draw := session.propose())
            open_.append(draw.round)
        elif open_:
            round_ = open_.pop(int(chance.integers(len(open_)) if chance.random() < 0.8 else 0))
            session.observe(round_, tuple(losses[session.item(round_)].tolist()))
        if chance.random() < LOOKS and (found := provisional(session)) is not None:
            yield session.drawn, found


@pytest.mark.parametrize(
    "world",
    ["a tie of four", "ties and worse, informative", "ties and worse, anti-correlated"],
)
def test_a_system_out_at_worst_is_out_once_the_open_draws_are_judged(world: str) -> None:
    earlier = 0
    for seed in range(SEEDS):
        chance = np.random.default_rng([seed, 8])
        candidates, losses = CONTESTS[world](chance, 60)
        session = Session.of(Best(plan_for(candidates, 0.3), candidates, SEED), SEED)
        shown = [
            (drawn, session.question.race.standing.size, found)
            for drawn, found in stalled(session, losses, chance)
        ]
        for drawn, standing, found in shown:
            assert found.race.rounds == drawn
            assert_no_less(found.race, session.question.race, losses)
            earlier += standing > found.race.standing.size
    assert earlier


@pytest.mark.parametrize("account", ["each", "closed", "selected"])
def test_a_claim_of_a_table_never_says_less_once_the_open_draws_are_judged(account: str) -> None:
    proven = 0
    for seed in range(SEEDS // 4):
        chance = np.random.default_rng([seed, 9])
        pool, losses = pool_of(chance)
        questions = {"accuracy": (Question("at_most", 0.7),)}
        plan = planned(pool, alpha=0.3, account=account, questions=questions)
        session = begin_session(plan, pool, SEED)
        for drawn, found in list(stalled(session, losses, chance)):
            assert found.folded == drawn
            own = session.question
            for claim, later in zip(found.means, own.means, strict=True):
                if claim.rounds and not later.emptied and account != "selected":
                    full = later.fold.points[len(claim.rounds) - 1].interval
                    assert lies_within((claim.interval, full))
            for test, round_ in found.proven.items():
                assert own.proven[test] <= round_
                proven += 1
            assert all(own.met_at[place] <= at for place, at in found.met_at.items())
    assert bool(proven) == (account == "closed")


def test_a_measure_of_a_judge_never_says_less_once_the_open_draws_are_judged() -> None:
    for seed in range(SEEDS // 2):
        chance, world = np.random.default_rng([seed, 10]), world_of(seed, 60)
        names = ("tnr", "f1", "kappa")
        check = JudgeCheck("judge", "yes", names)
        wish = TableSettings(alpha=0.3, check=check, precision=dict.fromkeys(names, 0.2))
        session = world.begun(wish)
        shown = [found for _, found in stalled(session, world.people[:, None] * 1.0, chance)]
        assert len(shown) > 5
        for before, claim in itertools.product(shown, session.question.ratios):
            earlier = before.claims[session.question.claims.index(claim)]
            assert claim.emptied or lies_within((earlier.interval, claim.interval))


def test_it_is_narrower_than_the_interval_that_waits() -> None:
    walk = open_walk(zero_one_truth(2000), policy_named("sharp"), Claim("pool", 0.05, 0.1))
    walk.go(100)
    before = walk.state.question.interval
    assert provisional(walk.state) is None
    walk.draw(1)
    assert provisional(walk.state) is None
    walk.go(100)
    walk.draw(2)
    assert walk.state.question.interval == before
    found = provisional(walk.state)
    assert found is not None
    assert found.folded == 203
    assert found.interval.width < 0.8 * before.width
    answers: list[Event] = [Observation(101, 0.0), Observation(101, 1.0), Unjudgeable(101)]
    for answer in answers:
        branch = walk.branch()
        branch.enter(answer)
        own = branch.state.question.interval
        assert found.interval.lower <= own.lower <= own.upper <= found.interval.upper
    branch.enter(Unjudgeable(202))
    branch.enter(Unjudgeable(203))
    assert branch.state.question.interval == found.interval, "as if nobody could judge them"


def test_the_session_goes_on_while_it_is_folded() -> None:
    walk = open_walk(zero_one_truth(200), policy_named("sharp"), Claim("pool", 0.05, 0.1))
    walk.draw(1)
    walk.go(20)
    found = provisional(walk.state)
    waiting = WaitingRounds.of(walk.state)
    walk.judge([1])
    walk.go(10)
    assert waiting is not None
    assert found is not None
    assert waiting.settled().points[:] == found.points[:]
    assert (found.folded, waiting.open, waiting.waiting, waiting.judged) == (21, 1, 20, 20)


def test_its_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROUNDS", 10)
    walk = open_walk(zero_one_truth(200), policy_named("sharp"), Claim("pool", 0.05, 0.1))
    walk.draw(1)
    walk.go(9)
    assert provisional(walk.state) is not None
    walk.go(1)
    assert provisional(walk.state) is None


def test_a_round_that_nobody_could_judge_counts_like_an_open_one() -> None:
    """A cell of pairs with both edges at a stake of 1 stays while the loss might leave it in."""
    walk = open_walk(zero_one_truth(120), policy_named("sharp"), KINDS["population"][1])
    walk.draw()
    walk.enter(Unjudgeable(1))
    sequence = walk.state.question.fold.confidence_sequence
    assert isinstance(sequence, PairSequence)
    both = 0
    while walk.state.can_draw:
        walk.go(1)
        for side in sequence._sides:
            if side.cells is not None:
                stakes = np.minimum(side.cells.below, side.cells.above)
                both += int(np.count_nonzero((stakes >= 0.0) & (stakes < np.inf)))
    assert both

"""Skipping what one has seen, with draws held, loses the risk in at most alpha of the sessions."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from celeus.core.ledger import Event, Observation, Unjudgeable
from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.randomness import commitment
from celeus.core.session.session import begin_mean, judge_rounds
from celeus.simulation.sessions import Truth, ever_missed, seed_of
from tests.claims.counted import note
from tests.claims.sessions import ALPHA, FURTHER_WORLDS, WORLDS, credible
from tests.nightly import NIGHTLY

HELD = 250
EXTENTS = (25, 75, 150)
"""How many of the draws held a rule looks at."""
PRECISION = 0.1


@dataclass(frozen=True, slots=True)
class Skipping:
    """Sessions of one policy in one world."""

    policy: str
    world: str
    items: int


@dataclass(frozen=True, slots=True)
class Skips:
    """How many of the sessions lost the risk: judged honestly, and by the best of the rules."""

    sessions: int
    honest: int
    best: int


def skips(case: Skipping, sessions: int) -> Skips:
    """Sessions of a case, each on a pool of its own."""
    honest = best = 0
    world = (WORLDS | FURTHER_WORLDS)[case.world]
    for number in range(sessions):
        truth = world.pool(np.random.default_rng([number, case.items, 5]), case.items)
        session = _Session(case.policy, truth, seed_of(number, 5))
        honest += session.lost(set())
        # He tries every rule on the draws held, and goes on with what came nearest to losing it.
        best += session.lost(min(session.rules(), key=session.room))
    return Skips(sessions, honest, best)


class _Session:
    """A session after the draws held."""

    def __init__(self, policy: str, truth: Truth, seed: bytes) -> None:
        claim = Claim("pool", ALPHA, PRECISION * (truth.upper - truth.lower))
        self.plan = make_plan(claim, truth.facts, policy_named(policy), commitment(seed))
        self.truth, self.seed = truth, seed
        self.risk = float(truth.loss.mean())
        self.state = begin_mean(self.plan, truth.scores, seed)
        self.events: list[Event] = []
        for _ in range(HELD):
            self.events.append(self.state.propose())
            self.state = self.state.apply(self.events[-1])

    def rules(self) -> Iterator[set[int]]:
        """27 rules: places skipped, by their losses, their surrogates and how early they are."""
        items, surrogate = np.array(self.state.rounds.item), self.truth.scores.surrogate
        loss = self.truth.loss[items] - self.risk
        score = surrogate[items] - np.median(surrogate[items])
        every = np.ones(items.size, dtype=np.bool_)
        for one, other, extent in itertools.product(
            (loss < 0.0, loss > 0.0, every), (score < 0.0, score >= 0.0, every), EXTENTS
        ):
            yield set(np.flatnonzero(one[:extent] & other[:extent]).tolist())

    def room(self, skipped: set[int]) -> float:
        """The least there was between the risk and an end of the interval."""
        fold = self.state.question.engine.fold()
        fold.follow(self.plan, self.state.rounds)
        for place, coming in enumerate(list(fold.knowledge.open.values())):
            loss = None if place in skipped else self.truth.loss_of(coming.draw.item)
            fold.fold_round(self.plan, coming, loss)
        ends = [point.interval for point in fold.points]
        return min(min(self.risk - one.lower, one.upper - self.risk) for one in ends)

    def lost(self, skipped: set[int]) -> bool:
        """Whether the risk is ever lost, when all other items are judged as they are drawn."""
        plan, items = self.plan, self.state.rounds.item
        answers: list[Event] = [
            Unjudgeable(place + 1)
            if place in skipped
            else Observation(place + 1, self.truth.loss_of(items[place]))
            for place in range(HELD)
        ]
        state = begin_mean(plan, self.truth.scores, self.seed)
        state = state.replay([*self.events, *answers])
        for _ in judge_rounds(state, self.truth.loss_of, past_stop=True):
            pass
        return ever_missed(state, self.risk)


ITEMS = 600
SESSIONS = 504 if NIGHTLY else 8


@pytest.mark.nightly
@pytest.mark.parametrize("world", ["informative surrogate", "three quarters drawn"])
def test_the_best_of_27_rules_to_skip_what_was_seen_gains_nothing(world: str) -> None:
    counted = skips(Skipping("sharp", world, ITEMS), SESSIONS)
    found = f"missed ever {counted.best}, without skips {counted.honest}"
    note("skips by the best of 27 rules", world, ITEMS, SESSIONS, found)
    assert credible(counted.best, SESSIONS), counted

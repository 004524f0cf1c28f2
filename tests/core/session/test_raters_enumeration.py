"""With a panel: over every possible draw the signal's mean is what the protocol comes to.

Every item is judged by its raters, one after the other, in the order that the seed gives it; the
pool risk is the mean of their outcomes, an item that they leave undecided having both ends.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from celeus.core.ledger import Observation, Rating, Unjudgeable
from celeus.core.plans.panel_plan import Protocol
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.session.panel import order_of, outcome_of, turn_of
from tests.core.worlds import SEED, Walk, coming, open_walk, small_truth

EXACT = 1e-12
PANEL = ("ann", "ben", "cid", "dan")
ITEMS = 7
SAID = np.random.default_rng(11).integers(0, 3, (ITEMS, len(PANEL))) / 2.0
"""By item and rater; the first cannot judge item 2, nobody but one item 5."""
ABLE = np.ones((ITEMS, len(PANEL)), dtype=bool)
ABLE[2, 0] = False
ABLE[5, 1:] = False


def says(item: int, rater: str, turn: int) -> float | None:
    """Where consensus is sought, some change their mind."""
    place = PANEL.index(rater)
    if not ABLE[item, place]:
        return None
    changed = (SAID[item, place] + 0.5) % 1.5 if turn > 1 and place % 2 else SAID[item, place]
    return float(changed)


def decided_loss(protocol: Protocol, item: int) -> float | None:
    """Return the loss the raters decide on, asked in the order of the seed."""
    order = [PANEL[number] for number in order_of(SEED, item, len(PANEL))]
    said: dict[tuple[str, int], float | None] = {}
    while not outcome_of(protocol, said, len(PANEL)).decided:
        turn = turn_of(protocol, said, order)
        said[turn.raters[0], turn.number] = says(item, turn.raters[0], turn.number)
    return outcome_of(protocol, said, len(PANEL)).loss


@dataclass(slots=True)
class RatedWalk:
    """A walk whose rounds a panel judges."""

    walk: Walk

    def judge(self, round_: int) -> None:
        """The raters of a round, the last one asked first, until it is decided."""
        ratings = self.walk.state.question.ratings
        assert ratings is not None
        item = self.walk.state.item(round_)
        while not ratings.outcome(round_).decided:
            turn = ratings.turn(round_)
            rater = turn.raters[-1]
            self.walk.enter(Rating(round_, rater, says(item, rater, turn.number), turn.number))
        loss = ratings.outcome(round_).loss
        self.walk.enter(Unjudgeable(round_) if loss is None else Observation(round_, loss))

    def go(self, rounds: int) -> None:
        for _ in range(rounds):
            self.judge(self.walk.draw()[0].round)


@pytest.mark.parametrize("before", [0, 1, 3, 6])
@pytest.mark.parametrize("protocol", ["two_then_third", "consensus"])
def test_the_mean_signal_over_every_draw_is_the_mean_outcome(
    protocol: Protocol, before: int
) -> None:
    claim = Claim(precision=0.2, raters="assigned", protocol=protocol, panel=PANEL)
    walk = open_walk(small_truth(ITEMS), policy_named("sharp"), claim)
    RatedWalk(walk).go(before)
    outcomes = [decided_loss(protocol, item) for item in range(ITEMS)]
    assert None in outcomes
    total = plus = minus = 0.0
    for draw in coming(walk):
        branch = walk.branch()
        branch.enter(draw)
        RatedWalk(branch).judge(draw.round)
        point = branch.state.question.points[-1]
        total += draw.q
        plus += draw.q * point.plus.signal
        minus += draw.q * point.minus.signal
    low = math.fsum(0.0 if one is None else one for one in outcomes) / ITEMS
    high = math.fsum(1.0 if one is None else one for one in outcomes) / ITEMS
    assert (total, plus, minus) == pytest.approx((1.0, low, high), abs=EXACT)


def test_in_which_order_raters_answer_does_not_matter() -> None:
    """Blind to each other, the first two come in any order, and the outcome is the same."""
    claim = Claim(precision=0.2, raters="assigned", protocol="two_then_third", panel=PANEL)
    walk = open_walk(small_truth(ITEMS), policy_named("sharp"), claim)
    other = walk.branch()
    RatedWalk(walk).go(ITEMS)
    for _ in range(ITEMS):
        (draw,) = other.draw()
        ratings = other.state.question.ratings
        assert ratings is not None
        while not ratings.outcome(draw.round).decided:
            rater = ratings.turn(draw.round).raters[0]
            rating = Rating(draw.round, rater, says(draw.item, rater, 1))
            other.state = other.state.apply(rating)
        loss = ratings.outcome(draw.round).loss
        other.enter(Unjudgeable(draw.round) if loss is None else Observation(draw.round, loss))
    assert walk.state.question.interval == other.state.question.interval
    assert walk.state.rounds.loss == other.state.rounds.loss

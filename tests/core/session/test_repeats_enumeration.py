"""Repeated runs: over every path of items and losses, signals and stakes have the mean they must.

Losses are chance: a path is an item drawn, and one of its two losses, at every round.
"""

import copy
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.betting.pool_target import LatticeSequence
from celeus.core.ledger import Amendment, Draw, Observation, Unjudgeable
from celeus.core.plans.plan import Claim, PoolFacts, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import commitment
from celeus.core.session.mean import Mean
from celeus.core.session.session import Session, begin_mean
from tests.core.worlds import EXACT, SEED

Floats = NDArray[np.float64]
Path = tuple[float, Session[Mean]]

AHEAD = ("draw", "draw", 2, "draw", 1, 3)
"""Later draws are made while a run of the same item may still be out."""
IN_TURN = ("draw", 1, "draw", 2, "draw", 3, "draw", 4)
WORLDS = {
    "two items, in turn": ((0.1, 0.7), IN_TURN),
    "two items, ahead": ((0.1, 0.7), AHEAD),
    "three items": ((0.05, 0.5, 0.65), IN_TURN[:6]),
}


def opened(rates: Sequence[float], alpha: float = 1e-9, policy: str = "sharp") -> Session[Mean]:
    """A session before its first draw; at a tiny ``alpha`` no candidate is ever dropped."""
    claim = Claim("runs", alpha, precision=0.2, budget=100, repeats=True)
    facts = PoolFacts("runs", len(rates), 0.0, 1.0, whole_losses=True)
    plan = make_plan(claim, facts, policy_named(policy), commitment(SEED))
    guess = np.linspace(0.2, 0.8, len(rates))
    return begin_mean(plan, Scores(guess, np.zeros(len(rates))), SEED)


def branches(
    session: Session[Mean], step: str | int, rates: Sequence[float], *, hides: bool = False
) -> Iterator[Path]:
    """Every way on from here with its probability: an item drawn, or a loss of a round."""
    if step == "draw":
        for item in range(len(rates)):
            branch = copy.deepcopy(session)
            draw: Draw = branch.chance(item)
            yield draw.q, branch.apply(draw)
        return
    round_ = int(step)
    rate = rates[session.item(round_)]
    for loss, chance in ((1.0, rate), (0.0, 1.0 - rate)):
        branch = copy.deepcopy(session)
        hidden = hides and loss == 1.0 and session.item(round_) == 0
        yield chance, branch.apply(Unjudgeable(round_) if hidden else Observation(round_, loss))


def paths(
    session: Session[Mean], steps: Sequence[str | int], rates: Sequence[float], **ways: bool
) -> Iterator[Path]:
    """Every path through the steps, with its probability."""
    if not steps:
        yield 1.0, session
        return
    for chance, branch in branches(session, steps[0], rates, **ways):
        for rest, end in paths(branch, steps[1:], rates, **ways):
            yield chance * rest, end


def stakes(session: Session[Mean], mean: float) -> Floats:
    """The stakes against the candidate that is the true mean, on both sides; 1 if it is out."""
    sequence = session.question.fold.confidence_sequence
    assert isinstance(sequence, LatticeSequence)
    found = []
    for side, value in zip(sequence._lattice.sides, (mean, 1.0 - mean), strict=True):
        places = np.flatnonzero(np.abs(side._value - value) < EXACT)
        found.append(math.exp(side._stake[0, places[0]]) if places.size else 1.0)
    return np.array(found)


@pytest.mark.parametrize("world", WORLDS)
def test_over_all_paths_no_stake_against_the_mean_grows_or_falls(world: str) -> None:
    rates, steps = WORLDS[world]
    mean, start = math.fsum(rates) / len(rates), opened(rates)
    ends = list(paths(start, steps, rates))
    assert math.fsum(chance for chance, _ in ends) == pytest.approx(1.0, abs=EXACT)
    expected = sum(chance * stakes(end, mean) for chance, end in ends)
    assert expected / stakes(start, mean) == pytest.approx([1.0, 1.0], abs=1e-9)
    for place in range(ends[0][1].folded):
        signals = [chance * end.question.points[place].plus.signal for chance, end in ends]
        assert math.fsum(signals) == pytest.approx(mean, abs=EXACT)


def slow_failures(
    session: Session[Mean], rates: Sequence[float], rounds: int, late: tuple[int, ...] = ()
) -> Iterator[Path]:
    """Every path on which a success is known at once, and a failure after the next draw."""
    if not rounds:
        end = copy.deepcopy(session)
        for round_ in late:
            end.observe(round_, 1.0)
        yield 1.0, end
        return
    for item_chance, drawn in branches(session, "draw", rates):
        for round_ in late:
            drawn.observe(round_, 1.0)
        last, failed, passed = drawn.drawn, copy.deepcopy(drawn), drawn
        passed.observe(last, 0.0)
        rate = rates[drawn.item(last)]
        for chance, branch, out in ((rate, failed, (last,)), (1.0 - rate, passed, ())):
            for rest, end in slow_failures(branch, rates, rounds - 1, out):
                yield item_chance * chance * rest, end


def test_a_stake_keeps_its_mean_where_how_long_a_run_takes_tells_how_it_ends() -> None:
    rates, start = (0.2, 0.6), opened((0.2, 0.6))
    ends = list(slow_failures(start, rates, 4))
    assert math.fsum(chance for chance, _ in ends) == pytest.approx(1.0, abs=EXACT)
    expected = sum(chance * stakes(end, 0.4) for chance, end in ends)
    assert expected / stakes(start, 0.4) == pytest.approx([1.0, 1.0], abs=1e-9)


@pytest.mark.parametrize("policy", ["sharp", "uniform"])
@pytest.mark.parametrize("before", range(4))
def test_the_signal_has_the_mean_over_all_runs_whatever_was_seen(before: int, policy: str) -> None:
    rates = (0.3, 0.0, 0.85)
    session = opened(rates, policy=policy)
    for round_ in range(1, before + 1):
        session.apply(session.chance(0)).observe(round_, float(round_ % 2))
    signals = []
    for item_chance, drawn in branches(session, "draw", rates):
        for loss_chance, end in branches(drawn, before + 1, rates):
            signals.append(item_chance * loss_chance * end.question.points[-1].plus.signal)
    assert math.fsum(signals) == pytest.approx(math.fsum(rates) / 3.0, abs=EXACT)


SLIPS = {
    "at once": ("draw", 1, "draw", "correct", 2, "draw", 3),
    "late": ("draw", 1, "draw", 2, "draw", 3, "correct", "draw", 4),
    "with a run out": ("draw", 1, "draw", "draw", 3, "correct", 2, "draw", 4),
}
"""Rounds are drawn after a slip, before it is corrected and after it."""


def slipping(
    session: Session[Mean],
    steps: Sequence[str | int],
    rates: Sequence[float],
    truth: dict[int, float],
) -> Iterator[Path]:
    """Every path, of which round 1 is misjudged where item 0 is drawn, and round 3 if it failed."""
    if not steps:
        yield 1.0, session
        return
    ways: list[tuple[float, Session[Mean], dict[int, float]]] = []
    if steps[0] == "correct":
        for round_, loss in truth.items():
            session.apply(Amendment(round_, loss))
        ways = [(1.0, session, truth)]
    elif steps[0] == "draw":
        ways = [(q, drawn, truth) for q, drawn in branches(session, "draw", rates)]
    else:
        round_ = int(steps[0])
        rate = rates[session.item(round_)]
        for loss, chance in ((1.0, rate), (0.0, 1.0 - rate)):
            slips = session.item(1) == 0 if round_ == 1 else round_ == 3 and loss == 1.0
            branch = copy.deepcopy(session).observe(round_, 1.0 - loss if slips else loss)
            ways.append((chance, branch, truth | {round_: loss}))
    for chance, branch, known in ways:
        for rest, end in slipping(branch, steps[1:], rates, known):
            yield chance * rest, end


@pytest.mark.parametrize("policy", ["sharp", "uniform"])
@pytest.mark.parametrize("slips", SLIPS)
def test_slips_that_are_corrected_keep_the_means_of_signal_and_stake(
    slips: str, policy: str
) -> None:
    """Later runs are drawn with what was said first, and bet on with what is known since."""
    rates, steps = (0.15, 0.6), SLIPS[slips]
    start = opened(rates, policy=policy)
    ends = list(slipping(start, steps, rates, {}))
    corrected = [end for _, end in ends if any(end.rounds.corrected)]
    assert 0 < len(corrected) < len(ends)
    assert math.fsum(chance for chance, _ in ends) == pytest.approx(1.0, abs=EXACT)
    # Round 3 of "at once" stays as it was misjudged, and nothing is drawn after it
    rounds = range(2 if slips == "at once" else 3)
    for place in rounds:
        signals = [chance * end.question.points[place].plus.signal for chance, end in ends]
        assert math.fsum(signals) == pytest.approx(0.375, abs=EXACT)
    if slips != "at once":
        expected = sum(chance * stakes(end, 0.375) for chance, end in ends)
        assert expected / stakes(start, 0.375) == pytest.approx([1.0, 1.0], abs=1e-9)


def test_the_range_of_a_draw_holds_whatever_is_corrected_before_it() -> None:
    """The probability of the item drawn is recorded, those of the others are not."""
    session = opened((0.5, 0.5))
    for round_ in range(1, 13):
        session.apply(session.chance(0)).observe(round_, 0.0)
    # Item 0 is hardly doubtful any more: the last draws of it are improbable ones
    for round_ in range(1, 12, 2):
        session.apply(Amendment(round_, 1.0))
    for point in session.question.points:
        least, largest = point.plus.signal_range
        assert least <= point.plus.signal <= largest


def test_runs_that_nobody_can_judge_only_lower_a_stake() -> None:
    """The failures of the first item are hidden: its runs are bracketed, each by itself."""
    rates, start = (0.6, 0.2), opened((0.6, 0.2))
    ends = list(paths(start, IN_TURN[:6], rates, hides=True))
    expected = sum(chance * stakes(end, 0.4) for chance, end in ends)
    assert (expected / stakes(start, 0.4) <= 1.0 + EXACT).all()
    assert any(end.question.points[-1].plus != end.question.points[-1].minus for _, end in ends)


def test_the_mean_is_lost_on_at_most_alpha_of_the_paths() -> None:
    rates, alpha = (0.1, 0.7), 0.8
    lost = [
        chance
        for chance, end in paths(opened(rates, alpha), IN_TURN, rates)
        if not end.question.interval.lower - EXACT <= 0.4 <= end.question.interval.upper + EXACT
    ]
    assert 0.0 < math.fsum(lost) <= alpha


def test_an_item_with_a_run_out_stays_drawable() -> None:
    session = opened((0.5, 0.5))
    for _ in range(8):
        session.apply(session.propose())
    assert len({session.item(round_) for round_ in range(1, 9)}) == 2
    assert session.can_draw

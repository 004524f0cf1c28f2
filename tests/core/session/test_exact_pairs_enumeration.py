"""Whole sessions for the population with 0-1 losses: over every pool and every order of drawing it.

The chance that the interval ever excludes the population risk is summed exactly, for many risks.
It is at most alpha, and from below or from above at most half of what the pairs are given, besides
what their loose interval is.
"""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.plans.claim import LOOSE_SHARE
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.simulation.sessions import Truth
from tests.core.worlds import Walk, after, alike, coming, open_walk

Floats = NDArray[np.float64]

ALPHA = 0.6
RISKS = np.arange(1, 100) / 100.0
SLACK = 1e-12
SCALE = Interval(0.0, 1.0)


def walk_of(loss: Floats, guess: Floats, precision: float) -> Walk:
    pool = Truth(loss, Scores(guess, np.zeros(loss.size)))
    claim = Claim("population", ALPHA, precision, population_bound="exact_pairs")
    return open_walk(pool, policy_named("sharp"), claim)


def excluded(walk: Walk) -> NDArray[np.bool_]:
    """Which risks lie below the interval now, which above it, and which do either; shape [3, R]."""
    interval = walk.state.question.interval if walk.state.question.points else SCALE
    below, above = interval.lower - SLACK > RISKS, interval.upper + SLACK < RISKS
    return np.array([below, above, below | above])


def check(chance: Floats) -> None:
    """The chances to be lost from below, from above and at all are what may be spent on them."""
    loose = LOOSE_SHARE * ALPHA
    one_side = (ALPHA - loose) / 2.0 + loose
    assert (chance.max(axis=1) <= [one_side, one_side, ALPHA]).all()
    assert (chance[:2].max(axis=1) > 0.15 * one_side).all()


@pytest.mark.parametrize("precision", [0.9, 0.75])
def test_without_knowledge_no_risk_is_lost_more_often_than_alpha(precision: float) -> None:
    """One stratum: a session is its sequence of losses, which are iid."""
    items = 7
    chance = np.zeros((3, RISKS.size))
    for losses in itertools.product((0.0, 1.0), repeat=items):
        lost = np.zeros((3, RISKS.size), dtype=bool)
        walk = walk_of(np.zeros(items), np.full(items, 0.5), precision)
        for loss in losses:
            draw = walk.draw()[0]
            walk.truth.loss[draw.item] = loss
            walk.judge()
            lost |= excluded(walk)
        ones = sum(losses)
        chance += lost * RISKS**ones * (1.0 - RISKS) ** (items - ones)
    check(chance)


def ever_excluded(walk: Walk) -> Floats:
    """Probabilities that the interval excludes every risk now or later; as ``excluded``."""
    lost = excluded(walk).astype(np.float64)
    if not walk.left():
        return lost
    later = np.zeros((3, RISKS.size))
    for share, draw in alike(walk, coming(walk)):
        later += share * ever_excluded(after(walk, draw))
    return np.maximum(lost, later)


def test_with_strata_no_risk_is_lost_more_often_than_alpha() -> None:
    """Items whose guesses are right, wrong and none: every pool of four, every order."""
    guess = np.array([0.0, 0.0, 0.5, 1.0])
    chance = np.zeros((3, RISKS.size))
    for losses in itertools.product((0.0, 1.0), repeat=guess.size):
        walk = walk_of(np.array(losses), guess, 0.9)
        ones = sum(losses)
        weight = RISKS**ones * (1.0 - RISKS) ** (guess.size - ones)
        chance += weight * ever_excluded(walk)
    check(chance)

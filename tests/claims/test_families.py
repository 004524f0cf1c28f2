"""A family of sessions that grows while somebody looks keeps its false discovery rate."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from celeus.core.multiplicity.evidence import EvidenceSequence
from celeus.core.multiplicity.selection import opened_level
from celeus.core.plans.plan import Claim, make_plan
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import commitment
from celeus.core.sampling.predictors import CalibratedPredictor
from celeus.core.session.engine import strata_for
from celeus.core.session.fold import Fold
from celeus.core.session.session import begin_mean
from celeus.simulation.sessions import Truth, seed_of
from tests.claims.counted import note
from tests.claims.sessions import credible
from tests.nightly import NIGHTLY

LEVEL = 0.1
OPENED = 5
ITEMS = 30
RISK = 0.5
PRECISION = 0.4

LevelOf = Callable[[int], float]
"""The level of the interval shown, by the number of sessions opened so far, itself included."""


def misled(number: int, levels: LevelOf) -> bool:
    """Whether somebody who knows the truth can show an interval that misses it, and then stops."""
    return any(
        not lower - 1e-9 <= RISK <= upper + 1e-9
        for place in range(1, OPENED + 1)
        for lower, upper in _shown(number, place, levels)
    )


def _shown(number: int, place: int, levels: LevelOf) -> Iterator[tuple[float, float]]:
    """The interval of the session opened at this place, after each of its rounds.

    Its own alpha is the level at which it would be shown, so that it bets towards that.
    """
    loss = np.random.default_rng([number, place, 33]).permutation(np.arange(ITEMS) % 2 * 1.0)
    truth = Truth(loss, Scores(np.full(ITEMS, 0.5), np.full(ITEMS, 0.5), None))
    seed, level = seed_of(number, place), levels(place)
    claim = Claim("pool", level, PRECISION)
    plan = make_plan(claim, truth.facts, policy_named("uniform"), commitment(seed))
    session = begin_mean(plan, truth.scores, seed)
    sequences: list[EvidenceSequence] = []

    def sequence_of(start: float) -> EvidenceSequence:
        sequences.append(EvidenceSequence(plan, start))
        return sequences[0]

    predictor = CalibratedPredictor(plan, strata_for(plan, truth.scores))
    fold = Fold.before(plan, predictor, sequence_of, None, None)
    while session.can_draw:
        draw = session.propose()
        session = session.apply(draw).observe(draw.round, truth.loss_of(draw.item))
        fold.follow(plan, session.rounds)
        interval = sequences[0].interval_at(level)
        yield interval.lower, interval.upper


FAMILIES = 1200 if NIGHTLY else 24


def test_sessions_opened_until_one_is_shown_keep_the_level_of_the_project() -> None:
    counted = sum(misled(number, partial(opened_level, LEVEL, 1)) for number in range(FAMILIES))
    what = "sessions opened until one misses, at level 0.1"
    note("family that grows", what, ITEMS, FAMILIES, f"shown {counted}")
    assert credible(counted, FAMILIES, LEVEL), counted

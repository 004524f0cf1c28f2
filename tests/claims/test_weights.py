"""Sessions with weights lose the weighted mean in at most alpha."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.weights import relative
from celeus.core.session.session import judge_rounds
from celeus.simulation.sessions import Truth, ever_missed, opened, seed_of
from tests.claims.counted import note
from tests.claims.sessions import ALPHA, credible
from tests.nightly import NIGHTLY

Floats = NDArray[np.float64]

MEAN = 0.3
HEAVIER = 10.0
PRECISION = 0.1


def _lognormal(chance: np.random.Generator, loss: Floats) -> Floats:
    return chance.lognormal(0.0, 1.0, loss.size)


def _on_losses(chance: np.random.Generator, loss: Floats) -> Floats:
    """Items with a loss count ten times as much."""
    return np.where(loss > 0.0, HEAVIER, 1.0) * chance.lognormal(0.0, 0.5, loss.size)


def _pareto(chance: np.random.Generator, loss: Floats) -> Floats:
    """A few items hold most of the weight."""
    return chance.pareto(1.5, loss.size) + 1.0


def _opposed(chance: np.random.Generator, loss: Floats) -> Floats:
    """Items without a loss count ten times as much."""
    return _on_losses(chance, 1.0 - loss)


WORLDS: dict[str, Callable[[np.random.Generator, Floats], Floats]] = {
    "lognormal weights": _lognormal,
    "heavy losses": _on_losses,
    "Pareto weights": _pareto,
    "surrogate and weights against the losses": _opposed,
}


def pool(world: str, number: int, items: int) -> Truth:
    """A fresh pool of a world."""
    chance = np.random.default_rng([number, items, 16])
    p = chance.beta(2.0 * MEAN, 2.0 * (1.0 - MEAN), items)
    loss = (chance.random(items) < p).astype(np.float64)
    weight = relative(WORLDS[world](chance, loss))
    surrogate = 1.0 - p if WORLDS[world] is _opposed else p
    return Truth(loss, Scores(surrogate, np.zeros(items), item_weight=weight))


def lost(world: str, items: int, sessions: int) -> int:
    """How many sessions, each on a pool of its own, ever lost the weighted mean."""
    missed = 0
    for number in range(sessions):
        truth = pool(world, number, items)
        claim = Claim(alpha=ALPHA, precision=PRECISION)
        state = opened(truth, policy_named("sharp"), claim, seed_of(number, 16))
        for _ in judge_rounds(state, truth.loss_of, past_stop=True):
            pass
        missed += ever_missed(state, truth.risk)
    return missed


ITEMS = 300 if NIGHTLY else 60
SESSIONS = 2000 if NIGHTLY else 24


@pytest.mark.parametrize("world", WORLDS)
def test_the_interval_holds_the_weighted_mean(world: str) -> None:
    missed = lost(world, ITEMS, SESSIONS)
    note("weighted mean", world, ITEMS, SESSIONS, f"missed {missed}")
    assert credible(missed, SESSIONS), missed

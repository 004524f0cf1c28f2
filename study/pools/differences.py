"""Made-up pools of two systems: as informative, rare or one-sided as pools may be, and borders."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from celeus.core.pools.losses import LossScale
from celeus.core.pools.surrogates import Scores
from celeus.simulation.sessions import Truth, difference

Floats = NDArray[np.float64]
Chance = np.random.Generator

UNIT = LossScale.of("zero_one")


def _pair(
    losses: tuple[Floats, Floats],
    guesses: tuple[Floats, Floats],
    same: NDArray[np.bool_] | None,
) -> Truth:
    return difference(losses, UNIT, same, guesses, exclusive=same is not None)


def _guessed(chance: Chance, items: int, *, sign: float = 1.0, agree: float = 0.6) -> Truth:
    """Zero-one losses; guesses that know something, or the contrary of it."""
    guess = [np.clip(0.4 + 0.3 * chance.standard_normal(items), 0.02, 0.98) for _ in range(2)]
    rates = [one if sign > 0.0 else 1.0 - one for one in guess]
    losses = [(chance.random(items) < rate).astype(np.float64) for rate in rates]
    same = chance.random(items) < agree
    losses[1] = np.where(same, losses[0], losses[1])
    return _pair((losses[0], losses[1]), (guess[0], guess[1]), same)


def _rare(chance: Chance, items: int) -> Truth:
    differs = chance.random(items) < 0.05
    better = chance.random(items) < 0.7
    a, b = (differs & better).astype(np.float64), (differs & ~better).astype(np.float64)
    return _pair((a, b), (np.full(items, 0.1), np.full(items, 0.1)), None)


def _one_sided(chance: Chance, items: int) -> Truth:
    a = (chance.random(items) < 0.3).astype(np.float64)
    guess = np.clip(0.3 * a + 0.5 * chance.random(items), 0.0, 1.0)
    same = (a == 0.0) & (chance.random(items) < 0.5)
    return _pair((a, np.zeros(items)), (guess, np.full(items, 0.2)), same)


def _bounded(chance: Chance, items: int) -> Truth:
    """Bound the losses of some items: only one system can be wrong there."""
    truth = _guessed(chance, items)
    lower, upper = truth.scores.lower, truth.scores.upper
    if lower is None or upper is None:
        raise TypeError(truth.scores)
    told = chance.random(items) < 0.5
    lower = np.where(told & (truth.loss > 0.0), 0.0, lower)
    upper = np.where(told & (truth.loss < 0.0), 0.0, upper)
    return replace(truth, scores=replace(truth.scores, lower=lower, upper=upper))


WORLDS: dict[str, Callable[[Chance, int], Truth]] = {
    "informative": _guessed,
    "anti-correlated": lambda chance, items: _guessed(chance, items, sign=-1.0),
    "rare": _rare,
    "one-sided": _one_sided,
    "all differ": lambda chance, items: _guessed(chance, items, agree=0.0),
    "bounds": _bounded,
}


def border(chance: Chance, items: int, mean: int) -> Truth:
    """A pool whose losses of A are ``mean`` more than those of B; a tenth of the items each way."""
    place, share = chance.permutation(items), items // 10
    loss = np.zeros(items)
    loss[place[: share + max(mean, 0)]] = 1.0
    loss[place[items - share - max(-mean, 0) :]] = -1.0
    guess = np.clip(0.3 * loss + 0.3 * chance.standard_normal(items), -1.0, 1.0)
    same = (loss == 0.0) & (chance.random(items) < 0.7)
    lower, upper = (np.where(same, 0.0, end) for end in (-1.0, 1.0))
    return Truth(
        loss,
        Scores(guess, np.zeros(items), lower=lower, upper=upper),
        -1.0,
        1.0,
        difference=True,
    )

"""Made-up pools of several kinds, with sizes, risks and surrogates that differ by seed.

groups    Bernoulli losses of groups of items, surrogates near their risks (``synthetic``)
rare      few losses, 2 or 5 % of all, and surrogates that know them well
graded    losses between 0 and 1, surrogates on another line
guesses   surrogates of exactly 0 or 1, right for 60 to 95 % of the items
constant  surrogates that say nothing

Worlds are single pools of the label benchmark, with surrogates from good to useless:

syn-good      surrogates near the risks of Bernoulli losses, correlation 0.75
syn-noise     the same losses, surrogates that say nothing
syn-reversed  the same losses, surrogates upside down, correlation -0.76
syn-graded    losses between 0 and 1 that scatter little, surrogates of correlation 0.16
syn-guesses   surrogates of 0 or 1 with mean losses of 0.11 and 0.20, 1 319 items

``judged`` has the verdicts of automatic judges of different worth.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from celeus.core.randomness import uniforms
from celeus.simulation.sessions import Truth, with_spread
from study.pools.synthetic import World

KINDS = ("groups", "rare", "graded", "guesses", "constant")
WORLDS = ("syn-good", "syn-noise", "syn-reversed", "syn-graded", "syn-guesses")
FEWEST, MOST = 300, 20_000
"""Items of a pool; their logarithm is uniform between these."""


def made_up(kind: str, seed: bytes) -> Truth:
    """The pool of a kind that belongs to a seed."""
    size, first, second, third = uniforms(seed, "world", 4)
    items = int(FEWEST * (MOST / FEWEST) ** size)
    if kind == "groups":
        noise = (0.05, 0.1, 0.3)[int(3 * first)]
        ends = (0.02, 0.1)[int(2 * second)], (0.3, 0.6, 0.9)[int(3 * third)]
        return World(items, 5, noise, 1, *ends).pool(seed)
    chance, draw = uniforms(seed, "chance", items), uniforms(seed, "loss", items)
    noise = ndtri(uniforms(seed, "surrogate", items))
    if kind == "rare":
        chance = betaincinv(0.2, 0.2 * (19, 49)[int(2 * first)], chance)
        loss, surrogate = draw < chance, chance + 0.02 * noise
    elif kind == "graded":
        chance = betaincinv(1.0, 3.0, chance)
        loss = np.clip(chance + 0.1 * ndtri(draw), 0.0, 1.0)
        surrogate = 0.2 + 0.5 * chance + 0.05 * noise
    elif kind == "guesses":
        loss = draw < 0.1 + 0.4 * first
        surrogate = np.where(chance < 0.6 + 0.35 * second, loss, ~loss)
    else:
        loss, surrogate = draw < 0.03 + 0.57 * first, np.full(items, 0.5)
    return Truth(loss.astype(np.float64), with_spread(np.clip(surrogate, 0.0, 1.0)))


def world(name: str) -> Truth:
    """The pool of a world."""
    items = 1319 if name == "syn-guesses" else 4000
    chance, draw, other = (uniforms(name.encode(), use, items) for use in ("chance", "loss", "s"))
    noise = ndtri(other)
    if name == "syn-graded":
        risk = betaincinv(2.0, 3.0, chance)
        loss = np.clip(0.1 + 0.5 * risk + 0.15 * ndtri(draw), 0.0, 1.0)
        surrogate = 0.2 + 0.15 * risk + 0.5 * betaincinv(2.0, 2.0, other)
    elif name == "syn-guesses":
        surrogate = np.where(other < 0.36, 1.0, 0.0)
        loss = draw < np.where(surrogate == 1.0, 0.2, 0.11)
    else:
        risk = betaincinv(0.28, 0.4, chance)
        loss = draw < risk
        surrogate = {
            "syn-good": risk + 0.1 * noise,
            "syn-noise": betaincinv(1.0, 1.5, other),
            "syn-reversed": 1.0 - risk + 0.05 * noise,
        }[name]
    return Truth(loss.astype(np.float64), with_spread(np.clip(surrogate, 0.0, 1.0)))


def judged(right: Sequence[float], items: int = 4000) -> Truth:
    """Losses of 0 and 1 with mean 0.3, and a column a judge that is right with this chance."""
    loss = (uniforms(b"judges", "loss", items) < 0.3).astype(np.float64)
    verdicts: list[NDArray[np.float64]] = []
    for judge, share in enumerate(right):
        agrees = uniforms(b"judges", f"judge {judge}", items) < share
        verdicts.append(np.where(agrees, loss, 1.0 - loss))
    columns = np.stack(verdicts, axis=1)
    return Truth(loss, replace(with_spread(columns.mean(axis=1)), columns=columns))

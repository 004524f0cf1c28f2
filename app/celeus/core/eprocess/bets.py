"""Bets that aim at an amount of information (METHOD 10, steps 6-7).

Notation, in a side's frame: D half the precision, s2 predicted variance of the coming signal, a
the lower end of its range, mu its centre, lp the log stake log(level / 2 . wealth) of a candidate
v, I the information of past rounds and I* its goal.

    s2p   s2 + (D / 3) max(mu - a, 0)                                Bernstein's padding for skew
    I     sum of 1 / s2p over past rounds
    I*    (z / (D - h / 2))^2,  z the normal quantile at 1 - level / 2, h the lattice's step
    lam   min( hazard(0.9 min(1, e^lp)) / (s2p sqrt(max(1.1 I* - I, 0.05 max(I*, I)))),
               c D / s2p,  0.8 / (v - a) ),        c = 2.5 while I <= 1.1 I*, else 1.3

This is the bet of the martingale P(the z-test rejects at information I* | so far) / level. The
goal follows from the precision alone, so no horizon is guessed.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from app.core.hazard import hazard
from app.core.sight import View

Floats = NDArray[np.float64]

OVERSHOOT = 1.1
SOFTNESS = 0.05
FASTEST = 2.5
FASTEST_PAST_GOAL = 1.3
LARGEST_LOSS = 0.8
"""Share of a stake that one round may take."""
GOALS_WITHOUT_PRECISION = 6
WIDEST_HALF = 0.1
TINY = 1e-300


def padded(view: View, half: float) -> float:
    """s2p: the variance with its padding for a bet at half-width D = ``half``."""
    return view.variance + half / 3.0 * max(view.centre - view.lower, 0.0)


@dataclass(slots=True)
class Goal:
    """An information goal of a half-width, and what past rounds have given towards it."""

    half: float
    information: float
    spent: float = 0.0

    def pace(self, variance: float) -> tuple[float, float]:
        """Factor of the hazard, and largest bet, at padded variance ``variance``."""
        goal, spent = self.information, self.spent
        missing = max(OVERSHOOT * goal - spent, SOFTNESS * max(goal, spent))
        fastest = FASTEST if spent <= OVERSHOOT * goal else FASTEST_PAST_GOAL
        return 1.0 / (variance * math.sqrt(missing)), fastest * self.half / variance


class Pace(NamedTuple):
    """``Goal.pace`` of many rows: the hazard's factor, and the largest bet; one where all agree."""

    factor: Floats
    largest: Floats

    @property
    def fastest(self) -> float:
        """No row bets more."""
        return float(self.largest.max())

    def take(self, row: NDArray[np.intp]) -> "Pace":
        """Those of some rows, again and again."""
        one = self.largest.size == 1
        return Pace(self.factor.take(row), self.largest if one else self.largest.take(row))


class RowGoals(NamedTuple):
    """Goals of many rows that share one past, with what every round asks of them."""

    overshot: Floats
    soft: Floats

    @staticmethod
    def of(information: Floats) -> "RowGoals":
        """From the information that every row needs."""
        return RowGoals(OVERSHOOT * information, SOFTNESS * information)

    def part(self, start: int, stop: int) -> "RowGoals":
        """Those of some rows."""
        return RowGoals(self.overshot[start:stop], self.soft[start:stop])

    def pace(self, spent: float, half: float, variance: float) -> Pace:
        """The paces at padded variance ``variance`` after ``spent`` information."""
        missing = np.maximum(self.soft, SOFTNESS * spent)
        np.maximum(self.overshot - spent, missing, out=missing)
        np.sqrt(missing, out=missing)
        missing *= variance
        reach = half / variance
        before = self.overshot >= spent
        count = np.count_nonzero(before)
        if count in {0, before.size}:
            fastest = np.array([FASTEST if count else FASTEST_PAST_GOAL])
        else:
            fastest = np.where(before, FASTEST, FASTEST_PAST_GOAL)
        return Pace(1.0 / missing, fastest * reach)


def cap(value: Floats, lower: float, fastest: float) -> Floats | None:
    """Largest bet 0.8 / (v - a) on candidates in ascending order, none below ``lower`` = a.

    None where no candidate has a cap below ``fastest``, the largest bet that any has anyway.
    """
    if LARGEST_LOSS / max(float(value[-1]) - lower, TINY) >= fastest:
        return None
    return np.asarray(LARGEST_LOSS / np.maximum(value - lower, TINY))


def bet(log_stake: Floats, pace: Pace, most: Floats | None) -> Floats:
    """Bets lam of candidates with these log stakes; ``most`` is their ``cap``, None for none."""
    lam = hazard(log_stake)
    lam *= pace.factor
    np.minimum(lam, pace.largest, out=lam)
    if most is not None:
        np.minimum(lam, most, out=lam)
    return lam


def information(half: float, step: float, level: float) -> float:
    """I*: what a z-test at ``level`` needs to know the mean to ``half``, less half a step."""
    return float((ndtri(1.0 - level / 2.0) / (half - step / 2.0)) ** 2)


def goals(half: float | None, step: float, level: float, reach: float = 1.0) -> list[Goal]:
    """The goal of a half-width; without one six, from 0.1 down by halves.

    The information is what ``reach`` times the half-width needs; bets keep the pace of the
    half-width itself, else a goal that has been passed would leave later bets too large to win.
    """
    halves = [half]
    if half is None:
        halves = [WIDEST_HALF * 0.5**j for j in range(GOALS_WITHOUT_PRECISION)]
    return [Goal(one, information(reach * one, step, level)) for one in halves if one is not None]

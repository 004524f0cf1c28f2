"""Bets with an information goal: a z-test as a martingale (docs/evidence/method.md#5-the-bet).

Notation, in a side's frame: D half the precision, s2 predicted variance of the coming signal, a
the lower end of its range, mu its centre, lp the log stake log(level / 2 . wealth) of a candidate
v, I the information of past rounds and I* its goal. All but lp is fixed when the item is drawn:
mu and the ratio in s2 come from the rounds folded then, all else from all rounds judged then
(docs/evidence/method.md#8-rounds-that-nobody-can-judge).

    s2p   s2 + (D / 3) max(mu - a, 0)                                Bernstein's padding for skew
    I     sum of 1 / s2p over past rounds
    I*    (z / (D - h / 2))^2,  z the normal quantile at 1 - level / 2, h the lattice's step
    lam   min( inverse_mills(0.9 min(1, e^lp)) / (s2p sqrt(max(1.1 I* - I, 0.05 max(I*, I)))),
               c D / s2p,  0.8 / (v - a) ),        c = 2.5 while I <= 1.1 I*, else 1.3

A row of pairs (``pair_rows``) has c = 1.3 sqrt(1.1 I* / I) past its goal: its candidates may be
nearer to the truth than D, and with larger bets their stakes would fall for good.

This is the bet of the martingale P(the z-test rejects at information I* | so far) / level. The
goal follows from the precision alone, so no horizon is guessed.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.base import Accrued, Halves
from celeus.core.betting.moments import Prediction
from celeus.core.mills import inverse_mills
from celeus.core.special import normal_quantile

Floats = NDArray[np.float64]

OVERSHOOT = 1.1
SOFTNESS = 0.05
LARGEST_BET = 2.5
LARGEST_BET_PAST_GOAL = 1.3
LARGEST_LOSS = 0.8
"""Largest share of a stake that one round may lose."""
GOALS_WITHOUT_PRECISION = 6
WIDEST_HALF = 0.1
TINY = 1e-300


def padded(prediction: Prediction, half: float) -> float:
    """Return s2p, the variance padded for skew, for a bet at half-width D = ``half``."""
    return prediction.variance + half / 3.0 * max(prediction.centre - prediction.lower, 0.0)


class Information:
    """I on both sides, for each half-width that each lattice bets at: that of the judged rounds.

    ``accrued`` is immutable: a draw keeps it as it is.
    """

    __slots__ = ("_halves", "accrued")

    def __init__(self, halves: tuple[Halves, ...]) -> None:
        self._halves = halves
        self.accrued: tuple[Accrued, ...] = tuple(
            ((0.0,) * len(widths), (0.0,) * len(widths)) for widths in halves
        )

    def aim(self, halves: tuple[Halves, ...]) -> None:
        """Set the half-widths of later bets; each goes on from the old one nearest in width."""
        if not halves or halves == self._halves:
            return
        lattices = zip(self._halves, self.accrued, halves, strict=True)
        self.accrued = tuple(_nearest(*lattice) for lattice in lattices)
        self._halves = halves

    def add(self, predicted: tuple[Prediction, Prediction]) -> None:
        """Add a judged round, by the predictions of its signals."""
        self.accrued = tuple(
            (_added(plus, predicted[0], halves), _added(minus, predicted[1], halves))
            for (plus, minus), halves in zip(self.accrued, self._halves, strict=True)
        )


def _added(sums: tuple[float, ...], prediction: Prediction, halves: Halves) -> tuple[float, ...]:
    both = zip(sums, halves, strict=True)
    return tuple(total + 1.0 / padded(prediction, half) for total, half in both)


def _nearest(old: Halves, accrued: Accrued, halves: Halves) -> Accrued:
    """Return, for every new half-width, the sums of the nearest old one."""
    places = [
        min(range(len(old)), key=lambda place: abs(math.log(old[place] / half))) for half in halves
    ]
    plus, minus = (tuple(sums[place] for place in places) for sums in accrued)
    return plus, minus


@dataclass(slots=True)
class Goal:
    """The information goal of a half-width.

    Of several goals each starts with its ``share`` of a candidate's stake. ``unit`` is the stake
    that its bets take for 1.
    """

    half: float
    information: float
    share: float = 1.0
    unit: float = 1.0

    def bet_scale(self, variance: float, accrued: float) -> tuple[float, float]:
        """Return the factor of the inverse Mills ratio, and the largest bet.

        ``variance`` is padded; ``accrued`` is I.
        """
        goal = self.information
        missing = max(OVERSHOOT * goal - accrued, SOFTNESS * max(goal, accrued))
        largest_bet = LARGEST_BET if accrued <= OVERSHOOT * goal else LARGEST_BET_PAST_GOAL
        return 1.0 / (variance * math.sqrt(missing)), largest_bet * self.half / variance


class BetScale(NamedTuple):
    """``Goal.bet_scale`` of many rows; ``largest`` holds one number if all rows agree."""

    factor: Floats
    largest: Floats

    @property
    def largest_bet(self) -> float:
        """The largest bet of any row."""
        return float(self.largest.max())

    def take(self, row: NDArray[np.intp]) -> "BetScale":
        """Return the scales of these rows; a row may repeat."""
        uniform = self.largest.size == 1
        return BetScale(self.factor.take(row), self.largest if uniform else self.largest.take(row))


class RowGoals(NamedTuple):
    """Information goals of many rows with the same past: 1.1 and 0.05 times their I*."""

    overshoot: Floats
    soft: Floats

    @staticmethod
    def of(information: Floats) -> "RowGoals":
        """Make the goals from I* of every row."""
        return RowGoals(OVERSHOOT * information, SOFTNESS * information)

    def part(self, start: int, stop: int) -> "RowGoals":
        """Return the goals of the rows from ``start`` up to before ``stop``."""
        return RowGoals(self.overshoot[start:stop], self.soft[start:stop])

    def bet_scale(
        self, accrued: float | Floats, half: float | Floats, variance: float | Floats
    ) -> BetScale:
        """Return the bet scales at padded variance ``variance`` after ``accrued`` information.

        Arrays broadcast with the rows, for several pasts at once.
        """
        missing = np.maximum(self.soft, SOFTNESS * accrued)
        np.maximum(self.overshoot - accrued, missing, out=missing)
        np.sqrt(missing, out=missing)
        missing *= variance
        largest_unit = half / variance
        before = self.overshoot >= accrued
        if before.all():
            largest_bet = np.array([LARGEST_BET])
        else:
            past = LARGEST_BET_PAST_GOAL * np.sqrt(self.overshoot / np.maximum(accrued, TINY))
            largest_bet = np.where(before, LARGEST_BET, past)
        return BetScale(1.0 / missing, largest_bet * largest_unit)


def cap(value: Floats, lower: float, largest_bet: float) -> Floats | None:
    """Return the largest bet 0.8 / (v - a) for ascending candidates v >= a = ``lower``.

    None if no cap is below ``largest_bet``, which already limits every bet.
    """
    if LARGEST_LOSS / max(float(value[-1]) - lower, TINY) >= largest_bet:
        return None
    return np.asarray(LARGEST_LOSS / np.maximum(value - lower, TINY))


def bet(log_stake: Floats, bet_scale: BetScale, caps: Floats | None) -> Floats:
    """Return the bets lam of candidates with these log stakes; ``caps`` is from ``cap``."""
    lam = inverse_mills(log_stake)
    lam *= bet_scale.factor
    np.minimum(lam, bet_scale.largest, out=lam)
    if caps is not None:
        np.minimum(lam, caps, out=lam)
    return lam


def information(half: float, step: float, level: float) -> float:
    """Return I*, the information where a z-interval at ``level`` has half-width half - step / 2."""
    return (normal_quantile(1.0 - level / 2.0) / (half - step / 2.0)) ** 2


def half_widths(half: float | None) -> Halves:
    """Return the half-widths of the goals for one; without one six, from 0.1 down by halves."""
    if half is not None:
        return (half,)
    return tuple(WIDEST_HALF * 0.5**j for j in range(GOALS_WITHOUT_PRECISION))


def goals_for(
    half: float | None, step: float, level: float, half_factor: float = 1.0
) -> list[Goal]:
    """Return the goals of the ``half_widths`` for one.

    The information is what ``half_factor`` times the half-width needs; bets keep the scale of the
    half-width itself, since a goal that has been passed would leave later bets too large.
    """
    halves = half_widths(half)
    return [
        Goal(width, information(half_factor * width, step, level), share=1.0 / len(halves))
        for width in halves
    ]

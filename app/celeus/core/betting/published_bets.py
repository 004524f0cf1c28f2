"""Betting fractions of the published policies.

Notation: a bet is on a number x in [0, 1] (the signal scaled by its range) against its centre
m(v), which is x's mean if the candidate v is true. Wealth+ multiplies by 1 + lam+ (x - m), wealth-
by 1 - lam- (x - m).

    lam = sqrt(2 log(2 / alpha1) / (sig2(v) t log(t + 1)))       CELEUS, Rem. 3
    lam+ at most 1 / (m + c),  lam- at most 1 / (1 - m + c)

Everything here is fixed when the round's item is drawn, by its range and the rounds that were
folded then (``past``); what is seen in the round is a parameter of ``record`` only. sig2 is the
mean over these rounds and the prior, t counts all rounds drawn: with nothing out both are those
before.
"""

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEAST_VARIANCE = 1e-6


class Bet(NamedTuple):
    """The coming round as a bet: candidate v has centre ``(v - offset) / scale``."""

    offset: float
    scale: float

    def centre(self, candidates: Floats) -> Floats:
        """Return the mean of the number bet on, if each candidate were true."""
        return np.asarray((candidates - self.offset) / self.scale)


class Fractions(Protocol):
    """The fractions that follow from some rounds; immutable."""

    def fraction(self, candidates: Floats, alpha1: float, round_: int) -> Floats | float:
        """Return the uncapped fraction of every candidate in round ``round_``.

        One number stands for all candidates alike.
        """


class Bettor(Protocol):
    """A betting strategy: fractions for the coming round from rounds before it."""

    @property
    def past(self) -> Fractions:
        """Fractions from the rounds recorded so far."""

    def record(self, value: float, bet: Bet) -> None:
        """Record the signal of a round, after its bet."""


class Squares(NamedTuple):
    """Three sums over ``rounds`` rounds, about ``origin``, for the variance about any candidate."""

    origin: float
    constant: float = 0.25
    linear: float = 0.0
    square: float = 0.0
    rounds: int = 0

    def fraction(self, candidates: Floats, alpha1: float, round_: int) -> Floats:
        """Return the fractions from the three sums."""
        v = candidates - self.origin
        spread: Floats = self.square * v
        spread -= 2.0 * self.linear
        spread *= v
        spread += self.constant
        # The mean over these rounds stands for all rounds drawn so far.
        past = math.log(round_ + 1.0) * (round_ / (self.rounds + 1))
        scale = 2.0 * math.log(2.0 / alpha1) / past
        # Squares add nothing negative; the three sums may, by rounding.
        np.maximum(spread, 0.25, out=spread)
        np.divide(scale, spread, out=spread)
        return np.sqrt(spread, out=spread)


class OwnVariance:
    """The paper's fractions: every candidate estimates the variance about its own centre.

        sig2_t(v) = (1/4 + sum of (x_i - m_i(v))^2) / (t + 1)

    With x_i - m_i(v) = (S_i - v) / width_i the sum is a quadratic in v: three sums serve every
    candidate, also one that joins later. They are taken about ``origin``, a number on the scale
    of the losses: about 0 a scale far from it would lose its digits.
    """

    __slots__ = ("past",)

    def __init__(self, origin: float) -> None:
        self.past = Squares(origin)

    def record(self, value: float, bet: Bet) -> None:
        """Add the round's term to the three sums."""
        origin, constant, linear, square, rounds = self.past
        weight = 1.0 / (bet.scale * bet.scale)
        square += weight
        value -= origin
        linear += weight * value
        constant += weight * value * value
        self.past = Squares(origin, constant, linear, square, rounds + 1)


class Deviations(NamedTuple):
    """Sum of squares of ``rounds`` numbers about their running means."""

    total: float = 0.0
    rounds: int = 0

    def fraction(self, candidates: Floats, alpha1: float, round_: int) -> float:
        """Return one fraction for all candidates."""
        del candidates
        variance = max((0.25 + self.total) / (self.rounds + 1), LEAST_VARIANCE)
        return math.sqrt(2.0 * math.log(2.0 / alpha1) / (variance * round_ * math.log(round_ + 1)))


class CommonVariance:
    """Fractions of the ``evalue`` policy: one variance, of the scaled losses, for all."""

    __slots__ = ("_total", "past")

    def __init__(self) -> None:
        self.past = Deviations()
        self._total = 0.0

    def record(self, value: float, bet: Bet) -> None:
        """Update the mean, then add the deviation from it."""
        scaled = (value - bet.offset) / bet.scale
        rounds = self.past.rounds + 1
        self._total += scaled
        mean = (0.5 + self._total) / (rounds + 1.0)
        self.past = Deviations(self.past.total + (scaled - mean) ** 2, rounds)


def fraction_above(fraction: Floats | float, centre: Floats, c: float) -> Floats:
    """Return lam+, the bet that the mean lies above the candidate."""
    most: Floats = centre + c
    np.divide(1.0, most, out=most)
    return np.minimum(fraction, most, out=most)


def fraction_below(fraction: Floats | float, centre: Floats, c: float) -> Floats:
    """Return lam-, the bet that the mean lies below the candidate."""
    most: Floats = 1.0 - centre
    most += c
    np.divide(1.0, most, out=most)
    return np.minimum(fraction, most, out=most)

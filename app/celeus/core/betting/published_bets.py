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
LEAST_FACTOR = 0.02
"""Least factor of a round in ``expected_growth``."""
STEP = 2.0
"""Factor by which the odds that an item has been drawn grow in a step of ``expected_path``."""


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

    def scatter(self, centre: float) -> float:
        """Return the sum of squares about candidate ``centre`` of the numbers bet on so far."""


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

    def scatter(self, centre: float) -> float:
        """Return the sum of squares about ``centre``, from the three sums."""
        origin, constant, linear, square, _ = self.past
        v = centre - origin
        return max((square * v - 2.0 * linear) * v + constant - 0.25, 0.0)


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

    def scatter(self, centre: float) -> float:
        """Return the sum of squares about the running means; ``centre`` is not used."""
        del centre
        return self.past.total


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


class Stakes(NamedTuple):
    """Settings of later fractions: level, cap, variance rule, and number of drawable items."""

    alpha1: float
    c: float
    own_variance: bool
    drawable: int


class Path(NamedTuple):
    """Expected number of rounds until log wealth has risen by the amount asked for.

    ``gained`` is the gain from the distance alone by then, before the loss from variance;
    ``scattered`` is the variance of log wealth.
    """

    rounds: float
    gained: float
    scattered: float


def expected_growth(
    mean: float, variance: float, away: float, past: float, c: float
) -> tuple[float, float]:
    """Return the mean gain of log wealth+ in a round at a candidate ``away`` below the mean.

    Then the fraction. The number bet on is taken to have two values, as 0-1 losses have, at a
    distance that gives it its ``variance``; ``past`` is 1 / lam^2, uncapped.
    """
    other = 1.0 - mean
    spread = math.sqrt(variance / (mean * other))
    fraction = 1.0 / max(math.sqrt(past), max(mean - away, 0.0) + c)
    up = math.log(1.0 + fraction * (spread * other + away))
    down = math.log(max(1.0 + fraction * (away - spread * mean), LEAST_FACTOR))
    return mean * up + other * down, fraction


def expected_path(  # noqa: PLR0913, PLR0917 -- a number, a candidate, and a session
    mean: float, variance: float, away: float, needed: float, rounds: int, stakes: Stakes
) -> Path:
    """Return the path from ``rounds`` until log wealth+ has risen by ``needed`` or the pool ends.

    ``away`` is the distance of the candidate in a whole pool. The rounds are computed in steps in
    which the odds that an item has been drawn grow by ``STEP``.
    """
    alpha1, c, own_variance, drawable = stakes
    first = 2.0 * math.log(2.0 / alpha1)
    prior = away * away + variance if own_variance else variance
    edge, end = rounds + 0.5, drawable + 0.5
    wealth = gained = scattered = 0.0
    while wealth < needed and edge < drawable:
        before, edge = edge, min(STEP * edge * end / (end + (STEP - 1.0) * edge), end)
        length = edge - before
        middle = before + 0.45 * length
        apart = away * end / (end - middle)
        past = (prior + 0.25 / middle) * middle * math.log(middle + 1.0) / first
        growth, fraction = expected_growth(mean, variance, apart, past, c)
        if wealth + growth * length >= needed:
            length = (needed - wealth) / growth
            edge = before + length
        wealth += growth * length
        gained += fraction * apart * length
        scattered += fraction * fraction * length
    gained += max(needed - wealth, 0.0)
    return Path(edge - rounds - 0.5, gained, scattered * variance)

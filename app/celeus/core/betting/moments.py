"""Moments: the mean and variance of the next signal, predicted before it is seen.

See docs/evidence/method.md#5-the-bet.

Each side has a frame, its own unit scale: the plus side that of the losses, the minus side the
mirrored one (1 for the smallest loss). So both test "the risk is at most v", with the same code.
The two sides may have different completions of the pool.

Notation: w predicted variance of a signal S, mu its centre, a the lower end of its range.

    mu     (sum of S_i / w_i) / (sum of 1 / w_i), cut to [0, 1]; before the first the plug-in part
    ratio  max(0.3, (30 + sum of (S_i - mu_i)^2 / w_i) / (30 + n))   mu_i as predicted for round i
    s2     ratio w

Sums are over the n rounds that were folded when the signal's item was drawn.
"""

from dataclasses import dataclass
from typing import NamedTuple

from celeus.core.betting.base import BettingRound
from celeus.core.betting.signals import Range
from celeus.core.interval import Interval

LEAST_RATIO = 0.3
PRIOR_ROUNDS = 30.0


@dataclass(frozen=True, slots=True)
class Frame:
    """A side's unit scale: ``origin`` is 0 and ``origin + span`` is 1; span may be negative."""

    origin: float
    span: float

    def unit(self, value: float) -> float:
        """Convert a number on the loss scale to this frame."""
        return (value - self.origin) / self.span

    def value(self, unit: float) -> float:
        """Convert a number of this frame to the loss scale."""
        return self.origin + self.span * unit


def frames(scale: Interval) -> tuple[Frame, Frame]:
    """Return the frames of the plus and the minus side."""
    return Frame(scale.lower, scale.width), Frame(scale.upper, -scale.width)


class Prediction(NamedTuple):
    """The coming signal in a side's frame, as predicted at its draw.

    ``lower`` is its least value over all outcomes of the rounds open at the draw, ``centre`` its
    mean.
    """

    lower: float
    centre: float
    variance: float


class SideSignal(NamedTuple):
    """A signal in a side's frame.

    ``floor`` is its least value given the losses before it: no risk lies below.
    """

    value: float
    floor: float


class SignalMoments:
    """Weighted mean and dispersion of one side's signals, to predict the next.

    ``past`` is mu and ratio; ``start`` stands in for mu before the first round.
    """

    __slots__ = ("_deviation", "_precision", "_rounds", "_weighted", "past")

    def __init__(self, start: float) -> None:
        self._rounds = 0
        self._weighted = 0.0
        self._precision = 0.0
        self._deviation = 0.0
        self.past = _cut(start), 1.0

    @property
    def information(self) -> float:
        """Sum of 1 / s2 over the rounds so far, at the newest ratio."""
        return self._precision / self.past[1]

    def record(self, signal: float, centre: float, variance: float) -> None:
        """Record a round after its bets; ``centre`` is that of its prediction."""
        self._rounds += 1
        self._weighted += signal / variance
        self._precision += 1.0 / variance
        self._deviation += (signal - centre) ** 2 / variance
        ratio = (PRIOR_ROUNDS + self._deviation) / (PRIOR_ROUNDS + self._rounds)
        self.past = _cut(self._weighted / self._precision), max(LEAST_RATIO, ratio)


def _cut(mean: float) -> float:
    return min(max(mean, 0.0), 1.0)


class TwoSidedMoments:
    """The moments of both sides, each in its own frame."""

    __slots__ = ("_frames", "_sides")

    def __init__(self, scale: Interval, start: float) -> None:
        self._frames = frames(scale)
        self._sides = [SignalMoments(frame.unit(start)) for frame in self._frames]

    def predict(self, reach: tuple[Range, Range], variance: float) -> tuple[Prediction, Prediction]:
        """Return predictions of both signals of the next draw, of predicted ``variance`` w."""
        (above, below), (plus, minus) = self._frames, (side.past for side in self._sides)
        # The minus side's lower end is the mirrored upper end.
        return (
            Prediction(above.unit(reach[0].lower), plus[0], plus[1] * variance),
            Prediction(below.unit(reach[1].upper), minus[0], minus[1] * variance),
        )

    @property
    def estimate(self) -> float:
        """Midpoint of the two sides' centres, on the loss scale."""
        both = zip(self._frames, self._sides, strict=True)
        return sum(frame.value(side.past[0]) for frame, side in both) / 2.0

    @property
    def ratio(self) -> float:
        """The larger of the two sides' ratios."""
        return max(side.past[1] for side in self._sides)

    @property
    def information(self) -> float:
        """The smaller of the two sides' sums of 1 / s2."""
        return min(side.information for side in self._sides)

    def signals(self, betting_round: BettingRound) -> tuple[SideSignal, SideSignal]:
        """Return the round's signals in the frames of the two sides."""
        (above, below), (plus, minus) = self._frames, betting_round[-2:]
        return (
            SideSignal(above.unit(plus.signal), above.unit(plus.signal_range.lower)),
            SideSignal(below.unit(minus.signal), below.unit(minus.signal_range.upper)),
        )

    def record(
        self,
        predictions: tuple[Prediction, Prediction],
        signals: tuple[SideSignal, SideSignal],
        variance: float,
    ) -> None:
        """Record the signals after the bets on them."""
        for side, prediction, signal in zip(self._sides, predictions, signals, strict=True):
            side.record(signal.value, prediction.centre, variance)

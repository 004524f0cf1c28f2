"""Moments: the mean and variance of the next signal, predicted before it is seen.

See docs/method.md#5-the-bet.

Each side has a frame, its own unit scale: the plus side that of the losses, the minus side the
mirrored one (1 for the smallest loss). So both test "the risk is at most v", with the same code.
The two sides may have different completions of the pool.

Notation: w predicted variance of a signal S, mu its centre, a the lower end of its range.

    mu     (sum of S_i / w_i) / (sum of 1 / w_i), cut to [0, 1]; the plug-in part in round 1
    ratio  max(0.3, (30 + sum of (S_i - mu_i)^2 / w_i) / (30 + t - 1))   mu_i as before round i
    s2     ratio w
"""

from dataclasses import dataclass
from typing import NamedTuple

from celeus.core.eprocess.base import BettingRound
from celeus.core.interval import Interval

LEAST_RATIO = 0.3
PRIOR_ROUNDS = 30.0


@dataclass(frozen=True, slots=True)
class Frame:
    """A side's unit scale: ``origin`` is 0 and ``origin + span`` is 1; span may be negative."""

    origin: float
    span: float

    def unit(self, value: float) -> float:
        """A number of the loss scale in this frame."""
        return (value - self.origin) / self.span

    def value(self, unit: float) -> float:
        """A number of this frame on the loss scale."""
        return self.origin + self.span * unit


def frames(scale: Interval) -> tuple[Frame, Frame]:
    """Frames of the plus and the minus side."""
    return Frame(scale.lower, scale.width), Frame(scale.upper, -scale.width)


class Prediction(NamedTuple):
    """The coming signal as predicted: lower end of its range, mean and variance."""

    lower: float
    centre: float
    variance: float


class SignalMoments:
    """Weighted mean and dispersion of one side's signals, to predict the next."""

    __slots__ = ("_deviation", "_precision", "_rounds", "_weighted")

    def __init__(self) -> None:
        self._rounds = 0
        self._weighted = 0.0
        self._precision = 0.0
        self._deviation = 0.0

    def centre(self, plug_in: float) -> float:
        """mu; ``plug_in`` stands in before the first round."""
        mean = self._weighted / self._precision if self._rounds else plug_in
        return min(max(mean, 0.0), 1.0)

    def predict(self, lower: float, plug_in: float, variance: float) -> Prediction:
        """The prediction for the coming round, whose predicted variance is w = ``variance``."""
        ratio = (PRIOR_ROUNDS + self._deviation) / (PRIOR_ROUNDS + self._rounds)
        return Prediction(lower, self.centre(plug_in), max(LEAST_RATIO, ratio) * variance)

    def record(self, signal: float, centre: float, variance: float) -> None:
        """Record a round after its bets; ``centre`` is the one of its prediction."""
        self._rounds += 1
        self._weighted += signal / variance
        self._precision += 1.0 / variance
        self._deviation += (signal - centre) ** 2 / variance


class TwoSidedMoments:
    """The moments of both sides, each in its own frame."""

    __slots__ = ("_frames", "_plug_in", "_sides")

    def __init__(self, scale: Interval, start: float) -> None:
        self._frames = frames(scale)
        self._sides = (SignalMoments(), SignalMoments())
        self._plug_in = [frame.unit(start) for frame in self._frames]

    @property
    def estimate(self) -> float:
        """Midpoint of the two sides' centres, on the loss scale."""
        both = zip(self._frames, self._sides, self._plug_in, strict=True)
        return sum(frame.value(side.centre(start)) for frame, side, start in both) / 2.0

    def predict(self, betting_round: BettingRound) -> tuple[Prediction, Prediction]:
        """Predictions of the round's signals, from earlier rounds; its signals are not used."""
        plus, minus = (
            side.predict(lower, frame.unit(completion.plug_in), betting_round.variance)
            for frame, side, completion, lower in zip(
                self._frames,
                self._sides,
                (betting_round.plus, betting_round.minus),
                self._lowers(betting_round),
                strict=True,
            )
        )
        return plus, minus

    def signals(self, betting_round: BettingRound) -> tuple[float, float]:
        """The round's signals in the frames of the two sides."""
        plus, minus = self._frames
        return plus.unit(betting_round.plus.signal), minus.unit(betting_round.minus.signal)

    def record(
        self,
        predictions: tuple[Prediction, Prediction],
        signals: tuple[float, float],
        variance: float,
    ) -> None:
        """Record the signals after the bets on them."""
        for side, prediction, signal in zip(self._sides, predictions, signals, strict=True):
            side.record(signal, prediction.centre, variance)

    def _lowers(self, betting_round: BettingRound) -> tuple[float, float]:
        """Lower ends of the ranges; the minus side's is the mirrored upper end."""
        plus, minus = self._frames
        return plus.unit(betting_round.plus.signal_range.lower), minus.unit(
            betting_round.minus.signal_range.upper
        )

"""What one side can tell of the next signal before it is seen (METHOD 10, steps 5-6).

Each side looks at the pool in its own frame, on the unit scale: the plus side as it is, the minus
side mirrored (1 for the smallest loss), so that both test "the risk is at most v" and one code
serves the two. The frames may see two completions of the pool.

Notation: w predicted variance of a signal S, mu its centre, a the lower end of its range.

    mu     (sum of S_i / w_i) / (sum of 1 / w_i), cut to [0, 1]; the plug-in part in round 1
    ratio  max(0.3, (30 + sum of (S_i - mu_i)^2 / w_i) / (30 + t - 1))   mu_i as before round i
    s2     ratio w
"""

from dataclasses import dataclass
from typing import NamedTuple

from app.core.eprocess import Interval

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


class View(NamedTuple):
    """The coming signal: the lower end of its range, its centre and its variance."""

    lower: float
    centre: float
    variance: float


class Sight:
    """Remembers the signals of past rounds and predicts the next one."""

    __slots__ = ("_deviation", "_precision", "_rounds", "_weighted")

    def __init__(self) -> None:
        self._rounds = 0
        self._weighted = 0.0
        self._precision = 0.0
        self._deviation = 0.0

    def centre(self, plug_in: float) -> float:
        """mu; ``plug_in`` stands in before the first round."""
        middle = self._weighted / self._precision if self._rounds else plug_in
        return min(max(middle, 0.0), 1.0)

    def before(self, lower: float, plug_in: float, variance: float) -> View:
        """The view of the coming round, of predicted variance w = ``variance``."""
        ratio = (PRIOR_ROUNDS + self._deviation) / (PRIOR_ROUNDS + self._rounds)
        return View(lower, self.centre(plug_in), max(LEAST_RATIO, ratio) * variance)

    def record(self, signal: float, centre: float, variance: float) -> None:
        """Take in a round after its bets; ``centre`` is the one it was viewed with."""
        self._rounds += 1
        self._weighted += signal / variance
        self._precision += 1.0 / variance
        self._deviation += (signal - centre) ** 2 / variance

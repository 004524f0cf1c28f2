"""A fold without the pool: surrogates, ranges and variances as somebody wrote them down.

What is written down takes the place of the pool in the same fold that the service runs. Any
surrogate and variance fixed before the draw keep the interval valid, and whether these were cannot
be seen from them alone; what can be seen is checked on the way: that a round's range holds the
signal for whatever loss the item might have had.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.core.folding import Fold
from app.core.ledger import Draw
from app.core.opening import game_of
from app.core.plan import Plan
from app.core.proposals import Chosen
from app.core.reading import Differs
from app.core.signals import Range, RangeLeft, check, signal

Floats = NDArray[np.float64]
Items = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What every folded round was told before its loss; arrays have one number a round.

    ``sum`` is that of the surrogates of the whole pool. ``variance`` is None where the policy
    predicts none, ``other`` holds the range of the second completion for rounds where its plug-in
    part is another one.
    """

    sum: float
    guess: Floats
    left: Floats
    lower: Floats
    upper: Floats
    variance: Floats | None
    other: Mapping[int, Range]


class RecordedGuesses:
    """Surrogates as recorded, in the order of the rounds."""

    __slots__ = ("_asked", "_plan", "_recorded", "_round")

    def __init__(self, plan: Plan, recorded: Recorded) -> None:
        self._plan = plan
        self._recorded = recorded
        self._round = 1
        self._asked = 0

    @property
    def left(self) -> float:
        """Sum of the surrogates of the items not folded."""
        known = self._recorded.left
        return float(known[self._round - 1]) if known.size else self._recorded.sum

    @property
    def spread(self) -> Floats:
        """Nothing: who may be drawn is not asked of a record."""
        return np.empty(0)

    def of(self, draw: Draw) -> float:
        """Surrogate of the drawn item."""
        return float(self._recorded.guess[draw.round - 1])

    def possible(self, draw: Draw, plug_in: float) -> Range:
        """The recorded range: asked again in a round, that of the second completion."""
        at, recorded, plan = draw.round - 1, self._recorded, self._plan
        where = "rounds.range"
        found = Range(float(recorded.lower[at]), float(recorded.upper[at]))
        if self._asked:
            where = "rounds.other.range"
            second = recorded.other.get(draw.round)
            if second is None:
                raise Differs(f"rounds.other, round {draw.round}", None, "a second plug-in part")
            found = second
        self._asked += 1
        guess = self.of(draw)
        for loss in (plan.lower, plan.upper):
            value = signal(plug_in, loss - guess, plan.items, draw.q)
            try:
                check(value, found)
            except RangeLeft:
                place = f"{where}, round {draw.round}"
                claimed = f"{found.lower:.17g} to {found.upper:.17g}"
                rule = f"a range with {value:.17g}, the signal of a loss of {loss:g}"
                raise Differs(place, claimed, rule) from None
        return found

    def variance(self, draw: Draw) -> float:
        """Predicted variance of the draw's signal, NaN when none was."""
        variance = self._recorded.variance
        return float("nan") if variance is None else float(variance[draw.round - 1])

    def record(self, draw: Draw, loss: float | None) -> None:
        """On to the next round."""
        del draw, loss
        self._round += 1
        self._asked = 0


@dataclass(slots=True)
class RecordedDraws:
    """Draws as recorded: nothing can be drawn from a record, and nobody may be drawn twice."""

    drawn_in: Items = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    _taken: set[int] = field(default_factory=set)

    def choose(self, coin: float, spread: Floats) -> Chosen:
        """Nobody knows: the seed alone does not tell without the pool."""
        raise NotImplementedError

    def chance(self, item: int, spread: Floats) -> Chosen:
        """Nobody knows."""
        raise NotImplementedError

    def take(self, item: int, round_: int) -> None:
        """Item ``item`` is drawn in round ``round_``."""
        if item in self._taken:
            message = f"item {item} of round {round_} was drawn before"
            raise ValueError(message)
        self._taken.add(item)


@dataclass(frozen=True, slots=True)
class RecordedOpening:
    """The opening of a session whose pool is not at hand."""

    plan: Plan
    recorded: Recorded
    proposal: RecordedDraws = field(default_factory=RecordedDraws)

    def fold(self) -> Fold:
        """The fold before its first round."""
        return Fold(
            RecordedGuesses(self.plan, self.recorded), game_of(self.plan, self.recorded.sum)
        )

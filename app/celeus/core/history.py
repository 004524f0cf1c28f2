"""Values of earlier rounds as they were known when a later one was drawn.

Rounds are drawn ahead of losses, judged in any order, and folded in the order of their draws; a
round bets with what was known at its draw. A history keeps the value after every round, back to the
oldest that an open draw uses; a sum leaves out the rounds that were not judged at the draw. Without
open draws both are one value.
"""

import sys
from collections import deque
from typing import Generic, NamedTuple, Self, TypeVar

T = TypeVar("T")
NEVER = sys.maxsize
"""Place of a judgement that has not arrived."""


class Timing(NamedTuple):
    """When a round was drawn and judged.

    At its draw ``basis`` rounds were folded and ``arrived`` rounds judged; ``arrival`` is the place
    of its own judgement in the order in which they arrived.
    """

    basis: int
    arrived: int
    arrival: int

    @classmethod
    def in_order(cls, basis: int, round_: int) -> Self:
        """Return the timing of a round where judgements count once they are folded."""
        return cls(basis, basis, round_)


class History(Generic[T]):
    """Values after 0, 1, 2, ... rounds; the oldest are dropped once no round needs them."""

    __slots__ = ("_forgotten", "_values")

    def __init__(self, *values: T, forgotten: int = 0) -> None:
        self._forgotten = forgotten
        self._values = deque(values)

    @property
    def newest(self) -> T:
        """Value after the last round."""
        return self._values[-1]

    def append(self, value: T) -> None:
        """Add the value after the next round."""
        self._values.append(value)

    def after(self, rounds: int) -> T:
        """Return the value after ``rounds`` rounds, and drop the earlier ones.

        Raises ValueError for a value that was dropped or does not exist yet.
        """
        if not 0 <= rounds - self._forgotten < len(self._values):
            last = self._forgotten + len(self._values) - 1
            message = f"nothing is kept after {rounds} rounds, only {self._forgotten} to {last}"
            raise ValueError(message)
        while self._forgotten < rounds:
            self._values.popleft()
            self._forgotten += 1
        return self._values[0]

    def copy(self) -> Self:
        """Return an independent history with the same values."""
        return type(self)(*self._values, forgotten=self._forgotten)


class JudgedSum:
    """A sum of one number a round, over the rounds that were judged at a later draw.

    ``total`` is that of all rounds.
    """

    __slots__ = ("_forgotten", "_recent", "total")

    def __init__(self, total: float = 0.0) -> None:
        self.total = total
        self._recent: deque[tuple[int, float]] = deque()
        self._forgotten = 0

    def append(self, value: float, timing: Timing) -> None:
        """Add the number of the next round."""
        self.total += value
        self._recent.append((timing.arrival, value))

    def open(self, timing: Timing) -> float:
        """Return the sum over the rounds not judged at the draw of the coming one.

        Rounds folded by then are dropped.
        """
        while self._forgotten < timing.basis and self._recent:
            self._recent.popleft()
            self._forgotten += 1
        return sum((value for arrival, value in self._recent if arrival > timing.arrived), 0.0)

    def at(self, timing: Timing) -> float:
        """Return the sum over the rounds judged at the draw of the coming one."""
        return self.total - self.open(timing)

    def copy(self) -> "JudgedSum":
        """Return an independent sum of the same numbers."""
        copied = JudgedSum(self.total)
        copied._recent, copied._forgotten = self._recent.copy(), self._forgotten
        return copied

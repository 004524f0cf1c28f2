"""A history: the values of an estimate by the number of rounds they come from.

A round bets with the values known at its draw, and rounds are drawn ahead of losses. So the value
after every round is kept, back to the oldest that an open draw uses; without open draws that is one
value.
"""

from collections import deque
from typing import Generic, Self, TypeVar

T = TypeVar("T")


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

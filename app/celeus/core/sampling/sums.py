"""Compensated summation: a running sum that keeps its digits over many additions."""

import math
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class RunningSum:
    """A sum to which terms are added and subtracted one by one (Neumaier's compensation)."""

    __slots__ = ("_high", "_low")

    def __init__(self, total: float, rest: float = 0.0) -> None:
        self._high = total
        self._low = rest

    @classmethod
    def of(cls, terms: Floats) -> Self:
        """Return the sum of ``terms`` with twice a float's digits."""
        numbers: list[float] = terms[terms != 0.0].tolist()
        total = math.fsum(numbers)
        return cls(total, math.fsum((-total, *numbers)))

    def add(self, term: float) -> None:
        """Add one term; a negative one subtracts."""
        high = self._high + term
        if abs(self._high) >= abs(term):
            self._low += (self._high - high) + term
        else:
            self._low += (term - high) + self._high
        self._high = high

    @property
    def value(self) -> float:
        """The sum, rounded once."""
        return self._high + self._low

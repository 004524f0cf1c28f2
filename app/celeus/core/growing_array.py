"""Rows of numbers in one array that grows, as a session keeps them for every round.

An object a round, with a number a field, would take ten times the memory.
"""

from array import array
from collections.abc import Iterable
from typing import Self


class Table:
    """Rows of ``width`` floats each, kept to the last digit."""

    __slots__ = ("numbers", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.numbers = array("d")

    def __len__(self) -> int:
        return len(self.numbers) // self.width

    def __getitem__(self, row: int) -> "array[float]":
        """Return row number ``row``, from 0."""
        start = row * self.width
        return self.numbers[start : start + self.width]

    def __eq__(self, other: object) -> bool:
        """Return whether all numbers are the same, to the last bit."""
        if not isinstance(other, Table):
            return NotImplemented
        return self.numbers.tobytes() == other.numbers.tobytes()

    __hash__ = None  # type: ignore[assignment]  # it grows

    @property
    def columns(self) -> list[list[float]]:
        """Numbers of every column, in the order of the rows."""
        return [self.numbers[column :: self.width].tolist() for column in range(self.width)]

    def append(self, row: Iterable[float]) -> None:
        """Add a row of ``width`` numbers."""
        self.numbers.extend(row)

    def part(self, start: int, stop: int) -> Self:
        """Return a copy of the rows from ``start`` up to before ``stop``."""
        copied = type(self)(self.width)
        copied.numbers = self.numbers[start * self.width : stop * self.width]
        return copied

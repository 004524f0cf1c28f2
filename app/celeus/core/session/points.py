"""Interval and estimate after every folded round, kept as numbers in tables."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self, overload

from celeus.core.betting.base import CompletionSignal
from celeus.core.betting.signals import Range
from celeus.core.growing_array import Table
from celeus.core.interval import Interval


class Point(NamedTuple):
    """Interval and estimate after a folded round, and what was fixed before its loss.

    ``surrogates_left`` is the sum of the surrogates of the items not folded before it, ``variance``
    the predicted variance of its signal on the unit scale (None where the policy predicts none).
    """

    round: int
    estimate: float
    interval: Interval
    surrogates_left: float
    variance: float | None
    plus: CompletionSignal
    minus: CompletionSignal


class Points(Sequence[Point]):
    """The points of consecutive rounds, from round ``first`` on.

    The two completions agree until a round is unjudgeable; from index ``minus_start`` on ``minus``
    holds the signals of the minus side.
    """

    __slots__ = ("first", "minus", "minus_start", "plus", "results")

    def __init__(self, first: int = 1) -> None:
        self.first = first
        self.results = Table(5)
        self.plus = Table(6)
        self.minus = Table(6)
        self.minus_start = 0

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Point | Self:
        """A point, or a copy of consecutive ones."""
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return self._part(start, max(start, stop))
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            message = f"no point {index} of {len(self)}"
            raise IndexError(message)
        estimate, lower, upper, surrogates_left, variance = self.results[place]
        plus = minus = _signal_of(self.plus, place)
        if self.minus and place >= self.minus_start:
            minus = _signal_of(self.minus, place - self.minus_start)
        return Point(
            self.first + place,
            estimate,
            Interval(lower, upper),
            surrogates_left,
            None if math.isnan(variance) else variance,
            plus,
            minus,
        )

    def __eq__(self, other: object) -> bool:
        """The same points, to the last bit."""
        if not isinstance(other, Points):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # it grows

    def append(self, point: Point) -> None:
        """Add the point of the next round."""
        interval, plus, minus = point.interval, point.plus, point.minus
        if self.minus or minus is not plus:
            if not self.minus:
                self.minus_start = len(self)
            self.minus.append(_row(minus))
        variance = math.nan if point.variance is None else point.variance
        self.results.append(
            (point.estimate, interval.lower, interval.upper, point.surrogates_left, variance)
        )
        self.plus.append(_row(plus))

    def _part(self, start: int, stop: int) -> Self:
        copied = type(self)(self.first + start)
        copied.results = self.results.part(start, stop)
        copied.plus = self.plus.part(start, stop)
        if self.minus and stop > self.minus_start:
            copied.minus_start = max(self.minus_start - start, 0)
            copied.minus = self.minus.part(
                max(start - self.minus_start, 0), max(stop - self.minus_start, 0)
            )
        return copied


def _row(signal: CompletionSignal) -> tuple[float, ...]:
    signal_range = signal.signal_range
    return (
        signal.plug_in,
        signal_range.lower,
        signal_range.upper,
        signal.surrogate,
        signal.loss,
        signal.signal,
    )


def _signal_of(table: Table, row: int) -> CompletionSignal:
    plug_in, lower, upper, surrogate, loss, signal = table[row]
    return CompletionSignal(plug_in, Range(lower, upper), surrogate, loss, signal)

"""The outcome of a session: its interval after every label, and where it ended."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """The interval after a label was folded in."""

    round: int
    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """One session's end and its course.

    `labels` counts all that judges gave; at the `sufficed`-th the session had reached its
    precision, and the others were already with judges.
    """

    policy: str
    labels: int
    sufficed: int
    lower: float
    upper: float
    estimate: float
    course: Sequence[Point]

    def always_held(self, risk: float) -> bool:
        """Return whether the interval held the risk after every label, not only after the last."""
        return all(point.lower <= risk <= point.upper for point in self.course)

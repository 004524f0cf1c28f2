"""When a session may stop. The guarantee does not end there: going on is always valid."""

from dataclasses import dataclass
from enum import StrEnum

from app.core.eprocess import Interval


class StopReason(StrEnum):
    """Why no further labels are asked for."""

    TARGET_REACHED = "target_reached"
    EXHAUSTED = "exhausted"
    BUDGET_SPENT = "budget_spent"


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """The interval width asked for (None: none) and the most draws allowed."""

    precision: float | None
    budget: int

    def reason(self, interval: Interval, folded: int, items: int) -> StopReason | None:
        """The reason to stop after ``folded`` rounds, or None to go on."""
        if self.precision is not None and interval.width <= self.precision:
            return StopReason.TARGET_REACHED
        if folded >= items:
            return StopReason.EXHAUSTED
        if folded >= self.budget:
            return StopReason.BUDGET_SPENT
        return None

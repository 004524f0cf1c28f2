"""What a comparison says, in a sentence with the names of the two systems.

The session's page writes the same sentence from the same phrases (static/js/session/verdict.js).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from celeus.core.pools.losses import LossScale
from celeus.core.pools.systems import Systems
from celeus.web.report.wording import NOTHING_LEFT, Scaled, sure

PERCENT: Final = 2
"""By how many decimal places a share is moved to be told in points."""
BY_WEIGHT: Final = ", counted by weight"
NOTHING: Final = "Nothing is judged yet: "
UNDECIDED: Final = "Undecided so far. "
UNDECIDED_FOR_GOOD: Final = "Undecided. "

PHRASES: Final[dict[str, dict[str, str]]] = {
    "errors": {
        "ahead": "{better} makes {at} points fewer errors than {worse}",
        "level": "{better} makes at most as many errors as {worse}: {low} to {high} points fewer",
        "open": "{better} makes between {low} points more and {high} points fewer errors than"
        " {worse}",
        "equal": "{better} and {worse} make equally many errors",
        "within": "their error rates differ by at most {margin} points",
    },
    "losses": {
        "ahead": "{better} has a mean loss {at} lower than {worse}",
        "level": "{better} has a mean loss no higher than {worse}: {low} to {high} lower",
        "open": "{better} has a mean loss between {low} higher and {high} lower than {worse}",
        "equal": "{better} and {worse} have the same mean loss",
        "within": "their mean losses differ by at most {margin}",
    },
    "preferences": {
        "ahead": "{better} is preferred on {at} points more of the items than {worse}",
        "level": "{better} is preferred on at least as many of the items as {worse}: {low} to"
        " {high} points more",
        "open": "{better} is preferred on between {low} points fewer and {high} points more of the"
        " items than {worse}",
        "equal": "{better} and {worse} are preferred on equally many items",
        "within": "the shares of items on which each is preferred differ by at most {margin}"
        " points",
    },
    "grades": {
        "ahead": "{better} is {at} grades better than {worse} on average",
        "level": "{better} is at least as good as {worse} on average: {low} to {high} grades"
        " better",
        "open": "{better} is between {low} grades worse and {high} grades better than {worse} on"
        " average",
        "equal": "{better} and {worse} are equally good on average",
        "within": "on average neither is better than the other by more than {margin} grades",
    },
}
"""By what is counted: below 0 of the difference A is better, above 0 B is."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """The two systems as they are called, and the phrases for what their difference counts."""

    a: str
    b: str
    shift: int
    phrases: Mapping[str, str]

    @classmethod
    def of(cls, scale: LossScale, systems: Systems | None) -> Self | None:
        """Of a pool of differences; None for the losses of one system."""
        if scale.kind != "difference":
            return None
        if systems is None:
            return cls("A", "B", 0, PHRASES["losses"])
        if systems.kind == "preference":
            unit = "preferences" if systems.upper == 1.0 else "grades"
        else:
            unit = "errors" if systems.kind == "zero_one" else "losses"
        shift = PERCENT if unit in {"errors", "preferences"} else 0
        return cls(systems.a, systems.b, shift, PHRASES[unit])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the page that follows a session."""
        return asdict(self)

    def sentence(self, status: Mapping[str, Any]) -> str:
        """What a session says of the two, as its status stands."""
        lower, upper, scale = status["lower"], status["upper"], status["scale"]
        nothing = NOTHING_LEFT * (scale["upper"] - scale["lower"])
        exact = upper - lower <= nothing
        inside = status["rounds"]["in_interval"]
        settled = exact and inside == status["items"] - status["known"]
        figures = Scaled(LossScale.of("bounded", **scale), upper - lower, self.shift)
        # What lies beside 0 by less than can be computed lies at 0
        lower, upper = (0.0 if abs(end) <= nothing else end for end in (lower, upper))
        body = self._said(lower, upper, status["estimate"], figures, told=not settled)
        if status.get("effective_items") is not None:
            body += BY_WEIGHT
        if settled:
            return f"{self._prefix(status)}{body}; every item is judged or known."
        if inside == 0:
            return f"{NOTHING}{body}."
        return f"{self._prefix(status)}{body}, {sure(status['alpha'])} sure at every moment."

    def _said(
        self, lower: float, upper: float, estimate: float, figures: Scaled, *, told: bool
    ) -> str:
        """The interval in words; ``told`` names its ends beside the estimate."""
        names = {"better": self.b, "worse": self.a}
        if upper <= 0.0 and lower < 0.0:
            names = {"better": self.a, "worse": self.b}
            lower, upper, estimate = -upper, -lower, -estimate
        if lower == 0.0 == upper:
            return self.phrases["equal"].format(better=self.a, worse=self.b)
        if lower > 0.0:
            ahead = self.phrases["ahead"].format(at=figures.nearest(estimate), **names)
            ends = f" ({figures.below(lower)} to {figures.above(upper)})"
            return ahead + ends if told else ahead
        phrase = "level" if lower == 0.0 else "open"
        # Of nothing, no minus
        low = figures.above(-lower) if lower < 0.0 else figures.below(0.0)
        return self.phrases[phrase].format(low=low, high=figures.above(upper), **names)

    def _prefix(self, status: Mapping[str, Any]) -> str:
        verdict = status["verdict"]
        if verdict is None:
            return ""
        if verdict["answer"] == "undecided":
            return UNDECIDED_FOR_GOOD if status["state"] == "closed" else UNDECIDED
        if verdict["answer"] != "equivalent":
            return ""
        margin = f"{verdict['margin'] * 10**self.shift:.10g}"
        within = self.phrases["within"].format(margin=margin)
        return f"{self.a} and {self.b} are equivalent: {within}. "

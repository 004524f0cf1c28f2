"""Claims in words and figures, for people who did not choose alpha.

Figures are rounded outwards where they bound something: what is said stays as true as what was
certified.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from app.core.losses import LossScale
from app.operations.reports import Account

SMALLEST_ALPHA_SAID = 1e-6
NOTHING_LEFT = 1e-9
"""Of the scale's width: an interval as narrow as that is a number."""
LEAST_DECIMALS_OF_PERCENT = 1
DIGITS_OF_A_NUMBER = 5
_DIGITS_OF_A_FLOAT = 14
_GROUPS = "\N{NO-BREAK SPACE}"
_PERCENT = "\N{NO-BREAK SPACE}%"
_STATES = {
    "active": "open, labels are being collected",
    "target_reached": "open; the precision asked for is reached",
    "decided": "open; all questions are answered",
    "budget_spent": "open; the budget of labels is spent",
    "exhausted": "open; the whole pool is judged",
    "paused": "open, paused",
    "closed": "closed for good",
}


def count(number: int) -> str:
    """A whole number with its thousands apart."""
    return f"{number:,}".replace(",", _GROUPS)


def sure(alpha: float) -> str:
    """1 - alpha in percent, never rounded up to certainty."""
    if alpha < SMALLEST_ALPHA_SAID:
        return f"more than 99.9999{_PERCENT}"
    share = 100 * (1 - Decimal(repr(alpha)))
    return f"{share.normalize():f}{_PERCENT}"


class Scaled:
    """Losses of one scale in figures, with as many decimals as a width deserves."""

    def __init__(self, scale: LossScale, width: float) -> None:
        self.percent = scale.kind == "zero_one"
        self._factor = 100.0 if self.percent else 1.0
        least = LEAST_DECIMALS_OF_PERCENT if self.percent else 0
        whole = scale.upper - scale.lower
        told, digits = (width, 2) if width > NOTHING_LEFT * whole else (whole, DIGITS_OF_A_NUMBER)
        # `adjusted` tells the power of ten of the first digit
        self._decimals = max(least, digits - 1 - Decimal(repr(told * self._factor)).adjusted())

    def below(self, value: float) -> str:
        """A figure the value is not under."""
        return self._said(value, ROUND_FLOOR)

    def above(self, value: float) -> str:
        """A figure the value is not over."""
        return self._said(value, ROUND_CEILING)

    def nearest(self, value: float) -> str:
        """The nearest figure."""
        return self._said(value, ROUND_HALF_EVEN)

    def width(self, value: float) -> str:
        """A width: of percents it is told in points."""
        if not self.percent:
            return self._figure(value, ROUND_HALF_EVEN)
        return f"{self._figure(value, ROUND_HALF_EVEN)} points"

    def asked(self, value: float | None) -> str:
        """A width somebody asked for."""
        if value is None:
            return "none"
        return f"{self.given(value).removesuffix(_PERCENT)}{' points' if self.percent else ''}"

    def given(self, value: float) -> str:
        """A number somebody chose, as they wrote it."""
        if not self.percent:
            return f"{value:.10g}"
        return f"{100 * Decimal(f'{value:.12g}'):f}".rstrip("0").rstrip(".") + _PERCENT

    def _said(self, value: float, rounding: str) -> str:
        return self._figure(value, rounding) + (_PERCENT if self.percent else "")

    def _figure(self, value: float, rounding: str) -> str:
        # The last digits of a float are noise, which rounding outwards would make a whole step of.
        exact = Decimal(f"{value * self._factor:.{_DIGITS_OF_A_FLOAT}g}")
        step = Decimal(1).scaleb(-self._decimals)
        found = exact.quantize(step, rounding=rounding)
        return f"{found + 0:f}"


class Wording:
    """What is to be said of one session."""

    def __init__(self, told: Account, scale: LossScale) -> None:
        self._told = told
        self._status = told.document
        self._scale = scale
        self.figures = Scaled(scale, self._status["upper"] - self._status["lower"])
        self.items = count(told.plan.items)
        self.labels = self._status["round"]

    @property
    def quantity(self) -> str:
        """What is measured."""
        return {
            "zero_one": "error rate",
            "cross_entropy": "mean cross-entropy loss",
            "bounded": "mean loss",
        }[self._scale.kind]

    @property
    def unit(self) -> str:
        """What an axis says of it."""
        if self._scale.kind == "zero_one":
            return "error rate (%)"
        return f"{self.quantity} (lower is better)"

    @property
    def where(self) -> str:
        """What it is measured over."""
        if self._told.plan.target == "pool":
            return f"on these {self.items} items"
        return f"on all items of the kind these {self.items} were taken from"

    @property
    def interval(self) -> str:
        """The ends of the interval."""
        low, high = self._status["lower"], self._status["upper"]
        if self.settled:
            return f"exactly {self.figures.nearest(low)}"
        return f"between {self.figures.below(low)} and {self.figures.above(high)}"

    @property
    def settled(self) -> bool:
        """Nothing is left to chance: the whole pool is judged."""
        width = self._status["upper"] - self._status["lower"]
        return bool(
            width <= NOTHING_LEFT * (self._scale.upper - self._scale.lower)
            and self.labels == self._told.plan.items
        )

    @property
    def sure(self) -> str:
        """How sure the claim is."""
        return sure(self._told.plan.alpha)

    @property
    def claim(self) -> str:
        """The claim in one sentence."""
        judged = f"{count(self.labels)} of {self.items} items were judged"
        what = f"the {self.quantity} {self.where}"
        if self.labels == 0:
            return f"Nothing is judged yet: all we know is that {what} lies {self.interval}."
        if not self._told.plan.policy.recentred:
            return (
                f"No promise is made: this session ran a form of its policy that serves comparisons"
                f" only. It arrived at an interval {self.interval} for {what}; {judged}."
            )
        if self.settled:
            return f"Every one of the {self.items} items was judged: {what} is {self.interval}."
        return (
            f"We are {self.sure} sure that {what} is {self.interval},"
            f" however often anybody looked; {judged}."
        )

    @property
    def conditions(self) -> list[str]:
        """What has to be said beside the claim, each in a sentence."""
        found = []
        if self._told.unjudgeable:
            found.append(
                f"Items among them that could not be judged: {count(self._told.unjudgeable)}. Each"
                " counts as the best possible for the lower end, and as the worst possible for the"
                " upper one."
            )
        if self._told.amendments:
            found.append(
                f"Losses corrected since they were given: {count(self._told.amendments)}. This is"
                " the claim for the losses as they stand now."
            )
        if self._told.plan.target == "population" and self._told.plan.bound.kind == "margin":
            half = self.figures.given(self._told.plan.bound.half_width)
            found.append(
                "It is said of more than these items because whoever opened the session vouches"
                f" that the two differ by at most {half}."
            )
        elif self._told.plan.target == "population":
            found.append(
                "It is said of more than these items, and holds if they are an independent sample"
                " of all of that kind."
            )
        return found

    @property
    def standing(self) -> str:
        """Whether this is the last word."""
        if self._told.closed:
            return "Final: the session is closed, and nothing can be added to it."
        return "Interim: the session is open; more labels may narrow the interval."

    @property
    def state(self) -> str:
        """The session's state in words."""
        return _STATES[self._status["state"]]

    @property
    def saved(self) -> str:
        """What was spared against judging everything."""
        left = self._told.plan.items - self.labels
        if left == 0:
            return "none: all items were judged"
        share = f"{100 * left / self._told.plan.items:.1f}{_PERCENT}"
        verb = "were never" if self._told.closed else "are not"
        return f"{count(left)} of {self.items} items ({share}) {verb} judged"

    @property
    def scale(self) -> str:
        """The scale of the losses."""
        low, high = self._scale.lower, self._scale.upper
        if self._scale.kind == "zero_one":
            return "0 (right) or 1 (wrong)"
        return f"{self.quantity}, {low:.10g} to {high:.10g}, lower is better"

    def question(self, asked: dict[str, Any]) -> str:
        """A question as a question."""
        side = "at most" if asked["side"] == "at_most" else "at least"
        return f"Is the {self.quantity} {side} {self.figures.given(asked['threshold'])}?"

    def answer(self, asked: dict[str, Any]) -> str:
        """Its answer, and when it was given."""
        if asked["answer"] == "undecided":
            return "Undecided, for good" if self._told.closed else "Undecided so far"
        return f"{asked['answer'].capitalize()}, since label {count(asked['round'])}"

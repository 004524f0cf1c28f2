"""Wording of claims for people who did not choose alpha.

Figures are rounded outwards where they bound something: what is said stays as true as what was
certified.
"""

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any

from celeus.core.certificates.document import stated
from celeus.core.certificates.report import pool_sessions_line
from celeus.core.pools.losses import LossScale
from celeus.core.pools.systems import Systems
from celeus.core.sessions.either import risk_plan
from celeus.operations.insights.report import Account

SMALLEST_ALPHA_SAID = 1e-6
NOTHING_LEFT = 1e-9
"""Fraction of the scale below which an interval is shown as a single number."""
RESOLUTION_OF_A_NUMBER = 10**-2.7
"""Fraction of the scale that a single number resolves: four decimals on a scale from 0 to 1."""
_GROUPS = "\N{NARROW NO-BREAK SPACE}"
_PERCENT = "\N{NARROW NO-BREAK SPACE}%"
_MINUS = "\N{MINUS SIGN}"
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
    """Losses in figures with the decimals a width deserves, by the rules of the pages' format.js.

    They are on the scale of the losses, as in certificates, answers and forms: an error rate is
    0.28 everywhere, and nowhere 28 %.
    """

    def __init__(self, scale: LossScale, width: float, shift: int = 0) -> None:
        """``shift`` moves the point to the right: by 2, shares are told in points."""
        whole = scale.upper - scale.lower
        resolution = width if width > NOTHING_LEFT * whole else RESOLUTION_OF_A_NUMBER * whole
        # Two digits of the width, three where the first is a 1
        self._decimals = max(0, ceil(1.3 - log10(resolution) - shift))
        self._shift = shift

    def below(self, value: float) -> str:
        """A figure the value is not under."""
        return self._figure(floor(self._steps(value)))

    def above(self, value: float) -> str:
        """A figure the value is not over."""
        return self._figure(ceil(self._steps(value)))

    def nearest(self, value: float) -> str:
        """The nearest figure."""
        return self._figure(floor(self._steps(value) + Fraction(1, 2)))

    def given(self, value: float | None) -> str:
        """A number somebody chose, as they wrote it."""
        return "none" if value is None else f"{value:.10g}".replace("-", _MINUS)

    def _steps(self, value: float) -> Fraction:
        """The value in units of the last decimal, exactly.

        A float means the shortest decimal that reads back as it: 0.28 is 28 hundredths.
        """
        return Fraction(repr(value)) * int(10 ** (self._decimals + self._shift))

    def _figure(self, steps: int) -> str:
        digits = f"{abs(steps):0{self._decimals + 1}d}"
        point = len(digits) - self._decimals
        figure = f"{digits[:point]}.{digits[point:]}" if self._decimals else digits
        return _MINUS + figure if steps < 0 else figure


class Words:
    """The words of a session's report that do not depend on what it claims."""

    figures: Scaled

    def __init__(self, account: Account) -> None:
        self._told = account
        self._status = account.document
        self.items = count(account.plan.items)
        self.in_interval = self._status["rounds"]["in_interval"]
        # A round that nobody could judge is answered, and no label
        self.judged = self._status["rounds"]["judged"] - account.unjudgeable
        self.labels_in_interval = self.in_interval - account.unjudgeable

    @property
    def sure(self) -> str:
        """The confidence of the claim."""
        return sure(self._told.plan.alpha)

    @property
    def state(self) -> str:
        """The session's state in words."""
        return _STATES[self._status["state"]]

    @property
    def pool_sessions(self) -> str:
        """Which of its pool's sessions this one is, and what became of the others."""
        return pool_sessions_line(self._told.pool_sessions)

    @property
    def saved(self) -> str:
        """How many labels were saved against judging every item."""
        remaining = self._told.plan.items - self._status["rounds"]["judged"]
        if remaining == 0:
            return "none: every item was drawn"
        share = f"{100 * remaining / self._told.plan.items:.1f}{_PERCENT}"
        verb = "were never" if self._told.closed else "are not"
        return f"{count(remaining)} of {self.items} items ({share}) {verb} judged"


class Wording(Words):
    """The wording of one session's report."""

    def __init__(self, account: Account, scale: LossScale, systems: Systems | None = None) -> None:
        super().__init__(account)
        self._plan = risk_plan(account.plan)
        self._systems = systems
        self._scale = scale
        self.figures = Scaled(scale, self._status["upper"] - self._status["lower"])

    @property
    def quantity(self) -> str:
        """The name of the measured quantity."""
        return self._plain if self._plan.weights is None else f"weighted {self._plain}"

    @property
    def _plain(self) -> str:
        systems = self._systems
        if systems is not None and systems.kind == "preference":
            return f"mean preference (below 0 for {systems.a}, above 0 for {systems.b})"
        if systems is not None:
            return f"mean difference of loss ({systems.a} minus {systems.b})"
        return {
            "zero_one": "error rate",
            "cross_entropy": "mean cross-entropy loss",
            "bounded": "mean loss",
            "difference": "mean loss of A less that of B",
        }[self._scale.kind]

    @property
    def unit(self) -> str:
        """The label of the axis; names of systems may be too long for it."""
        if self._scale.kind == "difference":
            return "difference of the two systems"
        return f"{self.quantity} (lower is better)"

    @property
    def where(self) -> str:
        """The items it is the mean of."""
        if self._plan.target == "pool":
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
        """Whether the whole pool is judged, so that its mean is known exactly."""
        width = self._status["upper"] - self._status["lower"]
        return bool(
            width <= NOTHING_LEFT * (self._scale.upper - self._scale.lower)
            and self.in_interval == self._plan.drawable
        )

    @property
    def claim(self) -> str:
        """The claim in one sentence."""
        judged_items = self._judged
        what = f"the {self.quantity} {self.where}"
        if self.in_interval == 0:
            what = f"all we know is that {what} lies {self.interval}"
            if self.judged == 0:
                return f"Nothing is judged yet: {what}."
            return f"No label is in the interval yet: {what}; {judged_items}."
        if not self._plan.policy.recentred:
            return (
                f"No promise is made: this session ran a form of its policy that serves comparisons"
                f" only. It arrived at an interval {self.interval} for {what}; {judged_items}."
            )
        if self.settled:
            known = self._plan.items - self._plan.drawable
            judged = "was judged or known" if known else "was judged"
            return f"Every one of the {self.items} items {judged}: {what} is {self.interval}."
        return (
            f"We are {self.sure} sure that {what} is {self.interval},"
            f" however often anybody looked; {judged_items}."
        )

    @property
    def _judged(self) -> str:
        """How many items were judged, and how many of them the interval speaks for."""
        sentence = f"{count(self.judged)} of {self.items} items were judged"
        inside = self.labels_in_interval
        if self.judged == inside:
            return sentence
        part = f"{count(inside)} of these are" if inside else "none of these is"
        return f"{sentence}; {part} in the interval"

    @property
    def conditions(self) -> list[str]:
        """Caveats beside the claim, one sentence each."""
        lines = []
        if self._told.unjudgeable:
            lines.append(
                f"Items in the interval that could not be judged: {count(self._told.unjudgeable)}."
                " Each counts as the best possible for the lower end, and as the worst possible"
                " for the upper one."
            )
        if self._told.amendments:
            lines.append(
                f"Losses corrected since they were given: {count(self._told.amendments)}. This is"
                " the claim for the losses as they stand now."
            )
        if self._plan.believed is not None:
            lines.append(stated(self._plan.believed, self._plan.items))
        if self._plan.weights is not None:
            effective = count(round(self._plan.weights.effective_items))
            lines.append(
                "The items have weights, and count by them: the pool says as much as"
                f" {effective} items of one weight would."
            )
        if self._plan.target == "population" and self._plan.bound.kind == "margin":
            half = self.figures.given(self._plan.bound.half_width)
            lines.append(
                "It is said of more than these items because whoever opened the session vouches"
                f" that the two differ by at most {half}."
            )
        elif self._plan.target == "population":
            lines.append(
                "It is said of more than these items, and holds if they are an independent sample"
                " of all of that kind."
            )
        return lines

    @property
    def standing(self) -> str:
        """Whether the certificate is final or interim, in words."""
        if self._told.closed:
            return "Final: the session is closed, and nothing can be added to it."
        return "Interim: the session is open; more labels may narrow the interval."

    @property
    def scale(self) -> str:
        """The scale of the losses."""
        low, high = self._scale.lower, self._scale.upper
        if self._scale.kind == "zero_one":
            return "0 (right) or 1 (wrong)"
        better = "lower" if self._systems is None else f"below 0 {self._systems.a}"
        return f"{self.quantity}, {low:.10g} to {high:.10g}, {better} is better"

    @property
    def sides(self) -> str | None:
        """How often which side won; None where no two systems are compared."""
        sides = self._status.get("sides")
        if sides is None:
            return None
        left, tie, right = (count(sides[name]) for name in ("left", "tie", "right"))
        return f"left better in {left} rounds, right better in {right}, as good in {tie}"

    @property
    def upper(self) -> str:
        """The system that is better where a difference is above 0."""
        return "B" if self._systems is None else self._systems.b

    @property
    def verdict(self) -> str:
        """What was to be decided of two systems, and when it was."""
        verdict = self._status["verdict"]
        a, b = ("A", "B") if self._systems is None else (self._systems.a, self._systems.b)
        asked = f"whether {a} or {b} is at least as good"
        if verdict["margin"]:
            margin = self.figures.given(verdict["margin"])
            asked += f", or the two are equivalent to within {margin}"
        answer = {
            "a_at_least_as_good": f"{a} is at least as good, since label",
            "b_at_least_as_good": f"{b} is at least as good, since label",
            "equivalent": "equivalent, since label",
            "undecided": "undecided, for good" if self._told.closed else "undecided so far",
        }[verdict["answer"]]
        when = "" if verdict["round"] is None else f" {count(verdict['round'])}"
        return f"To be decided was {asked}. The answer: {answer}{when}."

    def question(self, asked_question: dict[str, Any]) -> str:
        """A question as a question."""
        side = "at most" if asked_question["side"] == "at_most" else "at least"
        return f"Is the {self.quantity} {side} {self.figures.given(asked_question['threshold'])}?"

    def answer(self, asked_question: dict[str, Any]) -> str:
        """Its answer, and when it was given."""
        if asked_question["answer"] == "undecided":
            return "Undecided, for good" if self._told.closed else "Undecided so far"
        return (
            f"{asked_question['answer'].capitalize()}, since label {count(asked_question['round'])}"
        )

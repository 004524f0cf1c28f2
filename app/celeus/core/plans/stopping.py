"""Questions, their answers, and the rules by which a session stops.

A question asks on which side of a threshold c the risk lies: ``at_most`` c (R <= c?) or
``at_least`` c (R >= c?). It is read off the running interval, which holds R in all rounds at once
with probability 1 - alpha, so any number of questions costs no further alpha. An interval end that
lies beside c by rounding alone counts as c: after the last item of a pool whose risk is the
threshold, either question is answered yes.

Of a difference of two systems one may ask for a verdict: which one is at least as good, or whether
they are equivalent within a margin. The first answer that the interval gives stands.

The guarantee does not end at a stop: going on is always valid.
"""

import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from celeus.core.interval import Interval
from celeus.core.plain import Plain

Side = Literal["at_most", "at_least"]
Answer = Literal["yes", "no", "undecided"]

ROUNDINGS = 16.0
"""Largest rounding error of a mean loss or an interval's end, in last digits."""


def rounding(scale: Interval) -> float:
    """Return the tolerance for rounding in a comparison with a threshold."""
    return ROUNDINGS * sys.float_info.epsilon * max(abs(scale.lower), abs(scale.upper))


@dataclass(frozen=True, slots=True)
class Question(Plain):
    """The question "is the risk on this side of ``threshold``?", the threshold included."""

    side: Side
    threshold: float

    def answer(self, interval: Interval, slack: float = 0.0) -> Answer:
        """Return the answer of ``interval``; ends within ``slack`` count as the threshold."""
        if self.side == "at_most":
            most = self.threshold + slack
            return _answer(yes=interval.upper <= most, no=interval.lower > most)
        least = self.threshold - slack
        return _answer(yes=interval.lower >= least, no=interval.upper < least)


def _answer(*, yes: bool, no: bool) -> Answer:
    if yes:
        return "yes"
    return "no" if no else "undecided"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a question, and the round that gave it (None while undecided)."""

    question: Question
    answer: Answer = "undecided"
    round: int | None = None

    def after(self, round_: int, interval: Interval, slack: float) -> "Decision":
        """Return the decision after a further round; an answer once given stays."""
        if self.answer != "undecided":
            return self
        answer = self.question.answer(interval, slack)
        return self if answer == "undecided" else Decision(self.question, answer, round_)

    def contradicted(self, interval: Interval, slack: float) -> bool:
        """Return whether a later interval gives the opposite answer.

        Then an earlier interval missed the risk, which has probability at most alpha.
        """
        now = self.question.answer(interval, slack)
        return "undecided" not in {now, self.answer} and now != self.answer

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as in status and certificate."""
        return self.question.to_dict() | {"answer": self.answer, "round": self.round}


Decisions = tuple[Decision, ...]
Comparison = Literal["a_at_least_as_good", "b_at_least_as_good", "equivalent", "undecided"]


@dataclass(frozen=True, slots=True)
class Verdict(Plain):
    """The verdict on a difference, and the round that gave the answer.

    The answer ``equivalent`` means within ``margin`` of 0; it is never given for a margin of 0.
    """

    margin: float
    answer: Comparison = "undecided"
    round: int | None = None

    def after(self, round_: int, interval: Interval, slack: float) -> "Verdict":
        """Return the verdict after a further round; an answer once given stays."""
        if self.answer != "undecided":
            return self
        answer = self._read(interval, slack)
        return self if answer == "undecided" else Verdict(self.margin, answer, round_)

    def contradicted(self, interval: Interval, slack: float) -> bool:
        """Return whether a later interval excludes the answer.

        Then an earlier interval missed the mean, which has probability at most alpha.
        """
        return {
            "a_at_least_as_good": interval.lower > slack,
            "b_at_least_as_good": interval.upper < -slack,
            "equivalent": interval.lower > self.margin + slack
            or interval.upper < -self.margin - slack,
            "undecided": False,
        }[self.answer]

    def _read(self, interval: Interval, slack: float) -> Comparison:
        if interval.upper <= slack:
            return "a_at_least_as_good"
        if interval.lower >= -slack:
            return "b_at_least_as_good"
        most = self.margin + slack
        within = -most <= interval.lower and interval.upper <= most
        return "equivalent" if self.margin > 0.0 and within else "undecided"


def undecided(questions: tuple[Question, ...]) -> Decisions:
    """Return the decisions before the first round."""
    return tuple(Decision(question) for question in questions)


def all_decided(decisions: Decisions, verdict: Verdict | None = None) -> bool:
    """Return true if something was asked and all of it is answered."""
    answers: list[str] = [decision.answer for decision in decisions]
    if verdict is not None:
        answers.append(verdict.answer)
    return bool(answers) and "undecided" not in answers


class StopReason(StrEnum):
    """Reason why a session stops."""

    TARGET_REACHED = "target_reached"
    DECIDED = "decided"
    EXHAUSTED = "exhausted"
    BUDGET_SPENT = "budget_spent"


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Width to reach (None: none), largest number of draws, and whether answers end the session."""

    precision: float | None
    budget: int
    stop_when_decided: bool = False

    @property
    def can_stop_early(self) -> bool:
        """True if a precision or the questions may end the session before budget and pool do."""
        return self.precision is not None or self.stop_when_decided

    def reason(
        self, interval: Interval, folded: int, items: int, *, decided: bool = False
    ) -> StopReason | None:
        """Return the reason to stop after ``folded`` rounds, or None to go on."""
        if self.precision is not None and interval.width <= self.precision:
            return StopReason.TARGET_REACHED
        if self.stop_when_decided and decided:
            return StopReason.DECIDED
        if folded >= items:
            return StopReason.EXHAUSTED
        if folded >= self.budget:
            return StopReason.BUDGET_SPENT
        return None

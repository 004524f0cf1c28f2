"""Wording of claims for people who did not choose alpha."""

from collections.abc import Mapping
from typing import Any

from celeus.core.certificate.report import pool_sessions_line
from celeus.core.insights.figures import Figures, count, sure
from celeus.core.insights.remarks import Measure
from celeus.core.insights.sentences import is_settled
from celeus.core.plans.plan import Plan
from celeus.core.session.assumptions import stated
from celeus.operations.insights.report import ReportedSession
from celeus.operations.pools.record import PoolRecord
from celeus.units import PERCENT_SIGN
from celeus.web.report.interval import IntervalFigures

_STATES = {
    "active": "open, labels are being collected",
    "target_reached": "open; the precision asked for is reached",
    "decided": "open; all questions are answered",
    "budget_spent": "open; the budget of labels is spent",
    "exhausted": "open; the whole pool is judged",
    "paused": "open, paused",
    "closed": "closed for good",
}


def sides_words(status: Mapping[str, Any]) -> str | None:
    """Return how often each side won, or each place; None where none was drawn."""
    sides, places = status["sides"], (status["best"] or {}).get("places") or {}
    if sides:
        left, tie, right = (count(sides[name]) for name in ("left", "tie", "right"))
        return (
            f"left better in {left} rounds, right better in {right}, as good in {tie}; which answer"
            " stood on the left was drawn for every round, and no claim rests on how often one won"
        )
    if not any(places.values()):
        return None
    first, last, other = (count(places[name]) for name in ("first", "last", "other"))
    return (
        f"the first answer shown was the best in {first} rounds, the last in {last}, another"
        f" or several in {other}; the order was drawn for every round, and no claim rests on how"
        " often one place won"
    )


def raters_words(status: Mapping[str, Any]) -> str | None:
    """Return what a panel has judged and how far it agrees; None without a panel."""
    raters = status["raters"]
    if raters is None:
        return None
    protocol = {
        "two_then_third": "two judge every item, and a third where they differ",
        "consensus": "two judge every item, and again while they differ",
    }[raters["protocol"]]
    alpha = raters["agreement"]
    agreed = "not known" if alpha is None else f"{alpha:.2f}"
    return (
        f"{protocol}: {count(raters['judgements'])} judgements by a panel of"
        f" {count(len(raters['panel']))}; agreement (Krippendorff's alpha) over the first two"
        f" judgements of {count(raters['items'])} items: {agreed}; no claim rests on how far they"
        " agree"
    )


class Words:
    """The words of a session's report that do not depend on what it claims."""

    figures: Figures

    def __init__(self, account: ReportedSession) -> None:
        self._account = account
        self._status = account.document
        self.items = count(account.plan.items)
        self.in_interval = self._status["rounds"]["in_interval"]
        # An unjudgeable round has an answer, but no label
        self.judged = self._status["rounds"]["judged"] - account.unjudgeable
        self.labels_in_interval = self.in_interval - account.unjudgeable

    @property
    def sure(self) -> str:
        """The confidence of the claim."""
        return sure(self._account.plan.alpha)

    @property
    def state(self) -> str:
        """The session's state in words."""
        return _STATES[self._status["state"]]

    @property
    def pool_sessions(self) -> str:
        """Sentence on this session's place among those of its pool, and on the others' outcomes."""
        return pool_sessions_line(self._account.pool_sessions)

    @property
    def beside(self) -> list[str]:
        """The lines beside the sentence."""
        words = self._status["words"]
        return [words[name] for name in ("progress", "holds") if words[name]]

    @property
    def saved(self) -> str:
        """Sentence on the labels saved compared with judging every item."""
        remaining = self._account.plan.items - self._status["rounds"]["judged"]
        if remaining == 0:
            return "none: every item was drawn"
        share = f"{100 * remaining / self._account.plan.items:.1f}{PERCENT_SIGN}"
        verb = "were never" if self._account.closed else "are not"
        return f"{count(remaining)} of {self.items} items ({share}) {verb} judged"


class Wording(Words, IntervalFigures):
    """The wording of one session's report."""

    def __init__(self, account: ReportedSession, pool: PoolRecord, plan: Plan) -> None:
        weighted, success = plan.weights is not None, account.document["success"]
        measure = Measure(pool.scale, pool.systems, pool.score, weighted, success)
        Words.__init__(self, account)
        IntervalFigures.__init__(self, account.document, measure)
        self._plan, self._scale, self._systems = plan, pool.scale, pool.systems

    @property
    def saved(self) -> str:
        """Sentence on the labels saved compared with judging every item."""
        return "none is counted: items were run again" if self._plan.repeats else super().saved

    @property
    def where(self) -> str:
        """The items it is the mean of."""
        if self._plan.target == "pool":
            return f"on these {self.items} items"
        if self._plan.target == "runs":
            return f"over all runs on these {self.items} items"
        return f"on all items of the kind these {self.items} were taken from"

    @property
    def interval(self) -> str:
        """The ends of the interval."""
        low, high = self._now.lower, self._now.upper
        if self.settled:
            return f"exactly {self.figures.nearest(low)}{self.sign}"
        return f"between {self.figures.below(low)} and {self.figures.above(high)}{self.sign}"

    @property
    def settled(self) -> bool:
        """True if the whole pool is judged, so that its mean is known exactly."""
        return is_settled(self._status)

    @property
    def claim(self) -> str:
        """The claim in one sentence."""
        judged_items = self._judged
        subject = f"the {self.quantity} {self.where}"
        if self._plan.success is not None:
            subject = f"the {self.quantity}, {self.where},"
        if self.in_interval == 0:
            subject = f"all we know is that {subject} lies {self.interval}"
            if self.judged == 0:
                return f"Nothing is judged{self._yet}: {subject}."
            return f"No label is in the interval{self._yet}: {subject}; {judged_items}."
        if self.settled:
            known = self._plan.items - self._plan.drawable
            judged = "was judged or known" if known else "was judged"
            return f"Every one of the {self.items} items {judged}: {subject} is {self.interval}."
        return (
            f"We are {self.sure} sure that {subject} is {self.interval},"
            f" however often anybody looked; {judged_items}."
        )

    @property
    def _yet(self) -> str:
        return "" if self._status["state"] == "closed" else " yet"

    @property
    def _judged(self) -> str:
        """Sentence on the items judged, and how many of them are in the interval."""
        sentence = f"{count(self.judged)} of {self.items} items were judged"
        if self._plan.repeats:
            sentence = f"{count(self.judged)} draws from {self.items} items were judged"
        inside = self.labels_in_interval
        if self.judged == inside:
            return sentence
        part = f"{count(inside)} of these are" if inside else "none of these is"
        return f"{sentence}; {part} in the interval"

    @property
    def conditions(self) -> list[str]:
        """Caveats beside the claim, one sentence each."""
        lines = []
        if self._account.unjudgeable:
            judged = "Draws" if self._plan.repeats else "Items"
            lines.append(
                f"{judged} in the interval that could not be judged:"
                f" {count(self._account.unjudgeable)}. Each counts as the best possible for one"
                " end, and as the worst possible for the other."
            )
        if self._account.amendments:
            lines.append(
                f"Losses corrected since they were given: {count(self._account.amendments)}."
                " This is the claim for the losses as they stand now."
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
            half = self.width(self._plan.bound.half_width, given=True)
            lines.append(
                "It is said of more than these items because whoever opened the session vouches"
                f" that the two differ by at most {half}."
            )
        elif self._plan.target == "population":
            lines.append(
                "It is said of more than these items, and holds if they are an independent sample"
                " of all of that kind."
            )
        elif self._plan.target == "runs":
            lines.append(
                "It is said of more than these answers, and holds if each is of a fresh run."
            )
        return lines

    @property
    def standing(self) -> str:
        """Sentence that the certificate is final or interim."""
        if self._account.closed:
            return "Final: the session is closed, and nothing can be added to it."
        return "Interim: the session is open; more labels may narrow the interval."

    @property
    def scale(self) -> str:
        """The scale of the losses."""
        low, high = self._scale.lower, self._scale.upper
        if self._plan.success is not None:
            return f"of a draw, 0 (a success: {self._plan.success} runs) or 1"
        if self._scale.kind == "zero_one":
            return "0 (right) or 1 (wrong)"
        better = "lower" if self._systems is None else f"below 0 {self._systems.a}"
        of = self.quantity if self.score.better == "lower" else "loss"
        return f"{of}, {low:.10g} to {high:.10g}, {better} is better"

    @property
    def sides(self) -> str | None:
        """Sentence on how often each side won; None unless two systems are compared."""
        return sides_words(self._status)

    @property
    def raters(self) -> str | None:
        """Sentence on the judgements of a panel and their agreement; None without a panel."""
        return raters_words(self._status)

    @property
    def upper(self) -> str:
        """The system that is better where a difference is above 0."""
        return "B" if self._systems is None else self._systems.b

    @property
    def answers(self) -> list[dict[str, str]]:
        """Questions with their answers, in the session's words."""
        return self._measure.answers(self._status)

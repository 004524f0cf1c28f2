"""A plan on the page of a new session: what it takes, in words, a curve and tables.

The page keeps the plan, which took seconds to simulate, and asks for it to be shown anew when
somebody chooses another precision of its curve, another pace or a cheaper policy.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

from fastapi import Response
from pydantic import BaseModel, Field

from celeus.api.insights.planning import (
    PlannedClaim,
    PlanningAnswer,
    PolicyPlanOut,
    RefusedOut,
    SimulatedOut,
)
from celeus.core.insights.figures import count
from celeus.core.insights.remarks import ALIKE, HOUR, MINUTE, MOST_MINUTES
from celeus.errors import InvalidValue
from celeus.units import PERCENT_SIGN
from celeus.web.pages import ManagesPage, page_router
from celeus.web.plan_curve import (
    Curve,
    Labels,
    curve_of,
    labels_at,
    labels_of,
    points_of,
)
from celeus.web.wording import counted, short

MOST_CLAIMS: Final = 60
_CHEAP: Final = ("sharp", "uniform")

router = page_router()


class PlanToShow(BaseModel):
    """A plan, and what it is shown for: a policy, a precision, and the pace of judges.

    ``items`` may be drawn.
    """

    plan: PlanningAnswer
    policy: str
    precision: float | None = Field(None, gt=0, allow_inf_nan=False)
    seconds: float = Field(gt=0, allow_inf_nan=False)
    items: int = Field(gt=0)
    compared: bool = False


@router.post("/sessions/new/plan")
async def plan(view: ManagesPage, body: PlanToShow) -> Response:
    """Show a plan: a part of the page of a new session."""
    if body.plan.claims is not None:
        return view.page("plan_table.html", shown=TablePlan(body.plan, body.items))
    return view.page("plan.html", shown=ShownPlan(body))


class Headline(NamedTuple):
    """The number to plan with, what it means, and where it is from."""

    figure: str
    details: str
    source: str = ""


class PolicyRow(NamedTuple):
    """Labels that a policy takes; with ``why`` it has no number, nothing else."""

    policy: str
    labels: str = ""
    most: str = ""
    time: str = ""
    why: str = ""


class CurveRow(NamedTuple):
    """A precision of the curve in numbers."""

    precision: str
    labels: str
    most: str
    hours: str
    others: Sequence[str]
    runs: str


class ShownPlan:
    """The plan of one interval at a precision and a pace."""

    def __init__(self, asked: PlanToShow) -> None:
        self.plan, self.compared = asked.plan, asked.compared
        self._asked, self._seconds, self.precision = asked, asked.seconds, asked.precision
        by_name = {plan.policy: plan for plan in asked.plan.policies}
        chosen = by_name.get(asked.policy)  # type: ignore[call-overload]
        if chosen is None:
            raise InvalidValue(
                "The plan does not have this policy.",
                field="policy",
                rule="one of " + ", ".join(by_name),
                value=asked.policy,
            )
        self.chosen: PolicyPlanOut = chosen
        open_plans = [plan for plan in asked.plan.policies if plan.refused is None]
        self.open = sorted(open_plans, key=lambda plan: plan is not chosen)

    @property
    def is_read(self) -> bool:
        """The precision was not asked for, but is read off the curve."""
        return self._asked.precision != self.plan.precision

    def _at(self, plan: PolicyPlanOut) -> Labels | None:
        if plan.refused is not None:
            return None
        if self._asked.precision is None or not self.is_read:
            return None if plan.expected is None else labels_of(plan.expected)
        return labels_at(plan, self._asked.precision)

    @cached_property
    def labels(self) -> dict[str, float] | None:
        """Labels at this precision, to be kept with a session."""
        found = self._at(self.chosen)
        if found is None:
            return None
        return {"median": found.median, "low": found.low, "high": found.high}

    @property
    def headline(self) -> Headline:
        """The expectation over all that may be true, of a policy that can be opened."""
        precision, floor = self._asked.precision, self.chosen.smallest_width
        found = self._at(self.chosen)
        if precision is not None and floor is not None and floor.assumed > precision:
            return Headline(
                "out of reach",
                f"A width of {short(precision)} takes more items than this pool has: judging all"
                f" of them gives about {short(floor.assumed)}.",
            )
        if found is None:
            return Headline(
                "not simulated",
                "Simulating a whole session took too long. Plan a coarser precision, or try again"
                " when the machine is less busy.",
            )
        if found.high == 0:
            known = "What is known beforehand makes the interval so narrow."
            return Headline("no labels", known)
        figure = f"about {counted(round(found.median), 'label')}"
        return Headline(figure, self._details(found), self._source(found))

    def _details(self, found: Labels) -> str:
        low, high = count(round(found.low)), count(round(found.high))
        most = "" if low == high else f"{low} to {high} in most cases, "
        time = _work(found.median * self._seconds)
        words = (
            f"{most}{_percent(found.median / self._asked.items)} of the pool, {time} at"
            f" {short(self._seconds)} s a label."
        )
        if found.reached < 1:
            spent = self.plan.budget < self.plan.items
            end = "the budget is spent" if spent else "all items are judged"
            words += f" In {_percent(1 - found.reached)} of cases {end} before the end is reached."
        return words

    def _source(self, found: Labels) -> str:
        if self.is_read:
            return "Read off the curve; “Plan again” simulates this precision itself."
        if not found.simulated:
            return "Drawn out from sessions simulated at coarser precisions."
        supposed = " that suppose the surrogate better and worse than it says"
        sessions = counted(found.runs, "simulated session")
        return f"From {sessions}{supposed if self.plan.informed else ''}."

    @cached_property
    def curve(self) -> Curve | None:
        """The curve on which a precision is chosen; None where there is none."""
        drawn = [plan for plan in self.open if len(points_of(plan)) > 1]
        if self._asked.precision is None or not drawn or drawn[0] is not self.chosen:
            return None
        return curve_of(drawn, self._asked.precision, self._seconds)

    @property
    def spoken(self) -> str:
        """The precision on the curve in words."""
        found, precision = self._at(self.chosen), self._asked.precision
        if found is None:
            return f"{precision}, beside the curve"
        median, low, high = (count(round(labels)) for labels in found[:3])
        return f"{precision:.15g}: about {median} labels, {low} to {high}"

    @property
    def rows(self) -> list[PolicyRow]:
        """Labels that each policy takes at this precision."""
        return [self._row(plan) for plan in self.plan.policies]

    def _row(self, plan: PolicyPlanOut) -> PolicyRow:
        if plan.refused is not None:
            return PolicyRow(plan.policy, why=_refused(plan.refused))
        found = self._at(plan)
        if found is None:
            return PolicyRow(plan.policy, why="not simulated")
        median, low, high = (count(round(labels)) for labels in found[:3])
        time = _work(found.median * self._seconds)
        return PolicyRow(plan.policy, median, f"{low}–{high}", time)

    @property
    def cheaper(self) -> str | None:
        """A policy that is likely to take so many fewer labels that the plan says so."""
        if self.chosen.expected is None:
            return None
        most = (1.0 - ALIKE) * self.chosen.expected.labels.median
        for plan in self.open:
            found = plan.expected
            if found and plan.policy in _CHEAP and found.reached > 0 and found.labels.median < most:
                return plan.policy
        return None

    @property
    def smallest(self) -> str:
        """The precision left when all items are judged."""
        if self.plan.target == "pool":
            if self.compared:
                return "With all items judged the difference is known exactly."
            return "There is no smallest width: with all items judged their mean is known exactly."
        floor = self.chosen.smallest_width
        if floor is None:
            return ""
        middle = "if the mean loss is in the middle of the scale"
        whole = "runs on these items" if self.plan.target == "runs" else "items like these"
        return (
            f"Even with all {counted(self.plan.items, 'item')} judged, the interval for all"
            f" {whole} is no narrower than {short(floor.assumed)}, or {short(floor.middle)}"
            f" {'if the two are equally good' if self.compared else middle}."
        )

    @property
    def assumed(self) -> str:
        """The simulation in words."""
        what = "difference" if self.compared else "mean loss"
        why = ""
        if not self.plan.informed:
            why = f" Without a surrogate, a {what} must be assumed"
            if self.compared:
                why += (
                    ", and that the two differ on every item that is asked for: the most labels it"
                    " can take"
                )
            why += "."
        return f"Simulated with a {what} of {short(self.plan.assumed_risk or 0.0)}.{why}"

    @property
    def numbers(self) -> list[CurveRow]:
        """The curve in numbers, of the first policy that can be opened, beside the others."""
        if not self.open or len(points_of(self.open[0])) < 2:
            return []
        return [
            CurveRow(
                precision=short(point.precision or 0.0),
                labels=count(round(point.labels.median)),
                most=f"{count(round(point.labels.low))}–{count(round(point.labels.high))}",
                hours=short(point.labels.median * self._seconds / HOUR),
                others=[self._beside(plan, point.precision or 0.0) for plan in self.open[1:]],
                runs=count(point.runs),
            )
            for point in points_of(self.open[0])
        ]

    @staticmethod
    def _beside(plan: PolicyPlanOut, precision: float) -> str:
        found = labels_at(plan, precision)
        return "" if found is None else count(round(found.median))

    @property
    def scenarios(self) -> list[str]:
        """Assumptions about the surrogate, as heads of columns."""
        if not self.plan.informed:
            return ["Labels"]
        return ["If the surrogate is right", "If the surrogate knows nothing"]

    @property
    def bounds(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Labels and their range by policy, for each of the scenarios."""
        both = [
            (plan.policy, [plan.surrogate_right or plan.surrogate_useless, plan.surrogate_useless])
            for plan in self.open
        ]
        kept = len(self.scenarios)
        return [(policy, [_bound(bound) for bound in found[-kept:]]) for policy, found in both]


class ClaimRow(NamedTuple):
    """Labels until a claim has its target."""

    value: str
    metric: str
    labels: str


class TablePlan:
    """The plan of a table of claims."""

    def __init__(self, plan: PlanningAnswer, items: int) -> None:
        self._plan, self._items = plan, items
        [policy] = plan.policies
        self._right, self._useless = policy.surrogate_right, policy.surrogate_useless

    @property
    def _expected(self) -> SimulatedOut | None:
        return self._right or self._useless

    @property
    def labels(self) -> dict[str, float] | None:
        """Labels until every target is met, to be kept with a session."""
        found = self._expected
        return None if found is None or found.labels is None else found.labels.model_dump()

    @property
    def headline(self) -> Headline:
        """Labels until every target is met."""
        return Headline(_figure(self._expected), f"until every target is met{self._details()}.")

    def _details(self) -> str:
        found = self._expected
        if found is None or found.labels is None:
            return ": simulating a whole session took too long"
        low, high = count(round(found.labels.low)), count(round(found.labels.high))
        most = f", {low} to {high} in {counted(found.runs, 'simulated session')}"
        words = "" if low == high else most
        words += f", {_percent(found.labels.median / self._items)} of the pool"
        reached = 1.0 if found.reached is None else found.reached
        if reached < 1:
            words += f"; in {_percent(1 - reached)} of them it never was"
        return words

    @property
    def worst(self) -> str | None:
        """Labels if the surrogates knew nothing."""
        if self._right is None or self._useless is None or self._useless.labels is None:
            return None
        return _figure(self._useless)

    @property
    def rows(self) -> list[ClaimRow]:
        """The slowest claims."""
        return [
            ClaimRow(
                claim.value or "All items",
                claim.metric,
                _figure(_of(claim)).removesuffix("s").removesuffix(" label").removeprefix("about "),
            )
            for claim in sorted(self._claims, key=_length, reverse=True)[:MOST_CLAIMS]
        ]

    @property
    def _claims(self) -> Sequence[PlannedClaim]:
        return self._plan.claims or ()

    @property
    def more(self) -> int:
        """The number of faster claims that are not shown."""
        return max(0, len(self._claims) - MOST_CLAIMS)

    @property
    def assumed(self) -> str:
        """The simulation in words."""
        risks = (self._plan.assumed_risks or {}).items()
        return ", ".join(f"a mean loss of {short(risk)} for {name}" for name, risk in risks)


def _of(claim: PlannedClaim) -> SimulatedOut:
    return claim.surrogate_right or claim.surrogate_useless


def _length(claim: PlannedClaim) -> float:
    labels = _of(claim).labels
    return float("inf") if labels is None else labels.median


def _figure(found: SimulatedOut | None) -> str:
    if found is None:
        return "not simulated"
    if found.labels is not None:
        return f"about {counted(round(found.labels.median), 'label')}"
    return f"more than {counted(found.more_than, 'label')}" if found.more_than else "not simulated"


def _refused(refused: RefusedOut) -> str:
    least = refused.smallest_reachable
    return "cannot be opened" if least is None else f"not below {short(least)}"


def _bound(found: SimulatedOut | None) -> tuple[str, str]:
    """Return labels and their range."""
    if found is None or found.labels is None:
        more = found.more_than if found else 0
        return (f"more than {count(more)}" if more else "not simulated"), ""
    labels = found.labels
    most = f"{count(round(labels.low))}–{count(round(labels.high))}"
    if found.runs == 1:
        most = "one session"
    if found.reached is not None and found.reached < 1:
        most += f", {_percent(found.reached)} arrive"
    return count(round(labels.median)), most


def _work(seconds: float) -> str:
    """Return how long labelling takes: in hours, of which a working day has fewer than 24."""
    minutes = round(seconds / MINUTE)
    if minutes < 1:
        return "less than a minute"
    if minutes <= MOST_MINUTES:
        return f"about {counted(minutes, 'minute')}"
    return f"about {counted(round(seconds / HOUR), 'hour')}"


def _percent(share: float) -> str:
    return f"{round(100 * share)}{PERCENT_SIGN}"

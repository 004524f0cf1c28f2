"""A plan on the page of a new session: what it takes, in words, a curve and tables.

The page keeps the plan, which took seconds to simulate, and sends it along when somebody chooses
another precision of its curve, another pace or a cheaper policy.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from celeus.api.insights.planning import (
    PlannedClaim,
    PlanningAnswer,
    PolicyPlanOut,
    RecentPace,
    RefusedOut,
    SimulatedOut,
)
from celeus.core.insights.figures import count, sure
from celeus.core.insights.remarks import ALIKE, HOUR, MINUTE, MOST_MINUTES
from celeus.errors import InvalidValue
from celeus.units import PERCENT_SIGN
from celeus.web.claim_form import ClaimForm
from celeus.web.forms import number_in
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
_PACES: Final = {"people": 30.0, "programs": 1.0}
"""Seconds that a label takes where nobody knows, by who judges."""
_PROGRAMS_BELOW: Final = 1.0
"""Seconds a label, of all judges together: whoever is faster is a program."""


class KeptPlan(BaseModel):
    """A plan as the page keeps it: made for the request ``asked``, of which ``items`` may be drawn.

    Of a table it has the slowest claims; ``more`` are faster.
    """

    asked: str
    items: int = Field(gt=0)
    plan: PlanningAnswer
    more: int = 0

    @classmethod
    def of(cls, claim: ClaimForm, plan: PlanningAnswer) -> "KeptPlan":
        """Return the plan that was made for a form."""
        items = claim.drawn[claim["audit"] != ""]
        kept = cls(asked=_settings(claim), items=max(items, 1), plan=plan)
        if plan.claims is not None:
            slowest = sorted(plan.claims, key=_length, reverse=True)
            kept.more = len(slowest[MOST_CLAIMS:])
            kept.plan = plan.model_copy(update={"claims": slowest[:MOST_CLAIMS]})
        elif claim.suggests and plan.suggested_precision:
            claim["precision"] = claim["suggested"] = f"{plan.suggested_precision.precision:.15g}"
        return kept

    @classmethod
    def sent(cls, form: str) -> "KeptPlan | None":
        """Return the plan in the form that the page has sent."""
        try:
            return cls.model_validate_json(form) if form else None
        except ValidationError as error:
            raise InvalidValue("The plan cannot be read.", field="plan") from error


def _settings(claim: ClaimForm) -> str:
    """Return what a plan is for; the curve of a single claim shows other precisions."""
    left = {"policies"} if claim.is_table else {"policies", "precision"}
    return claim.planning.model_dump_json(exclude_unset=True, exclude=left)


class Planner:
    """The planner beside the form: the plan that is kept, for what stands in the fields."""

    def __init__(
        self, claim: ClaimForm, kept: KeptPlan | None = None, *, refused: bool = False
    ) -> None:
        self._claim, self.kept, self.refused = claim, kept, refused
        self._precision: float | None = None
        try:
            if claim["precision"].strip():
                self._precision = number_in(claim["precision"], "precision")
            self.is_stale = kept is not None and not self._shows(kept)
        except InvalidValue:
            self.is_stale = True

    def _shows(self, kept: KeptPlan) -> bool:
        """Return whether a plan is for the settings as they are."""
        if kept.asked != _settings(self._claim):
            return False
        plan = kept.plan
        if plan.claims is not None:
            return True
        named = (policy for policy in plan.policies if policy.policy == self._claim["policy"])
        chosen = next(named, None)
        if chosen is None or self._precision == plan.precision:
            return chosen is not None
        return self._precision is not None and labels_at(chosen, self._precision) is not None

    @property
    def shown(self) -> "ShownPlan | TablePlan | None":
        """The plan; of other settings as it was simulated."""
        if self.kept is None:
            return None
        plan = self.kept.plan
        if plan.claims is not None:
            return TablePlan(self.kept)
        simulated = plan.precision if isinstance(plan.precision, float) else None
        return ShownPlan(
            plan,
            plan.policies[0].policy if self.is_stale else self._claim["policy"],
            simulated if self.is_stale else self._precision,
            self._seconds,
            self.kept.items,
            compared=self._claim.makes == "difference",
        )

    @property
    def labels(self) -> dict[str, int] | None:
        """Labels to be kept with a session; None where none are known for these settings."""
        found = None if self.is_stale or self.shown is None else self.shown.labels
        return {name: round(labels) for name, labels in found.items()} if found else None

    @property
    def words(self) -> str:
        """The state of the plan."""
        if self._claim.makes == "best":
            return (
                "How many labels the best of several systems takes is not planned here: that"
                " depends on how close they are. `celeus dev simulate --best` simulates it."
            )
        if self.refused:
            return "There is no plan for these settings."
        if self.kept is None:
            return "Choose what to evaluate, and the session is simulated here before you open it."
        if self.is_stale:
            return "These numbers are for other settings."
        if isinstance(self.shown, ShownPlan) and self.shown.is_read:
            return "Simulated just now, at other precisions."
        return "Simulated just now with these settings."

    @property
    def _recent(self) -> RecentPace | None:
        return None if self.kept is None else self.kept.plan.pace

    @property
    def _recent_judges(self) -> str:
        """Return who judged at the pace of the latest sessions."""
        slow = self._recent is None or self._recent.seconds_per_label >= _PROGRAMS_BELOW
        return "people" if slow else "programs"

    @property
    def pace(self) -> float:
        """Seconds a label takes unless somebody says otherwise: the project's own, if it fits."""
        judges = self._claim["judges"]
        if self._recent is not None and self._recent_judges == judges:
            return float(f"{self._recent.seconds_per_label:.2g}")
        return _PACES.get(judges, _PACES["people"])

    @property
    def pace_words(self) -> str:
        """The source of this pace."""
        pace, recent = short(self.pace), self._recent
        if recent is None:
            return (
                f"No recent session here tells how long a label takes: {pace} s is an assumption."
            )
        latest = "session" if recent.sessions == 1 else f"{recent.sessions} sessions"
        if self._recent_judges == self._claim["judges"]:
            return f"{pace} is the pace of the latest {latest}, of all judges together."
        return (
            f"The pace of the latest {latest} is that of {self._recent_judges}: {pace} is an"
            " assumption."
        )

    @property
    def _seconds(self) -> float:
        try:
            given = number_in(self._claim["pace"], "pace")
        except InvalidValue:
            return self.pace
        return given if given > 0 else self.pace

    @property
    def precision_words(self) -> str:
        """The meaning of a precision, and why it was suggested."""
        if self._precision is None or self._precision <= 0:
            return "Width of the interval to stop at."
        half = f"{self._precision / 2:.4g}"
        suggested = self.kept and self._claim.suggests and self.kept.plan.suggested_precision
        return (
            f"The session stops when the interval is {self._precision:.4g} wide: the score is known"
            f" to about ±\N{NO-BREAK SPACE}{half}."
            f"{f' Suggested: {suggested.reason}.' if suggested else ''}"
        )

    @property
    def alpha_words(self) -> str:
        """The meaning of an alpha."""
        try:
            alpha = number_in(self._claim["alpha"], "alpha")
        except InvalidValue:
            alpha = 0.0
        if not 0 < alpha < 1:
            return "Between 0 and 1."
        return f"The interval holds with probability {sure(alpha)}, however often you look."


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

    def __init__(  # noqa: PLR0913 -- the plan, and what it is shown for
        self,
        plan: PlanningAnswer,
        policy: str,
        precision: float | None,
        seconds: float,
        items: int,
        *,
        compared: bool,
    ) -> None:
        self.plan, self.precision, self.compared = plan, precision, compared
        self._seconds, self._items = seconds, items
        self.chosen = next(found for found in plan.policies if found.policy == policy)
        open_plans = [plan for plan in plan.policies if plan.refused is None]
        self.open = sorted(open_plans, key=lambda plan: plan is not self.chosen)

    @property
    def is_read(self) -> bool:
        """The precision was not asked for, but is read off the curve."""
        return self.precision != self.plan.precision

    def _at(self, plan: PolicyPlanOut) -> Labels | None:
        if plan.refused is not None:
            return None
        if self.precision is None or not self.is_read:
            return None if plan.expected is None else labels_of(plan.expected)
        return labels_at(plan, self.precision)

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
        precision, floor = self.precision, self.chosen.smallest_width
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
            f"{most}{_percent(found.median / self._items)} of the pool, {time} at"
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
        if self.precision is None or not drawn or drawn[0] is not self.chosen:
            return None
        return curve_of(drawn, self.precision, self._seconds)

    @property
    def spoken(self) -> str:
        """The precision on the curve in words."""
        found, precision = self._at(self.chosen), self.precision
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

    def __init__(self, kept: KeptPlan) -> None:
        self._plan, self._items, self.more = kept.plan, kept.items, kept.more
        [policy] = kept.plan.policies
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
            for claim in self._plan.claims or ()
        ]

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

"""Plan a session beforehand: how many labels each policy would need on a pool."""

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import AliasPath, BeforeValidator, ConfigDict, Field
from pydantic.config import JsonDict

from celeus import errors
from celeus.api.access.parameters import Manages, PoolId
from celeus.api.sessions.opening_models import AS_WHOLE, STRICT, ClaimsIn, Widths, by_metric
from celeus.api.wire.json_body import JsonRoute
from celeus.api.wire.problems import responses
from celeus.api.wire.records import FromRecord, wire_id
from celeus.api.wire.uploads import unless_gone
from celeus.core.plans.claim import Target
from celeus.operations.insights import planning

router = APIRouter(prefix="/v1/pools", tags=["pools"], route_class=JsonRoute)

PolicyName = Literal["sharp", "uniform", "celeus"]
WANTED: JsonDict = {"target": "pool", "alpha": 0.05, "precision": 0.05}

SIMULATED: JsonDict = {
    "runs": 40,
    "reached": 1.0,
    "labels": {"median": 546, "low": 498, "high": 611},
    "width": {"median": 0.0497, "low": 0.0492, "high": 0.05},
    "more_than": None,
}
POINT: JsonDict = {
    "precision": 0.05,
    "labels": {"median": 610, "low": 402, "high": 873},
    "reached": 1.0,
    "runs": 20,
    "extrapolated": False,
}
NOTE = (
    "The cheaper policy is likely to be sharp, with 610 labels against 764 of uniform: it draws"
    " most where the surrogate lets it expect that losses vary, which saves about 20 %."
)
PLANNED: JsonDict = {
    "pool_id": "pool_019aa3c4d5e67f8091a2b3c4d5e6f708",
    "items": 1737,
    "target": "pool",
    "alpha": 0.05,
    "precision": 0.05,
    "suggested_precision": {
        "precision": 0.05,
        "reason": "the mean loss is expected to be about 0.16",
    },
    "budget": 1737,
    "strategy": "A",
    "seed": 0,
    "assumed_risk": 0.163,
    "informed": True,
    "fixed_sample": 565,
    "notes": [NOTE],
    "pace": {"seconds_per_label": 24.2, "sessions": 3},
    "policies": [
        {
            "policy": "sharp",
            "refused": None,
            "warning": None,
            "smallest_width": {"assumed": 0.0, "middle": 0.0},
            "expected": POINT,
            "curve": [POINT],
            "surrogate_right": SIMULATED,
            "surrogate_useless": SIMULATED,
        }
    ],
}


class PlanningRequest(ClaimsIn):
    """The claim to plan for, as in an opening, and how much to simulate."""

    model_config = ConfigDict(**STRICT, json_schema_extra={"examples": [WANTED]})

    policies: list[PolicyName] | None = Field(
        None,
        min_length=1,
        max_length=20,
        description="Default: all of them; left out where a table of claims is planned.",
    )
    strategy: Literal["A", "B", "C"] | None = Field(
        None, description="Surrogate and proxy, where the items have probabilities."
    )
    risk: Widths | None = Field(
        None,
        description="Mean loss you expect, of several metrics one by name, of two systems the"
        " difference, loss of A less loss of B, of a check of a judge 1 - `tpr` and 1 - `tnr`;"
        " default: what the surrogate says, or that people agree with 85 % of the verdicts.",
    )
    runs: Annotated[int, Field(ge=1, le=200), AS_WHOLE] = Field(
        40,
        description="Sessions simulated of each policy and scenario, as far as the rounds of a plan"
        " go.",
    )
    seed: Annotated[int, Field(ge=0, le=2**31 - 1), AS_WHOLE] = Field(
        0, description="The same seed gives the same plan."
    )

    @property
    def request(self) -> planning.PlanRequest:
        """The request in the words of the operation."""
        risks = by_metric(self.risk)
        return planning.PlanRequest(
            claim=self.claim(),
            policies=None if self.policies is None else tuple(self.policies),
            strategy=self.strategy,
            risk=risks.pop(None, None),
            risks={name: risk for name, risk in risks.items() if name and risk is not None},
            table=self.table,
            runs=self.runs,
            seed=self.seed,
        )

    def answered(self, pool_id: UUID, found: planning.Planning) -> dict[str, Any]:
        """Return the plan, with what was asked for."""
        return vars(found) | {
            "pool_id": pool_id,
            "target": self.target,
            "alpha": self.alpha,
            "precision": self.precision if found.precision is None else found.precision,
            "seed": self.seed,
        }


class SpreadOut(FromRecord):
    """Median of the simulated sessions, and their 10 and 90 %."""

    median: float = Field(description="Half of the sessions came to less.")
    low: float = Field(description="The 10 % point: one in ten came to less.")
    high: float = Field(description="The 90 % point: one in ten came to more.")


class SimulatedOut(FromRecord):
    """The results of the simulated sessions of one policy."""

    runs: int = Field(description="Sessions brought to their end in the rounds of a plan.")
    reached: float | None = Field(description="Share that came to precision, answers or verdict.")
    labels: SpreadOut | None = Field(
        description="Labels until the stop; sessions that ended with budget or pool count too."
    )
    width: SpreadOut | None = Field(description="Width of the interval at the stop.")
    more_than: int | None = Field(
        description="Labels of a session that was not brought to its end, where none was."
    )


def _smallest(more: object) -> object:
    return more.get("smallest_reachable") if isinstance(more, dict) else more


class RefusedOut(FromRecord):
    """The reason why a policy cannot be opened for this claim."""

    code: str = Field(description="Code of the problem that an opening would be answered with.")
    detail: str = Field(description="What is wrong, in a sentence.")
    field: str | None = Field(
        description="Member of the request that it is about; null where it is several."
    )
    smallest_reachable: Annotated[float | None, BeforeValidator(_smallest)] = Field(
        validation_alias="more", description="For `unreachable_precision`."
    )


class SmallestWidth(FromRecord):
    """The width left when the whole pool is judged; 0 for target `pool`."""

    assumed: float = Field(description="At the assumed risk.")
    middle: float = Field(description="At a risk in the middle of the scale, the widest.")


class PlannedPoint(FromRecord):
    """The labels of a session that stops at one precision, over all that may be true.

    The simulated sessions suppose surrogates of different worth, and mean losses below and above
    what they say.
    """

    precision: float | None = Field(
        description="Interval width at which it stops; null where it stops at its answers."
    )
    labels: SpreadOut = Field(description="Labels until the stop.")
    reached: float = Field(description="Share that neither budget nor pool ended before.")
    runs: int = Field(description="Sessions simulated at this precision.")
    extrapolated: bool = Field(
        description="None was: the labels follow from those at coarser precisions, and grow as"
        " 1 / precision^2."
    )


class SuggestedPrecision(FromRecord):
    """A precision to begin with."""

    precision: float = Field(description="Interval width on the scale of the losses.")
    reason: str = Field(description="Why, for people.")


class PolicyPlanOut(FromRecord):
    """The labels that one policy would need."""

    policy: PolicyName = Field(description="How items would be chosen and bet on.")
    refused: RefusedOut | None = Field(
        validation_alias="refusal", description="Why it cannot be opened; null where it can."
    )
    warning: str | None = Field(description="Risks for which the precision is out of reach.")
    smallest_width: SmallestWidth | None = Field(
        validation_alias="floor",
        description="No number of labels gets below it; null where the policy is refused.",
    )
    expected: PlannedPoint | None = Field(
        None,
        description="The number to plan with, a forecast: the point of `curve` for what was asked."
        " Null where too little was simulated for it, and of a table.",
    )
    curve: list[PlannedPoint] = Field(
        [], description="Labels by precision, from coarse to fine; each is half the one before."
    )
    surrogate_right: SimulatedOut | None = Field(
        validation_alias="right",
        description="If the surrogate means what it says; null where none tells items apart.",
    )
    surrogate_useless: SimulatedOut | None = Field(
        validation_alias="useless",
        description="If losses are the same and the surrogate knows nothing of them.",
    )


class PlannedClaim(FromRecord):
    """The labels that one claim of a table would need, counted over the whole session by then.

    Where no session ended in the rounds there were, they are those of the one that came furthest.
    """

    metric: str = Field(
        validation_alias=AliasPath("claim", "metric"), description="Name of the metric in the pool."
    )
    column: str | None = Field(
        validation_alias=AliasPath("claim", "column"),
        description="The group column; null for all items.",
    )
    value: str | None = Field(
        validation_alias=AliasPath("claim", "value"),
        description="Value of the group in that column; null for all items.",
    )
    items: int = Field(
        validation_alias=AliasPath("claim", "items"),
        description="Items of the pool that the claim is about.",
    )
    level: float | None = Field(description="Null of a group that is judged whole.")
    precision: float | None = Field(
        validation_alias=AliasPath("claim", "precision"),
        description="Width at which its target is met; null where it has questions only.",
    )
    surrogate_right: SimulatedOut | None = Field(
        validation_alias="right",
        description="If the surrogate means what it says; null where none tells items apart.",
    )
    surrogate_useless: SimulatedOut = Field(
        validation_alias="useless",
        description="If losses are the same and the surrogate knows nothing of them.",
    )


class RecentPace(FromRecord):
    """The pace of labels in the latest sessions of the project, of all their judges together."""

    seconds_per_label: float = Field(description="The median of these sessions.")
    sessions: int = Field(description="How many they are, 5 at most; some pace is known of each.")


class PlanningAnswer(FromRecord):
    """The labels that each policy would need, by simulation; nothing of it is certified."""

    model_config = ConfigDict(json_schema_extra={"examples": [PLANNED]})

    pool_id: Annotated[str, wire_id("pool")] = Field(description="The pool that was planned for.")
    items: int = Field(description="How many items it has.")
    target: Target = Field(description="As it was asked for: the pool, or its population.")
    alpha: float = Field(
        description="As it was asked for: how often the interval may miss the truth."
    )
    precision: float | dict[str, float | None] | None = Field(
        description="Interval width at which sessions stop, as it was asked for; the suggested one"
        " where neither precision nor question nor verdict was."
    )
    suggested_precision: SuggestedPrecision | None = Field(
        None,
        validation_alias="suggestion",
        description="A precision that suits scale and pool; null of a table.",
    )
    budget: int = Field(description="Most labels of a simulated session.")
    strategy: str | None = Field(
        description="How probabilities of the items become surrogate and proxy; null where they"
        " have none."
    )
    seed: int = Field(description="Gives the same numbers again for the same request.")
    assumed_risk: float | None = Field(
        validation_alias="risk", description="Mean loss of the simulated pools; null of a table."
    )
    assumed_risks: dict[str, float] | None = Field(
        None, validation_alias="risks", description="Of a table of claims the same, by metric."
    )
    informed: bool = Field(description="A surrogate tells the items of this pool apart.")
    fixed_sample: int | None = Field(
        description="Labels of a fixed sample of the same precision that was told the variance"
        " beforehand; of two systems of a paired test of 90 % power that was told the difference,"
        " too, a guide from above. Null where only questions are asked, and of a table."
    )
    notes: list[str] = Field(
        [],
        description="Remarks on these numbers, in plain sentences: which policy is cheaper and why,"
        " what is made of guesses that claim to be certain, what a fixed sample would take.",
    )
    pace: RecentPace | None = Field(
        None, description="How fast this project judges; null where no recent session tells."
    )
    policies: list[PolicyPlanOut] = Field(
        description="Of a table the labels until all of its targets are met, under the one policy."
    )
    claims: list[PlannedClaim] | None = Field(
        None, description="The claims of a table that have a target, in the order of a session's."
    )


@router.post(
    "/{pool_id}/planning",
    operation_id="plan_session",
    summary="How many labels each policy would need",
    response_model=PlanningAnswer,
    responses=responses(
        errors.InvalidValue,
        errors.NothingToJudge,
        errors.UnreachablePrecision,
        errors.PoolNotFound,
        errors.PoolNotSealed,
        errors.PlanningBusy,
        errors.ProcessEnded,
    ),
)
async def plan_session(
    context: Manages, pool_id: PoolId, body: PlanningRequest, request: Request
) -> dict[str, Any]:
    """Sessions simulated on the pool's own scores, with losses drawn from the surrogate.

    Simulates a number of rounds known beforehand, some seconds' worth, and keeps nothing. A
    surrogate that is off changes the numbers, and never what a session certifies.
    """
    wanted = body.request
    found = await unless_gone(request, planning.plan_session(context, pool_id, wanted))
    return body.answered(pool_id, found)

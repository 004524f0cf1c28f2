"""Plan a session before it is opened: what each policy would need on this pool."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.core.eprocess import Interval
from app.core.plan import Claim, Plan, make_plan, precision_warning
from app.core.planning import Floor, Outcome, Summary, check_risk, summary
from app.core.policies import POLICIES, SIMULATION_ONLY, policy_named
from app.core.pool import Pool
from app.core.randomness import commitment
from app.core.surrogates import Scores, Strategy, scores
from app.errors import InvalidValue, PlanningBusy, Refusal
from app.operations.planningjob import Job, scenarios
from app.operations.plannings import told
from app.operations.rooms import Rooms
from app.operations.sessions import default_strategy, facts_of, sealed_pool

GUESSES = ("surrogate.", "dispersion_f", "entropy_f")
"""Columns a surrogate comes from."""
NO_COMMITMENT = commitment(b"")
"""Of a plan that nothing is drawn by."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be planned, and how much is simulated for it.

    ``risk`` is the mean loss expected, None for what the surrogate says; ``runs`` are simulated of
    each policy and scenario, as far as time allows.
    """

    claim: Claim
    policies: tuple[str, ...]
    strategy: Strategy | None = None
    risk: float | None = None
    runs: int = 40
    seed: int = 0


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """What one policy would need; with a ``refusal`` it could not be opened and nothing else is.

    ``right`` and ``useless`` say it for a surrogate that means what it says and for one that knows
    nothing; ``right`` is None where no surrogate tells items apart.
    """

    policy: str
    refusal: Refusal | None = None
    warning: str | None = None
    floor: Floor | None = None
    right: Summary | None = None
    useless: Summary | None = None


@dataclass(frozen=True, slots=True)
class Planning:
    """What all policies would need, and the mean loss that was assumed for it."""

    items: int
    budget: int
    strategy: str | None
    risk: float
    informed: bool
    policies: list[PolicyPlan]


def plannable() -> tuple[str, ...]:
    """Policies that can run where losses are not known beforehand, the default first."""
    return tuple(name for name in POLICIES if name not in SIMULATION_ONLY)


async def plan_session(rooms: Rooms, pool_id: UUID, wanted: Wanted) -> Planning:
    """Simulate sessions on a sealed pool with losses drawn from its surrogate.

    Refuses what opening would refuse to every policy asked for, and a claim with no end to plan
    for. Takes `planning_seconds` at most and answers with what was simulated until then.
    """
    if wanted.claim.precision is None and not wanted.claim.questions:
        raise InvalidValue(
            "Without a precision or a question a session has no end that could be planned.",
            field="precision",
            rule="a width, or questions in its place",
            value=None,
        )
    seconds = rooms.settings.planning_seconds
    with rooms.plannings.place(seconds):
        pool = await sealed_pool(rooms, pool_id)
        prepared = await asyncio.to_thread(_prepared, pool, wanted)
        plans = prepared.plans

        def job(deadline: float) -> Job:
            return Job(
                plans=list(plans.values()),
                scores=prepared.scores,
                whole=pool.scale.kind == "zero_one",
                guessed=any(name.startswith(GUESSES) for name in pool.columns),
                risk=wanted.risk,
                runs=wanted.runs,
                seed=wanted.seed,
                deadline=deadline,
            )

        lines = await told(job, seconds)
    if not lines:
        raise PlanningBusy("The machine is too busy to simulate anything in time; try again.")
    head, found = lines[0], lines[1:]
    made = _summed_up(plans, head, found)
    refused = {name: PolicyPlan(name, refusal=one) for name, one in prepared.refused.items()}
    return Planning(
        items=pool.items,
        budget=next(iter(plans.values())).budget,
        strategy=prepared.strategy,
        risk=head["risk"],
        informed=head["informed"],
        policies=[(made | refused)[name] for name in dict.fromkeys(wanted.policies)],
    )


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Plans by policy, refusals of the others, and what all of them know of the items."""

    plans: dict[str, Plan]
    refused: dict[str, Refusal]
    strategy: Strategy | None
    scores: Scores


def _prepared(pool: Pool, wanted: Wanted) -> _Prepared:
    """What opening would make of the claim; refuses what it would refuse to every policy."""
    check_risk(wanted.risk, Interval(pool.scale.lower, pool.scale.upper))
    strategy = wanted.strategy or default_strategy(pool)
    known = scores(pool, strategy)
    facts = facts_of(pool)
    plans: dict[str, Plan] = {}
    refused: dict[str, Refusal] = {}
    for name in wanted.policies:
        policy = policy_named(name)
        try:
            plans[name] = make_plan(wanted.claim, facts, policy, NO_COMMITMENT, strategy)
        except Refusal as refusal:
            refused[name] = refusal
    if not plans:
        raise next(iter(refused.values()))
    return _Prepared(plans, refused, strategy, known)


def _summed_up(
    plans: Mapping[str, Plan], head: dict[str, Any], found: Sequence[dict[str, Any]]
) -> dict[str, PolicyPlan]:
    """The lines of the simulation, by policy."""
    made: dict[str, PolicyPlan] = {}
    for at, (name, plan) in enumerate(plans.items()):
        by_scenario = {
            scenario: _summary(found, at, scenario)
            for scenario in scenarios(plan, informed=head["informed"])
        }
        made[name] = PolicyPlan(
            name,
            warning=precision_warning(plan, plan.precision),
            floor=Floor(*head["floors"][at]),
            # A policy that uses no scores needs the same, whatever the surrogate is worth.
            right=by_scenario.get("right", by_scenario["useless"]) if head["informed"] else None,
            useless=by_scenario["useless"],
        )
    return made


def _summary(found: Sequence[dict[str, Any]], plan: int, scenario: str) -> Summary:
    own = [line for line in found if (line["plan"], line["scenario"]) == (plan, scenario)]
    outcomes = [Outcome(*line["outcome"]) for line in own if "outcome" in line]
    return summary(outcomes, max((line["labels"] for line in own if "labels" in line), default=0))

"""Plan a session before it is opened: what each policy would need on this pool."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any
from uuid import UUID

from sqlalchemy import text

from celeus.core.insights import remarks
from celeus.core.insights.curve import Point, Suggestion, Tempering, points, suggested, widths
from celeus.core.insights.planning import (
    FixedSample,
    Floor,
    SimulationOutcome,
    Summary,
    assumption_of,
    check_risk,
    summary,
)
from celeus.core.insights.table_planning import (
    TableOutcome,
    check_assumption,
    claim_summary,
    stream_summary,
    with_targets,
)
from celeus.core.interval import Interval
from celeus.core.plans.judge_check import JudgeCheck
from celeus.core.plans.plan import Claim, Plan, PoolFacts, make_plan, precision_warning
from celeus.core.plans.plan_request import (
    SessionRequest,
    TableRequest,
    default_strategy,
    facts_of,
    is_endless,
    table_plan,
)
from celeus.core.plans.policies import DEFAULT_POLICY, policy_named
from celeus.core.plans.table_plan import TableClaim, TablePlan
from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import Scores, Strategy, scores
from celeus.core.pools.table_pool import table_of
from celeus.core.randomness import commitment
from celeus.errors import InvalidValue, PlanningBusy, Refusal
from celeus.operations.insights.planning_worker import Job, TableJob, scenarios
from celeus.operations.runtime.context import Context
from celeus.operations.runtime.gathering import gather
from celeus.operations.runtime.workers import Bounds
from celeus.operations.sessions.sessions import pool_for
from celeus.units import check_asked_alpha

EVERY_POLICY = ("sharp", "uniform", "celeus")
GUESSES = ("surrogate.", "dispersion_f", "entropy_f")
"""Columns a surrogate comes from."""
MODULE = "celeus.operations.insights.planning_worker"
BOUNDS = Bounds(seconds=120.0, processor_seconds=60.0)
"""A fuse for machines that are far too busy: a plan that meets it is refused, never shortened."""
LOOKED_BACK = 100
"""Sessions among which those with a pace are sought."""
_PACES = text(
    """
    SELECT seconds_per_label FROM (
        SELECT session_id, seconds_per_label FROM sessions
        WHERE project_id = :project_id ORDER BY session_id DESC LIMIT :most
    ) AS latest
    WHERE seconds_per_label IS NOT NULL ORDER BY session_id DESC LIMIT 5
    """
)
RATES = JudgeCheck("", "", ("tpr", "tnr")).metrics
"""Rates that are assumed of a judge whose check is planned."""
NO_COMMITMENT = commitment(b"")
"""The seed's commitment in a plan that draws nothing."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A planning request: the claim, or the ``table`` of claims, and how much to simulate for it.

    ``risk`` is the mean loss expected, None for what the surrogate says, and ``risks`` the same by
    metric; ``runs`` are simulated of each policy and scenario, as far as the rounds of a plan go.
    ``policies`` None: all of them, of a table the one it has.
    """

    claim: Claim
    policies: tuple[str, ...] | None = None
    strategy: Strategy | None = None
    risk: float | None = None
    risks: Mapping[str, float] = field(default_factory=dict)
    table: TableRequest | None = None
    runs: int = 40
    seed: int = 0


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """The plan of one policy; with a ``refusal`` it cannot be opened and the rest is None.

    ``right`` and ``useless`` say it for a surrogate that means what it says and for one that knows
    nothing; ``right`` is None where no surrogate distinguishes items. The ``curve`` says it for all
    that may be true, by precision; ``expected`` is its point for what was asked, None where not
    even its first was simulated.
    """

    policy: str
    refusal: Refusal | None = None
    warning: str | None = None
    floor: Floor | None = None
    right: Summary | None = None
    useless: Summary | None = None
    expected: Point | None = None
    curve: Sequence[Point] = ()


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """Simulated results of one claim of a table, with a surrogate that is right and one of no use.

    ``right`` is None where no surrogate distinguishes items.
    """

    claim: TableClaim
    right: Summary | None
    useless: Summary

    @property
    def level(self) -> float | None:
        """Level of the claim; None of a group that is judged whole."""
        return None if self.claim.whole else self.claim.level


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds that a label took in the latest ``sessions`` whose pace is known, their median."""

    seconds_per_label: float
    sessions: int


@dataclass(frozen=True)
class Planning:
    """The plans of all policies, and the mean loss they assume.

    ``precision`` is that of the one claim, as asked or, where nothing is, as ``suggested``.
    ``fixed_sample`` is what a fixed sample of known variance would take, None where there
    is none to compare with. Of a table ``risk`` is None, ``risks`` are those assumed by metric,
    ``claims`` those with a target. ``notes`` are remarks on the numbers, in sentences, and ``pace``
    is that of the project's latest sessions, None where none has one.
    """

    items: int
    budget: int
    strategy: str | None
    risk: float | None
    informed: bool
    fixed_sample: int | None
    policies: list[PolicyPlan]
    risks: Mapping[str, float] | None = None
    claims: list[ClaimPlan] | None = None
    precision: float | None = None
    suggestion: Suggestion | None = None
    notes: Sequence[str] = ()
    pace: Pace | None = None


async def plan_session(context: Context, pool: UUID | Pool, request: PlanRequest) -> Planning:
    """Simulate sessions on a sealed pool with losses drawn from its surrogate.

    ``pool`` is its id, or the pool itself where it is not kept. Refuses what opening would refuse
    to every policy asked for, and a table with no end to plan for; one claim without an end is
    planned with the precision suggested. Equal requests for a pool get equal plans, but for the
    pace.
    """
    check_asked_alpha(request.claim.alpha)
    async with context.process(PlanningBusy):
        if not isinstance(pool, Pool):
            pool = await pool_for(context, pool, request.claim)
        if pool.lineup is not None:
            raise InvalidValue(
                "How many labels the best of several systems takes is not planned here.",
                field="pool_id",
                rule="a pool of one system or of two; `celeus dev simulate --best` takes several",
                value=f"{len(pool.lineup.names)} systems",
            )
        recent = await _pace(context)
        if pool.metrics or request.table is not None:
            return replace(await _plan_table(pool, request), pace=recent)
        if request.risks:
            raise InvalidValue(
                "A pool of one loss has one mean loss.", field="risk", rule="a number, or left out"
            )
        prepared = await asyncio.to_thread(_prepare, pool, request)
        plans = prepared.plans

        job = Job(
            ladders=list(prepared.ladders.values()),
            asked=[ladder.index(plans[name]) for name, ladder in prepared.ladders.items()],
            scores=prepared.scores,
            whole=_whole(pool),
            guessed=_guessed(pool),
            risk=request.risk,
            runs=request.runs,
            seed=request.seed,
        )
        head, results = await _simulated(job)
    planned = _summarise(prepared, head, results)
    fixed_sample = None if head["fixed_sample"] is None else FixedSample(*head["fixed_sample"])
    tempered = None if head["tempered"] is None else Tempering(*head["tempered"])
    both = [planned[name].expected if name in planned else None for name in ("sharp", "uniform")]
    notes = (
        remarks.cheaper(*both, informed=head["informed"]),
        remarks.tempered(tempered, whole=_whole(pool)),
        remarks.fixed(fixed_sample, pool.items),
    )
    refusals = {
        name: PolicyPlan(name, refusal=refusal) for name, refusal in prepared.refused.items()
    }
    return Planning(
        items=pool.items,
        budget=next(iter(plans.values())).budget,
        strategy=prepared.strategy,
        risk=head["risk"],
        informed=head["informed"],
        fixed_sample=None if fixed_sample is None else fixed_sample.informed,
        policies=[(planned | refusals)[name] for name in dict.fromkeys(_policies(request))],
        precision=next(iter(plans.values())).precision,
        suggestion=prepared.suggestion,
        notes=[note for note in notes if note is not None],
        pace=recent,
    )


async def _pace(context: Context) -> Pace | None:
    async with context.transaction() as db:
        found = await db.execute(_PACES, {"project_id": context.project_id, "most": LOOKED_BACK})
        paces = [row.seconds_per_label for row in found]
    return Pace(median(paces), len(paces)) if paces else None


def _policies(request: PlanRequest) -> tuple[str, ...]:
    return request.policies or EVERY_POLICY


def _check_once(claim: Claim) -> None:
    """Refuse a claim whose sessions would be simulated with items that are run again."""
    if claim.repeats:
        rule = "left out of a plan; the default budget is twice what a precision takes at worst"
        message = "How many runs a session takes follows from how alike the runs of an item are."
        raise InvalidValue(f"{message} `repeats` is {rule}.", field="repeats", rule=rule)


def _endless() -> InvalidValue:
    return InvalidValue(
        "Without a precision, a question or a verdict a session has no end to plan for.",
        field="precision",
        rule="a precision, questions or decide",
        value=None,
    )


async def _simulated(job: Job | TableJob) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the child's first answer, and its answers for every session."""
    frames, failure = await gather(MODULE, job.frame, BOUNDS)
    if failure is not None:
        if failure.reason in {"answer", "status"}:
            raise failure.refusal from failure
        raise PlanningBusy("The machine is too busy to simulate anything in time; try again.")
    head, *results = (frame.values for frame in frames)
    return head, results


async def _plan_table(pool: Pool, request: PlanRequest) -> Planning:
    """The plan of a table of claims; refuses what its opening would refuse, and one without end."""
    opening = SessionRequest(request.claim, strategy=request.strategy, table=request.table)
    if request.policies is not None:
        raise InvalidValue(
            "A session that makes a table of claims has one way to draw and bet.",
            field="policies",
            rule="left out where a table of claims is planned",
            value=request.policies,
        )
    plan = await asyncio.to_thread(table_plan, opening, pool, NO_COMMITMENT)
    if is_endless(plan):
        raise _endless()
    risks = _risks(plan, request)
    table = await asyncio.to_thread(table_of, pool, plan.cut_by)
    if plan.check is not None:
        # Refused before anything is simulated
        await asyncio.to_thread(check_assumption, plan.check, table, risks)
    head, results = await _simulated(TableJob(plan, table, risks, request.runs, request.seed))
    right, useless = (
        [TableOutcome(*result["outcome"]) for result in results if result["scenario"] == name]
        for name in ("right", "useless")
    )
    informed = head["informed"]
    return Planning(
        items=pool.items,
        budget=plan.budget,
        strategy=None,
        risk=None,
        informed=informed,
        fixed_sample=None,
        policies=[
            PolicyPlan(
                DEFAULT_POLICY,
                right=stream_summary(right) if informed else None,
                useless=stream_summary(useless),
            )
        ],
        risks=head["risks"],
        claims=[
            ClaimPlan(
                claim,
                claim_summary(right, index) if informed else None,
                claim_summary(useless, index),
            )
            for index, claim in enumerate(with_targets(plan).claims)
            if claim.wants
        ],
        notes=() if plan.check is None else (remarks.NEAR_THE_VALUE,),
    )


def _risks(plan: TablePlan, request: PlanRequest) -> dict[str, float]:
    """The mean losses expected, by metric; refuses what no metric can have.

    Of a check they are 1 - tpr and 1 - tnr, whatever is asked.
    """
    metrics = plan.metrics if plan.check is None else RATES
    names = [metric.name for metric in metrics]
    risks = dict(request.risks)
    if request.risk is not None:
        risks |= dict.fromkeys(names, request.risk)
    for name in risks:
        if name not in names:
            raise InvalidValue(
                f"There is no metric {name}.",
                field="risk",
                rule="by the names of metrics: " + ", ".join(names),
                value=name,
            )
    for metric in metrics:
        check_risk(risks.get(metric.name), metric.scale.interval)
    if plan.check is not None and len(risks) == 1:
        rule = "both of tpr and tnr, or one number for the two"
        raise InvalidValue("A rate alone says nothing.", field="risk", rule=rule, value=[*risks])
    return risks


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Plans by policy, refusals of the others, and the surrogate scores they share.

    The ``ladders`` hold the same plans and those of other precisions, from coarse to fine.
    """

    plans: dict[str, Plan]
    ladders: dict[str, list[Plan]]
    refused: dict[str, Refusal]
    strategy: Strategy | None
    scores: Scores
    suggestion: Suggestion


def _prepare(pool: Pool, request: PlanRequest) -> _Prepared:
    """Plan the claim for every policy; refuses a claim that every policy refuses."""
    scale = pool.scale.interval
    check_risk(request.risk, scale)
    strategy = request.strategy or default_strategy(pool)
    surrogates = scores(pool, strategy)
    assumption = assumption_of(
        surrogates, scale, whole=_whole(pool), has_surrogate=_guessed(pool), risk=request.risk
    )
    suggestion = suggested(assumption, scale, pool.items)
    claim = request.claim
    _check_once(claim)
    if claim.precision is None and claim.decide is None and not claim.questions:
        claim = replace(claim, precision=suggestion.precision)
    facts = facts_of(pool)
    plans: dict[str, Plan] = {}
    ladders: dict[str, list[Plan]] = {}
    refusals: dict[str, Refusal] = {}
    for name in _policies(request):
        policy = policy_named(name)
        try:
            plans[name] = make_plan(claim, facts, policy, NO_COMMITMENT, strategy)
        except Refusal as refusal:
            refusals[name] = refusal
        else:
            ladders[name] = _ladder(plans[name], claim, facts, scale)
    if not plans:
        raise next(iter(refusals.values()))
    return _Prepared(plans, ladders, refusals, strategy, surrogates, suggestion)


def _ladder(plan: Plan, claim: Claim, facts: PoolFacts, scale: Interval) -> list[Plan]:
    """The plan among those of other precisions that can be opened, from coarse to fine."""
    if claim.precision is None:
        return [plan]
    found = []
    for width in widths(claim.precision, scale):
        if width == claim.precision:
            found.append(plan)
            continue
        other = replace(claim, precision=width)
        with suppress(Refusal):
            found.append(make_plan(other, facts, plan.policy, NO_COMMITMENT, plan.strategy))
    return found


def _guessed(pool: Pool) -> bool:
    return any(name.startswith(GUESSES) for name in pool.columns)


def _whole(pool: Pool) -> bool:
    """Losses are at the ends of their scale, or a difference of such; also where none says so."""
    if pool.scale.kind == "difference":
        graded = pool.systems is not None and pool.systems.loss.kind == "bounded"
        return pool.scale.upper == 1.0 and not graded
    return pool.scale.kind == "zero_one"


def _summarise(
    prepared: _Prepared, head: dict[str, Any], results: Sequence[dict[str, Any]]
) -> dict[str, PolicyPlan]:
    """The lines of the simulation, by policy."""
    summaries: dict[str, PolicyPlan] = {}
    for index, (name, plan) in enumerate(prepared.plans.items()):
        by_scenario = {
            scenario: _summary(results, index, scenario)
            for scenario in scenarios(plan, informed=head["informed"])
        }
        floor, ladder = Floor(*head["floors"][index]), prepared.ladders[name]
        curve = points(ladder, floor.assumed, _climbed(results, index))
        summaries[name] = PolicyPlan(
            name,
            warning=precision_warning(plan, plan.precision),
            floor=floor,
            expected=curve[ladder.index(plan)] if curve else None,
            curve=curve,
            # A policy that uses no scores needs the same, whatever the surrogate is worth.
            right=by_scenario.get("right", by_scenario["useless"]) if head["informed"] else None,
            useless=by_scenario["useless"],
        )
    return summaries


def _summary(results: Sequence[dict[str, Any]], plan: int, scenario: str) -> Summary:
    lines = [line for line in results if (line["plan"], line.get("scenario")) == (plan, scenario)]
    outcomes = [SimulationOutcome.of(line["outcome"]) for line in lines if "outcome" in line]
    return summary(outcomes, max((line["labels"] for line in lines if "labels" in line), default=0))


def _climbed(
    results: Sequence[dict[str, Any]], plan: int
) -> dict[tuple[int, int], SimulationOutcome]:
    """The sessions of a curve by place and run; the runs of every place came in their order."""
    found: dict[tuple[int, int], SimulationOutcome] = {}
    runs: Counter[int] = Counter()
    for line in results:
        if line["plan"] == plan and "at" in line and "outcome" in line:
            width = line["at"]
            found[width, runs[width]] = SimulationOutcome.of(line["outcome"])
            runs[width] += 1
    return found

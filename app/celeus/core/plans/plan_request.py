"""Requests for a session, and the plan made of a request and a pool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from celeus.core.plans.best_plan import BestPlan, make_best
from celeus.core.plans.judge_check import JudgeCheck
from celeus.core.plans.plan import Claim, Plan, PoolFacts, make_plan
from celeus.core.plans.policies import (
    DEFAULT_POLICY,
    POLICIES,
    SIMULATION_ONLY,
    Policy,
    policy_named,
)
from celeus.core.plans.stopping import Question
from celeus.core.plans.table_plan import (
    BETA,
    Account,
    SmallGroups,
    TablePlan,
    TableSettings,
    plan_table,
)
from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import Strategy, strategies
from celeus.core.pools.table_pool import table_of
from celeus.errors import InvalidValue
from celeus.units import check_asked_alpha

ENDLESS = (
    "The session has neither a precision nor a question: it goes on until its budget is spent, by"
    " default until every item of the pool is judged."
)


@dataclass(frozen=True, slots=True)
class TableRequest:
    """A request for a table of claims; an entry under the name None applies to every metric.

    ``groups`` are group columns, each of whose values gets claims; the rest is as in
    ``TableSettings``. With a ``check`` metrics are its measures.
    """

    groups: Sequence[str] = ()
    precision: Mapping[str | None, float | None] = field(default_factory=dict)
    group_precision: Mapping[str | None, float | None] = field(default_factory=dict)
    questions: Sequence[tuple[str | None, Question]] = ()
    group_questions: Sequence[tuple[str | None, Question]] = ()
    account: Account = "each"
    small_groups: SmallGroups = "merge"
    reserve: float = 0.0
    levels: Sequence[float] | None = None
    check: JudgeCheck | None = None


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A request for a session; None selects the default.

    ``best``: seek the best of the pool's systems. ``table``: make claims about groups or metrics; a
    session on a pool of metrics always does.
    """

    claim: Claim
    policy: str | None = None
    strategy: Strategy | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    best: bool = False
    table: TableRequest | None = None


def plan_of(request: SessionRequest, pool: Pool, commitment: str) -> Plan | BestPlan | TablePlan:
    """Return the plan of a session on the pool; ``commitment`` is the hash of its seed.

    Raises InvalidValue for policies that are unknown or guarantee nothing, and for values outside
    their ranges; UnreachablePrecision for a precision that no pool risk could reach.
    """
    check_asked_alpha(request.claim.alpha)
    if request.best:
        return _best_plan(request, pool, commitment)
    if request.table is not None or pool.metrics:
        return table_plan(request, pool, commitment)
    if pool.lineup is not None:
        raise InvalidValue(
            "The pool has several systems, each with a loss of its own.",
            field="best",
            rule="true: seek the best of them; to measure one of them, or to compare two, upload"
            " them as a pool of their own",
            value=False,
        )
    strategy = request.strategy or default_strategy(pool)
    return make_plan(request.claim, facts_of(pool), policy_of(request), commitment, strategy)


def _best_plan(request: SessionRequest, pool: Pool, commitment: str) -> BestPlan:
    """Return the plan of a session that seeks the best; its only parameter is beta."""
    asked = {"policy": request.policy, "strategy": request.strategy, **request.parameters}
    for name, value in asked.items():
        if name != "beta" and value is not None:
            raise InvalidValue(
                "A session that seeks the best of several systems has one way to draw and bet.",
                field=name,
                rule="left out where `best` is true",
                value=value,
            )
    if pool.weights is not None:
        raise InvalidValue(
            "The best is sought among systems whose items all count the same.",
            field="pool_id",
            rule="a pool without weights",
        )
    return make_best(pool, request.claim, commitment, asked.get("beta"))


def table_plan(request: SessionRequest, pool: Pool, commitment: str) -> TablePlan:
    """Return the plan of a session that makes a table of claims; its only parameter is beta."""
    claim, table = request.claim, request.table or TableRequest()
    asked: dict[str, Any] = {
        setting.name: getattr(claim, setting.name)
        for setting in fields(Claim)
        if setting.name not in {"alpha", "budget", "fixed", "precision", "questions", "subject"}
        and getattr(claim, setting.name) != setting.default
    }
    asked |= {"policy": request.policy, "strategy": request.strategy, **request.parameters}
    for name, value in asked.items():
        if name != "beta" and value is not None:
            raise InvalidValue(
                "A session that makes a table of claims has one way to draw and bet, and is about"
                " its pool.",
                field=name,
                rule="left out in a session with `groups` or on a pool of `metrics`",
                value=value,
            )
    check = table.check
    if check is not None and check.column in table.groups:
        raise InvalidValue(
            "The verdicts of the judge that is checked make no groups of their own.",
            field="groups",
            rule="without the column of `check`",
            value=check.column,
        )
    cut_by = table.groups if check is None else (check.column, *table.groups)
    rows = table_of(pool, cut_by)
    names = [metric.name for metric in (rows.metrics if check is None else check.metrics)]
    precision = {None: claim.precision} | dict(table.precision)
    questions = [*table.questions, *((None, question) for question in claim.questions)]
    beta = asked.get("beta")
    settings = TableSettings(
        alpha=claim.alpha,
        account=table.account,
        precision=_by_metric(precision, names),
        group_precision=_by_metric(table.group_precision, names),
        questions=_questions("questions", questions, names),
        group_questions=_questions("group_questions", table.group_questions, names),
        small_groups=table.small_groups,
        levels=table.levels,
        reserve=table.reserve,
        budget=claim.budget,
        beta=BETA if beta is None else beta,
        fixed=claim.fixed,
        check=check,
        subject=claim.subject,
    )
    return plan_table(settings, rows, pool.digest, commitment)


def _by_metric(
    given: Mapping[str | None, float | None], names: Sequence[str]
) -> dict[str, float | None]:
    of_all = given.get(None)
    every = {} if of_all is None else dict.fromkeys(names, of_all)
    return every | {name: value for name, value in given.items() if name is not None}


def _questions(
    field: str, given: Sequence[tuple[str | None, Question]], names: Sequence[str]
) -> dict[str, tuple[Question, ...]]:
    """Return the questions by metric; one without a metric is refused if there are several."""
    by_metric: dict[str, tuple[Question, ...]] = {}
    for metric, question in given:
        if metric is None and len(names) > 1:
            raise InvalidValue(
                "A question is asked of one metric.",
                field=f"{field}.metric",
                rule="one of " + ", ".join(names),
                value=None,
            )
        name = metric or names[0]
        by_metric[name] = (*by_metric.get(name, ()), question)
    return by_metric


def policy_of(request: SessionRequest) -> Policy:
    """Return the requested policy; refuses those that are unknown or for studies alone."""
    name = request.policy or DEFAULT_POLICY
    if name in SIMULATION_ONLY:
        rule = "one of " + ", ".join(sorted(POLICIES.keys() - SIMULATION_ONLY))
        message = f"policy {name} exists in simulation only"
        raise InvalidValue(message, field="policy", rule=rule, value=name)
    return policy_named(name, **request.parameters)


def is_endless(plan: Plan | BestPlan | TablePlan) -> bool:
    """Return true if only the budget ends the session: no precision, question or verdict is set."""
    if isinstance(plan, TablePlan):
        return not any(claim.wants for claim in plan.claims)
    return isinstance(plan, Plan) and plan.precision is None and not plan.asks


def facts_of(pool: Pool) -> PoolFacts:
    """Return the facts about the pool that a plan states."""
    return PoolFacts(
        digest=pool.digest,
        items=pool.items,
        lower=pool.scale.lower,
        upper=pool.scale.upper,
        whole_losses=pool.scale.kind == "zero_one",
        known=pool.known,
        difference=pool.scale.kind == "difference",
        systems=None if pool.systems is None else pool.systems.names,
        based_on=pool.based_on,
        weights=pool.weights,
        score=pool.score,
    )


def default_strategy(pool: Pool) -> Strategy | None:
    """Return "A" if the items have probabilities and no uploaded surrogate, else None."""
    return "A" if not pool.surrogates and "A" in strategies(pool) else None

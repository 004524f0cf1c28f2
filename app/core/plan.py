"""The plan: every choice validity rests on, frozen before the first draw."""

import hashlib
import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from app.core.eprocess import Interval
from app.core.pairplan import narrowest, pair_steps
from app.core.policies import Policy
from app.core.pool import canonical
from app.core.population import PopulationBound
from app.core.stopping import StoppingRule
from app.core.surrogates import Strategy
from app.errors import InvalidValue, UnreachablePrecision

Target = Literal["pool", "population"]

METHOD_VERSION = "celeus-1"
CELLS_PER_PRECISION = 100
CELLS_WITHOUT_PRECISION = 2000
LATTICE_PER_PRECISION = 200
WHOLE = 1e-9
ALPHA2_SHARE = 0.5
ALPHA2_SHARE_BY_GOAL = 0.1
LOOSE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Plan:
    """What a session is: the pool it speaks of, its claim, its policy.

    ``alpha1`` is spent on the pool risk and ``bound.alpha2`` on the step to the population.
    ``cell`` is the width of a candidate cell on the loss scale. ``commitment`` is the hash of the
    secret seed; the seed itself is not part of the plan.
    """

    pool_digest: str
    items: int
    lower: float
    upper: float
    policy: Policy
    target: Target
    strategy: Strategy | None
    alpha: float
    alpha1: float
    bound: PopulationBound
    precision: float | None
    budget: int
    cell: float
    commitment: str
    method_version: str = METHOD_VERSION

    @property
    def scale(self) -> Interval:
        """The interval every loss lies in."""
        return Interval(self.lower, self.upper)

    @property
    def stopping(self) -> StoppingRule:
        """The rule in force until a change."""
        return StoppingRule(self.precision, self.budget)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; ``plan_from`` reads them back."""
        return asdict(self)

    @property
    def digest(self) -> str:
        """SHA-256 of the plan's values as canonical JSON, in hexadecimal."""
        return hashlib.sha256(canonical(self.to_dict())).hexdigest()


def plan_from(values: dict[str, Any]) -> Plan:
    """The plan whose ``to_dict`` gave ``values``."""
    inner = {"policy": Policy(**values["policy"]), "bound": PopulationBound(**values["bound"])}
    return Plan(**(values | inner))


def lattice_steps(plan: Plan, precision: float | None) -> int:
    """Steps of the lattice of candidates over the scale, for a policy with a goal."""
    return _steps(precision, plan.scale)


def _steps(precision: float | None, scale: Interval) -> int:
    if precision is None:
        return CELLS_WITHOUT_PRECISION
    return math.ceil(LATTICE_PER_PRECISION * scale.width / precision - WHOLE)


def cell_width(precision: float | None, scale: Interval) -> float:
    """Width of a candidate cell: a hundredth of the precision, or 1/2000 of the scale."""
    if precision is None:
        return scale.width / CELLS_WITHOUT_PRECISION
    return precision / CELLS_PER_PRECISION


@dataclass(frozen=True, slots=True)
class Claim:
    """What a session is asked to certify; defaults where a field is None.

    ``alpha2`` is the share of alpha spent on the step to the population (default: half), by
    ``population_bound`` (default: hoeffding).
    """

    target: Target = "pool"
    alpha: float = 0.05
    precision: float | None = None
    budget: int | None = None
    population_bound: str | None = None
    alpha2: float | None = None
    margin: float | None = None
    margin_assumption: str = ""


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """What a plan states about its pool."""

    digest: str
    items: int
    lower: float
    upper: float
    whole_losses: bool


def make_plan(
    claim: Claim, pool: PoolFacts, policy: Policy, commitment: str, strategy: Strategy | None = None
) -> Plan:
    """The plan for ``claim``. Refuses values outside their ranges and what cannot be certified."""
    scale = Interval(pool.lower, pool.upper)
    targets = claim.target in {"pool", "population"}
    _require("target", "pool or population", claim.target, holds=targets)
    _require("alpha", "above 0 and below 1", claim.alpha, holds=0.0 < claim.alpha < 1.0)
    if claim.precision is not None:
        _check_width(claim.precision, scale)
    bound = _bound(claim, pool, policy)
    budget = pool.items if claim.budget is None else claim.budget
    check_budget(budget, pool.items)
    plan = Plan(
        pool_digest=pool.digest,
        items=pool.items,
        lower=pool.lower,
        upper=pool.upper,
        policy=policy,
        target=claim.target,
        strategy=strategy,
        alpha=claim.alpha,
        alpha1=claim.alpha - bound.alpha2,
        bound=bound,
        precision=claim.precision,
        budget=budget,
        cell=_cell(claim, policy, bound, scale),
        commitment=commitment,
    )
    check_precision(plan, claim.precision)
    return plan


def _cell(claim: Claim, policy: Policy, bound: PopulationBound, scale: Interval) -> float:
    if not policy.has_goal:
        return cell_width(claim.precision, scale)
    if bound.kind == "pairs" and claim.precision is not None:
        return scale.width / pair_steps(claim.precision / scale.width)
    return scale.width / _steps(claim.precision, scale)


def check_budget(budget: int, items: int) -> None:
    """Refuse a budget that is not a number of draws the pool can give."""
    rule = f"at least 1 and at most the {items} items of the pool"
    _require("budget", rule, budget, holds=1 <= budget <= items)


def check_precision(plan: Plan, precision: float | None) -> None:
    """Refuse a precision outside the scale, or that no pool risk could reach."""
    if precision is None:
        return
    _check_width(precision, plan.scale)
    least = _narrowest(plan, precision)
    if least > precision:
        raise UnreachablePrecision(
            f"precision {precision:g} cannot be reached for the population with {plan.items} items:"
            f" even a fully judged pool leaves a width of {least:.6g}; ask for that much, bring"
            " a larger pool, or choose target pool",
            field="precision",
            rule=f"at least {least:.6g}",
            value=precision,
            smallest_reachable=least,
        )


FINEST_PRECISION = 5e-4


def _check_width(precision: float, scale: Interval) -> None:
    rule = f"above 0 and below the scale's width {scale.width:g}"
    _require("precision", rule, precision, holds=0.0 < precision < scale.width)
    finest = scale.width * FINEST_PRECISION
    _require("precision", f"at least {finest:g}", precision, holds=precision >= finest)


def _narrowest(plan: Plan, precision: float) -> float:
    """Smallest width that any pool risk could reach; only whether it is above ``precision`` counts.

    ``precision`` itself where pairs reach it: the search is for refusals.
    """
    if plan.bound.kind != "pairs":
        return plan.bound.narrowest(plan.items, plan.scale)
    return _least_of_pairs(plan, precision, risk=0.0)


def _least_of_pairs(plan: Plan, precision: float, *, risk: float) -> float:
    """At an opening the pairs are free to fit the precision; a change goes on with those it has."""
    unit = plan.scale.width
    changed = plan.precision is not None and precision != plan.precision
    opened = plan.precision / unit if plan.precision is not None and changed else None
    return narrowest(plan.items, plan.alpha1, precision / unit, risk, opened) * unit


def precision_warning(plan: Plan, precision: float | None) -> str | None:
    """A sentence when a pool risk of one half could not reach ``precision``, else None."""
    if precision is None:
        return None
    if plan.bound.kind == "pairs":
        width = _least_of_pairs(plan, precision, risk=0.5)
    else:
        width = plan.bound.at_centre(plan.items, plan.scale)
    if width <= precision:
        return None
    return (
        f"a pool risk in the middle of the scale cannot reach precision {precision:g} for the"
        f" population: with {plan.items} items the width there stays at {width:.6g}"
    )


def _bound(claim: Claim, pool: PoolFacts, policy: Policy) -> PopulationBound:
    if claim.target == "pool":
        for field in ("population_bound", "alpha2", "margin"):
            value = getattr(claim, field)
            _require(field, "absent for target pool", value, holds=value is None)
        return PopulationBound("none")
    kind = claim.population_bound or _default_bound(claim, pool, policy)
    if kind == "pairs":
        return _pairs(claim, policy)
    share = ALPHA2_SHARE_BY_GOAL if policy.has_goal else ALPHA2_SHARE
    alpha2 = claim.alpha * share if claim.alpha2 is None else claim.alpha2
    if kind == "margin":
        margin = claim.margin if claim.margin is not None else -1.0
        rule = "a finite half-width of at least 0"
        _require("margin", rule, claim.margin, holds=0.0 <= margin < math.inf)
        text = claim.margin_assumption
        _require("margin_assumption", "the assumption it rests on", text, holds=bool(text.strip()))
        # Both hold at once, so the margin's failure takes a share; 0 is for one that cannot fail.
        rule = "at least 0 and below alpha"
        _require("alpha2", rule, alpha2, holds=0.0 <= alpha2 < claim.alpha)
        return PopulationBound("margin", alpha2, half_width=margin, assumption=text)
    rule = "absent unless the bound is margin"
    _require("margin", rule, claim.margin, holds=claim.margin is None)
    _require("alpha2", "above 0 and below alpha", alpha2, holds=0.0 < alpha2 < claim.alpha)
    if kind == "hoeffding":
        return PopulationBound("hoeffding", alpha2)
    if kind == "kl":
        return PopulationBound("kl", alpha2)
    known = "hoeffding, kl, clopper_pearson, margin or pairs"
    _require("population_bound", known, kind, holds=kind == "clopper_pearson")
    rule = "kl or hoeffding unless the loss is zero_one"
    _require("population_bound", rule, kind, holds=pool.whole_losses)
    return PopulationBound("clopper_pearson", alpha2)


def _default_bound(claim: Claim, pool: PoolFacts, policy: Policy) -> str:
    if claim.margin is not None:
        return "margin"
    if not policy.has_goal:
        return "hoeffding"
    if claim.precision is not None and claim.alpha2 is None:
        return "pairs"
    return "clopper_pearson" if pool.whole_losses else "kl"


def _pairs(claim: Claim, policy: Policy) -> PopulationBound:
    """Pairs at 0.95 alpha within a loose pool sequence at 0.05 alpha."""
    rule = "another one for a policy without strata, or without a precision"
    able = policy.has_goal and claim.precision is not None
    _require("population_bound", rule, "pairs", holds=able)
    for field in ("alpha2", "margin"):
        value = getattr(claim, field)
        _require(field, "absent for pairs", value, holds=value is None)
    return PopulationBound("pairs", claim.alpha * LOOSE_SHARE)


def _require(field: str, rule: str, value: object, *, holds: bool) -> None:
    if not holds:
        raise InvalidValue(f"{field} must be {rule}", field=field, rule=rule, value=value)

"""The plan: all choices that validity depends on, fixed before the first draw."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

from celeus.core.canonical import digest_of
from celeus.core.interval import Interval
from celeus.core.plain import Plain
from celeus.core.plans.claim import (
    TARGETS,
    Claim,
    PoolFacts,
    Target,
    bound_of,
    check_based_on,
    check_decide,
    check_known,
    check_questions,
    check_runs,
    check_stop_when_decided,
    check_weights,
)
from celeus.core.plans.pair_plan import narrowest, pair_steps
from celeus.core.plans.panel_plan import Protocol, RaterSource, panel_of, rater_source
from celeus.core.plans.policies import Policy
from celeus.core.plans.population_bounds import PopulationBound
from celeus.core.plans.stopping import Question, StoppingRule
from celeus.core.plans.subject import Subject, check_subject
from celeus.core.plans.success import Success
from celeus.core.pools.loss_bounds import Basis, KnownLosses
from celeus.core.pools.score import Score
from celeus.core.pools.surrogates import Strategy
from celeus.core.pools.weights import Weights
from celeus.errors import UnreachablePrecision, require
from celeus.units import check_width

__all__ = [
    "METHOD_VERSION",
    "Claim",
    "Plan",
    "PoolFacts",
    "Target",
    "cell_width",
    "check_budget",
    "check_precision",
    "check_stop_when_decided",
    "lattice_steps",
    "make_plan",
    "precision_warning",
]

LEAST_ALPHA = 1e-12
FROM_ONE = 1e-12
"""Least distance of alpha from 1; ``LEAST_ALPHA`` is that from 0.

Closer, quantiles of alpha lose their digits: as a float, 1 - alpha / 2 would equal 1."""
METHOD_VERSION = "celeus-3"
CELLS_PER_PRECISION = 100
CELLS_WITHOUT_PRECISION = 2000
LATTICE_PER_PRECISION = 200
WHOLE = 1e-9
MOST_RUNS = 1_000_000
"""Most runs of a session whose items may be run again."""
BUDGET_MARGIN = 2.0
"""Budget of runs where none is given, in the runs that a fixed sample needs at worst."""


@dataclass(frozen=True, slots=True)
class Plan(Plain):
    """The definition of a session: its pool, its claim, its policy.

    ``alpha1`` is spent on the pool risk and ``bound.alpha2`` on the step to the population.
    ``cell`` is the width of a candidate cell on the loss scale. ``commitment`` is the hash of the
    secret seed; the seed itself is not part of the plan. ``kind`` is the same for all plans of a
    class, and so is ``has_precision``: whether a precision can be asked of the whole session.
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
    questions: tuple[Question, ...] = ()
    stop_when_decided: bool = False
    fixed: bool = False
    known: KnownLosses | None = None
    audit: bool = False
    difference: bool = False
    decide: float | None = None
    systems: Mapping[str, str] | None = None
    based_on: Basis | None = None
    weights: Weights | None = None
    score: Score | None = None
    raters: RaterSource | None = None
    protocol: Protocol | None = None
    panel: tuple[str, ...] = ()
    repeats: bool = False
    success: Success | None = None
    subject: tuple[Subject, ...] = ()

    optional: ClassVar = (
        "questions",
        "stop_when_decided",
        "fixed",
        "known",
        "audit",
        "difference",
        "decide",
        "systems",
        "based_on",
        "weights",
        "score",
        "raters",
        "protocol",
        "panel",
        "repeats",
        "success",
        "subject",
    )
    kind: ClassVar = "mean"
    has_precision: ClassVar = True

    @property
    def width(self) -> None:
        """None: a judgement is one loss."""
        return None

    @property
    def asks(self) -> bool:
        """True if there are questions or a verdict to decide."""
        return bool(self.questions) or self.decide is not None

    @property
    def believed(self) -> KnownLosses | None:
        """Known losses and bounds that the pool states; None in an audit, which ignores them."""
        return None if self.audit else self.known

    @property
    def beta(self) -> float:
        """Share of draws that is uniform over the items left."""
        return self.policy.beta

    @property
    def drawable(self) -> int:
        """Number of items that may be drawn: those whose loss is not known."""
        return self.items - (0 if self.believed is None else self.believed.items)

    @property
    def most_draws(self) -> int:
        """Most draws that any budget allows: one of every item that may be drawn, or any."""
        return MOST_RUNS if self.repeats else self.drawable

    @property
    def scale(self) -> Interval:
        """Interval of possible losses."""
        return Interval(self.lower, self.upper)

    @property
    def half(self) -> float | None:
        """Half the precision on the unit scale; None without one."""
        return None if self.precision is None else self.half_of(self.precision)

    def half_of(self, precision: float) -> float:
        """Return half of a precision on the unit scale."""
        return precision / self.scale.width / 2.0

    @property
    def stopping(self) -> StoppingRule:
        """Stopping rule in force until a change."""
        return StoppingRule(self.precision, self.budget, self.stop_when_decided)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; what asks says whether its answers end the session."""
        asked = {"stop_when_decided": self.stop_when_decided} if self.asks else {}
        return Plain.to_dict(self) | asked

    @property
    def digest(self) -> str:
        """SHA-256 of the plan's values as canonical JSON (RFC 8785), in hexadecimal."""
        return digest_of(self.to_dict())


def lattice_steps(plan: Plan, precision: float | None) -> int:
    """Return the steps of the lattice of candidates over the scale, for a policy with a goal."""
    return _steps(precision, plan.scale)


def _steps(precision: float | None, scale: Interval) -> int:
    if precision is None:
        return CELLS_WITHOUT_PRECISION
    return math.ceil(LATTICE_PER_PRECISION * scale.width / precision - WHOLE)


def cell_width(precision: float | None, scale: Interval) -> float:
    """Return the width of a candidate cell: precision / 100, or 1/2000 of the scale without one."""
    if precision is None:
        return scale.width / CELLS_WITHOUT_PRECISION
    return precision / CELLS_PER_PRECISION


def make_plan(
    claim: Claim, pool: PoolFacts, policy: Policy, commitment: str, strategy: Strategy | None = None
) -> Plan:
    """Return the plan for ``claim``.

    Raises InvalidValue for values outside their ranges or that contradict each other,
    NothingToJudge if every loss is known, UnreachablePrecision for a precision out of reach.
    """
    scale = Interval(pool.lower, pool.upper)
    require("target", "pool, population or runs", claim.target, holds=claim.target in TARGETS)
    check_alpha(claim.alpha)
    if claim.precision is not None:
        _check_width(claim.precision, scale)
    check_questions(claim.questions, scale)
    stop = claim.stop_when_decided
    check_decide(claim.decide, pool)
    asked = bool(claim.questions) or claim.decide is not None
    check_stop_when_decided(asked=asked, stop=stop)
    check_runs(claim, pool, policy)
    check_weights(claim, pool, policy)
    check_known(claim, pool, policy)
    check_based_on(claim, pool)
    check_subject(claim.subject)
    bound = bound_of(claim, pool, policy)
    drawable = pool.items
    if pool.known is not None and not claim.audit:
        drawable -= pool.known.items
    source = rater_source(claim.raters, claim.target)
    protocol, panel = panel_of(source, claim.protocol, claim.panel)
    budget = _default_budget(claim, drawable, scale) if claim.budget is None else claim.budget
    check_budget(budget, MOST_RUNS if claim.repeats else drawable, repeats=claim.repeats)
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
        questions=claim.questions,
        stop_when_decided=asked if stop is None else stop,
        fixed=claim.fixed,
        known=pool.known,
        audit=claim.audit,
        difference=pool.difference,
        decide=claim.decide,
        systems=pool.systems,
        based_on=pool.based_on,
        weights=pool.weights,
        score=pool.score,
        raters=source,
        protocol=protocol,
        panel=panel,
        repeats=claim.repeats,
        success=None if claim.success is None else Success.of(claim.success),
        subject=claim.subject,
    )
    check_precision(plan, claim.precision)
    return plan


def _cell(claim: Claim, policy: Policy, bound: PopulationBound, scale: Interval) -> float:
    if not policy.has_goal:
        return cell_width(claim.precision, scale)
    if bound.paired and claim.precision is not None:
        return scale.width / pair_steps(claim.precision / scale.width)
    return scale.width / _steps(claim.precision, scale)


def check_alpha(alpha: float) -> None:
    """Refuse a level that is not a probability, or too close to 0 or 1 for floats."""
    require("alpha", "above 0 and below 1", alpha, holds=0.0 < alpha < 1.0)
    rule = f"at least {LEAST_ALPHA:g}, and at least {FROM_ONE:g} away from 1"
    require("alpha", rule, alpha, holds=LEAST_ALPHA <= alpha <= 1.0 - FROM_ONE)


def _default_budget(claim: Claim, drawable: int, scale: Interval) -> int:
    """Return the budget of a claim that states none: every item, or the draws for its precision.

    Of these twice as many as a fixed sample needs where losses scatter most.
    """
    if not claim.repeats:
        return drawable
    rule = "the most draws to make, where items are run again and no precision is asked for"
    require("budget", rule, claim.budget, holds=claim.precision is not None)
    half = (claim.precision or scale.width) / scale.width / 2.0
    return min(math.ceil(BUDGET_MARGIN * (_quantile(claim.alpha) / half) ** 2 / 4.0), MOST_RUNS)


def _quantile(alpha: float) -> float:
    return NormalDist().inv_cdf(1.0 - alpha / 2.0)


def check_budget(budget: int, most: int, *, repeats: bool = False) -> None:
    """Refuse a budget that is not from 1 to ``most`` draws: with ``repeats`` of any items."""
    whole = f"{most} draws" if repeats else f"the {most} items of the pool that may be drawn"
    rule = f"at least 1 and at most {whole}"
    require("budget", rule, budget, holds=1 <= budget <= most)


def check_precision(plan: Plan, precision: float | None) -> None:
    """Refuse a precision outside the scale, or one that no pool risk could reach."""
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
    check_width(precision, (scale.lower, scale.upper))
    finest = scale.width * FINEST_PRECISION
    require("precision", f"at least {finest:g}", precision, holds=precision >= finest)


def _narrowest(plan: Plan, precision: float) -> float:
    """Return the smallest width that any pool risk could reach.

    With pairs that reach ``precision`` it is ``precision``: the search only serves refusals.
    """
    if not plan.bound.paired:
        return plan.bound.narrowest(plan.items, plan.scale)
    return _least_of_pairs(plan, precision, risk=0.0)


def _least_of_pairs(plan: Plan, precision: float, *, risk: float) -> float:
    """Return the least width that pairs reach at ``risk``.

    At an opening pairs are fitted to the precision; after a change they keep their stakes.
    """
    unit = plan.scale.width
    changed = plan.precision is not None and precision != plan.precision
    opened = plan.precision / unit if plan.precision is not None and changed else None
    exact = plan.bound.exact
    return narrowest(plan.items, plan.alpha1, precision / unit, risk, opened, exact=exact) * unit


def precision_warning(plan: Plan, precision: float | None) -> str | None:
    """Return a sentence if a pool risk of one half could not reach ``precision``, else None."""
    if precision is None:
        return None
    if plan.bound.paired:
        width = _least_of_pairs(plan, precision, risk=0.5)
    else:
        width = plan.bound.at_centre(plan.items, plan.scale)
    if width <= precision:
        return None
    return (
        f"a pool risk in the middle of the scale cannot reach precision {precision:g} for the"
        f" population: with {plan.items} items the width there stays at {width:.6g}"
    )

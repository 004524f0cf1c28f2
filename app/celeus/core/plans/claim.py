"""The claim of a session, and the bound that extends its interval to the target."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from celeus.core.interval import Interval
from celeus.core.plans.policies import Policy
from celeus.core.plans.population_bounds import BoundKind, PopulationBound
from celeus.core.plans.stopping import Question
from celeus.core.plans.subject import Subject
from celeus.core.pools.loss_bounds import Basis, KnownLosses
from celeus.core.pools.score import Score
from celeus.core.pools.weights import LARGEST_RATIO, Weights
from celeus.errors import NothingToJudge, require
from celeus.units import LEAST_DISTANCE, check_margin, check_threshold

Target = Literal["pool", "population", "runs"]
"""The set a mean loss is over: the items' losses as they are, the population that the items are
from, or all runs of a system on these items: the losses of those made are chance, one run of each
item, or with ``repeats`` any number."""
TARGETS: tuple[Target, ...] = get_args(Target)

ALPHA2_SHARE = 0.5
ALPHA2_SHARE_BY_GOAL = 0.1
LOOSE_SHARE = 0.05
MOST_QUESTIONS = 20


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim that a session certifies; None selects a field's default.

    ``alpha2`` is the share of alpha spent on the step to the population (default: half), by
    ``population_bound`` (default: hoeffding). ``stop_when_decided`` is true by default if there
    are questions. ``fixed`` forbids every later change of precision, budget and stop. ``audit``
    ignores the losses and bounds that the pool states: known losses are sampled like the others.
    ``raters`` is the source of judgements if several raters could judge an item; ``protocol`` is
    the rule that combines the judgements of a ``panel``, whose members are given by name.
    ``decide`` asks for a verdict on a difference, with this margin of equivalence; 0 for none.
    ``repeats`` says that every round may run any item again, ``success`` which runs of a draw
    have to succeed, as "all of 4"; None: a draw is one run. ``subject`` is what is evaluated, by
    digest; empty: the session names nothing.
    """

    target: Target = "pool"
    alpha: float = 0.05
    precision: float | None = None
    budget: int | None = None
    population_bound: str | None = None
    alpha2: float | None = None
    margin: float | None = None
    margin_assumption: str = ""
    questions: tuple[Question, ...] = ()
    stop_when_decided: bool | None = None
    fixed: bool = False
    audit: bool = False
    decide: float | None = None
    raters: str | None = None
    protocol: str | None = None
    panel: tuple[str, ...] = ()
    repeats: bool = False
    success: str | None = None
    subject: tuple[Subject, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """Facts about the pool that a plan states; ``systems`` are the names of the two it compares.

    ``based_on`` is the session that judged an earlier version, if there is one; ``score`` the name
    and direction that the pool's makers gave the mean of its losses, if any.
    """

    digest: str
    items: int
    lower: float
    upper: float
    whole_losses: bool
    known: KnownLosses | None = None
    difference: bool = False
    systems: Mapping[str, str] | None = None
    based_on: Basis | None = None
    weights: Weights | None = None
    score: Score | None = None


def check_based_on(claim: Claim, pool: PoolFacts) -> None:
    """Refuse a claim for a population if the system's makers may have seen labels of the pool.

    A version fitted to some labels does better on their items than on others of the population.
    """
    if pool.based_on is None:
        return
    rule = (
        "pool, unless the makers of the new version saw no labels of this pool: `based_on` says"
        f" labels_seen {pool.based_on.labels_seen}"
    )
    unseen = pool.based_on.labels_seen == "no"
    require("target", rule, claim.target, holds=unseen or claim.target == "pool")


def check_sample(target: Target, *, runs: bool) -> None:
    """Refuse a population where items are ``runs`` of the same tasks: no independent sample."""
    rule = "pool or runs: items that are runs of the same tasks are no sample of a population"
    require("target", rule, target, holds=target != "population" or not runs)


def check_runs(claim: Claim, pool: PoolFacts, policy: Policy) -> None:
    """Refuse what is known of one run for a claim about all runs: another one may end otherwise."""
    if claim.target != "runs":
        rule = "left out unless the target is runs"
        require("repeats", rule, claim.repeats, holds=not claim.repeats)
        require("success", rule, claim.success, holds=claim.success is None)
        return
    known = pool.known is not None and not claim.audit
    rule = "pool where losses are known: over runs they are chance"
    require("target", rule, claim.target, holds=not known)
    rule = "pool on a new version: judgements of earlier runs say nothing of the next"
    require("target", rule, claim.target, holds=pool.based_on is None)
    rule = "left out unless a run succeeds or fails: the loss is zero_one"
    require("success", rule, claim.success, holds=claim.success is None or pool.whole_losses)
    rule = "left out over runs"
    require("raters", rule, claim.raters, holds=claim.raters is None)
    rule = "pairs, kl, hoeffding or clopper_pearson over runs, whose chances differ by item"
    fits = claim.population_bound not in {"margin", "exact_pairs"} and claim.margin is None
    require("population_bound", rule, claim.population_bound, holds=fits)
    if claim.repeats:
        rule = "sharp or uniform where items are run again: the published policies run each once"
        require("policy", rule, policy.name, holds=policy.has_goal)
        rule = "left out where two systems are compared: one loss a run"
        require("repeats", rule, claim.repeats, holds=not pool.difference)


def check_weights(claim: Claim, pool: PoolFacts, policy: Policy) -> None:
    """Refuse weights with a claim or a policy that does not support them."""
    if pool.weights is None:
        return
    rule = f"at most {LARGEST_RATIO:g} times the least one of the pool"
    require("weight", rule, pool.weights.largest, holds=pool.weights.within_ratio)
    rule = (
        "pool where items have weights: their weighted mean is that of this pool, and the step to a"
        " population takes items that all count the same"
    )
    require("target", rule, claim.target, holds=claim.target == "pool")
    rule = "sharp or uniform where items have weights: the published policies draw without them"
    require("policy", rule, policy.name, holds=policy.has_goal)


def check_known(claim: Claim, pool: PoolFacts, policy: Policy) -> None:
    """Check a claim against the known losses of the pool.

    Raises NothingToJudge if every loss is known, and InvalidValue for an audit without known losses
    or bounds, and for a policy that does not support them.
    """
    known = pool.known
    rule = "false or absent for a pool without known losses or bounds"
    require("audit", rule, claim.audit, holds=known is not None or not claim.audit)
    if known is None:
        return
    rule = "one that takes known losses, such as sharp"
    require("policy", rule, policy.name, holds=policy.recentred)
    if known.items == pool.items and not claim.audit:
        answer = known.total / pool.items
        raise NothingToJudge(
            f"The loss of every item is known, so that the answer is exact: {answer:.12g}. There is"
            " nothing to judge; to have the known losses checked, open a session with `audit`.",
            field="pool_id",
            rule="a pool with at least one item whose loss is not known",
            value=answer,
        )


def bound_of(claim: Claim, pool: PoolFacts, policy: Policy) -> PopulationBound:
    """Return the step to the target; raises InvalidValue for fields that contradict each other."""
    if claim.target == "pool" or claim.repeats:
        where = "where items are run again" if claim.repeats else "for target pool"
        for field in ("population_bound", "alpha2", "margin"):
            value = getattr(claim, field)
            require(field, f"absent {where}", value, holds=value is None)
        return PopulationBound("none")
    kind = claim.population_bound or _default_bound(claim, pool, policy)
    if kind in {"pairs", "exact_pairs"}:
        return _pairs(claim, pool, policy, exact=kind == "exact_pairs")
    share = ALPHA2_SHARE_BY_GOAL if policy.has_goal else ALPHA2_SHARE
    alpha2 = claim.alpha * share if claim.alpha2 is None else claim.alpha2
    if kind == "margin":
        margin = claim.margin if claim.margin is not None else -1.0
        rule = "a finite half-width of at least 0"
        require("margin", rule, claim.margin, holds=0.0 <= margin < math.inf)
        text = claim.margin_assumption
        require("margin_assumption", "the assumption it rests on", text, holds=bool(text.strip()))
        # A margin that may fail takes a share of alpha; 0 is for one that cannot fail.
        rule = "at least 0 and below alpha"
        require("alpha2", rule, alpha2, holds=0.0 <= alpha2 < claim.alpha)
        return PopulationBound("margin", alpha2, half_width=margin, assumption=text)
    rule = "absent unless the bound is margin"
    require("margin", rule, claim.margin, holds=claim.margin is None)
    require("alpha2", "above 0 and below alpha", alpha2, holds=0.0 < alpha2 < claim.alpha)
    if kind == "hoeffding":
        return PopulationBound("hoeffding", alpha2)
    if kind == "kl":
        return PopulationBound("kl", alpha2)
    kinds = "hoeffding, kl, clopper_pearson, margin, pairs or exact_pairs"
    require("population_bound", kinds, kind, holds=kind == "clopper_pearson")
    rule = "kl or hoeffding unless the loss is zero_one"
    require("population_bound", rule, kind, holds=pool.whole_losses)
    return PopulationBound("clopper_pearson", alpha2)


def _default_bound(claim: Claim, pool: PoolFacts, policy: Policy) -> str:
    if claim.margin is not None:
        return "margin"
    if not policy.has_goal:
        return "hoeffding"
    if claim.precision is not None and claim.alpha2 is None:
        exact = pool.whole_losses and claim.target == "population"
        return "exact_pairs" if exact else "pairs"
    return "clopper_pearson" if pool.whole_losses else "kl"


def _pairs(claim: Claim, pool: PoolFacts, policy: Policy, *, exact: bool) -> PopulationBound:
    """Return the bound by pairs at 0.95 alpha within a loose pool sequence at 0.05 alpha."""
    rule = "another one for a policy without strata, or without a precision"
    able = policy.has_goal and claim.precision is not None
    kind: BoundKind = "exact_pairs" if exact else "pairs"
    require("population_bound", rule, kind, holds=able)
    rule = "pairs unless the loss is zero_one"
    require("population_bound", rule, kind, holds=pool.whole_losses or not exact)
    for field in ("alpha2", "margin"):
        value = getattr(claim, field)
        require(field, "absent for pairs", value, holds=value is None)
    return PopulationBound(kind, claim.alpha * LOOSE_SHARE)


def check_stop_when_decided(*, asked: bool, stop: bool | None) -> None:
    """Refuse ``stop_when_decided`` without a question or a verdict."""
    rule = "false or absent without questions"
    require("stop_when_decided", rule, stop, holds=asked or not stop)


def check_decide(margin: float | None, pool: PoolFacts) -> None:
    """Refuse a verdict on a pool without differences, and a margin below the weight of one item."""
    if margin is None:
        return
    rule = "absent unless the loss of the pool is a difference of two systems"
    require("decide", rule, margin, holds=pool.difference)
    check_margin(margin, (pool.lower, pool.upper), "decide.margin")
    weight, least = pool.upper / pool.items, f"one of {pool.items} items"
    if pool.weights is not None:
        weight = max(weight * pool.weights.least_share, 2.0 * pool.upper * LEAST_DISTANCE)
        least = f"the lightest of {pool.items} items"
    least = f"at least {weight:g}, the weight of {least}"
    rule = f"0, or {least}, and below {pool.upper:g}"
    holds = margin == 0.0 or weight * (1.0 - LEAST_DISTANCE) <= margin < pool.upper
    require("decide.margin", rule, margin, holds=holds)


def check_questions(questions: tuple[Question, ...], scale: Interval) -> None:
    """Refuse questions that are too many, off the scale, or repeated."""
    count = len(questions)
    require("questions", f"at most {MOST_QUESTIONS}", count, holds=count <= MOST_QUESTIONS)
    least = LEAST_DISTANCE * scale.width
    for place, question in enumerate(questions):
        field = f"questions.{place}"
        valid_side = question.side in {"at_most", "at_least"}
        require(f"{field}.side", "at_most or at_least", question.side, holds=valid_side)
        threshold = question.threshold
        check_threshold(threshold, (scale.lower, scale.upper), f"{field}.threshold")
        for other in questions[:place]:
            # The same threshold may be asked from both sides.
            away = abs(other.threshold - threshold)
            apart = away >= least or (away == 0.0 and other.side != question.side)
            require(field, "asked once", f"{question.side} {threshold:.12g}", holds=apart)

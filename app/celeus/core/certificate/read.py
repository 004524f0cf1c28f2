"""A certificate read back: its plan made again from its own claim, its pool's header, its rounds.

Nothing here asks whether the claim is true, only whether the document is one that a session could
have led to. ``verify`` asks the rest.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.signals import Range
from celeus.core.canonical import digest_of
from celeus.core.certificate.members import COLUMNS, OTHER
from celeus.core.certificate.parsing import numbers
from celeus.core.certificate.recording import FoldRecord
from celeus.core.plain import (
    DIGEST,
    SLACK,
    Mismatch,
    Object,
    equal,
    members,
    number,
    refusals,
    same,
    text,
    whole,
)
from celeus.core.plans.best_plan import BestPlan
from celeus.core.plans.plan import METHOD_VERSION, Claim, Plan, PoolFacts, make_plan
from celeus.core.plans.policies import POLICIES, SIMULATION_ONLY, Policy, policy_named
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import PoolHeader
from celeus.core.pools.score import Score, declared_score
from celeus.core.pools.systems import AnySystems, Lineup, Systems
from celeus.core.pools.table_pool import sole_metric
from celeus.core.session.question import AnyPlan

Floats = NDArray[np.float64]

ROUNDING = 1e-13


def header_of(value: object) -> PoolHeader:
    """Return the header of a pool, whose scale and scores are those of its systems and metrics."""
    with refusals("pool"):
        header = PoolHeader.from_dict(value, "pool")
        loss, systems = header.loss.to_dict(), header.systems
        if systems is not None:
            same("pool.loss", loss, _scale_of(systems).to_dict())
        _check_score("pool.score", header.score, header.loss, systems)
        for place, metric in enumerate(header.metrics):
            _check_score(f"pool.metrics[{place}].score", metric.score, metric.scale, None)
        if header.metrics:
            same("pool.loss", loss, header.metrics[0].scale.to_dict())
    return header


def _scale_of(systems: AnySystems) -> LossScale:
    return systems.loss if isinstance(systems, Lineup) else systems.scale


def _check_score(
    where: str, score: Score | None, scale: LossScale, systems: AnySystems | None
) -> None:
    if score is not None:
        due = declared_score(score.name, score.better, scale, systems)
        same(where, score.to_dict(), due.to_dict())


def header_digest(header: Mapping[str, Any]) -> str:
    """The digest of the pool with this header."""
    return digest_of(dict(header))


def plan_of(value: object, header: PoolHeader) -> AnyPlan:
    """The plan that the claim in ``value`` leads to; Mismatch where ``value`` is another one."""
    values = members(value, "plan", value if isinstance(value, dict) else ())
    equal("plan.method_version", values.get("method_version"), METHOD_VERSION)
    for name in ("pool_digest", "commitment"):
        text(values.get(name), f"plan.{name}", DIGEST)
    plan: AnyPlan
    with refusals("plan"):
        if "table" in values:
            plan = _table_plan_of(values, header)
        elif isinstance(header.systems, Lineup):
            plan = _best_plan_of(values, header.systems, header)
        else:
            plan = _mean_plan_of(Plan.from_dict(values, "plan"), header)
    same("plan", values, plan.to_dict())
    return plan


def _best_plan_of(values: Object, lineup: Lineup, header: PoolHeader) -> BestPlan:
    """The plan in ``values``; Mismatch where no session on such a pool has it."""
    plan, scale = BestPlan.from_dict(values, "plan"), header.loss
    equal("plan.items", plan.items, header.items)
    same("plan.systems", list(plan.systems), list(lineup.names))
    for name, end in (("lower", scale.lower), ("upper", scale.upper)):
        equal(f"plan.{name}", getattr(plan, name), end)
    return plan


def _table_plan_of(values: Object, header: PoolHeader) -> TablePlan:
    """The plan in ``values``; Mismatch where no session on such a pool has it."""
    metrics = header.metrics or (sole_metric(header.loss, header.score),)
    due = [metric.to_dict() for metric in metrics]
    same("plan.metrics", values.get("metrics", due), due)
    plan = TablePlan.from_dict(values, "plan")
    equal("plan.items", plan.items, header.items)
    names = {metric.name for metric in plan.claimed}
    for place, claim in enumerate(plan.claims):
        if claim.metric not in names:
            rule = f"one of {', '.join(sorted(names))}"
            raise Mismatch(f"plan.claims[{place}].metric", claim.metric, rule)
        plan.of(claim)
    return plan


def _mean_plan_of(stated: Plan, header: PoolHeader) -> Plan:
    """The plan that the claim and the facts in one lead to on a pool with this header."""
    scale, systems, bound = header.loss, header.systems, stated.bound
    _check_known(stated, header)
    facts = PoolFacts(
        digest=stated.pool_digest,
        items=header.items,
        lower=scale.lower,
        upper=scale.upper,
        whole_losses=scale.kind == "zero_one",
        known=stated.known,
        difference=scale.kind == "difference",
        systems=systems.names if isinstance(systems, Systems) else None,
        based_on=header.based_on,
        weights=stated.weights,
        score=header.score,
    )
    margin = bound.kind == "margin"
    claim = Claim(
        target=stated.target,
        alpha=stated.alpha,
        precision=stated.precision,
        budget=stated.budget,
        population_bound=None if bound.kind == "none" else bound.kind,
        alpha2=None if bound.kind in {"none", "pairs", "exact_pairs"} else bound.alpha2,
        margin=bound.half_width if margin else None,
        margin_assumption=bound.assumption if margin else "",
        questions=stated.questions,
        stop_when_decided=stated.stop_when_decided,
        fixed=stated.fixed,
        audit=stated.audit,
        decide=stated.decide,
        raters=stated.raters,
        protocol=stated.protocol,
        panel=stated.panel,
        repeats=stated.repeats,
        success=None if stated.success is None else str(stated.success),
        subject=stated.subject,
    )
    policy = _policy_of(stated.policy)
    return make_plan(claim, facts, policy, stated.commitment, stated.strategy)


def recorded_of(value: object, surrogates: object, plan: Plan, folded: int) -> FoldRecord:
    """The rounds as written down, ``folded`` of them, each number where it may be."""
    columns = members(value, "rounds", (*COLUMNS, "other"))
    width, items = plan.scale.width, plan.drawable
    arrays = {
        name: numbers(columns[name], f"rounds.{name}", folded)
        for name in COLUMNS
        if name != "variance"
    }
    variance = None
    if plan.policy.has_goal and folded:
        variance = numbers(columns["variance"], "rounds.variance", folded)
        _within("rounds.variance", variance, np.zeros(folded), np.full(folded, np.inf))
    else:
        equal("rounds.variance", columns["variance"], None)
    slack = SLACK * width + ROUNDING * max(abs(plan.lower), abs(plan.upper))
    scale = np.full(folded, plan.lower - slack), np.full(folded, plan.upper + slack)
    _within("rounds.guess", arrays["guess"], *scale)
    items_left: Floats = items - np.arange(folded, dtype=np.float64) * (not plan.repeats)
    least, most = plan.lower - slack, plan.upper + slack
    if plan.weights is not None:
        # The items left may count for any part of the pool.
        items_left, items = np.full(folded, float(plan.items)), plan.items
        least, most = min(0.0, least), max(0.0, most)
    _within("rounds.left", arrays["left"], items_left * least, items_left * most)
    whole_pool = number(surrogates, "surrogates", items * least, items * most)
    return FoldRecord(
        sum=whole_pool,
        surrogate=arrays["guess"],
        surrogates_left=arrays["left"],
        lower=arrays["range_lower"],
        upper=arrays["range_upper"],
        variance=variance,
        other=_other_of(columns["other"], folded),
    )


def compare_rounds(claimed: Object, found: Mapping[str, Any], plan: Plan) -> None:
    """Raise Mismatch at the first round that does not say what was ``found``.

    Numbers may differ by SLACK: logarithms and exponentials are not the same on all processors.
    """
    first: tuple[int, Mismatch] | None = None
    for name in COLUMNS:
        if found[name] is None:
            continue
        stated, other = (
            np.array(claimed[name], dtype=np.float64),
            np.array(found[name], dtype=float),
        )
        place = _first_apart(stated, other, _slack(name, stated, other, plan))
        if place is not None and (first is None or place < first[0]):
            where = f"rounds.{name}, round {place + 1}"
            first = place, Mismatch(where, float(stated[place]), float(other[place]))
    if first is not None:
        raise first[1]
    same("rounds.other.round", claimed["other"]["round"], found["other"]["round"])
    for name in OTHER[1:]:
        stated, other = (np.array(side["other"][name], dtype=float) for side in (claimed, found))
        place = _first_apart(stated, other, _slack(name, stated, other, plan))
        if place is not None:
            where = f"rounds.other.{name}, round {found['other']['round'][place]}"
            raise Mismatch(where, float(stated[place]), float(other[place]))


def close(where: str, claimed: object, found: float, plan: Plan, *, column: str = "lower") -> None:
    """Raise unless a number is the one found, but for the slack that ``column`` has."""
    stated, other = np.array([number(claimed, where)]), np.array([found])
    if _first_apart(stated, other, _slack(column, stated, other, plan)) is not None:
        raise Mismatch(where, claimed, found)


def _check_known(plan: Plan, header: PoolHeader) -> None:
    """Refuse known losses that no pool with this header can have."""
    known, items, scale = plan.known, header.items, header.loss
    if known is None:
        return
    whole(known.items, "plan.known.items", 0, items)
    slack = SLACK * items * max(abs(scale.lower), abs(scale.upper))
    lowest, highest = known.items * scale.lower, known.items * scale.upper
    if plan.weights is not None:
        # The known items may count for any part of the pool.
        lowest, highest = (items * end for end in (min(0.0, scale.lower), max(0.0, scale.upper)))
    equal("the sum of plan.known.reasons", sum(known.reasons.values()), known.items)
    whole(known.bounded, "plan.known.bounded", 0, items - known.items)
    whole(sum(known.bounds.values()), "the sum of plan.known.bounds", 0, known.bounded)
    number(known.total, "plan.known.total", lowest - slack, highest + slack)


def _policy_of(stated: Policy) -> Policy:
    """The policy of this name with the parameters that it may have."""
    if stated.name not in POLICIES or stated.name in SIMULATION_ONLY:
        names = ", ".join(sorted(set(POLICIES) - SIMULATION_ONLY))
        raise Mismatch("plan.policy.name", stated.name, f"one of {names}")
    defaults = POLICIES[stated.name].to_dict()
    changes = {name: value for name, value in stated.to_dict().items() if value != defaults[name]}
    with refusals("plan.policy"):
        return policy_named(stated.name, **changes)


def _other_of(value: object, folded: int) -> dict[int, Range]:
    """The ranges of the second completion by round."""
    other = members(value, "rounds.other", OTHER)
    rounds = numbers(other["round"], "rounds.other.round")
    arrays = [numbers(other[name], f"rounds.other.{name}", rounds.size) for name in OTHER]
    if rounds.size:
        steps = np.diff(rounds, prepend=0.0)
        if (steps < 1.0).any() or (rounds % 1.0).any() or rounds[-1] > folded:
            raise Mismatch("rounds.other.round", other["round"], f"rounds 1 to {folded} in order")
    return {
        int(round_): Range(float(lower), float(upper))
        for round_, _, lower, upper in zip(*arrays, strict=True)
    }


def _within(where: str, values: Floats, lowest: Floats, highest: Floats) -> None:
    outside = np.flatnonzero(~((values >= lowest) & (values <= highest)))[:1]
    if outside.size:
        place = int(outside[0])
        rule = f"a number from {lowest[place]:g} to {highest[place]:g}"
        raise Mismatch(f"{where}, round {place + 1}", float(values[place]), rule)


def _first_apart(claimed: Floats, other: Floats, slack: Floats) -> int | None:
    # NaN is never close to anything.
    apart = np.flatnonzero(~(np.abs(claimed - other) <= slack))[:1]
    return int(apart[0]) if apart.size else None


def _slack(name: str, claimed: Floats, other: Floats, plan: Plan) -> Floats:
    """The largest lawful differences between two numbers of this column."""
    largest = np.maximum(np.abs(claimed), np.abs(other))
    kind = COLUMNS[name]
    if kind == "none":
        return np.zeros(claimed.size)
    if kind == "relative":
        return SLACK * largest
    origin = np.full(claimed.size, plan.lower)
    if kind == "sum":
        # How much is left of weights only the pool tells.
        left = plan.drawable - np.arange(claimed.size) * (not plan.repeats)
        origin *= left if plan.weights is None else 0.0
    away = np.maximum(np.abs(claimed - origin), np.abs(other - origin))
    return np.asarray(SLACK * np.maximum(away, plan.scale.width) + ROUNDING * largest)

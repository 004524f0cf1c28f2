"""A certificate read back: its plan made again from its own claim, its pool's header, its rounds.

Nothing here asks whether the claim is true, only whether the document is one that a session could
have led to. ``verify`` asks the rest.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from celeus.core.betting.signals import Range
from celeus.core.canonical import canonical_json
from celeus.core.certificate.best.best_checks import best_plan_of
from celeus.core.certificate.layout import SESSION
from celeus.core.certificate.members import COLUMNS, OTHER
from celeus.core.certificate.parsing import numbers
from celeus.core.certificate.recording import FoldRecord
from celeus.core.certificate.table.table_checks import table_plan_of
from celeus.core.plain import (
    DIGEST,
    Mismatch,
    Object,
    equal,
    flag,
    listed,
    members,
    number,
    same,
    text,
    whole,
)
from celeus.core.plans.plan import METHOD_VERSION, Claim, Plan, PoolFacts, make_plan
from celeus.core.plans.policies import POLICIES, SIMULATION_ONLY, Policy, policy_named
from celeus.core.plans.stopping import Question, Side
from celeus.core.pools.loss_bounds import Basis, KnownLosses
from celeus.core.pools.losses import KINDS, LossScale
from celeus.core.pools.metrics import Metric
from celeus.core.pools.score import Score, declared_score
from celeus.core.pools.surrogates import Strategy
from celeus.core.pools.systems import AnySystems, Lineup, systems_from
from celeus.core.pools.table_pool import sole_metric
from celeus.core.pools.weights import LEAST_WEIGHT, Weights
from celeus.core.session.question import AnyPlan
from celeus.errors import Refusal

Floats = NDArray[np.float64]

HEADER = ("items", "loss", "groups", "columns", "items_digest")
STATED = ("reasons", "systems", "based_on", "score", "metrics", "group_columns")
SLACK = 1e-9
ROUNDING = 1e-13


def header_of(value: object) -> tuple[Object, LossScale]:
    """The header of a pool as ``Pool.header`` makes it, and its scale of losses."""
    header = members(value, "pool", HEADER, STATED)
    whole(header["items"], "pool.items", 1)
    loss = members(header["loss"], "pool.loss", ("kind", "lower", "upper"))
    scale = _scale_of(loss, "pool.loss")
    for names in ("groups", "reasons"):
        for at, name in enumerate(listed(header.get(names, []), f"pool.{names}")):
            text(name, f"pool.{names}[{at}]")
    for at, one in enumerate(listed(header["columns"], "pool.columns")):
        where = f"pool.columns[{at}]"
        column = members(one, where, ("name", "dtype", "sha256"))
        text(column["name"], f"{where}.name")
        text(column["dtype"], f"{where}.dtype")
        text(column["sha256"], f"{where}.sha256", DIGEST)
    text(header["items_digest"], "pool.items_digest", DIGEST)
    systems = systems_of(header)
    if systems is not None:
        found = systems.scale
        same("pool.loss", loss, {"kind": found.kind, "lower": found.lower, "upper": found.upper})
    basis_of(header)
    score_of(header, scale)
    metrics = metrics_of(header)
    if metrics:
        same("pool.loss", loss, asdict(metrics[0].scale))
    group_columns_of(header)
    return header, scale


def _scale_of(values: Object, where: str) -> LossScale:
    kind = text(values["kind"], f"{where}.kind")
    lower, upper = (number(values[end], f"{where}.{end}") for end in ("lower", "upper"))
    loss_kind = next((choice for choice in KINDS if choice == kind), None)
    if loss_kind is None:
        raise Mismatch(f"{where}.kind", kind, "one of " + ", ".join(KINDS))
    try:
        return LossScale(loss_kind, lower, upper)
    except Refusal as refusal:
        raise Mismatch(f"pool.{refusal.field}", refusal.value, refusal.rule) from refusal


def metrics_of(header: Object) -> tuple[Metric, ...]:
    """The metrics in the header of a pool; none where its judgements are one loss."""
    if "metrics" not in header:
        return ()
    metrics = []
    for at, one in enumerate(listed(header["metrics"], "pool.metrics")):
        where = f"pool.metrics[{at}]"
        values = members(one, where, ("name", "kind", "lower", "upper"), ("score",))
        scale = _scale_of(values, where)
        name = text(values["name"], f"{where}.name")
        metrics.append(Metric(name, scale, score_of(values, scale, where)))
    return tuple(metrics)


def group_columns_of(header: Object) -> dict[str, tuple[str, ...]]:
    """The group columns in the header of a pool, each with its values."""
    if "group_columns" not in header:
        return {}
    given = header["group_columns"]
    columns = members(given, "pool.group_columns", given if isinstance(given, dict) else ())
    return {
        name: tuple(
            text(one, f"pool.group_columns.{name}")
            for one in listed(values, f"pool.group_columns.{name}")
        )
        for name, values in columns.items()
    }


def basis_of(header: Object) -> Basis | None:
    """The session that the pool of a header is based on; None where there is none."""
    if "based_on" not in header:
        return None
    where = "pool.based_on"
    names = ("session", "pool", "ledger", "certificate", "labels_seen", "answer", "system")
    values = members(header["based_on"], where, names)
    text(values["session"], f"{where}.session", SESSION)
    for name in ("pool", "ledger"):
        text(values[name], f"{where}.{name}", DIGEST)
    if values["certificate"] is not None:
        text(values["certificate"], f"{where}.certificate", DIGEST)
    for name in ("labels_seen", "answer", "system"):
        if values[name] is not None:
            text(values[name], f"{where}.{name}")
    try:
        return Basis(**values)
    except Refusal as refusal:
        raise Mismatch(f"pool.{refusal.field}", refusal.value, refusal.rule) from refusal


def score_of(header: Object, scale: LossScale, where: str = "pool") -> Score | None:
    """The score that the header of a pool, or a metric of it, names; None where it names none."""
    if "score" not in header:
        return None
    where += ".score"
    values = members(header["score"], where, ("name", "better", "unit"))
    name, better = (text(values[one], f"{where}.{one}") for one in ("name", "better"))
    try:
        # Whatever else the direction is, the check refuses it by name.
        score = declared_score(name, better, scale, systems_of(header))  # type: ignore[arg-type]
    except Refusal as refusal:
        raise Mismatch(f"pool.{refusal.field}", refusal.value, refusal.rule) from refusal
    same(where, values, score.to_dict())
    return score


def systems_of(header: Object) -> AnySystems | None:
    """The systems in the header of a pool; None where it names none."""
    if "systems" not in header:
        return None
    several = isinstance(header["systems"], dict) and "names" in header["systems"]
    names = ("names" if several else "a", "loss", "normalisation", *(() if several else ("b",)))
    systems = members(header["systems"], "pool.systems", names)
    loss = members(systems["loss"], "pool.systems.loss", ("kind", "lower", "upper"))
    for end in ("lower", "upper"):
        number(loss[end], f"pool.systems.loss.{end}")
    for where, one in (("", systems), ("loss.", loss)):
        for name in one.keys() & {"a", "b", "normalisation", "kind"}:
            text(one[name], f"pool.systems.{where}{name}")
    for at, name in enumerate(listed(systems["names"], "pool.systems.names") if several else []):
        text(name, f"pool.systems.names[{at}]")
    try:
        return systems_from(systems)
    except Refusal as refusal:
        raise Mismatch(f"pool.{refusal.field}", refusal.value, refusal.rule) from refusal


def header_digest(header: Mapping[str, Any]) -> str:
    """The digest of the pool with this header."""
    return hashlib.sha256(canonical_json(dict(header))).hexdigest()


def plan_of(value: object, header: Object, scale: LossScale) -> AnyPlan:
    """The plan that the claim in ``value`` leads to; Mismatch where ``value`` is another one."""
    values = members(value, "plan", value if isinstance(value, dict) else ())
    equal("plan.method_version", values.get("method_version"), METHOD_VERSION)
    items = whole(header["items"], "pool.items", 1)
    if "table" in values:
        score = score_of(header, scale)
        return table_plan_of(values, metrics_of(header) or (sole_metric(scale, score),), items)
    systems = systems_of(header)
    if isinstance(systems, Lineup):
        return best_plan_of(values, systems, items, scale)
    facts = PoolFacts(
        digest=text(values.get("pool_digest"), "plan.pool_digest", DIGEST),
        items=items,
        lower=scale.lower,
        upper=scale.upper,
        whole_losses=scale.kind == "zero_one",
        known=_known_of(values.get("known"), items, scale, weighted="weights" in values),
        difference=scale.kind == "difference",
        systems=None if systems is None else (systems.a, systems.b),
        based_on=basis_of(header),
        weights=_weights_of(values.get("weights")),
        score=score_of(header, scale),
    )
    commitment = text(values.get("commitment"), "plan.commitment", DIGEST)
    try:
        plan = make_plan(
            _claim_of(values),
            facts,
            _policy_of(values.get("policy")),
            commitment,
            _strategy_of(values.get("strategy")),
        )
    except Refusal as refusal:
        raise Mismatch(f"plan.{refusal.field}", refusal.value, refusal.rule) from refusal
    same("plan", values, plan.to_dict())
    return plan


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
    items_left: Floats = items - np.arange(folded, dtype=np.float64)
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
        one, other = np.array(claimed[name], dtype=np.float64), np.array(found[name], dtype=float)
        at = _first_apart(one, other, _slack(name, one, other, plan))
        if at is not None and (first is None or at < first[0]):
            where = f"rounds.{name}, round {at + 1}"
            first = at, Mismatch(where, float(one[at]), float(other[at]))
    if first is not None:
        raise first[1]
    same("rounds.other.round", claimed["other"]["round"], found["other"]["round"])
    for name in OTHER[1:]:
        one, other = (np.array(side["other"][name], dtype=float) for side in (claimed, found))
        at = _first_apart(one, other, _slack(name, one, other, plan))
        if at is not None:
            where = f"rounds.other.{name}, round {found['other']['round'][at]}"
            raise Mismatch(where, float(one[at]), float(other[at]))


def close(where: str, claimed: object, found: float, plan: Plan, *, column: str = "lower") -> None:
    """Raise unless a number is the one found, but for the slack that ``column`` has."""
    one, other = np.array([number(claimed, where)]), np.array([found])
    if _first_apart(one, other, _slack(column, one, other, plan)) is not None:
        raise Mismatch(where, claimed, found)


def _claim_of(values: Object) -> Claim:
    """The claim the session certifies, with every default filled in."""
    bound = members(
        values.get("bound"), "plan.bound", ("kind", "alpha2", "half_width", "assumption")
    )
    kind = text(bound["kind"], "plan.bound.kind")
    margin = kind == "margin"
    target = text(values.get("target"), "plan.target")
    precision = values.get("precision")
    return Claim(
        target="population" if target == "population" else "pool",
        alpha=number(values.get("alpha"), "plan.alpha"),
        precision=None if precision is None else number(precision, "plan.precision"),
        budget=whole(values.get("budget"), "plan.budget"),
        population_bound=None if kind == "none" else kind,
        alpha2=None
        if kind in {"none", "pairs", "exact_pairs"}
        else number(bound["alpha2"], "plan.bound.alpha2"),
        margin=number(bound["half_width"], "plan.bound.half_width") if margin else None,
        margin_assumption=text(bound["assumption"], "plan.bound.assumption") if margin else "",
        questions=_questions_of(values.get("questions")),
        stop_when_decided=_flag_of(values, "stop_when_decided"),
        fixed=bool(_flag_of(values, "fixed")),
        audit=bool(_flag_of(values, "audit")),
        decide=number(values["decide"], "plan.decide") if "decide" in values else None,
        raters=text(values["raters"], "plan.raters") if "raters" in values else None,
        protocol=text(values["protocol"], "plan.protocol") if "protocol" in values else None,
        panel=_panel_of(values.get("panel")),
    )


def _panel_of(value: object) -> tuple[str, ...]:
    """A plan without a panel of raters has no member of this name."""
    names = [] if value is None else listed(value, "plan.panel")
    return tuple(text(name, f"plan.panel[{at}]") for at, name in enumerate(names))


def _weights_of(value: object) -> Weights | None:
    """A plan of a pool whose items all count the same has no member of this name."""
    if value is None:
        return None
    names = ("mean", "least", "largest", "effective_items")
    weights = members(value, "plan.weights", names)
    for name in names:
        number(weights[name], f"plan.weights.{name}", LEAST_WEIGHT)
    return Weights.from_dict(dict(weights))


def _known_of(value: object, items: int, scale: LossScale, *, weighted: bool) -> KnownLosses | None:
    """A plan of a pool without known losses and bounds has no member of this name."""
    if value is None:
        return None
    names = ("items", "total", "reasons", "bounded")
    known = members(value, "plan.known", names, ("bounds",))
    count = whole(known["items"], "plan.known.items", 0, items)
    slack = SLACK * items * max(abs(scale.lower), abs(scale.upper))
    lowest, highest = count * scale.lower - slack, count * scale.upper + slack
    if weighted:
        # The known items may count for any part of the pool.
        lowest, highest = (items * end for end in (min(0.0, scale.lower), max(0.0, scale.upper)))
        lowest, highest = lowest - slack, highest + slack
    counts = _counts(known["reasons"], "plan.known.reasons")
    equal("the sum of plan.known.reasons", sum(counts.values()), count)
    bounded = whole(known["bounded"], "plan.known.bounded", 0, items - count)
    bounds = _counts(known["bounds"], "plan.known.bounds") if "bounds" in known else {}
    whole(float(sum(bounds.values())), "the sum of plan.known.bounds", 0, bounded)
    total = number(known["total"], "plan.known.total", lowest, highest)
    return KnownLosses(count, total, counts, bounded, bounds)


def _counts(value: object, where: str) -> dict[str, int]:
    """Numbers of items by reason."""
    reasons = members(value, where, (), value if isinstance(value, dict) else ())
    return {name: whole(number, f"{where}.{name}", 1) for name, number in reasons.items()}


def _flag_of(values: Object, name: str) -> bool | None:
    return flag(values[name], f"plan.{name}") if name in values else None


def _questions_of(value: object) -> tuple[Question, ...]:
    """A plan without questions has no member of this name."""
    questions: list[Question] = []
    for at, one in enumerate([] if value is None else listed(value, "plan.questions")):
        where = f"plan.questions[{at}]"
        values = members(one, where, ("side", "threshold"))
        side = next((choice for choice in get_args(Side) if choice == values["side"]), None)
        if side is None:
            raise Mismatch(f"{where}.side", values["side"], "one of " + ", ".join(get_args(Side)))
        questions.append(Question(side, number(values["threshold"], f"{where}.threshold")))
    return tuple(questions)


def _policy_of(value: object) -> Policy:
    name = text(value.get("name") if isinstance(value, dict) else None, "plan.policy.name")
    if name not in POLICIES or name in SIMULATION_ONLY:
        names = ", ".join(sorted(set(POLICIES) - SIMULATION_ONLY))
        raise Mismatch("plan.policy.name", name, f"one of {names}")
    defaults = POLICIES[name].parameters()
    parameters = members(value, "plan.policy", defaults)
    for field, default in defaults.items():
        if type(parameters[field]) is not type(default):
            raise Mismatch(f"plan.policy.{field}", parameters[field], f"a value like {default!r}")
    changes = {field: value for field, value in parameters.items() if value != defaults[field]}
    try:
        return policy_named(name, **changes)
    except Refusal as refusal:
        raise Mismatch(f"plan.policy.{refusal.field}", refusal.value, refusal.rule) from refusal


def _strategy_of(value: object) -> Strategy | None:
    strategy = next((choice for choice in get_args(Strategy) if choice == value), None)
    equal("plan.strategy", value, strategy)
    return strategy


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
        at = int(outside[0])
        rule = f"a number from {lowest[at]:g} to {highest[at]:g}"
        raise Mismatch(f"{where}, round {at + 1}", float(values[at]), rule)


def _first_apart(one: Floats, other: Floats, slack: Floats) -> int | None:
    # NaN is never close to anything.
    apart = np.flatnonzero(~(np.abs(one - other) <= slack))[:1]
    return int(apart[0]) if apart.size else None


def _slack(name: str, one: Floats, other: Floats, plan: Plan) -> Floats:
    """The largest lawful differences between two numbers of this column."""
    largest = np.maximum(np.abs(one), np.abs(other))
    kind = COLUMNS[name]
    if kind == "none":
        return np.zeros(one.size)
    if kind == "relative":
        return SLACK * largest
    origin = np.full(one.size, plan.lower)
    if kind == "sum":
        # How much is left of weights only the pool tells.
        left = plan.drawable - np.arange(one.size)
        origin *= left if plan.weights is None else 0.0
    away = np.maximum(np.abs(one - origin), np.abs(other - origin))
    return np.asarray(SLACK * np.maximum(away, plan.scale.width) + ROUNDING * largest)

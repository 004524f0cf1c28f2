"""The plan of a session as a table that people read."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from celeus.core.insights.figures import count, sure
from celeus.core.insights.sentences import quantity
from celeus.operations.insights.surrogate import Opening

_BOUNDS: Final = {
    "none": "none is needed",
    "pairs": "pairs of both",
    "exact_pairs": "pairs of both, exact for losses of 0 and 1",
    "hoeffding": "Hoeffding",
    "kl": "KL (Chernoff)",
    "clopper_pearson": "Clopper–Pearson",
    "margin": "a margin set by hand",
}
_FROM: Final = {
    "pool": "pool to population",
    "population": "pool to population",
    "runs": "these runs to all runs",
}
_TARGETS: Final = {
    "pool": "of the pool",
    "population": "of the population",
    "runs": "over all runs",
}
_ACCOUNTS: Final = {
    "each": "each interval by itself",
    "together": "all intervals at once",
    "selected": "those picked after looking, too",
    "closed": "all answers yes at once",
}
_SEEN: Final = {"unknown": "not known"}


class Line(NamedTuple):
    """A line of the plan; ``code`` is what programs read."""

    name: str
    value: str
    code: bool = False


def plan_lines(session: Mapping[str, Any], opening: Opening) -> list[Line]:
    """Return the plan of a session of any kind, line by line."""
    plan = opening.plan
    if session["best"] is not None:
        lines = _best_lines(plan, opening)
    elif session["table"] is not None:
        lines = _table_lines(session)
    else:
        lines = _interval_lines(session, opening)
    confidence = f"{sure(plan['alpha'])} (alpha {plan['alpha']:.15g})"
    if session["table"] is not None:
        confidence += f", {_ACCOUNTS[session['table']['account']]}"
    changes = "none: fixed at opening" if session["fixed"] else "allowed, and counted"
    shares = plan.get("policy", plan)
    return [
        *lines,
        *(
            Line("Evaluates", f"{each['name']} {each['algorithm']}:{each['digest']}", code=True)
            for each in plan.get("subject", ())
        ),
        Line("Pool", opening.pool),
        Line("Items", count(plan["items"])),
        Line("Confidence", confidence),
        Line("Budget at opening", f"{count(plan['budget'])} draws"),
        Line("Changes", changes),
        Line("Share of uniform draws", f"{100 * shares['beta']:.0f}\N{NARROW NO-BREAK SPACE}%"),
        Line("Leases last", f"{count(session['lease_seconds'])} s"),
        Line("Method", plan["method_version"]),
        *_basis_lines(plan),
        Line("Session", session["id"], code=True),
        Line("Plan’s digest", opening.digest, code=True),
        Line("Commitment to the seed", plan["commitment"], code=True),
    ]


def target_words(session: Mapping[str, Any]) -> str:
    """Return what the interval speaks of."""
    target, systems = session["target"], session["systems"]
    if systems:
        where = "over all runs" if target == "runs" else f"on the {target}"
        return f"{systems['a']} against {systems['b']} {where}"
    weighted = bool(session["effective_items"])
    name = quantity(session["score"]["name"], weighted=weighted, success=session["success"])
    return f"{name}{',' if session['success'] else ''} {_TARGETS[target]}"


def _interval_lines(session: Mapping[str, Any], opening: Opening) -> list[Line]:
    plan, bound = opening.plan, opening.plan["bound"]["kind"]
    precision = "none" if plan["precision"] is None else f"{plan['precision']:.15g}"
    return [
        Line("Speaks of", target_words(session)),
        Line("Differences from" if session["systems"] else "Losses from", _scale(plan)),
        Line("Precision at opening", precision),
        Line("Policy", plan["policy"]["name"]),
        Line("Strategy", plan["strategy"] or "the surrogate scores as uploaded"),
        Line("Items are run", "again, as often as drawn")
        if session["repeats"]
        else Line(f"From {_FROM[session['target']]}", _BOUNDS.get(bound, bound)),
        *([Line("Success of a draw", session["success"])] if session["success"] else []),
    ]


def _best_lines(plan: Mapping[str, Any], opening: Opening) -> list[Line]:
    systems, score = plan["systems"], opening.score
    most = "least" if score.better == "lower" else "highest"
    return [
        Line("Asks", f"which of {len(systems)} systems has the {most} {score.name} on the pool"),
        Line("Systems", ", ".join(systems)),
        Line("Losses from", _scale(plan)),
    ]


def _table_lines(session: Mapping[str, Any]) -> list[Line]:
    table = session["table"]
    return [
        Line("Metrics", ", ".join(metric["metric"] for metric in table["metrics"])),
        Line("Groups", ", ".join(table["groups"]) or "none"),
        Line("Claims", count(table["claims"])),
    ]


def _scale(plan: Mapping[str, Any]) -> str:
    return f"{plan['lower']:.15g} to {plan['upper']:.15g}".replace("-", "\N{MINUS SIGN}")


def _basis_lines(plan: Mapping[str, Any]) -> list[Line]:
    """Return the judged session that the pool is based on, and whether its labels were seen."""
    basis = plan.get("based_on")
    if not basis:
        return []
    seen = basis["labels_seen"]
    return [
        Line("Judgements carried over from", basis["session"], code=True),
        Line("The new version’s makers saw labels", _SEEN.get(seen, seen)),
    ]

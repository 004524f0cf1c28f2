"""Named, frozen configurations of the fold.

    sharp         strata, recalibrated surrogates, bets with an information goal
    uniform       ``sharp`` without surrogate and with uniform draws
    celeus        scores mixed with uniform draws, fractions with own variance, floor range
    no_surrogate  the same without scores: surrogate L, uniform draws
    evalue        uniform draws, bets on the losses against their without-replacement centre
    oracle        ``celeus`` with scores |l - s| from the true losses

The last three are for studies: a simulation runs them, and no session does.

A policy never decides whether an interval is valid, only how fast it narrows.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from celeus.core.plain import Plain
from celeus.errors import InvalidValue, require

RangeKind = Literal["floor", "exact", "global"]
FractionKind = Literal["own", "common", "goal"]


@dataclass(frozen=True, slots=True)
class Policy(Plain):
    """Configuration of the fold under a policy.

    ``uses_scores`` false means surrogate L and uniform draws. ``recentred`` false (``evalue``
    only) takes the authors' form, which ignores that items are drawn without replacement: for
    comparisons, not for claims. ``fraction`` "goal" takes the bets of
    docs/evidence/method.md#5-the-bet; ``theta`` and ``c`` belong to the published fractions.
    """

    name: str
    uses_scores: bool = True
    beta: float = 0.4
    range: RangeKind = "floor"
    fraction: FractionKind = "own"
    recentred: bool = True
    theta: float = 0.5
    c: float = 0.5

    @property
    def has_goal(self) -> bool:
        """True if the policy bets towards an amount of information, on strata."""
        return self.fraction == "goal"


POLICIES = {
    "sharp": Policy("sharp", beta=0.5, range="exact", fraction="goal"),
    "uniform": Policy("uniform", uses_scores=False, beta=1.0, range="exact", fraction="goal"),
    "celeus": Policy("celeus"),
    "no_surrogate": Policy("no_surrogate", uses_scores=False, beta=1.0),
    "evalue": Policy("evalue", uses_scores=False, beta=1.0, fraction="common"),
    "oracle": Policy("oracle"),
}
DEFAULT_POLICY = "sharp"
SIMULATION_ONLY = frozenset({"no_surrogate", "evalue", "oracle"})

LEAST_BETA = 1e-3
"""Least share of uniform draws. A signal may be 1 / beta times as wide as the scale; with a far
smaller beta neighbouring candidates would be the same float."""
_OPEN_UNIT = "above 0 and below 1"
_TUNABLE: dict[str, frozenset[str]] = {
    "sharp": frozenset({"beta"}),
    "uniform": frozenset(),
    "celeus": frozenset({"beta", "range", "theta", "c"}),
    "no_surrogate": frozenset({"range", "theta", "c"}),
    "evalue": frozenset({"theta", "c", "recentred"}),
    "oracle": frozenset({"beta", "range", "theta", "c"}),
}


def policy_named(name: str, **parameters: Any) -> Policy:  # noqa: ANN401 -- one type per field
    """Return the policy ``name`` with ``parameters`` in place of its defaults.

    Raises InvalidValue for unknown names, parameters the policy does not have, and values outside
    their ranges.
    """
    if name not in POLICIES:
        names = ", ".join(sorted(POLICIES))
        raise InvalidValue(
            f"policy {name!r} is not known", field="policy", rule=f"one of {names}", value=name
        )
    for field, value in parameters.items():
        if field not in _TUNABLE[name]:
            rule = "one of " + (", ".join(sorted(_TUNABLE[name])) or "none")
            raise InvalidValue(
                f"policy {name} has no parameter {field}", field=field, rule=rule, value=value
            )
    policy = replace(POLICIES[name], **parameters)
    _check(policy)
    return policy


def _check(policy: Policy) -> None:
    rules = (
        ("beta", f"at least {LEAST_BETA:g} and at most 1", LEAST_BETA <= policy.beta <= 1.0),
        ("theta", _OPEN_UNIT, 0.0 < policy.theta < 1.0),
        ("c", "at least 0.01 and at most 10", 0.01 <= policy.c <= 10.0),
        ("range", "floor, exact or global", policy.range in {"floor", "exact", "global"}),
    )
    for field, rule, holds in rules:
        require(field, rule, getattr(policy, field), holds=holds)

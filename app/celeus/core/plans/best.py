"""The plan of a session that seeks the best of k systems: what is fixed before its first draw."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, Self

from celeus.core.canonical import canonical_json
from celeus.core.interval import Interval
from celeus.core.plans.claim import require
from celeus.core.plans.plan import METHOD_VERSION, check_alpha, check_budget
from celeus.core.plans.policies import LEAST_BETA
from celeus.errors import InvalidValue

FEWEST, MOST = 2, 50
BETA = 0.5


@dataclass(frozen=True, slots=True)
class BestPlan:
    """The pool, its systems by name, the level, and the budget.

    ``known`` is how many items got the same answer from all systems, and are never drawn. ``beta``
    is the share of draws that go evenly over the others; ``commitment`` the hash of the seed.
    """

    pool_digest: str
    items: int
    known: int
    systems: tuple[str, ...]
    lower: float
    upper: float
    alpha: float
    budget: int
    commitment: str
    beta: float = BETA
    method_version: str = METHOD_VERSION

    def __post_init__(self) -> None:
        check_count(len(self.systems))
        distinct = len(set(self.systems))
        rule = "a name of its own for every system"
        require("systems", rule, list(self.systems), holds=distinct == len(self.systems))
        check_alpha(self.alpha)
        check_budget(self.budget, self.items - self.known)
        rule = f"from {LEAST_BETA:g} to 1"
        require("beta", rule, self.beta, holds=LEAST_BETA <= self.beta <= 1.0)

    @property
    def scale(self) -> Interval:
        """The interval every loss lies in."""
        return Interval(self.lower, self.upper)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; ``from_dict`` reads them back."""
        return asdict(self) | {"systems": list(self.systems), "best": True}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The plan whose ``to_dict`` gave ``values``."""
        inner = {name: value for name, value in values.items() if name != "best"}
        return cls(**(inner | {"systems": tuple(inner["systems"])}))

    @property
    def digest(self) -> str:
        """SHA-256 of the plan's values as canonical JSON (RFC 8785), in hexadecimal."""
        return hashlib.sha256(canonical_json(self.to_dict())).hexdigest()


def check_count(count: int) -> None:
    """Refuse a number of systems among which the best is not sought."""
    if not FEWEST <= count <= MOST:
        text = "There are too many systems to seek the best of."
        if count < FEWEST:
            text = "The best is sought among several systems; of one, measure the risk."
        raise InvalidValue(text, field="systems", rule=f"{FEWEST} to {MOST} systems", value=count)

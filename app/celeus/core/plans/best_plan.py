"""The plan of a session that seeks the best of k systems, fixed before its first draw."""

from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, ClassVar

from celeus.core.canonical import digest_of
from celeus.core.interval import Interval
from celeus.core.plain import Plain, only
from celeus.core.plans.claim import Claim
from celeus.core.plans.plan import METHOD_VERSION, check_alpha, check_budget
from celeus.core.plans.policies import LEAST_BETA
from celeus.core.plans.stopping import StoppingRule
from celeus.core.plans.subject import Subject, check_subject
from celeus.core.pools.pool import Pool
from celeus.core.pools.rows.answers import all_same
from celeus.core.pools.systems import check_count
from celeus.errors import InvalidValue, NothingToJudge, require

BETA = 0.5


@dataclass(frozen=True, slots=True)
class BestPlan(Plain):
    """The pool, its systems by name, the level, and the budget.

    ``known`` is the number of items with the same answer from all systems; they are never drawn.
    ``beta`` is the share of draws that is uniform over the others; ``commitment`` the hash of the
    seed.
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
    fixed: bool = False
    subject: tuple[Subject, ...] = ()
    best: Annotated[bool, partial(only, due=True)] = True

    optional: ClassVar = ("fixed", "subject")
    kind: ClassVar = "best"
    repeats: ClassVar = False
    has_precision: ClassVar = False

    def __post_init__(self) -> None:
        check_count(len(self.systems))
        distinct = len(set(self.systems))
        rule = "a name of its own for every system"
        require("systems", rule, list(self.systems), holds=distinct == len(self.systems))
        check_alpha(self.alpha)
        check_subject(self.subject)
        rule = f"from 0 to {self.items - 1}"
        require("known", rule, self.known, holds=0 <= self.known < self.items)
        check_budget(self.budget, self.items - self.known)
        rule = f"from {LEAST_BETA:g} to 1"
        require("beta", rule, self.beta, holds=LEAST_BETA <= self.beta <= 1.0)

    @property
    def width(self) -> int:
        """The number of systems: a judgement has a loss of each."""
        return len(self.systems)

    @property
    def scale(self) -> Interval:
        """Interval of possible losses."""
        return Interval(self.lower, self.upper)

    @property
    def drawable(self) -> int:
        """Number of items that may be drawn: those whose answers differ between systems."""
        return self.items - self.known

    @property
    def most_draws(self) -> int:
        """Most draws that any budget allows: one of every item that may be drawn."""
        return self.drawable

    @property
    def stopping(self) -> StoppingRule:
        """Rule in force until a change: the session stops when one system is left."""
        return StoppingRule(None, self.budget)

    @property
    def digest(self) -> str:
        """SHA-256 of the plan's values as canonical JSON (RFC 8785), in hexadecimal."""
        return digest_of(self.to_dict())


def require_difference(items: int, known: int, field: str) -> None:
    """Raise NothingToJudge if the answers are the same for all ``items``: ``known`` equals it."""
    if known == items:
        raise NothingToJudge(
            "All systems gave the same answers: they are equally good, and there is nothing to"
            " judge.",
            field=field,
            rule="an item to which the answers differ",
            value=known,
        )


def make_best(pool: Pool, claim: Claim, commitment: str, beta: float | None = None) -> BestPlan:
    """Return the plan of a session that seeks the best of the systems of ``pool``.

    It uses alpha, budget, fixed and subject of the claim. Raises InvalidValue for any other field
    that is set, and for a pool without several systems.
    """
    lineup = pool.lineup
    if lineup is None:
        raise InvalidValue(
            "The best is sought among the systems of a pool, and this pool names none.",
            field="best",
            rule="left out, or a pool of several `systems`, by their `names`",
            value=True,
        )
    for asked in fields(Claim):
        if (
            asked.name not in {"alpha", "budget", "fixed", "subject"}
            and getattr(claim, asked.name) != asked.default
        ):
            raise InvalidValue(
                "A session that seeks the best of several systems answers that question only.",
                field=asked.name,
                rule="left out where `best` is true",
                value=getattr(claim, asked.name),
            )
    known = 0 if pool.codes is None else int(all_same(pool.codes).sum())
    require_difference(pool.items, known, "pool_id")
    return BestPlan(
        pool_digest=pool.digest,
        items=pool.items,
        known=known,
        systems=lineup.names,
        lower=pool.scale.lower,
        upper=pool.scale.upper,
        alpha=claim.alpha,
        budget=pool.items - known if claim.budget is None else claim.budget,
        commitment=commitment,
        beta=BETA if beta is None else beta,
        fixed=claim.fixed,
        subject=claim.subject,
    )

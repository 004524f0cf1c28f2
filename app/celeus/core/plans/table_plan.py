"""The plan of many claims on one stream of draws, fixed before its first draw.

A claim speaks of one metric, and of all items or of those of one group. Each has a level of its
own. Under the account ``each`` every interval holds with probability 1 - alpha by itself. Under
``together`` the levels add up to alpha, and all intervals hold at once; a reserve of alpha may be
kept for claims added later. Under ``selected`` and ``closed`` the levels are those of ``each``, and
evidence is kept for claims picked after looking, and for all answers yes at once
(docs/evidence/method.md#19-the-account-of-alpha).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, ClassVar, Literal, Self, get_args

import numpy as np

from celeus.core.canonical import digest_of
from celeus.core.ledger import Addition
from celeus.core.plain import Count, Plain, Probability, only
from celeus.core.plans.claim import Claim, PoolFacts
from celeus.core.plans.judge_check import JudgeCheck, informed, loss_of
from celeus.core.plans.plan import METHOD_VERSION, Plan, check_alpha, check_budget, make_plan
from celeus.core.plans.policies import LEAST_BETA, policy_named
from celeus.core.plans.stopping import Question, StoppingRule
from celeus.core.plans.subject import Subject, check_subject
from celeus.core.pools.loss_bounds import KnownLosses
from celeus.core.pools.metrics import Metric
from celeus.core.pools.table_pool import LEAST_GROUP, Mask, Table
from celeus.errors import InvalidValue, NothingToJudge, require

Account = Literal["each", "together", "selected", "closed"]
SmallGroups = Literal["merge", "whole"]

BETA = 0.5
OVERALL_SHARE = 0.2
"""Share of alpha for the claims about all items, if all hold together and there are groups."""
MOST_CLAIMS = 600
SLACK = 1e-12
STEPS_PER_ROOT = 20.0
"""Lattice steps of a claim without a precision, per square root of its items; finer steps cost
time and do not narrow the interval."""


@dataclass(frozen=True, slots=True)
class TableClaim(Plain):
    """One claim: ``metric`` over the items with this ``value`` in ``column``, or over all.

    It is about ``items`` items, ``known`` of which have known losses that sum to ``total``. A
    ``whole`` group is judged to its last item, and has no level, since it needs no bets.
    """

    metric: str
    items: Count
    level: Probability
    column: str | None = None
    value: str | None = None
    precision: float | None = None
    questions: tuple[Question, ...] = ()
    whole: bool = False
    known: int = 0
    total: float = 0.0

    @property
    def name(self) -> str:
        """Name of the claim in reports."""
        part = "" if self.column is None else f", {self.column} {self.value}"
        return self.metric + part

    @classmethod
    def asked(cls, addition: Addition) -> Self:
        """Return the claim to be added, without the facts of its part."""
        return cls(
            addition.metric,
            0,
            addition.level,
            addition.column,
            addition.value,
            addition.precision,
            # Whatever else a side is, the claim's plan refuses it by name.
            tuple(Question(asked.side, asked.threshold) for asked in addition.questions),  # type: ignore[arg-type]
        )

    @property
    def wants(self) -> bool:
        """True if the session goes on until this claim is met."""
        return self.whole or self.precision is not None or bool(self.questions)


@dataclass(frozen=True, slots=True)
class TableSettings:
    """The settings of a table of claims; None, or a metric left out, means no precision.

    ``precision`` is that of a metric over all items, ``group_precision`` that within every group,
    both on the metric's scale, as are ``questions`` and ``group_questions``. ``levels`` are those
    of the claims in their order. By default they are equal: alpha each, or if all hold together
    equal parts of alpha less the ``reserve`` for claims added later.
    """

    alpha: float = 0.05
    account: Account = "each"
    precision: Mapping[str, float | None] = field(default_factory=dict)
    group_precision: Mapping[str, float | None] = field(default_factory=dict)
    questions: Mapping[str, tuple[Question, ...]] = field(default_factory=dict)
    group_questions: Mapping[str, tuple[Question, ...]] = field(default_factory=dict)
    small_groups: SmallGroups = "merge"
    levels: Sequence[float] | None = None
    reserve: float = 0.0
    budget: int | None = None
    beta: float = BETA
    fixed: bool = False
    check: JudgeCheck | None = None
    subject: tuple[Subject, ...] = ()


@dataclass(frozen=True)
class TablePlan(Plain):
    """The pool, its metrics, all claims with their levels, and the budget.

    ``claims`` are ordered by part and metric: first all items, then the groups of every column.
    With a ``check`` of a judge they are about its measures, and the one metric is what people say.
    ``reserve`` is the part of alpha that claims added later may take.
    ``commitment`` is the hash of the seed. Not slotted: the digest is computed once.
    """

    pool_digest: str
    items: int
    drawable: int
    metrics: tuple[Metric, ...]
    claims: tuple[TableClaim, ...]
    alpha: float
    account: Account
    small_groups: SmallGroups
    budget: int
    commitment: str
    beta: float = BETA
    reserve: float = 0.0
    method_version: str = METHOD_VERSION
    fixed: bool = False
    check: JudgeCheck | None = None
    subject: tuple[Subject, ...] = ()
    table: Annotated[bool, partial(only, due=True)] = True

    optional: ClassVar = ("reserve", "fixed", "check", "subject")
    kind: ClassVar = "table"
    repeats: ClassVar = False
    has_precision: ClassVar = False

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_subject(self.subject)
        rule = "each, together, selected or closed"
        require("account", rule, self.account, holds=self.account in get_args(Account))
        rule = "merge or whole"
        holds = self.small_groups in {"merge", "whole"}
        require("small_groups", rule, self.small_groups, holds=holds)
        rule = f"from {LEAST_BETA:g} to 1"
        require("beta", rule, self.beta, holds=LEAST_BETA <= self.beta <= 1.0)
        count = len(self.claims)
        require("claims", f"at most {MOST_CLAIMS}", count, holds=1 <= count <= MOST_CLAIMS)
        rule = f"from 1 to {self.items}"
        require("drawable", rule, self.drawable, holds=1 <= self.drawable <= self.items)
        check_budget(self.budget, self.drawable)
        self._check_levels()

    def _check_levels(self) -> None:
        levels = [claim.level for claim in self.claims if not claim.whole]
        together = self.account == "together"
        rule = "0, but where all claims hold together at least 0 and below alpha"
        holds = self.reserve == 0.0 or (together and 0.0 < self.reserve < self.alpha)
        require("reserve", rule, self.reserve, holds=holds)
        for level in levels:
            check_alpha(level)
        if together:
            spent = sum(levels) + self.reserve
            rule = f"levels that add up to at most alpha, {self.alpha:g}, with the reserve"
        else:
            spent, rule = max(levels, default=0.0), f"levels of at most alpha, {self.alpha:g}, each"
        require("claims.level", rule, spent, holds=spent <= self.alpha * (1.0 + SLACK))
        if self.account == "closed":
            rule = "asked of at least one metric: closed speaks of answers yes"
            holds = any(claim.questions for claim in self.claims)
            require("questions", rule, None, holds=holds)
        if self.check is not None:
            rule = "each or together, where a judge is checked"
            require("account", rule, self.account, holds=self.account in {"each", "together"})
            rule = "left out, where a judge is checked"
            require("reserve", rule, self.reserve, holds=not self.reserve)

    @property
    def most_draws(self) -> int:
        """Most draws that any budget allows: one of every item that may be drawn."""
        return self.drawable

    @property
    def claimed(self) -> tuple[Metric, ...]:
        """The metrics that claims are about: those judged, or a check's measures."""
        return self.metrics if self.check is None else self.check.metrics

    @property
    def width(self) -> int:
        """The number of metrics: a judgement has a loss of each."""
        return len(self.metrics)

    @property
    def betting(self) -> int:
        """Number of claims of the opening that bet: all but the groups judged whole."""
        return sum(not claim.whole for claim in self.claims)

    @property
    def keeps_evidence(self) -> bool:
        """True if the account needs evidence at other levels than the claim's own."""
        return self.account in {"selected", "closed"}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the group columns, in their order."""
        named = (claim.column for claim in self.claims)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def cut_by(self) -> tuple[str, ...]:
        """Names of the columns that cut the items: a checked judge's verdicts, and the groups."""
        return self.columns if self.check is None else (self.check.column, *self.columns)

    @property
    def stopping(self) -> StoppingRule:
        """Rule in force until a change: the session stops when all claims are met."""
        return StoppingRule(None, self.budget)

    def place_of(self, claim: TableClaim) -> int:
        """Return the place of the opening's claim about the same metric and part.

        Raises InvalidValue if there is none.
        """
        for place, opened in enumerate(self.claims):
            if (opened.metric, opened.column, opened.value) == (
                claim.metric,
                claim.column,
                claim.value,
            ):
                return place
        raise InvalidValue(
            f"The session has no {claim.name}.",
            field="claim",
            rule="a metric of the session, of all items or of one of its groups",
            value=claim.name,
        )

    def later(self, claim: TableClaim, earlier: Sequence[TableClaim]) -> TableClaim:
        """Return a claim added after ``earlier`` ones, with the facts of its part.

        Raises InvalidValue for a level above the rest of the reserve, a group that is judged whole,
        a claim that exists, and a plan that is fixed.
        """
        part = self.claims[self.place_of(claim)]
        rule = "a session that was opened without it: its claims stay as they are"
        require("fixed", rule, self.fixed, holds=not self.fixed)
        rule = "a group that is not judged whole: what holds of it is certain without a level"
        require("claim", rule, claim.name, holds=not part.whole)
        added = replace(
            part, level=claim.level, precision=claim.precision, questions=claim.questions
        )
        rule = "another part, level, precision or questions than a claim that is there"
        require("claim", rule, claim.name, holds=added not in {*self.claims, *earlier})
        check_alpha(claim.level)
        left = self.reserve - sum(other.level for other in earlier)
        rule = f"at most {max(left, 0.0):g}, what is left of the reserve of alpha"
        require("level", rule, claim.level, holds=claim.level <= left + SLACK * self.alpha)
        count = len(self.claims) + len(earlier) + 1
        require("claims", f"at most {MOST_CLAIMS}", count, holds=count <= MOST_CLAIMS)
        self.of(added)
        return added

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan's values as canonical JSON (RFC 8785), in hexadecimal."""
        return digest_of(self.to_dict())

    def of(self, claim: TableClaim) -> Plan:
        """Return the plan of an ordinary session about this claim alone, with its own rounds."""
        scale = next(metric.scale for metric in self.claimed if metric.name == claim.metric)
        facts = PoolFacts(
            self.pool_digest, claim.items, scale.lower, scale.upper, scale.kind == "zero_one"
        )
        asked = Claim(
            alpha=self.alpha if claim.whole else claim.level,
            precision=claim.precision,
            questions=claim.questions,
        )
        policy = policy_named("sharp", beta=self.beta)
        plan = make_plan(asked, facts, policy, self.commitment)
        if claim.precision is None and not claim.questions:
            steps = min(round(scale.width / plan.cell), int(STEPS_PER_ROOT * claim.items**0.5) + 1)
            plan = replace(plan, cell=scale.width / steps)
        if claim.known and self.check is None:
            reasons = {"known": claim.known}
            plan = replace(plan, known=KnownLosses(claim.known, claim.total, reasons))
        return plan


def plan_table(
    settings: TableSettings, table: Table, pool_digest: str, commitment: str
) -> TablePlan:
    """Return the plan for a table's claims.

    Raises InvalidValue for values outside their ranges, and NothingToJudge if every loss is known.
    """
    check = settings.check
    names = [metric.name for metric in (table.metrics if check is None else check.metrics)]
    for field_, given in (
        ("precision", settings.precision),
        ("group_precision", settings.group_precision),
        ("questions", settings.questions),
        ("group_questions", settings.group_questions),
    ):
        for name in given:
            rule = "those of metrics: " + ", ".join(names)
            require(field_, rule, name, holds=name in names)
    rule = "0 in a session whose claims stay as they are"
    require("reserve", rule, settings.reserve, holds=not (settings.fixed and settings.reserve))
    drawable = int(table.drawable.sum())
    if not drawable:
        raise NothingToJudge(
            "Every loss is known, so that all answers are exact.",
            field="known",
            rule="an item with a loss that is not known",
            value=table.items,
        )
    seen = table_for(settings.small_groups, table, check)
    seen.check_atoms()
    claims = _levelled(settings, claims_of(settings, seen))
    plan = TablePlan(
        pool_digest=pool_digest,
        items=table.items,
        drawable=drawable,
        metrics=table.metrics,
        claims=claims,
        alpha=settings.alpha,
        account=settings.account,
        small_groups=settings.small_groups,
        budget=drawable if settings.budget is None else settings.budget,
        commitment=commitment,
        beta=settings.beta,
        reserve=settings.reserve,
        fixed=settings.fixed,
        check=check,
        subject=settings.subject,
    )
    for claim in plan.claims:
        plan.of(claim)
    return plan


def table_for(small_groups: SmallGroups, table: Table, check: JudgeCheck | None = None) -> Table:
    """Return the table with its small groups merged, or as it is for ``whole``.

    Where a judge is checked and nothing else says what people may say, its verdicts do.
    """
    if check is None:
        return table.merged() if small_groups == "merge" else table
    rule = "merge, where a judge is checked"
    require("small_groups", rule, small_groups, holds=small_groups == "merge")
    return informed(check, table).merged(check.column)


def claims_of(settings: TableSettings, table: Table) -> list[TableClaim]:
    """Return the claims about a table made by ``table_for``, without their levels."""
    check = settings.check
    parts: list[tuple[str | None, str | None, Mask]]
    parts = [(None, None, np.ones(table.items, dtype=np.bool_))]
    parts += [
        (column.name, value, column.code == number)
        for column in table.columns
        if check is None or column.name != check.column
        for number, value in enumerate(column.values)
    ]
    claimed = table.metrics if check is None else check.metrics
    count = len(parts) * len(claimed)
    require("claims", f"at most {MOST_CLAIMS}", count, holds=count <= MOST_CLAIMS)
    claims = []
    for name, value, mask in parts:
        items = int(mask.sum())
        for number, metric in enumerate(claimed):
            judged = loss_of(check, number)
            known = table.known[mask, judged]
            known = known[~np.isnan(known)]
            scale = table.metrics[judged].scale
            overall = name is None
            precision = settings.precision if overall else settings.group_precision
            questions = settings.questions if overall else settings.group_questions
            whole = not overall and items < LEAST_GROUP and check is None
            claims.append(
                TableClaim(
                    metric.name,
                    items,
                    0.0,
                    name,
                    value,
                    None if whole else precision.get(metric.name),
                    questions.get(metric.name, ()),
                    whole,
                    known.size,
                    float(scale.lower * known.size + scale.width * known.sum()),
                )
            )
    return claims


def _levelled(settings: TableSettings, claims: list[TableClaim]) -> tuple[TableClaim, ...]:
    betting = [claim for claim in claims if not claim.whole]
    levels = settings.levels
    if levels is None:
        overall = sum(claim.column is None for claim in betting)
        groups = len(betting) - overall
        share = OVERALL_SHARE if groups else 1.0
        together = settings.account == "together"
        spent = settings.alpha - settings.reserve
        levels = [
            settings.alpha
            if not together
            else spent * (share / overall if claim.column is None else (1.0 - share) / groups)
            for claim in betting
        ]
    if len(levels) != len(betting):
        raise InvalidValue(
            "There is not one level for every claim that bets.",
            field="levels",
            rule=f"{len(betting)} levels, in the order of the claims",
            value=len(levels),
        )
    given = iter(levels)
    return tuple(claim if claim.whole else replace(claim, level=next(given)) for claim in claims)

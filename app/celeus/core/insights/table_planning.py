"""Planning a table of claims: the labels until each has its target, by simulation.

Every metric is assumed to be as a single loss is (``planning``): its losses are drawn around its
own surrogate, or around that of any item, one metric independent of the others. A useless
surrogate so makes all groups alike. Nothing that is certified rests on any of this.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from celeus.core.insights.planning import (
    OPENING_WORK,
    ROUNDS_BETWEEN_LOOKS,
    Assumption,
    Losses,
    Scenario,
    Spread,
    Summary,
    assumption_of,
)
from celeus.core.interval import Interval
from celeus.core.ledger import JointObservation
from celeus.core.plans.stopping import StopReason
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.table_pool import Table
from celeus.core.session.session import Session
from celeus.core.session.table.table_question import Table as TableQuestion

ITEMS_BY_WORK = 75.0
"""Items that a session begins with in about the time of a round of a single claim."""
CLAIMS_BY_WORK = 2.0
"""Claims that a label is bet on for in about that time."""


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """The state of a simulated session; ``ended``, or on its way.

    ``reached`` unless budget or pool ended it; ``met`` says after how many labels every claim had
    its target, None where it had not.
    """

    labels: int
    ended: bool
    reached: bool
    met: Sequence[int | None]


@dataclass(frozen=True, slots=True, eq=False)
class TableCase:
    """A session to simulate: its plan, its items, and what is assumed of every metric.

    The plan is one ``with_targets``.
    """

    plan: TablePlan
    table: Table
    assumptions: Sequence[Assumption]
    scenario: Scenario

    def work(self, labels: int) -> float:
        """The cost of a session until so many labels, in rounds of a session of one claim."""
        opening = OPENING_WORK + self.plan.items / ITEMS_BY_WORK
        return opening + labels * (1.0 + len(self.plan.claims) / CLAIMS_BY_WORK)

    def run(self, number: int, seed: int) -> Iterator[TableOutcome]:
        """Simulate session ``number``: how it stands now and then, at last its outcome.

        Equal numbers and seeds give equal sessions; a caller may stop listening at any time.
        """
        name = f"planning {seed} run {number}"
        losses = [
            Losses(assumed, metric.scale.interval, self.scenario, f"{name} {metric.name}".encode())
            for metric, assumed in zip(self.plan.metrics, self.assumptions, strict=True)
        ]
        coins = name.encode()
        session = Session.of(TableQuestion(self.plan, self.table, coins), coins)
        while session.stop_reason is None:
            draw = session.propose()
            drawn = tuple(loss.of_item(draw.item) for loss in losses)
            session.apply(draw).apply(JointObservation(draw.round, drawn))
            if session.folded % ROUNDS_BETWEEN_LOOKS == 0:
                yield _outcome(session)
        yield _outcome(session)


def with_targets(plan: TablePlan) -> TablePlan:
    """The plan without the groups in which nothing has a target: they change no draw."""
    wanting = {(claim.column, claim.value) for claim in plan.claims if claim.wants} | {(None, None)}
    claims = tuple(claim for claim in plan.claims if (claim.column, claim.value) in wanting)
    return replace(plan, claims=claims)


def _outcome(session: Session[TableQuestion]) -> TableOutcome:
    reason, question = session.stop_reason, session.question
    met = [question.met_at.get(place) for place in range(len(question.claims))]
    reached = reason is StopReason.TARGET_REACHED
    return TableOutcome(session.folded, reason is not None, reached, met)


def assumptions_of(table: Table, risks: Mapping[str, float]) -> list[Assumption]:
    """Return the surrogates' prediction of every metric, moved to the ``risks`` given."""
    return [
        assumption_of(
            _scores_of(table, place, metric.scale.interval),
            metric.scale.interval,
            whole=metric.scale.kind == "zero_one",
            has_surrogate=bool(np.ptp(table.surrogate[:, place])),
            risk=risks.get(metric.name),
        )
        for place, metric in enumerate(table.metrics)
    ]


def _scores_of(table: Table, metric: int, scale: Interval) -> Scores:
    known = table.known[:, metric]
    free = np.isnan(known)
    losses = scale.lower + scale.width * np.where(free, 0.0, known)
    return Scores(
        scale.lower + scale.width * table.surrogate[:, metric],
        np.zeros(table.items),
        lower=np.where(free, scale.lower, losses),
        upper=np.where(free, scale.upper, losses),
    )


def stream_summary(outcomes: Sequence[TableOutcome]) -> Summary:
    """Sum up the sessions that ended, or say how far one came."""
    ended = [outcome for outcome in outcomes if outcome.ended]
    if not ended:
        furthest = max((outcome.labels for outcome in outcomes), default=0)
        return Summary(0, None, None, None, furthest)
    return Summary.of_ended(
        [outcome.labels for outcome in ended], [outcome.reached for outcome in ended]
    )


def claim_summary(outcomes: Sequence[TableOutcome], place: int) -> Summary:
    """Return the summary of a claim in the sessions that ended, or in the furthest one.

    ``labels`` are those until it had its target; of a session in which it never had it, all.
    """
    ended = [outcome for outcome in outcomes if outcome.ended]
    if not ended:
        furthest = max(outcomes, key=lambda outcome: outcome.labels, default=None)
        after = None if furthest is None else furthest.met[place]
        if after is None:
            return Summary(0, None, None, None, 0 if furthest is None else furthest.labels)
        return Summary(1, 1.0, Spread.of([after]), None, None)
    met = [outcome.met[place] for outcome in ended]
    labels = [
        outcome.labels if after is None else after
        for outcome, after in zip(ended, met, strict=True)
    ]
    return Summary.of_ended(labels, [after is not None for after in met])

"""Planning a table of claims: the labels until each has its target, by simulation.

Every metric is assumed to be as a single loss is (``planning``): its losses are drawn around its
own surrogate, or around that of any item, one metric independent of the others. A useless
surrogate so makes all groups alike. Nothing that is certified rests on any of this.

Of a check of a judge what people say is drawn from its verdicts alone, whose counts are known. With
P_j the share called positive, and t and s the true-positive and true-negative rate assumed:

    p      (P_j - (1 - s)) / (t + s - 1)              share that people call positive
    h = 1  with chance t p / P_j at j = 1, and (1 - t) p / (1 - P_j) at j = 0
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
from celeus.core.plans.judge_check import (
    SURE,
    JudgeCheck,
    limits,
    outcomes,
    positive_loss,
    verdicts,
)
from celeus.core.plans.stopping import StopReason
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.table_pool import Table
from celeus.core.session.session import Session
from celeus.core.session.table.table_question import Table as TableQuestion
from celeus.errors import InvalidValue

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
            for metric, assumed in zip(self.table.metrics, self.assumptions, strict=True)
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


def check_assumption(check: JudgeCheck, table: Table, errors: Mapping[str, float]) -> Assumption:
    """Return what people say of a judge's verdicts, by its ``errors``: 1 - tpr and 1 - tnr.

    Without any people agree with SURE of the verdicts of either kind. Refuses rates that no judge
    with so many positive verdicts has.
    """
    flagged = verdicts(check, table)
    share, positive = float(flagged.mean()), positive_loss(table.metrics[0])
    chance = np.where(flagged, SURE, 1.0 - SURE)
    if errors:
        missed, alarms = errors["tpr"], errors["tnr"]
        people = (share - alarms) / (1.0 - missed - alarms) if missed + alarms < 1.0 else -1.0
        if not 0.0 < people < 1.0:
            raise InvalidValue(
                f"The judge calls {share:.3g} of the items positive, which no judge does whose"
                f" true-positive rate is {1.0 - missed:g} and true-negative rate {1.0 - alarms:g}.",
                field="risk",
                rule="1 - tpr below 1 less that share, 1 - tnr below that share, their sum below 1",
                value=missed,
            )
        here = np.where(flagged, (1.0 - missed) / share, missed / (1.0 - share))
        chance = people * here
    known = table.known[:, 0]
    mean = np.where(np.isnan(known), chance if positive else 1.0 - chance, known)
    return Assumption(mean, whole=True, informed=False, known=~np.isnan(known))


def assumed_errors(check: JudgeCheck, table: Table, assumption: Assumption) -> dict[str, float]:
    """Return the losses of the measures of a check, such as 1 - tpr, that are assumed."""
    flagged = verdicts(check, table)
    share = float(flagged.mean())
    mean = assumption.mean if positive_loss(table.metrics[0]) else 1.0 - assumption.mean
    positive = np.array([float(mean[~flagged].sum()), float(mean[flagged].sum())])
    items = np.array([np.count_nonzero(~flagged), np.count_nonzero(flagged)])
    counts = np.stack((items - positive, positive), axis=1)
    found = {}
    for measure, metric in zip(check.measures, check.metrics, strict=True):
        outcome = outcomes(measure, (1.0 - share, share))
        found[measure] = limits(outcome, counts, np.zeros(2), metric.scale.interval).lower
    return found


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

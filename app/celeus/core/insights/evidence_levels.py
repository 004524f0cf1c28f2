"""A session's interval at the levels of its place among the sessions of its project.

Where the session keeps to its pool, its rounds are bet on again with evidence, which says an
interval for every level at once; draws still out count as judged by nobody. Any other session has
one interval here, that of its own plan at the least of the levels: it needs no evidence, since so
little alpha is enough for all of them (docs/evidence/method.md#19-the-account-of-alpha).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from celeus.core.interval import Interval
from celeus.core.multiplicity.evidence import EvidenceSequence
from celeus.core.multiplicity.selection import least_rank
from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import (
    Comparison,
    Decision,
    StoppingRule,
    Verdict,
    rounding,
    undecided,
)
from celeus.core.pools.surrogates import Scores
from celeus.core.session.engine import predictor_of, strata_for, substrata_for
from celeus.core.session.fold import Fold
from celeus.core.session.mean import Mean
from celeus.core.session.rounds import Rounds
from celeus.core.session.session import Session, begin_mean


@dataclass(frozen=True, slots=True)
class Answers:
    """A session's answers at one level: its interval, and what follows from it."""

    interval: Interval
    decisions: tuple[Decision, ...]
    verdict: Comparison | None

    @classmethod
    def of(cls, plan: Plan, interval: Interval, round_: int) -> "Answers":
        """The answers to the plan's questions that ``interval`` gives after ``round_`` rounds."""
        slack = rounding(plan.scale)
        decisions = tuple(
            decision.after(round_, interval, slack) for decision in undecided(plan.questions)
        )
        verdict = None
        if plan.decide is not None:
            verdict = Verdict(plan.decide).after(round_, interval, slack).answer
        return cls(interval, decisions, verdict)

    @property
    def complete(self) -> bool:
        """All that was asked is answered; so is nothing, where nothing was asked."""
        return self.verdict != "undecided" and all(
            decision.answer != "undecided" for decision in self.decisions
        )


def intervals(
    plan: Plan, scores: Scores, rounds: Rounds, levels: Sequence[float]
) -> list[Interval]:
    """The session's interval at each of ``levels``, of which the first is the least."""
    if not EvidenceSequence.serves(plan):
        state = resumed(at_level(plan, levels[0]), scores, rounds, plan.stopping)
        return [state.question.interval] * len(levels)
    sequence = _evidence(plan, scores, rounds)
    return [sequence.interval_at(level) for level in levels]


def rank(plan: Plan, by_shown: Sequence[Interval], round_: int) -> int | None:
    """The least number of claims shown with which all is answered that the plan asks."""

    def stands(shown: int) -> bool:
        return Answers.of(plan, by_shown[shown - 1], round_).complete

    return least_rank(stands, len(by_shown))


def resumed(plan: Plan, scores: Scores, rounds: Rounds, stopping: StoppingRule) -> Session[Mean]:
    """The state of a session with these rounds and this rule in force.

    Its draws to come are those of another seed: nobody who asks is told the session's own.
    """
    state = begin_mean(plan, scores, plan.digest.encode())
    # Of a panel the outcomes count, and not what its raters said
    state.question.ratings = None
    for place, item in enumerate(rounds.item):
        state.question.proposal.take(item, place + 1)
    state.rounds, state.stopping = rounds, stopping
    state.observed = sum(map(rounds.is_judged, range(len(rounds))))
    return state.fold()


def at_level(plan: Plan, level: float) -> Plan:
    """The plan at another level, divided between pool and population as its own is."""
    share = level / plan.alpha
    bound = replace(plan.bound, alpha2=plan.bound.alpha2 * share)
    return replace(plan, alpha=level, alpha1=plan.alpha1 * share, bound=bound)


def _evidence(plan: Plan, scores: Scores, rounds: Rounds) -> EvidenceSequence:
    bounds = None if plan.audit else scores.bounds
    strata = strata_for(plan, scores)
    predictor = predictor_of(plan, strata, substrata_for(plan, scores, strata))
    sequences: list[EvidenceSequence] = []

    def sequence_of(start: float) -> EvidenceSequence:
        sequences.append(EvidenceSequence(plan, start))
        return sequences[0]

    fold = Fold.before(plan, predictor, sequence_of, bounds, scores.item_weight)
    fold.follow(plan, rounds)
    # Whoever shows the session may know more of the open rounds than its interval does
    fold.settle(plan)
    return sequences[0]

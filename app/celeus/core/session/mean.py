"""The mean loss of a pool or a population, also as a difference of two systems: one interval."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from celeus.core.interval import Interval
from celeus.core.ledger import (
    Addition,
    Draw,
    JointObservation,
    Observation,
    Rating,
    Unjudgeable,
)
from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import (
    Decisions,
    StoppingRule,
    StopReason,
    Verdict,
    all_decided,
    undecided,
)
from celeus.core.pools.item import Item
from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import Scores
from celeus.core.pools.systems import PLACES, SIDES
from celeus.core.sampling.proposals import Proposal, ProposedDraw
from celeus.core.session.engine import Engine, copied_fold, engine_of
from celeus.core.session.fold import Fold
from celeus.core.session.outcome import Judgement, Loss, single_loss
from celeus.core.session.panel import Ratings
from celeus.core.session.points import Points
from celeus.core.session.presentation_order import Sides
from celeus.core.session.question import Question, View
from celeus.core.session.rounds import Rounds


@dataclass(slots=True)
class Mean(Question):
    """The question of one mean loss, after the rounds in ``fold``.

    ``sides`` says on which side judges see which answer, where two named systems are compared;
    ``ratings`` what the raters of a panel have said, where a protocol makes losses of it.
    """

    purpose: ClassVar = "measures a risk or a difference"
    bets_at_draw: ClassVar = False

    plan: Plan
    engine: Engine
    fold: Fold
    sides: Sides | None = None
    ratings: Ratings | None = None

    @classmethod
    def of(cls, plan: Plan, scores: Scores, seed: bytes) -> Self:
        """The question before its first draw. O(N log N)."""
        return cls.begun(plan, engine_of(plan, scores, seed), seed)

    @classmethod
    def begun(cls, plan: Plan, engine: Engine, seed: bytes) -> Self:
        """The question of an engine before its first draw."""
        sides = None if plan.systems is None else Sides(seed)
        return cls(plan, engine, engine.fold(), sides, ratings_of(plan, seed))

    @property
    def correctable(self) -> bool:
        """True: the rounds are folded again, with the probabilities that were recorded."""
        return True

    @property
    def adaptive(self) -> bool:
        """True if draws depend on the losses judged before."""
        return self.engine.adaptive

    @property
    def proposal(self) -> Proposal:
        """The proposal: which item is drawn next, and with which probability."""
        return self.engine.proposal

    @property
    def folded(self) -> int:
        """Rounds that the interval speaks for."""
        return self.fold.rounds

    @property
    def interval(self) -> Interval:
        """Interval for the target after the folded rounds."""
        return self.fold.interval

    @property
    def estimate(self) -> float:
        """Point estimate after the folded rounds."""
        return self.fold.estimate

    @property
    def points(self) -> Points:
        """The answer after every folded round."""
        return self.fold.points

    @property
    def decisions(self) -> Decisions:
        """The answers after the folded rounds, in the order of the questions."""
        return self.fold.decisions or undecided(self.plan.questions)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on a difference; None where none is asked for."""
        return self.fold.verdict

    @property
    def rounds_to_replay(self) -> int:
        """Rounds to bet on again when the next one is folded."""
        return self.fold.confidence_sequence.rounds_to_replay

    def replays_soon(self, rule: StoppingRule, *, last: bool) -> bool:
        """Return whether folding the next round will likely bet on all rounds so far again."""
        return self.fold.confidence_sequence.replays_soon(rule.precision, last=last)

    def bets_per_round(self, rule: StoppingRule) -> int:
        """Bets that folding the next round may place, one a candidate and goal."""
        return self.fold.confidence_sequence.bets_per_round(rule.precision)

    def choose(self, coin: float) -> ProposedDraw:
        """The next item with its probabilities."""
        return self.proposal.choose(coin, self.fold.predictor.fit)

    def chance(self, item: int) -> ProposedDraw:
        """An item left, with the probabilities that it would be drawn with now."""
        return self.proposal.chance(item, self.fold.predictor.fit)

    def take(self, draw: Draw) -> None:
        """Enter the next draw of the ledger."""
        self.proposal.take(draw.item, draw.round)
        if self.ratings is not None:
            self.ratings.draw(draw.round, draw.item)

    def accept(self, event: Observation | Unjudgeable | JointObservation, item: int) -> None:
        """Check that a panel's round is judged with what its raters have come to."""
        del item
        if self.ratings is not None:
            self.ratings.settle(event.round, event.loss if isinstance(event, Observation) else None)

    def enter(self, event: Rating | Addition) -> None:
        """Enter what one rater of a panel says."""
        if self.ratings is None or isinstance(event, Addition):
            message = f"{event} belongs to no session of one mean without a panel"
            raise ValueError(message)
        self.ratings.rate(event)

    def follow(self, rounds: Rounds, most: int) -> None:
        """Take in draws and judgements in the order of the ledger, and fold what is ready."""
        self.fold.follow(self.plan, rounds, most)

    def holds(self, round_: int) -> bool:
        """Return whether a round's judgement is folded, or waits for an open one before it."""
        return round_ <= self.folded or round_ in self.fold.knowledge.losses

    def restart(self) -> None:
        """Forget all folded rounds: one of them was corrected."""
        self.fold = self.engine.fold()

    def copied(self) -> Self:
        """A copy to ``settle``; the question may go on meanwhile."""
        known = self.fold.knowledge
        # What is known at draws goes on with the session; bets on drawn rounds do not use it
        fold = copied_fold(self.engine, self.fold, self.points[:], known)
        fold.knowledge = replace(known, open=known.open.copy(), losses=known.losses.copy())
        return replace(self, fold=fold)

    def settle(self) -> None:
        """Fold all that is drawn, draws that nobody has judged as if nobody could."""
        self.fold.settle(self.plan)

    def stop(self, rule: StoppingRule, drawn: int) -> StopReason | None:
        """Return the reason to stop under ``rule``, or None to go on."""
        del drawn
        decided = all_decided(self.fold.decisions, self.verdict)
        # Items that may be run again are never all judged
        items = sys.maxsize if self.plan.repeats else self.plan.drawable
        return rule.reason(self.interval, self.folded, items, decided=decided)

    def answers(self) -> Iterator[tuple[str, str]]:
        """The answers to questions of side and threshold, and the verdict, as far as given."""
        for decision in self.decisions:
            if decision.answer != "undecided":
                question = decision.question
                yield f"{question.side} {question.threshold:g}", decision.answer
        if self.verdict is not None and self.verdict.answer != "undecided":
            yield "verdict", self.verdict.answer

    def outcome(self, pool: Pool, item: int, judgement: Judgement, view: View) -> Loss:
        """The loss that a judgement states or implies; None where nobody can tell it."""
        del view
        left = None if self.sides is None else self.sides.left(judgement.round)
        loss = single_loss(pool, item, judgement, left)
        if loss is not None and pool.bounds is not None and self.plan.believed is not None:
            pool.bounds.check(item, loss)
        return loss

    def presented(self, item: Item, round_: int) -> dict[str, Any]:
        """The item, and ``left`` and ``right`` where two systems' answers are compared."""
        if self.sides is None:
            return {"item": item}
        answers = [(item.sides or {})[side] for side in SIDES]
        if self.sides.left(round_) != SIDES[0]:
            answers.reverse()
        return {"item": item, **dict(zip(PLACES, answers, strict=True))}

    def arrangement(self, round_: int, item: int) -> dict[str, str]:
        """The system on the ``left``; empty where no two are compared."""
        del item
        return {} if self.sides is None else {"left": self.sides.left(round_)}


def ratings_of(plan: Plan, seed: bytes) -> Ratings | None:
    """The ratings of the plan's panel before the first draw; None where it has none.

    An empty ``seed`` is one that is not known.
    """
    if plan.protocol is None:
        return None
    return Ratings(plan.protocol, plan.panel, seed or None)

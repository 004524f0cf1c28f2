"""The questions a session can ask, and the protocol between a session and its question.

A session knows rounds, their order, corrections and the stopping rule; a question knows what is
drawn, what a loss means and what is answered. For every round a session calls, in this order:

1. ``choose(coin)``: the item to draw next and its probabilities. Changes nothing.
2. ``take(draw)``: the draw is out; whatever its bet rests on is fixed here, before its loss. A
   question with several losses a round has folded all that is ready by then.
3. ``accept(event, item)``: take what a judge said of the round, or refuse it, in any order.
4. ``follow(rounds, most)``: take in what the ledger has since, and fold rounds, each once it and
   all rounds drawn before it are judged.
5. ``stop(rule, drawn)``: why the session ends, or None.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from celeus.core.ledger import (
    Addition,
    Draw,
    JointObservation,
    Observation,
    Rating,
    Unjudgeable,
)
from celeus.core.plans.best_plan import BestPlan
from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import StoppingRule, StopReason
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.item import Item
from celeus.core.pools.pool import Pool
from celeus.core.sampling.proposals import Proposal, ProposedDraw, StratifiedProposal
from celeus.core.session.outcome import Judgement, Loss
from celeus.core.session.panel import Ratings
from celeus.core.session.points import Points
from celeus.core.session.rounds import Rounds

AnyPlan = Plan | BestPlan | TablePlan


@dataclass(frozen=True, slots=True)
class View:
    """The view of a round's judge: ``shown`` answers, and ``blind`` to known losses."""

    shown: bool = True
    blind: bool = False


class Question(Protocol):
    """A question that a session asks of its pool."""

    __slots__ = ()
    purpose: ClassVar[str]
    """The words for what a session of this question does, as in "a session that …"."""
    bets_at_draw: ClassVar[bool]
    """True if a round's bets are fixed at its draw, once all that is ready is folded."""
    plan: AnyPlan
    """The frozen choices of the session."""
    ratings: Ratings | None
    """The ratings of a panel; None where there is no panel."""

    @property
    def correctable(self) -> bool:
        """True if a judgement can be corrected later."""
        return False

    @property
    def orders_answers(self) -> bool:
        """True if judges see several answers, in an order drawn for the round."""
        return False

    @property
    def proposal(self) -> Proposal:
        """The proposal that the next item is drawn by; it knows the items drawn."""

    @property
    def adaptive(self) -> bool:
        """True if draws depend on losses."""

    @property
    def folded(self) -> int:
        """Rounds that the answer speaks for."""

    @property
    def points(self) -> Points:
        """The answer after every folded round; empty where there is no one interval."""

    @property
    def is_open(self) -> bool:
        """True if the items left to draw may still change the answer."""
        return True

    @property
    def rounds_to_replay(self) -> int:
        """Rounds to bet on again when the next one is folded."""

    def replays_soon(self, rule: StoppingRule, *, last: bool) -> bool:
        """Return whether folding the next round will likely bet on all of them again.

        A guess that costs nothing: it may be wrong either way. ``last``: nothing is left after it.
        """

    def bets_per_round(self, rule: StoppingRule) -> int:
        """Bets that folding the next round may place under ``rule``, about 50 ns each."""

    def choose(self, coin: float) -> ProposedDraw:
        """The next item with its probabilities; ``coin`` is uniform on (0, 1)."""

    def chance(self, item: int) -> ProposedDraw:
        """An item left, with the probabilities that it would be drawn with now."""

    def take(self, draw: Draw) -> None:
        """Enter the next draw of the ledger."""

    def accept(self, event: Observation | Unjudgeable | JointObservation, item: int) -> None:
        """Take a judgement of ``item`` that the ledger has; ValueError where it cannot be."""

    def enter(self, event: Rating | Addition) -> None:
        """Enter an event that no other question has; ValueError where this one has it not."""

    def follow(self, rounds: Rounds, most: int) -> None:
        """Take in the draws and judgements not taken in yet, and fold at most ``most`` rounds."""

    def holds(self, round_: int) -> bool:
        """Return whether the judgement of a round was taken in."""

    def restart(self) -> None:
        """Forget all folded rounds: one of them was corrected."""

    def copied(self) -> Self:
        """A copy to ``settle``; the question may go on meanwhile."""

    def settle(self) -> None:
        """Fold all that is drawn, a draw that nobody has judged at its worst for every claim.

        Nothing is drawn after it.
        """

    def stop(self, rule: StoppingRule, drawn: int) -> StopReason | None:
        """Return the reason to stop after ``drawn`` draws under ``rule``, or None to go on."""

    def answers(self) -> Iterator[tuple[str, str]]:
        """The answers given so far, each with what was asked."""

    def check_budget(self, budget: int) -> None:
        """Refuse a budget that would fill a ledger whose certificate nobody verifies.

        Any will do where a draw has few strata.
        """
        del budget

    def outcome(self, pool: Pool, item: int, judgement: Judgement, view: View) -> Loss:
        """The loss that a judgement of ``item`` states or implies; refused where it has none."""

    def presented(self, item: Item, round_: int) -> dict[str, Any]:
        """The item of a round as its judge sees it: nothing says whose its answers are."""
        del round_
        return {"item": item}

    def arrangement(self, round_: int, item: int) -> dict[str, str]:
        """The order of a round's answers before its judge, as the ledger keeps it with the draw.

        Of two systems which one is ``left``, of several their ``order``; empty where one is judged.
        """
        del round_, item
        return {}


class JointQuestion(Question, Protocol):
    """The base of questions with several losses a round: no correction, panel or single interval.

    Which items were drawn later followed from what the judges had said, so nothing is corrected. A
    round is bet on once, with what was known when it was drawn.
    """

    __slots__ = ()
    bets_at_draw: ClassVar[bool] = True
    ratings: None = None
    rounds_to_replay: int = 0

    @property
    def proposal(self) -> StratifiedProposal:
        """The proposal that the next item is drawn by."""

    @property
    def q(self) -> NDArray[np.float64]:
        """The probability of a single item left in every stratum."""

    @property
    def points(self) -> Points:
        """Empty: there is no one interval."""
        return Points()

    def choose(self, coin: float) -> ProposedDraw:
        """The next item with its probabilities."""
        return self.proposal.pick(coin, self.q)

    def chance(self, item: int) -> ProposedDraw:
        """An item left, with the probabilities it would be drawn with now."""
        return self.proposal.at(item, self.q)

    def replays_soon(self, rule: StoppingRule, *, last: bool) -> bool:
        """False: a round is bet on once."""
        del rule, last
        return False

    def holds(self, round_: int) -> bool:
        """False: no judgement is corrected."""
        del round_
        return False

    def restart(self) -> None:
        """Raise TypeError: no judgement is corrected."""
        raise TypeError(self)

    def fold_next(self) -> None:
        """Fold the oldest draw that is out."""

    def follow(self, rounds: Rounds, most: int) -> None:
        """Fold every judged round before the first unjudged one, at most ``most`` of them."""
        for _ in range(min(rounds.ready - self.folded, most)):
            self.fold_next()

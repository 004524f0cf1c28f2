"""A session: a plan's question, the rounds of its ledger, and the rule by which it stops.

    session = begin_session(plan, pool, seed)
    draw = session.propose()              the item to judge next; changes nothing
    session.apply(draw)                   the draw is in the ledger
    session.observe(draw.round, loss)     it is judged; folded with the rounds that waited for it

The live service, the verifier, the simulator and the tests all run this module. A session belongs
to whoever holds it: steps change it and return it. After an event that was refused its sequence is
no longer that of a ledger: let it go and begin anew.
"""

import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from celeus.core.ledger import (
    Addition,
    Amendment,
    Change,
    Draw,
    Event,
    JointObservation,
    Observation,
    Rating,
    Unjudgeable,
    compare_draws,
)
from celeus.core.pause import pause
from celeus.core.plain import Mismatch
from celeus.core.plans.best_plan import BestPlan
from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import StoppingRule, StopReason
from celeus.core.plans.success import Success, check_made
from celeus.core.plans.table_plan import TablePlan
from celeus.core.pools.item import Item
from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import Scores, scores
from celeus.core.pools.table_pool import table_of
from celeus.core.randomness import uniforms
from celeus.core.session.best.best_question import Best
from celeus.core.session.best.candidates import candidates_of
from celeus.core.session.mean import Mean
from celeus.core.session.outcome import Judgement, Loss, judged, loss_in
from celeus.core.session.question import AnyPlan, Question, View
from celeus.core.session.rounds import JudgedLoss, JudgedLosses, Rounds, counts_of
from celeus.core.session.table.table_question import Table, check_plan
from celeus.errors import InvalidValue, RoundNotDrawn

Q = TypeVar("Q", bound=Question)
COINS_AT_ONCE = 256
AS_SEEN = View()
"""The view of a judge who sees the answers, and whatever the session says."""


class Coins:
    """The coins of a session's draws, read ahead in blocks; coin t belongs to round t."""

    __slots__ = ("_block", "_seed", "_start")

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._start = 0
        self._block: NDArray[np.float64] = np.empty(0)

    def of_round(self, round_: int) -> float:
        """The coin of round ``round_``, uniform on (0, 1)."""
        place = round_ - 1 - self._start
        if not 0 <= place < self._block.size:
            self._start = (round_ - 1) // COINS_AT_ONCE * COINS_AT_ONCE
            self._block = uniforms(self._seed, "coin", COINS_AT_ONCE, self._start)
            place = round_ - 1 - self._start
        return float(self._block[place])


@dataclass(slots=True)
class Session(Generic[Q]):
    """A session after ``sequence`` events of its ledger.

    ``observed`` rounds are judged; ``changes`` events altered the stopping rule, ``corrections`` a
    judgement. Where draws have several runs, ``runs`` are those of the labels among the first
    ``runs_counted`` rounds folded, ``runs_made`` those of every judged draw, by round. ``stale``: a
    folded round was corrected, and nothing is folded since.
    """

    question: Q
    coins: Coins
    stopping: StoppingRule
    rounds: Rounds
    sequence: int = 0
    observed: int = 0
    changes: int = 0
    corrections: int = 0
    runs: int = 0
    runs_counted: int = 0
    runs_made: dict[int, int] = field(default_factory=dict)
    stale: bool = False

    @classmethod
    def of(cls, question: Q, seed: bytes) -> "Session[Q]":
        """A session before its first draw; an empty ``seed`` is one that is not known."""
        return cls(question, Coins(seed), question.plan.stopping, Rounds(width=question.plan.width))

    @property
    def plan(self) -> AnyPlan:
        """The frozen choices of the session."""
        return self.question.plan

    @property
    def fixes_raters(self) -> bool:
        """True if the plan fixes who judges an item, so that nobody else may.

        Over runs, too: a second one of a slow run would be picked by how long runs take.
        """
        plan = self.plan
        return isinstance(plan, Plan) and (plan.raters is not None or plan.target == "runs")

    @property
    def most_draws(self) -> int:
        """Most draws that any budget allows."""
        return self.question.plan.most_draws

    @property
    def drawn(self) -> int:
        """Rounds drawn, judged or not."""
        return len(self.rounds)

    @property
    def folded(self) -> int:
        """Rounds that the answer speaks for: all before the first unjudged one."""
        return self.question.folded

    @property
    def pending(self) -> int:
        """Draws whose judgement is still out."""
        return self.drawn - self.observed

    @property
    def waiting(self) -> int:
        """Judgements that wait for an earlier round."""
        return self.observed - self.folded

    @property
    def counts(self) -> dict[str, int]:
        """Counts of rounds, under the names that status and certificate give them."""
        return counts_of(self.drawn, self.observed, self.folded)

    @property
    def can_draw(self) -> bool:
        """Pool and budget leave something to draw that may change the answer."""
        most = min(self.most_draws, self.stopping.budget)
        return self.drawn < most and self.question.is_open

    @property
    def stop_reason(self) -> StopReason | None:
        """The reason to stop, or None to go on."""
        return self.question.stop(self.stopping, self.drawn)

    @property
    def bets_per_round(self) -> int:
        """Bets that folding the next round may place: about 50 ns each."""
        return self.question.bets_per_round(self.stopping)

    def item(self, round_: int) -> int:
        """The item of a round."""
        return self.rounds.item[round_ - 1]

    def answer(self, round_: int) -> JudgedLoss | JudgedLosses:
        """The first judgement of a round, PENDING until there is one."""
        return self.rounds.first_judgement(round_ - 1)

    def answered_at(self, round_: int) -> int:
        """The sequence of a round's first judgement."""
        return self.rounds.answered_at[round_ - 1]

    def propose(self) -> Draw:
        """The next draw, from what was taken in. Changes nothing; asking again is the same."""
        pause()
        if not self.can_draw:
            message = f"nothing left to draw after {self.drawn} draws"
            raise ValueError(message)
        round_ = self.drawn + 1
        item, q, strata_q = self.question.choose(self.coins.of_round(round_))
        return Draw(round_, item, q, self.sequence, strata_q)

    def chance(self, item: int) -> Draw:
        """The draw of an item left, with the probabilities that it would be made with now."""
        _, q, strata_q = self.question.chance(item)
        return Draw(self.drawn + 1, item, q, self.sequence, strata_q)

    def check_draw(self, draw: Draw, *, seeded: bool) -> None:
        """Raise Mismatch unless ``draw`` is the one due, or without the seed one possible."""
        where = f"ledger[{self.sequence}]"
        if not self.can_draw:
            raise Mismatch(where, "a draw", "none: nothing is left to draw")
        drawn_in = self.question.proposal.drawn_in
        if not 0 <= draw.item < drawn_in.size or drawn_in[draw.item]:
            raise Mismatch(f"{where}.item", draw.item, "an item left")
        compare_draws(where, draw, self.propose() if seeded else self.chance(draw.item))

    def outcome(self, pool: Pool, judgement: Judgement, view: View = AS_SEEN) -> Loss:
        """The loss a judgement states or implies, checked against the scale; None: unjudgeable.

        Refuses rounds that are not drawn, and judgements that this session's rounds cannot have.
        """
        loss = self._stated(pool, judgement, view)
        check_made(self._success, loss, judgement.runs)
        return loss

    def corrected(self, pool: Pool, judgement: Judgement) -> Loss:
        """The loss of a judgement that replaces an earlier one.

        Refuses what ``outcome`` refuses, a number of runs, which stays that of the first judgement,
        and a loss that takes more of them.
        """
        if judgement.runs is not None:
            rule = "left out of a correction: those of the draw stay"
            message = f"runs must be {rule}"
            raise InvalidValue(message, field="runs", rule=rule, value=judgement.runs)
        loss, made = self._stated(pool, judgement, AS_SEEN), self.runs_made.get(judgement.round)
        if self._success is not None and made is not None:
            self._success.check_correction(loss if isinstance(loss, float) else None, made)
        return loss

    @property
    def _success(self) -> Success | None:
        """The runs of a draw that have to succeed; None where a draw is one run."""
        return self.plan.success if isinstance(self.plan, Plan) else None

    def _stated(self, pool: Pool, judgement: Judgement, view: View) -> Loss:
        drawn = self.drawn
        if not 1 <= judgement.round <= drawn:
            raise RoundNotDrawn(
                f"round {judgement.round} is not drawn; {drawn} rounds are",
                field="round",
                rule=f"a round from 1 to {drawn}" if drawn else "a round that was drawn",
                value=judgement.round,
            )
        return self.question.outcome(pool, self.item(judgement.round), judgement, view)

    def presented(self, pool: Pool, item: Item, round_: int) -> dict[str, Any]:
        """The ``item`` of a round as its judge sees it, with its answers if these are compared.

        Of two systems ``left`` and ``right``, of several ``answers``; nothing says whose they are.
        """
        if pool.named is None:
            return {"item": item}
        return self.question.presented(item.split(pool.named), round_)

    def observe(self, round_: int, loss: Loss) -> "Session[Q]":
        """Enter the loss of a drawn round; folds it and what waited for it."""
        return self.apply(judged(round_, loss))

    def apply(self, event: Event) -> "Session[Q]":
        """Enter the next event of the ledger and fold what is ready."""
        pause()
        return self.enter(event).fold()

    def replay(self, events: Iterable[Event]) -> "Session[Q]":
        """Enter many events; the same as applying each, but folds every round once."""
        for event in events:
            self.enter(event)
        return self.fold()

    def enter(self, event: Event) -> "Session[Q]":
        """Enter the next event of the ledger without folding, which ``fold`` does."""
        self.sequence += 1
        match event:
            case Draw():
                self._draw(event)
            case Observation() | Unjudgeable() | JointObservation():
                self._judge(event)
            case Amendment():
                self._correct(event)
            case Change():
                rule = self._changed(event)
                self.changes += rule != self.stopping
                self.stopping = rule
            case Rating():
                self.question.enter(event)
            case Addition():
                # What a new claim knows is what is folded
                self.fold()
                self.question.enter(event)
        return self

    def fold(self, most: int = sys.maxsize) -> "Session[Q]":
        """Fold every judged round before the first unjudged one, all anew after a correction.

        At most ``most`` rounds at once.
        """
        if self.stale:
            self.question.restart()
            self.restarted()
        self.question.follow(self.rounds, most)
        if self.runs_made:
            for round_ in range(self.runs_counted + 1, self.folded + 1):
                if self.rounds.losses(round_ - 1)[0] is not None:
                    self.runs += self.runs_made[round_]
            self.runs_counted = self.folded
        return self

    def restarted(self) -> None:
        """Note that the question has gone back to before a judgement that was corrected."""
        self.stale = False
        self.runs = self.runs_counted = 0

    def rounds_to_fold(self, judged: Collection[int]) -> int:
        """Rounds to fold once the rounds ``judged`` are judged, those to bet on again included.

        With ``bets_per_round``, a measure of time known before it is spent.
        """
        place, rounds = self.folded, self.rounds
        while place < len(rounds) and (rounds.is_judged(place) or place + 1 in judged):
            place += 1
        ready = place - self.folded
        return ready + self.question.rounds_to_replay if ready else 0

    def replays_soon(self, judged: Collection[int]) -> bool:
        """Return whether judging these rounds will likely bet on all rounds so far again."""
        rounds, place = self.rounds, self.folded
        if place >= len(rounds) or not (rounds.is_judged(place) or place + 1 in judged):
            return False
        coming = rounds.rules[rounds.rule[place]]
        last = place + 1 >= min(self.most_draws, coming.budget)
        return self.question.replays_soon(coming, last=last)

    def refolds(self, event: Amendment) -> bool:
        """Return whether a correction changes what was taken in: its round, with another loss."""
        taken_in = self.question.correctable and self.question.holds(event.round)
        return taken_in and self.rounds.differs(event.round - 1, event.loss)

    def _draw(self, draw: Draw) -> None:
        if draw.round != self.drawn + 1:
            message = f"draw of round {draw.round} after {self.drawn} draws"
            raise ValueError(message)
        if self.question.bets_at_draw:
            self.fold()
        self.question.take(draw)
        self.rounds.append(draw, self.stopping)

    def _judge(self, event: Observation | Unjudgeable | JointObservation) -> None:
        round_ = event.round
        if not 1 <= round_ <= self.drawn or self.rounds.is_judged(round_ - 1):
            message = f"round {round_} is not waiting for a judgement"
            raise ValueError(message)
        if isinstance(event, JointObservation) == (self.plan.width is None):
            kind = "one loss" if self.plan.width is None else "a loss of each"
            raise Mismatch(f"ledger[{self.sequence - 1}]", event, kind)
        self.question.accept(event, self.item(round_))
        loss = event.losses if isinstance(event, JointObservation) else loss_in(event)
        self.rounds.judge(round_ - 1, loss, self.sequence)
        self.observed += 1
        if not isinstance(event, JointObservation) and event.runs is not None:
            self.runs_made[round_] = event.runs

    def _correct(self, event: Amendment) -> None:
        if not self.question.correctable:
            raise Mismatch(f"ledger[{self.sequence - 1}]", event, "no correction")
        if not 1 <= event.round <= self.drawn or not self.rounds.is_judged(event.round - 1):
            message = f"round {event.round} has no judgement to correct"
            raise ValueError(message)
        success, made = self._success, self.runs_made.get(event.round)
        if success is not None and not success.allows(event.loss, made):
            raise Mismatch(f"ledger[{self.sequence - 1}]", event, "a loss of the runs made")
        self.stale |= self.refolds(event)
        self.rounds.correct(event.round - 1, event.loss, self.sequence)
        self.corrections += 1

    def _changed(self, event: Change) -> StoppingRule:
        if not self.plan.has_precision:
            return replace(self.stopping, budget=event.budget)
        stop = event.stop_when_decided
        if stop is None:
            stop = self.stopping.stop_when_decided
        return StoppingRule(event.precision, event.budget, stop)


AnySession = Session[Mean] | Session[Best] | Session[Table]


def plan_from_values(values: Mapping[str, Any]) -> AnyPlan:
    """The plan whose ``to_dict`` gave ``values``."""
    if "table" in values:
        return TablePlan.from_dict(values)
    return BestPlan.from_dict(dict(values)) if "best" in values else Plan.from_dict(dict(values))


@overload
def begin_session(plan: Plan, pool: Pool, seed: bytes) -> Session[Mean]: ...
@overload
def begin_session(plan: BestPlan, pool: Pool, seed: bytes) -> Session[Best]: ...
@overload
def begin_session(plan: TablePlan, pool: Pool, seed: bytes) -> Session[Table]: ...
@overload
def begin_session(plan: AnyPlan, pool: Pool, seed: bytes) -> AnySession: ...
def begin_session(plan: AnyPlan, pool: Pool, seed: bytes) -> AnySession:
    """The session of a plan on its pool before its first draw. O(N log N), once.

    Raises Mismatch where plan and pool do not agree. With an empty ``seed``, one that is not
    known, draws can be checked and not proposed.
    """
    match plan:
        case Plan():
            return begin_mean(plan, scores(pool, plan.strategy), seed)
        case BestPlan():
            shows = "predictions" not in pool.columns
            return Session.of(Best(plan, candidates_of(pool), seed, shows_answers=shows), seed)
        case TablePlan():
            table = table_of(pool, plan.cut_by)
            check_plan(plan, table)
            return Session.of(Table(plan, table, seed), seed)


def begin_mean(plan: Plan, scores: Scores, seed: bytes) -> Session[Mean]:
    """The session of a mean loss, from what is known of every item before its loss."""
    return Session.of(Mean.of(plan, scores, seed), seed)


def judge_rounds(
    session: AnySession,
    loss: Callable[[int], Loss],
    *,
    past_stop: bool = False,
    ahead: int = 1,
) -> Iterator[Draw]:
    """Draw, judge and fold one round after the other, up to the stop; each draw, once it is folded.

    ``loss`` gives the loss of an item. With ``past_stop`` it goes on until nothing is left to draw,
    or the caller stops listening. ``ahead`` draws are out at once, judged in their order.
    """
    out = deque[Draw]()
    while past_stop or session.stop_reason is None:
        while len(out) < ahead and session.can_draw:
            out.append(session.propose())
            session.apply(out[-1])
        if not out:
            return
        draw = out.popleft()
        session.observe(draw.round, loss(draw.item))
        yield draw

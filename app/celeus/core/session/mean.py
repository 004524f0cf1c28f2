"""The fold: a plan and the events of a ledger give a state; a state says what to draw next.

    state = begin(plan, scores, seed)
    draw = propose(plan, state)             what to judge next; changes nothing
    state = apply(plan, state, draw)        the draw is in the ledger
    state = observe(plan, state, round, loss)

A state belongs to whoever holds it and a step consumes the state it is given: per-item arrays are
never copied. The live service, the verifier, the simulator and the tests all run this module.
"""

import sys
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from celeus.core.interval import Interval
from celeus.core.ledger import Amendment, Change, Draw, Event, Observation, Rating, Unjudgeable
from celeus.core.plans.plan import Plan
from celeus.core.plans.stopping import (
    Decisions,
    Question,
    StoppingRule,
    StopReason,
    Verdict,
    all_decided,
    undecided,
)
from celeus.core.pools.surrogates import Scores
from celeus.core.randomness import uniforms
from celeus.core.sampling.proposals import Proposal
from celeus.core.session.engine import Engine, engine_of
from celeus.core.session.fold import Fold, fold_round
from celeus.core.session.panel import Ratings
from celeus.core.session.points import Points
from celeus.core.session.presentation_order import Sides
from celeus.core.session.rounds import JudgedLoss, Rounds, counts_of

Floats = NDArray[np.float64]

COINS_AT_ONCE = 256


class Coins:
    """The coins of a session's draws, read ahead in blocks; coin t belongs to round t."""

    __slots__ = ("_block", "_seed", "_start")

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._start = 0
        self._block: Floats = np.empty(0)

    def of_round(self, round_: int) -> float:
        """The coin of round ``round_``, uniform on (0, 1)."""
        at = round_ - 1 - self._start
        if not 0 <= at < self._block.size:
            self._start = (round_ - 1) // COINS_AT_ONCE * COINS_AT_ONCE
            self._block = uniforms(self._seed, "coin", COINS_AT_ONCE, self._start)
            at = round_ - 1 - self._start
        return float(self._block[at])


@dataclass(slots=True)
class State:
    """A session after ``sequence`` events.

    ``changes`` of them altered its stopping rule, ``corrections`` a judgement.

    ``drawable`` is how many items may be drawn: all but those whose losses are known. ``sides``
    says on which side judges see which answer, where two named systems are compared; ``ratings``
    what the raters of a panel have said, where a protocol makes losses of it.
    """

    drawable: int
    scale: Interval
    coins: Coins
    engine: Engine
    fold: Fold
    stopping: StoppingRule
    questions: tuple[Question, ...] = ()
    sequence: int = 0
    observed: int = 0
    stale: bool = False
    changes: int = 0
    corrections: int = 0
    rounds: Rounds = field(default_factory=Rounds)
    sides: Sides | None = None
    ratings: Ratings | None = None

    @property
    def proposal(self) -> Proposal:
        """The proposal: which item is drawn next, and with which probability."""
        return self.engine.proposal

    @property
    def drawn(self) -> int:
        """Rounds drawn, judged or not."""
        return len(self.rounds)

    def item(self, round_: int) -> int:
        """The item of a round."""
        return self.rounds.item[round_ - 1]

    def answer(self, round_: int) -> JudgedLoss:
        """The first judgement of a round, PENDING until there is one."""
        return self.rounds[round_ - 1].answer

    def refolds(self, event: Amendment) -> bool:
        """Whether a correction changes what was folded: its round was, and had another loss."""
        return event.round <= self.folded and self.rounds.differs(event.round - 1, event.loss)

    def answered_at(self, round_: int) -> int:
        """The sequence of a round's first judgement."""
        return self.rounds.answered_at[round_ - 1]

    @property
    def folded(self) -> int:
        """Rounds the interval speaks for: all before the first unjudged one."""
        return self.fold.rounds

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
        return self.fold.decisions or undecided(self.questions)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on a difference; None where none is asked for."""
        return self.fold.verdict

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the session stops, or None to go on."""
        decided = all_decided(self.fold.decisions, self.verdict)
        return self.stopping.reason(self.interval, self.folded, self.drawable, decided=decided)


def begin(plan: Plan, scores: Scores, seed: bytes) -> State:
    """The state of a session before its first draw. O(N log N), once."""
    parts = engine_of(plan, scores, seed)
    return State(
        drawable=plan.drawable,
        scale=plan.scale,
        coins=Coins(seed),
        engine=parts,
        fold=parts.fold(),
        stopping=plan.stopping,
        questions=plan.questions,
        sides=None if plan.systems is None else Sides(seed),
        ratings=ratings_of(plan, seed),
    )


def ratings_of(plan: Plan, seed: bytes) -> Ratings | None:
    """What the panel has said before the first draw; None where the plan has none.

    An empty ``seed`` is one that is not known.
    """
    if plan.protocol is None:
        return None
    return Ratings(plan.protocol, plan.panel, seed or None)


def can_draw(plan: Plan, state: State) -> bool:
    """Pool and budget leave something to draw."""
    return state.drawn < min(plan.drawable, state.stopping.budget)


def propose(plan: Plan, state: State) -> Draw:
    """The next draw, from what is folded so far. Changes nothing; asking again gives the same."""
    if not can_draw(plan, state):
        message = f"nothing left to draw after {state.drawn} draws"
        raise ValueError(message)
    round_ = state.drawn + 1
    coin = state.coins.of_round(round_)
    item, q, strata_q = state.proposal.choose(coin, state.fold.predictor.residual_moments)
    return Draw(round=round_, item=item, q=q, seen=state.sequence, strata_q=strata_q)


def observe(plan: Plan, state: State, round_: int, loss: float) -> State:
    """The loss of a drawn round has arrived; folds it and what waited for it."""
    return apply(plan, state, Observation(round_, loss))


def apply(plan: Plan, state: State, event: Event) -> State:
    """The state after the next event of the ledger."""
    return fold_ready(plan, enter(state, event))


def rounds(
    plan: Plan,
    state: State,
    loss: Callable[[int], float],
    *,
    past_stop: bool = False,
    ahead: int = 1,
) -> Iterator[Draw]:
    """Draw, judge and fold one round after the other, up to the stop; each draw, once it is folded.

    ``loss`` gives the loss of an item. It consumes the caller's ``state``. With
    ``past_stop`` it goes on until nothing is left to draw, or the caller stops listening. ``ahead``
    draws are out at once, judged in their order.
    """
    out = deque[Draw]()
    while past_stop or state.stop_reason is None:
        while len(out) < ahead and can_draw(plan, state):
            out.append(propose(plan, state))
            apply(plan, state, out[-1])
        if not out:
            return
        draw = out.popleft()
        observe(plan, state, draw.round, loss(draw.item))
        yield draw


def replay(plan: Plan, state: State, events: Iterable[Event]) -> State:
    """The state after many events; the same as applying each, but folds every round once."""
    for event in events:
        state = enter(state, event)
    return fold_ready(plan, state)


def rounds_to_fold(state: State, judged: Container[int]) -> int:
    """Rounds to fold once the rounds ``judged`` are judged, those to bet on again included.

    With ``bets_per_round``, a measure of time known before it is spent.
    """
    place, rounds = state.folded, state.rounds
    while place < len(rounds) and (rounds.is_judged(place) or place + 1 in judged):
        place += 1
    ready = place - state.folded
    return ready + state.fold.confidence_sequence.rounds_to_replay if ready else 0


def replays_soon(state: State, judged: Container[int]) -> bool:
    """Whether folding the rounds ``judged`` is likely to have all rounds so far bet on again.

    A guess that costs nothing: it may be wrong either way.
    """
    rounds, place = state.rounds, state.folded
    if place >= len(rounds) or not (rounds.is_judged(place) or place + 1 in judged):
        return False
    coming = rounds.rules[rounds.rule[place]]
    last = place + 1 >= min(state.drawable, coming.budget)
    return state.fold.confidence_sequence.replays_soon(coming.precision, last=last)


def bets_per_round(state: State) -> int:
    """Bets that folding the next round may place, one a candidate and goal: about 50 ns each."""
    return state.fold.confidence_sequence.bets_per_round(state.stopping.precision)


def enter(state: State, event: Event) -> State:
    """Apply the next event of the ledger without folding, which ``fold_ready`` does."""
    state.sequence += 1
    match event:
        case Draw():
            if event.round != state.drawn + 1:
                message = f"draw of round {event.round} after {state.drawn} draws"
                raise ValueError(message)
            state.proposal.take(event.item, event.round)
            state.rounds.append(event, state.stopping)
            if state.ratings is not None:
                state.ratings.draw(event.round, event.item)
        case Observation():
            _judge(state, event.round, event.loss)
        case Unjudgeable():
            _judge(state, event.round, None)
        case Rating():
            if state.ratings is None:
                message = f"round {event.round} is judged by no panel"
                raise ValueError(message)
            state.ratings.rate(event)
        case Amendment():
            _correct(state, event)
        case Change():
            rule = _changed(state.stopping, event)
            state.changes += rule != state.stopping
            state.stopping = rule
    return state


def _changed(rule: StoppingRule, event: Change) -> StoppingRule:
    stop = event.stop_when_decided
    if stop is None:
        stop = rule.stop_when_decided
    return replace(rule, precision=event.precision, budget=event.budget, stop_when_decided=stop)


def _judge(state: State, round_: int, loss: float | None) -> None:
    if not 1 <= round_ <= state.drawn or state.rounds.is_judged(round_ - 1):
        message = f"round {round_} is not waiting for a judgement"
        raise ValueError(message)
    if state.ratings is not None:
        state.ratings.settle(round_, loss)
    state.rounds.judge(round_ - 1, loss, state.sequence)
    state.observed += 1


def _correct(state: State, event: Amendment) -> None:
    if not 1 <= event.round <= state.drawn or not state.rounds.is_judged(event.round - 1):
        message = f"round {event.round} has no judgement to correct"
        raise ValueError(message)
    state.stale |= state.refolds(event)
    state.rounds.correct(event.round - 1, event.loss)
    state.corrections += 1


def fold_ready(plan: Plan, state: State, most: int = sys.maxsize) -> State:
    """Every judged round before the first unjudged one is folded, all anew after a correction.

    At most ``most`` rounds at once.
    """
    if state.stale:
        state.fold = state.engine.fold()
        state.stale = False
    rounds, folded = state.rounds, state.folded
    stop = min(len(rounds), folded + most)
    while folded < stop and rounds.is_judged(folded):
        state.fold = fold_round(plan, state.fold, rounds.outcome(folded))
        folded += 1
    return state

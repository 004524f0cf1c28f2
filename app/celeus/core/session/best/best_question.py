"""The best of k systems: which systems are still in, by a race of one process each.

A judgement gives the losses of all k systems. Rounds are folded in the order of their draws, each
with the forecast and the bets that were fixed when it was drawn.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from celeus.core.betting.bets import Goal, goals_for
from celeus.core.betting.candidate_grid import FINEST_GOAL
from celeus.core.interval import Interval
from celeus.core.ledger import (
    Addition,
    Draw,
    JointObservation,
    Observation,
    Rating,
    Unjudgeable,
)
from celeus.core.pause import pause
from celeus.core.plain import Mismatch, equal
from celeus.core.plans.best_plan import BestPlan, require_difference
from celeus.core.plans.plan import check_alpha
from celeus.core.plans.stopping import StoppingRule, StopReason
from celeus.core.pools.item import Item
from celeus.core.pools.pool import Pool
from celeus.core.sampling.proposals import StratifiedProposal, shares_adapt
from celeus.core.session.best.candidates import Candidates, Floats, Indices, Pairs
from celeus.core.session.best.contrasts import Forecast, Signals, Totals
from celeus.core.session.best.partition import Partition, focus_of
from celeus.core.session.best.race import Bets, Race, strongest
from celeus.core.session.outcome import Judgement, losses_by_system
from celeus.core.session.presentation_order import PLACES, Order, Place, best_place, order_text
from celeus.core.session.question import JointQuestion, View

LABELS_AT_ONCE = 1024
COMPARED_IN_A_BET = 50
"""Answers that are compared while a bet is placed."""
Opponents = Callable[[Forecast, Indices], Indices]
"""The opponent of each of the systems standing, from what is known before the loss."""
Standing = Literal["leading", "in", "out"]


class SystemState(NamedTuple):
    """The state of one system; ``round`` is the one at which it was out.

    ``stake`` is the wealth bet against its being best: it starts at alpha, and at 1 it is out.
    ``estimate`` is of its mean loss less that of the leader, None before any label tells the two
    apart; ``limits`` hold the difference for certain, None for systems that are out.
    """

    name: str
    state: Standing
    round: int | None
    stake: float
    estimate: float | None
    limits: Interval | None


class OpenDraw(NamedTuple):
    """A draw that is not folded, what was fixed at it, and its losses once it is judged."""

    item: int
    forecast: Forecast
    bets: Bets
    losses: Floats | None = None


def goals(candidates: Candidates, drawable: int, alpha: float) -> list[Goal]:
    """The information goals of a process, as far as the pool can reach them."""
    # A level at which the normal quantile stays positive, whatever alpha.
    all_ = goals_for(None, 0.0, min(2.0 * alpha, 0.5 + alpha / 2.0))
    least = FINEST_GOAL * math.sqrt(drawable) / candidates.items
    return [goal for goal in all_ if goal.half >= least] or all_[:1]


class Best(JointQuestion):
    """The question which of k systems is best, after some rounds.

    ``known`` is how many items are never drawn, since all systems gave the same answer. ``order``
    is that of the answers in a round, None where a label is asked for. ``places`` counts where the
    best answer stood, over the judgements said in that order; no claim rests on it.
    """

    purpose: ClassVar = "seeks the best of several systems"
    plan: BestPlan

    __slots__ = (
        "_items",
        "_losses",
        "_opponents",
        "_out",
        "_partitions",
        "_seed",
        "candidates",
        "known",
        "order",
        "partition",
        "places",
        "plan",
        "race",
        "totals",
    )

    def __init__(
        self,
        plan: BestPlan,
        candidates: Candidates,
        seed: bytes,
        *,
        shows_answers: bool = False,
        opponents: Opponents = strongest,
    ) -> None:
        check_alpha(plan.alpha)
        every = np.arange(candidates.count)
        self.plan = plan
        self.candidates = candidates
        self.totals = Totals.of(candidates.items, Pairs.among(every, candidates.count).first.size)
        self._seed, self._partitions, self._opponents = seed, 0, opponents
        self.partition = self._partition(every)
        self.known = candidates.items - self.partition.left
        require_difference(candidates.items, self.known, "answer")
        equal("plan.items", plan.items, candidates.items)
        equal("plan.systems", len(plan.systems), candidates.count)
        equal("plan.known", plan.known, self.known)
        self.race = Race(
            candidates.count, plan.alpha, goals(candidates, self.partition.left, plan.alpha)
        )
        self.order = Order(seed, candidates.count) if shows_answers else None
        self.places: dict[Place, int] = dict.fromkeys(PLACES, 0)
        self._items: list[int] = []
        self._losses: list[Floats] = []
        self._out: deque[OpenDraw] = deque()

    @property
    def orders_answers(self) -> bool:
        """True if judges see the systems' answers; False where a label is asked for."""
        return self.order is not None

    @property
    def adaptive(self) -> bool:
        """True if draws depend on the losses folded before: of several also when one leaves."""
        several = len(self.plan.systems) > 2
        return several or shares_adapt(self.plan.beta, self.partition.strata.count)

    @property
    def proposal(self) -> StratifiedProposal:
        """The proposal of the present partition."""
        return self.partition.proposal

    @property
    def folded(self) -> int:
        """Rounds that the systems' states speak for."""
        return self.race.rounds

    @property
    def names_standing(self) -> list[str]:
        """The systems still in, by name."""
        return [self.plan.systems[system] for system in self.race.standing]

    @property
    def winner(self) -> str | None:
        """The system that is best, if only one is left."""
        names = self.names_standing
        return names[0] if len(names) == 1 else None

    @property
    def leader(self) -> int:
        """The number of the system that does best so far."""
        return focus_of(self.totals, self.race.standing, self.candidates.count).leader

    @property
    def is_open(self) -> bool:
        """True if the items left may still separate the systems standing."""
        return self.race.standing.size > 1 and self.partition.left > 0

    def bets_per_round(self, rule: StoppingRule) -> int:
        """The work of the next round, counted in bets: the pool may have to be parted anew."""
        del rule
        contrasts, pairs = self.partition.contrasts, self.partition.contrasts.pairs.place.size
        parted = self.candidates.items * (self.plan.width + pairs // COMPARED_IN_A_BET)
        return int(contrasts.left.size + (parted if self.race.standing.size > 2 else 0))

    @property
    def q(self) -> Floats:
        """The probability of an item left in every stratum."""
        focus = focus_of(self.totals, self.race.standing, self.candidates.count)
        return self.proposal.mixture(self.partition.priorities(focus))

    def take(self, draw: Draw) -> None:
        """Enter the next draw of the ledger."""
        if draw.strata_q is None:
            raise Mismatch("strata_q", None, "the probability of an item of each stratum")
        forecast = self.partition.contrasts.forecast(self.totals, draw.item, draw.strata_q)
        bets = self.race.bets(forecast, self._opponents(forecast, self.race.standing))
        self._out.append(OpenDraw(draw.item, forecast, bets))
        self.partition.take([draw.item], draw.round)

    def accept(self, event: Observation | Unjudgeable | JointObservation, item: int) -> None:
        """Check and keep the losses of all systems, and count where the best answer stood."""
        if not isinstance(event, JointObservation):
            raise TypeError(event)
        place = event.round - self.folded - 1
        self._out[place] = self._out[place]._replace(losses=self.check(item, event.losses))
        shown = self.shown(event.round, item) if event.in_order else None
        losses = [loss for loss in event.losses if loss is not None]
        if shown is not None:
            self.places[best_place(shown, losses)] += 1

    def check(self, item: int, losses: tuple[float | None, ...]) -> Floats:
        """The losses on the unit scale; refused where systems with these answers have others."""
        values = np.array(losses, dtype=np.float64)
        unit = np.asarray((values - self.plan.lower) / self.plan.scale.width)
        self.candidates.check(item, unit)
        return unit

    def enter(self, event: Rating | Addition) -> None:
        """Refuse it: there is no panel, and no further claim."""
        raise Mismatch("ledger", event, "draw, losses or change")

    def fold_next(self) -> None:
        """Fold the oldest draw that is out."""
        forecast = self._out[0].forecast
        self.totals.record(forecast, self._fold_bets().low)
        standing = self.race.standing
        if 1 < standing.size < self._in_partition:
            self._partitions += 1
            self.partition = self._partition(standing)

    def copied(self) -> "Best":
        """A copy to ``settle``; the question may go on meanwhile."""
        parts = self.plan, self.candidates, self.partition.strata, self.partition.proposal
        memo: dict[int, object] = {id(part): part for part in (*parts, *self._out)}
        return deepcopy(self, memo | {id(self._losses): self._losses[:]})

    def settle(self) -> None:
        """Fold all that is drawn, draws that nobody has judged at their worst."""
        while self._out:
            self._fold_bets()

    def _fold_bets(self) -> Signals:
        """Settle the bets on the oldest draw that is out; without a judgement at its worst."""
        pause()
        item, forecast, bets, losses = self._out.popleft()
        signals = forecast.signals(self.totals, losses)
        self.race.settle(bets, signals)
        if losses is None:
            self.totals.at_worst[forecast.pairs.place[forecast.differ]] += 1.0
        else:
            self._record(item, losses)
        contrasts = self.partition.contrasts
        self.race.narrow(contrasts.pairs, *contrasts.limits(self.totals))
        return signals

    def stop(self, rule: StoppingRule, drawn: int) -> StopReason | None:
        """Return the reason to stop under ``rule``, or None to go on."""
        if self.race.standing.size == 1:
            return StopReason.DECIDED
        if not self.is_open and self.folded == drawn:
            return StopReason.EXHAUSTED
        return StopReason.BUDGET_SPENT if self.folded >= rule.budget else None

    def answers(self) -> Iterator[tuple[str, str]]:
        """The winner, once there is one."""
        if self.winner is not None:
            yield "best", self.winner

    def outcome(self, pool: Pool, item: int, judgement: Judgement, view: View) -> tuple[float, ...]:
        """The losses of all systems that a judgement states or implies."""
        order = self.shown(judgement.round, item) if view.shown else None
        losses = losses_by_system(pool, item, judgement, order)
        self.check(item, losses)
        return losses

    def shown(self, round_: int, item: int) -> list[tuple[int, ...]] | None:
        """The systems behind each answer, in the order shown; None where a label is asked."""
        if self.order is None:
            return None
        answer = self.candidates.answer
        return self.order.shown(round_, None if answer is None else answer[item].tolist())

    def presented(self, item: Item, round_: int) -> dict[str, Any]:
        """The item, and its ``answers`` in the order shown; none where none is at hand."""
        order, parts = self.shown(round_, item.index), item.sides or {}
        if order is None or all(text is None for part in parts.values() for text in part.values()):
            return {"item": item}
        names = self.plan.systems
        return {"item": item, "answers": [parts[names[systems[0]]] for systems in order]}

    def arrangement(self, round_: int, item: int) -> dict[str, str]:
        """The ``order`` of the answers shown; empty where none is."""
        shown = self.shown(round_, item)
        return {} if shown is None else {"order": order_text(shown)}

    @property
    def systems(self) -> list[SystemState]:
        """The states of all systems, in the order of the plan."""
        leader, count = self.leader, len(self.plan.systems)
        stake, out_at = self.race.stake, self.race.out_at
        lower, upper = self.partition.contrasts.limits(self.totals)
        row = self.partition.contrasts.pairs.row
        # Half differences on the unit scale.
        unit = 2.0 * self.plan.scale.width
        states: list[SystemState] = []
        for system, name in enumerate(self.plan.systems):
            estimate, limits = None, None
            first, second = sorted((system, leader))
            sign = 1.0 if system < leader else -1.0
            place = first * (2 * count - first - 3) // 2 + second - 1
            if system != leader and self.totals.precision[place] > 0.0:
                centre = self.totals.moments(np.array([place]), np.zeros(1))[0]
                estimate = float(sign * unit * centre[0])
            if system != leader and not out_at[system]:
                pair = row[system, leader]
                ends = sorted(sign * unit * np.array([lower[pair], upper[pair]]))
                limits = Interval(*map(float, ends))
            state: Standing = "leading" if system == leader else "in"
            states.append(
                SystemState(
                    name,
                    "out" if out_at[system] else state,
                    int(out_at[system]) or None,
                    float(min(stake[system], 1.0)),
                    estimate,
                    limits,
                )
            )
        return states

    @property
    def _in_partition(self) -> int:
        pairs = self.partition.contrasts.pairs
        return np.union1d(pairs.first, pairs.second).size

    def _record(self, item: int, losses: Floats) -> None:
        every = Pairs.among(np.arange(self.candidates.count), self.candidates.count)
        self.totals.observed += every.half(losses)
        self._items.append(item)
        self._losses.append(losses)
        self.partition.contrasts.record(np.array([item]), losses[None])

    def _partition(self, standing: Indices) -> Partition:
        """The pool parted for some systems, and what is known of its items by now."""
        focus = focus_of(self.totals, standing, self.candidates.count)
        count = self._partitions
        seed = self._seed + b"cut %d" % count if count else self._seed
        partition = Partition.of(self.candidates, standing, focus, seed, self.plan.beta)
        if count:
            partition.take([*self._items, *(out.item for out in self._out)])
            for start in range(0, len(self._items), LABELS_AT_ONCE):
                part = slice(start, start + LABELS_AT_ONCE)
                partition.contrasts.record(
                    np.array(self._items[part]), np.array(self._losses[part])
                )
        return partition

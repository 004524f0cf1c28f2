"""The state of a service's session that seeks the best of k systems, after the events of a ledger.

It says the same of itself as the state of a session that measures a risk; what it has not are an
interval, points of one, and rounds that are corrected or that nobody can judge.
"""

from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from celeus.core.interval import Interval
from celeus.core.ledger import Change, Draw, Event, JointObservation
from celeus.core.plans.best import BestPlan
from celeus.core.plans.stopping import StopReason
from celeus.core.pools.pool import Pool
from celeus.core.session.best.best_question import BestSession
from celeus.core.session.best.candidates import contenders_of
from celeus.core.session.best.replay import (
    LedgerDiffers,
    begin,
    check_draw,
    enter,
    event_of,
)
from celeus.core.session.joint import JointState
from celeus.core.session.presentation_order import PLACES, Order, Place, best_place, order_text

COMPARED_IN_A_BET = 50
"""Answers that are compared while a bet is placed."""
Standing = Literal["leading", "in", "out"]


class SystemState(NamedTuple):
    """Where a system stands: ``round`` is that at which it was out.

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


@dataclass(slots=True)
class BestState(JointState[BestPlan, BestSession]):
    """A session after ``sequence`` events, ``changes`` of them of its budget.

    ``order`` is that of the answers in a round, None where a label is asked for. ``places`` counts
    where the best answer stood, over the judgements said in that order; no claim rests on it.
    """

    order: Order | None
    places: dict[Place, int] = field(default_factory=lambda: dict.fromkeys(PLACES, 0))

    @classmethod
    def of(cls, plan: BestPlan, pool: Pool, seed: bytes | None) -> "BestState":
        """The state before the first draw; without the seed draws can be checked and not made."""
        session = begin(plan, contenders_of(pool), seed or b"")
        order = None if "predictions" in pool.columns else Order(seed or b"", len(plan.systems))
        return cls(plan, session, plan.stopping, order)

    @property
    def drawable(self) -> int:
        """Items that may be drawn."""
        return self.plan.drawable

    @property
    def folded(self) -> int:
        """Rounds that the systems' states speak for: all before the first unjudged one."""
        return self.session.race.rounds

    @property
    def standing(self) -> list[str]:
        """The systems that may be best, by name: those that are not told apart yet."""
        return [self.plan.systems[one] for one in self.session.standing]

    @property
    def winner(self) -> str | None:
        """The system that is best, if only one is left."""
        winner = self.session.winner
        return None if winner is None else self.plan.systems[winner]

    @property
    def leader(self) -> str:
        """The system that does best so far."""
        return self.plan.systems[self.session.leader]

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the session stops, or None to go on."""
        if self.session.winner is not None:
            return StopReason.DECIDED
        if not self.session.can_draw and self.folded == self.drawn:
            return StopReason.EXHAUSTED
        return StopReason.BUDGET_SPENT if self.folded >= self.stopping.budget else None

    @property
    def systems(self) -> list[SystemState]:
        """Where every system stands, in the order of the plan."""
        session, leader = self.session, self.session.leader
        stake, out_at = session.race.stake, session.race.out_at
        lower, upper = session.cut.contrasts.limits(session.totals)
        row, count = session.cut.contrasts.pairs.row, len(self.plan.systems)
        # Half differences on the unit scale.
        unit = 2.0 * self.plan.scale.width
        states: list[SystemState] = []
        for one, name in enumerate(self.plan.systems):
            estimate, limits = None, None
            first, second = sorted((one, leader))
            sign = 1.0 if one < leader else -1.0
            place = first * (2 * count - first - 3) // 2 + second - 1
            if one != leader and session.totals.precision[place] > 0.0:
                centre = session.totals.moments(np.array([place]), np.zeros(1))[0]
                estimate = float(sign * unit * centre[0])
            if one != leader and not out_at[one]:
                at = row[one, leader]
                ends = sorted(sign * unit * np.array([lower[at], upper[at]]))
                limits = Interval(*map(float, ends))
            state: Standing = "leading" if one == leader else "in"
            states.append(
                SystemState(
                    name,
                    "out" if out_at[one] else state,
                    int(out_at[one]) or None,
                    float(min(stake[one], 1.0)),
                    estimate,
                    limits,
                )
            )
        return states

    @property
    def bets_per_round(self) -> int:
        """The work of folding the next round, counted in bets: the pool may have to be cut anew."""
        contrasts, session = self.session.cut.contrasts, self.session
        pairs, items = contrasts.pairs.place.size, session.contenders.items
        cut = items * (len(self.plan.systems) + pairs // COMPARED_IN_A_BET)
        return int(contrasts.left.size + (cut if session.standing.size > 2 else 0))

    def check(self, item: int, losses: tuple[float, ...]) -> None:
        """Refuse losses that systems with these answers to an item cannot have."""
        unit = (np.array(losses) - self.plan.lower) / self.plan.scale.width
        self.session.contenders.check(item, unit)

    def shown(self, round_: int, item: int) -> list[tuple[int, ...]] | None:
        """Whose answers the judge of a round sees, in this order; None where a label is asked."""
        if self.order is None:
            return None
        answer = self.session.contenders.answer
        return self.order.shown(round_, None if answer is None else answer[item].tolist())

    def arrangement(self, round_: int, item: int) -> dict[str, str]:
        """The ``order`` of the answers shown; empty where none is."""
        shown = self.shown(round_, item)
        return {} if shown is None else {"order": order_text(shown)}

    @property
    def can_draw(self) -> bool:
        """The budget leaves something to draw, and what is left may tell systems apart."""
        return self.session.can_draw and self.drawn < self.stopping.budget

    def propose(self) -> Draw:
        """The next draw. Changes nothing."""
        return event_of(self.session.propose(), self.sequence)

    def verify(self, event: Event, *, seeded: bool) -> None:
        """Refuse a draw that is not the one due, or without the seed not one that could be."""
        if isinstance(event, Draw):
            if not self.can_draw:
                rule = "none: nothing is left to draw"
                raise LedgerDiffers(f"ledger[{self.sequence}]", "a draw", rule)
            check_draw(self.session, event, self.sequence, seeded=seeded)

    def apply(self, event: Event) -> None:
        """Apply the next event of the ledger."""
        self.sequence += 1
        match event:
            case Draw():
                self._enter(event)
                enter(self.plan, self.session, event)
            case JointObservation():
                enter(self.plan, self.session, event)
                item = self._note(event.round, event.losses).item
                shown = self.shown(event.round, item) if event.in_order else None
                losses = [loss for loss in event.losses if loss is not None]
                if shown is not None:
                    self.places[best_place(shown, losses)] += 1
            case Change():
                rule = replace(self.stopping, budget=event.budget)
                self.changes += rule != self.stopping
                self.stopping = rule
            case _:
                raise LedgerDiffers(f"ledger[{self.sequence - 1}]", event, "draw, losses or change")

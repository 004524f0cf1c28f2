"""The state of a service's session of many claims, after the events of a ledger.

It says the same of itself as the state of a session that measures a risk; what it has not are an
interval of all, points of one, and rounds that are corrected.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

from celeus.core.ledger import Addition, Change, Draw, Event, JointObservation
from celeus.core.plans.stopping import StopReason
from celeus.core.plans.table import TablePlan
from celeus.core.pools.pool import Pool
from celeus.core.pools.table import table_of
from celeus.core.session.joint import JointState
from celeus.core.session.recorded import LedgerDiffers
from celeus.core.session.table.claims import ClaimState
from celeus.core.session.table.replay import begin, check_draw, enter
from celeus.core.session.table.table_question import Losses, TableSession


@dataclass(slots=True)
class TableState(JointState[TablePlan, TableSession]):
    """A session after ``sequence`` events, ``changes`` of them of its budget."""

    @classmethod
    def of(cls, plan: TablePlan, pool: Pool, seed: bytes | None) -> "TableState":
        """The state before the first draw; without the seed draws can be checked and not made."""
        session = begin(plan, table_of(pool, plan.columns), seed or b"")
        return cls(plan, session, plan.stopping)

    @property
    def claims(self) -> Sequence[ClaimState]:
        """The claims, in the order of the plan's."""
        return self.session.claims

    @property
    def wanted(self) -> int:
        """How many claims something was asked for."""
        return sum(claim.claim.wants for claim in self.claims)

    @property
    def met(self) -> int:
        """How many of these have it."""
        return len(self.session.met_at)

    def met_at(self, place: int) -> int | None:
        """After how many rounds the claim at this place had what it wants."""
        return self.session.met_at.get(place)

    @property
    def drawable(self) -> int:
        """Items that may be drawn."""
        return self.plan.drawable

    @property
    def folded(self) -> int:
        """Rounds that the intervals speak for: all before the first unjudged one."""
        return self.session.folded

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the session stops, or None to go on."""
        return self.session.stop_reason

    @property
    def can_draw(self) -> bool:
        """Pool and budget leave something to draw."""
        return self.session.can_draw

    @property
    def bets_per_round(self) -> int:
        """Bets that folding the next round may place, were it to fall into the largest claims."""
        parts = (1 + len(self.plan.columns)) * len(self.plan.metrics)
        return sum(nlargest(parts, self.session.bets))

    def propose(self) -> Draw:
        """The next draw. Changes nothing."""
        return self.session.propose(self.sequence)

    def check(self, item: int, losses: Losses) -> None:
        """Refuse losses that an item cannot have."""
        self.session.check(item, losses)

    def arrangement(self, round_: int, item: int) -> dict[str, str]:
        """Nothing: one answer is judged."""
        del round_, item
        return {}

    def verify(self, event: Event, *, seeded: bool) -> None:
        """Refuse a draw that is not the one due, or without the seed not one that could be."""
        if isinstance(event, Draw):
            check_draw(self.session, event, self.sequence, seeded=seeded)

    def apply(self, event: Event) -> None:
        """Apply the next event of the ledger."""
        self.sequence += 1
        match event:
            case Draw():
                self._enter(event)
                enter(self.session, event)
            case JointObservation():
                enter(self.session, event)
                self._note(event.round, event.losses)
            case Addition():
                enter(self.session, event)
            case Change():
                rule = replace(self.stopping, budget=event.budget)
                self.changes += rule != self.stopping
                self.stopping, self.session.budget = rule, event.budget
            case _:
                raise LedgerDiffers(
                    f"ledger[{self.sequence - 1}]", event, "draw, losses, change or claim"
                )

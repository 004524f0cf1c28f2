"""What the states of sessions have in common whose judgements are several losses at once.

They say the same of themselves as the state of a session that measures a risk. What they have not
are points of one interval, and rounds that are corrected.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from celeus.core.ledger import Draw, Event
from celeus.core.plans.stopping import StoppingRule, StopReason
from celeus.core.session.points import Points
from celeus.core.session.rounds import PENDING, JudgedLosses, counts_of

P = TypeVar("P")
S = TypeVar("S")


@dataclass(slots=True)
class JointRound:
    """A drawn item, what a judge said of it, and the sequence of that."""

    item: int
    answer: JudgedLosses = PENDING
    answered_at: int = 0


@dataclass(slots=True)
class JointState(ABC, Generic[P, S]):
    """A session after ``sequence`` events, ``changes`` of them of its budget."""

    plan: P
    session: S
    stopping: StoppingRule
    sequence: int = field(default=0, kw_only=True)
    observed: int = field(default=0, kw_only=True)
    changes: int = field(default=0, kw_only=True)
    rounds: list[JointRound] = field(default_factory=list, kw_only=True)

    corrections: ClassVar[int] = 0
    sides: ClassVar[None] = None

    @property
    @abstractmethod
    def drawable(self) -> int:
        """Items that may be drawn."""

    @property
    @abstractmethod
    def folded(self) -> int:
        """Rounds that the state speaks for: all before the first unjudged one."""

    @property
    @abstractmethod
    def stop_reason(self) -> StopReason | None:
        """Why the session stops, or None to go on."""

    @property
    @abstractmethod
    def can_draw(self) -> bool:
        """Something is left to draw that the session has a use for."""

    @property
    @abstractmethod
    def bets_per_round(self) -> int:
        """The work of folding the next round, counted in bets of about 50 ns each."""

    @abstractmethod
    def propose(self) -> Draw:
        """The next draw. Changes nothing."""

    @abstractmethod
    def arrangement(self, round_: int, item: int) -> dict[str, str]:
        """How the answers of a round stand before its judge, as the ledger says it of its draw."""

    @abstractmethod
    def verify(self, event: Event, *, seeded: bool) -> None:
        """Refuse a draw that is not the one due, or without the seed not one that could be."""

    @abstractmethod
    def apply(self, event: Event) -> None:
        """Apply the next event of the ledger."""

    @property
    def drawn(self) -> int:
        """Rounds drawn, judged or not."""
        return len(self.rounds)

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
    def points(self) -> Points:
        """No points: there is no single interval."""
        return Points()

    def item(self, round_: int) -> int:
        """The item of a round."""
        return self.rounds[round_ - 1].item

    def answer(self, round_: int) -> JudgedLosses:
        """What a judge said of a round, PENDING until one does."""
        return self.rounds[round_ - 1].answer

    def answered_at(self, round_: int) -> int:
        """The sequence of a round's judgement."""
        return self.rounds[round_ - 1].answered_at

    def rounds_to_fold(self, judged: Collection[int]) -> int:
        """Rounds to fold once the rounds ``judged`` are judged."""
        place = self.folded
        while place < self.drawn and (
            self.rounds[place].answer is not PENDING or place + 1 in judged
        ):
            place += 1
        return place - self.folded

    def _enter(self, draw: Draw) -> None:
        """Note a draw that the session takes."""
        if draw.round != self.drawn + 1:
            message = f"draw of round {draw.round} after {self.drawn} draws"
            raise ValueError(message)
        self.rounds.append(JointRound(draw.item))

    def _note(self, round_: int, losses: tuple[float | None, ...]) -> JointRound:
        """Note the judgement of a round that the session has folded, or will."""
        noted = self.rounds[round_ - 1]
        noted.answer, noted.answered_at = losses, self.sequence
        self.observed += 1
        return noted

"""The published policies' game: wealth on cells with the fractions of ``betting``."""

from copy import deepcopy
from dataclasses import dataclass

from app.core.betting import Bet, Bettor, CommonVariance, OwnVariance
from app.core.eprocess import Interval, Side, Wealth
from app.core.estimators import Lure
from app.core.folding import Seen, Turn
from app.core.plan import Plan, cell_width
from app.core.widened import Widened


@dataclass(slots=True)
class Completion:
    """What one completion of the pool remembers of its rounds."""

    bettor: Bettor
    lure: Lure


class Cells(Widened):
    """Cells of candidates, the running intersection, and its step to the target."""

    __slots__ = ("_cell", "_minus", "_plus", "wealth")

    def __init__(self, plan: Plan, mean_surrogate: float) -> None:
        super().__init__(plan)
        policy = plan.policy
        own = policy.fraction == "own"
        self._plus = Completion(
            OwnVariance(plan.lower) if own else CommonVariance(),
            Lure(plan.items, mean_surrogate),
        )
        # One memory serves both completions until they see different rounds.
        self._minus = self._plus
        self.wealth = Wealth(plan.scale, plan.cell, plan.alpha1, theta=policy.theta, c=policy.c)
        self._cell = plan.cell

    @property
    def middle(self) -> float:
        """LURE's midpoint of the two completions."""
        return (self._plus.lure.value + self._minus.lure.value) / 2.0

    def play(self, turn: Turn) -> None:
        """Bet on the round, then remember it."""
        self._refine(turn.precision)
        if self._minus is self._plus and turn.minus is not turn.plus:
            self._minus = deepcopy(self._plus)
        plus = minus = self._side(self._plus, turn.plus)
        if self._minus is not self._plus:
            minus = self._side(self._minus, turn.minus)
        self.wealth.bet(turn.draw.round, plus, minus)
        self._record(self._plus, plus, turn.plus, turn.draw.q)
        if self._minus is not self._plus:
            self._record(self._minus, minus, turn.minus, turn.draw.q)

    def narrow(self, limits: Interval, *, last: bool) -> None:
        """Intersect with the cells still standing and with the logical limits."""
        del last
        self.cut(self.wealth.hull, limits)

    def _refine(self, precision: float | None) -> None:
        """Split the cells when the round was drawn under a finer precision than theirs."""
        if precision == self._plan.precision:
            return
        cell = cell_width(precision, self._plan.scale)
        if cell < self._cell:
            self.wealth.split(cell)
            self._cell = cell

    @staticmethod
    def _record(side: Completion, played: Side, seen: Seen, q: float) -> None:
        side.bettor.record(played.value, played.bet)
        side.lure.record(seen.loss - seen.guess, q)

    def _side(self, side: Completion, seen: Seen) -> Side:
        """The bet: on the signal, or in the authors' form of ``evalue`` on the raw loss."""
        if self._plan.policy.recentred:
            bet = Bet(seen.possible.lower, seen.possible.width)
            return Side(side.bettor, bet, seen.signal)
        return Side(side.bettor, Bet(self._plan.lower, self._plan.scale.width), seen.loss)

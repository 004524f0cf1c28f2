"""Folding one round: from a recorded draw and its loss to a narrower interval.

Rounds are folded in draw order, whenever their losses arrive: taking them by arrival would let
fast (easy) items in first and bias the signal. Round t is folded from rounds before it only, with
the probability recorded at its draw. Two completions are kept: an unjudgeable item has the
smallest loss in the ``plus`` one and the largest in the ``minus`` one (METHOD 8).

Every policy shares this: ``guesses`` say what surrogate and range a round has, ``game`` bets on
the two signals and says which risks still stand.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from app.core.eprocess import Interval
from app.core.guesses import Guesses
from app.core.ledger import Draw
from app.core.plan import Plan
from app.core.proposals import RunningSum
from app.core.signals import Range, check, signal
from app.core.stopping import Decisions, rounding, undecided


class Seen(NamedTuple):
    """What one completion saw in a round: plug-in part, range, surrogate, loss and signal."""

    plug_in: float
    possible: Range
    guess: float
    loss: float
    signal: float


class Point(NamedTuple):
    """The answer after a folded round, and what the round was told before its loss.

    ``left`` is the sum of the surrogates of the items not folded before it, ``variance`` the
    predicted variance of its signal on the unit scale (None where the policy predicts none).
    """

    round: int
    estimate: float
    interval: Interval
    left: float
    variance: float | None
    plus: Seen
    minus: Seen


class Outcome(NamedTuple):
    """A round ready to fold; ``loss`` is None when no judge could tell it.

    ``precision`` and ``budget`` are those in force when the round was drawn.
    """

    draw: Draw
    loss: float | None
    precision: float | None
    budget: int


class Turn(NamedTuple):
    """A round as the game plays it; ``left`` and ``variance`` were known before it (see Point).

    The variance is NaN where the policy predicts none: no game may rest on it then.

    ``last`` says that the run ends with it: pool or budget leave no further round.
    """

    draw: Draw
    precision: float | None
    last: bool
    left: float
    variance: float
    plus: Seen
    minus: Seen


class Game(Protocol):
    """Bets on the signals of the two completions and keeps what still stands."""

    @property
    def pool_interval(self) -> Interval:
        """Interval for the pool risk."""

    @property
    def interval(self) -> Interval:
        """Interval for the target."""

    @property
    def emptied(self) -> bool:
        """No candidate is left; the last interval stays."""

    @property
    def middle(self) -> float:
        """Point estimate, the midpoint of the two completions' estimates."""

    def play(self, turn: Turn) -> None:
        """Bet on a round, with bets fixed by the rounds before it."""

    def narrow(self, limits: Interval, *, last: bool) -> None:
        """Intersect with what the losses seen leave possible for the pool risk."""


@dataclass(slots=True)
class Fold:
    """The folded prefix of a session: everything the interval depends on.

    ``least`` and ``largest`` are the sums of losses of the two completions; they lose no digits,
    since on a scale far from 0 many small errors would move the logical limits. ``decisions`` are
    those after the last folded round.
    """

    guesses: Guesses
    game: Game
    least: RunningSum = field(default_factory=lambda: RunningSum(0.0))
    largest: RunningSum = field(default_factory=lambda: RunningSum(0.0))
    points: list[Point] = field(default_factory=list)
    decisions: Decisions = ()

    @property
    def rounds(self) -> int:
        """Number of rounds folded."""
        return len(self.points)

    @property
    def interval(self) -> Interval:
        """Interval for the target."""
        return self.game.interval

    @property
    def pool_interval(self) -> Interval:
        """Interval for the pool risk."""
        return self.game.pool_interval

    @property
    def emptied(self) -> bool:
        """No candidate is left; the last interval stays."""
        return self.game.emptied

    @property
    def estimate(self) -> float:
        """The game's estimate, clipped into the interval."""
        interval = self.game.interval
        return min(max(self.game.middle, interval.lower), interval.upper)


def fold_round(plan: Plan, fold: Fold, outcome: Outcome) -> Fold:
    """Fold the next round. Consumes ``fold`` and returns it."""
    draw = outcome.draw
    round_ = fold.rounds + 1
    turn = _turn(plan, fold, outcome, last=round_ >= min(plan.items, outcome.budget))
    fold.game.play(turn)
    fold.guesses.record(draw, outcome.loss)
    fold.least.add(turn.plus.loss)
    fold.largest.add(turn.minus.loss)
    left = plan.items - round_
    limits = Interval(
        (fold.least.value + left * plan.lower) / plan.items,
        (fold.largest.value + left * plan.upper) / plan.items,
    )
    fold.game.narrow(limits, last=turn.last)
    variance = None if math.isnan(turn.variance) else turn.variance
    fold.points.append(
        Point(round_, fold.estimate, fold.interval, turn.left, variance, turn.plus, turn.minus)
    )
    if plan.questions:
        slack, known = rounding(plan.scale), fold.decisions or undecided(plan.questions)
        fold.decisions = tuple(one.after(round_, fold.interval, slack) for one in known)
    return fold


def _turn(plan: Plan, fold: Fold, outcome: Outcome, *, last: bool) -> Turn:
    draw, guesses = outcome.draw, fold.guesses
    guess, left = guesses.of(draw), guesses.left
    sides: list[Seen] = []
    for observed, fill in ((fold.least, plan.lower), (fold.largest, plan.upper)):
        plug_in = (observed.value + left) / plan.items
        loss = fill if outcome.loss is None else outcome.loss
        if sides and plug_in == sides[0].plug_in:
            if loss == sides[0].loss:
                sides.append(sides[0])
                continue
            possible = sides[0].possible
        else:
            possible = guesses.possible(draw, plug_in)
        value = signal(plug_in, loss - guess, plan.items, draw.q)
        check(value, possible)
        sides.append(Seen(plug_in, possible, guess, loss, value))
    return Turn(
        draw=draw,
        precision=outcome.precision,
        last=last,
        left=left,
        variance=guesses.variance(draw),
        plus=sides[0],
        minus=sides[1],
    )

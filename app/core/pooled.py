"""The game of policies with a goal when the pool risk is bet on (METHOD 10, target pool)."""

from app.core.asked import Asked, Mark
from app.core.eprocess import Interval
from app.core.folding import Turn
from app.core.lattice import Lattice
from app.core.plan import Plan, lattice_steps
from app.core.sight import Frame, Sight, View, frames
from app.core.stopping import rounding
from app.core.widened import Widened

LEAST_SHARE = 0.1
"""Of the half-width asked for, what the pool risk is at least aimed to."""


class Watch:
    """Both sides' view of the coming signals, each in its own frame."""

    __slots__ = ("_frames", "_plug_in", "_sights")

    def __init__(self, scale: Interval, start: float) -> None:
        self._frames = frames(scale)
        self._sights = (Sight(), Sight())
        self._plug_in = [frame.unit(start) for frame in self._frames]

    @property
    def middle(self) -> float:
        """Midpoint of the two sides' centres, on the loss scale."""
        both = zip(self._frames, self._sights, self._plug_in, strict=True)
        return sum(frame.value(sight.centre(start)) for frame, sight, start in both) / 2.0

    def before(self, turn: Turn) -> tuple[View, View]:
        """Views of the turn; its signals are not looked at."""
        plus, minus = (
            sight.before(lower, frame.unit(seen.plug_in), turn.variance)
            for frame, sight, seen, lower in zip(
                self._frames, self._sights, (turn.plus, turn.minus), self._lowers(turn), strict=True
            )
        )
        return plus, minus

    def signals(self, turn: Turn) -> tuple[float, float]:
        """The turn's signals in the frames of the two sides."""
        plus, minus = self._frames
        return plus.unit(turn.plus.signal), minus.unit(turn.minus.signal)

    def record(
        self, views: tuple[View, View], signals: tuple[float, float], variance: float
    ) -> None:
        """Take in the signals after the bets on them."""
        for sight, view, signal in zip(self._sights, views, signals, strict=True):
            sight.record(signal, view.centre, variance)

    def _lowers(self, turn: Turn) -> tuple[float, float]:
        """Lower ends of the ranges; the minus side's is the mirrored upper end."""
        plus, minus = self._frames
        return plus.unit(turn.plus.possible.lower), minus.unit(turn.minus.possible.upper)


class PoolGame(Widened):
    """A lattice for the pool risk, widened to the target by the plan's bound."""

    __slots__ = ("_frame", "_lattice", "_precision", "_watch")

    def __init__(self, plan: Plan, start: float) -> None:
        super().__init__(plan)
        self._frame: Frame = frames(plan.scale)[0]
        self._watch = Watch(plan.scale, start)
        self._precision = plan.precision
        steps = round(plan.scale.width / plan.cell)
        half = half_width(plan, plan.precision)
        self._lattice = Lattice(steps, plan.alpha1, half, asked=asked_of(plan))

    @property
    def middle(self) -> float:
        """Midpoint of the two completions' centres."""
        return self._watch.middle

    def play(self, turn: Turn) -> None:
        """Bet on the round, then remember it."""
        if turn.precision != self._precision:
            self._precision = turn.precision
            steps = lattice_steps(self._plan, turn.precision)
            self._lattice.aim(half_width(self._plan, turn.precision), steps)
        views, signals = self._watch.before(turn), self._watch.signals(turn)
        self._lattice.play(views, signals)
        self._watch.record(views, signals, turn.variance)

    def narrow(self, limits: Interval, *, last: bool) -> None:
        """Intersect with the candidates still standing and with the logical limits."""
        del last
        if self.cut(ends(self._lattice, self._frame), limits):
            keep(self._lattice, self._frame, self.pool_interval)


def ends(lattice: Lattice, frame: Frame) -> Interval | None:
    """Where a lattice leaves the pool risk, or None when it leaves nothing."""
    hull = lattice.hull
    return None if hull is None else Interval(frame.value(hull[0]), frame.value(hull[1]))


def keep(lattice: Lattice, frame: Frame, interval: Interval) -> None:
    """Have a lattice know that the pool risk lies in ``interval``."""
    lattice.keep(frame.unit(interval.lower), frame.unit(interval.upper))


def asked_of(plan: Plan) -> Asked | None:
    """Where stakes lie when there are questions and no precision, else None.

    With a precision the whole interval is wanted; and a bound that widens keeps a threshold of the
    target away from both risks of the pool that decide it.
    """
    if not plan.questions or plan.precision is not None or plan.bound.kind != "none":
        return None
    frame = frames(plan.scale)[0]
    marks = tuple(Mark(frame.unit(one.threshold), one.side == "at_most") for one in plan.questions)
    return Asked(marks, plan.items, rounding(plan.scale) / plan.scale.width)


def half_width(plan: Plan, precision: float | None) -> float | None:
    """D: half the precision on the unit scale, less what the step to the target takes."""
    if precision is None:
        return None
    asked = precision / 2.0
    left = asked - plan.bound.at_centre(plan.items, plan.scale) / 2.0
    return max(left, LEAST_SHARE * asked) / plan.scale.width

"""The confidence sequence for target population: pairs within a loose interval for the pool.

Pairs are costly while the pool risk may lie anywhere, so their rounds are kept and replayed once
the loose interval is at most 5 precisions wide, or when the run ends, for the rows that are then
needed: the stakes are those of pairs that bet from round 1. Until then the interval follows from
the starting stakes alone.
kappa, starts and lattice are those of the opening precision; a change moves only later goals.
"""

from celeus.core.betting.base import Accrued, BettingRound, ConfidenceSequence, Halves, Outlook
from celeus.core.betting.candidate_grid import Lattice
from celeus.core.betting.moments import Prediction, TwoSidedMoments, frames
from celeus.core.betting.pair_rows import PairSide
from celeus.core.betting.pool_target import lattice_interval, restrict
from celeus.core.betting.signals import Range
from celeus.core.interval import Interval, RunningIntersection
from celeus.core.plans.pair_plan import PairPlan
from celeus.core.plans.plan import Plan

LOOSE = 4.0
"""Half-width of the loose pool sequence's goal, in units of half the precision."""
PRECISIONS_TO_START = 5.0
NEARLY = 1.25
"""Factor of that width from which on the pairs may start soon."""


class PairSequence(ConfidenceSequence):
    """A loose sequence for the pool risk, and pairs for the population risk within it."""

    __slots__ = (
        "_frame",
        "_half",
        "_loose",
        "_moments",
        "_plan",
        "_pool",
        "_precision",
        "_sides",
        "_started",
        "_steps",
        "_target",
    )

    def __init__(self, plan: Plan, start: float) -> None:
        if plan.half is None:
            message = "pairs need a precision"
            raise ValueError(message)
        self._plan = plan
        self._frame = frames(plan.scale)[0]
        self._moments = TwoSidedMoments(plan.scale, start)
        self._precision: float | None = plan.precision
        self._half = plan.half
        self._steps = round(plan.scale.width / plan.cell)
        self._loose = Lattice(self._steps, plan.bound.alpha2, self._half, LOOSE)
        pairs = PairPlan(plan.items, plan.alpha1, self._steps, plan.bound.exact)
        self._sides = [PairSide(pairs, self._half) for _ in range(2)]
        self._started = False
        self._pool = RunningIntersection(plan.scale)
        self._target = RunningIntersection(plan.scale)
        self._advance()

    @property
    def pool_interval(self) -> Interval:
        """The loose interval for the pool risk."""
        return self._pool.interval

    @property
    def interval(self) -> Interval:
        """Interval for the population risk."""
        return self._target.interval

    @property
    def emptied(self) -> bool:
        """True if no row is left, or no candidate of the loose sequence."""
        return self._target.emptied or self._pool.emptied

    def count_unjudged(self) -> None:
        """From now on a cell of pairs is out by its upper edge alone, which bounds the other."""
        for side in self._sides:
            side.count_unjudged()

    @property
    def rounds_to_replay(self) -> int:
        """Number of all rounds so far; setting up a window of rows replays them."""
        return self._sides[0].rounds

    def replays_soon(self, precision: float | None, *, last: bool) -> bool:
        """Return true if within a few rounds pairs may start, or the rows set up may be out."""
        if self._started:
            return any(side.nearly_out for side in self._sides)
        half = self._half if precision is None else self._plan.half_of(precision)
        return last or self._pool.interval.width <= NEARLY * self._width_to_start(half)

    def bets_per_round(self, precision: float | None) -> int:
        """Return the bets of a round, one per candidate or pair; the precision changes neither."""
        del precision
        pairs = sum(side.cells.row.size for side in self._sides if side.cells is not None)
        return self._loose.bets_per_round(self._steps, goals=1) + pairs

    @property
    def estimate(self) -> float:
        """Midpoint of the two completions' centres."""
        return self._moments.estimate

    def predict(self, reach: tuple[Range, Range], variance: float) -> tuple[Prediction, Prediction]:
        """Return predictions of both signals of the next draw."""
        return self._moments.predict(reach, variance)

    def halves(self, precision: float | None) -> tuple[Halves, ...]:
        """Return the half-width of all bets of a round drawn at ``precision``."""
        return () if precision is None else ((self._plan.half_of(precision),),)

    def outlook(self, accrued: tuple[Accrued, ...]) -> Outlook:
        """Return the information that the rows at the estimate need, and the accrued one."""
        goal = self._sides[0].goal_at(self._frame.unit(self.estimate), self._half)
        least, moments = min(sums[0] for sums in accrued[0]), self._moments
        return Outlook(goal, least, self._half, moments.information, moments.ratio)

    def update(self, betting_round: BettingRound) -> None:
        """Bet on the round, or keep its signals for a later replay."""
        inputs = betting_round.inputs
        if inputs.precision != self._precision:
            self._retarget(inputs.precision)
        predicted, signals = inputs.predicted, self._moments.signals(betting_round)
        accrued = inputs.accrued[0]
        self._loose.update(predicted, accrued, signals)
        for side, prediction, sums, signal in zip(
            self._sides, predicted, accrued, signals, strict=True
        ):
            side.update(prediction, sums[0], signal, self._half)
        self._moments.record(predicted, signals, inputs.variance)

    def narrow(self, limits: Interval, *, last: bool) -> None:
        """Narrow the loose interval, start the pairs once it is narrow, and find the rows left."""
        changed = self._pool.narrow(lattice_interval(self._loose, self._frame), limits)
        if changed:
            restrict(self._loose, self._frame, self.pool_interval)
        wide = self._width_to_start(self._half)
        self._started |= last or self._pool.interval.width <= wide
        if changed or self._started:
            self._advance()

    def _width_to_start(self, half: float) -> float:
        return 2.0 * PRECISIONS_TO_START * half * self._plan.scale.width

    def _retarget(self, precision: float | None) -> None:
        """Set the precision of later bets; without one the old goals stay."""
        self._precision = precision
        if precision is not None:
            self._half = self._plan.half_of(precision)
            self._loose.retarget(self._half, self._steps)

    def _advance(self) -> None:
        for side, (lower, upper, most) in zip(self._sides, self._bounds(), strict=True):
            side.advance(lower, upper, most, betting=self._started)
        floor, mirrored = (side.lower_bound for side in self._sides)
        hull = None
        if floor is not None and mirrored is not None and floor <= 1.0 - mirrored:
            hull = Interval(self._frame.value(floor), self._frame.value(1.0 - mirrored))
        self._target.narrow(hull, self._plan.scale)

    def _bounds(self) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        """Return for each side, in its frame, C and the largest population risk not rejected."""
        pool, target = self._pool.interval, self._target.interval
        lower, upper = self._frame.unit(pool.lower), self._frame.unit(pool.upper)
        least, most = self._frame.unit(target.lower), self._frame.unit(target.upper)
        return (lower, upper, most), (1.0 - upper, 1.0 - lower, 1.0 - least)

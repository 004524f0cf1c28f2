"""Candidates and stakes of a lattice where questions are asked of it (METHOD 6).

Notation, in the plus frame: c a threshold, alpha the level of the lattice, p(v) alpha and
m(v) alpha the starting stakes of the candidate v on the plus side ("the risk is at most v") and on
the minus side ("the risk is at least v").

A lattice without questions has p = m = 1/2. With thresholds c_1 < ... < c_k, each of them a
candidate, a question is decided when the plus side has rejected all candidates up to c, or the
minus side all from c on. So

    p(v)   9/10 up to c_1, 1/10 above c_k, 1/2 between        m(v)   1 - p(v) off the thresholds
    p(c_1) 9/10, m(c_k) 9/10, all others at thresholds 1/2

p falls and m grows, and p(w) + m(v) <= 1 for neighbours v < w: what is lost from above and what
is lost from below together keep alpha wherever the risk lies. A risk of exactly c may be lost by
one of the two at c alone: rejecting c from below says "above c", which an ``at_most`` needs, while
rejecting it from above leaves c in the interval. A threshold asked from both sides gives each 1/2.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.goals import Goal, goals

Floats = NDArray[np.float64]

STRONG = 0.9
"""Share of alpha where only one side can decide."""
FINEST = 0.5
"""Half-width of the finest goal, in 1 / sqrt(N): finer ones cost stakes and come too late."""
WHOLE = 1e-9
"""Places that differ by less, in steps, are the same."""


class Rungs(NamedTuple):
    """Candidates of a side, in steps, ascending, and their shares of the level."""

    grid: Floats
    share: Floats


class Mark(NamedTuple):
    """A threshold on the unit scale; asked as ``at_most``, else as ``at_least``."""

    at: float
    at_most: bool


def even(steps: int) -> Rungs:
    """Candidates at every step, all with half of the level."""
    return Rungs(np.arange(steps + 1, dtype=np.float64), np.full(steps + 1, 0.5))


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a pool of ``items``; ``slack`` is what comparisons leave to rounding."""

    marks: tuple[Mark, ...]
    items: int
    slack: float

    def goals(self, step: float, level: float) -> list[Goal]:
        """Goals without a precision, as far as this pool can reach them before it is judged."""
        # A level at which the normal quantile stays positive, whatever alpha.
        strong = min(2.0 * STRONG * level, 0.5 + level / 2.0)
        found = goals(None, step, strong)
        least = FINEST / math.sqrt(self.items)
        return [goal for goal in found if goal.half >= least] or found[:1]

    def rungs(self, steps: int) -> tuple[Rungs, Rungs]:
        """Candidates of the plus and of the minus side, each in its frame."""
        kinds: dict[float, set[bool]] = {}
        for mark in self.marks:
            kinds.setdefault(mark.at, set()).add(mark.at_most)
        grid = np.arange(steps + 1, dtype=np.float64)
        for at in kinds:
            grid = grid[np.abs(grid - at * steps) > WHOLE]
        first, last = min(kinds) * steps, max(kinds) * steps
        plus = np.where(grid < first, STRONG, np.where(grid > last, 1.0 - STRONG, 0.5))
        above = self._with_marks(Rungs(grid, plus), kinds, steps)
        mirrored = {1.0 - at: {not kind for kind in sides} for at, sides in kinds.items()}
        below = self._with_marks(Rungs(steps - grid[::-1], 1.0 - plus[::-1]), mirrored, steps)
        return above, below

    def _with_marks(self, rungs: Rungs, kinds: dict[float, set[bool]], steps: int) -> Rungs:
        """The thresholds among the candidates of a side; a strict one a rounding above itself."""
        first = min(kinds)
        ats = np.array(
            [(at + 2.0 * self.slack if True in sides else at) for at, sides in kinds.items()]
        )
        shares = np.array(
            [STRONG if at == first and len(sides) == 1 else 0.5 for at, sides in kinds.items()]
        )
        grid = np.concatenate([rungs.grid, ats * steps])
        order = np.argsort(grid, kind="stable")
        return Rungs(grid[order], np.concatenate([rungs.share, shares])[order])

"""One session on a known pool, with its width along the way; shared by the studies on real pools.

Widths are kept at fixed budgets, 8 to a doubling; between them the logarithm of the width is
interpolated in the logarithm of the budget. They are shares of the scale's width.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.core.plan import Claim
from app.core.policies import Policy, policy_named
from app.core.randomness import uniforms
from app.errors import UnreachablePrecision
from app.study.realpools import resampled
from app.study.simulation import Run, Truth, simulate

ALPHA = 0.05
PRECISION = 0.05
QUICK_PRECISION = 0.2
"""Of the quick profiles: a session then takes some dozens of labels."""

BUDGETS = tuple(dict.fromkeys(round(2.0 ** (step / 8.0)) for step in range(3 * 8, 16 * 8 + 1)))
"""Labels at which widths are kept: 8, 9, 10, 11, 12, 13, 15, 16, ..., 65 536."""

REFUSED = "refused"
"""In place of a stop reason: the opening was refused, since no risk could reach the precision."""

RECENTRED = "evalue_recentred"


@dataclass(frozen=True, slots=True)
class Course:
    """What a session came to.

    ``width`` is that at the stop and ``widths`` those at BUDGETS before it. ``missed`` says that
    the interval lost the true risk at some round up to the stop.
    """

    labels: int
    stopped: str
    missed: bool
    width: float
    widths: tuple[float, ...]
    seconds: float


def policy_of(name: str) -> Policy:
    """The policy of that name; ``evalue`` in its authors' form, as published.

    ``evalue_recentred`` is the one that minds drawing without replacement.
    """
    if name == RECENTRED:
        return policy_named("evalue")
    return policy_named(name, recentred=False) if name == "evalue" else policy_named(name)


def seed_for(name: str, run: int) -> bytes:
    """A 32-byte seed for run ``run`` of whatever ``name`` stands for."""
    return uniforms(f"study {name}".encode(), f"run {run}", 4).tobytes()


def course(truth: Truth, policy: Policy, claim: Claim, seed: bytes) -> Course:
    """Run one session to its stop; ``claim.precision`` is a share of the scale.

    For the population a pool is drawn anew from the items of ``truth`` (with replacement), so that
    the population risk is known and the claim can fail.
    """
    span = truth.upper - truth.lower
    precision = None if claim.precision is None else claim.precision * span
    scaled = replace(claim, precision=precision)
    risk = float(truth.loss.mean())
    pool = resampled(truth, seed) if claim.target == "population" else truth
    try:
        found, state = simulate(pool, policy, scaled, seed, risk)
    except UnreachablePrecision:
        return Course(0, REFUSED, missed=False, width=1.0, widths=(), seconds=0.0)
    widths = [point.interval.width / span for point in state.points]
    return _course(found, widths)


def _course(found: Run, widths: Sequence[float]) -> Course:
    kept = tuple(round(widths[budget - 1], 7) for budget in BUDGETS if budget <= len(widths))
    return Course(
        found.labels, found.stopped, found.missed, widths[-1], kept, round(found.seconds, 4)
    )


def width_at(found: Course, labels: float) -> float:
    """Width after ``labels`` labels; after the stop that of the stop, which is an upper bound."""
    if labels >= found.labels or not found.widths:
        return found.width
    known = [*BUDGETS[: len(found.widths)], found.labels]
    widths = [*found.widths, found.width]
    return float(np.exp(np.interp(np.log(labels), np.log(known), np.log(widths))))

"""The same pool judged under other policies, by the core alone: seconds, and no second server."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from celeus.client.results import Point
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import CHAIN_START, Pool
from celeus.core.pools.surrogates import from_probabilities, scores
from celeus.core.session.points import Point as FoldedPoint
from celeus.demo.digits import Digits
from celeus.simulation.sessions import Truth, simulate


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """One session's end and its course.

    `labels` counts all that judges gave; at the `sufficed`-th the session had reached its
    precision, and the others were already with judges.
    """

    policy: str
    labels: int
    sufficed: int
    lower: float
    upper: float
    estimate: float
    course: Sequence[Point]

    def always_held(self, risk: float) -> bool:
        """Return whether the interval held the risk after every label, not only after the last."""
        return all(point.lower <= risk <= point.upper for point in self.course)


def truth_of(digits: Digits) -> Truth:
    """Return the pool with its losses, and the scores the service computes by strategy A."""
    target = np.array([item["target_probs"] for item in digits.items])
    surrogate = np.array([item["surrogate_probs"] for item in digits.items])
    labels = np.array([digits.labels[item["id"]] for item in digits.items])
    scale = LossScale("zero_one", 0.0, 1.0)
    columns = from_probabilities(scale, target, surrogate)
    pool = Pool(len(digits.items), scale, columns, groups=(), items_digest=CHAIN_START)
    loss = (target.argmax(axis=1) != labels).astype(np.float64)
    return Truth(loss=loss, scores=scores(pool, "A"))


def simulated(truth: Truth, policy: str, claim: Claim, seed: bytes) -> SessionEnd:
    """Run one session with a single judge, whose labels are folded one by one."""
    run, state = simulate(truth, policy_named(policy), claim, seed)
    return SessionEnd(
        policy=policy,
        labels=run.labels,
        sufficed=run.labels,
        lower=run.lower,
        upper=run.upper,
        estimate=run.estimate,
        course=[_shown(point) for point in state.question.points],
    )


def _shown(point: FoldedPoint) -> Point:
    """Return a point as a service shows it, whose ledger has a draw and a judgement a round."""
    ends = point.interval.lower, point.interval.upper
    return Point(point.round, 2 * point.round, point.estimate, *ends)

"""A new version on a judged pool: whatever was judged, the mean signal is its risk exactly.

Every set of items that an earlier session may have judged, every way through the new session, and
a new version that was made to fit the labels of that session as well as one that was not.
"""

import math
from itertools import combinations
from typing import Literal

import numpy as np
import pytest

from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.pools.surrogates import scores
from celeus.simulation.sessions import Truth
from tests.core.earlier import (
    BASIS,
    PAIR,
    TEXT,
    based_pool,
    earlier_of,
    judged_as,
    rows_of,
)
from tests.core.worlds import Walk, after, coming, open_walk

EXACT = 1e-12
ITEMS = 4
TRUTH = (0, 1, 2, 0)
OLD = (0, 2, 2, 1)
NEW = (1, 2, 2, 0)
SUBSETS = [one for size in (1, 2, 3) for one in combinations(range(ITEMS), size)]


def truth_of(
    judged: tuple[int, ...], kind: Literal["labels", "losses"], *, fitted: bool, pair: bool
) -> Truth:
    """The new version's losses, or the differences from the old one, with what is known."""
    texts = kind == "losses"
    new = [TRUTH[at] if fitted and at in judged else NEW[at] for at in range(ITEMS)]
    old = rows_of(OLD, texts=texts)
    earlier = earlier_of(
        old,
        judged_as(TRUTH, OLD, judged, labels=not texts),
        TEXT if texts else BASIS,
        systems=PAIR if pair else None,
    )
    rows = rows_of(new, texts=texts, side="b" if pair else None)
    pool = based_pool(earlier, old, rows)
    loss = np.array([float(one != right) for one, right in zip(new, TRUTH, strict=True)])
    if pair:
        loss = np.array([float(one != right) for one, right in zip(OLD, TRUTH, strict=True)]) - loss
    bounds = pool.bounds
    if bounds is not None:
        assert (bounds.lower[bounds.known] == loss[bounds.known]).all()
    return Truth(loss, scores(pool), pool.scale.lower, pool.scale.upper)


def every_way(walk: Walk, risk: float) -> int:
    """The number of ways to the last item, at each of whose steps the mean is the risk."""
    draws = coming(walk)
    if not draws:
        return 1
    branches = [(draw.q, after(walk, draw)) for draw in draws]
    assert math.fsum(q for q, _ in branches) == pytest.approx(1.0, abs=EXACT)
    for side in ("plus", "minus"):
        mean = math.fsum(
            q * getattr(one.state.question.points[-1], side).signal for q, one in branches
        )
        assert mean == pytest.approx(risk, abs=EXACT)
    return sum(every_way(one, risk) for _, one in branches)


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("kind", ["labels", "losses"])
@pytest.mark.parametrize("policy", ["sharp", "celeus"])
def test_whatever_was_judged_before_the_mean_signal_is_the_risk(
    policy: str, kind: Literal["labels", "losses"], *, fitted: bool, pair: bool
) -> None:
    ways = set()
    for judged in SUBSETS[:: 2 if kind == "labels" else 4]:
        truth = truth_of(judged, kind, fitted=fitted, pair=pair)
        bounds = truth.scores.bounds
        known = 0 if bounds is None else int(bounds.known.sum())
        if known == ITEMS:
            continue
        walk = open_walk(truth, policy_named(policy), Claim(precision=0.2 * truth.facts.upper))
        assert walk.plan.drawable == ITEMS - known
        ways.add((known, every_way(walk, float(truth.loss.mean()))))
    assert all(count == math.factorial(ITEMS - known) for known, count in ways)

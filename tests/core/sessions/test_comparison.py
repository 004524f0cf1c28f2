"""Sessions on the difference of two systems: the signal is exact however it is set up."""

from dataclasses import replace

import numpy as np
import pytest

from celeus.core.interval import Interval
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.pools.comparison import surrogate_columns
from celeus.core.pools.surrogates import Scores
from celeus.core.sampling.calibration import Calibration
from celeus.core.sampling.predictors import DIFFERENCE_MOMENT
from celeus.study.engine.simulation import Truth
from tests.core.sessions.test_known import after, coming
from tests.core.worlds import open_walk

ITEMS = 9


def pair(*, answers: bool, surrogates: bool) -> Truth:
    """Differences of two graded losses, of which some answers are the same."""
    chance = np.random.default_rng(7)
    a, b = chance.random(ITEMS), chance.random(ITEMS)
    same = np.arange(ITEMS) % 3 == 0
    b[same] = a[same]
    scores = Scores(np.zeros(ITEMS), np.zeros(ITEMS))
    if surrogates:
        columns = surrogate_columns(
            chance.random(ITEMS), chance.random(ITEMS), Interval(0.0, 1.0), exclusive=False
        )
        scores = Scores(columns["surrogate.0"], np.zeros(ITEMS), change=columns["change"])
    if answers:
        ends = (np.where(same, 0.0, end) for end in (-1.0, 1.0))
        scores = replace(scores, lower=next(ends), upper=next(ends))
    return Truth(a - b, scores, -1.0, 1.0, difference=True, reason="same answer")


@pytest.mark.parametrize("hidden", [(), (1, 4)])
@pytest.mark.parametrize("surrogates", [False, True])
@pytest.mark.parametrize("answers", [False, True])
@pytest.mark.parametrize("policy", ["sharp", "uniform", "celeus", "evalue"])
@pytest.mark.parametrize("judged", [0, 3, 5])
def test_the_mean_signal_is_the_mean_difference(
    policy: str, judged: int, hidden: tuple[int, ...], *, answers: bool, surrogates: bool
) -> None:
    truth = pair(answers=answers, surrogates=surrogates)
    claim = Claim(precision=0.2)
    walk = open_walk(truth, policy_named(policy), claim, hidden=hidden)
    walk.go(judged)
    low, high = truth.loss.copy(), truth.loss.copy()
    low[list(hidden)], high[list(hidden)] = -1.0, 1.0
    means = np.zeros(2)
    for draw in coming(walk):
        point = after(walk, draw).state.points[-1]
        means += draw.q * np.array([point.plus.signal, point.minus.signal])
    assert means[0] == pytest.approx(low.mean(), abs=1e-12)
    assert means[1] == pytest.approx(high.mean(), abs=1e-12)


def test_what_is_not_known_to_agree_is_expected_to() -> None:
    """The prior of section 4 is that of losses at the ends, five times too large here."""
    for answers, expected in ((False, DIFFERENCE_MOMENT), (True, 0.25)):
        walk = open_walk(pair(answers=answers, surrogates=False), policy_named("sharp"))
        moments = walk.state.fold.predictor.residual_moments
        assert moments == pytest.approx([expected])


def test_the_prior_second_moment_is_outvoted_by_labels() -> None:
    base, ends = np.array([0.5]), (np.zeros(1), np.ones(1))
    one = Calibration(base, *ends, prior=0.05)
    residuals = [0.5, -0.5, 0.0, 0.5]
    squares = 0.0
    for residual in residuals:
        surrogate = float(one.fit.mean[0])
        one.record(0, min(max(surrogate + residual, 0.0), 1.0), surrogate, 1.0)
        squares += (min(max(surrogate + residual, 0.0), 1.0) - surrogate) ** 2
    factor = (2.0 + squares) / (2.0 + 0.05 * len(residuals))
    expected = (40.0 * factor * 0.05 + squares) / (40.0 + len(residuals))
    assert one.fit.moment[0] == pytest.approx(expected)

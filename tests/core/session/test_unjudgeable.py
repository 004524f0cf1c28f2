"""An item that nobody can judge widens the interval: both completions of the pool are kept."""

import pytest

from celeus.core.plans.policies import policy_named
from tests.core.worlds import open_walk, small_truth, zero_one_truth

CELEUS = policy_named("celeus")


class TestUnjudgeable:
    def test_the_interval_covers_both_completions(self) -> None:
        truth = small_truth(40, seed=4)
        walk = open_walk(truth, CELEUS, hidden=(3, 11, 20))
        walk.go(40)
        low, high = walk.completions()
        assert walk.state.question.interval.lower == pytest.approx(low.mean())
        assert walk.state.question.interval.upper == pytest.approx(high.mean())
        assert walk.state.question.estimate == pytest.approx((low.mean() + high.mean()) / 2.0)

    def test_each_side_sees_its_own_completion(self) -> None:
        walk = open_walk(small_truth(), CELEUS, hidden=range(7))
        walk.go(3)
        first, last = walk.state.question.points[0], walk.state.question.points[2]
        assert first.plus.plug_in == first.minus.plug_in
        assert first.plus.signal < first.minus.signal
        assert last.minus.plug_in - last.plus.plug_in == pytest.approx(2.0 / 7.0)

    def test_skipping_never_narrows(self) -> None:
        truth = zero_one_truth(60)
        for item in range(0, 60, 7):
            honest = open_walk(truth, CELEUS)
            honest.go(60)
            skipping = open_walk(truth, CELEUS, hidden=(item,))
            skipping.go(60)
            assert skipping.state.question.interval.width > honest.state.question.interval.width

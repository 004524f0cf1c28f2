"""When a session may stop."""

import pytest

from celeus.core.interval import Interval
from celeus.core.ledger import Change
from celeus.core.plans.plan import Claim
from celeus.core.plans.policies import policy_named
from celeus.core.plans.stopping import StoppingRule, StopReason
from tests.core.worlds import open_walk, zero_one_truth

WIDE, NARROW = Interval(0.0, 1.0), Interval(0.3, 0.35)


@pytest.mark.parametrize(
    ("rule", "interval", "folded", "reason"),
    [
        (StoppingRule(0.1, 50), WIDE, 10, None),
        (StoppingRule(0.1, 50), NARROW, 10, StopReason.TARGET_REACHED),
        (StoppingRule(0.1, 50), NARROW, 100, StopReason.TARGET_REACHED),
        (StoppingRule(None, 50), NARROW, 10, None),
        (StoppingRule(0.1, 50), WIDE, 49, None),
        (StoppingRule(0.1, 50), WIDE, 50, StopReason.BUDGET_SPENT),
        (StoppingRule(0.1, 100), WIDE, 100, StopReason.EXHAUSTED),
        (StoppingRule(None, 100), WIDE, 100, StopReason.EXHAUSTED),
    ],
)
def test_the_first_reason_that_holds_is_named(
    rule: StoppingRule, interval: Interval, folded: int, reason: StopReason | None
) -> None:
    assert rule.reason(interval, folded, items=100) is reason


def test_a_budget_ends_the_draws_and_a_new_one_goes_on() -> None:
    walk = open_walk(zero_one_truth(20), policy_named("celeus"), Claim(budget=5))
    walk.draw(5)
    assert not walk.state.can_draw
    with pytest.raises(ValueError, match="nothing left to draw after 5 draws"):
        walk.state.propose()
    assert walk.state.stop_reason is None, "the losses are still out"
    walk.judge()
    reasons = [walk.state.stop_reason]
    walk.enter(Change(None, 7))
    reasons.append(walk.state.stop_reason)
    walk.go(2)
    reasons.append(walk.state.stop_reason)
    assert reasons == [StopReason.BUDGET_SPENT, None, StopReason.BUDGET_SPENT]


def test_a_smaller_budget_than_what_is_drawn_ends_the_draws_and_takes_nothing_back() -> None:
    walk = open_walk(zero_one_truth(20), policy_named("celeus"))
    walk.draw(5)
    walk.enter(Change(None, 2))
    assert not walk.state.can_draw
    walk.judge()
    assert walk.state.folded == 5


def test_a_fully_judged_pool_is_known_exactly() -> None:
    truth = zero_one_truth(20)
    walk = open_walk(truth, policy_named("celeus"), Claim(precision=0.01))
    walk.go(20)
    assert walk.state.question.interval.width == pytest.approx(0.0, abs=1e-12)
    assert walk.state.question.interval.lower == pytest.approx(truth.loss.mean())
    assert walk.state.question.estimate == pytest.approx(truth.loss.mean())
    assert walk.state.stop_reason is StopReason.TARGET_REACHED

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from celeus.core.pools.losses import LossScale, cross_entropy_loss, zero_one_loss
from celeus.errors import InvalidValue, LossOutsideScale

FINITE = st.floats(min_value=-1e6, max_value=1e6)


def test_a_zero_one_scale_needs_no_limits() -> None:
    assert LossScale.of("zero_one") == LossScale("zero_one", 0.0, 1.0)


@pytest.mark.parametrize("loss", [0, 1, 0.0, 1.0])
def test_a_zero_one_loss_is_exactly_zero_or_one(loss: float) -> None:
    assert LossScale.of("zero_one").check(loss) == loss


@pytest.mark.parametrize("loss", [0.5, -1.0, 1.0000001, math.nan, math.inf])
def test_a_graded_loss_is_refused_on_a_zero_one_scale(loss: float) -> None:
    with pytest.raises(LossOutsideScale) as refused:
        LossScale.of("zero_one").check(loss)
    assert refused.value.rule == "exactly 0 or 1"
    assert refused.value.value is loss


def test_a_cross_entropy_scale_without_an_upper_limit_is_refused() -> None:
    with pytest.raises(InvalidValue) as refused:
        LossScale.of("cross_entropy")
    assert refused.value.field == "loss.upper"


def test_a_bounded_scale_needs_both_limits() -> None:
    with pytest.raises(InvalidValue, match="lower"):
        LossScale.of("bounded", upper=1.0)
    with pytest.raises(InvalidValue, match="upper"):
        LossScale.of("bounded", lower=1.0)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (1.0, 1.0),
        (2.0, 1.0),
        (math.nan, 1.0),
        (0.0, math.nan),
        (0.0, math.inf),
        (-math.inf, 0.0),
        (-1e308, 1e308),
    ],
)
def test_an_empty_or_unbounded_scale_is_refused(lower: float, upper: float) -> None:
    with pytest.raises(InvalidValue):
        LossScale.of("bounded", lower, upper)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(0.0, 5e-324), (0.0, 1e-170), (1.0, 1.0 + 2.3e-16), (1e15, 1e15 + 1.0), (0.0, 1e20)],
)
def test_a_scale_whose_numbers_cannot_be_told_apart_is_refused(lower: float, upper: float) -> None:
    with pytest.raises(InvalidValue, match="told apart") as refused:
        LossScale.of("bounded", lower, upper)
    assert refused.value.field == "loss.upper"


@pytest.mark.parametrize(("lower", "upper"), [(1e9, 1e9 + 1.0), (-1e6, 1e6), (0.0, 1e-12)])
def test_a_scale_may_be_large_small_or_far_from_zero(lower: float, upper: float) -> None:
    assert LossScale.of("bounded", lower, upper).width == upper - lower


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 2.0), (-1.0, 1.0)])
def test_another_zero_one_scale_is_refused(lower: float, upper: float) -> None:
    with pytest.raises(InvalidValue):
        LossScale.of("zero_one", lower, upper)


def test_a_cross_entropy_scale_begins_at_zero() -> None:
    with pytest.raises(InvalidValue) as refused:
        LossScale.of("cross_entropy", lower=0.5, upper=3.0)
    assert refused.value.field == "loss.lower"


@given(lower=FINITE, width=st.floats(min_value=1e-3, max_value=1e6), at=st.floats(0.0, 1.0))
def test_what_lies_on_a_bounded_scale_passes_and_what_lies_beside_it_does_not(
    lower: float, width: float, at: float
) -> None:
    scale = LossScale.of("bounded", lower, lower + width)
    inside = min(max(lower + at * width, scale.lower), scale.upper)
    assert scale.check(inside) == inside
    for outside in (lower - 1.0, lower + width + 1.0, math.nan):
        with pytest.raises(LossOutsideScale):
            scale.check(outside)


def test_a_zero_one_loss_follows_from_label_and_prediction() -> None:
    assert zero_one_loss(3, 3, None) == 0.0
    assert zero_one_loss(2, 3, 4) == 1.0


@pytest.mark.parametrize("label", [-1, 4])
def test_a_label_of_no_class_is_refused(label: int) -> None:
    with pytest.raises(InvalidValue) as refused:
        zero_one_loss(label, 0, 4)
    assert refused.value.field == "label"
    with pytest.raises(InvalidValue):
        cross_entropy_loss(label, np.full(4, 0.25, dtype=np.float32), 3.0)


@given(st.lists(st.floats(0.0, 1.0, width=32), min_size=2, max_size=6), st.floats(0.1, 20.0))
def test_a_cross_entropy_loss_is_the_negative_log_clipped_into_its_scale(
    probabilities: list[float], upper: float
) -> None:
    array = np.array(probabilities, dtype=np.float32)
    for label, probability in enumerate(probabilities):
        loss = cross_entropy_loss(label, array, upper)
        assert 0.0 <= loss <= upper
        if math.exp(-upper) < probability < 1.0:
            assert loss == pytest.approx(-math.log(probability))

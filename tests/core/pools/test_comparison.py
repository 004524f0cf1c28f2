"""Two systems on one pool: columns, strata and scale of their difference."""

import numpy as np
import pytest

from celeus.core.interval import Interval
from celeus.core.pools.comparison import difference_scale, surrogate_columns
from celeus.core.pools.losses import LossScale
from celeus.core.pools.strata import DIFFERENCE_BINS, strata_of
from celeus.core.pools.surrogates import Scores
from celeus.errors import InvalidValue

PAIR = Interval(-1.0, 1.0)


def test_the_chance_of_a_difference_follows_from_both_surrogates() -> None:
    a, b = np.array([0.2, 1.0, 0.9]), np.array([0.9, 0.0, 0.9])
    found = surrogate_columns(a, b, Interval(0.0, 1.0), exclusive=False)
    assert found["surrogate.0"] == pytest.approx([-0.7, 1.0, 0.0])
    assert found["change"] == pytest.approx([0.2 * 0.1 + 0.9 * 0.8, 1.0, 0.18])
    exclusive = surrogate_columns(a, b, Interval(0.0, 1.0), exclusive=True)
    assert exclusive["change"] == pytest.approx([0.9, 1.0, 0.2])
    scaled = surrogate_columns(10 * a - 4, 10 * b - 4, Interval(-4.0, 6.0), exclusive=False)
    assert scaled["surrogate.0"] == pytest.approx(10 * found["surrogate.0"])
    assert scaled["change"] == pytest.approx(found["change"])


def test_strata_are_five_bins_of_the_difference_cut_once_by_its_chance() -> None:
    chance = np.random.default_rng(2)
    a, b = chance.random(2000), chance.random(2000)
    columns = surrogate_columns(a, b, Interval(0.0, 1.0), exclusive=True)
    scores = Scores(columns["surrogate.0"], np.zeros(2000), change=columns["change"])
    strata = strata_of(scores, PAIR, most_bins=DIFFERENCE_BINS)
    assert strata.count == 10
    assert strata.size.min() >= 25
    for stratum in range(strata.count):
        inside = columns["surrogate.0"][strata.code == stratum]
        assert strata.base[stratum] == pytest.approx((1.0 + inside.mean()) / 2.0)
    few = strata_of(scores.of(np.arange(60)), PAIR, most_bins=DIFFERENCE_BINS)
    assert few.count <= 4


def test_the_scale_of_a_difference_is_symmetric() -> None:
    scale = difference_scale(LossScale.of("bounded", -2.0, 6.0))
    assert (scale.kind, scale.lower, scale.upper) == ("difference", -8.0, 8.0)
    assert LossScale.of("difference").lower == -1.0
    with pytest.raises(InvalidValue) as refused:
        LossScale.of("difference", -1.0, 2.0)
    assert refused.value.field == "loss.lower"

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from celeus.core.pools.losses import LossScale
from celeus.core.pools.pool import Pool
from celeus.core.pools.surrogates import Strategy, from_probabilities, scores, strategies
from celeus.errors import InvalidValue

ZERO_ONE = LossScale.of("zero_one")
CROSS_ENTROPY = LossScale.of("cross_entropy", upper=3.0)
TARGET = np.array([[0.7, 0.2, 0.1], [0.1, 0.5, 0.4], [0.0, 0.0, 1.0]])
SURROGATE = np.array([[0.6, 0.1, 0.3], [0.2, 0.2, 0.6], [0.5, 0.5, 0.0]])


def pool(scale: LossScale, **columns: NDArray[np.float64]) -> Pool:
    named = {name.replace("_at_", "."): column for name, column in columns.items()}
    items = len(next(iter(named.values()))) if named else 3
    return Pool(items, scale, named, (), bytes(32))


def with_probabilities(scale: LossScale) -> Pool:
    return pool(scale, **from_probabilities(scale, TARGET, SURROGATE))


def test_zero_one_columns_are_those_of_the_paper() -> None:
    columns = from_probabilities(ZERO_ONE, TARGET, SURROGATE)
    assert columns["dispersion_f"] == pytest.approx([0.46, 0.58, 0.0])
    assert columns["hard"].tolist() == [0.0, 1.0, 1.0]
    assert columns["soft"] == pytest.approx([0.3, 0.6, 1.0])


def test_cross_entropy_columns_are_those_of_the_paper() -> None:
    columns = from_probabilities(CROSS_ENTROPY, TARGET, SURROGATE)
    first = -(0.7 * math.log(0.7) + 0.2 * math.log(0.2) + 0.1 * math.log(0.1))
    assert columns["entropy_f"][0] == pytest.approx(first)
    assert columns["entropy_f"][2] == 0.0
    assert columns["mode_loss"] == pytest.approx([-math.log(0.7), -math.log(0.5), 0.0])
    assert columns["entropy_g"][2] == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("scale", "strategy", "proxy", "surrogate"),
    [
        (ZERO_ONE, "A", "hard", "dispersion_f"),
        (ZERO_ONE, "B", "dispersion_f", "soft"),
        (ZERO_ONE, "C", "soft", "dispersion_f"),
        (CROSS_ENTROPY, "A", "mode_loss", "entropy_f"),
        (CROSS_ENTROPY, "B", "entropy_f", "mode_loss"),
        (CROSS_ENTROPY, "C", "entropy_f", "entropy_g"),
    ],
)
def test_a_strategy_pairs_the_columns_of_the_papers_table(
    scale: LossScale, strategy: Strategy, proxy: str, surrogate: str
) -> None:
    known = with_probabilities(scale)
    found = scores(known, strategy)
    assert np.array_equal(found.surrogate, known.columns[surrogate])
    assert found.proxy is known.columns[proxy]
    assert found.weight == pytest.approx(np.abs(known.columns[proxy] - known.columns[surrogate]))


@pytest.mark.parametrize("scale", [ZERO_ONE, CROSS_ENTROPY])
def test_strategy_a_is_the_default_where_there_are_probabilities(scale: LossScale) -> None:
    known = with_probabilities(scale)
    assert np.array_equal(scores(known).weight, scores(known, "A").weight)


def test_an_uploaded_surrogate_comes_before_the_default_strategy() -> None:
    columns = from_probabilities(ZERO_ONE, TARGET, SURROGATE)
    uploaded = np.array([0.1, 0.2, 0.3])
    found = scores(pool(ZERO_ONE, surrogate_at_0=uploaded, **columns))
    assert np.array_equal(found.surrogate, uploaded)


def test_a_strategy_for_a_pool_without_probabilities_is_refused() -> None:
    plain = pool(ZERO_ONE, surrogate_at_0=np.array([0.5]))
    with pytest.raises(InvalidValue) as refused:
        scores(plain, "A")
    assert (refused.value.field, refused.value.value) == ("strategy", "A")
    assert strategies(plain) == ()


def test_a_strategy_that_needs_the_surrogate_model_is_refused_without_it() -> None:
    target_only = pool(CROSS_ENTROPY, **from_probabilities(CROSS_ENTROPY, TARGET, None))
    assert strategies(target_only) == ("A", "B")
    with pytest.raises(InvalidValue, match="strategy C"):
        scores(target_only, "C")


def test_the_targets_own_dispersion_serves_where_it_is_all_there_is() -> None:
    alone = pool(ZERO_ONE, **from_probabilities(ZERO_ONE, TARGET, None))
    assert np.array_equal(scores(alone).surrogate, alone.columns["dispersion_f"])


def test_without_any_surrogate_draws_are_uniform() -> None:
    found = scores(pool(LossScale.of("bounded", -2.0, 4.0)))
    assert found.surrogate.tolist() == [-2.0] * 3
    assert found.weight.tolist() == [0.0] * 3
    assert found.proxy is None


def test_a_surrogate_alone_is_scored_on_the_unit_scale() -> None:
    scale = LossScale.of("bounded", -2.0, 2.0)
    found = scores(pool(scale, surrogate_at_0=np.array([-2.0, 0.0, 1.0, 2.0])))
    assert found.weight == pytest.approx([0.0, 2.0, 4 * math.sqrt(0.1875), 0.0])


def test_several_surrogates_are_taken_by_their_mean_in_numeric_order() -> None:
    columns = {f"surrogate_at_{k}": np.array([k / 20.0, 0.5]) for k in (10, 2, 0)}
    known = pool(ZERO_ONE, **columns)
    assert [column[0] for column in known.surrogates] == [0.0, 0.1, 0.5]
    assert scores(known).surrogate == pytest.approx([0.2, 0.5])


DISTRIBUTIONS = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 5), st.integers(2, 5)), elements=st.floats(0.0, 1.0)
).filter(lambda table: bool((table.sum(axis=1) > 1e-6).all()))


@given(DISTRIBUTIONS, st.sampled_from([ZERO_ONE, LossScale.of("cross_entropy", upper=0.7)]))
def test_every_score_lies_on_its_scale(table: NDArray[np.float64], scale: LossScale) -> None:
    target = table / table.sum(axis=1, keepdims=True)
    columns = from_probabilities(scale, target, target[:, ::-1])
    known = pool(scale, **columns)
    for column in columns.values():
        assert ((column >= scale.lower) & (column <= scale.upper)).all()
    for strategy in strategies(known):
        found = scores(known, strategy)  # type: ignore[arg-type]  # names of strategies
        assert ((found.surrogate >= scale.lower) & (found.surrogate <= scale.upper)).all()
        assert (found.weight >= 0.0).all()

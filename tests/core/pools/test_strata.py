"""Strata and substrata: what items are cut by."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from celeus.core.interval import Interval
from celeus.core.pools.strata import (
    MOST_STRATA,
    MOST_SUBSTRATA,
    NOWHERE,
    Strata,
    strata_of,
    substrata_of,
)
from celeus.core.pools.surrogates import Scores

UNIT = Interval(0.0, 1.0)


def grouped(surrogate: np.ndarray, **more: np.ndarray | None) -> Strata:
    proxy = more.pop("proxy", None)
    return strata_of(Scores(surrogate, np.zeros(surrogate.size), proxy, **more), UNIT)


def test_votes_make_one_stratum_of_every_distinct_value() -> None:
    votes = np.random.default_rng(1).integers(0, 6, 1000) / 5.0
    strata = grouped(votes)
    assert strata.count == 6
    assert np.allclose(strata.base[strata.code], votes)


def test_a_pseudo_loss_parts_the_bins_of_the_surrogate() -> None:
    chance = np.random.default_rng(1)
    surrogate, proxy = chance.random(5000), chance.integers(0, 2, 5000).astype(float)
    strata = grouped(surrogate, proxy=proxy)
    assert strata.count == 40
    for one in range(40):
        assert np.ptp(proxy[strata.code == one]) == 0.0


def test_bins_hold_about_25_items_or_more() -> None:
    strata = grouped(np.random.default_rng(1).random(100))
    assert strata.count == 4
    assert strata.size.min() >= 24


def test_a_proxy_with_many_values_parts_nothing() -> None:
    chance = np.random.default_rng(1)
    assert grouped(chance.random(5000), proxy=chance.random(5000)).count == 20


def test_without_a_surrogate_the_groups_are_the_strata() -> None:
    group = np.repeat(np.arange(50), np.arange(1, 51)).astype(np.int32)
    strata = grouped(np.zeros(group.size), group=group)
    assert strata.count == MOST_STRATA
    for one in range(39):
        assert np.unique(group[strata.code == one]).size == 1
    assert sorted(np.unique(group[strata.code == 39])) == list(range(11))


def test_nothing_known_is_one_stratum() -> None:
    assert grouped(np.full(9, 0.4)).count == 1
    nothing = Scores(np.zeros(9), np.zeros(9))
    assert strata_of(nothing, UNIT, by_scores=False).count == 1


def test_several_columns_are_binned_by_their_mean_and_then_their_spread() -> None:
    chance = np.random.default_rng(1)
    centre, width = chance.random(4000), 0.2 * chance.random(4000)
    columns = np.clip(np.stack([centre - width, centre + width], axis=1), 0.0, 1.0)
    strata = grouped(columns.mean(axis=1), columns=columns)
    assert 20 < strata.count <= MOST_STRATA
    spread = columns.std(axis=1)
    inside = np.mean([spread[strata.code == one].std() for one in range(strata.count)])
    assert inside < 0.7 * spread.std()


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.50001, 0.9, 1.0]), min_size=1, max_size=200),
    st.integers(1, 12),
)
def test_ties_are_never_split_and_no_stratum_is_empty(values: list[float], kinds: int) -> None:
    surrogate = np.array(values)
    proxy = np.arange(surrogate.size) % kinds / 12.0
    strata = grouped(surrogate, proxy=proxy)
    assert strata.count <= MOST_STRATA
    assert strata.size.min() >= 1
    assert strata.size.sum() == surrogate.size
    parts = proxy if np.unique(proxy).size <= 8 else np.zeros(surrogate.size)
    for pair in np.unique(np.stack([surrogate, parts], axis=1), axis=0):
        same = (surrogate == pair[0]) & (parts == pair[1])
        assert np.unique(strata.code[same]).size == 1


@pytest.mark.parametrize("scale", [Interval(-3.0, 5.0), Interval(100.0, 100.5)])
def test_strata_do_not_depend_on_the_scale(scale: Interval) -> None:
    surrogate = np.random.default_rng(1).integers(0, 64, 700) / 64.0
    moved = Scores(scale.lower + scale.width * surrogate, np.zeros(700), None)
    one, other = grouped(surrogate), strata_of(moved, scale)
    assert np.array_equal(one.code, other.code)
    assert np.allclose(one.base, other.base, atol=1e-12)


@pytest.mark.parametrize("values", [3, 9, 400])
def test_bounds_are_cut_by_their_distinct_pairs_or_their_middles(values: int) -> None:
    chance = np.random.default_rng(values)
    ends = np.sort(chance.integers(0, values, (2, 2000)) / values, axis=0)
    lower, upper = ends[0], ends[1] + 1.0 / values
    scores = Scores(np.zeros(2000), np.zeros(2000), lower=lower, upper=upper)
    strata = strata_of(scores, Interval(0.0, 2.0), by_scores=False)
    pairs, code = np.unique(np.stack((lower, upper), axis=1), axis=0, return_inverse=True)
    if len(pairs) <= 8:
        assert np.array_equal(strata.code, code)
    else:
        assert strata.count <= 8
        assert np.all(np.diff(strata.base) >= 0.0)
    for one in range(strata.count):
        inside = strata.code == one
        assert strata.lower[one] == lower[inside].min()
        assert strata.upper[one] == upper[inside].max()


def scored(columns: np.ndarray, known: np.ndarray | None = None) -> Scores:
    mean = columns.mean(axis=1)
    lower, upper = np.zeros(mean.size), np.ones(mean.size)
    if known is not None:
        upper[known] = 0.0
    return Scores(mean, np.zeros(mean.size), columns=columns, lower=lower, upper=upper)


def test_substrata_of_verdicts_are_their_patterns() -> None:
    verdicts = np.random.default_rng(1).integers(0, 2, (500, 4)).astype(float)
    made = substrata_of(strata_of(scored(verdicts), UNIT), verdicts, UNIT)
    patterns, code = np.unique(verdicts, axis=0, return_inverse=True)
    assert made.strata.count == len(patterns) == 16
    assert len({*zip(made.strata.code.tolist(), code.tolist(), strict=True)}) == 16
    assert made.strata.size.sum() == 500


def test_graded_columns_make_no_more_than_the_limit_and_none_without_items() -> None:
    columns = np.random.default_rng(2).random((4000, 3))
    strata = strata_of(scored(columns), UNIT)
    made = substrata_of(strata, columns, UNIT)
    assert MOST_SUBSTRATA / 2 < made.strata.count <= MOST_SUBSTRATA
    assert np.array_equal(np.bincount(made.strata.code), made.strata.size)
    assert np.array_equal(made.stratum[made.strata.code], strata.code)
    # Deviations are centred in their strata
    means = np.array(
        [
            made.strata.size[made.stratum == k] @ made.deviation[made.stratum == k]
            for k in range(strata.count)
        ]
    )
    assert np.abs(means).max() < 1e-9


def test_columns_that_agree_are_cut_no_further() -> None:
    columns = np.repeat(np.random.default_rng(3).random((200, 1)), 3, axis=1)
    strata = strata_of(scored(columns), UNIT)
    assert substrata_of(strata, columns, UNIT).strata.count == strata.count


def test_items_whose_losses_are_known_are_in_no_substratum() -> None:
    columns = np.random.default_rng(4).random((60, 2))
    known = np.arange(60) % 5 == 0
    strata = strata_of(scored(columns, known), UNIT)
    made = substrata_of(strata, columns, UNIT)
    assert np.array_equal(made.strata.code == NOWHERE, known)
